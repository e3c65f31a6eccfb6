"""Sorting the rows of many groups, compiled: most groups are small, and one pass over all of them does.

Sorting a table by columns takes a pass over everything for each column; here two rows are compared by the columns that
it takes to tell them apart, which is mostly the first. Of a large group as many columns as fit are made one number
first, by which numpy sorts, so that no two rows far from each other have to be fetched to be compared.
"""

from collections.abc import Sequence

import numpy as np
from seqloom.core.kernels.jit import kernel

RISING, FALLING = 1, -1
LARGE, _KEY_BITS = 1 << 13, 62
"""Rows of a large group; bits of a number that is sorted by."""
RUN = 12
"""Rows that are sorted by inserting one after another; longer groups are merged from such runs."""


@kernel
def _before(rows, one, other, columns, signs):
    """Whether row ``one`` comes before row ``other``."""
    for key in range(len(columns)):
        first, second = rows[one, columns[key]] * signs[key], rows[other, columns[key]] * signs[key]
        if first != second:
            return first < second
    return False


@kernel
def sort_groups(rows, bounds, columns, signs, order, spare):
    """Put i8[n] ``order``, which are rows by group, in the order of ``order_in_groups``.

    bounds: where each group begins in it. columns, signs: i8, as of ``by``. spare: as long as ``order``.
    """
    for group in range(len(bounds) - 1):
        first, last = bounds[group], bounds[group + 1]
        for begin in range(first, last, RUN):
            for place in range(begin, min(begin + RUN, last)):
                row = order[place]
                while place > begin and _before(rows, row, order[place - 1], columns, signs):
                    order[place] = order[place - 1]
                    place -= 1
                order[place] = row
        width = RUN
        while width < last - first:
            for begin in range(first, last, 2 * width):
                middle, end = min(begin + width, last), min(begin + 2 * width, last)
                left, right = begin, middle
                for place in range(begin, end):
                    if right == end or (left < middle and not _before(rows, order[right], order[left], columns, signs)):
                        spare[place] = order[left]
                        left += 1
                    else:
                        spare[place] = order[right]
                        right += 1
            for place in range(first, last):
                order[place] = spare[place]
            width *= 2


def order_in_groups(rows: np.ndarray, bounds: np.ndarray, by: Sequence[tuple[int, int]]) -> np.ndarray:
    """i8[n]: the rows of every group in order, group by group; equal ones stay as they are.

    Args:
        rows: i8[n, k], grouped.
        bounds: i8[g + 1] of ``group_starts``.
        by: columns, the foremost first, each ``RISING`` or ``FALLING``.
    """
    order, behind = np.arange(len(rows)), 0  # groups that are done
    for group in np.flatnonzero(np.diff(bounds) > LARGE).tolist():
        _compare(rows, bounds[behind : group + 1], by, order)
        first, last = bounds[group : group + 2].tolist()
        order[first:last] = first + _order_of_many(rows[first:last], by)
        behind = group + 1
    _compare(rows, bounds[behind:], by, order)
    return order


def _compare(rows: np.ndarray, bounds: np.ndarray, by: Sequence[tuple[int, int]], order: np.ndarray) -> None:
    """Put the rows of some groups in order."""
    columns, signs = (np.array(values, np.int64) for values in zip(*by, strict=True))
    sort_groups(rows, bounds, columns, signs, order, np.empty(len(rows), np.int64))


def _order_of_many(rows: np.ndarray, by: Sequence[tuple[int, int]]) -> np.ndarray:
    """``order_in_groups`` of one large group."""
    of_row = (len(rows) - 1).bit_length()
    key, bits, taken = np.zeros(len(rows), np.int64), of_row, 0
    for column, sign in by:
        values = rows[:, column].astype(np.int64)
        least, most = int(values.min()), int(values.max())
        bits += (most - least).bit_length()
        if bits > _KEY_BITS:
            break
        key <<= (most - least).bit_length()
        key += values - least if sign == RISING else most - values
        taken += 1
    if not taken:  # numbers far apart
        order = np.arange(len(rows))
        _compare(rows, np.array([0, len(rows)]), by, order)
        return order
    key <<= of_row  # numbers that all differ are sorted in half the time
    key += np.arange(len(rows))
    key.sort()
    order = key & (1 << of_row) - 1
    if taken < len(by):
        key >>= of_row
        alike = np.flatnonzero(np.diff(key, prepend=key[0] - 1, append=key[-1] + 1))
        order = order[order_in_groups(rows[order], alike, by[taken:])]
    return order
