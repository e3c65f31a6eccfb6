"""Multikey quicksort (three-way radix quicksort) of strings, stable and without swaps.

A segment of strings with a common prefix is parted by one symbol, the pivot's: less, equal, greater. A first pass
counts the three parts, a second one moves every string to its place, so that equal strings keep their order. The equal
part goes on with the next symbol, the others with the same one. All open segments are parted in one round.
"""

from typing import ClassVar

import numpy as np
from seqloom.core.records import Ragged
from seqloom.core.stages import Sorter, row_type
from seqloom.plugins.sorting.symbols import symbols_at

_LESS, _EQUAL, _GREATER = 0, 1, 2


class MultikeyQuicksort(Sorter):
    """Parts the strings by one symbol into less, equal and greater; good where few of the byte values occur.

    Source: A. Drozd's thesis on string sorting and BWT alignment, 4.2.2 and 4.2.3, after Bentley and Sedgewick 1997.
    """

    name: ClassVar[str] = "multikey-quicksort"
    backend: ClassVar[str] = "reference"

    def order(self, keys: Ragged) -> np.ndarray:
        order = np.arange(len(keys), dtype=row_type(len(keys)))
        places = order.copy()  # positions in ``order`` that are still open, ascending
        sizes = np.array([len(keys)] if len(keys) else [], np.int64)  # of the open segments, in order of places
        depth = np.zeros(len(sizes), np.int64)  # symbols that the strings of a segment are known to share
        while len(places):
            rows = order[places]
            segment = np.repeat(np.arange(len(sizes)), sizes)
            symbols = symbols_at(keys, rows, depth[segment])
            pivot = symbols[np.cumsum(sizes) - sizes + sizes // 2]
            side = np.sign(symbols - pivot[segment]) + 1

            counts = np.bincount(segment * 3 + side, minlength=3 * len(sizes))
            starts = (np.cumsum(counts) - counts).reshape(-1, 3)
            counts = counts.reshape(-1, 3)
            target = np.empty(len(rows), np.int64)
            for part in (_LESS, _EQUAL, _GREATER):
                mine = np.flatnonzero(side == part)
                earlier = np.cumsum(counts[:, part]) - counts[:, part]
                target[mine] = starts[segment[mine], part] + np.arange(len(mine)) - earlier[segment[mine]]
            order[places[target]] = rows

            still_open = counts > 1
            still_open[:, _EQUAL] &= pivot > 0  # strings that end together are equal
            places = places[np.repeat(still_open.ravel(), counts.ravel())]
            sizes = counts[still_open]
            depth = (depth[:, None] + np.array([0, 1, 0]))[still_open]
        return order
