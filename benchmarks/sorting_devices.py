"""Sorting on one CUDA device and on several: milliseconds by number and length of keys.

    python -m benchmarks.sorting_devices [--keys 2000000 20000000 100000000] [--lengths 8 32] [--threads 16]

Keys are random: bases, of which 32 fit a word, and residues of proteins, of which 12 do. A line for each sorter and
number of devices: wall milliseconds, best of two after a first, from keys in the host's memory to their order there,
and million keys a second. Rounds of all are taken in turns, and every order is that of the host. All devices share the
keys here; by themselves they do so only where one has no room for all of them (``ranges_cuda``).
"""

import argparse
import os
import time
from collections.abc import Iterator
from contextlib import ExitStack
from unittest.mock import patch

import numpy as np
from seqloom.core.backends import device_count
from seqloom.core.records import Ragged
from seqloom.core.sorter import Sorter
from seqloom.installed import registry
from seqloom.plugins.sorting import ranges_cuda

KINDS = {"bases": b"ACGT", "protein": b"ACDEFGHIKLMNPQRSTVWY"}
SORTERS = ("msd-radix", "segment-radix", "lsd-radix")
_ROUNDS = 3  # of which the first doesn't count


def keys_of(characters: bytes, count: int, width: int) -> Ragged:
    """Random keys of one length."""
    places = np.random.default_rng(width).integers(0, len(characters), (count, width), np.uint8)
    return Ragged.even(np.frombuffer(characters, np.uint8)[places])


def shared_order(sorter: Sorter, keys: Ragged, devices: int) -> np.ndarray:
    """Order by so many devices."""
    with ExitStack() as stack:
        for name, value in (("device_count", lambda: devices), ("LEAST_RANGES", devices)):
            stack.enter_context(patch.object(ranges_cuda, name, value))
        return sorter.order(keys)


def measured(keys: Ragged, threads: int, counts: list[int]) -> Iterator[tuple[str, int, float]]:
    """Sorter, devices and seconds of each, whose orders must agree."""
    on_host = registry().sorter("msd-radix", "cpu")
    on_host.threads = threads
    wanted = on_host.order(keys)
    for name in SORTERS:
        sorter = registry().sorter(name, "cuda")
        sorter.threads = threads
        times: dict[int, list[float]] = {devices: [] for devices in counts}
        for _ in range(_ROUNDS):
            for devices, taken in times.items():
                begin = time.perf_counter()
                order = shared_order(sorter, keys, devices)
                taken.append(time.perf_counter() - begin)
                if not np.array_equal(order, wanted):
                    raise AssertionError(f"{name}, {devices} devices: differs at {np.flatnonzero(order != wanted)[:5]}")
        yield from ((name, devices, min(taken[1:])) for devices, taken in times.items())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keys", type=int, nargs="+", default=[2_000_000, 20_000_000, 100_000_000])
    parser.add_argument("--lengths", type=int, nargs="+", default=[8, 32])
    parser.add_argument("--threads", type=int, default=min(16, os.cpu_count() or 1))
    arguments = parser.parse_args()
    counts = sorted({1 << n for n in range(device_count().bit_length())} | {device_count()})
    if counts == [1]:
        print("there is one device: nothing is shared")
    for count in arguments.keys:
        for width in arguments.lengths:
            for kind, characters in KINDS.items():
                keys = keys_of(characters, count, width)
                for name, devices, seconds in measured(keys, arguments.threads, counts):
                    print(f"{count:>11,} keys, {width} {kind:8} {name:14} {devices} devices {1e3 * seconds:10.2f} ms "
                          f"{count / seconds / 1e6:10.1f} M/s", flush=True)


if __name__ == "__main__":
    main()
