"""``multikey-quicksort`` on the CPU: three-way quicksort of words of several symbols, stable and without swaps."""

import numpy as np
from seqloom.core.records import Ragged
from seqloom.plugins.common.sort_words_cpu import coding_of, load_words, sort_strings
from seqloom.plugins.sorting.multikey_quicksort_reference import MultikeyQuicksort


class MultikeyQuicksortCpu(MultikeyQuicksort):
    __doc__ = MultikeyQuicksort.__doc__
    backend = "cpu"

    def order(self, keys: Ragged) -> np.ndarray:
        count = len(keys)
        rows = np.arange(count, dtype=np.int64)
        if count > 1:
            coding, longest = coding_of(keys), int(np.diff(keys.offsets).max())
            words = np.empty(count, np.uint64)
            load_words(keys.values, keys.offsets, *coding[:3], rows, 0, count, 0, words)
            sort_strings(keys.values, keys.offsets, *coding, longest, words, rows, 0, count, 0, np.empty_like(words),
                         np.empty_like(rows))
        return rows
