"""LSD radix sort of strings: a stable counting sort per symbol, from the last symbol to the first.

A string takes part from its own last symbol on. When it joins, it goes before all longer strings, because at the depth
just done it had ended and they had not. The work is one step per character of all strings.
"""

from typing import ClassVar

import numpy as np
from seqloom.core.records import Ragged
from seqloom.core.stages import Sorter, row_type


class LsdRadix(Sorter):
    """Least significant symbol first; for short keys, such as numbers and packed words.

    Source: A. Drozd's thesis on string sorting and BWT alignment, 4.1.2 and 4.1.3.
    """

    name: ClassVar[str] = "lsd-radix"
    backend: ClassVar[str] = "reference"

    def order(self, keys: Ragged) -> np.ndarray:
        starts, lengths = keys.offsets[:-1], np.diff(keys.offsets)
        by_length = np.argsort(-lengths, kind="stable").astype(row_type(len(keys)))
        joined = np.cumsum(np.bincount(lengths, minlength=1)[::-1])[::-1]  # number of strings at least so long
        order = by_length[:0]
        for depth in range(len(joined) - 1, 0, -1):
            order = np.concatenate([by_length[len(order) : joined[depth]], order])
            symbols = keys.values[starts[order] + depth - 1]
            order = order[np.argsort(symbols, kind="stable")]
        return np.concatenate([by_length[len(order) :], order])
