"""Reads looked up whole in an FM-index, on a CUDA device and by threads of the host; how the partition model predicts.

    python -m benchmarks.whole_queries_gpu FOLDER [--sizes 10000000 100000000] [--reads 1000000] [--threads 16]

References are copies of two genomes (as of ``exact_match``), all but the first two with one base in fifty changed;
reads are 100 bases of them, three in ten with an error. Times are wall seconds of the look-up of both strands, from the
reads in the host's memory to all places there, kernels compiled and the index on the device before; in parts, with the
parts of the index copied anew. Draws charts of reads a second by size of the reference, by number and length of the
reads, and, as the model predicts and as it is, by the share of the memory that a part of the index has. Back ends and
splits are held to the same places; then matches of the two genomes are, and reads of 36 bases that may differ in up to
three, on both. Where there are several devices, reads a second by their number are drawn too.
"""

import argparse
import os
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from seqloom.core.alphabet import NUCLEOTIDE
from seqloom.core.context import Context
from seqloom.core.sequences import SequenceBatch
from seqloom.plugins.exact_match import fm_search_cuda, partition_cuda
from seqloom.plugins.exact_match.fm_index_cpu import FmIndexCpu
from seqloom.plugins.exact_match.fm_seed_cpu import FmMatchesCpu
from seqloom.plugins.exact_match.fm_seed_cuda import FmMatchesCuda
from seqloom.plugins.exact_match.near_seed_cpu import NearQueriesCpu
from seqloom.plugins.exact_match.near_seed_cuda import NearQueriesCuda
from seqloom.plugins.exact_match.options import MatchOptions
from seqloom.plugins.exact_match.partition import ORDERS, Split, seconds
from seqloom.plugins.exact_match.partition_cuda import Room
from seqloom.plugins.exact_match.seed_reference import Strand
from seqloom.plugins.exact_match.whole_seed_cpu import WholeQueriesCpu
from seqloom.plugins.exact_match.whole_seed_cuda import WholeQueriesCuda
from seqloom.testing import assert_same_records

from .charts import save_chart
from .exact_match import genomes

_LENGTH = 100
_LENGTHS = (20, 50, 100, 200, 400)
_PARTS = (1, 2, 3, 4, 6, 8)
Series = dict[str, list[tuple[float, float]]]


def bases() -> list[np.ndarray]:
    """The two genomes as codes."""
    return [NUCLEOTIDE.encode("".join(line for line in text.splitlines() if line[:1] != ">")) for text in genomes()]


def references(residues: int, generator: np.random.Generator) -> SequenceBatch:
    """Copies of the genomes, of so many residues together."""
    both, copies = bases(), []
    while (missing := residues - sum(map(len, copies))) > 0:
        base = both[len(copies) % 2][:missing]
        changed = generator.random(len(base)) < (0.02 if len(copies) > 1 else 0)
        copies.append(np.where(changed, generator.integers(0, 4, len(base)), base).astype(np.uint8))
    return SequenceBatch.of(NUCLEOTIDE, copies)


def reads_of(targets: SequenceBatch, count: int, generator: np.random.Generator,
             length: int = _LENGTH) -> SequenceBatch:
    """Stretches of the targets, three in ten with an error."""
    starts = generator.integers(0, targets.total_residues - length, count, np.int32)
    reads = targets.residues[starts[:, None] + np.arange(length, dtype=np.int32)]
    wrong = np.flatnonzero(generator.random(count) < 0.3)
    at = generator.integers(0, length, len(wrong))
    reads[wrong, at] = (reads[wrong, at] + 1) % 4
    return SequenceBatch(NUCLEOTIDE, reads.reshape(-1), np.arange(count + 1, dtype=np.int64) * length,
                         np.arange(count, dtype=np.int64))


def both_strands(queries: SequenceBatch) -> list[Strand]:
    return [WholeQueriesCpu.strand_of(queries, frame, False) for frame in (1, -1)]


def least(work: Callable[[], Any], rounds: int = 2) -> tuple[float, float, Any]:
    """Least wall seconds of some rounds after a first, those of the first, and what the last gave."""
    times, result = [], None
    for _ in range(rounds + 1):
        result = None  # given up before the clock runs
        begin = time.perf_counter()
        result = work()
        times.append(time.perf_counter() - begin)
    return min(times[1:]), times[0], result


def anew(work: Callable[..., Any], *given: Any) -> Any:
    """What ``work`` gives with nothing of the index on the device."""
    fm_search_cuda.forget()
    return work(*given)


def in_order(found: list[tuple[np.ndarray, np.ndarray]]) -> list[np.ndarray]:
    return [rows[np.lexsort(rows.T)] for rows in (np.stack(part, axis=1) for part in found)]


def same(one: list[tuple[np.ndarray, np.ndarray]], other: list[tuple[np.ndarray, np.ndarray]]) -> None:
    if not all(map(np.array_equal, in_order(one), in_order(other))):
        raise AssertionError("places differ")


def say(*words: object) -> None:
    print(*words, sep="\t", flush=True)


class Bench:
    """References of one size, their index, and both back ends."""

    def __init__(self, residues: int, threads: int, generator: np.random.Generator) -> None:
        self.targets, self.threads, self.generator = references(residues, generator), threads, generator
        begin = time.perf_counter()
        self.index = FmIndexCpu().run(Context(), self.targets)
        say("index", f"{residues:,} residues", f"{time.perf_counter() - begin:.1f} s",
            f"{self.index.nbytes / residues:.2f} bytes a residue")

    def context(self, queries: SequenceBatch, **more: Any) -> Context:
        return Context(slot="seed.queries", queries=queries, targets=self.targets, threads=self.threads,
                       indexes={"fm-index": self.index}, options=MatchOptions(both=True), **more)

    def compare(self, queries: SequenceBatch) -> Iterator[tuple[str, float]]:
        """Reads a second of both back ends, which must find the same places."""
        context, strands, found = self.context(queries), both_strands(queries), []
        on_host = WholeQueriesCuda(WholeQueriesCuda.Options(places="host"))
        for stage, name in ((WholeQueriesCpu(), f"cpu, threads: {self.threads}"), (WholeQueriesCuda(), "cuda"),
                            (on_host, "cuda, places from the host")):
            taken, _, places = least(partial(stage.places, context, strands))
            found.append(places)
            if name == "cuda":
                again, _, _ = least(partial(anew, stage.places, context, strands))
                say("cuda, index copied anew", f"{again:.4f} s")
            say(name, f"{self.targets.total_residues:,} residues", f"{len(queries):,} reads of {queries.lengths[0]}",
                f"{taken:.4f} s", f"{len(queries) / taken / 1e6:.2f} M reads/s",
                f"{sum(len(part) for part, _ in places):,} places")
            yield name, len(queries) / taken
        same(*found[:2])
        same(*found[1:])

    def partitions(self, queries: SequenceBatch, memory: int) -> Series:
        """Reads a second, predicted and as it is, by the share of a memory that a part of the index has.

        Parts of the queries are copied while others are looked up, and one after the other.
        """
        context, strands, stage = self.context(queries), both_strands(queries), WholeQueriesCuda()
        room = Room(memory, 1 << 20)
        partition, costs = stage.partition(context, strands, room), stage.costs(context)
        say("costs", f"C {costs.search * 1e9:.4f} ns a byte", f"beta {costs.copy * 1e9:.4f} ns a byte",
            f"{costs.meeting * 1e6:.0f} us a meeting")
        wanted, series = WholeQueriesCpu().places(context, strands), {}
        for buffers, how in ((2, ""), (1, ", one after the other")):
            with patch.object(partition_cuda, "_BUFFERS", buffers):
                work = partition.work()
                for count in _PARTS:
                    parts = partition.parts(count)
                    taken = max(fm_search_cuda.part_bytes(part, fm_search_cuda.Layout()) for part in parts)
                    if taken + work.buffers * work.least_queries > memory:
                        continue
                    queries_in = -(-work.queries // int(work.largest_part(memory - taken)))
                    for order in ORDERS:
                        predicted = float(seconds(work, costs, order, np.array([count]), np.array([queries_in]))[0])
                        split = Split(order, count, queries_in, taken / memory, predicted)
                        measured, _, places = least(partial(anew, stage.looked_up, context, strands, parts, split,
                                                            room))
                        same(wanted, places)
                        say(f"split{how}", split, f"{measured:.4f} s taken",
                            f"predicted / taken {predicted / measured:.2f}")
                        for what, value in (("predicted", predicted), ("measured", measured)):
                            series.setdefault(f"parts of the {order} stay, {what}{how}", []).append(
                                (split.share, len(queries) / value))
        return series

    def devices(self, queries: SequenceBatch) -> Series:
        """Reads a second by number of devices, 1, 2, 4 … and all, predicted and as it is: the thesis's 3.5.4."""
        context, strands, all_devices = self.context(queries), both_strands(queries), fm_search_cuda.device_count()
        stage, wanted = WholeQueriesCuda(), WholeQueriesCpu().places(context, strands)
        series: Series = {}
        for what, memory, order, parts_in in (
                ("a part of the index on each", 1 << 40, "index", all_devices),
                ("all of the index on each", 1 << 40, "queries", 1),
                ("memory for a part of the index", self.index.nbytes * 3 // 2 // all_devices, "index", all_devices)):
            split, room = Split(order, parts_in, 2 * all_devices, 0.0, 0.0), Room(memory, 1 << 20)
            partition = stage.partition(context, strands, room)
            search = partial(stage.looked_up, context, strands, partition.parts(parts_in), split, room)
            one = 0.0
            for count in sorted({1 << n for n in range(all_devices.bit_length())} | {all_devices}):
                with patch.object(fm_search_cuda, "device_count", return_value=count):
                    costs = stage.costs(context)
                    taken, _, places = least(search, 3)
                    work = partition.work()
                same(wanted, places)
                [predicted] = seconds(work, costs, order, np.array([parts_in]), np.array([2 * all_devices])).tolist()
                one = one or taken
                say(what, f"devices: {count}", f"{taken:.4f} s, predicted {predicted:.4f}",
                    f"{one / taken:.2f} times as quick as one")
                for how, value in (("measured", taken), ("predicted", predicted)):
                    series.setdefault(f"{what}, {how}", []).append((count, len(queries) / value))
        return series

    def planned(self, queries: SequenceBatch, memory: int) -> None:
        """What the planner makes of a device of little memory."""
        context = self.context(queries, device_memory=memory)
        strands = both_strands(queries)
        places = WholeQueriesCuda().places(context, strands)
        same(WholeQueriesCpu().places(context, strands), places)
        say("planned", f"{memory:,} bytes", dict(context.counters))


    def near(self, queries: SequenceBatch) -> None:
        """Reads that may differ in a few residues, on both back ends; then with memory for a part of the index."""
        strands = both_strands(queries)
        for mismatches in range(4):
            for memory in (None, self.index.nbytes // 2):
                context = self.context(queries, device_memory=memory)
                options = NearQueriesCuda.Options(mismatches=mismatches)
                times, _, found = zip(*(least(partial(stage(options).places, context, strands))
                                        for stage in (NearQueriesCpu, NearQueriesCuda)), strict=True)
                same(*found)
                say(f"{mismatches} other residues, memory {memory}", f"{len(queries):,} reads",
                    f"{sum(len(places) for _, places in found[0]):,} places",
                    f"cpu, threads: {self.threads}: {times[0]:.3f} s", f"cuda: {times[1]:.3f} s")


def compare_matches(threads: int) -> None:
    """Maximal matches of the two genomes, on both back ends."""
    one, other = (SequenceBatch.of(NUCLEOTIDE, [residues]) for residues in bases())
    index = FmIndexCpu().run(Context(), one)
    for mode, length in (("mum", 20), ("mumreference", 20), ("maxmatch", 20)):
        context = Context(queries=other, targets=one, indexes={"fm-index": index}, threads=threads,
                          options=MatchOptions(both=True, length=length, **{mode: True}))
        stages = FmMatchesCpu(), FmMatchesCuda()
        times, first, found = zip(*(least(partial(stage.run, context, None)) for stage in stages), strict=True)
        assert_same_records(*found)
        say(f"{mode}, length {length}", f"{len(found[0]):,} matches", f"cpu, threads: {threads}: {times[0]:.4f} s",
            f"cuda: {times[1]:.4f} s, first {first[1]:.1f} s")


def parted_matches(bench: Bench, threads: int) -> None:
    """Maximal matches of long queries against an index of four times a device's memory."""
    queries = reads_of(bench.targets, 2000, bench.generator, 10_000)
    strands = both_strands(queries)
    for mode in ("mumreference", "maxmatch"):
        for memory in (None, bench.index.nbytes // 3):
            context = Context(slot="seed.matches", queries=queries, targets=bench.targets, threads=threads,
                              indexes={"fm-index": bench.index}, device_memory=memory,
                              options=MatchOptions(both=True, length=40, **{mode: True}))
            times, _, found = zip(*(least(partial(stage.matches, context, strands), 1)
                                    for stage in (FmMatchesCpu(), FmMatchesCuda())), strict=True)
            for one, other in zip(*found, strict=True):
                if not np.array_equal(one[np.lexsort(one.T)], other[np.lexsort(other.T)]):
                    raise AssertionError(f"{mode}: matches differ")
            counters = {name: context.counters[name] // context.counters["splits"]
                        for name in ("index_parts", "query_parts")}
            say(f"{mode}, memory {memory}", counters, f"cpu, threads: {threads}: {times[0]:.3f} s",
                f"cuda: {times[1]:.3f} s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000_000, 30_000_000, 100_000_000])
    parser.add_argument("--reads", type=int, default=1_000_000)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    arguments = parser.parse_args()
    folder, generator = arguments.folder, np.random.default_rng(4)
    folder.mkdir(parents=True, exist_ok=True)
    series: Series = {}
    benches = [Bench(size, arguments.threads, generator) for size in sorted(arguments.sizes)]
    for bench in benches:
        for name, rate in bench.compare(reads_of(bench.targets, arguments.reads, generator)):
            series.setdefault(name, []).append((bench.targets.total_residues, rate))
    what = f"{arguments.reads:,} reads of {_LENGTH} bases, both strands"
    save_chart(folder / "reads_by_reference.svg", what, "residues of the reference", "reads per second", series)
    compare_matches(arguments.threads)
    benches[0].near(reads_of(benches[0].targets, arguments.reads // 10, generator, 36))
    parted_matches(benches[0], arguments.threads)
    middle, largest = benches[len(benches) // 2], benches[-1]
    largest.planned(reads_of(largest.targets, arguments.reads, generator), largest.index.nbytes // 2)
    if fm_search_cuda.device_count() > 1:
        series = largest.devices(reads_of(largest.targets, 2 * arguments.reads, generator))
        save_chart(folder / "reads_by_devices.svg",
                   f"{2 * arguments.reads:,} reads of {_LENGTH} bases, {largest.targets.total_residues:,} residues of "
                   "reference", "devices", "reads per second", series)
    memory = middle.index.nbytes * 5 // 4
    series = middle.partitions(reads_of(middle.targets, arguments.reads, generator), memory)
    title = f"{what}; {middle.targets.total_residues:,} residues of reference, {memory >> 20:,} MiB of memory"
    save_chart(folder / "reads_by_share.svg", title, "share of the memory that a part of the index has (alpha)",
               "reads per second", series)
    for name, across, settings in (
            ("reads_by_length", "residues of a read", [(arguments.reads // 4, length) for length in _LENGTHS]),
            ("reads_by_number", "reads", [(arguments.reads * n // 100, _LENGTH) for n in (1, 3, 10, 30, 100)])):
        series = {}
        for count, length in settings:
            for back_end, rate in largest.compare(reads_of(largest.targets, count, generator, length)):
                series.setdefault(back_end, []).append((length if name == "reads_by_length" else count, rate))
        title = f"{largest.targets.total_residues:,} residues of reference, both strands"
        save_chart(folder / f"{name}.svg", title, across, "reads per second", series)


if __name__ == "__main__":
    main()
