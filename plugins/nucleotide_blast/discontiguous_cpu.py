"""Discontiguous words on the CPU: a window's bases are picked out of packed ones by a mask."""

from __future__ import annotations

import numpy as np
from seqloom.core.context import Context
from seqloom.core.index import Index
from seqloom.core.kernels.jit import inline, kernel
from seqloom.core.kernels.simd import picked_bits
from seqloom.core.records import Records, Seeds
from seqloom.core.sequences import SequenceBatch
from seqloom.core.stages import Footprint, Shape
from seqloom.plugins.nucleotide_blast.discontiguous_reference import (
    TEMPLATE_WORDS,
    DiscontiguousWordHits,
    DiscontiguousWords,
)
from seqloom.plugins.nucleotide_blast.index_cpu import word_index
from seqloom.plugins.nucleotide_blast.packed_cpu import bases_from, in_stretches, words_of
from seqloom.plugins.nucleotide_blast.scan_cpu import AT_ONCE, fetch_places, note_rank, room_for_present
from seqloom.plugins.nucleotide_blast.seed_cpu import Scan, shared_scan_footprint, shared_scan_seconds, word_seeds
from seqloom.plugins.nucleotide_blast.word_table_cpu import bit_of

_GROUP = 8
"""Windows that are made of the same eight bytes: the widest has 21 bases of 29."""


class DiscontiguousWordsCpu(DiscontiguousWords):
    __doc__ = DiscontiguousWords.__doc__
    backend = "cpu"

    def run(self, context: Context, batch: SequenceBatch) -> Index:
        length = context.options.template_length
        masks = masks_of(context.options.templates(), length)
        return word_index(context, batch, TEMPLATE_WORDS, length, length, masks)


def masks_of(templates: list[np.ndarray], length: int) -> np.ndarray:
    """u8[t]: of each template the bits that count of those of a window of ``length`` bases."""
    masks = [sum(3 << 2 * (length - 1 - place) for place in places.tolist()) for places in templates]
    return np.array(masks, np.uint64)


@inline
def _word_of(window, mask, above):
    """The u8 word of a window. above: the number of its template, above the bits of its bases."""
    return picked_bits(window, mask) | above


@kernel
def _present(words, first, count, length, mask, above, bits, present):
    """Note which of the words of ``count`` neighbouring windows from a place on a table has; returns how many."""
    there, down = np.uint64(0), np.uint64(64 - 2 * length)
    number = 0
    while number + _GROUP <= count:
        bases = bases_from(words, first + number)
        for k in range(_GROUP):
            present[there] = number + k
            there += bit_of(bits, _word_of(bases >> (down - np.uint64(2 * k)), mask, above))
        number += _GROUP
    while number < count:
        present[there] = number
        there += bit_of(bits, _word_of(bases_from(words, first + number) >> down, mask, above))
        number += 1
    return np.int64(there)


@inline
def _find_present(piece, begin, count, length, mask, above, table, present):
    """Note which words of ``count`` windows from number ``begin`` on a table has, and their ranks; returns how many."""
    down = np.uint64(64 - 2 * length)
    there = _present(piece.words, piece.begin + begin, count, length, mask, above, table.bits, present[0])
    for at in range(there):
        window = bases_from(piece.words, piece.begin + begin + present[0, at]) >> down
        note_rank(table, _word_of(window, mask, above), present[1], at)
    fetch_places(table, present[1, :there])
    return there


@kernel
def _scan_stretch(piece, given, found, first, present):
    """As ``_scan``, of a stretch. given: its width, masks, length and table.

    The words of one template come after all of another in the table, and so they do here: windows are counted on from
    one template to the next.
    """
    width, masks, length, table = given
    count, places = 0, words_of(piece, 0, length, 1)
    behind = min(places * len(masks), piece.behind)
    while first < behind:
        number, begin = divmod(first, places)
        own, before, mask = min(AT_ONCE, places - begin, behind - first), count, masks[number]
        above = np.uint64(number) << np.uint64(2 * width)
        for at in range(_find_present(piece, begin, own, length, mask, above, table, present)):
            number, rank = present[0, at], present[1, at]
            entry, last = table.starts[rank], table.starts[rank + 1]
            if count + last - entry > len(found):
                return before, before, first
            for place in table.entries[entry:last]:
                found[count, 0], found[count, 1], found[count, 2] = place, begin + number, 0
                count += 1
        first += own
    return count, count, -1


@kernel
def _scan(piece, opens, width, masks, length, table, found, first, present):
    """All pairs of equal template words, from a window on, as hits; see ``in_stretches``.

    Args:
        width: bases of a word.
        masks: of ``masks_of`` for windows of ``length`` bases.
        table: ``WordTable``.
    """
    return in_stretches(_scan_stretch, (width, masks, length, table), 0, length, 1, len(masks), piece, opens, found,
                        first, present)


class DiscontiguousWordHitsCpu(DiscontiguousWordHits):
    __doc__ = DiscontiguousWordHits.__doc__
    backend = "cpu"
    flight = 4
    reads_residues = False

    def footprint(self, shape: Shape) -> Footprint:
        return shared_scan_footprint(shape, *self.word_counts(shape))

    def seconds(self, shape: Shape) -> float:
        return shared_scan_seconds(shape, self.word_counts(shape)[2])

    def run(self, context: Context, records: Records | None) -> Seeds:
        options = context.options
        length, templates = options.template_length, options.templates()
        masks, width = masks_of(templates, length), options.word_size

        def scanner(_: int, stride: int, table: object) -> Scan:
            return lambda piece, opens, table, query, found, first: _scan(
                piece, opens, width, masks, length, table, found, first, room_for_present())

        return word_seeds(context, TEMPLATE_WORDS, length, lambda _: len(templates) * 4**width, scanner, False,
                          len(templates) == 1)
