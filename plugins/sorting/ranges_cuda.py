"""Sorting on one or more CUDA devices: each sorts ranges of the keys, and the results stand one behind the other.

Keys that fit the memory of a device and are too few to be shared are sorted there as they are. Others are cut in ranges
that fit it (``ranges_cpu.py``), at least one for each device, and the devices sort theirs side by side.
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
from seqloom.plugins.sorting import keys_cuda
from seqloom.plugins.sorting.msd_radix_cpu import MsdRadixCpu
from seqloom.plugins.sorting.ranges_cpu import follow, ranges_of, taken
from seqloom.plugins.sorting.threads_cpu import useful_threads

LEAST_SHARE = 1 << 22
"""Keys for each device from which on more than one shares in a sort that has room on one."""

Sort = Callable[[Ragged, int, int], np.ndarray]
"""Order of keys on the device at work: is handed the keys, bytes for their characters, and threads of the host."""


@contextmanager
def _turn() -> Iterator[None]:
    """Sorts on one device take turns: memory that one finds free is not taken by another."""
    with _turns.setdefault(current_device(), Lock()):
        yield


_turns: dict[int, Lock] = {}  # by device


def sorted_there(keys: Ragged, device_memory: int | None, threads: int, sort: Sort) -> np.ndarray | None:
    """What ``sort`` makes of keys on devices; None where that isn't worth while or has no room.

    Args:
        device_memory: bytes of each device that may be taken.
        threads: of the host.
    """
    if not keys_cuda.many(keys):
        return None
    keys = replace(keys, offsets=np.ascontiguousarray(keys.offsets, np.int64),
                   values=np.ascontiguousarray(keys.values))
    shares = min(device_count(), len(keys) // LEAST_SHARE)
    if shares < 2:
        order = _sorted_whole(keys, device_memory, threads, sort)
        if order is not None:
            return order
    return _sorted_in_ranges(keys, device_memory, threads, sort, shares)


def _sorted_whole(keys: Ragged, device_memory: int | None, threads: int, sort: Sort) -> np.ndarray | None:
    """By the device at work, if it has room for all of them."""
    with _turn():
        room = keys_cuda.room_for(keys, device_memory)
        return sort(keys, room, threads) if room >= 0 else None


def _sorted_in_ranges(keys: Ragged, device_memory: int | None, threads: int, sort: Sort,
                      shares: int) -> np.ndarray | None:
    """By all devices, in ``shares`` ranges or as many more as their memory asks for."""
    devices = range(device_count())
    most = min(on_devices(lambda _: keys_cuda.most_keys(device_memory), devices, devices)) * 3 // 4  # some are larger
    if most < keys_cuda.LEAST:
        return None
    ranges = ranges_of(keys, max(shares, -(-len(keys) // most)), useful_threads(threads, keys))
    order, each = ranges.rows, max(1, threads // len(devices))

    def sort_some(some: list[tuple[int, int]]) -> None:
        for first, last in some:
            rows = order[first:last]
            part = taken(keys, rows, each)
            found = _sorted_whole(part, device_memory, each, sort) if keys_cuda.many(part) else None
            follow(rows, _sorted_by_host(part, each) if found is None else found, each)

    unsorted = ranges.unsorted()
    with short_switch_interval():
        on_devices(sort_some, [unsorted[device :: len(devices)] for device in devices], devices)
    return order


def _sorted_by_host(keys: Ragged, threads: int) -> np.ndarray:
    sorter = MsdRadixCpu()
    sorter.threads = threads
    return sorter.order(keys)
