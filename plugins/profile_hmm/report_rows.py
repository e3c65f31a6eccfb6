"""What all output formats of this family share: hits with their targets and domains, and which side the models are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, ClassVar

from seqloom.core.classes import NamedTuple
from seqloom.core.errors import UsageError
from seqloom.core.ports import QueryReport, Report
from seqloom.core.stages import Writer

from .turned import turned

FAMILIES = ("profile-hmm", "profile-hmm-nucleotide", "profile-hmm-scan", "profile-hmm-scan-nucleotide",
            "sequence-profile")


class HmmerWriter(Writer):
    """An output format of HMMER's programs."""

    families: ClassVar[tuple[str, ...]] = FAMILIES

    def options(self, fields: Sequence[str], known: Sequence[str] = ()) -> dict[str, str]:
        """The words behind the format's name: ``name`` or ``name=value``; raises ``UsageError`` for another name."""
        found = {}
        for field in fields:
            name, _, value = field.partition("=")
            if name not in known:
                what = f"it takes {', '.join(known)}" if known else "it has fixed columns"
                raise UsageError(f"--outfmt {self.name}: leave '{field}' out; {what}")
            if value != "no":
                found[name] = value
        return found


class HitRow(NamedTuple):
    """A reported target.

    Attributes:
        number: of the target.
        name, accession, description, length: of the target; accessions are those of models.
        values: columns of the hit.
        domains: columns of each reported domain, in order of discovery; ``query_start`` and the like are places in the
            model, ``target_start`` and the like in the sequence, whichever of the two is the query.
    """

    number: int
    name: str
    accession: str
    description: str
    length: int
    values: Mapping[str, Any]
    domains: list[dict[str, Any]]


def hit_rows(query: QueryReport, domains: bool = True) -> Iterator[HitRow]:
    """Hits of a query in order of rank, with their ``domains`` where they are wanted.

    Raises:
        UsageError: they aren't of a search with profile HMMs.
    """
    if {"best_evalue", "reported_domains"} - set(query.hits.schema):
        raise UsageError("HMMER's output formats need the results of a profile HMM search; choose another --outfmt")
    if not len(query.hits):
        return
    info = query.targets
    targets = {number: (name, description, length) for number, name, description, length in zip(
        info.numbers.tolist(), info.names, info.descriptions, info.lengths.tolist(), strict=True)}
    scanned, children = models_are_targets(query), query.hits.alignments
    rows = iter((turned(children) if scanned else children).rows() if domains else ())
    for hit in query.hits.rows():
        number = int(hit["target"])
        name, description, length = targets[number]
        own = list(islice(rows, hit["reported_domains"]))
        accession = (hit["model_accession"] or "") if scanned else ""
        yield HitRow(number, name, accession, description, length, hit, own)


def models_are_targets(query: QueryReport) -> bool:
    """Whether sequences were compared with models, not models with sequences."""
    return "model_accession" in query.hits.schema


def scores(evalue: float, score: float, bias: float) -> str:
    """As they stand in all tables but Pfam's."""
    return f"{evalue:9.2g} {score:6.1f} {bias:5.1f}"


def database_names(report: Report) -> str:
    return ", ".join(str(database.get("path", "")) for database in report.run.get("databases", ()))


def query_names(report: Report) -> str:
    return ", ".join(report.run.get("query_files") or ()) or "-"


def closing(report: Report) -> str:
    """What made the table; its last line says that it is whole."""
    return (
        "#\n"
        "# Program:         seqloom\n"
        f"# Version:         {report.run.get('version', '')}\n"
        f"# Pipeline mode:   {report.run.get('pipeline', '')}\n"
        f"# Query file:      {query_names(report)}\n"
        f"# Target file:     {database_names(report)}\n"
        f"# Option settings: {report.run.get('command', '')}\n"
        "# [ok]\n"
    )
