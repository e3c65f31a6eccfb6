"""Sorting on one or more CUDA devices: each sorts ranges of the keys, and the results stand one behind the other.

Keys that fit the memory of one device are sorted there as they are: the host cuts keys in ranges ten times more slowly
than a device sorts them (``docs/performance/sorting.md``). Others are cut in ranges that fit it (``ranges_cpu.py``), at
least one for each device, and the devices sort theirs side by side.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from threading import Lock

import numpy as np
from seqloom.core.backends import current_device, device_count
from seqloom.core.engine.threads import short_switch_interval
from seqloom.core.records import Ragged
from seqloom.plugins.common.resident_cuda import on_devices
from seqloom.plugins.common.sort_words_cpu import length_range
from seqloom.plugins.sorting import keys_cuda
from seqloom.plugins.sorting.msd_radix_cpu import MsdRadixCpu
from seqloom.plugins.sorting.ranges_cpu import KeyRange, ranges_of
from seqloom.plugins.sorting.threads_cpu import useful_threads

LEAST_RANGES = 1
"""In which keys are sorted: those that one device has room for are one range, unless this says otherwise."""
Sort = Callable[[KeyRange, int, int], np.ndarray]
"""Rows of keys in stable order, sorted by the device at work; is handed the keys, bytes of the device for their
characters, and threads of the host."""


@contextmanager
def _turn() -> Iterator[None]:
    """Sorts on one device take turns: memory that one finds free is not taken by another."""
    with _turns.setdefault(current_device(), Lock()):
        yield


_turns: dict[int, Lock] = {}  # by device


def sorted_there(keys: Ragged, device_memory: int | None, threads: int, sort: Sort) -> np.ndarray | None:
    """i4[n]: order of keys that ``sort`` makes on devices; None where that isn't worth while or has no room.

    Args:
        device_memory: bytes of each device that may be taken.
        threads: of the host.
    """
    if not keys_cuda.many(keys):
        return None
    keys, threads = replace(keys, offsets=np.ascontiguousarray(keys.offsets, np.int64),
                            values=np.ascontiguousarray(keys.values)), useful_threads(threads, keys)
    whole = KeyRange(keys, length_range(keys, threads))
    order = _sorted_here(whole, device_memory, threads, sort) if LEAST_RANGES == 1 else None
    return _sorted_in_ranges(whole, device_memory, threads, sort) if order is None else order


def _sorted_here(some: KeyRange, device_memory: int | None, threads: int, sort: Sort) -> np.ndarray | None:
    """By the device at work, if it has room for all of them."""
    with _turn():
        room = keys_cuda.room_for(some, device_memory)
        return sort(some, room, threads) if room >= 0 else None


def _sorted_in_ranges(whole: KeyRange, device_memory: int | None, threads: int, sort: Sort) -> np.ndarray | None:
    """By all devices, in a range for each or as many more as their memory asks for."""
    devices = range(device_count())
    most = min(on_devices(lambda _: keys_cuda.most_keys(device_memory), devices, devices)) * 3 // 4  # some are larger
    if most < keys_cuda.LEAST:
        return None
    ranges = ranges_of(whole.keys, max(LEAST_RANGES, len(devices), -(-len(whole) // most)), threads)
    order, each = ranges.rows, max(1, threads // len(devices))

    def sort_some(unsorted: list[tuple[int, int]]) -> None:
        for first, last in unsorted:
            some = replace(whole, rows=order[first:last])
            found = _sorted_here(some, device_memory, each, sort) if len(some) >= keys_cuda.LEAST else None
            order[first:last] = _sorted_by_host(some, each) if found is None else found

    unsorted = ranges.unsorted()
    with short_switch_interval():
        on_devices(sort_some, [unsorted[device :: len(devices)] for device in devices], devices)
    return order


def _sorted_by_host(some: KeyRange, threads: int) -> np.ndarray:
    sorter = MsdRadixCpu()
    sorter.threads = threads
    return some.rows_of(sorter.order(some.copied(threads)), threads)
