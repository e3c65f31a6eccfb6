"""The experiments of Munekawa, Ino & Hagihara (2010, section 6.2) on a CUDA device of today, their kernels and ours.

    python -m benchmarks.smith_waterman_paper FASTA [--copies 60] [--volumes 16] [--images FOLDER]

Targets are the proteins of a FASTA file and copies of them with their residues shuffled. Prints table 3 of the paper
(time and cells a second by length of the query), table 4 (operations and bytes a second that kernels do without the
savings of the method, 10 and 42 a cell, and bytes that they fetch from memory) and both halves of figure 8: what a
search takes where volumes are loaded, sent and searched one after the other, in steps and by the engine with that
switched off, and where loading runs beside searching, held to the model of section 5.4. Draws in a folder table 3,
table 4 as shares of what the device can do, which say whether computing or memory binds, and figure 8. Where there are
several devices, figures 9 to 11 are made with 1, 2, 4 … of them in place of nodes: seconds, cells a second and speed-up
of whole searches for 1 to 64 queries of all these lengths, from the host's memory.
"""

import argparse
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from unittest.mock import patch

import numpy as np
from seqloom.core.alphabet import PROTEIN
from seqloom.core.engine.memory import MemorySource
from seqloom.core.sequences import SequenceBatch

from .charts import save_bars, save_chart
from .smith_waterman_gpu import (
    antidiagonal_targets,
    asked,
    best_of,
    compiled,
    proteins,
    records,
    resident,
    scoring,
    search,
    shuffled_copies,
    unit,
)

LENGTHS = tuple(range(63, 512, 64))
PAPER_GCUPS = (2.81, 5.55, 7.52, 8.32, 7.68, 7.96, 8.00, 8.12)
"""Of its table 3, on a GeForce GTX 280."""
OPERATIONS, BYTES = 10, 42
"""Of a cell, as section 4 counts them."""
QUERIES = (1, 2, 4, 8, 16, 32, 64)
THREADS = 3
"""Of the host for each device."""
INTEGER_LANES = 64
"""Integer operations a clock of a multiprocessor of compute capability 8.0 and 9.0."""
FETCHED = {"single cells": 1.0, "10 and 6 cells": 4 / 16, "4 × 4 cells": 4 / 16}
"""Bytes of residues that a cell takes from the device's memory, by the scheme of figure 6."""


def kernel_seconds(targets: SequenceBatch, queries: Sequence[np.ndarray]) -> dict[str, list[float]]:
    """Seconds of the paper's kernels and of ours with all targets on the device, by length of the query."""
    from seqloom.plugins.smith_waterman.antidiagonal_cuda import SCHEMES

    pairs, costs = antidiagonal_targets(targets), scoring()
    found = {name: [best_of(lambda q=query, s=scheme: pairs.scores(q, costs, s)) for query in queries]
             for name, scheme in zip(FETCHED, SCHEMES.values(), strict=True)}
    with resident(targets) as device:
        found["ours"] = [best_of(lambda q=query: device.scores([asked(q)], costs)) for query in queries]
    return found


@dataclass(frozen=True)
class Steps:
    """What a search of some volumes takes: seconds of a volume, and of the whole.

    Attributes:
        kernels, rest, loading: T1, T2 and T3 of the paper, of a volume.
        volumes: their number.
        one_by_one: all steps, one after the other.
        switched_off, overlapped: by the engine, without and with loading beside searching.
    """

    kernels: float
    rest: float
    loading: float
    volumes: int
    one_by_one: float
    switched_off: float
    overlapped: float

    @property
    def foretold(self) -> float:
        """Section 5.4: the longer of computing and loading counts, but for the first and the last."""
        return ((self.volumes - 1) * (max(self.kernels, self.loading) + self.rest)
                + self.kernels + self.rest + self.loading)


def steps(targets: SequenceBatch, query: np.ndarray, volumes: int) -> Steps:
    """A search in its steps, one after the other, then by the engine."""
    from seqloom.core.cuda.transfer import synchronize
    from seqloom.plugins.common.resident_cuda import device_memory

    batch = SequenceBatch.of(PROTEIN, [PROTEIN.decode(query)])
    source = MemorySource(replace(targets, names=range(len(targets))))
    size = -(-targets.total_residues // volumes)
    spans = source.plan(size)
    loading, whole, kernels = [], [], []
    for span in spans:
        begin = time.perf_counter()
        volume = source.read(span)
        with device_memory().volume(volume, None) as held:
            held.sending.wait()
            synchronize(held.queue)
            middle = time.perf_counter()
            unit(batch, volume, source)
            end = time.perf_counter()
        loading.append(middle - begin)
        whole.append(end - middle)
        if len(kernels) < 3:
            with resident(volume) as device:
                kernels.append(best_of(lambda d=device: d.scores([asked(query)], scoring())))
    t1, t3 = float(np.median(kernels)), float(np.median(loading))
    t2 = max(0.0, float(np.median(whole)) - t1)
    both = (search(batch, targets, 1, rounds=3, volume_residues=size, ahead=ahead, score_only=True).seconds
            for ahead in (False, True))
    return Steps(t1, t2, t3, len(spans), sum(loading) + sum(whole), *both)


def limits() -> tuple[float, float]:
    """Integer operations and bytes of memory a second that the device can do at most."""
    from numba import cuda

    device = cuda.get_current_device()
    operations = device.MULTIPROCESSOR_COUNT * INTEGER_LANES * device.CLOCK_RATE * 1e3
    return operations, 2 * device.MEMORY_CLOCK_RATE * 1e3 * device.GLOBAL_MEMORY_BUS_WIDTH / 8


def by_devices(targets: SequenceBatch, lengths: Sequence[int],
               generator: np.random.Generator) -> dict[int, dict[int, tuple[float, float]]]:
    """Seconds and cells a second of whole searches, by number of queries and of devices: 1, 2, 4 … and all."""
    from seqloom.core.backends import device_count
    from seqloom.plugins.common import resident_index_cuda
    from seqloom.plugins.smith_waterman import seed_cuda

    there = device_count()
    counts = sorted({1 << n for n in range(there.bit_length())} | {there})
    found: dict[int, dict[int, tuple[float, float]]] = {}
    for number in QUERIES:
        some = proteins(np.resize(lengths, number).tolist(), generator)
        batch = SequenceBatch.of(PROTEIN, [PROTEIN.decode(query) for query in some])
        for devices in counts:
            with (patch.object(seed_cuda, "device_count", return_value=devices),
                  patch.object(resident_index_cuda, "device_count", return_value=devices)):
                seconds = search(batch, targets, THREADS * devices, rounds=3, score_only=True).seconds
            found.setdefault(number, {})[devices] = seconds, batch.total_residues * targets.total_residues / seconds
            print(f"| {number} | {devices} | {seconds:.3f} | {found[number][1][0] / seconds:.2f} | "
                  f"{found[number][devices][1] / 1e9:,.0f} |", flush=True)
    return found


def draw_devices(folder: Path, found: dict[int, dict[int, tuple[float, float]]]) -> None:
    """Seconds, speed-up and cells a second by number of devices."""
    for name, title, up, value in (
            ("sw_devices_seconds", "Seconds", "seconds", lambda row, n: row[n][0]),
            ("sw_devices", "Speed-up", "times as fast as one device", lambda row, n: row[1][0] / row[n][0]),
            ("sw_devices_rates", "Cells a second", "10⁹ cells a second", lambda row, n: row[n][1] / 1e9)):
        save_chart(folder / f"{name}.svg", f"{title} of whole searches by number of devices", "devices", up, {
            f"{number} quer{'y' if number == 1 else 'ies'}": [(float(n), value(row, n)) for n in row]
            for number, row in found.items()})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("fasta")
    parser.add_argument("--copies", type=int, default=60)
    parser.add_argument("--volumes", type=int, default=16, help="of the search in steps")
    parser.add_argument("--lengths", type=int, nargs="*", default=LENGTHS)
    parser.add_argument("--images", type=Path, metavar="FOLDER", help="where the figures are drawn")
    arguments = parser.parse_args()
    generator = np.random.default_rng(7)
    print(f"kernels compiled in {compiled(arguments.lengths, [], os.cpu_count() or 1):.1f} s", flush=True)
    targets = shuffled_copies(records(arguments.fasta), arguments.copies, generator)
    queries = proteins(arguments.lengths, generator)
    found = kernel_seconds(targets, queries)
    cells = [len(query) * targets.total_residues for query in queries]
    rates = {name: [count / seconds / 1e9 for count, seconds in zip(cells, times, strict=True)]
             for name, times in found.items()}
    heads = [f"{name}, s | GCUPS" for name in found]
    print(f"\n{targets.total_residues:,} residues\n\n| query | {' | '.join(heads)} |")
    print("|" + " --- |" * (1 + 2 * len(heads)))
    for n, query in enumerate(queries):
        row = [f"{found[name][n]:.4f} | {rates[name][n]:,.0f}" for name in found]
        print(" | ".join([f"| {len(query)}", *row]), "|")
    print("\n| query | kernel | GIPS | GB/s | fetched, GB/s |\n| --- | --- | --- | --- | --- |")
    for n, query in enumerate(queries):
        for name in FETCHED:
            rate = rates[name][n]
            print(f"| {len(query)} | {name} | {OPERATIONS * rate:,.0f} | {BYTES * rate:,.0f} | "
                  f"{FETCHED[name] * rate:,.0f} |")
    print("\n| query | T1 | T2 | T3, ms a volume | one by one, s | switched off, s | side by side, s | saved | "
          "foretold, s | off by |\n|" + " --- |" * 10, flush=True)
    measured = []
    for query in queries:
        taken = steps(targets, query, arguments.volumes)
        measured.append(taken)
        print(f"| {len(query)} | {taken.kernels * 1e3:.1f} | {taken.rest * 1e3:.1f} | {taken.loading * 1e3:.1f} | "
              f"{taken.one_by_one:.3f} | {taken.switched_off:.3f} | {taken.overlapped:.3f} | "
              f"{1 - taken.overlapped / taken.one_by_one:.0%} | {taken.foretold:.3f} | "
              f"{taken.overlapped / taken.foretold - 1:+.0%} |", flush=True)
    print("\n| queries | devices | seconds | speed-up | GCUPS |\n|" + " --- |" * 5, flush=True)
    scaling = by_devices(targets, arguments.lengths, generator)
    if arguments.images:
        arguments.images.mkdir(parents=True, exist_ok=True)
        draw(arguments.images, arguments.lengths, rates, measured)
        if len(scaling[1]) > 1:
            draw_devices(arguments.images, scaling)


def draw(folder: Path, lengths: Sequence[int], rates: dict[str, list[float]], measured: Sequence[Steps]) -> None:
    """The charts of cells a second, of shares of the device's limits, and of a search's steps."""
    lines = {name: [(float(n), rate) for n, rate in zip(lengths, some, strict=True)] for name, some in rates.items()}
    if len(lengths) == len(PAPER_GCUPS):
        lines["GeForce GTX 280 (2010)"] = [(float(n), rate) for n, rate in zip(lengths, PAPER_GCUPS, strict=True)]
    save_chart(folder / "sw_paper_rates.svg", "Cells a second by length of the query", "residues of the query",
               "10⁹ cells a second", lines)
    most = dict(zip(("operations", "bytes fetched"), limits(), strict=True))
    shares = {f"{what}, {name}": [(float(n), 100 * rate * 1e9 * of_cell / most[what])
                                  for n, rate in zip(lengths, rates[name], strict=True)]
              for name in FETCHED for what, of_cell in (("operations", OPERATIONS), ("bytes fetched", FETCHED[name]))}
    save_chart(folder / "sw_paper_limits.svg", "What binds: of integer operations and of the memory's bytes a second",
               "residues of the query", "percent of what the device can do", shares)
    count = measured[0].volumes
    parts = {"kernels (T1)": [count * some.kernels for some in measured],
             "other work of the host (T2)": [count * some.rest for some in measured],
             "loading and sending (T3)": [count * some.loading for some in measured]}
    save_bars(folder / "sw_paper_steps.svg", "A search one step after the other, and with loading beside it",
              "residues of the query", "seconds", [str(n) for n in lengths], parts,
              {"measured, with loading beside it": [some.overlapped for some in measured],
               "measured, with that switched off": [some.switched_off for some in measured]})


if __name__ == "__main__":
    main()
