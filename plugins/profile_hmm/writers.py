"""The output formats ``tblout`` and ``domtblout``: HMMER's tables, one line per target or per domain."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import IO

from seqloom.core.classes import NamedTuple
from seqloom.core.ports import QueryReport, Report

from .report_rows import FAMILIES, HitRow, HmmerWriter, closing, hit_rows, models_are_targets, scores

_LEAST_NAME, _LEAST_ACCESSION = 20, 10
_STRETCHES = (("query_start", "query_end"), ("target_start", "target_end"), ("env_start", "env_end"))
_COUNTS = ("regions", "clustered_regions", "overlaps", "envelopes", "domains", "reported_domains", "included_domains")


class _Widths(NamedTuple):
    """Columns of names and accessions, as wide as the longest of one query's hits."""

    target: int
    target_accession: int
    query: int
    accession: int

    def titles(self) -> str:
        """Above the columns of the target."""
        return f"{'target name':<{self.target - 2}} {'accession':<{self.target_accession}}"

    def rules(self) -> str:
        """Below these."""
        return f"{'-' * 19:>{self.target - 1}} {'-' * self.target_accession}"


class _HmmerTable(HmmerWriter):
    """Names and accessions in columns of their own width, a heading before the first query, provenance at the end."""

    beside = FAMILIES

    def write(self, report: Report, stream: IO[str], fields: Sequence[str]) -> None:
        self.options(fields)
        for number, query in enumerate(report.queries()):
            if number and not len(query.hits):
                continue
            accessions = [text or "" for text in query.hits.model_accession] if models_are_targets(query) else []
            widths = _Widths(
                target=max([_LEAST_NAME, *map(len, query.targets.names)]),
                target_accession=max([_LEAST_ACCESSION, *map(len, accessions)]),
                query=max(_LEAST_NAME, len(query.name)),
                accession=max(_LEAST_ACCESSION, len(query.accession)),
            )
            if number == 0:
                stream.write(self.heading(widths))
            stream.writelines(line + "\n" for line in self.lines(query, widths))
        stream.write(closing(report))

    def heading(self, widths: _Widths) -> str:
        raise NotImplementedError

    def lines(self, query: QueryReport, widths: _Widths) -> Iterator[str]:
        raise NotImplementedError


class TargetTable(_HmmerTable):
    """Targets with scores of the whole target and of the best domain (--tblout of HMMER)."""

    name = "tblout"

    def heading(self, widths: _Widths) -> str:
        names = f"{widths.titles()} {'query name':<{widths.query}}"
        rules = f"{widths.rules()} {'-' * widths.query} {'-' * widths.accession}"
        blank = " " * (widths.target + widths.query + widths.accession + widths.target_accession + 2)
        return (
            f"#{blank} --- full sequence ---- --- best 1 domain ---- --- domain number estimation ----\n"
            f"# {names} {'accession':<{widths.accession}}   E-value  score  bias   E-value  score  bias   exp reg clu "
            " ov env dom rep inc description of target\n"
            f"#{rules} --------- ------ ----- --------- ------ -----   --- --- --- --- --- --- --- --- "
            "---------------------\n"
        )

    def lines(self, query: QueryReport, widths: _Widths) -> Iterator[str]:
        for target in hit_rows(query, domains=False):
            hit = target.values
            words = [
                f"{_target_columns(target, widths)} {_query_columns(query, widths)}",
                scores(hit["evalue"], hit["bit_score"], hit["bias"]),
                scores(hit["best_evalue"], hit["best_bit_score"], hit["best_bias"]),
                f"{hit['expected_domains']:5.1f}",
                *(f"{hit[name]:3d}" for name in _COUNTS),
                target.description or "-",
            ]
            yield " ".join(words)


class DomainTable(_HmmerTable):
    """Domains with their coordinates (--domtblout of HMMER)."""

    name = "domtblout"

    def heading(self, widths: _Widths) -> str:
        names = f"{widths.titles()}  tlen {'query name':<{widths.query}}"
        rules = f"{widths.rules()} ----- {'-' * widths.query} {'-' * widths.accession} -----"
        blank = " " * (widths.target + widths.query + widths.accession + widths.target_accession + 15)
        return (
            f"#{blank} --- full sequence --- -------------- this domain -------------   hmm coord   ali coord   "
            "env coord\n"
            f"# {names} {'accession':<{widths.accession}}  qlen   E-value  score  bias   #  of  c-Evalue  i-Evalue  "
            "score  bias  from    to  from    to  from    to  acc description of target\n"
            f"#{rules} --------- ------ ----- --- --- --------- --------- ------ ----- ----- ----- ----- ----- ----- "
            "----- ---- ---------------------\n"
        )

    def lines(self, query: QueryReport, widths: _Widths) -> Iterator[str]:
        for target in hit_rows(query):
            hit, shown = target.values, len(target.domains)
            for number, domain in enumerate(target.domains, start=1):
                words = [
                    f"{_target_columns(target, widths)} {target.length:5d}",
                    f"{_query_columns(query, widths)} {query.length:5d}",
                    scores(hit["evalue"], hit["bit_score"], hit["bias"]),
                    f"{number:3d} {shown:3d} {domain['conditional_evalue']:9.2g}",
                    scores(domain["evalue"], domain["bit_score"], domain["bias"]),
                    *(f"{domain[a] + 1:5d} {domain[b]:5d}" for a, b in _STRETCHES),
                    f"{domain['accuracy']:4.2f}",
                    target.description or "-",
                ]
                yield " ".join(words)


def _target_columns(target: HitRow, widths: _Widths) -> str:
    return f"{target.name:<{widths.target}} {target.accession or '-':<{widths.target_accession}}"


def _query_columns(query: QueryReport, widths: _Widths) -> str:
    return f"{query.name:<{widths.query}} {query.accession or '-':<{widths.accession}}"
