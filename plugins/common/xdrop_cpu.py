"""Semi-gapped X-drop alignment, compiled: the rule of ``xdrop``, to the letter.

Letters are u8 arrays; a pass reads ``letters[start], letters[start + step], …`` so that the left half of a two-sided
extension needs no reversed copy. Working space is handed in: ``best`` and ``column_gap`` i4[width + 2].
"""

import numpy as np
from seqloom.core.jit import kernel

DEAD = -(1 << 30)
RESTRICTION = 10
ROW_ONLY, COLUMN_ONLY, BOTH = 1, 2, 3
CONTINUES_COLUMN_GAP, CONTINUES_ROW_GAP = 4, 8
STEP = 3


@kernel
def first_row(width, opening, gap_extend, x_drop, best, column_gap):
    """Scores and column gaps of row 0; returns the length of the band."""
    best[0], column_gap[0] = 0, -opening
    length, score = 1, -opening
    while length <= width and score >= -x_drop:
        best[length], column_gap[length] = score, score - opening
        length += 1
        score -= gap_extend
    return length


@kernel
def resize_band(best, column_gap, length, last, row_gap, floor, opening, gap_extend, width):
    """Length of the band after a row: cut behind its last kept cell or prolonged, then one dead column."""
    if last < length - 1:
        length = last + 1
    else:
        while row_gap >= floor and length <= width:
            best[length], column_gap[length] = row_gap, row_gap - opening
            length += 1
            row_gap -= gap_extend
    if length <= width:
        best[length] = column_gap[length] = DEAD
        length += 1
    return length


@kernel
def extend_score(rows, row_start, row_step, height, columns, column_start, column_step, width, matrix, gap_open,
                 gap_extend, x_drop, best, column_gap):
    """Score, rows and columns of the best extension from (0, 0)."""
    opening = gap_open + gap_extend
    x_drop = max(x_drop, opening)
    if height == 0 or width == 0:
        return 0, 0, 0
    length = first_row(width, opening, gap_extend, x_drop, best, column_gap)
    top = top_row = top_column = first = 0
    floor = -x_drop
    for row in range(1, height + 1):
        scores = matrix[rows[row_start + (row - 1) * row_step]]
        diagonal = row_gap = DEAD
        last = first
        place = column_start + first * column_step
        for column in range(first, length):
            score = diagonal
            if column < width:
                diagonal = best[column] + scores[columns[place]]
            place += column_step
            from_above = column_gap[column]
            score = max(score, from_above, row_gap)
            if score < floor:
                if column == first:
                    first += 1
                else:
                    best[column] = DEAD
                continue
            last = column
            if score > top:
                top, top_row, top_column, floor = score, row, column, score - x_drop
            best[column] = score
            opened = score - opening
            row_gap = max(row_gap - gap_extend, opened)
            column_gap[column] = max(from_above - gap_extend, opened)
        if first == length:
            break
        length = resize_band(best, column_gap, length, last, row_gap, floor, opening, gap_extend, width)
    return top, top_row, top_column


@kernel
def extend_score_restricted(rows, row_start, row_step, height, columns, column_start, column_step, width, matrix,
                            gap_open, gap_extend, x_drop, best, column_gap):
    """``extend_score`` with gaps in every tenth row and column only."""
    opening = gap_open + gap_extend
    x_drop = max(x_drop, opening)
    if height == 0 or width == 0:
        return 0, 0, 0
    length = first_row(width, opening, gap_extend, x_drop, best, column_gap)
    top = top_row = top_column = first = 0
    floor = -x_drop
    for row in range(1, height + 1):
        scores = matrix[rows[row_start + (row - 1) * row_step]]
        row_may_gap = row % RESTRICTION == 0
        diagonal = row_gap = DEAD
        last = first
        place = column_start + first * column_step
        phase = first % RESTRICTION
        for column in range(first, length):
            score = diagonal
            if column < width:
                diagonal = best[column] + scores[columns[place]]
            place += column_step
            column_may_gap = phase == 0
            phase = 0 if phase == RESTRICTION - 1 else phase + 1
            if column_may_gap:
                score = max(score, column_gap[column])
            if row_may_gap:
                score = max(score, row_gap)
            if score < floor:
                if column == first:
                    first += 1
                else:
                    best[column] = DEAD
                continue
            last = column
            if score > top:
                top, top_row, top_column, floor = score, row, column, score - x_drop
            best[column] = score
            if row_may_gap:
                row_gap = max(score - opening, row_gap - gap_extend)
            if column_may_gap:
                column_gap[column] = max(score - opening, column_gap[column] - gap_extend)
        if first == length:
            break
        prolonging = row_gap if row_may_gap else diagonal
        length = resize_band(best, column_gap, length, last, prolonging, floor, opening, gap_extend, width)
    return top, top_row, top_column


@kernel
def extend_traceback(rows, row_start, row_step, height, columns, column_start, column_step, width, matrix, gap_open,
                     gap_extend, x_drop, best, column_gap, codes, row_first, row_codes, steps):
    """``extend_score`` with the steps of the best path, outermost first: score, rows, columns, number of steps.

    codes: u1[capacity], choices of all cells, row after row. row_first, row_codes: i8[height + 1], first column of a
    row and where its codes begin. steps: u1[height + width]. Score is −1 where ``codes`` is too small.
    """
    opening = gap_open + gap_extend
    x_drop = max(x_drop, opening)
    if height == 0 or width == 0:
        return 0, 0, 0, 0
    length = first_row(width, opening, gap_extend, x_drop, best, column_gap)
    used = length
    if used > len(codes):
        return -1, 0, 0, 0
    codes[:used] = COLUMN_ONLY
    row_first[0] = row_codes[0] = 0
    top = top_row = top_column = first = 0
    floor = -x_drop
    for row in range(1, height + 1):
        scores = matrix[rows[row_start + (row - 1) * row_step]]
        diagonal = row_gap = DEAD
        last = first
        row_first[row], row_codes[row] = first, used
        origin = used - first
        if used + width + 2 - first > len(codes):
            return -1, 0, 0, 0
        place = column_start + first * column_step
        for column in range(first, length):
            score, code = diagonal, BOTH
            if column < width:
                diagonal = best[column] + scores[columns[place]]
            place += column_step
            from_above = column_gap[column]
            if from_above > score:
                score, code = from_above, ROW_ONLY
            if row_gap > score:
                score, code = row_gap, COLUMN_ONLY
            if score < floor:
                if column == first:
                    first += 1
                else:
                    best[column] = DEAD
                codes[origin + column] = code
                continue
            last = column
            if score > top:
                top, top_row, top_column, floor = score, row, column, score - x_drop
            best[column] = score
            opened = score - opening
            row_gap -= gap_extend
            if row_gap >= opened:
                code |= CONTINUES_ROW_GAP
            else:
                row_gap = opened
            from_above -= gap_extend
            if from_above >= opened:
                column_gap[column] = from_above
                code |= CONTINUES_COLUMN_GAP
            else:
                column_gap[column] = opened
            codes[origin + column] = code
        if first == length:
            break
        before = length
        length = resize_band(best, column_gap, length, last, row_gap, floor, opening, gap_extend, width)
        for column in range(before, length):
            codes[origin + column] = COLUMN_ONLY
        used = origin + max(before, length)
    count = 0
    row, column, step = top_row, top_column, BOTH
    while row or column:
        code = codes[row_codes[row] + column - row_first[row]]
        continues = ((step == COLUMN_ONLY and code & CONTINUES_ROW_GAP)
                     or (step == ROW_ONLY and code & CONTINUES_COLUMN_GAP))
        if not continues:
            step = code & STEP
        steps[count] = step
        count += 1
        row -= step != COLUMN_ONLY
        column -= step != ROW_ONLY
    return top, top_row, top_column, count


def workspace(width: int) -> tuple[np.ndarray, np.ndarray]:
    """``best`` and ``column_gap`` for columns of up to ``width`` letters."""
    return np.empty(width + 2, np.int32), np.empty(width + 2, np.int32)
