"""The experiments of A. Drozd's thesis on matching by BWT (section 3.5): those of a processor, and of its model.

    python -m benchmarks.exact_match_thesis FOLDER [--sizes 2000000 … 40000000] [--reads 50000] [--index-memory 32]

Draws in a folder

- reads a second by size of the reference, in an FM-index and in a suffix array that may both take so much memory, and
  are cut into as many parts as that asks for (figure 3.8);
- seconds to join what is found in 1 to 8 parts of an index, a million places in each (3.12);
- seconds that the model of 3.5.3 predicts for a reference of 6 GB by the share α of the memory that a part of the index
  has, in both orders, one after the other and with copying behind the look-up (3.11);
- seconds that it predicts by number of devices (3.5.4).

References are random bases, so that a read matches at one place whatever their size. Reads are 100 bases, of which 40
at least have to match; three in ten have an error. Seconds are those of one thread of the processor.
"""

import argparse
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from seqloom.core.alphabet import NUCLEOTIDE
from seqloom.core.context import Context
from seqloom.core.sequences import SequenceBatch
from seqloom.core.stages import IndexStage, SeedStage
from seqloom.plugins.exact_match.fm_index_cpu import FmIndexCpu
from seqloom.plugins.exact_match.fm_seed_cpu import FmMatchesCpu
from seqloom.plugins.exact_match.index_cpu import SuffixArrayCpu
from seqloom.plugins.exact_match.options import MatchOptions
from seqloom.plugins.exact_match.parted_matches import distinct_matches
from seqloom.plugins.exact_match.partition import ORDERS, Costs, Work, best_split, seconds
from seqloom.plugins.exact_match.seed_cpu import MaximalMatchesCpu
from seqloom.plugins.exact_match.seed_reference import in_order

from .charts import save_chart
from .whole_queries_gpu import reads_of

LENGTH, ROUNDS = 40, 3
"""Residues of a match at least."""
KINDS: dict[str, tuple[type[IndexStage], type[SeedStage]]] = {
    "FM-index": (FmIndexCpu, FmMatchesCpu), "suffix array": (SuffixArrayCpu, MaximalMatchesCpu)}
MERGED = 1_000_000
"""Places that each part gives."""
COSTS = Costs(0.13e-9, 0.03e-9, 0.0005)
"""Of an H200: to look up a byte of queries, to copy one, and of every meeting."""
MEMORY, REFERENCE, BITS = 2_600_000_000, 6_000_000_000, 10
"""Of the thesis: bytes of a Tesla C2050, bases of the reference, bits a base of the index."""
READS = 10_000_000_000
"""Bytes of reads of the model."""
DEVICES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
Series = dict[str, list[tuple[float, float]]]


def least(work: Callable[[], Any], rounds: int = ROUNDS) -> float:
    """Least seconds of the processor of some rounds after a first."""
    times = []
    for _ in range(rounds + 1):
        begin = time.process_time()
        work()
        times.append(time.process_time() - begin)
    return min(times[1:])


def part_of(targets: SequenceBatch, number: int, count: int, overlap: int) -> SequenceBatch:
    """One of some parts of the targets' residues, as a sequence, which reaches into the next one."""
    first, last = (targets.total_residues * n // count for n in (number, number + 1))
    return SequenceBatch.of(NUCLEOTIDE, [targets.residues[first : last + overlap]])


def search_time(kind: str, targets: SequenceBatch, queries: SequenceBatch, memory: int) -> tuple[int, float]:
    """Into how many parts memory for one cuts an index, and seconds to find the matches of all reads in each."""
    make, seed = (stage() for stage in KINDS[kind])
    one = SequenceBatch.of(NUCLEOTIDE, [targets.residues[:1_000_000]])
    count = -(-make.run(Context(), one).nbytes * targets.total_residues // one.total_residues // memory)
    options, taken = MatchOptions(length=LENGTH, maxmatch=True), 0.0
    for number in range(count):
        part = part_of(targets, number, count, int(queries.lengths.max()))
        index = make.run(Context(options=options), part)
        context = Context(slot="seed.matches", queries=queries, targets=part, options=options,
                          indexes={index.kind: index})
        taken += least(lambda c=context: seed.run(c, None))  # type: ignore[misc]
    return count, taken


def draw_sizes(folder: Path, sizes: list[int], reads: int, memory: int) -> None:
    """Reads a second by size of the reference."""
    generator, series = np.random.default_rng(4), Series()
    for size in sizes:
        targets = SequenceBatch.of(NUCLEOTIDE, [generator.integers(0, 4, size, np.uint8)])
        queries = reads_of(targets, reads, generator)
        for kind in KINDS:
            count, taken = search_time(kind, targets, queries, memory << 20)
            series.setdefault(kind, []).append((size, reads / taken))
            print("size", kind, size, f"parts: {count}", f"{taken:.3f} s", f"{reads / taken:,.0f} reads/s", sep="\t",
                  flush=True)
    save_chart(folder / "matches_by_memory.svg",
               f"Matches of {reads:,} reads of 100 bases, {memory} MiB for a part of the index, one thread",
               "bases of the reference", "reads per second", series)


def draw_joined(folder: Path) -> None:
    """Seconds to join what parts give."""
    generator, series = np.random.default_rng(5), Series()
    for parts in range(1, 9):
        rows = [np.stack([np.sort(generator.integers(0, 100 * MERGED, MERGED)),
                          generator.integers(0, 1 << 30, MERGED) + (n << 30), np.full(MERGED, 100)], axis=1)
                for n in range(parts)]
        for what, work in (("places of whole reads", lambda some=rows: in_order(np.concatenate(some))),
                           ("maximal matches", lambda some=rows: distinct_matches(np.concatenate(some)))):
            taken = least(work, 1)
            series.setdefault(what, []).append((parts, taken))
            print("joined", what, parts, f"{taken:.3f} s", sep="\t", flush=True)
    save_chart(folder / "matches_joined.svg", "Joining what is found in parts of the index, a million places in each",
               "parts", "seconds", series)


def draw_shares(folder: Path) -> None:
    """What the model says of a device of the thesis and of its reference, by the share of a part of the index."""
    series = Series()
    bounds = np.unique(np.geomspace(1, 400, 40).astype(int))
    for order in ORDERS:
        for buffers, how in ((1, "one after the other"), (2, "copied behind the look-up")):
            work = model_work(REFERENCE, buffers)
            parts = bounds[work.index / bounds < work.memory * 0.99]
            rooms = work.memory - work.index / parts
            queries = np.ceil(work.queries / (rooms / buffers))
            taken = seconds(work, COSTS, order, parts, queries)
            series[f"parts of the {order} stay, {how}"] = list(zip(
                (work.index / parts / work.memory).tolist(), taken.tolist(), strict=True))
    save_chart(folder / "matches_by_share.svg",
               f"Foretold: reads of {_giga(READS)} GB, a reference of {_giga(REFERENCE)}, memory of {_giga(MEMORY)}",
               "share of the memory that a part of the index has (alpha)", "seconds", series)


def draw_devices(folder: Path) -> None:
    """What the model says by number of devices."""
    series = Series()
    for reference in (REFERENCE, 4 * REFERENCE, 16 * REFERENCE):
        for devices in DEVICES:
            split = best_split(replace(model_work(reference, 2), devices=devices), COSTS)
            series.setdefault(f"{_giga(reference)} GB of reference", []).append((devices, split.seconds))
            print("devices", _giga(reference), devices, split, sep="\t")
    save_chart(folder / "matches_by_devices.svg",
               f"Foretold: {_giga(READS)} GB of reads, {_giga(MEMORY)} GB of memory a device", "devices", "seconds",
               series)


def model_work(reference: int, buffers: int) -> Work:
    return Work(reference * BITS // 8, READS, MEMORY, least_index=1 << 20, least_queries=10 << 20, buffers=buffers)


def _giga(count: int) -> str:
    return f"{count / 1e9:g}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--sizes", type=int, nargs="+", default=[2_000_000, 5_000_000, 10_000_000, 20_000_000,
                                                                 40_000_000])
    parser.add_argument("--reads", type=int, default=50_000)
    parser.add_argument("--index-memory", type=int, default=32, help="MiB for a part of the index")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    draw_shares(arguments.folder)
    draw_devices(arguments.folder)
    draw_joined(arguments.folder)
    draw_sizes(arguments.folder, arguments.sizes, arguments.reads, arguments.index_memory)


if __name__ == "__main__":
    main()
