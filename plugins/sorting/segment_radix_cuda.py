"""``segment-radix`` on a CUDA device: a round is one radix sort of words behind numbers of segments."""

import numpy as np
from seqloom.core.records import Ragged
from seqloom.plugins.common import radix_cuda as radix
from seqloom.plugins.sorting.keys_cuda import KeySource
from seqloom.plugins.sorting.msd_radix_cpu import MsdRadixCpu
from seqloom.plugins.sorting.ranges_cpu import KeyRange
from seqloom.plugins.sorting.ranges_cuda import sorted_there
from seqloom.plugins.sorting.rounds_cuda import OpenKeys, Round, join_segments, order_in_rounds, settle_all
from seqloom.plugins.sorting.segment_radix_reference import SegmentRadix


class SegmentRadixCuda(SegmentRadix):
    __doc__ = SegmentRadix.__doc__
    backend = "cuda"

    def order(self, keys: Ragged) -> np.ndarray:
        order = sorted_there(keys, self.device_memory, self.threads, self._on_device)
        if order is not None:
            return order
        on_host = MsdRadixCpu()  # the order is the same
        on_host.threads = self.threads
        return on_host.order(keys)

    def _on_device(self, some: KeyRange, room: int, threads: int) -> np.ndarray:
        return order_in_rounds(KeySource(some, threads, self.prefix, room), some.lengths[1], _sort, _width, 0)


def _bits(open_: OpenKeys) -> int:
    """Of the numbers of segments."""
    return (open_.segments - 1).bit_length()


def _width(open_: OpenKeys, bits: int) -> int:
    return bits - _bits(open_)


def _sort(now: Round) -> None:
    open_, there = now.open, now.open.there
    if open_.segments > 1:
        join_segments[radix.grid(open_.count)](there.words, open_.segment, open_.count, now.bits)
    there.sort(open_.count, now.bits + _bits(open_))
    settle_all(open_, now.end)
