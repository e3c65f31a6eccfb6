"""Reads databases that makeblastdb made, of versions 4 and 5: proteins and nucleotides, volumes and alias files.

A volume is three files: an index (``.pin``, ``.nin``) with places in the others, residues (``.psq``, ``.nsq``) and
headers (``.phr``, ``.nhr``). Proteins have a byte for each residue. Nucleotides have two bits for each base, and places
of ambiguous ones apart. Headers are ASN.1 in BER. What else version 5 brings (``.pdb``, ``.pot``, …) serves to look
names up and isn't needed here.

Source: NCBI C++ Toolkit, "BLAST database format" (``corelib`` documents and ``blastdb.asn``); tried against blastdbcmd.
"""

import os
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from seqloom.core.alphabet import NUCLEOTIDE, PROTEIN, Alphabet
from seqloom.core.errors import AlphabetError, InputError
from seqloom.core.sequences import Intervals, SequenceBatch, offsets_of
from seqloom.core.stages import OnBad, Reader

RESIDUES_OF_PROTEINS = "-ABCDEFGHIKLMNPQRSTVWXYZU*OJ"
"""NCBIstdaa: the residue of each byte. The first ends a sequence."""
AMBIGUOUS_BASES = "-ACMGRSVTWYHKDBN"
"""NCBI4na: the base of each value of four bits."""
BASES = "ACGT"
"""NCBI2na."""
DEEPEST = 32
"""Structures inside one another that a header may have."""
ALIASES_DEEP = 8
LARGEST_TAXID = 2**31 - 1
RESTRICTING = ("GILIST", "SEQIDLIST", "TAXIDLIST", "TILIST", "OIDLIST", "FIRST_OID", "LAST_OID")
_LOCAL, _PATENT, _GENERAL, _GI, _PDB, _SWISSPROT = 0, 8, 10, 11, 14, 7
_NUMBERS = {1: "bbs", 2: "bbm"}
_TEXTS = {4: "gb", 5: "emb", 6: "pir", 7: "sp", 9: "ref", 12: "dbj", 13: "prf", 15: "tpg", 16: "tpe", 17: "tpd",
          18: "gpp", 19: "nat"}
"""How ids that have accession, version and name are called in FASTA, by their choice in ``Seq-id``."""


class BlastDatabaseReader(Reader):
    """A BLAST database, by its name without ending."""

    name = "ncbi-blastdb"
    gives = "sequences"

    def sniff(self, head: bytes) -> bool:
        return len(head) > 8 and head[:3] == head[4:7] == b"\0\0\0" and head[3] in (4, 5) and head[7] in (0, 1)

    def claims(self, path: str) -> bool:
        return any(os.path.isfile(f"{path}.{kind}{end}") for kind in "pn" for end in ("in", "al"))

    def read(self, stream: IO[bytes], where: str, alphabet: Alphabet | None, on_bad: OnBad,
             residues: int) -> Iterator[SequenceBatch]:
        raise InputError(f"{where}: the index of a BLAST database; give the database by its name, without ending")

    def read_path(self, path: str, alphabet: Alphabet | None, on_bad: OnBad,
                  residues: int) -> Iterator[SequenceBatch]:
        for volume in _volumes(path, alphabet):
            yield from volume.batches(max(1, residues))


class _Volume:
    """One volume whose index is read; ``base`` is its path without an ending."""

    def __init__(self, base: str, kind: str) -> None:
        self._base, self._kind = base, kind
        self.alphabet = PROTEIN if kind == "p" else NUCLEOTIDE
        path = f"{base}.{kind}in"
        try:
            data = Path(path).read_bytes()
        except OSError as error:
            raise InputError(f"{path}: can't be read: {error.strerror}") from None
        fields = _Fields(data, path)
        version, is_protein = fields.number(), fields.number()
        if version not in (4, 5):
            raise InputError(f"{path}: a BLAST database of version {version} and only 4 and 5 are read; make it anew "
                             "with makeblastdb")
        if bool(is_protein) != (kind == "p"):
            raise _damaged(path, "it says that it holds residues of the other kind")
        if version == 5:
            fields.number()  # of the volume
        fields.text()  # title
        if version == 5:
            fields.text()  # name of the database of names
        fields.text()  # date
        count = fields.number()
        fields.skip(12)  # number of residues, length of the longest sequence
        self._headers, self._sequences = fields.places(count + 1), fields.places(count + 1)
        self._ambiguous = fields.places(count + 1) if kind == "n" else self._sequences[1:]
        for which, end in (self._headers, "hr"), (self._sequences, "sq"):
            file = f"{base}.{kind}{end}"
            size = os.path.getsize(file) if os.path.isfile(file) else -1
            if size < 0:
                raise InputError(f"{file}: there is no such file, and {path} needs it; copy all files of the database")
            if which[0] < 0 or (np.diff(which) < 0).any() or which[-1] > size:
                raise _damaged(file, f"{path} says other places than it has")
        self._count = count

    def batches(self, residues: int) -> Iterator[SequenceBatch]:
        """All sequences, some ``residues`` at a time."""
        in_byte = 1 if self._kind == "p" else 4
        first = 0
        while first < self._count:
            end = self._sequences[first] + -(-residues // in_byte)
            last = max(first + 1, int(np.searchsorted(self._sequences, end, "right")) - 1)
            last = min(last, self._count)
            names, descriptions, taxids = self._names(first, last)
            codes, offsets = (self._proteins if self._kind == "p" else self._nucleotides)(first, last)
            yield SequenceBatch(self.alphabet, codes, offsets, np.arange(first, last, dtype=np.int64),
                                Intervals.empty(), names=names, descriptions=descriptions,
                                taxids=taxids if any(taxids) else ())
            first = last

    def _bytes(self, end: str, places: np.ndarray, first: int, last: int) -> bytes:
        path = f"{self._base}.{self._kind}{end}"
        with open(path, "rb") as stream:
            stream.seek(int(places[first]))
            return stream.read(int(places[last] - places[first]))

    def _proteins(self, first: int, last: int) -> tuple[np.ndarray, np.ndarray]:
        places = self._sequences[first : last + 1] - self._sequences[first]
        raw = np.frombuffer(self._bytes("sq", self._sequences, first, last), np.uint8)
        ends = places[1:] - 1
        if (np.diff(places) < 1).any() or raw[ends].any() or np.count_nonzero(raw == 0) != len(ends):
            raise _damaged(f"{self._base}.psq", "sequences don't end where they should")
        if raw.max(initial=0) >= len(RESIDUES_OF_PROTEINS):
            raise _damaged(f"{self._base}.psq", f"a residue with the value {raw.max()}")
        kept = np.ones(len(raw), bool)
        kept[ends] = False
        return _codes_of(PROTEIN, RESIDUES_OF_PROTEINS)[raw[kept]], offsets_of(np.diff(places) - 1)

    def _nucleotides(self, first: int, last: int) -> tuple[np.ndarray, np.ndarray]:
        path = f"{self._base}.nsq"
        data = self._bytes("sq", self._sequences, first, last)
        raw, start = np.frombuffer(data, np.uint8), int(self._sequences[first])
        table, ambiguous = _codes_of(NUCLEOTIDE, BASES), _codes_of(NUCLEOTIDE, AMBIGUOUS_BASES)
        parts = []
        for n in range(first, last):
            begin, middle, end = (int(p) - start for p in (self._sequences[n], self._ambiguous[n],
                                                           self._sequences[n + 1]))
            if not begin < middle <= end or (end - middle) % 4:
                raise _damaged(path, "sequences don't end where they should")
            packed = raw[begin:middle]
            length = 4 * (len(packed) - 1) + int(packed[-1] & 3)
            codes = table[packed[:, None] >> np.array([6, 4, 2, 0], np.uint8) & 3].ravel()[:length]
            for value, at, count in _stretches(np.frombuffer(data[middle:end], ">u4"), path):
                if at + count > length:
                    raise _damaged(path, "an ambiguous base behind the end of its sequence")
                codes[at : at + count] = ambiguous[value]
            parts.append(codes)
        return np.concatenate(parts), offsets_of([len(part) for part in parts])

    def _names(self, first: int, last: int) -> tuple[list[str], list[str], list[int]]:
        """Names, descriptions as in the FASTA files that BLAST's programs write of a database, and taxonomy ids."""
        path = f"{self._base}.{self._kind}hr"
        data = self._bytes("hr", self._headers, first, last)
        places = (self._headers[first : last + 1] - self._headers[first]).tolist()
        names, descriptions, taxids = [], [], []
        for n in range(last - first):
            try:
                lines = _lines(data[places[n] : places[n + 1]])
            except (ValueError, IndexError, KeyError, TypeError, AttributeError):
                raise _damaged(path, f"the header of sequence {first + n + 1:,} can't be understood") from None
            names.append(lines[0].name)
            descriptions.append(" >".join([lines[0].title, *(f"{line.name} {line.title}" for line in lines[1:])]))
            taxids.append(lines[0].taxid)
        return names, descriptions, taxids


class _Fields:
    """An index file, field by field."""

    def __init__(self, data: bytes, path: str) -> None:
        self._data, self._path, self._at = data, path, 0

    def number(self) -> int:
        return int.from_bytes(self._next(4), "big")

    def text(self) -> str:
        return self._next(self.number()).decode("utf-8", "replace")

    def skip(self, size: int) -> None:
        self._next(size)

    def places(self, count: int) -> np.ndarray:
        """i8[count]."""
        return np.frombuffer(self._next(4 * count), ">u4").astype(np.int64)

    def _next(self, size: int) -> bytes:
        part = self._data[self._at : self._at + size]
        self._at += size
        if len(part) < size:
            raise _damaged(self._path, "it is cut off")
        return part


def _damaged(path: str, why: str) -> InputError:
    return InputError(f"{path}: damaged: {why}; copy the database again, or make it anew with makeblastdb")


def _codes_of(alphabet: Alphabet, residues: str) -> np.ndarray:
    """u8[n], codes of ``residues``."""
    return alphabet.codes[np.frombuffer(residues.encode(), np.uint8)]


def _stretches(words: np.ndarray, path: str) -> Iterator[tuple[int, int, int]]:
    """Value, place and length of each stretch of one ambiguous base.

    Args:
        words: u4[1 + n]: their number, whose highest bit says whether a stretch takes two words or one.
    """
    if not len(words):
        return
    wide, count = int(words[0]) >> 31, int(words[0]) & 0x7FFFFFFF
    if count != len(words) - 1 or (wide and count % 2):
        raise _damaged(path, "ambiguous bases don't end where they should")
    rest = words[1:].tolist()
    if wide:
        for head, at in zip(rest[::2], rest[1::2], strict=True):
            yield head >> 28, at, (head >> 16 & 0xFFF) + 1
    else:
        for word in rest:
            yield word >> 28, word & 0xFFFFFF, (word >> 24 & 0xF) + 1


# ---- volumes of a database


def _volumes(path: str, alphabet: Alphabet | None) -> list[_Volume]:
    kinds = [kind for kind in "pn" if os.path.isfile(f"{path}.{kind}in") or os.path.isfile(f"{path}.{kind}al")]
    if alphabet is not None:
        wanted = "p" if alphabet is PROTEIN else "n"
        if wanted not in kinds:
            other = NUCLEOTIDE if alphabet is PROTEIN else PROTEIN
            raise AlphabetError(f"{path}: a BLAST database of {other.name} sequences, and {alphabet.name} sequences "
                                "are wanted")
        kinds = [wanted]
    if len(kinds) > 1:
        raise InputError(f"{path}: there is a protein and a nucleotide database of this name; say which with --type")
    return [_Volume(base, kinds[0]) for base in dict.fromkeys(_bases(path, kinds[0], 0))]


def _bases(path: str, kind: str, depth: int) -> Iterator[str]:
    """Volumes that ``path`` means, through alias files."""
    alias = f"{path}.{kind}al"
    if not os.path.isfile(alias):
        yield path
        return
    if depth == ALIASES_DEEP:
        raise InputError(f"{alias}: alias files name one another without end")
    members = []
    for line in Path(alias).read_text(encoding="utf-8", errors="replace").splitlines():
        word, _, rest = line.strip().partition(" ")
        if word in RESTRICTING and rest.strip():
            raise InputError(f"{alias}: takes a part of its database ({word}), which is not read; write that part with "
                             f"blastdbcmd -db {path} -entry all, and give the FASTA file")
        if word == "DBLIST":
            try:
                members = shlex.split(rest)
            except ValueError:
                raise InputError(f"{alias}: a quotation mark is missing") from None
    if not members:
        raise InputError(f"{alias}: names no database (DBLIST)")
    for member in members:
        base = os.path.join(os.path.dirname(path), member)
        if base == path or not (os.path.isfile(f"{base}.{kind}in") or os.path.isfile(f"{base}.{kind}al")):
            raise InputError(f"{alias}: names {member}, and there is no {base}.{kind}in; copy all files of the "
                             "database")
        yield from _bases(base, kind, depth + 1)


# ---- headers


class _Line(NamedTuple):
    """One of the definitions that a sequence has."""

    name: str
    title: str
    taxid: int


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


def _lines(data: bytes) -> list[_Line]:
    """The definitions in one header, a ``Blast-def-line-set``."""
    (_, found), _ = _node(memoryview(data), 0, 0)
    lines = []
    for _, line in found.items:
        title = line.text(0)
        name = _name(line[1].items)
        if not name:  # without -parse_seqids the whole line is the title
            name, _, title = title.partition(" ")
        taxid = int(line.text(2) or 0)
        lines.append(_Line(name, title.strip(), taxid if 0 < taxid <= LARGEST_TAXID else 0))
    if not lines:
        raise ValueError
    return lines


def _name(ids: list[tuple[int, Any]]) -> str:
    """The id that BLAST shows: any before a number of NCBI's; empty for the number in the database."""
    shown = ""
    for tag, value in ids:
        choice = tag - 0xA0
        inner = value.items[0][1]
        if choice == _GI:
            shown = shown or f"gi|{inner}"
            continue
        if choice == _LOCAL:
            return str(inner.items[0][1])
        if choice in _NUMBERS:
            return f"{_NUMBERS[choice]}|{inner}"
        if choice == _GENERAL:
            if inner.text(0) == "BL_ORD_ID":
                return ""
            return f"gnl|{inner.text(0)}|{inner[1].items[0][1]}"
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
    return shown


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
