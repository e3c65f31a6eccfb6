"""Reads the headers of BLAST databases: definitions of sequences, as ASN.1 in BER.

Source: NCBI C++ Toolkit, ``blastdb.asn`` and ``seqloc.asn``.
"""

from typing import Any

from seqloom.core.classes import NamedTuple, dataclass

DEEPEST = 32
"""Structures inside one another that a header may have."""
LARGEST_TAXID = 2**31 - 1
_LOCAL, _PATENT, _GENERAL, _GI, _PDB, _SWISSPROT = 0, 8, 10, 11, 14, 7
_NUMBERS = {1: "bbs", 2: "bbm"}
_TEXTS = {4: "gb", 5: "emb", 6: "pir", 7: "sp", 9: "ref", 12: "dbj", 13: "prf", 15: "tpg", 16: "tpe", 17: "tpd",
          18: "gpp", 19: "nat"}
"""How ids that have accession, version and name are called in FASTA, by their choice in ``Seq-id``."""


class Line(NamedTuple):
    """One of the definitions that a sequence has; ``parsed`` says whether its name was taken apart."""

    name: str
    title: str
    taxid: int
    parsed: bool


@dataclass
class _Node:
    """What stands in a structure, by context tag; ``items`` in their order."""

    items: list[tuple[int, Any]]

    def __getitem__(self, number: int) -> Any:
        for tag, value in self.items:
            if tag == 0xA0 + number:
                return value.items[0][1]
        raise KeyError(number)

    def text(self, number: int) -> str:
        """Of the text or number at ``number``; empty where there is none."""
        try:
            value = self[number]
        except KeyError:
            return ""
        return value if isinstance(value, str) else str(value)


def lines_of_header(data: bytes) -> list[Line]:
    """The definitions in one header, a ``Blast-def-line-set``."""
    (_, found), _ = _node(memoryview(data), 0, 0)
    lines = []
    for _, line in found.items:
        title = line.text(0)
        name = _name(line[1].items)
        parsed = bool(name)
        if not parsed:  # without -parse_seqids the whole line is the title
            name, _, title = title.partition(" ")
        taxid = int(line.text(2) or 0)
        lines.append(Line(name, title.strip(), taxid if 0 < taxid <= LARGEST_TAXID else 0, parsed))
    if not lines:
        raise ValueError
    return lines


def _name(ids: list[tuple[int, Any]]) -> str:
    """The id that BLAST shows, behind NCBI's number if there is one; empty for the number in the database."""
    number = ""
    for tag, value in ids:
        if tag - 0xA0 == _GI:
            number = f"gi|{value.items[0][1]}"
        elif name := _of_kind(tag - 0xA0, value.items[0][1]):
            return f"{number}|{name}" if number else name
    return number


def _of_kind(choice: int, inner: Any) -> str:
    """An id by its choice in ``Seq-id``; empty for the number in the database and for kinds that aren't known."""
    if choice == _LOCAL:
        return str(inner.items[0][1])
    if choice in _NUMBERS:
        return f"{_NUMBERS[choice]}|{inner}"
    if choice == _GENERAL:
        return f"gnl|{inner.text(0)}|{inner[1].items[0][1]}" if inner.text(0) != "BL_ORD_ID" else ""
    if choice == _PDB:
        chain = inner.text(3) or (chr(int(inner.text(1))) if inner.text(1) else "")
        return f"pdb|{inner.text(0)}|{chain}"
    if choice == _PATENT:
        cited = inner[1]
        return f"pat|{cited.text(0)}|{cited[1].items[0][1]}|{inner.text(0)}"
    if choice in _TEXTS:
        kind = "tr" if choice == _SWISSPROT and inner.text(2) == "unreviewed" else _TEXTS[choice]
        version = f".{inner.text(3)}" if inner.text(3) else ""
        return f"{kind}|{inner.text(1)}{version}|{inner.text(0)}"
    return ""


def _node(data: memoryview, at: int, depth: int) -> tuple[tuple[int, Any], int]:
    """Tag and value of what begins at ``at``, and where it ends: a ``_Node``, a number or a text."""
    if depth > DEEPEST:
        raise ValueError
    tag, size = data[at], data[at + 1]
    at += 2
    if size & 0x80 and size != 0x80:
        more = size & 0x7F
        size = int.from_bytes(data[at : at + more], "big")
        at += more
        if size > len(data) - at:
            raise ValueError
    elif size == 0x80:
        size = -1
    if tag & 0x20:
        items: list[tuple[int, Any]] = []
        end = at + size if size >= 0 else len(data)
        while at < end:
            if size < 0 and data[at] == 0 and data[at + 1] == 0:
                return (tag, _Node(items)), at + 2
            item, at = _node(data, at, depth + 1)
            items.append(item)
        if size < 0 or at != end:
            raise ValueError
        return (tag, _Node(items)), at
    if size < 0 or at + size > len(data):
        raise ValueError
    value = bytes(data[at : at + size])
    return (tag, int.from_bytes(value, "big", signed=True) if tag == 2 else value.decode("utf-8", "replace")), at + size
