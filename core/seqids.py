"""Names of sequences in the notation of NCBI's FASTA files: ``sp|P53508|CSSA1_ECOLX``, ``NC_000913.3``."""

import re
from typing import NamedTuple

_DATABASES = ("gb", "emb", "dbj", "ref", "sp", "tr", "tpg", "tpe", "tpd", "gpp", "nat")
"""Kinds of ids that have an accession and a name."""
_PDB = re.compile(r"([0-9][A-Z0-9]{3})_([A-Za-z0-9]{1,4})"), "pdb|{1}|{2}"
_OF_PROTEINS = (
    (re.compile(r"[ANWXYZ]P_[0-9]{6,}(\.[0-9]+)?"), "ref|{}|"),
    (re.compile(r"([OPQ][0-9][A-Z0-9]{3}[0-9]|[A-NR-Z][0-9]([A-Z][A-Z0-9]{2}[0-9]){1,2})(\.[0-9]+)?"), "sp|{}|"),
    _PDB,
)
_OF_NUCLEOTIDES = (
    (re.compile(r"(AC|N[CGMRSTWZ]|X[MR])_[A-Z]*[0-9]{6,}(\.[0-9]+)?"), "ref|{}|"),
    _PDB,
)
"""Names without a kind that tell by themselves of what kind they are, and how they are written with it."""


class SeqId(NamedTuple):
    """What a name says.

    Attributes:
        text: the name with its kind, ``lcl`` for one's own.
        accession: what stands for the sequence alone, with its version.
        gi: NCBI's number, "" where there is none.
    """

    text: str
    accession: str
    gi: str = ""


def seq_id(name: str, protein: bool) -> SeqId:
    """The name of a sequence taken apart, as makeblastdb does when asked to (-parse_seqids).

    Of names without a kind those of RefSeq, UniProt and PDB are recognised; all others are one's own.
    """
    kind, *rest = name.split("|")
    gi = ""
    if kind == "gi" and rest:
        gi, *more = rest
        if not more:
            return SeqId(name, name, gi)
        kind, *rest = more
    if kind in _DATABASES and rest and rest[0]:
        return SeqId("|".join([kind, rest[0], rest[1] if len(rest) > 1 else ""]), rest[0], gi)
    if kind == "pdb" and len(rest) > 1:
        return SeqId(f"pdb|{rest[0]}|{rest[1]}", f"{rest[0]}_{rest[1]}", gi)
    if kind == "gnl" and len(rest) > 1:
        return SeqId(f"gnl|{rest[0]}|{rest[1]}", f"{rest[0]}:{rest[1]}", gi)
    if kind == "lcl" and rest:
        return SeqId(f"lcl|{rest[0]}", rest[0], gi)
    if rest:
        return SeqId(name, name, gi)
    for pattern, form in _OF_PROTEINS if protein else _OF_NUCLEOTIDES:
        if found := pattern.fullmatch(name):
            return SeqId(form.format(name, *found.groups()[:2]), name)
    return SeqId(f"lcl|{name}", name)
