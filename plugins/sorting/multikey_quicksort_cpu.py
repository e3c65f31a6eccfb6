"""``multikey-quicksort`` on the CPU: three-way quicksort of words of several symbols, stable and without swaps."""

import numpy as np
from seqloom.core.kernels.jit import kernel
from seqloom.core.records import Ragged
from seqloom.core.stages import row_type
from seqloom.plugins.common.sort_words_cpu import coding_of, length_range, sort_strings
from seqloom.plugins.sorting.multikey_quicksort_reference import MultikeyQuicksort
from seqloom.plugins.sorting.threads_cpu import Arrays, order_by_threads, useful_threads


@kernel
def _each_bucket(values, offsets, codes, bits, per, ended, longest, words, rows, spare_words, spare_rows, starts,
                 depth):
    for bucket in range(len(starts) - 1):
        sort_strings(values, offsets, codes, bits, per, ended, longest, words, rows, starts[bucket],
                     starts[bucket + 1], depth, spare_words, spare_rows)


class MultikeyQuicksortCpu(MultikeyQuicksort):
    __doc__ = MultikeyQuicksort.__doc__
    backend = "cpu"

    def order(self, keys: Ragged) -> np.ndarray:
        if len(keys) < 2:
            return np.arange(len(keys), dtype=row_type(len(keys)))
        threads = useful_threads(self.threads, keys)
        lengths = length_range(keys, threads)
        coding, longest = coding_of(keys, threads, lengths=lengths), lengths[1]

        def finish(arrays: Arrays, starts: np.ndarray, left: int, depth: int) -> None:
            _each_bucket(keys.values, keys.offsets, *coding, longest, *arrays, starts, depth * coding.per)

        return order_by_threads(keys, coding, longest, threads, finish)
