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
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

import numpy as np
from seqloom.core.alphabet import NUCLEOTIDE, PROTEIN, Alphabet
from seqloom.core.errors import AlphabetError, InputError
from seqloom.core.ports import SourceFacts
from seqloom.core.sequences import Intervals, SequenceBatch, offsets_of
from seqloom.core.stages import OnBad, Reader

from .blast_headers import Line, lines_of_header
from .blast_taxa import taxa_beside

RESIDUES_OF_PROTEINS = "-ABCDEFGHIKLMNPQRSTVWXYZU*OJ"
"""NCBIstdaa: the residue of each byte. The first ends a sequence."""
AMBIGUOUS_BASES = "-ACMGRSVTWYHKDBN"
"""NCBI4na: the base of each value of four bits."""
BASES = "ACGT"
"""NCBI2na."""
ALIASES_DEEP = 8
RESTRICTING = ("GILIST", "SEQIDLIST", "TAXIDLIST", "TILIST", "OIDLIST", "FIRST_OID", "LAST_OID")


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


    def facts(self, path: str, alphabet: Alphabet | None) -> SourceFacts:
        volumes = _volumes(path, alphabet)
        alias = f"{path}.{'p' if volumes[0].alphabet is PROTEIN else 'n'}al"
        title = next((line[5:].strip() for line in _words_of(alias) if line.startswith("TITLE ")), volumes[0].title)
        folders = [os.path.dirname(path) or ".", ".", *os.environ.get("BLASTDB", "").split(os.pathsep)]
        return SourceFacts(title, max((v.created for v in volumes if v.created), default=None),
                           any(volume.parses() for volume in volumes), taxa_beside(filter(None, folders)))


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
        self.title = fields.text()
        if version == 5:
            fields.text()  # name of the database of names
        self.created = _moment(fields.text().rstrip("\0"))
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

    def parses(self) -> bool:
        """Whether the name of its first sequence was taken apart."""
        return self._count > 0 and self._headers_of(0, 1)[0][0].parsed

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
        """Names, descriptions, those of several definitions joined by Ctrl-A, and taxonomy ids."""
        names, descriptions, taxids = [], [], []
        for lines in self._headers_of(first, last):
            names.append(lines[0].name)
            descriptions.append("\x01".join([lines[0].title, *(f"{line.name} {line.title}" for line in lines[1:])]))
            taxids.append(lines[0].taxid)
        return names, descriptions, taxids

    def _headers_of(self, first: int, last: int) -> list[list[Line]]:
        """Definitions of sequences first … last − 1."""
        data = self._bytes("hr", self._headers, first, last)
        places = (self._headers[first : last + 1] - self._headers[first]).tolist()
        found = []
        for n in range(last - first):
            try:
                found.append(lines_of_header(data[places[n] : places[n + 1]]))
            except (ValueError, IndexError, KeyError, TypeError, AttributeError):
                raise _damaged(f"{self._base}.{self._kind}hr",
                               f"the header of sequence {first + n + 1:,} can't be understood") from None
        return found


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


def _words_of(alias: str) -> list[str]:
    """Lines of an alias file; none where there is no such file."""
    return Path(alias).read_text(encoding="utf-8", errors="replace").splitlines() if os.path.isfile(alias) else []


def _moment(text: str) -> datetime | None:
    """UTC of a date as makeblastdb writes it, by the clock of this machine; None for any other text."""
    try:
        return datetime.strptime(text, "%b %d, %Y %I:%M %p").astimezone(UTC).replace(tzinfo=None)
    except (ValueError, OverflowError, OSError):
        return None


def _bases(path: str, kind: str, depth: int) -> Iterator[str]:
    """Volumes that ``path`` means, through alias files."""
    alias = f"{path}.{kind}al"
    if not os.path.isfile(alias):
        yield path
        return
    if depth == ALIASES_DEEP:
        raise InputError(f"{alias}: alias files name one another without end")
    members = []
    for line in _words_of(alias):
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
