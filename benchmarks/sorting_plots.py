"""Throughput of the sorters by length of keys and by number of keys, as charts and as a table.

    python -m benchmarks.sorting_plots FOLDER [--backends cpu cuda] [--threads N] [--keys N] [--most N]

Keys are random DNA. Times are the best of a few runs, wall seconds, from keys in the host's memory to their order
there; "resident" ones of CUDA are those of the sort alone, of words on the device.
"""

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from seqloom.core.records import Ragged
from seqloom.installed import registry

from .charts import save_chart

LENGTHS = (4, 8, 12, 16, 20, 24, 32, 40, 48, 64, 96, 128, 192, 256)
SORTERS = {"cpu": ("msd-radix", "lsd-radix", "multikey-quicksort"), "cuda": ("msd-radix", "lsd-radix")}
WIDTH = 20


def random_keys(count: int, width: int) -> Ragged:
    """DNA keys of one length."""
    generator = np.random.default_rng(width)
    letters = np.frombuffer(b"ACGT", np.uint8)
    return Ragged(np.arange(count + 1, dtype=np.int64) * width,
                  letters[generator.integers(0, 4, count * width, np.uint8)])


def best_time(work: Callable[[], Any], rounds: int = 3) -> float:
    times = []
    for _ in range(rounds + 1):
        begin = time.perf_counter()
        work()
        times.append(time.perf_counter() - begin)
    return min(times[1:])


def resident_time(count: int, bits: int) -> float:
    """Seconds in which the device sorts words that are there."""
    from numba import cuda
    from seqloom.plugins.sorting.radix_cuda import DeviceWords

    there = DeviceWords(count)
    source = cuda.to_device(np.random.default_rng(1).integers(0, 1 << bits, count, np.uint64))
    times = []
    for _ in range(4):
        there.load(count, lambda words: words[:count].copy_to_device(source), numbered=True)
        begin, end = cuda.event(), cuda.event()
        begin.record()
        there.sort(count, bits)
        end.record()
        end.synchronize()
        times.append(cuda.event_elapsed_time(begin, end) / 1000)
    return min(times[1:])


def measured(keys: Ragged, width: int, backends: Sequence[str], threads: int) -> Iterator[tuple[str, float]]:
    """Name and seconds of everything that sorts."""
    for backend in backends:
        for name in SORTERS[backend]:
            sorter = registry().sorter(name, backend)
            sorter.threads = threads
            yield f"{name}, {backend}", best_time(lambda sorter=sorter: sorter.order(keys))  # type: ignore[misc]
    if "cuda" in backends and 2 * width <= 64:
        yield "cuda, resident", resident_time(len(keys), 2 * width)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--backends", nargs="+", default=["cpu"], choices=list(SORTERS))
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--keys", type=int, default=2_000_000, help="keys of the chart by length")
    parser.add_argument("--most", type=int, default=10_000_000, help="most keys of the chart by number")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    counts = [n for power in range(3, 10) for n in (10**power, 3 * 10**power) if n <= arguments.most]
    charts: dict[str, dict[str, list[tuple[float, float]]]] = {"length": {}, "number": {}}
    for chart, sizes in (("length", [(arguments.keys, width) for width in LENGTHS]),
                         ("number", [(count, WIDTH) for count in counts])):
        for count, width in sizes:
            for name, seconds in measured(random_keys(count, width), width, arguments.backends, arguments.threads):
                charts[chart].setdefault(name, []).append((width if chart == "length" else count, count / seconds))
                print(f"{name}\t{count}\t{width}\t{seconds:.6f}\t{count / seconds / 1e6:.1f} M keys/s", flush=True)
    threads = f"{arguments.threads} thread{'s' * (arguments.threads > 1)}"
    save_chart(arguments.folder / "sorting_by_length.svg", f"Sorting {arguments.keys:,} DNA keys, {threads}",
               "letters of a key", "keys per second", charts["length"])
    save_chart(arguments.folder / "sorting_by_number.svg", f"Sorting DNA keys of {WIDTH} letters, {threads}",
               "number of keys", "keys per second", charts["number"])


if __name__ == "__main__":
    main()
