"""Long and skewed keys on a CUDA device: all sorters, the host's threads and CuPy, by length, kind of keys and prefix.

    python -m benchmarks.sorting_gpu [--keys 2000000] [--threads 16] [--seconds 100]

A line for each: wall milliseconds, best of two after a first, from keys in the host's memory to their order there, and
million keys a second. Every order is compared with that of the host. "words" are 64-bit numbers that are on the device
already, with their rows: there CuPy sorts by CUB and Thrust (``argsort``); of longer keys it sorts big-endian words
(``lexsort``), which are sent to it as they are. Parts that don't fit the seconds are left out, which is said.
"""

import argparse
import os
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import Any

import numpy as np
from seqloom.core.records import Ragged
from seqloom.installed import registry

from .sorting_plots import best_time, random_keys

LENGTHS = (4, 8, 16, 24, 32, 40, 64, 100, 160, 250, 500, 1000)
PREFIXES = (3, 4, 6, 8, 16, 32)
SORTERS = ("msd-radix", "segment-radix", "lsd-radix")
_WIDTH = 100
_MOST_LEXSORT = 256  # characters of keys that CuPy is given
_ROUNDS = 2


Line = tuple[str, float, int]
"""What sorted, its seconds, and how many keys."""


def skewed_keys(count: int) -> dict[str, Callable[[], Ragged]]:
    """Kinds of keys that take some sorters longer, by name; of the thesis' 4.4.3 and 4.4.4, and their like."""
    rng = np.random.default_rng(3)
    bases = np.frombuffer(b"ACGT", np.uint8)

    def lengths(most: int) -> Ragged:
        sizes = np.minimum(rng.zipf(1.3, count), most)
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        return Ragged(offsets, bases[rng.integers(0, 4, offsets[-1], np.uint8)])

    def pieces() -> Ragged:
        genome = bases[rng.integers(0, 4, count // 5 + _WIDTH, np.uint8)]
        starts = rng.integers(0, len(genome) - _WIDTH + 1, count)
        return Ragged.even(genome[starts[:, None] + np.arange(_WIDTH, dtype=np.int32)])

    def twice() -> Ragged:
        half = random_keys(count // 2, _WIDTH).values.reshape(-1, _WIDTH)
        return Ragged.even(np.concatenate([half, half])[rng.permutation(2 * len(half))])

    def begun_alike() -> Ragged:
        rows = random_keys(count, _WIDTH).values.reshape(-1, _WIDTH)
        rows[:, :64] = rows[0, :64]
        return Ragged.even(rows)

    return {
        "every key twice": twice,
        "pieces of a genome, five at a place": pieces,
        "the same 64 characters first": begun_alike,
        "99 in 100 characters are A": lambda: Ragged.even(np.where(
            rng.integers(0, 100, (count, _WIDTH), np.uint8) > 0, np.uint8(65), np.uint8(67))),
        "all equal": lambda: Ragged.even(np.full((count, _WIDTH), 65, np.uint8)),
        "lengths of 1 to 1,000, most short": lambda: lengths(1000),
        "bytes of any kind": lambda: Ragged.even(rng.integers(0, 256, (count, _WIDTH), np.uint8)),
        "long ones of one character": lambda: Ragged.even(np.full((count // 20, 1 + int(count**0.5)), 65, np.uint8)),
    }


def measured(keys: Ragged, threads: int) -> Iterator[Line]:
    """Name and seconds of everything that sorts them, whose orders must agree."""
    on_host = registry().sorter("msd-radix", "cpu")
    on_host.threads = threads
    wanted = on_host.order(keys)
    yield f"msd-radix, {threads} threads of the host", best_time(lambda: on_host.order(keys), 1), len(keys)
    for name in SORTERS:
        yield f"{name}, cuda", timed(name, keys, threads, wanted), len(keys)
    if find_spec("cupy") and keys.width and keys.width <= _MOST_LEXSORT:
        columns = np.zeros((len(keys), -(-keys.width // 8) * 8), np.uint8)
        columns[:, : keys.width] = keys.values.reshape(len(keys), keys.width)
        words = np.ascontiguousarray(columns.view(">u8").astype(np.uint64).T[::-1])
        assert np.array_equal(cupy_order(words), wanted)
        yield "cupy, words made before", best_time(lambda: cupy_order(words), _ROUNDS), len(keys)


def timed(name: str, keys: Ragged, threads: int, wanted: np.ndarray, prefix: int = 0) -> float:
    """Seconds of a sorter on the device."""
    sorter = registry().sorter(name, "cuda")
    sorter.threads, sorter.prefix = threads, prefix
    order = sorter.order(keys)
    if not np.array_equal(order, wanted):
        raise AssertionError(f"{name} differs at {np.flatnonzero(order != wanted)[:5]}")
    return best_time(lambda: sorter.order(keys), _ROUNDS)


def cupy_order(words: np.ndarray) -> np.ndarray:
    """Order of keys of which each row of u8[words, keys] has a word, the last row the first one."""
    import cupy

    there = cupy.asarray(words)
    order = cupy.argsort(there[0], kind="stable") if len(words) == 1 else cupy.lexsort(there)
    return cupy.asnumpy(order.astype(cupy.int32))


def resident(count: int, bits: int) -> Iterator[Line]:
    """Name and seconds of what sorts words that are on the device."""
    from numba import cuda
    from seqloom.plugins.common.radix_cuda import DeviceWords, numbers
    from seqloom.plugins.sorting.buckets_cuda import BucketSort, Settled

    values = np.random.default_rng(bits).integers(0, (1 << bits) - 1, count, np.uint64, endpoint=True)
    source, there = cuda.to_device(values), DeviceWords(count)
    wanted = np.argsort(values, kind="stable")
    out = Settled(0, numbers(count), cuda.device_array(count, np.int32), cuda.device_array(count, np.uint8))
    starts, buckets = cuda.to_device(np.array([0, count], np.int32)), BucketSort(there)

    def seconds(sort: Callable[[], Any], order: Callable[[], Any]) -> float:
        times = []
        for _ in range(_ROUNDS + 1):
            there.load(count, lambda words: words[:count].copy_to_device(source), numbered=True)
            there.rows.copy_to_device(numbers(count))
            cuda.synchronize()
            begin = time.perf_counter()
            sort()
            cuda.synchronize()
            times.append(time.perf_counter() - begin)
        assert np.array_equal(order().copy_to_host(), wanted)
        return min(times[1:])

    yield "words, digits from the last", seconds(lambda: there.sort(count, bits), lambda: there.rows), count
    yield "words, buckets", seconds(lambda: buckets.sort(starts, 1, bits, out), lambda: out.order), count
    if find_spec("cupy"):
        import cupy

        words = cupy.asarray(values)

        def sort() -> None:
            cupy.argsort(words, kind="stable")
            cupy.cuda.Device().synchronize()

        yield "words, cupy.argsort", best_time(sort, _ROUNDS), count


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keys", type=int, default=2_000_000)
    parser.add_argument("--threads", type=int, default=min(16, os.cpu_count() or 1))
    parser.add_argument("--seconds", type=float, default=100.0)
    arguments = parser.parse_args()
    end, count, threads = time.monotonic() + arguments.seconds, arguments.keys, arguments.threads
    if not find_spec("cupy"):
        print("cupy isn't installed: nothing is compared with it")

    def prefixes() -> Iterator[Line]:
        keys = random_keys(count, _WIDTH)
        wanted = registry().sorter("msd-radix", "cpu").order(keys)
        for prefix in PREFIXES:
            yield f"msd-radix, cuda, prefix {prefix}", timed("msd-radix", keys, threads, wanted, prefix), count

    parts: list[tuple[str, Callable[[], Iterator[Line]]]] = [
        (f"{bits} bits", lambda bits=bits, times=times: resident(count * times, bits))  # type: ignore[misc]
        for bits in (40, 64) for times in (1, 10)]
    parts += [(f"{width} bases", lambda width=width: measured(random_keys(count, width), threads))  # type: ignore[misc]
              for width in LENGTHS]
    parts += [(name, lambda make=make: measured(make(), threads))  # type: ignore[misc]
              for name, make in skewed_keys(count).items()]
    parts.append((f"{_WIDTH} bases", prefixes))
    for what, measure in parts:
        if time.monotonic() > end:
            print(f"{what}: left out, for {arguments.seconds:g} seconds are over")
            continue
        for name, seconds, size in measure():
            print(f"{what:38} {name:40} {1e3 * seconds:10.2f} ms {size / seconds / 1e6:10.1f} M/s", flush=True)


if __name__ == "__main__":
    main()
