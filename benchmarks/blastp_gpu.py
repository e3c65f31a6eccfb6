"""Protein BLAST on CUDA devices: the ungapped scan by query length, whole searches, whole commands.

    python -m benchmarks.blastp_gpu FASTA [--parts rates search …] [--copies 60] [--lengths 127 514 …]
                                    [--queries FASTA] [--threads 1 16] [--modes 0 2] [--images FOLDER]

Targets are the proteins of a FASTA file and copies of them with their residues shuffled. Rates are in TCUPS: 10¹² cells
a second. Kernels are compiled before. The parts:

    rates     the scan of all targets while these are on the device, with what it finds on the host
    search    whole searches, with the targets in host memory before and the hits there afterwards
    overlap   the same, one unit after the other, and the device's work for one beside the host's for the one before
    memory    the same with less device memory than the targets take
    command   the whole command, from a database file to a file of hits; hits on FASTA alone by cuda and by cpu
    paper     cuBLASTP's kernels on FASTA alone, for queries of about the paper's lengths: hit detection, assembling,
              sorting, filtering and ordering by number of bins; the three ways to extend; whole searches with and
              without them; with ``--images`` its figures are drawn
"""

import argparse
import multiprocessing
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from seqloom.core.alphabet import PROTEIN
from seqloom.core.context import Context, SearchSpace
from seqloom.core.engine.engine import Engine
from seqloom.core.engine.memory import MemorySink, MemorySource
from seqloom.core.engine.planning import Settings
from seqloom.core.pipeline import compose
from seqloom.core.records import Seeds
from seqloom.core.sequences import SequenceBatch
from seqloom.installed import registry
from seqloom.plugins.common.matrices import protein_matrix

from .charts import save_bars, save_chart
from .smith_waterman_gpu import best_of, proteins, records, show, shuffled_copies, slot_seconds, write_fasta
from .timing import Timing, seconds_of

LENGTHS = (63, 127, 255, 514, 1042, 2005, 5147)
CUTOFF = 41
"""Score of 22 bits in BLOSUM62, which gapped extension takes."""
MANY = 80_000
"""Targets that are enough for any way to scan."""
REPEATS = 3
PAPER_LENGTHS = (127, 517, 1054)
BINS, USUAL_BINS = (16, 32, 64, 128, 256, 512), 128
KERNELS = ("detection", "assembling", "sorting", "filtering")
SHARE = 0.1
"""Of the targets that there is room for on the device in the part ``memory``."""


def how(length: int) -> str:
    """How a query of that length is scanned where there are many targets."""
    from seqloom.plugins.common.diagonal_scan_cuda import tiling
    from seqloom.plugins.common.diagonal_sieve_cuda import GAP, can_sieve, shape_of

    sieve, scan = shape_of(length + GAP) if can_sieve() else None, tiling(length)
    return (f"{sieve.passes} passes of {sieve.columns} columns" if sieve else
            f"{scan.tiles} tiles of {scan.lanes} lanes × {scan.rows} registers")


def rates(targets: SequenceBatch, lengths: Sequence[int], generator: np.random.Generator) -> Iterator[Timing]:
    """The scan by query length; the first run of each length brings its kernels to the device."""
    from seqloom.plugins.common.diagonal_scan_cuda import Asked, good_diagonals, query_profile

    matrix = protein_matrix("BLOSUM62")
    for query in proteins(lengths, generator):
        asked = [Asked(0, query_profile(query, matrix), len(query), CUTOFF)]
        begin = time.perf_counter()
        found = good_diagonals(asked, targets)
        first = time.perf_counter() - begin
        seconds = best_of(lambda a=asked: good_diagonals(a, targets))
        cells = len(query) * targets.total_residues
        yield Timing(f"{len(query)} scan", seconds, f"{cells / seconds / 1e12:.2f} TCUPS; {len(found[0]):,} diagonals; "
                     f"{how(len(query))}; first time {first:.2f} s")


def batch_rate(queries: SequenceBatch, targets: SequenceBatch) -> Timing:
    """The scan of many queries at once."""
    from seqloom.plugins.common.diagonal_scan_cuda import Asked, good_diagonals, query_profile

    matrix = protein_matrix("BLOSUM62")
    asked = [Asked(n, query_profile(queries[n], matrix), len(queries[n]), CUTOFF) for n in range(len(queries))]
    found = good_diagonals(asked, targets)
    seconds = best_of(lambda: good_diagonals(asked, targets))
    cells = queries.total_residues * targets.total_residues
    return Timing(f"{len(queries)} queries together, scan", seconds,
                  f"{cells / seconds / 1e12:.2f} TCUPS; {len(found[0]):,} diagonals")


def like_the_papers(targets: SequenceBatch) -> list[SequenceBatch]:
    """The proteins whose lengths are nearest to those of the paper's queries."""
    places = [int(np.argmin(np.abs(targets.lengths - length))) for length in PAPER_LENGTHS]
    return [SequenceBatch.of(PROTEIN, [PROTEIN.decode(targets[place])]) for place in places]


def context_for(queries: SequenceBatch, targets: SequenceBatch) -> Context:
    """What the stages get to see, with the index of words."""
    names = registry()
    plan = compose(names, names.pipeline("blastp"), {"comp_based_stats": "0"}, "cuda")
    space = SearchSpace(targets.total_residues, len(targets), targets.longest)
    context = Context(queries=queries, targets=targets, options=plan.options, space=space,
                      scoring=plan.family.scoring(queries, space, plan.options))
    words = plan.indexes("query")[0].stage.run(context, queries)
    return replace(context, indexes={words.kind: words})


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds until the device is done, and the result."""
    from numba import cuda

    cuda.synchronize()
    begin = time.perf_counter()
    result = work()
    cuda.synchronize()
    return time.perf_counter() - begin, result


KERNELS = ("detection", "assembling", "sorting", "filtering", "ordering")
"""Of hit detection; the last one puts hits of all bins in one order."""


def detection(context: Context, stage: Any) -> tuple[list[float], int, int]:
    """Seconds of the kernels of ``binned-hits`` or its like, the hits, and how many are left."""
    from seqloom.plugins.common.resident_cuda import device_memory
    from seqloom.plugins.protein_blast import hits_cuda
    from seqloom.plugins.protein_blast.words import HITS_PER_CELL

    targets, blocks, bins = context.targets, hits_cuda._blocks(), stage.options.num_bins
    layout = hits_cuda.KeyLayout.of(1, len(targets), context.queries.total_residues, targets.longest)
    assert layout
    capacity = max(hits_cuda.LEAST_CAPACITY, hits_cuda.SLOTS // (blocks * bins))
    taken, total, left = [0.0] * len(KERNELS), 0, []
    residues = int(hits_cuda.FULL * capacity * blocks * bins / HITS_PER_CELL / context.queries.total_residues)
    with device_memory().volume(targets, None) as volume:
        volume.arrived([0])
        detector = stage.detector(context, volume, blocks)
        for low, high in hits_cuda.blocks_of_targets(targets.offsets, max(1, residues)):
            # The first time may find that bins are too small.
            room = detector.detect(low, high - low, layout, capacity)[2]
            first, (found, tops, room) = timed(lambda: detector.detect(low, high - low, layout, room))  # noqa: B023
            second, (hits, firsts) = timed(lambda: detector.assemble(found, tops, room))  # noqa: B023
            third, _ = timed(lambda: detector.sort(hits, firsts))  # noqa: B023
            fourth, keys = timed(lambda: detector.filter(hits, firsts, layout, low))  # noqa: B023
            taken = [sum(pair) for pair in zip(taken, (first, second, third, fourth, 0.0), strict=True)]
            total += int(tops.sum())
            left += [] if keys is None else [keys]
        if left:
            taken[-1], _ = timed(lambda: hits_cuda.in_order(left, layout.query + 1))
    return taken, total, sum(map(len, left))


def extension(context: Context, hits: Seeds, stage: Any) -> float:
    """Seconds of the kernels of an extension."""
    launch, taken = stage.launch, []
    stage.launch = lambda *arguments: taken.append(timed(lambda: launch(*arguments))[0])
    for _ in range(1 + REPEATS):
        stage.run(context, hits)
    return min(taken[1:])


def paper(targets: SequenceBatch, threads: int, images: Path | None = None) -> Iterator[Timing]:
    """Sections 4.1 and 4.2: by number of bins, by source of scores, by the division of an extension.

    Draws figures 14 (bins), 15 and 16 (scores and divisions of an extension) and the kernels of 19 in a folder.
    """
    from seqloom.plugins.protein_blast.hits_cuda import BinnedHits
    from seqloom.plugins.protein_blast.ungapped_cuda import DiagonalUngapped, HitUngapped, WindowUngapped

    by_bins: dict[str, list[tuple[float, float]]] = {}
    extensions: dict[str, list[tuple[float, float]]] = {}
    phases: dict[str, list[float]] = {}
    sizes = []
    for queries in like_the_papers(targets):
        context, size = context_for(queries, targets), queries.total_residues
        for bins in BINS:
            stage = BinnedHits(BinnedHits.Options(num_bins=bins))
            detection(context, stage)
            kernels, hits, left = detection(context, stage)
            what = ", ".join(f"{name} {1e3 * seconds:.2f}" for name, seconds in zip(KERNELS, kernels, strict=True))
            by_bins.setdefault(f"{size} residues", []).append((bins, 1e3 * sum(kernels)))
            if bins == USUAL_BINS:
                for name, seconds in zip(KERNELS, kernels, strict=True):
                    phases.setdefault(name, []).append(1e3 * seconds)
            yield Timing(f"{size} hits, {bins} bins", sum(kernels),
                         f"{what} ms; {hits:,} hits, {100 * left / max(1, hits):.1f} % left")
        seeds = BinnedHits().run(context, None)
        for scores in ("matrix", "pssm"):
            stages = [("by diagonal", DiagonalUngapped(DiagonalUngapped.Options(scores))),
                      ("by hit", HitUngapped(HitUngapped.Options(scores))),
                      *((f"by windows of {n}", WindowUngapped(WindowUngapped.Options(scores, n)))
                        for n in ("8", "16", "32"))]
            for what, stage in stages:
                taken = extension(context, seeds, stage)
                extensions.setdefault(f"{what}, {scores}", []).append((size, 1e3 * taken))
                yield Timing(f"{size} extension {what}, {scores}", taken, f"{len(seeds):,} hits")
        sizes.append(f"{size}")
        yield search(queries, targets, threads, "0", rounds=3)
        yield search(queries, targets, threads, "0", rounds=3, stages=(
            "seed.words=binned-hits", "extend.ungapped=window-ungapped"), changed=["sort.diagonal.enabled=no"])
        yield search(queries, targets, threads, "0", "cpu", rounds=3)
    if images:
        images.mkdir(parents=True, exist_ok=True)
        save_chart(images / "blastp_bins.svg", "Hits: detected, assembled, sorted and filtered", "bins", "milliseconds",
                   by_bins)
        save_chart(images / "blastp_extensions.svg", "Ungapped extension by how the work is divided, and by its scores",
                   "residues of the query", "milliseconds", extensions)
        phases["extension, by windows of 16, pssm"] = [ms for _, ms in extensions["by windows of 16, pssm"]]
        save_bars(images / "blastp_kernels.svg", f"Kernels of a search, {USUAL_BINS} bins", "residues of the query",
                  "milliseconds", sizes, phases, {})


def compile_for(length: int) -> None:
    """Compile what queries of that length need, into the cache on disk."""
    from seqloom.plugins.common.diagonal_scan_cuda import Asked, good_diagonals, query_profile

    query = proteins([length], np.random.default_rng(1))[0]
    asked = [Asked(0, query_profile(query, protein_matrix("BLOSUM62")), length, CUTOFF)]
    good_diagonals(asked, SequenceBatch.of(PROTEIN, ["ACDEFGHIKL"] * MANY))


def compiled(lengths: Sequence[int], processes: int) -> float:
    """Seconds it took several processes to compile for queries of these lengths."""
    begin = time.perf_counter()
    by_kernel = {how(n).split("of")[1]: n for n in lengths}
    with ProcessPoolExecutor(processes, multiprocessing.get_context("spawn")) as pool:
        for done in [pool.submit(compile_for, n) for n in by_kernel.values()]:
            done.result()
    return time.perf_counter() - begin


def search(queries: SequenceBatch, targets: SequenceBatch, threads: int, mode: str, backend: str = "cuda",
           device_memory: int | None = None, stages: Sequence[str] = (), changed: Sequence[str] = (), rounds: int = 2,
           ahead: bool = True) -> Timing:
    """A whole search from host memory, the quickest of some; ``ahead``: its units overlap."""
    names = registry()
    plan = compose(names, names.pipeline("blastp"), {"comp_based_stats": mode}, backend, stages, changed)
    source = MemorySource(replace(targets, names=range(len(targets))))
    settings = Settings(threads=threads, device_memory=device_memory, ahead=ahead)
    space = SearchSpace(source.total_residues, source.sequences, source.longest)
    best: tuple[float, str] | None = None
    for _ in range(rounds):
        engine, sink = Engine(plan, names, queries, source, space, settings), MemorySink()
        begin = time.perf_counter()
        engine.run(sink)
        seconds = time.perf_counter() - begin
        rate = queries.total_residues * targets.total_residues / seconds / 1e12
        note = f"{rate:.2f} TCUPS; {len(sink.hits)} hits; {slot_seconds(engine)}"
        best = min(best or (seconds, note), (seconds, note))
    assert best
    budget = "" if device_memory is None else f", {device_memory >> 20} MiB"
    size = f"{len(queries)} queries, {queries.total_residues} residues"
    how = (f"{backend}{', by the paper' if stages else ''}{'' if ahead else ', one unit after the other'}, "
           f"{threads} threads{budget}")
    return Timing(f"search, mode {mode}, {size}, {how}", *best)


def commands(fasta: str, targets: SequenceBatch, batches: Sequence[SequenceBatch], threads: Sequence[int],
             modes: Sequence[str], keep: str | None) -> Iterator[Timing]:
    """``seqloom blastp`` from a database file to a file of hits, beside what it takes to start: one protein as
    database."""
    with nullcontext(keep) if keep else tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.mkdir(exist_ok=True)

        run = partial(seconds_of, folder)

        databases = {"many": targets, "few": SequenceBatch.of(PROTEIN, records(fasta)), "one": targets.take(0, 1)}
        for what, sequences in databases.items():
            if not (folder / f"{what}.duckdb").exists():
                write_fasta(folder / f"{what}.fasta", sequences)
                yield Timing(f"db create {what}", run("db", "create", f"{what}.duckdb", f"{what}.fasta"))
        for number, batch in enumerate(batches):
            write_fasta(folder / f"{number}.fasta", batch)
        for number, batch in enumerate(batches):
            for mode in modes:

                def blastp(database: str, back_end: str, p: int, n: int = number, m: str = mode) -> float:
                    return run("blastp", "-q", f"{n}.fasta", "-d", f"{database}.duckdb", "--backend", back_end,
                               "--outfmt", "6 std score btop", "-o", f"{database}.{back_end}.tsv", "-p", str(p),
                               "--comp-based-stats", m, "--no-store")

                for use in threads:
                    start = min(blastp("one", "cuda", use) for _ in range(2))
                    seconds = min(blastp("many", "cuda", use) for _ in range(2))
                    cells = batch.total_residues * targets.total_residues
                    yield Timing(f"command, mode {mode}, {len(batch)} queries, {batch.total_residues} residues, "
                                 f"{use} threads", seconds,
                                 f"{cells / seconds / 1e12:.2f} TCUPS; {start:.2f} s of it to start")
                blastp("few", "cuda", max(threads))
                blastp("few", "cpu", max(threads))
                same = (folder / "few.cuda.tsv").read_bytes() == (folder / "few.cpu.tsv").read_bytes()
                lines = (folder / "few.cpu.tsv").read_bytes().count(b"\n")
                yield Timing(f"{lines} lines of cpu and cuda", 0.0, "equal" if same else "DIFFERENT")


PARTS = ("rates", "search", "overlap", "memory", "command", "paper")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("fasta")
    parser.add_argument("--parts", nargs="*", default=PARTS, choices=PARTS)
    parser.add_argument("--copies", type=int, default=60)
    parser.add_argument("--lengths", type=int, nargs="*", default=LENGTHS)
    parser.add_argument("--queries", help="FASTA file whose sequences are searched together")
    parser.add_argument("--modes", nargs="*", default=("0", "2"), help="composition-based statistics")
    parser.add_argument("--keep", metavar="FOLDER", help="where the files of the part ``command`` shall stay")
    parser.add_argument("--threads", type=int, nargs="*", default=[1, os.cpu_count() or 1])
    parser.add_argument("--images", type=Path, metavar="FOLDER", help="where the part ``paper`` draws its figures")
    arguments = parser.parse_args()
    generator = np.random.default_rng(7)
    targets = shuffled_copies(records(arguments.fasta), arguments.copies, generator)
    batches = [SequenceBatch.of(PROTEIN, [PROTEIN.decode(q)]) for q in proteins(arguments.lengths, generator)]
    if arguments.queries:
        batches = [SequenceBatch.of(PROTEIN, records(arguments.queries))]

    def searches(device_memory: int | None = None) -> Iterator[Timing]:
        return (search(batch, targets, threads, mode, device_memory=device_memory) for batch in batches
                for mode in arguments.modes for threads in arguments.threads)

    def overlapping() -> Iterator[Timing]:
        return (search(batch, targets, max(arguments.threads), mode, ahead=ahead) for batch in batches
                for mode in arguments.modes for ahead in (False, True))

    needed = [*arguments.lengths, *(n for batch in batches for n in batch.lengths.tolist())]
    print(f"kernels compiled in {compiled(needed, os.cpu_count() or 1):.1f} s", flush=True)
    parts: dict[str, Callable[[], Iterator[Timing]]] = {
        "rates": lambda: chain(rates(targets, arguments.lengths, generator),
                               (batch_rate(batch, targets) for batch in batches if len(batch) > 1)),
        "search": searches,
        "overlap": overlapping,
        "memory": lambda: searches(int(SHARE * targets.total_residues)),
        "command": lambda: commands(arguments.fasta, targets, batches, arguments.threads, arguments.modes,
                                    arguments.keep),
        "paper": lambda: paper(SequenceBatch.of(PROTEIN, records(arguments.fasta)), max(arguments.threads),
                               arguments.images),
    }
    for part in arguments.parts:
        show(parts[part]())


if __name__ == "__main__":
    main()
