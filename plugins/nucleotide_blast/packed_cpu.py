"""Bases of targets at two bits each, as all stages before the traceback read them, and unpacked where bytes are needed.

The first base of four stands in the highest bits of its byte, and in place of an ambiguity there is the random base
that stands for it. What is unpacked are stretches around hits, in an array that has room for the whole volume: the
system provides memory only where something is written.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from seqloom.core.classes import NamedTuple, dataclass
from seqloom.core.context import Context
from seqloom.core.index import Index
from seqloom.core.kernels.jit import inline, kernel
from seqloom.core.sequences import PackedResidues, SequenceBatch
from seqloom.core.sparse import sparse
from seqloom.plugins.common.grouping import group_parts
from seqloom.plugins.common.xdrop_cpu import PADDING
from seqloom.plugins.nucleotide_blast.index_reference import BASES
from seqloom.plugins.nucleotide_blast.pieces import hard_runs

BITS, RUNS = "bits", "runs"
"""Arrays of the index: u1[⌈n/4⌉ + ``SPARE``], and i8[m, 3] first and last ambiguity of a run, and its code."""
SPARE = PackedResidues.SPARE
"""Bytes behind the last base, so that words may be read from any place on."""
WORD = 29
"""Bases that one fetches with eight bytes, wherever in a byte they begin."""
AT_ONCE = 8 << 20
"""Bases of a volume around whose hits is unpacked at a time, where hits come in the order of targets."""
MOST_PARTS = 256
"""Parts into which that cuts a unit at most."""
_WORTH_A_PART = 1 << 20
"""Bases of queries that may be aligned from which on another part is made of them."""
BESIDE = 64
"""Bases on either side of a stretch that are unpacked besides: vectors are read whole."""


@inline
def base_at(bits, place):
    """The base at a place."""
    return np.int64(bits[place >> 2]) >> (6 - 2 * (place & 3)) & 3


@inline
def four_at(bits, place):
    """The four bases from a place on, as ``packed`` of the reference has them."""
    two = np.int64(bits[place >> 2]) << 8 | np.int64(bits[(place >> 2) + 1])
    return two >> (8 - 2 * (place & 3)) & 0xFF


@kernel
def _pack(residues, bits):
    """Pack u1[n] codes below 4, of others the last two bits."""
    whole = len(residues) // 4
    for at in range(whole):
        bits[at] = ((residues[4 * at] & 3) << 6 | (residues[4 * at + 1] & 3) << 4 | (residues[4 * at + 2] & 3) << 2
                    | residues[4 * at + 3] & 3)
    last = np.int64(0)
    for place in range(4 * whole, len(residues)):
        last |= np.int64(residues[place] & 3) << (6 - 2 * (place & 3))
    if 4 * whole < len(residues):
        bits[whole] = last


@kernel
def _moved(data, first, bits):
    """Move bases to the beginning of a byte that begin with base ``first`` (1 to 3) of the first byte."""
    up = np.uint16(2 * first)
    for at in range(len(bits)):
        bits[at] = (np.uint16(data[at]) << np.uint16(8) | np.uint16(data[at + 1])) << up >> np.uint16(8)


@inline
def reversed_bytes(eight):
    """Bytes of a u8, the last one first."""
    eight = eight >> np.uint64(32) | eight << np.uint64(32)
    twos, ones = np.uint64(0x0000FFFF0000FFFF), np.uint64(0x00FF00FF00FF00FF)
    eight = (eight & twos) << np.uint64(16) | eight >> np.uint64(16) & twos
    return (eight & ones) << np.uint64(8) | eight >> np.uint64(8) & ones


@inline
def bases_from(words, place):
    """The ``WORD`` bases from a place on, in the highest bits of a u8, the first one highest.

    words: of a ``Piece``.
    """
    place = np.uint64(place)
    return reversed_bytes(words[place >> np.uint64(2)]) << ((place & np.uint64(3)) << np.uint64(1))


@inline
def word_from(words, place, width):
    """The u8 word of 1 to ``WORD`` bases from a place on, the first one highest."""
    return bases_from(words, place) >> np.uint64(64 - 2 * width)


@inline
def eight_from(words, place):
    """The eight bases from a place on, one in each byte of a u8 and the first one lowest."""
    eight = bases_from(words, place) >> np.uint64(48)
    twos, ones = np.uint64(0x0000000F0000000F), np.uint64(0x0003000300030003)
    eight = eight >> np.uint64(8) | (eight & np.uint64(0xFF)) << np.uint64(32)
    eight = eight >> np.uint64(4) & twos | (eight & twos) << np.uint64(16)
    return eight >> np.uint64(2) & ones | (eight & ones) << np.uint64(8)


@inline
def put(bits, place, base):
    """Write a base at a place."""
    shift = 6 - 2 * (place & 3)
    bits[place >> 2] = np.int64(bits[place >> 2]) & ~(np.int64(3) << shift) | np.int64(base) << shift


@kernel
def _spread(bits, place, fours):
    """Unpack the bases from a place on to u4[n]: a base in each byte, the first one lowest."""
    first, down = place >> 2, np.uint32(8 - 2 * (place & 3))
    for at in range(len(fours)):
        four = (np.uint32(bits[first + at]) << np.uint32(8) | np.uint32(bits[first + at + 1])) >> down & np.uint32(0xFF)
        fours[at] = (four >> np.uint32(6) | four << np.uint32(4) & np.uint32(0x300)
                     | four << np.uint32(14) & np.uint32(0x30000) | four << np.uint32(24) & np.uint32(0x3000000))


@kernel
def _spread_all(bits, place, spans, fours):
    """Unpack stretches i8[s, 2] of fours, which are counted from a place on, to where they belong in u4 ``fours``."""
    for span in range(len(spans)):
        first, last = spans[span, 0], spans[span, 1]
        _spread(bits, place + 4 * first, fours[first:last])


@kernel
def _copy_both_ways(codes, spans, forwards, backwards):
    """Copy stretches of u1 ``codes`` to where they belong from either end."""
    last = len(backwards) - 1
    for span in range(len(spans)):
        for place in range(spans[span, 0], min(spans[span, 1], len(codes))):
            forwards[place] = codes[place]
            backwards[last - place] = codes[place]


@kernel
def _ambiguous(codes, spans, runs, begin):
    """Write the ambiguities of rising runs into rising stretches of u1 ``codes``, which are from ``begin`` on."""
    run = 0
    for span in range(len(spans)):
        first, last = spans[span, 0], spans[span, 1]
        while run < len(runs) and runs[run, 1] <= first:
            run += 1
        at = run
        while at < len(runs) and runs[at, 0] < last:
            for place in range(max(first, runs[at, 0]), min(last, runs[at, 1])):
                codes[place - begin] = runs[at, 2]
            at += 1


@kernel
def _join(first, last, order, spans):
    """Write ``stretches`` of places, which ``order`` has rise; returns how many."""
    count = 0
    for at in range(len(order)):
        begin, end = max(first[order[at]] - BESIDE, 0) & ~3, last[order[at]] + BESIDE + 3 & ~3
        if count and begin <= spans[count - 1, 1]:
            spans[count - 1, 1] = max(spans[count - 1, 1], end)
        else:
            spans[count, 0], spans[count, 1] = begin, end
            count += 1
    return count


def stretches(first: np.ndarray, last: np.ndarray) -> np.ndarray:
    """i8[s, 2]: half-open stretches, rising and apart from each other, that hold those of i8[n] places and some more.

    All begin and end at multiples of four.
    """
    if not len(first):
        return np.empty((0, 2), np.int64)
    spans = np.empty((len(first), 2), np.int64)
    return spans[: _join(first, last, np.argsort(first), spans)]


def _size(spans: np.ndarray) -> int:
    return int((spans[:, 1] - spans[:, 0]).sum())


class Around(NamedTuple):
    """Codes around hits.

    Attributes:
        codes: u1[n], of places of the volume from ``begin`` on; those of ``spans`` alone are written.
        spans: i8[s, 2], places of the volume, as ``stretches`` gives them.
    """

    codes: np.ndarray
    begin: int
    spans: np.ndarray

    def both_ways(self) -> np.ndarray:
        """The same, as residues of ``xdrop_cpu.BothWays``."""
        width = len(self.codes) + 2 * PADDING
        ways = sparse(2 * width, 2 * _size(self.spans)).reshape(2, width)
        ways[:, :PADDING] = ways[:, width - PADDING :] = 0
        _copy_both_ways(self.codes, self.spans - self.begin, ways[0, PADDING:-PADDING], ways[1, PADDING:-PADDING])
        return ways


def packed_bits(residues: np.ndarray) -> np.ndarray:
    """u1[⌈n/4⌉ + ``SPARE``] of u1[n] codes."""
    bits = np.zeros(-(-len(residues) // 4) + SPARE, np.uint8)
    _pack(residues, bits)
    return bits


def eights(data: np.ndarray) -> np.ndarray:
    """u8[n − 7]: the eight bytes from every place of u1[n] on, the first one lowest; a view."""
    return np.ndarray((len(data) - 7,), np.uint64, data.data, 0, (1,))


ALL = 1 << 62
"""Number of a word that there isn't."""


class Piece(NamedTuple):
    """Neighbouring bases of a volume.

    Attributes:
        bits: u1, four bases each. words: u8, ``eights`` of these.
        begin, size: the base of ``bits`` at which the piece begins, and how many it has.
        behind: number of the first word that isn't to be looked for.
    """

    bits: np.ndarray
    words: np.ndarray
    begin: int
    size: int
    behind: int


class Open(NamedTuple):
    """Where in a piece words may lie: i8[k, 2] stretches, from its first base on, and the place in each of these of the
    first word."""

    stretches: np.ndarray
    first: int


@inline
def stretch_of(piece, opens, number, before):
    """A stretch of a piece in which words may lie as a piece of its own. before: words of the stretches before."""
    low, high = opens.stretches[number, 0], opens.stretches[number, 1]
    return Piece(piece.bits, piece.words, piece.begin + low, high - low, piece.behind - before)


@inline
def words_of(piece, first, width, stride):
    """How many words of a stretch there are that lie so many bases apart, from place ``first`` on."""
    return max(0, (piece.size - first - width) // stride + 1)


@inline
def move_on(found, first, last, bases):
    """Move hits on in their target."""
    for row in range(first, last):
        found[row, 1] += bases


@inline
def in_stretches(scan, given, late, width, stride, turns, piece, opens, found, first, present):
    """Hits of a piece from a word on, by ``scan`` of each of its stretches: rows of place in the strands, place in the
    piece, shift.

    Words are numbered through the stretches. Returns the number of rows, that of equal words, and the word from which
    on there was no room, or −1.

    Args:
        scan: kernel, called with a stretch, ``given``, room, the number of the first word in the stretch, and
            ``present``; returns the same, of this stretch.
        given: tuple of what else it needs.
        late: where in a stretch the first word is.
        width, stride: bases of a word, and from one to the next.
        turns: how often the words of a stretch are gone through.
        piece: ``Piece``. opens: ``Open``.
        found: i4[n, 3], room for rows.
        first: number of the first word to be looked for.
        present: ``room_for_present``.
    """
    count = looked_up = before = 0
    for number in range(len(opens.stretches)):
        stretch = stretch_of(piece, opens, number, before)
        words, begin = turns * words_of(stretch, late, width, stride), max(0, first - before)
        if begin < min(words, stretch.behind):
            more, known, after = scan(stretch, given, found[count:], begin, present)
            move_on(found, count, count + more, stretch.begin - piece.begin)
            count += more
            looked_up += known
            if after >= 0:
                return count, looked_up, before + after
        before += words
    return count, looked_up, -1


class PackedBases(NamedTuple):
    """All bases of a volume: u1 bits, i8[m, 3] runs of ambiguities, how many bases there are, and how many there are in
    the first byte that belong to what is before the volume, 0 to 3."""

    bits: np.ndarray
    runs: np.ndarray
    size: int
    first: int = 0

    @property
    def whole_bytes(self) -> np.ndarray:
        """The bits with the first base at the beginning of a byte: the same array where it is there."""
        if not self.first:
            return self.bits
        bits = np.zeros(-(-self.size // 4) + SPARE, np.uint8)
        _moved(self.bits, self.first, bits[: -(-self.size // 4)])
        return bits

    def piece(self, first: int, last: int, behind: int = ALL) -> Piece:
        """Bases from ``first`` on where they lie."""
        return Piece(self.bits, eights(self.bits), self.first + first, last - first, behind)

    def unpacked(self, first: int, last: int) -> np.ndarray:
        """u1[last − first]: bases from ``first`` on."""
        fours = np.empty(-(-(last - first) // 4), np.uint32)
        _spread(self.bits, self.first + first, fours)
        return fours.view(np.uint8)[: last - first]

    def around(self, spans: np.ndarray, real: bool = False) -> Around:
        """Codes of i8[s, 2] ``stretches``.

        real: with ambiguities instead of the bases that stand for them.
        """
        if not len(spans):
            return Around(np.empty(0, np.uint8), 0, spans)
        begin, end = int(spans[0, 0]), int(min(spans[-1, 1], self.size))
        fours = sparse((end - begin + 3) & ~3, _size(spans)).view(np.uint32)
        _spread_all(self.bits, self.first + begin, np.minimum(spans - begin >> 2, len(fours)), fours)
        codes = fours.view(np.uint8)[: end - begin]
        spans = np.minimum(spans, end)
        if real and len(self.runs):
            _ambiguous(codes, spans, self.runs, begin)
        return Around(codes, begin, spans)


@dataclass(frozen=True)
class PackedIndex(Index):
    """The index of bases, packed; ``bases`` of it are unpacked, all of them, when somebody asks for these."""

    def __getitem__(self, name: str) -> np.ndarray:
        if name != "bases":
            return super().__getitem__(name)
        return self.packed.unpacked(0, self.packed.size)

    @property
    def packed(self) -> PackedBases:
        return PackedBases(self.arrays[BITS], self.arrays[RUNS], int(self.parameters["size"]),
                           int(self.parameters["first"]))


def packed_bases(context: Context) -> PackedBases:
    """The bases of the volume, from whichever index there is."""
    index = context.index(BASES)
    if isinstance(index, PackedIndex):
        return index.packed
    return PackedBases(packed_bits(index["bases"]), np.empty((0, 3), np.int64), len(index["bases"]))


def real_residues(context: Context, spans: np.ndarray) -> Around:
    """Residues of the volume in i8[s, 2] ``stretches``, with their ambiguities."""
    index: Any = context.indexes.get(BASES)
    if isinstance(index, PackedIndex) and not context.targets.loaded:
        return index.packed.around(spans, real=True)
    residues = context.targets.residues
    begin, end = (int(spans[0, 0]), int(min(spans[-1, 1], len(residues)))) if len(spans) else (0, 0)
    return Around(residues[begin:end], begin, np.minimum(spans, end))


def aligned_residues(context: Context, spans: np.ndarray) -> Around:
    """The same as the traceback aligns them: with ``pieces.HARD`` where targets are hard-masked."""
    around = real_residues(context, spans)
    if not len(context.targets.hard):
        return around
    if context.targets.loaded:
        around = around._replace(codes=around.codes.copy())
    _ambiguous(around.codes, around.spans, hard_runs(context.targets), around.begin)
    return around


def parts_by_target(bounds: np.ndarray, threads: int, low: np.ndarray, bases: int) -> list[tuple[int, int]]:
    """``group_parts`` that are cut where the volume is long, so that what is unpacked of it needs little memory.

    Args:
        low: i8[g], where the target or chunk of each group begins in the volume.
        bases: of queries that all rows may align at most, and about as many of targets.
    """
    parts = group_parts(bounds, threads, bases / _WORTH_A_PART)
    if bases < AT_ONCE * len(parts):
        return parts
    changes = np.flatnonzero(np.diff(low // AT_ONCE)) + 1
    if not len(changes) or len(changes) > MOST_PARTS:
        return parts
    cuts = sorted({*changes.tolist(), *(end for part in parts for end in part)})
    return list(pairwise(cuts))


def packed_of(batch: SequenceBatch) -> PackedBases:
    """Of the targets of a volume; at ambiguities there is any base yet."""
    stored = batch.packed()
    if stored is None:
        residues = batch.residues
        return PackedBases(packed_bits(residues), runs_of_codes(residues), len(residues))
    runs = np.stack([stored.starts, stored.starts + stored.lengths, stored.codes], axis=1).astype(np.int64)
    return PackedBases(stored.data, runs, batch.total_residues, stored.first)


@kernel
def _any_ambiguous(codes):
    """All bits of any of the codes."""
    bits = np.uint8(0)
    for place in range(len(codes)):
        bits |= codes[place]
    return bits


def runs_of_codes(codes: np.ndarray) -> np.ndarray:
    """i8[m, 3]: runs of equal codes above 3."""
    if _any_ambiguous(codes) < 4:
        return np.empty((0, 3), np.int64)
    places = np.flatnonzero(codes > 3)
    cut = np.flatnonzero((np.diff(places) != 1) | (np.diff(codes[places].astype(np.int16)) != 0)) + 1
    first = np.append(0, cut)
    last = np.append(cut, len(places)) - 1
    return np.stack([places[first], places[last] + 1, codes[places[first]]], axis=1).astype(np.int64)
