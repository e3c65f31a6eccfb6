"""Alignments of a pair by Smith & Waterman's algorithm, one after the other, as BLAST+ 2.12 makes them (-use_sw_tback).

The best local alignment is found from its end and its start, and traced between the two. Where the pair had several
preliminary HSPs, its box is shut and the next best one is looked for, for as long as they are significant.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from seqloom.plugins.common.culling import Hsp
from seqloom.plugins.common.xdrop import Matrix, extend_traceback

MOST_TRIES = 3
"""Times that the path of an alignment is looked for, with twice the X-drop each time, until it has the score."""

Box = tuple[int, int, int, int]
"""First row, row behind the last, first column and last column of cells that no path of matches may enter."""


def best_cell(rows: bytes, columns: bytes, matrix: Matrix, gap_open: int, gap_extend: int, boxes: Sequence[Box],
              enough: int) -> tuple[int, int, int]:
    """The best score of a local alignment, and the row and the column that it ends in: the first, row by row.

    The search ends with a score of `enough`.
    """
    opening = gap_open + gap_extend
    best, gaps = [0] * len(columns), [-gap_open] * len(columns)
    top, top_row, top_column = 0, 0, 0
    for row, residue in enumerate(rows):
        scores, shut = matrix[residue], [box for box in boxes if box[0] <= row < box[1]]
        score, diagonal, row_gap = 0, 0, -gap_open
        for column, other in enumerate(columns):
            row_gap = max(score - opening, row_gap - gap_extend)
            gaps[column] = max(best[column] - opening, gaps[column] - gap_extend)
            open_here = not any(first <= column <= last for _, _, first, last in shut)
            score = max(diagonal + scores[other] if open_here else 0, 0, row_gap, gaps[column])
            diagonal, best[column] = best[column], score
            if score > top:
                top, top_row, top_column = score, row, column
            if top >= enough:
                return top, top_row, top_column
    return top, top_row, top_column


def optimal_hsps(query: bytes, target: bytes, matrix: Matrix, gap_open: int, gap_extend: int, x_drop: int,
                 least: float, several: bool) -> Iterator[Hsp]:
    """Alignments with steps for paths, best first, that score more than `least`; one at most unless `several`."""
    boxes: list[Box] = []
    costs = matrix, gap_open, gap_extend
    while True:
        score, query_last, target_last = best_cell(query, target, *costs, boxes, 1 << 30)
        if score <= least:
            return
        turned = [(query_last + 1 - end, query_last + 1 - begin, target_last - last, target_last - first)
                  for begin, end, first, last in boxes]
        _, rows, columns = best_cell(query[query_last::-1], target[target_last::-1], *costs, turned, score)
        query_start, target_start = query_last - rows, target_last - columns
        for turn in range(MOST_TRIES):
            found = extend_traceback(query[query_start : query_last + 1], target[target_start : target_last + 1],
                                     matrix, gap_open, gap_extend, x_drop << turn)
            if found.score >= score:
                break
        query_end, target_end = query_start + found.rows, target_start + found.columns
        hsp = Hsp(found.score, query_start, query_end, target_start, target_end, query_start - 1, target_start - 1)
        hsp.path = found.steps
        yield hsp
        if not several:
            return
        boxes.append((query_start, query_end, target_start, target_end))
