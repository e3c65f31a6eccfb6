"""Rows of HSPs as kernels take them, and which of them stay, of many pairs at once."""

import numpy as np
from seqloom.plugins.common.grouping import group_starts
from seqloom.plugins.common.order_cpu import FALLING, RISING, order_in_groups

SCORE, QUERY_START, QUERY_END, TARGET_START, TARGET_END, ANCHOR_QUERY, ANCHOR_TARGET, PAIR = range(8)
"""Columns of a row, i8[8]."""


def in_report_order(found: np.ndarray) -> np.ndarray:
    """i8[m]: rows of ``found`` (grouped by pair) that stay when ends are purged, within a pair in ``score_order``.

    `purge_common_endpoints` of all pairs at once.
    """
    kept, rows = np.arange(len(found)), found
    for ends, others in (((QUERY_START, TARGET_START), (QUERY_END, TARGET_END)),
                         ((QUERY_END, TARGET_END), (QUERY_START, TARGET_START))):
        by = [*((end, RISING) for end in ends), (SCORE, FALLING), *((other, FALLING) for other in others)]
        order = order_in_groups(rows, group_starts(rows[:, PAIR]), by)
        firsts = order[group_starts(*(rows[order, column] for column in (PAIR, *ends)))[:-1]]
        kept, rows = kept[firsts], rows[firsts]
    return kept[order_in_groups(rows, group_starts(rows[:, PAIR]), [
        (SCORE, FALLING), (TARGET_START, RISING), (TARGET_END, FALLING), (QUERY_START, RISING), (QUERY_END, FALLING)])]
