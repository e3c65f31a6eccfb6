"""Semi-gapped X-drop alignment in vectors: the rule of ``xdrop``, with the same answer in every case.

Layout: the cell of a row and a column is kept at the place ``middle + column - row`` of ``best`` (scores) and ``gaps``
(column gaps), so that a diagonal step stays in its lane and the band hardly moves. A row takes the vectors from ``low``
to ``high`` (places of their first lanes), which hold every cell that is alive. Scores are relative to a base that rises
with the best cell: bytes do for usual X-drops (`fits_bytes`), i2 for those of scores with fractions (`fits_words`), i4
for any.

What lets a row be computed at once: the floor, ``x_drop`` below the best cell, only ever rises, and a cell fails only
when its gaps are below it, too. Such a gap never lifts a cell above the floor again. So gaps need no care where cells
fail, and row gaps may be spread over a row before it is known which of its cells do. Only scores of failing cells are
made dead, for the diagonal step. Within a row the floor rises from one new best cell to the next; one row in ten has
any.

Residues are handed in as `both_ways` makes them: the left half of an extension reads the reversed copy.
"""


import numpy as np
from seqloom.core.classes import NamedTuple
from seqloom.core.kernels.jit import inline, kernel
from seqloom.core.kernels.simd import (
    BYTE_LANES,
    LOOKUP_ENTRIES,
    LOOKUP_STRIDE,
    aligned,
    choose_greater,
    greater_lanes,
    highest_bit,
    joined,
    load,
    lookup,
    lookup_tables,
    lowest_bit,
    maximum,
    move_down,
    move_up,
    spread,
    store,
    widened,
)
from seqloom.plugins.common.culling_cpu import QUERY_END, QUERY_START, SCORE, TARGET_END, TARGET_START

LANES = BYTE_LANES
HALF = LANES // 2
PADDING = 4 * LANES
"""Residues on either side of `both_ways`, so that vectors may reach beyond the ends of sequences."""

RESTRICTION = 10
ROW_ONLY, COLUMN_ONLY, BOTH = 1, 2, 3
FORBIDDEN = -32768
CHOICES = 4
"""Sets of lanes that a traceback keeps of a vector: column gap chosen over the diagonal, row gap chosen over both, row
gap continued, column gap continued."""

LEFT, RIGHT = 1, 0
"""Sides of an extension: rows of ``both_ways``, and its passes."""

(ROW_START, HEIGHT, COLUMN_START, WIDTH, TOP, TOP_ROW, TOP_COLUMN, _MIDDLE, _BASE, _ROW, _LOW, _HIGH, _LENGTH, _USED,
 _ALIVE) = range(15)
"""What is known of a pass; the last ones are the kernel's own. ``_MIDDLE`` is the place of diagonal 0."""
STATE = 15

FINE_HIGHEST = 1 << 12
"""Scores of matrices with fractions are lower."""
_ENTRIES = lookup_tables(np.arange(LOOKUP_ENTRIES, dtype=np.int8)[None])
"""Which entry of a table stands at each place of it, as ``lookup`` wants it laid out."""
_TOGETHER = 16
"""Entries that stand side by side in any layout."""

_ONE, _LAST = np.uint64(1), np.uint64(1 << (LANES - 1))
_EDGES = _ONE | _LAST
_APART = LANES // 8
"""Lanes that are left beside a band that is moved to the middle of a vector."""
_NUMBERS = np.arange(LANES, dtype=np.int8)
_MAY_GAP = (np.arange(LANES + RESTRICTION) % RESTRICTION == 0).astype(np.int8)
"""From place ``column % RESTRICTION`` on: which columns may have gaps in restricted mode."""


@kernel
def _begin(best, gaps, middle, width, opening, gap_extend, x_drop):
    """Row 0, one row gap as far as ``x_drop`` allows: places of its first and last vector, number of its cells."""
    lowest = np.iinfo(best.dtype).min
    length, score = 1, -opening
    while length <= width and score >= -x_drop:
        length += 1
        score -= gap_extend
    low = (middle - 1) // LANES * LANES
    high = (middle + length - 1) // LANES * LANES
    best[low : high + LANES] = lowest
    gaps[low : high + 2 * LANES] = lowest
    score = 0
    for column in range(length):
        best[middle + column] = score
        gaps[middle + column] = max(score - opening, lowest)
        score -= gap_extend if column else opening
    if length <= width:
        # The band of row 1 ends here, too: nothing steps behind it.
        best[middle + length - 1] = lowest
    return low, high, length


@inline
def _spread_row_gaps(opened, carried, dead, reach, extend_1, extend_2, extend_3, extend_4, extend_8, extend_12,
                     extend_16, extend_32, extend_48):
    """Row gaps of a vector: opened behind its own cells, or carried out of the vector before it.

    Gaps of up to 4 residues first, then of up to 16 and 64. ``reach`` is the longest that may be alive.
    """
    row_gap = maximum(maximum(move_up(carried, opened, 1), move_up(carried, opened, 2) - extend_1),
                      maximum(move_up(carried, opened, 3) - extend_2, move_up(carried, opened, 4) - extend_3))
    row_gap = maximum(maximum(row_gap, move_up(dead, row_gap, 4) - extend_4),
                      maximum(move_up(dead, row_gap, 8) - extend_8, move_up(dead, row_gap, 12) - extend_12))
    if reach > 32:
        row_gap = maximum(maximum(row_gap, move_up(dead, row_gap, 16) - extend_16),
                          maximum(move_up(dead, row_gap, 32) - extend_32, move_up(dead, row_gap, 48) - extend_48))
    elif reach > 16:
        row_gap = maximum(row_gap, move_up(dead, row_gap, 16) - extend_16)
    return row_gap


@inline
def _risen(better, passes, side, row, place, top, failing, x_drop, best, scores, numbers):
    """The best score when some lanes (``better``) of a row's vector have a new one, and the floor of each lane then."""
    store(best, side * best.shape[1] + place, scores)
    while better:
        lane = np.int64(lowest_bit(better))
        if best[side, place + lane] > top:
            top = np.int64(best[side, place + lane])
            passes[side, TOP_ROW] = row
            passes[side, TOP_COLUMN] = row + place + lane - passes[side, _MIDDLE]
            failing = choose_greater(spread(lane, numbers), numbers, failing, spread(top - x_drop - 1, scores))
        better &= better - _ONE
    return top, failing


@inline
def _multiples(step):
    """0, 1, 2 … times ``step`` in the lanes."""
    none = step - step
    found = move_up(none, step, 1)
    found = found + move_up(none, found, 1)
    found = found + move_up(none, found, 2)
    found = found + move_up(none, found, 4)
    found = found + move_up(none, found, 8)
    found = found + move_up(none, found, 16)
    return found + move_up(none, found, 32)


@inline
def _residue_of(rows, side, start, row):
    """The residue of a row, counted from 0, of a pass that begins at ``start``: see ``extend``."""
    if len(rows) == 2:
        return np.int64(rows[side, start + row])
    place = start - row if side == LEFT else start + row
    return np.int64(rows[0, place >> 2]) >> (6 - 2 * (place & 3)) & 3


@inline
def _narrow_rows(side, rows, columns, passes, tables, x_drop, best, gaps, numbers, dead, forbidden, extend_1, open_cost,
                 opens, reach):
    """Go on with a pass while its band is within a vector.

    Cells needn't go through memory meanwhile, and row gaps spread by maxima alone: they start higher by what they lose
    on the way from lane 0. A row after which the band would be wider, or scores would be too high, is left to the
    caller.
    """
    own, low, row, top = side * best.shape[1], passes[side, _LOW], passes[side, _ROW], passes[side, TOP]
    height, shift, too_high = passes[side, HEIGHT], low - passes[side, _MIDDLE], np.iinfo(best.dtype).max // 2
    end, residues = passes[side, WIDTH] - shift, side * columns.shape[1] + passes[side, COLUMN_START] + shift
    lost = _multiples(extend_1)
    started = lost - opens
    scores, opened = load(best, own + low, LANES), load(gaps, own + low, LANES)
    dead = load(gaps, own + low + LANES, LANES)  # a constant would come out of memory for each move of lanes
    failing, highest = spread(top - x_drop - 1, dead), spread(top, dead)
    alive = _ONE
    while row < height:
        table = _residue_of(rows, side, passes[side, ROW_START], row) * LOOKUP_STRIDE
        pair_scores = lookup(tables, table, load(columns, residues + row, LANES))
        pair_scores = choose_greater(pair_scores, spread(-128, numbers), widened(pair_scores, dead), forbidden)
        from_above = move_down(opened, dead, 1)
        cells = maximum(scores + pair_scores, from_above)
        gap = cells + started
        gap = maximum(maximum(gap, move_up(dead, gap, 1)), maximum(move_up(dead, gap, 2), move_up(dead, gap, 3)))
        gap = maximum(maximum(gap, move_up(dead, gap, 4)), maximum(move_up(dead, gap, 8), move_up(dead, gap, 12)))
        if reach > 16:
            gap = maximum(gap, move_up(dead, gap, 16))
            if reach > 32:
                gap = maximum(gap, move_up(dead, gap, 32))
        cells = maximum(cells, gap - lost)
        if end - row < LANES:
            cells = choose_greater(numbers, spread(max(end - row, 0) - 1, numbers), dead, cells)
        better = greater_lanes(cells, highest)
        new, floor = top, failing
        if better:
            new, floor = _risen(better, passes, side, row + 1, low, top, failing, x_drop, best, cells, numbers)
            if new > too_high:
                break
            failing, highest = spread(new - x_drop - 1, dead), spread(new, dead)
        here = greater_lanes(cells, floor)
        if here & _EDGES:
            break
        alive, top, row = here, new, row + 1
        scores, opened = choose_greater(cells, floor, cells, dead), maximum(from_above - extend_1, cells - open_cost)
        if not alive:
            break
    store(best, own + low, scores)
    store(gaps, own + low, opened)
    passes[side, TOP], passes[side, _ROW] = top, row
    passes[side, _ALIVE] = alive != 0 and row < height


@kernel
def extend(rows, columns, costs, uppers, space, restricted, codes, row_codes):
    """Score, rows and columns of the best extension from (0, 0), of two passes at once.

    The passes have nothing to do with each other. They take turns, a row each, because a row waits for the one before:
    meanwhile the other's can be computed. While a band is within a vector, `_narrow_rows` goes on with it.

    Args:
        rows, columns: u1[2, …], residues of `both_ways`; pass p reads row p of each. Rows may be u1[1, n] as well,
            bases of two bits, the first of four highest, which pass ``LEFT`` reads backwards.
        costs: `Costs`.
        uppers: None, or ``lookup`` tables of the bits of scores above the lowest eight, which ``costs`` have: then the
            workspace mustn't be of bytes.
        space: `Workspace`, of bytes only where `fits_bytes`. Given in its ``passes`` are ``ROW_START`` and
            ``COLUMN_START``, from where a pass reads on, and ``HEIGHT`` and ``WIDTH``, how many residues at most. Found
            are ``TOP``, the score, ``TOP_ROW`` and ``TOP_COLUMN``.
        restricted: whether gaps live in every tenth row and column only.
        codes, row_codes: None, or where to keep the choices, see `walk_back`.

    Returns:
        Whether ``codes`` were large enough.
    """
    matrix, tables, highest, gap_open, gap_extend, x_drop = costs
    best, gaps, passes = space
    opening = gap_open + gap_extend
    x_drop = max(x_drop, opening)
    lowest, most = np.iinfo(best.dtype).min, np.iinfo(best.dtype).max
    like, numbers = load(best, 0, LANES), load(_NUMBERS, 0, LANES)
    dead, forbidden, unprinted = spread(lowest, like), spread(max(FORBIDDEN, lowest), like), spread(-128, numbers)
    open_cost, none = spread(opening, like), spread(0, numbers)
    extend_1, extend_2 = spread(min(gap_extend, most), like), spread(min(2 * gap_extend, most), like)
    extend_3, extend_4 = spread(min(3 * gap_extend, most), like), spread(min(4 * gap_extend, most), like)
    extend_8, extend_12 = spread(min(8 * gap_extend, most), like), spread(min(12 * gap_extend, most), like)
    extend_16, extend_32 = spread(min(16 * gap_extend, most), like), spread(min(32 * gap_extend, most), like)
    extend_48 = spread(min(48 * gap_extend, most), like)
    reach = (x_drop - opening) // gap_extend + 1 if gap_extend else LANES
    lost = (LANES - 1) * gap_extend
    may_be_narrow = (codes is None and uppers is None and not restricted and lost <= most
                     and most // 2 + highest + lost - gap_open <= most)
    opens = spread(gap_open, like)
    for side in range(2):
        for place in (TOP, TOP_ROW, TOP_COLUMN, _BASE, _ROW, _USED):
            passes[side, place] = 0
        # Bands that a vector holds begin in the middle of one, others between two; below is a vector to spare.
        passes[side, _MIDDLE] = (passes[side, HEIGHT] // LANES + 2) * LANES + (HALF if reach <= HALF else 0)
        passes[side, _ALIVE] = passes[side, HEIGHT] > 0 and passes[side, WIDTH] > 0
        if passes[side, _ALIVE]:
            passes[side, _LOW], passes[side, _HIGH], passes[side, _LENGTH] = _begin(
                best[side], gaps[side], passes[side, _MIDDLE], passes[side, WIDTH], opening, gap_extend, x_drop)
    while passes[0, _ALIVE] or passes[1, _ALIVE]:
        for side in range(2):
            if may_be_narrow and passes[side, _ALIVE] and passes[side, _LOW] == passes[side, _HIGH]:
                _narrow_rows(side, rows, columns, passes, tables, x_drop, best, gaps, numbers, dead, forbidden,
                             extend_1, open_cost, opens, reach)
            if not passes[side, _ALIVE]:
                continue
            row, own = passes[side, _ROW] + 1, side * best.shape[1]
            passes[side, _ROW] = row
            width, middle, top = passes[side, WIDTH], passes[side, _MIDDLE], passes[side, TOP]
            low, high, used = passes[side, _LOW], passes[side, _HIGH], passes[side, _USED]
            row_residue = _residue_of(rows, side, passes[side, ROW_START], row - 1)
            table = row_residue * LOOKUP_STRIDE
            residues = side * columns.shape[1] + passes[side, COLUMN_START] + row - 1 - middle
            end = width - row + middle
            spreads = not restricted or row % RESTRICTION == 0
            if codes is not None:
                row_codes[side, row] = used - low // LANES * CHOICES
            carried = dead
            place, stop = low, high
            new_low = new_high = first = last = -1
            into_lower = False
            while place <= stop:
                column_residues = load(columns, residues + place, LANES)
                lowers = lookup(tables, table, column_residues)
                if uppers is None:
                    pair_scores = choose_greater(lowers, unprinted, widened(lowers, like), forbidden)
                else:
                    pair_scores = joined(lowers, lookup(uppers, table, column_residues), like)
                diagonal = load(best, own + place, LANES) + pair_scores
                from_above = move_down(load(gaps, own + place, LANES), load(gaps, own + place + LANES, LANES), 1)
                if restricted:
                    may_gap = load(_MAY_GAP, (place - middle + row) % RESTRICTION, LANES)
                    from_above = choose_greater(may_gap, none, from_above, dead)
                scores = maximum(diagonal, from_above)
                row_gap = dead
                if spreads:
                    row_gap = _spread_row_gaps(scores - open_cost, carried, dead, reach, extend_1, extend_2, extend_3,
                                               extend_4, extend_8, extend_12, extend_16, extend_32, extend_48)
                if codes is not None:
                    if used + CHOICES > codes.shape[1]:
                        return False
                    codes[side, used] = greater_lanes(from_above, diagonal)
                    codes[side, used + 1] = greater_lanes(row_gap, scores)
                scores = maximum(scores, row_gap)
                if place + LANES - 1 > end:
                    scores = choose_greater(numbers, spread(max(end - place, -1), numbers), dead, scores)
                opened = scores - open_cost
                row_gap, from_above = row_gap - extend_1, from_above - extend_1
                if codes is not None:
                    codes[side, used + 2] = ~greater_lanes(opened, row_gap)
                    codes[side, used + 3] = ~greater_lanes(opened, from_above)
                    used += CHOICES
                if spreads:
                    carried = maximum(row_gap, opened)
                store(gaps, own + place, maximum(from_above, opened))
                failing = spread(top - x_drop - 1, like)
                better = greater_lanes(scores, spread(top, like))
                if better:
                    top, failing = _risen(better, passes, side, row, place, top, failing, x_drop, best, scores, numbers)
                alive = greater_lanes(scores, failing)
                store(best, own + place, choose_greater(scores, failing, scores, dead))
                if alive:
                    if new_low < 0:
                        new_low, into_lower = place, alive & _ONE != 0
                        first = place + np.int64(lowest_bit(alive))
                    new_high, last = place, place + np.int64(highest_bit(alive))
                    if place == stop and spreads and alive & _LAST:
                        stop += LANES
                        store(best, own + stop, dead)
                        store(gaps, own + stop + LANES, dead)
                place += LANES
            if restricted and row == 1:
                length = passes[side, _LENGTH]
                if length <= width and best[side, middle + length - 2] > lowest:
                    # The score that is left over behind the last column prolongs the band.
                    column_residue = columns[side, passes[side, COLUMN_START] + length - 1]
                    score = matrix[row_residue, column_residue] - opening - (length - 2) * gap_extend
                    place = middle + length - 1
                    while score >= top - x_drop and length <= width:
                        if place >= stop + LANES:
                            stop += LANES
                            store(best, own + stop, dead)
                            store(gaps, own + stop + LANES, dead)
                        best[side, place], gaps[side, place] = score, max(score - opening, lowest)
                        new_high = place // LANES * LANES
                        score -= gap_extend
                        place += 1
                        length += 1
            passes[side, _ALIVE] = new_low >= 0 and row < passes[side, HEIGHT]
            if new_low >= 0:
                low, high = new_low, new_high
                if high < stop:
                    store(gaps, own + high + LANES, dead)
                if into_lower:
                    low -= LANES
                    store(best, own + low, dead)
                    store(gaps, own + low, dead)
                if top > most // 2:
                    passes[side, _BASE] += top
                    rise = spread(top, like)
                    for place in range(low, high + LANES, LANES):
                        store(best, own + place, load(best, own + place, LANES) - rise)
                        store(gaps, own + place, load(gaps, own + place, LANES) - rise)
                    top = 0
                if may_be_narrow and low < high and last - first < LANES - _APART:
                    # The band isn't wide, it lies across two vectors.
                    low = high = (first + last - LANES) // 2 + 1
                    store(gaps, own + low + LANES, dead)
            passes[side, TOP], passes[side, _LOW], passes[side, _HIGH], passes[side, _USED] = top, low, high, used
    for side in range(2):
        passes[side, TOP] += passes[side, _BASE]
    return True


@kernel
def walk_back(passes, side, codes, row_codes, steps):
    """Number of steps of the best path of a pass of ``extend``, written outermost first.

    codes: u8[2, capacity], ``CHOICES`` of them per vector, row after row. row_codes: i8[2, height + 1], where the codes
    of a row would begin if it had all vectors from place 0 on. steps: u1[height + width].
    """
    row, column = passes[side, TOP_ROW], passes[side, TOP_COLUMN]
    middle = passes[side, _MIDDLE]
    count, step = 0, BOTH
    while row:
        place = middle + column - row
        lane = np.uint64(place % LANES)
        code = row_codes[side, row] + place // LANES * CHOICES
        continues = ((step == COLUMN_ONLY and codes[side, code + 2] >> lane & _ONE)
                     or (step == ROW_ONLY and codes[side, code + 3] >> lane & _ONE))
        if not continues:
            step = (COLUMN_ONLY if codes[side, code + 1] >> lane & _ONE else
                    ROW_ONLY if codes[side, code] >> lane & _ONE else BOTH)
        steps[count] = step
        count += 1
        row -= step != COLUMN_ONLY
        column -= step != ROW_ONLY
    steps[count : count + column] = COLUMN_ONLY
    return count + column


@kernel
def joined_path(passes, row, column, trims, gap_open, gap_extend, codes, row_codes, outwards, steps, hsp):
    """The path of both passes of ``extend``, from (``row``, ``column``) of query and target.

    trims: whether gaps at its ends are left out, and what they cost given back.
    Fills score and ends of ``hsp`` (i8, as in ``culling_cpu``); returns where in ``steps`` the path begins and ends.
    codes, row_codes: as for ``walk_back``. outwards, steps: u1, room for all steps of the right and of both passes.
    """
    # Walking back gives the outermost step first: right for the left half, else the wrong way round.
    size = walk_back(passes, LEFT, codes, row_codes, steps)
    outer = walk_back(passes, RIGHT, codes, row_codes, outwards)
    for step in range(outer):
        steps[size + step] = outwards[outer - 1 - step]
    size += outer
    left, right = passes[LEFT], passes[RIGHT]
    score = left[TOP] + right[TOP]
    query_start, query_end = row - left[TOP_ROW], row + right[TOP_ROW]
    target_start, target_end = column - left[TOP_COLUMN], column + right[TOP_COLUMN]
    begin, end = 0, size
    before = np.int64(BOTH)
    while trims and begin < end and steps[begin] != BOTH:
        score += gap_extend if steps[begin] == before else gap_open + gap_extend
        before = np.int64(steps[begin])
        query_start += before == ROW_ONLY
        target_start += before == COLUMN_ONLY
        begin += 1
    before = np.int64(BOTH)
    while trims and end > begin and steps[end - 1] != BOTH:
        score += gap_extend if steps[end - 1] == before else gap_open + gap_extend
        before = np.int64(steps[end - 1])
        query_end -= before == ROW_ONLY
        target_end -= before == COLUMN_ONLY
        end -= 1
    hsp[SCORE], hsp[QUERY_START], hsp[QUERY_END] = score, query_start, query_end
    hsp[TARGET_START], hsp[TARGET_END] = target_start, target_end
    return begin, end


@kernel
def _pack_both_ways(residues, begins, starts, forwards, backwards):
    """Copy the stretches of ``residues`` that begin at ``begins`` to ``starts``, from either end of what is padded."""
    last = len(backwards) - PADDING - 1
    for stretch in range(len(begins)):
        first, size = starts[stretch], starts[stretch + 1] - starts[stretch]
        for k in range(size):
            residue = residues[begins[stretch] + k]
            forwards[PADDING + first + k] = residue
            backwards[last - first - k] = residue


class BothWays(NamedTuple):
    """Sequences packed for passes in either direction.

    Attributes:
        residues: u1[2, m + 2 * PADDING], the m residues between paddings, as they are and all of it reversed.
        offsets: i8[c + 1], where each sequence begins, paddings not counted.
    """

    residues: np.ndarray
    offsets: np.ndarray


def both_ways(residues: np.ndarray, offsets: np.ndarray, chosen: np.ndarray) -> BothWays:
    """The chosen ones of packed sequences, packed anew for passes in either direction.

    Args:
        residues, offsets: u1[n], i8[k + 1]: sequence i is ``residues[offsets[i]:offsets[i + 1]]``.
        chosen: i8[c], numbers of sequences.
    """
    begins, ends = offsets[:-1][chosen], offsets[1:][chosen]
    starts = np.concatenate([[0], np.cumsum(ends - begins)]).astype(np.int64)
    ways = np.empty((2, starts[-1] + 2 * PADDING), np.uint8)
    ways[:, :PADDING] = ways[:, len(ways[0]) - PADDING :] = 0
    _pack_both_ways(residues, begins, starts, ways[0], ways[1])
    return BothWays(ways, starts)


def score_tables(matrix: np.ndarray) -> np.ndarray:
    """The matrix (i4[a, a], scores above −128, or `FORBIDDEN`) as ``lookup`` tables, one per row residue."""
    rows = np.zeros((len(matrix), LOOKUP_ENTRIES), np.int8)
    rows[:, : len(matrix)] = np.maximum(matrix, -128)
    return lookup_tables(rows)


def fits_bytes(matrix: np.ndarray, gap_open: int, gap_extend: int, x_drop: int) -> bool:
    """Whether scores between the floor and the best cell fit a byte, with room for a step on either side."""
    highest = int(matrix.max())
    return max(x_drop, gap_open + gap_extend) + highest <= 127 and highest < 32


def cells(matrix: np.ndarray, gap_open: int, gap_extend: int, x_drop: int) -> type:
    """The type of integer that cells are kept in."""
    return np.int8 if fits_bytes(matrix, gap_open, gap_extend, x_drop) else np.int32


def fits_words(highest: int, gap_open: int, gap_extend: int, x_drop: int) -> bool:
    """As `fits_bytes`, of 16 bits: for scores of at most ``highest``."""
    return max(x_drop, gap_open + gap_extend) + highest <= 1 << 14


class Costs(NamedTuple):
    """Scores and gap costs of extensions.

    Attributes:
        matrix, tables, highest: i4[a, a], its `score_tables` and its highest score.
        gap_open, gap_extend, x_drop: a gap of k residues costs open + k × extend.
    """

    matrix: np.ndarray
    tables: np.ndarray
    highest: int
    gap_open: int
    gap_extend: int
    x_drop: int

    @classmethod
    def of(cls, matrix: np.ndarray, gap_open: int, gap_extend: int, x_drop: int) -> "Costs":
        return cls(matrix, score_tables(matrix), int(matrix.max()), gap_open, gap_extend, x_drop)


def fine_costs(gap_open: int, gap_extend: int, x_drop: int) -> tuple[Costs, np.ndarray]:
    """Costs with room for a matrix of scores below `FINE_HIGHEST` and its tables, and room for ``uppers``.

    They are set by `set_fine_tables`, again and again.
    """
    matrix = np.zeros((LOOKUP_ENTRIES, LOOKUP_ENTRIES), np.int32)
    lowers, uppers = (lookup_tables(matrix.astype(np.int8)) for _ in range(2))
    return Costs(matrix, lowers, FINE_HIGHEST, gap_open, gap_extend, x_drop), uppers


@kernel
def set_fine_tables(matrix, lowers, uppers):
    """The scores of a matrix (i4[a, a], of 16 bits) as ``lookup`` tables: the lowest eight bits and those above."""
    size = len(matrix)
    for row in range(size):
        for part in range(0, LOOKUP_STRIDE, _TOGETHER):
            first, place = _ENTRIES[part], row * LOOKUP_STRIDE + part
            for k in range(min(_TOGETHER, size - first)):
                score = matrix[row, first + k]
                lowers[place + k], uppers[place + k] = np.int8(score & 255), np.int8(score >> 8)


class Workspace(NamedTuple):
    """What two passes work in.

    Attributes:
        best, gaps: i1 or i4[2, n], rows of cells. passes: i8[2, STATE], the state of each.
    """

    best: np.ndarray
    gaps: np.ndarray
    passes: np.ndarray


def workspace(height: int, width: int, kind: type) -> Workspace:
    """For two passes of up to so many row and column residues, with cells of this type of integer."""
    size = (height // LANES + width // LANES + 8) * LANES
    best, gaps = (aligned(2 * size, kind).reshape(2, size) for _ in range(2))
    return Workspace(best, gaps, np.zeros((2, STATE), np.int64))
