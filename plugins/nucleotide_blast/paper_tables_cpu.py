"""BLAST's two tables of words on the CPU, and scans that look words up in them; see ``paper_tables_reference``."""

from __future__ import annotations

from typing import Any

import numpy as np
from seqloom.core.classes import NamedTuple
from seqloom.core.context import Context
from seqloom.core.index import Index
from seqloom.core.kernels.jit import kernel, made_once
from seqloom.core.kernels.simd import prefetch
from seqloom.core.kernels.unroll import specialise
from seqloom.core.sequences import SequenceBatch
from seqloom.core.stages import Footprint, Shape
from seqloom.plugins.nucleotide_blast.index_cpu import NucleotideWordsCpu
from seqloom.plugins.nucleotide_blast.packed_cpu import in_stretches, word_from, words_of
from seqloom.plugins.nucleotide_blast.paper_tables_reference import (
    LARGEST,
    NOWHERE,
    Arrays,
    ChainedWords,
    SmallWords,
    tables_footprint,
    with_tables,
)
from seqloom.plugins.nucleotide_blast.query_words_cpu import QueryWords
from seqloom.plugins.nucleotide_blast.scan_cpu import AT_ONCE, may_grow, noted, whole_word


class SmallTable(NamedTuple):
    """Of ``small_table``: u8 presence bits, i2[kinds] backbone, i2[m] overflow."""

    bits: np.ndarray
    backbone: np.ndarray
    overflow: np.ndarray


class ChainedTable(NamedTuple):
    """Of ``chained_table``: u8 presence bits, i4[kinds] heads, i4[room + 1] following."""

    bits: np.ndarray
    heads: np.ndarray
    following: np.ndarray


@kernel
def _fill_small(words, places, bits, backbone, counts, overflow):
    """Fill a small table; the size of its overflow array, or −1 where 16 bits aren't enough.

    counts: i4[kinds], zero. overflow: i2, with room for everything.
    """
    for word in words:
        bits[word >> 6] |= np.uint64(1) << np.uint64(word & 63)
        counts[word] += 1
    end = 2
    overflow[0] = overflow[1] = NOWHERE
    for block in range(len(bits)):
        if bits[block] == 0:
            continue
        for word in range(64 * block, min(64 * block + 64, len(backbone))):
            count = counts[word]
            if count > 1:
                if end > LARGEST:
                    return -1
                backbone[word] = -end
                counts[word] = end  # where its next place goes
                end += count + 1
                overflow[end - 1] = NOWHERE
            elif count == 1:
                counts[word] = 0
    for number in range(len(words)):
        word = words[number]
        if counts[word]:
            overflow[counts[word]] = places[number]
            counts[word] += 1
        else:
            backbone[word] = places[number]
    return end


@kernel
def _fill_chained(words, places, bits, heads, following):
    """Fill megablast's table: from the last word on, so that the first place of each comes to stand in front."""
    for number in range(len(words) - 1, -1, -1):
        word, own = words[number], places[number] + 1
        bits[word >> 6] |= np.uint64(1) << np.uint64(word & 63)
        following[own] = heads[word]
        heads[word] = own


def small_table(words: np.ndarray, places: np.ndarray, kinds: int, room: int) -> Arrays | None:
    """As of the reference."""
    if room > LARGEST + 1:
        return None
    bits, backbone = np.zeros((kinds + 63) // 64, np.uint64), np.full(kinds, NOWHERE, np.int16)
    overflow = np.empty(2 + 2 * len(words), np.int16)
    end = _fill_small(words, places, bits, backbone, np.zeros(kinds, np.int32), overflow)
    return {"bits": bits, "backbone": backbone, "overflow": overflow[:end].copy()} if end >= 0 else None


def chained_table(words: np.ndarray, places: np.ndarray, kinds: int, room: int) -> Arrays:
    """As of the reference."""
    bits = np.zeros((kinds + 63) // 64, np.uint64)
    heads, following = np.zeros(kinds, np.int32), np.zeros(room + 1, np.int32)
    _fill_chained(words, places, bits, heads, following)
    return {"bits": bits, "heads": heads, "following": following}


def gathered(index: Index, width: int, begins: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """As of the reference."""
    return QueryWords(width, index).gathered(begins)


class SmallWordsCpu(NucleotideWordsCpu):
    __doc__ = SmallWords.__doc__
    name = SmallWords.name
    table = SmallWords.table

    def footprint(self, shape: Shape) -> Footprint:
        return tables_footprint(shape, self.table, super().footprint(shape))

    def run(self, context: Context, batch: SequenceBatch) -> Index:
        return with_tables(context, super().run(context, batch), self.table, gathered, small_table, chained_table)


class ChainedWordsCpu(SmallWordsCpu):
    __doc__ = ChainedWords.__doc__
    name = ChainedWords.name
    table = ChainedWords.table


CHAINED = False
"""In the template a constant that is filled in."""


def scan_in_table(piece, given, found, first, present):
    """Kernel template: as ``scan_cpu.scan``, in a ``SmallTable``, or a ``ChainedTable`` if CHAINED, of a stretch.

    given: where in it the first word is, and size, width, stride, table and query.
    """
    late, size, width, stride, table, query = given
    count = looked_up = 0
    places = min(words_of(piece, late, width, stride), piece.behind)
    for begin in range(first, places, AT_ONCE):
        before, known, own = count, looked_up, min(AT_ONCE, places - begin)
        first_place = late + begin * stride
        there = noted(piece.words, piece.begin + first_place, own, width, stride, table.bits, present[0])
        for at in range(there):
            word = np.int64(word_from(piece.words, piece.begin + first_place + present[0, at] * stride, width))
            present[1, at] = word
            if CHAINED:
                prefetch(table.heads, word)
            else:
                prefetch(table.backbone, word)
        for at in range(there):
            target = first_place + present[0, at] * stride
            if CHAINED:
                place = np.int64(table.heads[present[1, at]]) - 1
            else:
                place, after = np.int64(table.backbone[present[1, at]]), np.int64(0)
                if place < 0:
                    after = 1 - place
                    place = np.int64(table.overflow[-place])
            while place >= 0:
                if count == len(found):
                    return before, known, begin
                looked_up += 1
                if may_grow(piece, query, place, target, width, size):
                    whole, own_place, opposite, shift = whole_word(piece, query, place, target, width, size)
                    if whole:
                        found[count, 0], found[count, 1], found[count, 2] = own_place, opposite, shift
                        count += 1
                if CHAINED:
                    place = np.int64(table.following[place + 1]) - 1
                elif after:
                    place = np.int64(table.overflow[after])
                    after += 1
                else:
                    place = np.int64(-1)
    return count, looked_up, -1


in_stretch: Any = None
"""In the template the kernel that is filled in."""


def scan_in_tables(piece, opens, size, width, stride, table, query, found, first, present):
    """Kernel template: as ``scan_cpu.scan``, by ``in_stretch`` of each stretch."""
    return in_stretches(in_stretch, (opens.first, size, width, stride, table, query), opens.first, width, stride, 1,
                        piece, opens, found, first, present)


@made_once
def scanner(chained: bool) -> Any:
    """The kernel that scans with tables of a kind."""
    in_stretch = kernel(specialise(scan_in_table, CHAINED=chained))
    return kernel(specialise(scan_in_tables, {"in_stretch": in_stretch}, "chained" if chained else "small"))


def as_tuple(table: Arrays) -> SmallTable | ChainedTable:
    """A table as kernels take it."""
    if "heads" in table:
        return ChainedTable(table["bits"], table["heads"], table["following"])
    return SmallTable(table["bits"], table["backbone"], table["overflow"])
