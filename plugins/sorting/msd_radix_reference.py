"""MSD radix sort of strings: buckets by the first symbol, then every bucket by the next.

All buckets of one depth are split together, by key-index counting on (bucket, symbol): the work per depth is one pass
over the strings whose place isn't known yet. A bucket of one string, or of strings that have ended, is done.
"""

from typing import ClassVar

import numpy as np
from seqloom.core.records import Ragged
from seqloom.core.stages import Sorter, row_type
from seqloom.plugins.sorting.symbols import SYMBOLS, symbols_at


class MsdRadix(Sorter):
    """Most significant symbol first; looks at no more symbols than tell the keys apart.

    Source: A. Drozd's thesis on string sorting and BWT alignment, algorithm 2; buckets of one depth together, 4.4.3.
    """

    name: ClassVar[str] = "msd-radix"
    backend: ClassVar[str] = "reference"

    def order(self, keys: Ragged) -> np.ndarray:
        order = np.arange(len(keys), dtype=row_type(len(keys)))
        places = order.copy()  # positions in ``order`` that are still open, ascending
        bucket = np.zeros(len(keys), np.int64)  # of each open position; buckets are contiguous and ascending
        depth = 0
        while len(places):
            rows = order[places]
            digits = bucket * SYMBOLS + symbols_at(keys, rows, depth)
            moves = np.argsort(digits, kind="stable")
            order[places], digits = rows[moves], digits[moves]
            bucket = np.cumsum(np.r_[False, digits[1:] != digits[:-1]])
            sizes = np.bincount(bucket)
            still_open = (sizes[bucket] > 1) & (digits % SYMBOLS > 0)
            places, bucket = places[still_open], bucket[still_open]
            depth += 1
        return order
