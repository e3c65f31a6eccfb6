"""Discontiguous words on the CPU: a window's bases are picked out by tables, a few at a time."""

from __future__ import annotations

import numpy as np
from seqloom.core.context import Context
from seqloom.core.index import Index
from seqloom.core.kernels.jit import kernel
from seqloom.core.records import Records, Seeds
from seqloom.core.sequences import SequenceBatch
from seqloom.core.stages import Footprint, Shape
from seqloom.plugins.nucleotide_blast.discontiguous_reference import (
    TEMPLATE_WORDS,
    DiscontiguousWordHits,
    DiscontiguousWords,
)
from seqloom.plugins.nucleotide_blast.index_cpu import word_index
from seqloom.plugins.nucleotide_blast.seed_cpu import (
    Scan,
    is_present,
    rank_of,
    shared_scan_footprint,
    shared_scan_seconds,
    word_seeds,
)

BITS = 11
"""Bits of a window that are looked up at once."""
PARTS = 4


class DiscontiguousWordsCpu(DiscontiguousWords):
    __doc__ = DiscontiguousWords.__doc__
    backend = "cpu"

    def run(self, context: Context, batch: SequenceBatch) -> Index:
        length, templates = context.options.template_length, np.stack(context.options.templates())
        return word_index(context, batch, TEMPLATE_WORDS, length, length, templates)


def extraction_tables(templates: list[np.ndarray], length: int) -> np.ndarray:
    """i4[t, PARTS, 2**BITS]: what each part of a window, lowest bits first, gives to the word of a template."""
    tables = np.zeros((len(templates), PARTS, 1 << BITS), np.int32)
    values = np.arange(1 << BITS)
    for number, places in enumerate(templates):
        tables[number, 0] = number << 2 * len(places)
        for rank, place in enumerate(places[::-1].tolist()):
            for bit in (0, 1):
                at = 2 * (length - 1 - place) + bit
                tables[number, at // BITS] |= ((values >> at % BITS & 1) << (2 * rank + bit)).astype(np.int32)
    return tables


@kernel
def _scan(bases, tables, length, table, found):
    """All pairs of equal template words: rows of place in the strands, place in ``bases``, shift; their number.

    The words of one template come after all of another in the table, and so they do here.
    """
    count, mask = 0, (np.uint64(1) << np.uint64(2 * length)) - np.uint64(1)
    low = np.uint64((1 << BITS) - 1)
    for number in range(len(tables)):
        window = np.uint64(0)
        for end in range(len(bases)):
            window = (window << np.uint64(2) | np.uint64(bases[end])) & mask
            if end < length - 1:
                continue
            word = (tables[number, 0, np.int64(window & low)]
                    | tables[number, 1, np.int64(window >> np.uint64(BITS) & low)]
                    | tables[number, 2, np.int64(window >> np.uint64(2 * BITS) & low)]
                    | tables[number, 3, np.int64(window >> np.uint64(3 * BITS) & low)])
            if not is_present(table.bits, word):
                continue
            rank = rank_of(table.bits, table.ranks, word)
            for entry in range(table.starts[rank], table.starts[rank + 1]):
                if count < len(found):
                    found[count, 0], found[count, 1], found[count, 2] = table.entries[entry], end - length + 1, 0
                count += 1
    return count, count


class DiscontiguousWordHitsCpu(DiscontiguousWordHits):
    __doc__ = DiscontiguousWordHits.__doc__
    backend = "cpu"

    def footprint(self, shape: Shape) -> Footprint:
        return shared_scan_footprint(shape, *self.word_counts(shape))

    def seconds(self, shape: Shape) -> float:
        return shared_scan_seconds(shape)

    def run(self, context: Context, records: Records | None) -> Seeds:
        options = context.options
        length, templates = options.template_length, options.templates()
        tables = extraction_tables(templates, length)
        words = len(templates) * 4**options.word_size

        def scanner(width: int, stride: int) -> Scan:
            return lambda bases, table, query, found: _scan(bases, tables, length, table, found)

        return word_seeds(context, TEMPLATE_WORDS, length, lambda width: words, scanner, False, len(templates) == 1)
