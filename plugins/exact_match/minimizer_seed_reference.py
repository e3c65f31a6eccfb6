"""Maximal exact matches through minimizers that queries and references have in common."""

import math
from typing import ClassVar

import numpy as np
from seqloom.core.context import Context
from seqloom.core.index import Index
from seqloom.core.records import Records, Seeds
from seqloom.core.stages import Footprint, SeedStage, Shape

from .minimizers import KIND, Words, buckets, expected_count, minimizers, table_bits, word_codes, words_of
from .seed_reference import Strand, common_length, in_order, seeds_of, strand_of, strands_together
from .symbols import NEVER

_BLOCK = 64  # residues beyond the ends that may be looked at
_PAIRS = 1 << 18  # compared together


class MinimizerMatches(SeedStage):
    """The maximal exact matches that can count in the mode asked for; with ``maxmatch``, all of them.

    In the other modes a match is left out if the query interval of another one of the volume covers its own and is
    longer, and of matches with the same query interval two stay. That loses nothing: what is left out occurs twice, and
    what it covers is covered by what stays. Two are enough to show that neither is unique.

    Seeds come by query, strand (plus first), start on the strand searched, and place in the volume.
    """

    name: ClassVar[str] = "minimizer-matches"
    cells_per_second: ClassVar[float | None] = math.inf
    takes: ClassVar[tuple[type[Records] | None, ...]] = (None,)
    gives: ClassVar[type[Records]] = Seeds
    reads: ClassVar[tuple[str, ...]] = (KIND,)
    uses: ClassVar[tuple[str, ...]] = ("length", "mode", "frames", "acgt_only")
    gives_order: ClassVar[tuple[str, ...] | None] = ("query",)
    strand_of = staticmethod(strand_of)

    def footprint(self, shape: Shape) -> Footprint:
        symbols = shape.query_residues + shape.queries
        count = expected_count(symbols, shape.options.length if shape.options else 1)
        # The strand; its minimizers, twice while they are joined, or with those that are chosen, and matches.
        return Footprint(host=2 * symbols + 20 * count + 64 * shape.queries)

    def run(self, context: Context, records: Records | None) -> Seeds:
        index, options = context.index(KIND), context.options
        words = words_of(context.queries.alphabet, options.length)
        parts = []
        for frame in options.frames():
            context.cancellation.check()
            strand = self.strand_of(context.queries, frame, options.acgt_only)
            rows = self.matches(context, index, strand, words, options.mode() != "maxmatch")
            parts.append(seeds_of(context, index["starts"], strand, *in_order(rows).T))
        return strands_together(parts)

    def matches(self, context: Context, index: Index, strand: Strand, words: Words, unique: bool) -> np.ndarray:
        """i8[n, 3]: place in the strand, place in the text and length of every match, in any order.

        Args:
            unique: leave out what can't be unique in the text.
        """
        alphabet = context.queries.alphabet
        places, hashes = minimizers(strand.symbols, word_codes(alphabet), words)
        of = buckets(hashes, table_bits(len(index["place"]))[0])
        head = index["head"].astype(np.int64)
        sizes = head[of + 1] - head[of]
        query = np.concatenate([_outside(NEVER), strand.symbols, _outside(NEVER)])
        text = np.concatenate([_outside(NEVER - 1), index["text"], _outside(NEVER - 1)])
        parts = [np.empty((0, 3), np.int64)]
        for block in np.split(np.arange(len(places)), np.flatnonzero(np.diff(np.cumsum(sizes) // _PAIRS)) + 1):
            context.cancellation.check()
            some, first = sizes[block], head[of[block]] - np.cumsum(sizes[block]) + sizes[block]
            ours = np.repeat(places[block], some)
            theirs = index["place"][np.repeat(first, some) + np.arange(some.sum())].astype(np.int64)
            right = common_length(query, ours + _BLOCK, text, theirs + _BLOCK, 0)
            left = common_length(query[::-1], len(query) - _BLOCK - ours, text[::-1], len(text) - _BLOCK - theirs, 0)
            parts.append(np.stack([ours - left, theirs - left, left + right], axis=1))
        rows = np.unique(np.concatenate(parts), axis=0)
        rows = rows[rows[:, 2] >= context.options.length]
        return rows[~hopeless(rows)] if unique else rows


def _outside(symbol: int) -> np.ndarray:
    """Symbols beyond an end; they match nothing."""
    return np.full(_BLOCK, symbol, np.uint8)


def hopeless(rows: np.ndarray) -> np.ndarray:
    """bool[n]: whether a longer match covers the query interval of each, or two earlier ones have the same one.

    Args:
        rows: i8[n, 3] query place, text place and length, sorted by query place and text place.
    """
    end = rows[:, 0] + rows[:, 2]
    order = np.lexsort([rows[:, 1], -end, rows[:, 0]])
    result = np.zeros(len(rows), bool)
    longest, interval, covered, equal = -1, (-1, -1), False, 0
    for n, here in zip(order.tolist(), zip(rows[order, 0].tolist(), end[order].tolist(), strict=True), strict=True):
        if here == interval:
            equal += 1
        else:
            interval, covered, equal = here, here[1] <= longest, 1
        result[n] = covered or equal > 2
        longest = max(longest, here[1])
    return result
