"""The Smith–Waterman recurrence in vectors: one query against as many interleaved targets as a vector has lanes.

Four columns are taken at a time; their scores against every letter of the query are looked up first, so that a cell is
eight operations on registers, with one more for the best of all:

    h = max(diagonal + score, e, f);  opened = h - first
    e = max(e - further, opened);  f = max(f - further, opened, 0)

Only f has a floor: h then has it too, and e is at least −first. So sums needn't saturate, of which many CPUs do more at
a time than of those that do. What would grow beyond a lane has been at ``Arithmetic.ceiling`` before.

Along the query h and e of the fourth column are kept; f and the diagonals stay in registers. The arithmetic is exact
for a target whose best score is below the ceiling, and at or above it where that isn't so: eight bits take all but the
best targets, sixteen take those, and ``scalar_cpu`` what is left.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from seqloom.core.context import Scoring
from seqloom.core.distinct import ranked
from seqloom.core.index import Index
from seqloom.core.jit import inline, kernel
from seqloom.core.simd import (
    BYTE_LANES,
    LOOKUP_ENTRIES,
    LOOKUP_STRIDE,
    aligned,
    load,
    lookup,
    lookup_tables,
    lowered,
    maximum,
    splat,
    spread,
    store,
    wrapped_difference,
    wrapped_sum,
)
from seqloom.core.threads import in_turn

LANES = BYTE_LANES
STRIDE = LOOKUP_STRIDE
WIDTH = 4
"""Columns taken at a time."""
LOOKED_UP, WIDENED, GATHERED = range(3)
"""How the scores of a column come about: by vector look-up; by that and widening; letter by letter."""
_CHUNK_CELLS = 1 << 32  # between two looks at the cancellation flag: about a tenth of a second


@dataclass(frozen=True)
class Arithmetic:
    """Numbers of one width.

    Attributes:
        dtype: of a lane.
        first, further: costs of the first letter of a gap and of each further one.
        ceiling: scores below it are exact; a score at or above it may be any that is at or above it.
        source: how column scores come about.
    """

    dtype: np.dtype
    first: int
    further: int
    ceiling: int
    source: int


class Profile:
    """A query made ready for the kernels.

    Args:
        query: u8[m] codes.
        scoring: matrix and gap costs.
        target_letters: codes that the targets have; scores of others don't count.

    Attributes:
        rows: i4[letters, 32], score of each different query letter with each code; the padding scores least.
        short_rows: i2, ``rows`` clipped to sixteen bits.
        places: i8[m], row of each query letter.
        tables: i1, ``rows`` for ``lookup``, clipped to eight bits.
        widths: the arithmetics that can be used, the narrowest first.
    """

    def __init__(self, query: np.ndarray, scoring: Scoring, target_letters: np.ndarray) -> None:
        assert scoring.matrix is not None
        letters, places = ranked(query)
        scores = scoring.matrix[letters]
        self.length = len(query)
        self.places = places.astype(np.int64).reshape(-1)
        self.rows = np.full((len(letters), LOOKUP_ENTRIES), -(1 << 15), np.int32)
        self.rows[:, : scores.shape[1]] = scores
        self.short_rows = np.clip(self.rows, -(1 << 15), (1 << 15) - 1).astype(np.int16)
        self.tables = lookup_tables(np.clip(self.rows, -128, 127).astype(np.int8))
        seen = scores[:, target_letters]
        self.widths = _widths(int(seen.min(initial=0)), int(seen.max(initial=0)), scoring)


def _widths(lowest: int, highest: int, scoring: Scoring) -> list[Arithmetic]:
    """Arithmetics for letter scores in lowest…highest, the narrowest first.

    Before a number grows beyond its width it has been at the ceiling. Gap costs and negative scores that are clipped
    make scores too high, never too low, and make no difference while no score is above what they are clipped to.
    """
    widths = []
    first, further = scoring.gap_open + scoring.gap_extend, scoring.gap_extend
    for dtype in (np.dtype(np.int8), np.dtype(np.int16)):
        most = int(np.iinfo(dtype).max)
        if highest > most // 2:
            continue
        # A gap that has cost all there was goes on for a letter before it counts for nothing.
        longer = min(further, most // 2)
        ceiling = most + 1 - max(0, highest)
        if first > most - longer:
            ceiling = min(ceiling, most - longer + 1)
        # An eight-bit look-up gives what sixteen bits need only if it clips nothing.
        source = (LOOKED_UP if dtype == np.int8 else
                  WIDENED if lowest >= -128 and highest <= 127 else GATHERED)
        widths.append(Arithmetic(dtype, min(first, most - longer), longer, ceiling, source))
    return widths


@inline
def cell(diagonal, score, e, f, first, further):
    """One cell: h, and e and f for the cells beside and below it."""
    h = maximum(maximum(wrapped_sum(diagonal, score), f), e)
    opened = wrapped_difference(h, first)
    return h, maximum(wrapped_difference(e, further), opened), maximum(lowered(f, further), opened)


@kernel
def fill_columns(rows, tables, columns, begin, source, narrow, scores):
    """Scores of ``WIDTH`` columns from ``begin`` on against every row: ``scores[(row * WIDTH + column) * LANES …]``."""
    if source == GATHERED:
        for row in range(len(rows)):
            for place in range(WIDTH * LANES):
                scores[row * WIDTH * LANES + place] = rows[row, columns[begin + place]]
        return
    x0 = load(columns, begin, LANES)
    x1 = load(columns, begin + LANES, LANES)
    x2 = load(columns, begin + 2 * LANES, LANES)
    x3 = load(columns, begin + 3 * LANES, LANES)
    for row in range(len(rows)):
        place = row * WIDTH * LANES
        store(narrow, place, lookup(tables, row * STRIDE, x0))
        store(narrow, place + LANES, lookup(tables, row * STRIDE, x1))
        store(narrow, place + 2 * LANES, lookup(tables, row * STRIDE, x2))
        store(narrow, place + 3 * LANES, lookup(tables, row * STRIDE, x3))
    if source == WIDENED:
        for place in range(len(rows) * WIDTH * LANES):
            scores[place] = narrow[place]


@kernel
def _best(rows, places, tables, columns, starts, first_group, last_group, gap_first, gap_further, source, narrow,
          scores, h_row, e_row, best):
    """Best score of each lane of groups first_group…last_group − 1."""
    first = splat(gap_first, LANES)
    further = splat(gap_further, LANES)
    floor = spread(0, first)
    for group in range(first_group, last_group):
        top = floor
        for i in range(len(places)):
            store(h_row, i * LANES, floor)
            store(e_row, i * LANES, floor)
        for begin in range(starts[group], starts[group + 1], WIDTH * LANES):
            fill_columns(rows, tables, columns, begin, source, narrow, scores)
            d0 = d1 = d2 = d3 = f0 = f1 = f2 = f3 = floor
            for i in range(len(places)):
                place = places[i] * (WIDTH * LANES)
                left = load(h_row, i * LANES, LANES)
                e = load(e_row, i * LANES, LANES)
                h0, e, f0 = cell(d0, load(scores, place, LANES), e, f0, first, further)
                h1, e, f1 = cell(d1, load(scores, place + LANES, LANES), e, f1, first, further)
                h2, e, f2 = cell(d2, load(scores, place + 2 * LANES, LANES), e, f2, first, further)
                h3, e, f3 = cell(d3, load(scores, place + 3 * LANES, LANES), e, f3, first, further)
                store(h_row, i * LANES, h3)
                store(e_row, i * LANES, e)
                top = maximum(top, maximum(maximum(h0, h1), maximum(h2, h3)))
                d0, d1, d2, d3 = left, h0, h1, h2
        store(best, group * LANES, top)


class Workspace:
    """Arrays that a kernel works in, for one profile and arithmetic."""

    def __init__(self, profile: Profile, arithmetic: Arithmetic) -> None:
        dtype, size = arithmetic.dtype, len(profile.rows) * WIDTH * LANES
        self.narrow = aligned(size, np.int8)
        self.scores = self.narrow if arithmetic.source == LOOKED_UP else aligned(size, dtype)
        self.h_row = aligned(profile.length * LANES, dtype)
        self.e_row = aligned(profile.length * LANES, dtype)
        self.arguments = (dtype.type(arithmetic.first), dtype.type(arithmetic.further), arithmetic.source, self.narrow,
                          self.scores, self.h_row, self.e_row)


class Workers:
    """Threads of a stage.

    Args:
        threads: how many there may be; with one, everything is done by the caller.
        check: called now and then by all of them; may raise.
    """

    def __init__(self, threads: int = 1, check: Callable[[], None] = lambda: None) -> None:
        self.threads, self.check = threads, check

    def map(self, work: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
        """Results of ``work`` in the order of ``items``."""
        return in_turn(self.threads, work, items)

    def alone(self) -> "Workers":
        """A single one of them."""
        return Workers(1, self.check)


def lane_scores(profile: Profile, arithmetic: Arithmetic, lanes: Index, workers: Workers) -> np.ndarray:
    """i4[k]: best score of the query with each interleaved target, in the order of ``lanes["order"]``."""
    starts, order = lanes["starts"], lanes["order"]
    best = np.empty((len(starts) - 1) * LANES, arithmetic.dtype)

    def score(groups: tuple[int, int]) -> None:
        workers.check()
        _best(profile.short_rows, profile.places, profile.tables, lanes["columns"], starts, *groups,
              *Workspace(profile, arithmetic).arguments, best)

    workers.map(score, _chunks(starts * profile.length, workers.threads))
    return best[: len(order)].astype(np.int32)


def _chunks(cells: np.ndarray, threads: int) -> list[tuple[int, int]]:
    """Groups first…last − 1 of each piece of work; ``cells`` i8[groups + 1] counts the cells before each group."""
    most = min(_CHUNK_CELLS, int(cells[-1]) // (8 * threads)) if threads > 1 else _CHUNK_CELLS
    chunks, first = [], 0
    while first < len(cells) - 1:
        last = max(first + 1, int(np.searchsorted(cells, cells[first] + most, "right")) - 1)
        chunks.append((first, last))
        first = last
    return chunks
