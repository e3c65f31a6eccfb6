"""The output formats ``tblout`` and ``domtblout``: hmmsearch's tables, one line per target or per domain."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import IO, Any, NamedTuple

from seqloom.core.errors import UsageError
from seqloom.core.ports import QueryReport, Report
from seqloom.core.records import children_order
from seqloom.core.stages import Writer

_LEAST_NAME, _LEAST_ACCESSION = 20, 10
_STRETCHES = (("query_start", "query_end"), ("target_start", "target_end"), ("env_start", "env_end"))


class _Widths(NamedTuple):
    """Columns of names and accessions, as wide as the longest of one query's hits."""

    target: int
    query: int
    accession: int


class _HmmerTable(Writer):
    """Names and accessions in columns of their own width, a heading before the first query, provenance at the end."""

    families = beside = ("profile-hmm",)

    def write(self, report: Report, stream: IO[str], fields: Sequence[str]) -> None:
        if fields:
            raise UsageError(f"--outfmt {self.name} has fixed columns; leave '{' '.join(fields)}' out")
        for number, query in enumerate(report.queries()):
            widths = _Widths(
                target=max([_LEAST_NAME, *map(len, query.targets.names)]),
                query=max(_LEAST_NAME, len(query.name)),
                accession=max(_LEAST_ACCESSION, len(query.accession)),
            )
            if number == 0:
                stream.write(self.heading(widths))
            for line in self.lines(query, widths):
                stream.write(line + "\n")
        stream.write(_closing(report))

    def heading(self, widths: _Widths) -> str:
        raise NotImplementedError

    def lines(self, query: QueryReport, widths: _Widths) -> Iterator[str]:
        raise NotImplementedError


class TargetTable(_HmmerTable):
    """Targets with scores of the whole target and of the best domain (hmmsearch --tblout)."""

    name = "tblout"

    def heading(self, widths: _Widths) -> str:
        names = f"{'target name':<{widths.target - 2}} {'accession':<10} {'query name':<{widths.query}}"
        rules = f"{'-' * 19:>{widths.target - 1}} {'-' * 10} {'-' * widths.query} {'-' * widths.accession}"
        blank = " " * (widths.target + widths.query + widths.accession + 12)
        return (
            f"#{blank} --- full sequence ---- --- best 1 domain ---- --- domain number estimation ----\n"
            f"# {names} {'accession':<{widths.accession}}   E-value  score  bias   E-value  score  bias   exp reg clu "
            " ov env dom rep inc description of target\n"
            f"#{rules} --------- ------ ----- --------- ------ -----   --- --- --- --- --- --- --- --- "
            "---------------------\n"
        )

    def lines(self, query: QueryReport, widths: _Widths) -> Iterator[str]:
        counts = ("regions", "clustered_regions", "overlaps", "envelopes", "domains", "reported_domains")
        for hit, target in _hits(query):
            words = [
                f"{target['name']:<{widths.target}} {'-':<10} {_query_columns(query, widths)}",
                _scores(hit["evalue"], hit["bit_score"], hit["bias"]),
                _scores(hit["best_evalue"], hit["best_bit_score"], hit["best_bias"]),
                f"{hit['expected_domains']:5.1f}",
                *(f"{hit[name]:3d}" for name in (*counts, "included_domains")),
                target["description"] or "-",
            ]
            yield " ".join(words)


class DomainTable(_HmmerTable):
    """Domains with their coordinates (hmmsearch --domtblout)."""

    name = "domtblout"

    def heading(self, widths: _Widths) -> str:
        names = f"{'target name':<{widths.target - 2}} {'accession':<10}  tlen {'query name':<{widths.query}}"
        rules = f"{'-' * 19:>{widths.target - 1}} {'-' * 10} ----- {'-' * widths.query} {'-' * widths.accession} -----"
        blank = " " * (widths.target + widths.query + widths.accession + 25)
        return (
            f"#{blank} --- full sequence --- -------------- this domain -------------   hmm coord   ali coord   "
            "env coord\n"
            f"# {names} {'accession':<{widths.accession}}  qlen   E-value  score  bias   #  of  c-Evalue  i-Evalue  "
            "score  bias  from    to  from    to  from    to  acc description of target\n"
            f"#{rules} --------- ------ ----- --- --- --------- --------- ------ ----- ----- ----- ----- ----- ----- "
            "----- ---- ---------------------\n"
        )

    def lines(self, query: QueryReport, widths: _Widths) -> Iterator[str]:
        domains = iter(query.hits.alignments.take(children_order(query.hits, query.hits.alignments)).rows())
        for hit, target in _hits(query):
            shown = hit["reported_domains"]
            for number, domain in enumerate(islice(domains, shown), start=1):
                words = [
                    f"{target['name']:<{widths.target}} {'-':<10} {target['length']:5d}",
                    f"{_query_columns(query, widths)} {query.length:5d}",
                    _scores(hit["evalue"], hit["bit_score"], hit["bias"]),
                    f"{number:3d} {shown:3d} {domain['conditional_evalue']:9.2g}",
                    _scores(domain["evalue"], domain["bit_score"], domain["bias"]),
                    *(f"{domain[a] + 1:5d} {domain[b]:5d}" for a, b in _STRETCHES),
                    f"{domain['accuracy']:4.2f}",
                    target["description"] or "-",
                ]
                yield " ".join(words)


def _closing(report: Report) -> str:
    """What made the table; its last line says that it is whole."""
    databases = ", ".join(str(database.get("path", "")) for database in report.run.get("databases", ()))
    return (
        "#\n"
        "# Program:         seqloom\n"
        f"# Version:         {report.run.get('version', '')}\n"
        f"# Pipeline mode:   {report.run.get('pipeline', '')}\n"
        f"# Target file:     {databases}\n"
        f"# Option settings: {report.run.get('command', '')}\n"
        "# [ok]\n"
    )


def _hits(query: QueryReport) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Hits of a query in order of rank, each with name, description and length of its target."""
    info = query.targets
    targets = {
        number: {"name": name, "description": description, "length": length}
        for number, name, description, length in zip(
            info.numbers.tolist(), info.names, info.descriptions, info.lengths.tolist(), strict=True
        )
    }
    missing = {"best_evalue", "reported_domains"} - set(query.hits.schema)
    if missing:
        raise UsageError("tblout and domtblout need the results of a profile HMM search; choose another --outfmt")
    for hit in query.hits.rows():
        yield hit, targets[hit["target"]]


def _query_columns(query: QueryReport, widths: _Widths) -> str:
    return f"{query.name:<{widths.query}} {query.accession or '-':<{widths.accession}}"


def _scores(evalue: float, score: float, bias: float) -> str:
    return f"{evalue:9.2g} {score:6.1f} {bias:5.1f}"
