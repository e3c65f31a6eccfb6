"""``optimum`` in kernels: one cell after the other, since few ask for it and the scores want 32 bits."""

import numpy as np
from seqloom.core.kernels.jit import kernel

_ZERO = np.int64(0)
NEVER = np.int64(1 << 40)
"""A score that no alignment has."""


@kernel
def best_cell(rows, row, row_step, height, columns, column, column_step, width, matrix, gap_open, gap_extend, boxes,
              count, enough, cells, shut):
    """The best score of a local alignment, and the row and the column that it ends in. See the reference.

    Args:
        rows, row, row_step, height: ``height`` residues of u1 ``rows`` from ``row`` on, in steps of 1 or −1; columns
            likewise.
        boxes: i8[…, 4], of which the first ``count`` are shut.
        cells, shut: room, i8[2, width] and bool[width].
    """
    opening = gap_open + gap_extend
    top = top_row = top_column = _ZERO
    for j in range(width):
        cells[0, j], cells[1, j] = 0, -gap_open
    for i in range(height):
        residue = rows[row + row_step * i]
        for j in range(width):
            shut[j] = False
        for box in range(count):
            if boxes[box, 0] <= i < boxes[box, 1]:
                for j in range(max(boxes[box, 2], 0), min(boxes[box, 3] + 1, width)):
                    shut[j] = True
        score = diagonal = _ZERO
        row_gap = -gap_open
        for j in range(width):
            row_gap = max(score - opening, row_gap - gap_extend)
            column_gap = max(cells[0, j] - opening, cells[1, j] - gap_extend)
            matched = _ZERO if shut[j] else max(diagonal + matrix[residue, columns[column + column_step * j]], _ZERO)
            score = max(max(matched, row_gap), column_gap)
            diagonal = cells[0, j]
            cells[0, j], cells[1, j] = score, column_gap
            if score > top:
                top, top_row, top_column = score, np.int64(i), np.int64(j)
                if top >= enough:
                    return top, top_row, top_column
    return top, top_row, top_column
