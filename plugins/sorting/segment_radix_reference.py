"""Radix sort of strings by segments: the next symbols of all open strings, behind the number of their segment.

Strings that are equal so far are a segment. A round puts the number of its segment in front of the next two symbols of
every string, sorts these numbers, leaves out the strings whose place is known then, and numbers the segments anew.
"""

from typing import ClassVar

import numpy as np
from seqloom.core.records import Ragged
from seqloom.core.stages import Sorter, row_type
from seqloom.plugins.sorting.symbols import SYMBOLS, symbols_at

_SYMBOLS = 2  # of a round


class SegmentRadix(Sorter):
    """All strings at once, a few symbols a round behind the number of their segment; on devices without the host.

    Source: A. Drozd's thesis on string sorting and BWT alignment, 4.4.3, after A. Deshpande & P. J. Narayanan, "Can
    GPUs sort strings efficiently?" (2013).
    """

    name: ClassVar[str] = "segment-radix"
    backend: ClassVar[str] = "reference"

    def order(self, keys: Ragged) -> np.ndarray:
        order = np.arange(len(keys), dtype=row_type(len(keys)))
        places, segment, depth = order.copy(), np.zeros(len(keys), np.int64), 0
        while len(places):
            rows, numbers = order[places], segment
            for ahead in range(_SYMBOLS):
                numbers = numbers * SYMBOLS + symbols_at(keys, rows, depth + ahead)
            moves = np.argsort(numbers, kind="stable")
            order[places], numbers = rows[moves], numbers[moves]
            segment = np.cumsum(np.r_[False, numbers[1:] != numbers[:-1]])
            still_open = (np.bincount(segment)[segment] > 1) & (numbers % SYMBOLS > 0)
            places = places[still_open]
            segment = np.cumsum(np.r_[False, np.diff(segment[still_open]) > 0])
            depth += _SYMBOLS
        return order
