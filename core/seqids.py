"""Names of sequences in the notation of NCBI's FASTA files: ``sp|P53508|CSSA1_ECOLX``, ``NC_000913.3``."""

import re

from .classes import NamedTuple

_DATABASES = ("gb", "emb", "dbj", "ref", "sp", "tr", "tpg", "tpe", "tpd", "gpp", "nat")
"""Kinds of ids that have an accession and a name."""
_NUMBERS = ("bbs", "bbm", "gim")
"""Kinds of ids that are numbers."""
_VERSION = r"\.[0-9]+$"
_PDB = r"([0-9][A-Z0-9]{3})_([A-Za-z0-9]{1,4})", "pdb|{1}|{2}"
_OF_PROTEINS = (
    (r"[ANWXYZ]P_[0-9]{6,}(\.[0-9]+)?", "ref|{}|"),
    (r"([OPQ][0-9][A-Z0-9]{3}[0-9]|[A-NR-Z][0-9]([A-Z][A-Z0-9]{2}[0-9]){1,2})(\.[0-9]+)?", "sp|{}|"),
    _PDB,
)
_OF_NUCLEOTIDES = (
    (r"(AC|N[CGMRSTWZ]|X[MR])_[A-Z]*[0-9]{6,}(\.[0-9]+)?", "ref|{}|"),
    _PDB,
)
"""Names without a kind that tell by themselves of what kind they are, and how they are written with it."""
_PROTEIN_KINDS = {"gb": "AEJKMNOPQRTU", "emb": "CSV", "dbj": "BGL", "tpg": "DH", "tpd": "FI"}
"""Kinds of proteins of the sequence archives, ABC12345.1, by their first letter."""
_NUCLEOTIDE_KINDS = {
    1: {"gb": "BGHIJKLMRSTUW", "emb": "AFVXYZ", "dbj": "CDE"},
    2: {"emb": "AJ AL AM AN AX BX CQ-U FB FM-R GM-N HA-I JA-E LK-T MP-S OA-E OU-Z",
        "dbj": "AB AG AK AP AT-V BA-B BD BJ BP BS BW BY CI-J DA-M FS-Z GA-B HV-Z LA-J LU-Z MA-E OF-J PA-E",
        "tpg": "BK-L GJ-K", "tpd": "BR HT-U", "tpe": "BN",
        "gb": "AA-Z BC-Z CA-Z DN-Z EA-Z FA-L GC-Z HJ-S JF-Z KA-Z MF-Z OK-T",
        "": "AO BO DO GI"},
    4: {"gb": "AGJKLMNPQRSVWX", "emb": "CFHOU", "dbj": "BIT", "tpg": "D", "tpd": "EYZ"},
    6: {"gb": "AJ", "emb": "C", "dbj": "B", "tpg": "D"},
}
"""Kinds of nucleotides of the archives by how many letters they begin with: U00096.3, CP000001.1, AAAA02000001.1. One
letter tells, of two letters both; ranges are of the second. A kind that comes earlier has what is in several."""
_OF_ARCHIVES = r"([A-Z]{1,6})([0-9]{5,})(\.[0-9]+)?"
_DIGITS = {1: (5,), 2: (6, 8), 3: (5, 7), 4: range(8, 12), 6: range(9, 13)}
"""By letters."""


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

    @property
    def kind(self) -> str:
        """What stands before the first bar."""
        return self.text.partition("|")[0]

    @property
    def whole(self) -> str:
        """As BLAST's tables show it: with the GI, and one's own without their kind."""
        if self.gi and self.kind != "gi":
            return f"gi|{self.gi}|{self.text}"
        return self.text.removeprefix("lcl|")

    @property
    def short(self) -> str:
        """The accession, also where ``accession`` is the whole name for want of one."""
        return next(filter(None, self.text.split("|")[1:])) if "|" in self.accession else self.accession

    @property
    def unversioned(self) -> str:
        """The same without its version."""
        return re.sub(_VERSION, "", self.short) if self.kind in _DATABASES else self.short


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
    if kind in _NUMBERS and rest:
        return SeqId(f"{kind}|{rest[0]}", rest[0], gi)
    if kind == "pat" and len(rest) > 2:
        return SeqId("|".join([kind, *rest[:3]]), f"{rest[0]}{rest[1]}_{rest[2]}", gi)
    if rest:
        return SeqId(name, name, gi)
    if archive := _archive_of(name, protein):
        return SeqId(f"{archive}|{name}|", name)
    for pattern, form in _OF_PROTEINS if protein else _OF_NUCLEOTIDES:
        if found := re.fullmatch(pattern, name):
            return SeqId(form.format(name, *found.groups()[:2]), name)
    return SeqId(f"lcl|{name}", name)


def _archive_of(name: str, protein: bool) -> str:
    """The kind of a bare accession of GenBank, ENA or DDBJ; "" for other names."""
    found = re.fullmatch(_OF_ARCHIVES, name)
    if not found or len(found[2]) not in _DIGITS.get(len(found[1]), ()) or protein != (len(found[1]) == 3):
        return ""
    letters = found[1]
    kinds = _PROTEIN_KINDS if protein else _NUCLEOTIDE_KINDS[len(letters)]
    if len(letters) != 2:
        return next((kind for kind, firsts in kinds.items() if letters[0] in firsts), "")
    matches = [kind for kind, pairs in kinds.items() for pair in pairs.split()
               if pair[0] == letters[0] and pair[1] <= letters[1] <= pair[-1]]
    return "" if "" in matches else matches[0] if matches else ""
