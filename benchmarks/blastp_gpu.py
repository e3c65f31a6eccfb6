"""Protein BLAST on CUDA devices: the ungapped scan by query length, whole searches, whole commands.

    python -m benchmarks.blastp_gpu FASTA [--parts rates search …] [--copies 60] [--lengths 127 514 …]
                                    [--queries FASTA] [--threads 1 16] [--modes 0 2]

Targets are the proteins of a FASTA file and copies of them with their residues shuffled. Rates are in TCUPS: 10¹² cells
a second. Kernels are compiled before. The parts:

    rates     the scan of all targets while these are on the device, with what it finds on the host
    search    whole searches, with the targets in host memory before and the hits there afterwards
    overlap   the same, one unit after the other, and the device's work for one beside the host's for the one before
    memory    the same with less device memory than the targets take
    command   the whole command, from a database file to a file of hits, with room for all targets on the device and for
              a tenth of them; hits on FASTA alone by cuda and by cpu

The kernels of cuBLASTP are measured by ``benchmarks/blastp_paper.py``.
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

import numpy as np
from seqloom.core.alphabet import PROTEIN
from seqloom.core.context import SearchSpace
from seqloom.core.engine.engine import Engine
from seqloom.core.engine.memory import MemorySink, MemorySource
from seqloom.core.engine.planning import Settings
from seqloom.core.pipeline import compose
from seqloom.core.sequences import SequenceBatch
from seqloom.installed import registry
from seqloom.plugins.common.matrices import protein_matrix

from .smith_waterman_gpu import (
    best_of,
    proteins,
    records,
    show,
    shuffled_copies,
    slot_seconds,
    with_room_for,
    write_fasta,
)
from .timing import Timing, seconds_of

LENGTHS = (63, 127, 255, 514, 1042, 2005, 5147)
CUTOFF = 41
"""Score of 22 bits in BLOSUM62, which gapped extension takes."""
MANY = 80_000
"""Targets that are enough for any way to scan."""
SHARE = 0.1
"""Of the targets that there is room for on the device in the part ``memory``, and in the second turn of ``command``."""


def how(length: int) -> str:
    """How a query of that length is scanned where there are many targets."""
    from seqloom.plugins.common.diagonal_sieve_cuda import GAP, can_sieve, shape_of
    from seqloom.plugins.common.diagonal_tiles_cuda import tiling

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
           device_memory: int | None = None, rounds: int = 2, ahead: bool = True) -> Timing:
    """A whole search from host memory, the quickest of some; ``ahead``: its units overlap."""
    names = registry()
    plan = compose(names, names.pipeline("blastp"), {"comp_based_stats": mode}, backend)
    source = MemorySource(replace(targets, names=range(len(targets))))
    settings = Settings(threads=threads, device_memory=device_memory, in_turn=not ahead)
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
    how = f"{backend}{'' if ahead else ', one unit after the other'}, {threads} threads{budget}"
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

                def blastp(database: str, back_end: str, p: int, *more: str, n: int = number, m: str = mode) -> float:
                    return run("blastp", "-q", f"{n}.fasta", "-d", f"{database}.duckdb", "--backend", back_end,
                               "--outfmt", "6 std score btop", "-o", f"{database}.{back_end}.tsv", "-p", str(p),
                               "--comp-based-stats", m, "--no-store", *more)

                def hits(database: str, back_end: str) -> bytes:
                    return (folder / f"{database}.{back_end}.tsv").read_bytes()

                for use in threads:
                    start = min(blastp("one", "cuda", use) for _ in range(2))
                    seconds = min(blastp("many", "cuda", use) for _ in range(2))
                    cells = batch.total_residues * targets.total_residues
                    what = f"command, mode {mode}, {len(batch)} queries, {batch.total_residues} residues, {use} threads"
                    yield Timing(what, seconds, f"{cells / seconds / 1e12:.2f} TCUPS; {start:.2f} s of it to start")
                    wanted = hits("many", "cuda")
                    room = with_room_for(SHARE * targets.total_residues)
                    little = min(blastp("many", "cuda", use, *room) for _ in range(2))
                    yield Timing(f"{what}, {room[1]}", little, f"{little / seconds:.2f} times as long; hits "
                                 + ("equal" if hits("many", "cuda") == wanted else "DIFFERENT"))
                blastp("few", "cuda", max(threads))
                blastp("few", "cpu", max(threads))
                same = hits("few", "cuda") == hits("few", "cpu")
                lines = hits("few", "cpu").count(b"\n")
                yield Timing(f"{lines} lines of cpu and cuda", 0.0, "equal" if same else "DIFFERENT")


PARTS = ("rates", "search", "overlap", "memory", "command")


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
    }
    for part in arguments.parts:
        show(parts[part]())


if __name__ == "__main__":
    main()
