"""Long and skewed keys on a CUDA device: all sorters, the host's threads and CuPy, by length, kind of keys and prefix.

    python -m benchmarks.sorting_gpu [--keys 2000000] [--threads 16] [--seconds 100] [--images FOLDER]

A line for each: wall milliseconds, best of two after a first, from keys in the host's memory to their order there, and
million keys a second. Every order is compared with that of the host. "words" are 64-bit numbers that are on the device
already, with their rows: there CuPy sorts by CUB and Thrust (``argsort``); of longer keys it sorts big-endian words
(``lexsort``), which are sent to it as they are.

In a folder it draws charts of A. Drozd's thesis (4.4.2 to 4.4.4): keys a second by length and by the share of
characters that isn't A, on the device and by the host (figures 4.11, 4.14 and 4.15), and what the phases of a sort
there take, one after the other (4.13). Parts that don't fit the seconds are left out, which is said, and so are charts
of which a point is missing.
"""

import argparse
import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from seqloom.core.records import Ragged
from seqloom.installed import registry

from .charts import save_bars, save_chart
from .sorting_plots import best_time, random_keys
from .sorting_thesis import OTHER_SHARES
from .sorting_thesis import SKEWED as SKEWED_WIDTH
from .sorting_thesis import skewed_keys as keys_of_share

LENGTHS = (4, 8, 16, 24, 32, 40, 64, 100, 160, 250, 500, 1000)
PREFIXES = (3, 4, 6, 8, 16, 32)
SORTERS = ("msd-radix", "segment-radix", "lsd-radix")
PHASES = ("words: chopped off, sent, packed", "sorting", "gathering what ties", "rows back")
PHASE_LENGTHS = (8, 20, 100, 1000)
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


def phases(name: str, keys: Ragged, threads: int) -> dict[str, float]:
    """Seconds of each phase of a sort in rounds, each waited for, and of the rest: the least of some rounds.

    That is the way of long and skewed keys; those of one number go it here too, one part after the other.
    """
    from numba import cuda
    from seqloom.plugins.sorting import msd_radix_cuda, rounds_cuda, segment_radix_cuda

    module = {"msd-radix": msd_radix_cuda, "segment-radix": segment_radix_cuda}[name]
    usual = rounds_cuda.order_in_rounds
    taken: dict[str, float] = defaultdict(float)
    inside: list[str] = []

    def watched(phase: str, work: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*given: Any) -> Any:
            if inside:  # of the phase that calls it
                return work(*given)
            inside.append(phase)
            cuda.synchronize()
            begin = time.perf_counter()
            result = work(*given)
            cuda.synchronize()
            taken[phase] += time.perf_counter() - begin
            inside.pop()
            return result

        return timed

    def in_phases(source: Any, longest: int, sort: Any, width: Any, least: int) -> np.ndarray:
        source.pack = watched(PHASES[0], source.pack)
        with ExitStack() as stack:
            for place, function, phase in ((rounds_cuda.OpenKeys, "keep_tied", PHASES[2]),
                                           (rounds_cuda, "to_host", PHASES[3])):
                stack.enter_context(patch.object(place, function, watched(phase, getattr(place, function))))
            return usual(source, longest, watched(PHASES[1], sort), width, least)

    sorter = registry().sorter(name, "cuda")
    sorter.threads, sorter.prefix = threads, 64  # no less than a word has
    runs = []
    for _ in range(_ROUNDS + 1):
        taken.clear()
        begin = time.perf_counter()
        with patch.object(module, "order_in_rounds", in_phases):
            sorter.order(keys)
        whole = time.perf_counter() - begin
        runs.append({**{phase: taken[phase] for phase in PHASES}, "the rest": whole - sum(taken.values())})
    return {phase: min(run[phase] for run in runs[1:]) for phase in runs[0]}


def draw_phases(folder: Path, kinds: dict[str, Callable[[], Ragged]], threads: int) -> None:
    """What phases take, by kind of keys, in nanoseconds a key."""
    found = {}
    for what, make in kinds.items():
        keys = make()
        for name in ("msd-radix", "segment-radix"):
            times = phases(name, keys, threads)
            found[f"{what},\n{name.split('-')[0]}"] = {phase: 1e9 * taken / len(keys) for phase, taken in times.items()}
            for phase, taken in times.items():
                print(f"{what:38} {name + ', ' + phase:50} {1e3 * taken:8.2f} ms", flush=True)
    parts = {phase: [taken[phase] for taken in found.values()] for phase in (*PHASES, "the rest")}
    save_bars(folder / "sorting_cuda_phases.svg", "Phases of a sort in rounds, one after the other", "keys, sorter",
              "nanoseconds a key", list(found), parts, {})


def draw_rates(folder: Path, name: str, title: str, across: str, points: dict[float, list[Line]]) -> None:
    """Keys a second of everything that sorts, by a number."""
    series: dict[str, list[tuple[float, float]]] = {}
    for place, lines in points.items():
        for what, seconds, count in lines:
            series.setdefault(what, []).append((place, count / seconds))
    save_chart(folder / name, title, across, "keys per second", series)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keys", type=int, default=2_000_000)
    parser.add_argument("--threads", type=int, default=min(16, os.cpu_count() or 1))
    parser.add_argument("--seconds", type=float, default=100.0)
    parser.add_argument("--images", type=Path, metavar="FOLDER", help="where charts are drawn")
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
    shares = {f"{share:g} of the characters not A": share for share in OTHER_SHARES} if arguments.images else {}
    parts += [(what, lambda share=share: measured(keys_of_share(count, share), threads))  # type: ignore[misc]
              for what, share in shares.items()]
    found: dict[str, list[Line]] = {}
    for what, measure in parts:
        if time.monotonic() > end:
            print(f"{what}: left out, for {arguments.seconds:g} seconds are over")
            continue
        lines = found.setdefault(what, [])
        for name, seconds, size in measure():
            print(f"{what:38} {name:40} {1e3 * seconds:10.2f} ms {size / seconds / 1e6:10.1f} M/s", flush=True)
            lines.append((name, seconds, size))
    if arguments.images:
        draw(arguments.images, count, threads, found, shares)


def draw(folder: Path, count: int, threads: int, found: dict[str, list[Line]], shares: dict[str, float]) -> None:
    """The charts of what was measured, and that of the phases, which is measured now."""
    folder.mkdir(parents=True, exist_ok=True)
    lengths = {f"{width} bases": float(width) for width in LENGTHS}
    for name, title, across, places in (
            ("sorting_cuda_long.svg", f"Sorting {count:,} DNA keys", "characters of a key", lengths),
            ("sorting_cuda_by_skew.svg", f"Sorting {count:,} DNA keys of {SKEWED_WIDTH} characters, many A",
             "share of the characters that isn't A", shares)):
        if places.keys() <= found.keys():
            draw_rates(folder, name, title, across, {
                place: [line for line in found[what] if "prefix" not in line[0]] for what, place in places.items()})
        else:
            print(f"{name}: not drawn, for some of it was left out")
    kinds: dict[str, Callable[[], Ragged]] = {
        f"{width} bases": lambda width=width: random_keys(count, width)  # type: ignore[misc]
        for width in PHASE_LENGTHS}
    draw_phases(folder, {**kinds, "99 in 100 A": lambda: keys_of_share(count, OTHER_SHARES[4])}, threads)


if __name__ == "__main__":
    main()
