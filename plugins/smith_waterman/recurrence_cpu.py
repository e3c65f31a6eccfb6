"""The Smith–Waterman recurrence in vectors: one query against as many interleaved targets as a vector has lanes.

Columns are taken by spans of four, one or two at a time; their scores against every residue of the query are looked up
first, so that a cell is eight operations on registers:

    gap = max(f − further, floor);  pair = max(diagonal + score, gap);  h = max(pair, e)
    opened = pair − open;  e = max(e, opened);  f = max(gap, opened)

Numbers of a column are raised by ``further`` over those of the column before, so that e costs nothing to go on; scores
that are looked up do the same for diagonals, and return from the last column of a span to the first of the next. f is
kept as e is, before its ``further`` is taken off, so that both open alike. A gap in the query right behind one in the
target scores what they do the other way round, hence neither opens from e: that one is waited for by one maximum in
each column only. Only ``gap`` has a floor, a score of 0; pair and h then have it too, and no sum needs to saturate, of
which many CPUs do more at a time than of those that do.

The best of all isn't looked for in every cell. Behind a row of a span e is at least each of its h less the opening;
only where it is more than the best score so far less the opening are they looked at.

Without ``RAISED``, where 16 registers don't hold all that, each column subtracts ``further`` from e, the floor is 0 for
all columns, and the best of all takes one operation a cell.

Along the query h and e of the last column are kept; f and the diagonals stay in registers. The arithmetic is exact for
a target whose best score is below ``Arithmetic.ceiling``, and at or above it where that isn't so; what would grow
beyond a lane has been there before. Eight bits take all but the best targets, sixteen take those, and ``scalar_cpu``
what is left.
"""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from seqloom.core.classes import NamedTuple, dataclass
from seqloom.core.context import Scoring
from seqloom.core.distinct import ranked
from seqloom.core.engine.threads import run_tasks
from seqloom.core.index import Index
from seqloom.core.kernels.jit import inline, kernel
from seqloom.core.kernels.simd import (
    ALL_LANES,
    BYTE_LANES,
    HAS_BYTE_PERMUTE,
    LOOKUP_ENTRIES,
    LOOKUP_STRIDE,
    aligned,
    in_place,
    load,
    lookup,
    lookup_tables,
    lowered,
    lowered_to,
    maximum,
    not_greater_lanes,
    splat,
    store,
    wrapped_difference,
    wrapped_sum,
)
from seqloom.plugins.common.lanes import LAID, laid_out

LANES = BYTE_LANES
STRIDE = LOOKUP_STRIDE
SPAN = 4
"""Columns over which numbers rise."""
RAISED = HAS_BYTE_PERMUTE
"""Whether numbers rise from column to column; so it is where there are 32 registers."""
LOOKED_UP, WIDENED, GATHERED = range(3)
"""How the scores of a column come about: by vector look-up; by that and widening; residue by residue."""
_CHUNK_CELLS = 1 << 32  # between two looks at the cancellation flag: about a tenth of a second


@dataclass(frozen=True)
class Arithmetic:
    """Numbers of one width.

    Attributes:
        dtype: of a lane.
        first, further: costs of the first residue of a gap and of each further one.
        lowest: score of a residue below which none need be, and that of padding.
        floor: the number for a score of 0 in the first column of a span.
        ceiling: scores below it are exact; a score at or above it may be any that is at or above it.
        source: how column scores come about.
        spans: numbers of the spans taken at a time; kernels are compiled for how many there are.
    """

    dtype: np.dtype
    first: int
    further: int
    lowest: int
    floor: int
    ceiling: int
    source: int
    spans: tuple[int, ...]


class Profile:
    """A query made ready for the kernels.

    Args:
        query: u8[m] codes.
        scoring: matrix and gap costs.
        target_residues: codes that the targets have; scores of others don't count.

    Attributes:
        rows: i4[residues, 32], score of each different query residue with each code; the padding scores least.
        places: i8[m], row of each query residue.
        widths: the arithmetics that can be used, the narrowest first.
    """

    def __init__(self, query: np.ndarray, scoring: Scoring, target_residues: np.ndarray) -> None:
        assert scoring.matrix is not None
        residues, places = ranked(query)
        scores = scoring.matrix[residues]
        self.length = len(query)
        self.places = places.astype(np.int64).reshape(-1)
        self.rows = np.full((len(residues), LOOKUP_ENTRIES), -(1 << 15), np.int32)
        self.rows[:, : scores.shape[1]] = scores
        seen = scores[:, target_residues]
        lowest, highest = int(seen.min(initial=-1)), int(seen.max(initial=1))
        costs = scoring.gap_open + scoring.gap_extend, scoring.gap_extend
        widths = [_arithmetic(np.dtype(kind), lowest, highest, *costs) for kind in (np.int8, np.int16)]
        self.widths = [width for width in widths if width is not None]


def _arithmetic(dtype: np.dtype, lowest: int, highest: int, first: int, further: int) -> Arithmetic | None:
    """Numbers of a width for residue scores in ``lowest``…``highest`` and gap costs; None if they don't hold a
    residue's.

    A lane holds what is below 0 by a gap or a residue, and what is above the ceiling by a residue in the last column of
    a span. Costs that come to the ceiling leave nothing of any score below it, and needn't be larger.
    """
    least, most = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
    size = most - least + 1

    def below(ceiling: int) -> int:
        return min(ceiling, max(first, -lowest)) if RAISED else -least

    def numbers(ceiling: int) -> int:
        return below(ceiling) + ceiling + highest + RAISED * (SPAN - 1) * min(further, ceiling)

    ceiling = bisect_right(range(size + 1), size, key=numbers) - 1
    if ceiling <= highest:
        return None
    low, longer = min(-lowest, ceiling), min(further, ceiling)
    # An eight-bit look-up gives what sixteen bits need only if it clips nothing.
    narrow = low + RAISED * (SPAN - 1) * longer <= 128 and highest + RAISED * longer <= 127
    source = LOOKED_UP if dtype == np.int8 else WIDENED if narrow else GATHERED
    spans = (0, 1) if dtype == np.int8 and HAS_BYTE_PERMUTE else (0,)
    return Arithmetic(dtype, min(first, ceiling), longer, -low, least + below(ceiling), ceiling, source, spans)


@inline
def numbers_of(zero, gap_first, gap_further):
    """Vectors of an arithmetic: a score of 0 in each column of a span; by how much a column's numbers are raised over
    those of the one before, and over a span; the opening of a gap without its residue, and each residue of it."""
    z0, further = splat(zero, LANES), splat(gap_further, LANES)
    opening = wrapped_difference(splat(gap_first, LANES), further)
    rise = further if RAISED else wrapped_difference(further, further)
    z1 = wrapped_sum(z0, rise)
    z2 = wrapped_sum(z1, rise)
    z3 = wrapped_sum(z2, rise)
    return z0, z1, z2, z3, rise, wrapped_difference(wrapped_sum(z3, rise), z0), opening, further


@inline
def bound_of(top, opening, further):
    """What e behind a row of a span exceeds if one of its h exceeds ``top``."""
    return top - opening if RAISED else top - opening - further - further - further


@inline
def cell(diagonal, score, e, f, floor, opening, further):
    """One cell: h, and e and f for the cells beside and below it."""
    gap = lowered_to(floor, f, further) if RAISED else lowered(f, further)
    e = e if RAISED else wrapped_difference(e, further)
    pair = maximum(wrapped_sum(diagonal, score), gap)
    opened = wrapped_difference(pair, opening)
    return maximum(pair, e), maximum(e, opened), in_place(maximum(gap, opened))


@inline
def cells(d0, d1, d2, d3, scores, place, e, f0, f1, f2, f3, z0, z1, z2, z3, span, opening, further, bound, among):
    """A row of a span: h of its columns, e for the next span, f below it, and those ``among`` the lanes where no h of
    it exceeds what ``bound`` is of."""
    h0, e, f0 = cell(d0, load(scores, place, LANES), e, f0, z0, opening, further)
    h1, e, f1 = cell(d1, load(scores, place + LANES, LANES), e, f1, z1, opening, further)
    h2, e, f2 = cell(d2, load(scores, place + 2 * LANES, LANES), e, f2, z2, opening, further)
    h3, e, f3 = cell(d3, load(scores, place + 3 * LANES, LANES), e, f3, z3, opening, further)
    within = not_greater_lanes(e, bound, among)
    return h0, h1, h2, h3, wrapped_difference(e, span), f0, f1, f2, f3, within


@inline
def highest_of(h0, h1, h2, h3, rise):
    """The greatest h of a row of a span, in the numbers of its first column."""
    h2 = maximum(h2, wrapped_difference(h3, rise))
    h1 = maximum(h1, wrapped_difference(h2, rise))
    return maximum(h0, wrapped_difference(h1, rise))


@kernel
def fill_columns(rows, tables, columns, begin, width, source, narrow, scores):
    """Scores of ``width`` columns from ``begin`` on against every row: ``scores[(row * width + column) * LANES …]``."""
    residues = len(rows) // 2
    if source == GATHERED:
        for row in range(residues):
            for column in range(width):
                raised = row if column % SPAN == 0 else residues + row
                for lane in range(column * LANES, (column + 1) * LANES):
                    scores[row * width * LANES + lane] = rows[raised, columns[begin + lane]]
        return
    for span in range(0, width, SPAN):
        x0 = load(columns, begin + span * LANES, LANES)
        x1 = load(columns, begin + (span + 1) * LANES, LANES)
        x2 = load(columns, begin + (span + 2) * LANES, LANES)
        x3 = load(columns, begin + (span + 3) * LANES, LANES)
        for row in range(residues):
            place, first, other = (row * width + span) * LANES, row * STRIDE, (residues + row) * STRIDE
            store(narrow, place, lookup(tables, first, x0))
            store(narrow, place + LANES, lookup(tables, other, x1))
            store(narrow, place + 2 * LANES, lookup(tables, other, x2))
            store(narrow, place + 3 * LANES, lookup(tables, other, x3))
    if source == WIDENED:
        for place in range(residues * width * LANES):
            scores[place] = narrow[place]


class Workspace(NamedTuple):
    """What kernels read and work in, for one profile and arithmetic.

    Attributes:
        rows, tables, places: scores of the profile's rows, their look-up tables, and the row of every query residue.
        zero, gap_first, gap_further: what stands for 0, and gap costs, as numbers of the arithmetic.
        source, spans: of the arithmetic.
        narrow, scores: scores of some columns in eight bits and as the arithmetic has them.
        h_row, e_row: of the last column.
    """

    rows: np.ndarray
    tables: np.ndarray
    places: np.ndarray
    zero: Any
    gap_first: Any
    gap_further: Any
    source: int
    spans: tuple[int, ...]
    narrow: np.ndarray
    scores: np.ndarray
    h_row: np.ndarray
    e_row: np.ndarray

    @classmethod
    def of(cls, profile: Profile, arithmetic: Arithmetic) -> "Workspace":
        dtype, size = arithmetic.dtype, len(profile.rows) * SPAN * len(arithmetic.spans) * LANES
        rows = np.maximum(profile.rows, arithmetic.lowest)
        # From the last column of a span to the next one's first, and from each column to the one beside it.
        rise = RAISED * arithmetic.further
        raised = np.concatenate([rows - (SPAN - 1) * rise, rows + rise])
        narrow = aligned(size, np.int8)
        scores = narrow if arithmetic.source == LOOKED_UP else aligned(size, dtype)
        h_row, e_row = (aligned(profile.length * LANES, dtype) for _ in range(2))
        return cls(raised.astype(np.int16), lookup_tables(raised.astype(np.int8)), profile.places,
                   dtype.type(arithmetic.floor), dtype.type(arithmetic.first), dtype.type(arithmetic.further),
                   arithmetic.source, arithmetic.spans, narrow, scores, h_row, e_row)


@kernel
def _best(work, columns, starts, first_group, last_group, best):
    """Best score of each lane of groups first_group…last_group − 1."""
    rows, tables, places, zero, gap_first, gap_further, source, spans, narrow, scores, h_row, e_row = work
    width = SPAN * len(spans)
    z0, z1, z2, z3, rise, span, opening, further = numbers_of(zero, gap_first, gap_further)
    for group in range(first_group, last_group):
        top = z0
        bound = bound_of(top, opening, further)
        for i in range(len(places)):
            store(h_row, i * LANES, z3)
            store(e_row, i * LANES, z0)
        for begin in range(starts[group], starts[group + 1], width * LANES):
            fill_columns(rows, tables, columns, begin, width, source, narrow, scores)
            d0, d1, d2, d3, f0, f1, f2, f3 = z3, z0, z1, z2, z0, z1, z2, z3
            d4, d5, d6, d7, f4, f5, f6, f7 = z3, z0, z1, z2, z0, z1, z2, z3
            for i in range(len(places)):
                place = places[i] * (width * LANES)
                left = load(h_row, i * LANES, LANES)
                e = load(e_row, i * LANES, LANES)
                h0, h1, h2, h3, e, f0, f1, f2, f3, within = cells(d0, d1, d2, d3, scores, place, e, f0, f1, f2, f3, z0,
                                                                  z1, z2, z3, span, opening, further, bound, ALL_LANES)
                d0, d1, d2, d3, last = left, h0, h1, h2, h3
                if len(spans) == 2:
                    h4, h5, h6, h7, e, f4, f5, f6, f7, within = cells(
                        d4, d5, d6, d7, scores, place + SPAN * LANES, e, f4, f5, f6, f7, z0, z1, z2, z3, span, opening,
                        further, bound, within)
                    d4, d5, d6, d7, last = h3, h4, h5, h6, h7
                store(h_row, i * LANES, last)
                store(e_row, i * LANES, e)
                if not RAISED:
                    top = maximum(top, highest_of(d1, d2, d3, h3, rise))
                elif within != ALL_LANES:
                    top = maximum(top, highest_of(d1, d2, d3, h3, rise))
                    if len(spans) == 2:
                        top = maximum(top, highest_of(d5, d6, d7, last, rise))
                    bound = bound_of(top, opening, further)
        store(best, group * LANES, top)


class Workers:
    """Threads of a stage.

    Args:
        threads: how many there may be; with one, everything is done by the caller.
        check: called now and then by all of them; may raise.
        did: informed of the cells that one of them has been through.
    """

    def __init__(self, threads: int = 1, check: Callable[[], None] = lambda: None,
                 did: Callable[[int], None] = lambda cells: None) -> None:
        self.threads, self.check, self.did = threads, check, did

    def map(self, work: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
        """Results of ``work`` in the order of ``items``."""
        return run_tasks(self.threads, work, items)

    def alone(self) -> "Workers":
        """A single one of them."""
        return Workers(1, self.check, self.did)


def lane_scores(profile: Profile, arithmetic: Arithmetic, lanes: Index, workers: Workers) -> np.ndarray:
    """i4[k]: best score of the query with each interleaved target, in the order of ``lanes["order"]``."""
    starts, order = lanes["starts"], lanes["order"]
    best = np.empty((len(starts) - 1) * LANES, arithmetic.dtype)

    def score(groups: tuple[int, int]) -> None:
        workers.check()
        first, last = groups
        columns, begins = laid_out(lanes, first, last)
        _best(Workspace.of(profile, arithmetic), columns, begins, 0, last - first, best[first * LANES : last * LANES])
        workers.did(LANES * profile.length * int(begins[-1] - begins[0]))

    most = _CHUNK_CELLS if "columns" in lanes.arrays else min(_CHUNK_CELLS, LAID * profile.length)
    workers.map(score, _chunks(starts * profile.length, workers.threads, most))
    return best[: len(order)].astype(np.int32) - arithmetic.floor


def _chunks(cells: np.ndarray, threads: int, most: int) -> list[tuple[int, int]]:
    """Groups first…last − 1 of each piece of work, of at most so many cells; ``cells`` i8[groups + 1] counts the cells
    before each group."""
    most = min(most, int(cells[-1]) // (8 * threads)) if threads > 1 else most
    chunks, first = [], 0
    while first < len(cells) - 1:
        last = max(first + 1, int(np.searchsorted(cells, cells[first] + most, "right")) - 1)
        chunks.append((first, last))
        first = last
    return chunks
