"""Nucleotide BLAST on CUDA devices: rate of the scan, whole searches, memory, and commands beside one core.

``python -m benchmarks.nucleotide_blast_gpu FASTA…`` takes genomes and mutated copies of them, ``--bases`` in all.
``scan``: the two passes and the ungapped extension on resident volumes, in bases a second. ``search``: whole searches
from host memory, by several threads and by one, and those of one core of the CPU on a part of the bases, whose rows are
compared. ``memory``: the same with a tenth of the memory that the packed bases take, or 16 MiB. ``pipeline``: searches
of several queries, each a batch, one after the other and with batches and volumes overlapping, which is G-BLASTN's
pipeline mode. ``command``: `seqloom` from a database to a file, in turns with itself on one core. ``peer``: the same
beside one core of blastn (``--blastn``), with queries in batches that are drawn from the sequences themselves; with
``--targets random`` there are no copies of these, but random bases.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from seqloom.core.alphabet import NUCLEOTIDE
from seqloom.core.context import Context, SearchSpace
from seqloom.core.engine.engine import Engine
from seqloom.core.engine.memory import MemorySink, MemorySource
from seqloom.core.engine.planning import Settings
from seqloom.core.pipeline import compose
from seqloom.core.sequences import SequenceBatch
from seqloom.installed import registry
from seqloom.testing import assert_same_hits

from .smith_waterman_gpu import records, show, slot_seconds, write_fasta
from .timing import Timing, seconds_of

TASKS = ("megablast", "blastn", "dc-megablast")
QUERIES = ("1x500", "1x10000", "1x100000", "100x500", "20x10000")
MUTATED, IN_QUERIES = 0.2, 0.03
"""Share of bases that are replaced in copies of the genomes, and in queries."""
SHARE = 0.1
"""Of the bases: what one core searches, and the memory of the part ``memory``."""
LEAST_MEMORY = 1 << 24
"""For the tables of words alone, and hits of some targets."""
REPEATS = 3


def mutated(bases: np.ndarray, rate: float, generator: np.random.Generator) -> np.ndarray:
    """A copy with a share of the bases replaced by random ones."""
    copy = bases.copy()
    places = generator.integers(0, len(bases), int(rate * len(bases)))
    copy[places] = generator.integers(0, 4, len(places), np.uint8)
    return copy


def copies(texts: list[str], total: int, generator: np.random.Generator) -> SequenceBatch:
    """The sequences and mutated copies of them, until there are so many bases."""
    first = SequenceBatch.of(NUCLEOTIDE, texts)
    parts, lengths = [first.residues], [first.lengths]
    while sum(map(len, parts)) < total:
        parts.append(mutated(first.residues, MUTATED, generator))
        lengths.append(first.lengths)
    offsets = np.concatenate([[0], np.cumsum(np.concatenate(lengths))])
    return SequenceBatch(NUCLEOTIDE, np.concatenate(parts), offsets, np.arange(len(offsets) - 1))


def among_random(texts: list[str], total: int, generator: np.random.Generator) -> SequenceBatch:
    """The sequences, and random ones of the same lengths, until there are so many bases."""
    first = SequenceBatch.of(NUCLEOTIDE, texts)
    copies = max(0, -(-(total - first.total_residues) // first.total_residues))
    residues = generator.integers(0, 4, copies * first.total_residues, np.uint8)
    offsets = np.concatenate([[0], np.cumsum(np.tile(first.lengths, copies + 1))])
    return SequenceBatch(NUCLEOTIDE, np.concatenate([first.residues, residues]), offsets, np.arange(len(offsets) - 1))


def pieces(targets: SequenceBatch, count: int, length: int, generator: np.random.Generator) -> SequenceBatch:
    """Mutated pieces from anywhere in the targets."""
    starts = generator.integers(0, len(targets.residues) - length, count)
    found = (mutated(targets.residues[start : start + length], IN_QUERIES, generator) for start in starts)
    return SequenceBatch.of(NUCLEOTIDE, [NUCLEOTIDE.decode(piece) for piece in found])


def drawn(targets: SequenceBatch, what: str, generator: np.random.Generator) -> SequenceBatch:
    """``what`` is NUMBERxLENGTH."""
    count, length = map(int, what.split("x"))
    return pieces(targets, count, length, generator)


def part_of(targets: SequenceBatch, bases: float) -> SequenceBatch:
    return targets.take(0, min(len(targets), max(1, int(np.searchsorted(targets.offsets, bases)))))


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds until the device is done, and the result."""
    from numba import cuda

    cuda.synchronize()
    begin = time.perf_counter()
    result = work()
    cuda.synchronize()
    return time.perf_counter() - begin, result


def scan(queries: SequenceBatch, targets: SequenceBatch, task: str, what: str) -> Iterator[Timing]:
    """Stages on the device, the targets there; the first run compiles and sends."""
    names = registry()
    plan = compose(names, names.pipeline(task), {}, "cuda")
    space = SearchSpace(targets.total_residues, len(targets), targets.longest)
    context = Context(queries=queries, targets=targets, options=plan.options, space=space, counters=Counter(),
                      scoring=plan.family.scoring(queries, space, plan.options))
    begin = time.perf_counter()
    indexes = {}
    for filled in plan.indexes("query") + plan.indexes("target"):
        index = filled.stage.run(context, queries if filled.stage.side == "query" else targets)
        indexes[index.kind] = index
    context = replace(context, indexes=indexes)
    stages = {filled.slot.name: filled.stage for filled in plan.stages}
    yield Timing(f"{task} {what}: indexes", time.perf_counter() - begin, f"{targets.total_residues:,} bases")
    for turn in range(1 + REPEATS):
        found, seeds = timed(partial(stages["seed.words"].run, context, None))
        in_order = stages["sort.diagonal"].run(context, seeds)
        extended, segments = timed(partial(stages["extend.ungapped"].run, context, in_order))
        hits, kept = len(seeds), len(segments)
        del seeds, in_order, segments
        if not turn:
            yield Timing(f"{task} {what}: first time", found + extended)
            best = (found, extended)
        best = min(best[0], found), min(best[1], extended)
    yield Timing(f"{task} {what}: scan and look-up", best[0],
                 f"{targets.total_residues / best[0] / 1e9:.1f} G bases/s; {hits:,} hits")
    yield Timing(f"{task} {what}: ungapped extension", best[1],
                 f"{hits / best[1] / 1e6:.1f} M hits/s; {kept:,} segments")


def search(queries: SequenceBatch, targets: SequenceBatch, task: str, what: str, threads: int, backend: str = "cuda",
           device_memory: int | None = None, rounds: int = 2, batch_queries: int | None = None,
           ahead: bool = True) -> tuple[Timing, Any]:
    """A whole search from host memory, the quickest of some, and its hits; ``ahead``: its units overlap."""
    names = registry()
    plan = compose(names, names.pipeline(task), {}, backend)
    source = MemorySource(replace(targets, names=range(len(targets))))
    settings = Settings(threads=threads, device_memory=device_memory, batch_queries=batch_queries, in_turn=not ahead)
    space = SearchSpace(source.total_residues, source.sequences, source.longest)
    best: tuple[float, str] | None = None
    for _ in range(rounds):
        engine, sink = Engine(plan, names, queries, source, space, settings), MemorySink()
        begin = time.perf_counter()
        engine.run(sink)
        seconds = time.perf_counter() - begin
        note = (f"{targets.total_residues * len(queries) / seconds / 1e9:.2f} G bases/s × queries; "
                f"{len(sink.hits)} hits; {slot_seconds(engine)}")
        best = min(best or (seconds, note), (seconds, note))
    assert best
    budget = "" if device_memory is None else f", {device_memory >> 20} MiB"
    return Timing(f"{task} {what}: search, {targets.total_residues:,} bases, {backend}, {threads} threads{budget}",
                  *best), sink.hits


def searches(batches: dict[str, SequenceBatch], targets: SequenceBatch, tasks: Sequence[str], threads: int,
             device_memory: int | None = None) -> Iterator[Timing]:
    few = part_of(targets, SHARE * targets.total_residues)
    for task in tasks:
        for what, queries in batches.items():
            for use in sorted({1, threads}):
                yield search(queries, targets, task, what, use, device_memory=device_memory)[0]
            if device_memory is None:
                slow, expected = search(queries, few, task, what, 1, "cpu", rounds=1)
                yield slow
                fast, found = search(queries, few, task, what, 1)
                yield fast
                assert_same_hits(expected, found)


def overlapped(batches: dict[str, SequenceBatch], targets: SequenceBatch, tasks: Sequence[str],
               threads: int) -> Iterator[Timing]:
    """Searches of several queries, a batch each, one unit after the other and overlapping; rows must be the same."""
    for task in tasks:
        for what, queries in batches.items():
            if len(queries) > 1:
                off, on = (search(queries, targets, task, what, threads, batch_queries=1, ahead=ahead)
                           for ahead in (False, True))
                assert_same_hits(off[1], on[1])
                yield replace(off[0], what=f"{off[0].what}, one after the other")
                yield replace(on[0], what=f"{on[0].what}, overlapping",
                              note=f"{off[0].seconds / on[0].seconds - 1:+.0%}; {on[0].note}")


def commands(batches: dict[str, SequenceBatch], targets: SequenceBatch, tasks: Sequence[str], threads: int,
             keep: str | None) -> Iterator[Timing]:
    """Commands from a database of all bases to a file, in turns."""
    with nullcontext(keep) if keep else tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.mkdir(exist_ok=True)

        run = partial(seconds_of, folder)

        for database, sequences in (("many", targets), ("one", part_of(targets, 1))):
            if not (folder / f"{database}.duckdb").exists():
                write_fasta(folder / f"{database}.fasta", sequences)
                yield Timing(f"db create {database}", run("db", "create", f"{database}.duckdb", f"{database}.fasta"))
        for what, queries in batches.items():
            write_fasta(folder / f"{what}.fasta", queries)
            for task in tasks:

                def blastn(database: str, backend: str, use: int, task: str = task, what: str = what) -> float:
                    more = ("--task", "blastn") if task == "blastn" else ()
                    return run(task, *more, "-q", f"{what}.fasta", "-d", f"{database}.duckdb", "--backend", backend,
                               "--outfmt", "6", "-o", f"{database}.{backend}.tsv", "-p", str(use), "--no-store")

                start = min(blastn("one", "cuda", threads) for _ in range(2))
                cpu, cuda, one = [], [], []
                for _ in range(2):
                    cpu.append(blastn("many", "cpu", 1))
                    one.append(blastn("many", "cuda", 1))
                    cuda.append(blastn("many", "cuda", threads))
                same = (folder / "many.cpu.tsv").read_bytes() == (folder / "many.cuda.tsv").read_bytes()
                yield Timing(f"{task} {what}: command, {threads} threads", min(cuda),
                             f"{start:.2f} s of it to start; one thread {min(one):.2f}; one core without a device "
                             f"{min(cpu):.2f}, {min(cpu) / min(cuda):.1f} times as long; "
                             f"rows {'equal' if same else 'DIFFERENT'}")


def beside_blastn(own: SequenceBatch, sizes: Sequence[str], targets: SequenceBatch, tasks: Sequence[str], threads: int,
                  blastn: str, generator: np.random.Generator) -> Iterator[Timing]:
    """Commands with the device, beside blastn's with one thread, whose rows are counted that either has alone.

    Args:
        own: what queries are drawn from.
        blastn: the program, beside which there is makeblastdb.
    """
    program = shutil.which(blastn)
    if not program:
        raise SystemExit(f"{blastn} isn't there: install BLAST+, or say where it is (--blastn)")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_fasta(folder / "targets.fasta", targets)
        yield Timing("db create", seconds_of(folder, "db", "create", "targets.duckdb", "targets.fasta"))
        subprocess.run([str(Path(program).with_name("makeblastdb")), "-dbtype", "nucl", "-in", "targets.fasta", "-out",
                        "targets"], cwd=folder, check=True, capture_output=True)
        for what in sizes:
            write_fasta(folder / f"{what}.fasta", drawn(own, what, generator))
            for task in tasks:
                more = ("--task", "blastn") if task == "blastn" else ()
                taken = [seconds_of(folder, task, *more, "-q", f"{what}.fasta", "-d", "targets.duckdb", "--backend",
                                    "cuda", "-f", "6", "-o", "ours.tsv", "-p", str(threads), "--no-store")
                         for _ in range(1 + REPEATS)][1:]
                begin = time.perf_counter()
                subprocess.run([program, "-task", task, "-query", f"{what}.fasta", "-db", "targets", "-outfmt", "6",
                                "-out", "peers.tsv"], cwd=folder, check=True)
                peer = time.perf_counter() - begin
                ours, theirs = (Counter((folder / name).read_text().splitlines()) for name in ("ours.tsv", "peers.tsv"))
                yield Timing(f"{task} {what}: command, {threads} threads", min(taken),
                             f"blastn {peer:.2f} s, {peer / min(taken):.1f} times as long; {theirs.total():,} rows, "
                             f"{(theirs - ours).total()} and {(ours - theirs).total()} of one alone")


PARTS = ("scan", "search", "memory", "pipeline", "command", "peer")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("fasta", nargs="+")
    parser.add_argument("--parts", nargs="*", default=PARTS[:-1], choices=PARTS)
    parser.add_argument("--bases", type=int, default=500_000_000)
    parser.add_argument("--tasks", nargs="*", default=TASKS, choices=TASKS)
    parser.add_argument("--queries", nargs="*", default=QUERIES, metavar="NUMBERxLENGTH")
    parser.add_argument("--keep", metavar="FOLDER", help="where the files of the part ``command`` shall stay")
    parser.add_argument("--targets", default="copies", choices=("copies", "random"))
    parser.add_argument("--blastn", default="blastn", help="the peer's program")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    arguments = parser.parse_args()
    generator = np.random.default_rng(7)
    texts = [text for path in arguments.fasta for text in records(path)]
    make = copies if arguments.targets == "copies" else among_random
    targets = make(texts, arguments.bases, generator)
    own = SequenceBatch.of(NUCLEOTIDE, texts)
    batches = {what: drawn(targets, what, generator) for what in arguments.queries}
    tasks, threads = arguments.tasks, arguments.threads
    resident = part_of(targets, 250_000_000)
    parts: dict[str, Callable[[], Iterator[Timing]]] = {
        "scan": lambda: (timing for task in tasks for what, queries in batches.items()
                         for timing in scan(queries, resident, task, what)),
        "search": lambda: searches(batches, targets, tasks, threads),
        "memory": lambda: searches(batches, targets, tasks, threads,
                                   max(LEAST_MEMORY, int(SHARE * targets.total_residues / 4))),
        "pipeline": lambda: overlapped(batches, targets, tasks, threads),
        "command": lambda: commands(batches, targets, tasks, threads, arguments.keep),
        "peer": lambda: beside_blastn(own, arguments.queries, targets, tasks, threads, arguments.blastn, generator),
    }
    for part in arguments.parts:
        show(parts[part]())


if __name__ == "__main__":
    main()
