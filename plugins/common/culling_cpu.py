"""Rows of HSPs as kernels take them, and which of them stay, of many pairs at once."""

import numpy as np
from seqloom.core.kernels.jit import kernel
from seqloom.plugins.common.order_cpu import FALLING, RISING, sort_groups

SCORE, QUERY_START, QUERY_END, TARGET_START, TARGET_END, ANCHOR_QUERY, ANCHOR_TARGET, PAIR = range(8)
"""Columns of a row, i8[8]."""
BY_ENDS = np.array([[QUERY_START, TARGET_START, SCORE, QUERY_END, TARGET_END],
                    [QUERY_END, TARGET_END, SCORE, QUERY_START, TARGET_START]])
END_SIGNS = np.array([RISING, RISING, FALLING, FALLING, FALLING])
"""Columns that bring rows together that share a start, or an end, and put the best of them first."""
_BY_SCORE = np.array([SCORE, TARGET_START, TARGET_END, QUERY_START, QUERY_END])
_SCORE_SIGNS = np.array([FALLING, RISING, FALLING, RISING, FALLING])


@kernel
def sort_pairs(rows, order, columns, signs, room):
    """Put rows of every pair in order. order: i8[n] rows by pair. room: i8[2, n + 1] or more."""
    count, bounds = 0, room[0]
    for at in range(len(order)):
        if not at or rows[order[at], PAIR] != rows[order[at - 1], PAIR]:
            bounds[count] = at
            count += 1
    bounds[count] = len(order)
    sort_groups(rows, bounds[: count + 1], columns, signs, order, room[1])


@kernel
def put_in_report_order(rows, order, room):
    """``in_report_order`` of some rows: they come first in ``order`` then; returns how many.

    order: i8[n], these rows by pair. room: i8[2, n + 1] or more.
    """
    count = len(order)
    for side in range(2):
        sort_pairs(rows, order[:count], BY_ENDS[side], END_SIGNS, room)
        kept, before, query, target = 0, np.int64(-1), BY_ENDS[side, 0], BY_ENDS[side, 1]
        for at in range(count):
            row = order[at]
            if (before < 0 or rows[row, PAIR] != rows[before, PAIR] or rows[row, query] != rows[before, query]
                    or rows[row, target] != rows[before, target]):
                order[kept] = row
                kept += 1
            before = row
        count = kept
    sort_pairs(rows, order[:count], _BY_SCORE, _SCORE_SIGNS, room)
    return count


def in_report_order(found: np.ndarray) -> np.ndarray:
    """i8[m]: rows of ``found`` (grouped by pair) that stay when ends are purged, within a pair in ``score_order``.

    `purge_common_endpoints` of all pairs at once.
    """
    order = np.arange(len(found))
    return order[: put_in_report_order(found, order, np.empty((2, len(found) + 1), np.int64))]
