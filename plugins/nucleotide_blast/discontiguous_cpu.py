"""Discontiguous words on the CPU: a window's bases are picked out by shifts and masks, many windows at a time."""

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
from seqloom.plugins.nucleotide_blast.greedy_cpu import sequence
from seqloom.plugins.nucleotide_blast.index_cpu import word_index
from seqloom.plugins.nucleotide_blast.seed_cpu import (
    AT_ONCE,
    Scan,
    present_words,
    rank_of,
    rolled_words,
    scratch,
    shared_scan_footprint,
    shared_scan_seconds,
    word_seeds,
)


class DiscontiguousWordsCpu(DiscontiguousWords):
    __doc__ = DiscontiguousWords.__doc__
    backend = "cpu"

    def run(self, context: Context, batch: SequenceBatch) -> Index:
        length, templates = context.options.template_length, np.stack(context.options.templates())
        return word_index(context, batch, TEMPLATE_WORDS, length, length, templates)


def extraction_runs(templates: list[np.ndarray], length: int) -> np.ndarray:
    """i8[t, runs, 2]: shift and mask that bring each run of neighbouring places of a window to its bits of the word.

    Templates that have fewer runs than others have empty masks behind theirs.
    """
    runs = [np.split(places, np.flatnonzero(np.diff(places) != 1) + 1) for places in templates]
    table = np.zeros((len(templates), max(map(len, runs)), 2), np.int64)
    for number, places in enumerate(templates):
        behind = len(places)
        for at, run in enumerate(runs[number]):
            behind -= len(run)
            table[number, at] = 2 * (length - 1 - run[-1] - behind), (4 ** len(run) - 1) << 2 * behind
    return table


@kernel
def _template_words(windows, count, runs, number, words):
    """The words of a template of the first ``count`` windows."""
    for at in range(count):
        words[at] = number
    for run in range(len(runs)):
        shift, mask = runs[run, 0], runs[run, 1]
        for at in range(count):
            words[at] |= windows[at] >> shift & mask


@kernel
def _scan(piece, size, width, runs, length, table, found, first, windows, words, present):
    """All pairs of equal template words, from a window on: rows of place in the strands, place in the piece, shift.

    The words of one template come after all of another in the table, and so they do here: windows are counted on from
    one template to the next.

    Args:
        piece: ``Sequence`` of ``size`` bases.
        width: bases of a word.
        runs: of ``extraction_runs`` for windows of ``length`` bases.
        windows, words, present: ``scratch``.
    """
    count, places = 0, max(0, size - length + 1)
    while first < places * len(runs):
        number, begin = divmod(first, places)
        own, before = min(AT_ONCE, places - begin), count
        rolled_words(piece, begin, own, length, 1, windows)
        _template_words(windows, own, runs[number], np.int64(number) << 2 * width, words)
        for at in range(present_words(table.bits, words, own, present)):
            rank = rank_of(table.bits, table.ranks, words[present[at]])
            entry, last = table.starts[rank], table.starts[rank + 1]
            if count + last - entry > len(found):
                return before, before, first
            for place in table.entries[entry:last]:
                found[count, 0], found[count, 1], found[count, 2] = place, begin + present[at], 0
                count += 1
        first += own
    return count, count, -1


class DiscontiguousWordHitsCpu(DiscontiguousWordHits):
    __doc__ = DiscontiguousWordHits.__doc__
    backend = "cpu"
    reads_residues = False

    def footprint(self, shape: Shape) -> Footprint:
        return shared_scan_footprint(shape, *self.word_counts(shape))

    def seconds(self, shape: Shape) -> float:
        return shared_scan_seconds(shape)

    def run(self, context: Context, records: Records | None) -> Seeds:
        options = context.options
        length, templates = options.template_length, options.templates()
        runs = extraction_runs(templates, length)
        width = options.word_size

        def scanner(_: int, stride: int) -> Scan:
            return lambda bases, table, query, found, first: _scan(sequence(bases), len(bases), width, runs, length,
                                                                   table, found, first, *scratch(2))

        return word_seeds(context, TEMPLATE_WORDS, length, lambda _: len(templates) * 4**width, scanner, False,
                          len(templates) == 1)
