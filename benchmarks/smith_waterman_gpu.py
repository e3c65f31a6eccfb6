"""Exact Smith–Waterman on CUDA devices: scores and ends by query length, whole searches and commands, a model of them.

    python -m benchmarks.smith_waterman_gpu FASTA [--parts rates search …] [--copies 60] [--lengths 127 514 …]
                                            [--queries FASTA] [--threads 1 16] [--volume-residues N]

Targets are the proteins of a FASTA file and copies of them with their residues shuffled. Rates are in TCUPS: 10¹² cells
a second. Kernels are compiled before, in processes. The parts:

    rates     scores, and scores with ends, of all targets while these are on the device
    search    whole searches, with the targets in host memory before and the hits there afterwards
    stream    the same with less device memory than the targets take, held to the limit: computing or the bus
    model     times of a volume's computing, copying and the rest, and what section 5.4 of the paper predicts from them
    command   the whole command, from a database file to a file of hits
    giant     two sequences of 35,000 residues
    paper     the paper's kernels
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
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from seqloom.core.alphabet import PROTEIN
from seqloom.core.context import Context, Scoring, SearchSpace
from seqloom.core.engine.engine import Engine
from seqloom.core.engine.memory import MemorySink, MemorySource
from seqloom.core.engine.planning import Settings
from seqloom.core.pipeline import compose
from seqloom.core.sequences import SequenceBatch
from seqloom.installed import registry
from seqloom.plugins.common.stretches_cpu import Stretches
from seqloom.plugins.smith_waterman.matrices import printed_matrix

from .timing import Timing, seconds_of

LENGTHS = (63, 127, 255, 514, 1042, 2005, 5147)
PAPER_LENGTHS = (255, 514)
PAPER_RESIDUES = 50_000_000
REPEATS = 3
SHARES = (0.9, 0.5, 0.1)
"""Of the targets that there is room for when they are streamed."""
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
    """The sequences, and ``copies`` − 1 times others of the same lengths with residues drawn from theirs."""
    first = SequenceBatch.of(PROTEIN, texts)
    size = len(first.residues)
    residues = np.empty(size * copies, np.uint8)
    residues[:size] = first.residues
    for copy in range(1, copies):
        drawn = generator.integers(0, size, size, np.uint32)
        np.take(first.residues, drawn, out=residues[copy * size : (copy + 1) * size])
    offsets = np.concatenate([[0], np.cumsum(np.tile(first.lengths, copies))])
    return SequenceBatch(PROTEIN, residues, offsets, np.arange(len(offsets) - 1))


def with_room_for(residues: float) -> tuple[str, str]:
    """Words of a command that leave room on the device for so many residues."""
    return "--device-memory", f"{max(1, int(residues) >> 20)}M"


def proteins(lengths: Sequence[int], generator: np.random.Generator) -> list[np.ndarray]:
    """Random queries."""
    return [PROTEIN.encode("ACDEFGHIKLMNPQRSTVWY")[generator.integers(0, 20, n)] for n in lengths]


def scoring() -> Scoring:
    """BLOSUM62 with gap costs 11 and 1."""
    return Scoring(printed_matrix("BLOSUM62"), 11, 1)


def asked(query: np.ndarray, least: int = LEAST) -> Any:
    """What is asked of a query."""
    from seqloom.plugins.smith_waterman.targets_cuda import ScoreRequest

    return ScoreRequest([query], least)


def resident(targets: SequenceBatch) -> Any:
    """Context manager: all targets on the device, as ``DeviceTargets``."""
    from seqloom.plugins.smith_waterman.targets_cuda import on_device_targets

    everything = np.arange(len(targets))
    stretches = Stretches.of(targets, everything, None)
    return on_device_targets(targets, stretches, everything, 16, LONGEST, None, lambda: None)


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


def best_of(work: Any, repeats: int | None = None) -> float:
    """Seconds of the quickest of a few runs, after one that isn't counted; of no repeats, of that one."""
    times = []
    for _ in range(1 + (REPEATS if repeats is None else repeats)):
        begin = time.perf_counter()
        work()
        times.append(time.perf_counter() - begin)
    return min(times[1:] or times)


def rates(targets: SequenceBatch, lengths: Sequence[int], ends: Sequence[int],
          generator: np.random.Generator) -> Iterator[Timing]:
    """Scores of all targets, those that count picked out; and scores with ends of all for some lengths."""
    begin = time.perf_counter()
    with resident(targets) as device:
        yield Timing("targets to the device", time.perf_counter() - begin, f"{targets.total_residues:,} residues")
        for query in proteins(lengths, generator):
            cells = len(query) * targets.total_residues
            for what, work in (("scores", lambda q=query: device.scores([asked(q)], scoring())),
                               ("scores and ends", lambda q=query: device.best_cells(q, scoring()))):
                if what != "scores" and len(query) not in ends:
                    continue
                seconds = best_of(work)
                yield Timing(f"{len(query)} {what}", seconds, f"{cells / seconds / 1e12:.2f} TCUPS")


def slot_seconds(engine: Engine) -> str:
    """What the slots of a run took, of all threads together."""
    return ", ".join(f"{name} {slot.seconds:.2f}" for name, slot in engine.totals.items() if slot.seconds > 0.005)


def search(queries: SequenceBatch, targets: SequenceBatch, threads: int, device_memory: int | None = None,
           rounds: int = 2, volume_residues: int | None = None, ahead: bool = True, **options: Any) -> Timing:
    """A whole search from host memory, the quickest of some; ``ahead``: volumes are sent while others are searched."""
    names = registry()
    plan = compose(names, names.pipeline("sw"), options, "cuda")
    source = MemorySource(replace(targets, names=range(len(targets))))
    settings = Settings(threads=threads, device_memory=device_memory, volume_residues=volume_residues,
                        in_turn=not ahead)
    space = SearchSpace(source.total_residues, source.sequences, source.longest)
    best: tuple[float, str] | None = None
    for _ in range(rounds):
        engine, sink = Engine(plan, names, queries, source, space, settings), MemorySink()
        begin = time.perf_counter()
        engine.run(sink)
        seconds = time.perf_counter() - begin
        slots = slot_seconds(engine)
        rate = queries.total_residues * targets.total_residues / seconds / 1e12
        note = f"{rate:.2f} TCUPS; {len(sink.hits)} hits; {slots}"
        best = min(best or (seconds, note), (seconds, note))
    assert best
    budget = "" if device_memory is None else f", {device_memory >> 20} MiB"
    what = "scores" if options.get("score_only") else "alignments"
    size = f"{len(queries)} queries, {queries.total_residues} residues"
    return Timing(f"search, {what}, {size}, {threads} threads{budget}", *best)


def bus_rate() -> float:
    """Bytes a second from page-locked memory to the device."""
    from numba import cuda

    host = cuda.pinned_array(1 << 28, np.uint8)
    host[:] = 0
    there = cuda.device_array(len(host), np.uint8)

    def send() -> None:
        there.copy_to_device(host)
        cuda.synchronize()

    return len(host) / best_of(send)


def copy_rate(targets: SequenceBatch) -> float:
    """Residues a second to the device from where they lie, by as many threads as a search has for that."""
    from numba import cuda
    from seqloom.core.cuda.transfer import begin_to_device, synchronize
    from seqloom.plugins.common.resident_cuda import COPIERS

    residues, stream = targets.residues[: 1 << 28], cuda.stream()
    there = cuda.device_array(len(residues), np.uint8)

    def send() -> None:
        begin_to_device(residues, there, COPIERS, stream)()
        synchronize(stream)

    return len(residues) / best_of(send)


def streamed(targets: SequenceBatch, lengths: Sequence[int], threads: Sequence[int], volume_residues: int | None,
             generator: np.random.Generator) -> Iterator[Timing]:
    """Searches with room on the device for parts of the targets, held to what binds: computing, or the bus."""
    rate = bus_rate()
    on_the_bus = targets.total_residues / rate
    yield Timing(f"{targets.total_residues:,} residues on the bus", on_the_bus, f"{rate / 1e9:.1f} GB/s")
    copying = copy_rate(targets)
    yield Timing("copied from elsewhere", targets.total_residues / copying, f"{copying / 1e9:.1f} GB/s")
    for query in proteins(lengths, generator):
        batch = SequenceBatch.of(PROTEIN, [PROTEIN.decode(query)])
        with resident(targets) as device:
            seconds = best_of(lambda q=query, d=device: d.scores([asked(q)], scoring()))
        yield Timing(f"{len(query)} resident", seconds,
                     f"{len(query) * targets.total_residues / seconds / 1e12:.2f} TCUPS")
        for use in threads:
            for share in (None, *SHARES):
                budget = None if share is None else int(targets.total_residues * share)
                found = search(batch, targets, use, budget, rounds=3, volume_residues=volume_residues, score_only=True)
                room = "" if share is None else f", room for {share}"
                yield Timing(found.what + room, found.seconds,
                             f"{found.seconds / max(seconds, on_the_bus):.3f} of the limit; {found.note}")


def modelled(targets: SequenceBatch, lengths: Sequence[int], generator: np.random.Generator) -> Iterator[Timing]:
    """Section 5.4: times of a volume, and of all volumes one after the other, with and without overlap, predicted.

    t1 is the time of scores on the device, t2 that of all else that a unit of work does, t3 that of getting a volume
    and copying it.
    """
    from seqloom.core.cuda.transfer import synchronize
    from seqloom.plugins.common.resident_cuda import device_memory
    from seqloom.plugins.smith_waterman.seed_cuda import SmithWatermanScoresCuda

    source = MemorySource(replace(targets, names=range(len(targets))))
    spans = source.plan(SmithWatermanScoresCuda.volume_residues)
    for query in proteins(lengths, generator):
        batch = SequenceBatch.of(PROTEIN, [PROTEIN.decode(query)])
        times: list[tuple[float, float, float]] = []
        for span in spans[:3]:
            begin = time.perf_counter()
            volume = source.read(span)
            with device_memory().volume(volume, None) as held:
                held.sending.wait()
                synchronize(held.queue)
                getting = time.perf_counter() - begin
            with resident(volume) as device:
                computing = best_of(lambda q=query, d=device: d.scores([asked(q)], scoring()))
            whole = best_of(lambda v=volume, b=batch: unit(b, v, source))
            times.append((computing, max(0.0, whole - computing), getting))
        t1, t2, t3 = np.median(times, axis=0).tolist()
        count = len(spans)
        one_by_one, pipelined = count * (t1 + t2 + t3), (count - 1) * (max(t1, t3) + t2) + t1 + t2 + t3
        measured = search(batch, targets, 1, rounds=3, score_only=True).seconds
        yield Timing(f"{len(query)}: {count} volumes, measured", measured,
                     f"t1 {t1 * 1e3:.1f} t2 {t2 * 1e3:.1f} t3 {t3 * 1e3:.1f} ms; one by one {one_by_one:.3f} s, "
                     f"pipelined {pipelined:.3f} s")


def unit(queries: SequenceBatch, volume: SequenceBatch, source: MemorySource) -> None:
    """What the engine does for a batch and a volume that is on the device."""
    names = registry()
    plan = compose(names, names.pipeline("sw"), {"score_only": True}, "cuda")
    space = SearchSpace(source.total_residues, source.sequences, source.longest)
    context = Context(queries=queries, targets=volume, scoring=plan.family.scoring(queries, space, plan.options),
                      options=plan.options, space=space)
    records: Any = None
    for placed in plan.working("unit"):
        records = placed.stage.run(context, records)


def commands(fasta: str, targets: SequenceBatch, batches: Sequence[SequenceBatch], threads: Sequence[int],
             keep: str | None) -> Iterator[Timing]:
    """``seqloom sw`` from a database file to a file of hits, beside what it takes to start: one protein as database.

    Hits and alignments on the proteins of ``fasta`` alone are held to those of the CPU.
    """
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
        columns = "6 std score btop"
        for number, batch in enumerate(batches):
            for use in threads:

                def sw(database: str, back_end: str, n: int = number, p: int = use) -> float:
                    return run("sw", "-q", f"{n}.fasta", "-d", f"{database}.duckdb", "--backend", back_end, "--outfmt",
                               columns, "-o", f"{database}.{back_end}.tsv", "-p", str(p), "--no-store")

                start = min(sw("one", "cuda") for _ in range(2))
                seconds = min(sw("many", "cuda") for _ in range(2))
                cells = batch.total_residues * targets.total_residues
                yield Timing(f"command, {len(batch)} queries, {batch.total_residues} residues, {use} threads", seconds,
                             f"{cells / seconds / 1e12:.2f} TCUPS; {start:.2f} s of it to start")
            if len(batch) == 1 and batch.total_residues not in (127, 514):
                continue
            sw("few", "cuda", p=max(threads))
            sw("few", "cpu", p=max(threads))
            same = (folder / "few.cuda.tsv").read_bytes() == (folder / "few.cpu.tsv").read_bytes()
            lines = (folder / "few.cpu.tsv").read_bytes().count(b"\n")
            yield Timing(f"{lines} lines of cpu and cuda", 0.0, "equal" if same else "DIFFERENT")


def write_fasta(path: Path, batch: SequenceBatch) -> None:
    text, offsets = batch.alphabet.decode(batch.residues), batch.offsets.tolist()
    with path.open("w") as file:
        for number, (begin, end) in enumerate(pairwise(offsets)):
            file.write(f">s{number}\n{text[begin:end]}\n")


def giant(generator: np.random.Generator, length: int = 35_000) -> Iterator[Timing]:
    """Two sequences of so many residues, three in ten of which differ."""
    import resource

    from seqloom.plugins.common.resident_cuda import device_memory

    query = proteins([length], generator)[0]
    changed = generator.random(length) < 0.3
    target = np.where(changed, proteins([length], generator)[0], query).astype(np.uint8)
    both = [SequenceBatch.of(PROTEIN, [PROTEIN.decode(residues)]) for residues in (query, target)]
    for back_end in ("cuda", "cpu"):
        names = registry()
        plan = compose(names, names.pipeline("sw"), {}, back_end)
        source = MemorySource(replace(both[1], names=["giant"]))
        space = SearchSpace(source.total_residues, source.sequences, source.longest)
        times = []
        for _ in range(2):
            engine, sink = Engine(plan, names, both[0], source, space, Settings()), MemorySink()
            begin = time.perf_counter()
            engine.run(sink)
            times.append(time.perf_counter() - begin)
        need = engine.planner.need([(0, 1)], source.plan(length), 1)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
        yield Timing(f"giant pair, {back_end}", min(times),
                     f"score {sink.hits.score.tolist()}; {slot_seconds(engine)}; planned with {need.host >> 20} MiB of "
                     f"the host and {need.device >> 20} MiB of the device; process at its largest {peak} MiB, in use "
                     f"on the device {device_memory()._used >> 20} MiB")


def paper(targets: SequenceBatch, generator: np.random.Generator) -> Iterator[Timing]:
    """The paper's kernels, without data reuse and with it in both ways, on the first targets."""
    from seqloom.plugins.smith_waterman.antidiagonal_cuda import SCHEMES

    count = int(np.searchsorted(targets.offsets, PAPER_RESIDUES, "right")) - 1
    some = targets.take(0, count)
    pairs = antidiagonal_targets(some)
    for query in proteins(PAPER_LENGTHS, generator):
        for name, scheme in SCHEMES.items():
            seconds = best_of(lambda q=query, s=scheme: pairs.scores(q, scoring(), s))
            rate = len(query) * some.total_residues / seconds / 1e9
            yield Timing(f"{len(query)} antidiagonal, data reuse: {name}", seconds, f"{rate:.0f} GCUPS")


def antidiagonal_targets(targets: SequenceBatch) -> Any:
    """Targets on the device for the paper's kernels, as ``AntidiagonalTargets``."""
    from numba import cuda
    from seqloom.plugins.smith_waterman.antidiagonal_cuda import AntidiagonalTargets

    order = np.argsort(-targets.lengths, kind="stable")
    whole_words = np.pad(targets.residues, (0, -len(targets.residues) % 4))
    return AntidiagonalTargets(cuda.to_device(whole_words), targets.total_residues, targets.offsets[order],
                               targets.lengths[order])


def show(timings: Iterator[Timing]) -> None:
    """Print them as they come."""
    for timing in timings:
        print(f"{timing.what:<60} {timing.seconds:9.4f}  {timing.note}", flush=True)


PARTS = ("rates", "search", "stream", "model", "command", "giant", "paper")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("fasta")
    parser.add_argument("--parts", nargs="*", default=PARTS, choices=PARTS)
    parser.add_argument("--copies", type=int, default=60)
    parser.add_argument("--lengths", type=int, nargs="*", default=LENGTHS)
    parser.add_argument("--ends", type=int, nargs="*", default=LENGTHS, help="lengths whose ends are timed as well")
    parser.add_argument("--queries", help="FASTA file whose sequences are searched together")
    parser.add_argument("--keep", metavar="FOLDER", help="where the files of the part ``command`` shall stay")
    parser.add_argument("--threads", type=int, nargs="*", default=[1, os.cpu_count() or 1])
    parser.add_argument("--volume-residues", type=int)
    arguments = parser.parse_args()
    generator = np.random.default_rng(7)
    batches = [SequenceBatch.of(PROTEIN, [PROTEIN.decode(q)]) for q in proteins(arguments.lengths, generator)]
    if arguments.queries:
        batches.append(SequenceBatch.of(PROTEIN, records(arguments.queries)))
    needed = sorted({int(n) for batch in batches for n in batch.lengths})
    ends = arguments.ends if "rates" in arguments.parts else []
    print(f"kernels compiled in {compiled(needed, ends, os.cpu_count() or 1):.1f} s", flush=True)
    targets = shuffled_copies(records(arguments.fasta), arguments.copies, generator)
    some = [n for n in arguments.lengths if n in (127, 514, 2005)] or arguments.lengths
    parts: dict[str, Callable[[], Iterator[Timing]]] = {
        "rates": lambda: rates(targets, arguments.lengths, ends, generator),
        "search": lambda: (search(batch, targets, threads, score_only=score_only) for batch in batches
                           for threads in arguments.threads for score_only in (True, False)),
        "stream": lambda: streamed(targets, arguments.lengths, arguments.threads, arguments.volume_residues, generator),
        "model": lambda: modelled(targets, some, generator),
        "command": lambda: commands(arguments.fasta, targets, batches, arguments.threads, arguments.keep),
        "giant": lambda: giant(generator),
        "paper": lambda: paper(targets, generator),
    }
    for part in arguments.parts:
        show(parts[part]())


if __name__ == "__main__":
    main()
