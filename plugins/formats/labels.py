"""How queries and targets are called in BLAST's formats: by whole names or, where these are taken apart, accessions."""

from functools import lru_cache

from seqloom.core.classes import NamedTuple

from ...core.alphabet import PROTEIN, Alphabet
from ...core.ports import QueryBlock, QueryReport, TargetInfo
from ...core.seqids import seq_id

UNTITLED = "No definition line"
_UNTITLED_PROTEIN = "unnamed protein product"
_BETWEEN = "\x01"
"""Between the definitions of a sequence that has several."""
_UNLINKED = ("lcl", "gnl", "bbs", "bbm", "gim")
"""Kinds of ids that NCBI has no page for."""


class Label(NamedTuple):
    """What a sequence is called in reports.

    Attributes:
        id: whole, with its kind.
        shown: what stands before titles.
        version: accession with version; accession: without.
        tag: what XML and JSON call the accession; number, gi: NCBI's, "" and "0" where there is none.
        title: what stands behind the name, "" where there is nothing.
        linked: whether NCBI has a page for it.
    """

    id: str
    shown: str
    version: str
    accession: str
    tag: str
    gi: str
    title: str
    linked: bool = False
    parsed: bool = False

    @property
    def heading(self) -> str:
        """Name and title."""
        return f"{self.shown} {self.title}".strip()

    @property
    def anchor(self) -> str:
        """Name of the place of its alignments on a page."""
        return self.version if self.gi == "0" else self.gi


@lru_cache(4096)
def labels(name: str, description: str, parsed: bool, protein: bool) -> tuple[Label, ...]:
    """Of a sequence; one for each definition where names are taken apart, else one."""
    if not parsed:
        return (Label(name, name, name, name, name, "0", description),)
    first, *others = description.split(_BETWEEN)
    found = [_label(name, first, protein)]
    for other in others:
        word, _, title = other.partition(" ")
        found.append(_label(word, title, protein))
    return tuple(found)


def _label(name: str, title: str, protein: bool) -> Label:
    one = seq_id(name, protein)
    tag = (one.kind == "gnl" and one.text.rpartition("|")[2]) or one.unversioned
    return Label(one.whole, one.accession, one.short, one.unversioned, tag, one.gi or "0", title,
                 one.kind not in _UNLINKED, True)


def of_target(targets: TargetInfo, place: int, alphabet: Alphabet) -> tuple[Label, ...]:
    """Of the target at a place of ``targets``."""
    return labels(targets.names[place], targets.descriptions[place] if targets.descriptions else "",
                  bool(targets.parsed and targets.parsed[place]), alphabet is PROTEIN)


def of_query(query: QueryReport, alphabet: Alphabet) -> Label:
    """Of a query."""
    return labels(query.name, query.description, query.parsed, alphabet is PROTEIN)[0]


def of_queries(block: QueryBlock, alphabet: Alphabet) -> list[Label]:
    """Of all queries of a block."""
    return [labels(name, description, block.parsed, alphabet is PROTEIN)[0]
            for name, description in zip(block.names, block.descriptions)]


def untitled(label: Label, alphabet: Alphabet) -> str:
    """Title of what has none, where names are taken apart."""
    if alphabet is not PROTEIN:
        return ""
    return f"Chain {label.id.rpartition('|')[2]}" if label.id.startswith("pdb|") else _UNTITLED_PROTEIN
