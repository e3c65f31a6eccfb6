"""X-drop extension against full dynamic programming, a slow table-wise version of its rule, and its own paths."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from seqloom.plugins.common import xdrop
from seqloom.plugins.common.matrices import protein_matrix
from seqloom.plugins.common.xdrop import BOTH, COLUMN_ONLY, ROW_ONLY

NO_DROP = 10**6
LOWEST = -(10**9)
BLOSUM62 = protein_matrix("BLOSUM62").tolist()
residues = st.lists(st.integers(1, 6), max_size=45).map(bytes)
costs = st.tuples(st.integers(0, 12), st.integers(1, 3))


@st.composite
def related(draw):
    """A sequence and a mutated copy, so that alignments are long and have gaps."""
    first = draw(st.lists(st.integers(1, 20), min_size=1, max_size=60))
    second = list(first)
    for _ in range(draw(st.integers(0, 6))):
        place = draw(st.integers(0, len(second)))
        kind = draw(st.sampled_from(["cut", "add", "change"]))
        if kind == "cut":
            del second[place : place + draw(st.integers(1, 4))]
        elif kind == "add":
            second[place:place] = draw(st.lists(st.integers(1, 20), min_size=1, max_size=4))
        elif place < len(second):
            second[place] = draw(st.integers(1, 20))
    return bytes(first), bytes(second)


def gotoh(rows: bytes, columns: bytes, gap_open: int, gap_extend: int) -> int:
    """Best score of any alignment of a prefix with a prefix, by the textbook recurrence."""
    shape = len(rows) + 1, len(columns) + 1
    match, down, right = (np.full(shape, LOWEST) for _ in range(3))
    match[0, 0] = 0
    for i in range(shape[0]):
        for j in range(shape[1]):
            if i and j:
                before = max(match[i - 1, j - 1], down[i - 1, j - 1], right[i - 1, j - 1])
                match[i, j] = before + BLOSUM62[rows[i - 1]][columns[j - 1]]
            if i:
                above = max(match[i - 1, j], right[i - 1, j])
                down[i, j] = max(above - gap_open, down[i - 1, j]) - gap_extend
            if j:
                before = max(match[i, j - 1], down[i, j - 1])
                right[i, j] = max(before - gap_open, right[i, j - 1]) - gap_extend
    return int(match.max())


def by_table(rows: bytes, columns: bytes, gap_open: int, gap_extend: int, x_drop: int, every: int) -> tuple:
    """The rule written down cell by cell in whole tables; gaps only in every `every`-th row and column."""
    if not rows or not columns:
        return 0, 0, 0
    opening, width = gap_open + gap_extend, len(columns)
    x_drop = max(x_drop, opening)
    score = {(0, 0): 0}
    from_above = {0: -opening}  # by column: the gap that runs down into the next row
    for column in range(1, width + 1):
        gap = -opening - (column - 1) * gap_extend
        if gap < -x_drop:
            break
        score[0, column], from_above[column] = gap, gap - opening
    best, end = 0, (0, 0)
    first, size = 0, len(score)
    for row in range(1, len(rows) + 1):
        row_gap, last, failed_first = LOWEST, first, first
        for column in range(first, size):
            value = score.get((row - 1, column - 1), LOWEST) if column > first else LOWEST
            if value > LOWEST:
                value += BLOSUM62[rows[row - 1]][columns[column - 1]]
            if column % every == 0:
                value = max(value, from_above.get(column, LOWEST))
            if row % every == 0:
                value = max(value, row_gap)
            if best - value > x_drop:
                failed_first += column == failed_first
                continue
            last = column
            if value > best:
                best, end = value, (row, column)
            score[row, column] = value
            row_gap = max(value - opening, row_gap - gap_extend)
            if column % every == 0:
                from_above[column] = max(value - opening, from_above.get(column, LOWEST) - gap_extend)
        first = failed_first
        if first == size:
            break
        if last < size - 1:
            for column in range(last + 1, size):
                from_above.pop(column, None)
            size = last + 1
        else:
            if row % every:
                row_gap = score.get((row - 1, size - 1), LOWEST)
                row_gap += BLOSUM62[rows[row - 1]][columns[size - 1]] if size <= width else 0
            while row_gap >= best - x_drop and size <= width:
                score[row, size], from_above[size] = row_gap, row_gap - opening
                row_gap -= gap_extend
                size += 1
        size = min(size + 1, width + 1)
    return best, *end


@given(residues, residues, costs)
def test_without_a_drop_the_score_is_the_optimum(rows, columns, cost):
    found = xdrop.extend_score(rows, columns, BLOSUM62, *cost, NO_DROP)
    assert found.score == gotoh(rows, columns, *cost)


@given(related(), st.integers(0, 60))
def test_full_pass_follows_the_rule(pair, x_drop):
    assert tuple(xdrop.extend_score(*pair, BLOSUM62, 11, 1, x_drop)) == by_table(*pair, 11, 1, x_drop, every=1)


@given(related(), st.integers(0, 60))
def test_restricted_pass_follows_the_rule(pair, x_drop):
    found = xdrop.extend_score_restricted(*pair, BLOSUM62, 9, 2, x_drop)
    assert tuple(found) == by_table(*pair, 9, 2, x_drop, every=xdrop.RESTRICTION)


def path_score(steps: list[int], rows: bytes, columns: bytes, gap_open: int, gap_extend: int) -> int:
    score = i = j = 0
    previous = BOTH
    for step in steps:
        if step == BOTH:
            score += BLOSUM62[rows[i]][columns[j]]
        else:
            score -= gap_extend + (gap_open if step != previous else 0)
        i += step != COLUMN_ONLY
        j += step != ROW_ONLY
        previous = step
    return score


@given(related(), costs, st.integers(0, 80))
def test_traceback_has_the_score_and_ends_of_the_score_only_pass(pair, cost, x_drop):
    rows, columns = pair
    scored = xdrop.extend_score(rows, columns, BLOSUM62, *cost, x_drop)
    traced = xdrop.extend_traceback(rows, columns, BLOSUM62, *cost, x_drop)
    assert tuple(traced[:3]) == tuple(scored)
    assert sum(step != COLUMN_ONLY for step in traced.steps) == traced.rows
    assert sum(step != ROW_ONLY for step in traced.steps) == traced.columns
    # Gap scores that survive in failed cells can make a score better than its path, never worse.
    assert path_score(traced.steps, rows, columns, *cost) <= traced.score


@given(related(), costs)
def test_without_a_drop_the_path_has_the_score(pair, cost):
    rows, columns = pair
    traced = xdrop.extend_traceback(rows, columns, BLOSUM62, *cost, NO_DROP)
    assert path_score(traced.steps, rows, columns, *cost) == traced.score


@given(related(), st.data())
def test_two_sided_extension_joins_its_halves(pair, data):
    rows, columns = pair
    split = data.draw(st.integers(0, min(len(rows), len(columns))))
    score, *ends = xdrop.two_sided(xdrop.extend_score, rows, columns, split, split, BLOSUM62, 11, 1, NO_DROP)
    traced = xdrop.two_sided_traceback(rows, columns, split, split, BLOSUM62, 11, 1, NO_DROP)
    inside = rows[traced.row_start : traced.row_end], columns[traced.column_start : traced.column_end]
    assert traced.score >= score
    assert not traced.steps or BOTH == traced.steps[0] == traced.steps[-1]
    assert path_score(traced.steps, *inside, 11, 1) >= traced.score
    assert ends[0] <= traced.row_start <= traced.row_end <= ends[1]
    assert ends[2] <= traced.column_start <= traced.column_end <= ends[3]


def test_gaps_at_the_ends_are_taken_off_whatever_they_are_in():
    matrix = [[5 if row == column else -9 for column in range(4)] for row in range(4)]
    inner = bytes([1, 2, 1, 1, 2, 1, 2, 2])
    rows, columns = inner + bytes([3] * 5), inner + bytes([0] * 4)
    found = xdrop.two_sided_traceback(rows, columns, len(rows), len(columns), matrix, 2, 1, NO_DROP)
    assert found == (40, 0, 8, 0, 8, [BOTH] * 8)
    found = xdrop.two_sided_traceback(rows[::-1], columns[::-1], 0, 0, matrix, 2, 1, NO_DROP)
    assert found == (40, 5, 13, 4, 12, [BOTH] * 8)
