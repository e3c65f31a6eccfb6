"""Exact Smith–Waterman on a CUDA device: scores and ends by query length, whole searches, the paper's kernels.

    python -m benchmarks.smith_waterman_gpu FASTA [--copies 60] [--lengths 127 514 …] [--queries FASTA]

Targets are the proteins of a FASTA file and copies of them with their letters shuffled. Rates are in TCUPS: 10¹² cells
a second. Scores and ends are those of all targets while these are on the device; whole searches begin with the targets
in host memory and end with the hits, so that copying is in their time. Kernels are compiled before, in processes.
"""

import argparse
import multiprocessing
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
from seqloom.core.alphabet import PROTEIN
from seqloom.core.context import Scoring, SearchSpace
from seqloom.core.engine import Engine, Settings
from seqloom.core.memory import MemorySink, MemorySource
from seqloom.core.pipeline import compose
from seqloom.core.sequences import SequenceBatch
from seqloom.installed import registry
from seqloom.plugins.smith_waterman.matrices import printed_matrix
from seqloom.plugins.smith_waterman.stretches_cpu import Stretches

from .timing import Timing

LENGTHS = (63, 127, 255, 514, 1042, 2005, 5147)
PAPER_LENGTHS = (255, 514)
PAPER_LETTERS = 50_000_000
REPEATS = 3
LONGEST = 5147
"""Longest query that there is room for while targets stay on the device."""
LEAST = 80
"""Score that picks out few targets."""


def records(path: str) -> list[str]:
    """Sequences of a FASTA file, compressed or not."""
    import gzip

    with (gzip.open if path.endswith(".gz") else open)(path, "rt") as file:
        parts = ("\n" + file.read()).split("\n>")[1:]
    return ["".join(part.split("\n")[1:]) for part in parts]


def shuffled_copies(texts: list[str], copies: int, generator: np.random.Generator) -> SequenceBatch:
    """The sequences, and ``copies`` − 1 times others of the same lengths with letters drawn from theirs."""
    first = SequenceBatch.of(PROTEIN, texts)
    size = len(first.residues)
    letters = np.empty(size * copies, np.uint8)
    letters[:size] = first.residues
    for copy in range(1, copies):
        drawn = generator.integers(0, size, size, np.uint32)
        np.take(first.residues, drawn, out=letters[copy * size : (copy + 1) * size])
    offsets = np.concatenate([[0], np.cumsum(np.tile(first.lengths, copies))])
    return SequenceBatch(PROTEIN, letters, offsets, np.arange(len(offsets) - 1))


def proteins(lengths: Sequence[int], generator: np.random.Generator) -> list[np.ndarray]:
    """Random queries."""
    return [PROTEIN.encode("ACDEFGHIKLMNPQRSTVWY")[generator.integers(0, 20, n)] for n in lengths]


def scoring() -> Scoring:
    """BLOSUM62 with gap costs 11 and 1."""
    return Scoring(printed_matrix("BLOSUM62"), 11, 1)


def asked(query: np.ndarray, least: int = LEAST) -> Any:
    """What is asked of a query."""
    from seqloom.plugins.smith_waterman.targets_cuda import Asked

    return Asked([query], least)


def resident(targets: SequenceBatch) -> Any:
    """Context manager: all targets on the device, as ``DeviceTargets``."""
    from seqloom.plugins.smith_waterman.targets_cuda import on_device_targets

    everything = np.arange(len(targets))
    stretches = Stretches.of(targets, everything, None)
    return on_device_targets(targets, stretches, everything, LONGEST, None, lambda: None)


def compile_for(lengths: Sequence[int], ends: bool) -> None:
    """Compile what queries of these lengths need, into the cache on disk."""
    tiny = SequenceBatch.of(PROTEIN, ["ACDEFGHIKL" * 3] * 2)
    with resident(tiny) as targets:
        for query in proteins(lengths, np.random.default_rng(1)):
            targets.scores([asked(query, 0)], scoring())
            if ends:
                found = targets.ends(query, scoring(), np.arange(2))
                targets.reaches(query, scoring(), np.arange(2), found)


def compiled(lengths: Sequence[int], ends: Sequence[int], processes: int) -> float:
    """Seconds it took several processes to compile for queries of these lengths, for ``ends`` with their ends."""
    begin = time.perf_counter()
    with ProcessPoolExecutor(processes, multiprocessing.get_context("spawn")) as pool:
        done = [pool.submit(compile_for, [n], n in ends) for n in sorted(set(lengths), reverse=True)]
    for future in done:
        future.result()
    return time.perf_counter() - begin


def best_of(work: Any) -> float:
    """Seconds of the quickest of a few runs, after one that isn't counted."""
    times = []
    for _ in range(1 + REPEATS):
        begin = time.perf_counter()
        work()
        times.append(time.perf_counter() - begin)
    return min(times[1:])


def rates(targets: SequenceBatch, lengths: Sequence[int], generator: np.random.Generator) -> Iterator[Timing]:
    """Scores of all targets, those that count picked out; and scores with ends of all."""
    begin = time.perf_counter()
    with resident(targets) as device:
        yield Timing("targets to the device", time.perf_counter() - begin, f"{targets.letters:,} letters")
        everything = np.arange(len(targets))
        for query in proteins(lengths, generator):
            cells = len(query) * targets.letters
            for what, work in (("scores", lambda q=query: device.scores([asked(q)], scoring())),
                               ("scores and ends", lambda q=query: device.ends(q, scoring(), everything))):
                seconds = best_of(work)
                yield Timing(f"{len(query)} {what}", seconds, f"{cells / seconds / 1e12:.2f} TCUPS")


def search(queries: SequenceBatch, targets: SequenceBatch, threads: int, device_memory: int | None = None,
           **options: Any) -> Timing:
    """A whole search from host memory."""
    names = registry()
    plan = compose(names, names.pipeline("sw"), options, "auto")
    source, sink = MemorySource(replace(targets, names=range(len(targets)))), MemorySink()
    settings = Settings(threads=threads, device_memory=device_memory)
    space = SearchSpace(source.letters, source.sequences, source.longest)
    engine = Engine(plan, names, queries, source, space, settings)
    begin = time.perf_counter()
    engine.run(sink)
    seconds = time.perf_counter() - begin
    slots = ", ".join(f"{name} {stats.seconds:.2f}" for name, stats in engine.totals.items() if stats.seconds > 0.005)
    budget = "" if device_memory is None else f", {device_memory >> 20} MiB"
    return Timing(f"search, {len(queries)} queries, {queries.letters} letters, {threads} threads{budget}", seconds,
                  f"{queries.letters * targets.letters / seconds / 1e12:.2f} TCUPS; {len(sink.hits)} hits; {slots}")


def paper(targets: SequenceBatch, generator: np.random.Generator) -> Iterator[Timing]:
    """The paper's kernels, without and with data reuse, on the first targets."""
    from numba import cuda
    from seqloom.plugins.smith_waterman.antidiagonal_cuda import AntidiagonalTargets

    count = int(np.searchsorted(targets.offsets, PAPER_LETTERS, "right")) - 1
    some = targets.take(0, count)
    order = np.argsort(-some.lengths, kind="stable")
    pairs = AntidiagonalTargets(cuda.to_device(some.residues), some.letters, some.offsets[order], some.lengths[order])
    for query in proteins(PAPER_LENGTHS, generator):
        for width, what in ((1, "without"), (4, "with")):
            seconds = best_of(lambda q=query, w=width: pairs.scores(q, scoring(), w))
            rate = len(query) * some.letters / seconds / 1e9
            yield Timing(f"{len(query)} antidiagonal, {what} data reuse", seconds, f"{rate:.0f} GCUPS")


def show(timings: Iterator[Timing]) -> None:
    """Print them as they come."""
    for timing in timings:
        print(f"{timing.what:<60} {timing.seconds:9.4f}  {timing.note}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("fasta")
    parser.add_argument("--copies", type=int, default=60)
    parser.add_argument("--lengths", type=int, nargs="*", default=LENGTHS)
    parser.add_argument("--queries", help="FASTA file whose sequences are searched together")
    parser.add_argument("--threads", type=int, default=4)
    arguments = parser.parse_args()
    generator = np.random.default_rng(7)
    batches = [SequenceBatch.of(PROTEIN, [PROTEIN.decode(q)]) for q in proteins(arguments.lengths, generator)]
    if arguments.queries:
        batches.append(SequenceBatch.of(PROTEIN, records(arguments.queries)))
    needed = sorted({int(n) for batch in batches for n in batch.lengths})
    print(f"kernels compiled in {compiled(needed, arguments.lengths, arguments.threads):.1f} s", flush=True)
    targets = shuffled_copies(records(arguments.fasta), arguments.copies, generator)
    show(rates(targets, arguments.lengths, generator))
    show(search(batch, targets, arguments.threads, score_only=score_only)
         for batch in batches for score_only in (True, False))
    show(paper(targets, generator))


if __name__ == "__main__":
    main()
