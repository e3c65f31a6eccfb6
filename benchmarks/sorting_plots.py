"""Throughput of the sorters by length of keys and by number of keys: measured as a table, drawn as charts.

    python -m benchmarks.sorting_plots measure TABLE [--backends cpu cuda] [--threads N] [--keys N] [--most N]
    python -m benchmarks.sorting_plots draw TABLE [TABLE …] FOLDER

Keys are random DNA. Times are the best of a few runs, wall seconds, from keys in the host's memory to their order
there; "resident" ones of CUDA are those of the sort alone, of words on the device; "bus" ones those of copying the keys
to the device and four bytes a key back, from and to memory that it reads and writes by itself.

The table has a line per measurement: chart, sorter, threads, keys, characters of a key, seconds; apart by tabs.
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
    characters = np.frombuffer(b"ACGT", np.uint8)
    return Ragged.even(characters[generator.integers(0, 4, (count, width), np.uint8)])


def best_time(work: Callable[[], Any], rounds: int = 3) -> float:
    """Least seconds of some rounds after a first; what they give is given up when the clock stands."""
    times = []
    for _ in range(rounds + 1):
        begin = time.perf_counter()
        result = work()
        times.append(time.perf_counter() - begin)
        del result
    return min(times[1:])


def resident_time(count: int, bits: int) -> float:
    """Seconds in which the device sorts words that are there."""
    from numba import cuda
    from seqloom.plugins.common.radix_cuda import DeviceWords

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


def bus_time(keys: Ragged) -> float:
    """Seconds in which the characters of keys go to the device and a row of four bytes for each comes back."""
    from numba import cuda

    characters, rows = keys.values.nbytes, 4 * len(keys)
    here, there = cuda.pinned_array(max(characters, rows), np.uint8), cuda.device_array(max(characters, rows), np.uint8)
    here[:] = 1
    shorter = here[:characters], there[:characters], here[:rows], there[:rows]

    def send() -> None:
        shorter[1].copy_to_device(shorter[0])
        shorter[3].copy_to_host(shorter[2])
        cuda.synchronize()

    return best_time(send)


def measured(keys: Ragged, width: int, backends: Sequence[str], threads: int) -> Iterator[tuple[str, float]]:
    """Name and seconds of everything that sorts."""
    for backend in backends:
        for name in SORTERS[backend]:
            sorter = registry().sorter(name, backend)
            sorter.threads = threads
            yield f"{name}, {backend}", best_time(lambda sorter=sorter: sorter.order(keys))  # type: ignore[misc]
    if "cuda" in backends:
        if 2 * width <= 64:
            yield "cuda, resident", resident_time(len(keys), 2 * width)
        yield "bus", bus_time(keys)


def measure(arguments: argparse.Namespace) -> None:
    counts = [n for power in range(3, 10) for n in (10**power, 3 * 10**power) if n <= arguments.most]
    sizes = [("number", count, WIDTH) for count in counts] + [("length", arguments.keys, width) for width in LENGTHS]
    with arguments.table.open("w") as table:
        for chart, count, width in sizes:
            for name, seconds in measured(random_keys(count, width), width, arguments.backends, arguments.threads):
                print(chart, name, arguments.threads, count, width, f"{seconds:.7f}", sep="\t", file=table, flush=True)


def draw(arguments: argparse.Namespace) -> None:
    rows = [line.split("\t") for table in arguments.tables for line in table.read_text().splitlines()]
    where = "cuda_" if any("cuda" in row[1] for row in rows) else ""
    arguments.folder.mkdir(parents=True, exist_ok=True)
    for chart, across in (("length", "characters of a key"), ("number", "number of keys")):
        chosen = [row for row in rows if row[0] == chart]
        if not chosen:
            continue
        series: dict[str, list[tuple[float, float]]] = {}
        for _, name, _, count, width, seconds in chosen:
            place = int(width) if chart == "length" else int(count)
            series.setdefault(name, []).append((place, int(count) / float(seconds)))
        threads, count, width = chosen[0][2:5]
        what = f"{int(count):,} DNA keys" if chart == "length" else f"DNA keys of {width} characters"
        save_chart(arguments.folder / f"sorting_{where}by_{chart}.svg",
                   f"Sorting {what}, {threads} thread{'s' * (threads != '1')}", across, "keys per second", series)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    command = commands.add_parser("measure")
    command.set_defaults(run=measure)
    command.add_argument("table", type=Path)
    command.add_argument("--backends", nargs="+", default=["cpu"], choices=list(SORTERS))
    command.add_argument("--threads", type=int, default=1)
    command.add_argument("--keys", type=int, default=2_000_000, help="keys of the chart by length")
    command.add_argument("--most", type=int, default=10_000_000, help="most keys of the chart by number")
    command = commands.add_parser("draw")
    command.set_defaults(run=draw)
    command.add_argument("tables", type=Path, nargs="+")
    command.add_argument("folder", type=Path)
    arguments = parser.parse_args()
    arguments.run(arguments)


if __name__ == "__main__":
    main()
