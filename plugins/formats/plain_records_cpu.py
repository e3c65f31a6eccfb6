"""Records of blocks of FASTA and FASTQ in one pass, where nothing is out of the ordinary.

What is: headers without a name, with blanks in unusual places or other characters than those of ASCII; comments; bytes
that the table of residues doesn't give a code for, blanks among them. The numpy of ``fasta`` and ``fastq`` reads any.
"""

from functools import cache

import numpy as np
from seqloom.core.classes import NamedTuple
from seqloom.core.kernels.jit import inline, kernel
from seqloom.core.kernels.simd import (
    BYTE_LANES,
    LOOKUP_ENTRIES,
    greater_lanes,
    load,
    lookup,
    lookup_tables,
    lowest_bit,
    maximum,
    splat,
    store,
)
from seqloom.core.records import Ragged
from seqloom.core.text_rows import TextRows

_NEWLINE, _FASTA, _FASTQ, _PLUS, _BLANK, _ASCII = 10, ord(">"), ord("@"), ord("+"), 32, 127
_OTHER = 255
"""What the table gives for bytes that are no plain residues."""
_LETTERS, _LETTER = np.uint8(64), np.uint8(31)
"""Where the 32 bytes begin among which upper-case letters are, and the last of these when counted from there."""
_LINES = 4
"""Of a record of FASTQ."""
_LANES = np.uint64(BYTE_LANES)
_ONE = np.uint64(1)
_WRONG = np.uint64(2**64 - 1)


class PlainRecords(NamedTuple):
    """What a block holds; before the first record may be the rest of one of the block before.

    Attributes:
        codes: u8[n] of residues.
        starts: i8[k], residues before each record that begins here.
        lines: i8[k], line ends before it.
        names, descriptions: k of each.
        newlines: line ends of the block.
        taken: bytes of the block.
    """

    codes: np.ndarray
    starts: np.ndarray
    lines: np.ndarray
    names: TextRows
    descriptions: TextRows
    newlines: int
    taken: int


@cache
def _tables(codes: bytes) -> tuple[np.ndarray, np.ndarray]:
    """u8[256]: a code for each byte, and those of ``_LETTERS`` and on as ``lookup`` takes them."""
    table = np.frombuffer(codes, np.uint8)
    return table, lookup_tables(table[None, _LETTERS : _LETTERS + LOOKUP_ENTRIES])


@inline
def _residues(raw, at, size, table, letters, codes, residues):
    """Codes of what stands from ``at`` on up to the first byte that is no plain residue; where that is, and how many
    there are in ``codes`` then."""
    while size >= _LANES and at <= size - _LANES:
        letter = load(raw, at, BYTE_LANES) ^ splat(_LETTERS, BYTE_LANES)
        code = lookup(letters, 0, letter & splat(_LETTER, BYTE_LANES))
        store(codes, residues, code)
        others = greater_lanes(maximum(code, letter), splat(_LETTER, BYTE_LANES))
        count = lowest_bit(others) if others else _LANES
        residues += count
        at += count
        if others:
            break
    while at < size and table[raw[at]] != _OTHER:
        codes[residues] = table[raw[at]]
        residues += _ONE
        at += _ONE
    return at, residues


@inline
def _words(raw, at, size, names, named, descriptions, described):
    """Copy what a header from ``at`` on says; where the header ends, ``_WRONG`` where it isn't plain, and how much is
    in ``names`` and ``descriptions`` then."""
    first = at
    while at < size and raw[at] > _BLANK and raw[at] <= _ASCII:
        names[named] = raw[at]
        named += _ONE
        at += _ONE
    plain = at > first
    if plain and at < size and raw[at] != _NEWLINE:
        parted = raw[at] <= _BLANK
        at += _ONE
        first = at
        while at < size and raw[at] != _NEWLINE and raw[at] <= _ASCII:
            descriptions[described] = raw[at]
            described += _ONE
            at += _ONE
        plain = parted and at > first and raw[first] > _BLANK and raw[at - _ONE] > _BLANK
    return at if plain else _WRONG, named, described


@kernel
def _take_fasta(raw, at_line_start, table, letters, codes, names, descriptions, name_ends, description_ends, starts,
                lines, sizes):
    """Fill all arrays but the first and those of ``_tables``.

    sizes: i8[4], of codes and records, line ends and bytes; −1 first where something isn't plain.
    """
    size = np.uint64(len(raw))
    at = residues = named = described = records = newlines = np.uint64(0)
    sizes[0] = -1
    while at < size:
        if raw[at] == _FASTA and at_line_start:
            starts[records], lines[records] = residues, newlines
            at, named, described = _words(raw, at + _ONE, size, names, named, descriptions, described)
            if at == _WRONG:
                return
            records += _ONE
            name_ends[records], description_ends[records] = named, described
        else:
            at, residues = _residues(raw, at, size, table, letters, codes, residues)
        if at < size:
            if raw[at] != _NEWLINE:
                return
            at += _ONE
            newlines += _ONE
            at_line_start = True
    sizes[0], sizes[1], sizes[2], sizes[3] = residues, records, newlines, size


@kernel
def _take_fastq(raw, table, letters, codes, names, descriptions, name_ends, description_ends, starts, lines, sizes):
    """As ``_take_fasta``, with whole records alone."""
    size = np.uint64(len(raw))
    at = residues = named = described = records = newlines = np.uint64(0)
    sizes[0] = -1
    while at < size:
        begin, before = at, residues
        if raw[at] != _FASTQ:
            return
        at, named, described = _words(raw, at + _ONE, size, names, named, descriptions, described)
        if at < size:
            if raw[at] != _NEWLINE:
                return
            at += _ONE
        first = residues
        at, residues = _residues(raw, at, size, table, letters, codes, residues)
        count = residues - first
        if at == _WRONG or (at < size and (raw[at] != _NEWLINE or count == 0)):
            return
        # Behind it come '+', a line end, as many qualities and a line end.
        end = at + count + np.uint64(4)
        if end > size:
            at, residues = begin, before
            break
        plain = raw[at + _ONE] == _PLUS and raw[at + np.uint64(2)] == _NEWLINE and raw[end - _ONE] == _NEWLINE
        within = False
        for place in range(at + np.uint64(3), end - _ONE):
            within |= raw[place] == _NEWLINE
        if within or not plain:
            return
        starts[records], lines[records] = first, newlines
        records += _ONE
        name_ends[records], description_ends[records] = named, described
        newlines += np.uint64(4)
        at = end
    sizes[0], sizes[1], sizes[2], sizes[3] = residues, records, newlines, at


@kernel
def _count(raw, byte):
    """How many bytes of u8[n] are that one."""
    count = np.int64(0)
    for n in range(len(raw)):
        count += raw[n] == byte
    return count


def count_of(block: bytes, byte: int) -> int:
    """How often that byte is in a block; other threads have the interpreter meanwhile, as they haven't by ``in``."""
    return int(_count(np.frombuffer(block, np.uint8), byte))


def plain_fasta(block: bytes, at_line_start: bool, codes: bytes) -> PlainRecords | None:
    """The records of a block of FASTA, None where something isn't plain."""
    raw = np.frombuffer(block, np.uint8)
    room = _Room(len(block), int(_count(raw, _FASTA)))
    _take_fasta(raw, at_line_start, *_tables(codes), *room.arrays)
    return room.records()


def plain_fastq(block: bytes, codes: bytes) -> PlainRecords | None:
    """The whole records that a block of FASTQ begins with, None where something in them isn't plain."""
    raw = np.frombuffer(block, np.uint8)
    room = _Room(len(block), int(_count(raw, _NEWLINE)) // _LINES)
    _take_fastq(raw, *_tables(codes), *room.arrays)
    return room.records()


class _Room:
    """For what is found in a block of so many bytes with so many records at most, and one that isn't whole.

    No more, as numpy asks the system for large pages for each array from 4 MiB on, which has all threads wait.
    """

    def __init__(self, size: int, records: int) -> None:
        most = records + 2
        self._codes, self._names, self._descriptions = (np.empty(size + 2, np.uint8) for _ in range(3))
        self._name_ends, self._description_ends, self._starts, self._lines, self._sizes = (
            np.empty(count, np.int64) for count in (most, most, most, most, 4))
        self._name_ends[0] = self._description_ends[0] = 0

    @property
    def arrays(self) -> tuple[np.ndarray, ...]:
        """The last arguments of the kernels."""
        return (self._codes, self._names, self._descriptions, self._name_ends, self._description_ends, self._starts,
                self._lines, self._sizes)

    def records(self) -> PlainRecords | None:
        residues, records, newlines, taken = self._sizes.tolist()
        if residues < 0:
            return None
        names, descriptions = (TextRows(Ragged(ends[: records + 1], text[: ends[records]])) for text, ends in (
            (self._names, self._name_ends), (self._descriptions, self._description_ends)))
        return PlainRecords(self._codes[:residues], self._starts[:records], self._lines[:records], names, descriptions,
                            newlines, taken)
