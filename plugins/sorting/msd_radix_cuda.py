"""``msd-radix`` on a CUDA device: large buckets by digits, small ones by groups of threads, word after word.

Keys of one length that fit a word are one number each. Of others a round sorts the words of all keys that still tie.
When few are left the host sorts these to the end, as it does with few keys.
"""

import numpy as np
from seqloom.core.records import Ragged
from seqloom.plugins.sorting import keys_cuda
from seqloom.plugins.sorting.buckets_cuda import BucketSort, Settled
from seqloom.plugins.sorting.keys_cuda import KeySource, whole_order
from seqloom.plugins.sorting.msd_radix_cpu import MsdRadixCpu
from seqloom.plugins.sorting.ranges_cpu import KeyRange
from seqloom.plugins.sorting.ranges_cuda import sorted_there
from seqloom.plugins.sorting.rounds_cuda import Round, order_in_rounds


class MsdRadixCuda(MsdRadixCpu):
    __doc__ = MsdRadixCpu.__doc__
    backend = "cuda"

    def order(self, keys: Ragged) -> np.ndarray:
        order = sorted_there(keys, self.device_memory, self.threads, self._on_device)
        return super().order(keys) if order is None else order

    def _on_device(self, some: KeyRange, room: int, threads: int) -> np.ndarray:
        whole = None if self.prefix else whole_order(some, threads, buckets=True)
        if whole is not None:
            return whole
        sorts: list[BucketSort] = []  # of the open keys, whose room stays the same

        def sort(now: Round) -> None:
            if not sorts:
                sorts.append(BucketSort(now.open.there))
            open_ = now.open
            out = Settled(now.end, open_.places, open_.order, open_.tied)
            sorts[0].sort(open_.starts, open_.segments, now.bits, out)

        return order_in_rounds(KeySource(some, threads, self.prefix, room), some.lengths[1], sort,
                               lambda _, bits: bits, keys_cuda.LEAST)
