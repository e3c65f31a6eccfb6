"""Semi-gapped X-drop alignment: the affine-gap extension of BLAST, score only, restricted, and with traceback.

Every function here aligns *from the first residues on*: the alignment starts at (0, 0) and may end anywhere. A
two-sided extension runs one pass on the reversed residues before the anchor and one on the residues after it
(`two_sided`). One side supplies the rows of the dynamic programme and the other its columns; which is query and which
is target is up to the family (blastp: rows = query; blastn: rows = target in its preliminary stage), and may decide
between ties.

Residues are `bytes` of alphabet codes; a matrix is a list of lists of ints, `matrix[row_residue][column_residue]`. A
gap of length k costs `gap_open + k * gap_extend`. Scores, gap costs and `x_drop` are raw score units.

The rule, which decides the answer wherever the X-drop cuts (BLAST+ 2.12; Zhang, Berman & Miller 1998):

- A cell is kept when it is no more than `x_drop` below the best cell of the pass so far, this row included.
- A cell's score is the diagonal one, replaced by the column gap if that is strictly larger, then by the row gap if that
  is strictly larger. The best cell is replaced on strictly greater only: row by row, left to right.
- Only kept cells update the gap scores. A failing cell leaves its column gap as it is, *without* the cost of one more
  residue, and doesn't lengthen the row gap that runs through it. So a score may be better than its path: peers do this.
- Failing cells at the left end leave the band; after a row the band ends one behind the last kept cell, or, when that
  is the last cell, is prolonged by the row gap while this stays within `x_drop`; then one dead column is opened.

"Column gap": residues of the rows against nothing. "Row gap": residues of the columns against nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from seqloom.core.classes import NamedTuple

Matrix = Sequence[Sequence[int]]

DEAD = -(1 << 30)
RESTRICTION = 10

ROW_ONLY, COLUMN_ONLY, BOTH = 1, 2, 3
"""Steps of a path: a row residue against a gap, a column residue against a gap, two residues against each other."""

_CONTINUES_COLUMN_GAP, _CONTINUES_ROW_GAP = 4, 8
_STEP = 3


class Extension(NamedTuple):
    """Best end of a one-sided pass: its score and how many row and column residues it takes in."""

    score: int
    rows: int
    columns: int


class TracedExtension(NamedTuple):
    """A one-sided pass with its path: `ROW_ONLY`, `COLUMN_ONLY` or `BOTH` per alignment column, outwards."""

    score: int
    rows: int
    columns: int
    steps: list[int]


def _first_row(width: int, opening: int, gap_extend: int, x_drop: int) -> tuple[list[int], list[int]]:
    """Scores and column gaps of row 0: the start, then one row gap as far as `x_drop` allows."""
    best, column_gap = [0], [-opening]
    score = -opening
    while len(best) <= width and score >= -x_drop:
        best.append(score)
        column_gap.append(score - opening)
        score -= gap_extend
    return best, column_gap


def _resize_band(
    best: list[int],
    column_gap: list[int],
    last: int,
    row_gap: int,
    floor: int,
    opening: int,
    gap_extend: int,
    width: int,
) -> None:
    """Ends a row: cut the band behind its last kept cell or prolong it by the row gap, then open one dead column."""
    if last < len(best) - 1:
        del best[last + 1 :], column_gap[last + 1 :]
    else:
        while row_gap >= floor and len(best) <= width:
            best.append(row_gap)
            column_gap.append(row_gap - opening)
            row_gap -= gap_extend
    if len(best) <= width:
        best.append(DEAD)
        column_gap.append(DEAD)


def extend_score(
    rows: bytes, columns: bytes, matrix: Matrix, gap_open: int, gap_extend: int, x_drop: int
) -> Extension:
    """Score and end of the best extension from (0, 0), by the rule above; `x_drop` is raised to the cost of one gap."""
    opening = gap_open + gap_extend
    x_drop = max(x_drop, opening)
    width = len(columns)
    if not rows or not columns:
        return Extension(0, 0, 0)
    residues = columns + b"\0"  # the diagonal out of the last column is computed but never used
    best, column_gap = _first_row(width, opening, gap_extend, x_drop)
    top, top_row, top_column, floor = 0, 0, 0, -x_drop
    first = 0
    for row, residue in enumerate(rows, 1):
        scores = matrix[residue]
        diagonal = row_gap = DEAD
        last = first
        for column in range(first, len(best)):
            score = diagonal
            diagonal = best[column] + scores[residues[column]]
            from_above = column_gap[column]
            if from_above > score:
                score = from_above
            if row_gap > score:
                score = row_gap
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
            row_gap -= gap_extend
            if opened > row_gap:
                row_gap = opened
            from_above -= gap_extend
            column_gap[column] = opened if opened > from_above else from_above
        if first == len(best):
            break
        _resize_band(best, column_gap, last, row_gap, floor, opening, gap_extend, width)
    return Extension(top, top_row, top_column)


def extend_score_restricted(
    rows: bytes, columns: bytes, matrix: Matrix, gap_open: int, gap_extend: int, x_drop: int
) -> Extension:
    """As `extend_score`, but row gaps live only in every tenth row and column gaps only in every tenth column.

    Rows and columns count from the start of the pass. Elsewhere a cell has its diagonal score. The end of a row without
    gaps is prolonged by the diagonal score left over behind its last column, as the peer does. A cheap first answer: at
    most as good as the full pass, nearly always close to it.
    """
    opening = gap_open + gap_extend
    x_drop = max(x_drop, opening)
    width = len(columns)
    if not rows or not columns:
        return Extension(0, 0, 0)
    residues = columns + b"\0"
    best, column_gap = _first_row(width, opening, gap_extend, x_drop)
    top, top_row, top_column, floor = 0, 0, 0, -x_drop
    first = 0
    for row, residue in enumerate(rows, 1):
        scores = matrix[residue]
        row_may_gap = row % RESTRICTION == 0
        diagonal = row_gap = DEAD
        last = first
        for column in range(first, len(best)):
            score = diagonal
            diagonal = best[column] + scores[residues[column]]
            column_may_gap = column % RESTRICTION == 0
            if column_may_gap and column_gap[column] > score:
                score = column_gap[column]
            if row_may_gap and row_gap > score:
                score = row_gap
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
        if first == len(best):
            break
        prolonging = row_gap if row_may_gap else diagonal
        _resize_band(best, column_gap, last, prolonging, floor, opening, gap_extend, width)
    return Extension(top, top_row, top_column)


def extend_traceback(
    rows: bytes, columns: bytes, matrix: Matrix, gap_open: int, gap_extend: int, x_drop: int
) -> TracedExtension:
    """As `extend_score`, and the path of the best end.

    Choices at a cell: the diagonal unless the column gap is larger, then the row gap if larger than that; a gap is
    continued rather than opened anew when both score the same.
    """
    opening = gap_open + gap_extend
    x_drop = max(x_drop, opening)
    width = len(columns)
    if not rows or not columns:
        return TracedExtension(0, 0, 0, [])
    residues = columns + b"\0"
    best, column_gap = _first_row(width, opening, gap_extend, x_drop)
    trace = [(0, bytearray([COLUMN_ONLY]) * len(best))]  # per row: its first column and one code per cell
    top, top_row, top_column, floor = 0, 0, 0, -x_drop
    first = 0
    for row, residue in enumerate(rows, 1):
        scores = matrix[residue]
        diagonal = row_gap = DEAD
        last = first
        codes = bytearray()
        trace.append((first, codes))
        for column in range(first, len(best)):
            score, code = diagonal, BOTH
            diagonal = best[column] + scores[residues[column]]
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
                codes.append(code)
                continue
            last = column
            if score > top:
                top, top_row, top_column, floor = score, row, column, score - x_drop
            best[column] = score
            opened = score - opening
            row_gap -= gap_extend
            if row_gap >= opened:
                code |= _CONTINUES_ROW_GAP
            else:
                row_gap = opened
            from_above -= gap_extend
            if from_above >= opened:
                column_gap[column] = from_above
                code |= _CONTINUES_COLUMN_GAP
            else:
                column_gap[column] = opened
            codes.append(code)
        if first == len(best):
            break
        _resize_band(best, column_gap, last, row_gap, floor, opening, gap_extend, width)
        codes.extend([COLUMN_ONLY] * (len(best) - trace[row][0] - len(codes)))
    return TracedExtension(top, top_row, top_column, _walk_back(trace, top_row, top_column))


def _walk_back(trace: list[tuple[int, bytearray]], row: int, column: int) -> list[int]:
    """Steps from (0, 0) to the given cell."""
    steps = []
    step = BOTH
    while row or column:
        start, codes = trace[row]
        code = codes[column - start]
        continues = (step == COLUMN_ONLY and code & _CONTINUES_ROW_GAP) or (
            step == ROW_ONLY and code & _CONTINUES_COLUMN_GAP
        )
        if not continues:
            step = code & _STEP
        steps.append(step)
        row -= step != COLUMN_ONLY
        column -= step != ROW_ONLY
    steps.reverse()
    return steps


def two_sided(
    one_sided: Callable[[bytes, bytes, Matrix, int, int, int], Extension],
    rows: bytes,
    columns: bytes,
    row_split: int,
    column_split: int,
    matrix: Matrix,
    gap_open: int,
    gap_extend: int,
    x_drop: int,
) -> tuple[int, int, int, int, int]:
    """Extends to both sides of a split point with `extend_score` or `extend_score_restricted`.

    The left pass takes the residues before the split, the right pass those from it on; each has its own X-drop.
    Returns (score, row_start, row_end, column_start, column_end), half-open.
    """
    left = one_sided(rows[:row_split][::-1], columns[:column_split][::-1], matrix, gap_open, gap_extend, x_drop)
    right = one_sided(rows[row_split:], columns[column_split:], matrix, gap_open, gap_extend, x_drop)
    return (
        left.score + right.score,
        row_split - left.rows,
        row_split + right.rows,
        column_split - left.columns,
        column_split + right.columns,
    )


class TracedAlignment(NamedTuple):
    """Two-sided alignment: half-open ends on both sides and one step per alignment column, in sequence order."""

    score: int
    row_start: int
    row_end: int
    column_start: int
    column_end: int
    steps: list[int]


def two_sided_traceback(
    rows: bytes,
    columns: bytes,
    row_split: int,
    column_split: int,
    matrix: Matrix,
    gap_open: int,
    gap_extend: int,
    x_drop: int,
) -> TracedAlignment:
    """`two_sided` with the path. Gaps at either end of the whole alignment are trimmed and their cost is given back."""
    left = extend_traceback(rows[:row_split][::-1], columns[:column_split][::-1], matrix, gap_open, gap_extend, x_drop)
    right = extend_traceback(rows[row_split:], columns[column_split:], matrix, gap_open, gap_extend, x_drop)
    steps = left.steps[::-1] + right.steps
    score = left.score + right.score
    row_start, column_start = row_split - left.rows, column_split - left.columns
    row_end, column_end = row_split + right.rows, column_split + right.columns
    while leading := _gap_length(steps):
        score += gap_open + leading * gap_extend
        row_start += steps[:leading].count(ROW_ONLY)
        column_start += steps[:leading].count(COLUMN_ONLY)
        steps = steps[leading:]
    while trailing := _gap_length(steps[::-1]):
        score += gap_open + trailing * gap_extend
        row_end -= steps[-trailing:].count(ROW_ONLY)
        column_end -= steps[-trailing:].count(COLUMN_ONLY)
        steps = steps[:-trailing]
    return TracedAlignment(score, row_start, row_end, column_start, column_end, steps)


def _gap_length(steps: list[int]) -> int:
    """Length of the gap that `steps` begin with; one of rows and one of columns are two."""
    length = 0
    while length < len(steps) and steps[length] == steps[0] and steps[0] != BOTH:
        length += 1
    return length
