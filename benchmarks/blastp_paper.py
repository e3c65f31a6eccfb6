"""The experiments of cuBLASTP (sections 3.6 and 4): measured as a table, drawn as charts.

    python -m benchmarks.blastp_paper measure TABLE [FASTA …] [--parts bins speed …] [--threads 1 2 4 …] [--tiny]
    python -m benchmarks.blastp_paper draw TABLE [TABLE …] FOLDER

Databases are FASTA files, of which so many sequences are taken as ``--residues`` says; queries are those whose lengths
are nearest to the paper's 127, 517 and 1,054 residues. The parts, with the paper's figures:

    bins        kernels of hit detection by number of bins (14)
    buffering   hit detection with the automaton near, with it in global memory, and by the table of words (17)
    scores      ungapped extension with scores of the matrix, of a position-specific one that is near, and of one in
                global memory, by query (15)
    extensions  the three ways to extend (16)
    occupancy   the share of a multiprocessor's warps that may run each kernel, by registers and shared memory (19c)
    speed       cuBLASTP's stages beside the coarse-grained ones, those of the processor, and what ``blastp`` does by
                itself: the critical phases, from targets in host memory (on a device, where there is one) to segments,
                and whole searches (18)
    breakdown   what the slots of these searches take, in seconds and as shares, and copying the targets to the device;
                cuBLASTP's with one thread of the host as well (11, 19d)
    scaling     gapped extension and traceback of many queries by number of threads (13)

The others of figures 16 and 19 are a profiler's to show, such as Nsight Compute: ``ncu --metrics
smsp__thread_inst_executed_per_inst_executed.ratio,smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.pct
python -m benchmarks.blastp_paper measure TABLE --parts extensions --rounds 1``, lanes of a warp at work and bytes used
of those loaded. Times are wall seconds, the best of a few runs after a
first; all ways have to find the same segments and hits, which is checked: notes say DIFFERENT where they don't.
``--tiny`` takes a few short sequences, which numba's simulator is through with in moments (``NUMBA_ENABLE_CUDASIM=1``).
What fails is told, and the other parts are measured all the same. Where there is no device, ``scaling`` and the
processor's share of ``speed`` and ``breakdown`` are.

The table has a line per measurement: part, database, residues of the query, what, place, seconds (or the share of
warps), note; apart by tabs.
``draw`` writes the same as tables for people, beside the charts.
"""

import argparse
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
from seqloom.core.alphabet import PROTEIN
from seqloom.core.backends import cuda_available, simulated, to_device
from seqloom.core.context import Context, SearchSpace
from seqloom.core.engine.engine import Engine
from seqloom.core.engine.memory import MemorySink, MemorySource
from seqloom.core.engine.planning import Settings
from seqloom.core.pipeline import Plan, compose
from seqloom.core.records import Records, Seeds
from seqloom.core.sequences import SequenceBatch
from seqloom.installed import registry

from .charts import save_bars, save_chart
from .measurements import Row, all_threads, carry_out, commands, drawn, written
from .smith_waterman_gpu import records
from .timing import SHARED

MAIN = SHARED / "data" / "proteins" / "main.fasta.gz"
LENGTHS = (127, 517, 1054)
BINS = (16, 32, 64, 128, 256, 512)
USUAL_BINS = 128
BATCH = 100
"""Queries of the part ``scaling``."""
WINDOWS = ("8", "16", "32")
KERNELS = ("detection", "assembling", "sorting", "filtering", "ordering")
"""Of hit detection; the last one puts hits of all bins in one order."""
MATRIX = "matrix"
SOURCES: Mapping[str, Mapping[str, str]] = {
    MATRIX: {"scores": "matrix"}, "pssm, near": {"scores": "pssm", "buffering": "on"},
    "pssm, in global memory": {"scores": "pssm", "buffering": "off"}}
"""Of scores, and the options by which extensions read them; what has no room near is in global memory all the same."""
CRITICAL = "extend.ungapped"
"""The slot that ends the critical phases."""
PHASES = {"index": "index", "seed": "hit detection", "sort": "sorting hits", CRITICAL: "ungapped extension",
          "extend.gapped": "gapped extension", "extend.traceback": "traceback", "score": "statistics"}
"""What slots do, by the beginnings of their names."""
OTHER, COPYING = "other", "copying the targets"
_TINY = (12, 16)


@dataclass(frozen=True)
class Way:
    """A way to search: back end, and what is changed of the pipeline ``blastp``."""

    backend: str
    stages: Sequence[str] = ()
    changed: Sequence[str] = ()

    @cached_property
    def plan(self) -> Plan:
        names = registry()
        return compose(names, names.pipeline("blastp"), {"comp_based_stats": "0"}, self.backend, self.stages,
                       self.changed)


AUTOMATON = "index.words=neighbourhood-dfa"
ON_HOST = "extend.gapped.backend=cpu"
COARSE = (AUTOMATON, "extend.ungapped=coarse-ungapped"), (
    "seed.words.enabled=no", "sort.diagonal.enabled=no", ON_HOST)
OURS = "cuBLASTP"
CPU_SCAN = "the CPU's scan"
TABLE = Way("cuda")
WAYS = {
    OURS: Way("cuda", (AUTOMATON, "seed.words=binned-dfa-hits", "extend.ungapped=window-ungapped"),
              ("sort.diagonal.enabled=no", ON_HOST)),
    "coarse-grained, queue": Way("cuda", *COARSE),
    "coarse-grained, dealt out": Way("cuda", COARSE[0], (*COARSE[1], "extend.ungapped.shares=dealt")),
    "the device's scan": TABLE,
    "words on the CPU": Way("cpu", (), ("seed.scan.enabled=no",)),
    CPU_SCAN: Way("cpu"),
}


def finish() -> None:
    """Wait for the device, where there is one."""
    if cuda_available():
        from numba import cuda

        cuda.synchronize()


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds until the device is done, and the result."""
    finish()
    begin = time.perf_counter()
    result = work()
    finish()
    return time.perf_counter() - begin, result


def watched(launch: Callable[..., None], taken: list[float]) -> Callable[..., None]:
    """A launch whose seconds are noted, without what memory for it takes."""

    def launched(*arguments: Any) -> None:
        taken.append(timed(lambda: launch(*arguments))[0])

    return launched


class Bench:
    """A database, and how often things are measured.

    Args:
        targets: the database.
        lengths: of queries, about.
        threads: numbers of threads, rising.
        rounds: of everything, after a first.
    """

    def __init__(self, name: str, targets: SequenceBatch, lengths: Sequence[int], threads: Sequence[int], rounds: int,
                 tiny: bool) -> None:
        self.name, self.targets, self.threads, self.rounds, self.tiny = name, targets, threads, rounds, tiny
        places = dict.fromkeys(int(np.argmin(np.abs(targets.lengths - length))) for length in lengths)
        self._ways = dict(WAYS)
        if tiny:
            ours = WAYS[OURS]
            self._ways[OURS] = replace(ours, changed=(*ours.changed, f"seed.words.num_bins={self.bins[0]}"))
        self.queries = [SequenceBatch.of(PROTEIN, [PROTEIN.decode(targets[place])]) for place in places]

    @property
    def bins(self) -> Sequence[int]:
        """Numbers of bins of the part ``bins``."""
        return (2, 4) if self.tiny else BINS

    @property
    def usual_bins(self) -> int:
        return self.bins[0] if self.tiny else USUAL_BINS

    def runs(self, work: Callable[[], Any]) -> list[Any]:
        """What some runs give, those after a first, in which kernels are compiled and memory is set aside."""
        return [work() for _ in range(self.rounds + (not self.tiny))][-self.rounds :]

    def best(self, work: Callable[[], tuple[float, Any]]) -> tuple[float, Any]:
        """The least seconds of some runs, and what the last one gave."""
        taken = self.runs(work)
        return min(seconds for seconds, _ in taken), taken[-1][1]

    def context(self, way: Way, queries: SequenceBatch, threads: int) -> Context:
        """What stages get to see, without indexes."""
        plan, targets = way.plan, self.targets
        space = SearchSpace(targets.total_residues, len(targets), targets.longest)
        return Context(queries=queries, targets=targets, options=plan.options, space=space, threads=threads,
                       scoring=plan.family.scoring(queries, space, plan.options))

    def with_words(self, queries: SequenceBatch) -> Context:
        """A context with the automaton and the table of words, for stages by themselves."""
        context = self.context(WAYS[OURS], queries, self.threads[-1])
        for way in (WAYS[OURS], TABLE):
            words = way.plan.indexes("query")[0].stage.run(context, queries)
            context = replace(context, indexes={**context.indexes, words.kind: words})
        return context

    def slot_by_slot(self, way: Way, queries: SequenceBatch, threads: int, last: str = ""
                     ) -> tuple[dict[str, float], dict[str, Records | None]]:
        """Wall seconds of each slot of a unit, up to one, and what each gives, moved to the host if there's no next."""
        plan, context = way.plan, self.context(way, queries, threads)
        seconds, found, given = dict[str, float](), dict[str, Records | None](), None
        for filled in (*plan.indexes("query"), *plan.indexes("target")):
            batch = queries if filled.stage.side == "query" else self.targets
            around = replace(context, slot=filled.name, device=filled.device)
            seconds[filled.name], index = timed(lambda f=filled, a=around, b=batch: f.stage.run(a, b))  # type: ignore
            context = replace(context, indexes={**context.indexes, index.kind: index})
        for filled in plan.working("unit"):
            around = replace(context, slot=filled.name, device=filled.device, counters=Counter(),
                             sorters=registry().sorters(filled.stage.backend, threads))

            def work(filled: Any = filled, around: Context = around, given: Records | None = given) -> Records:
                made: Records = filled.stage.run(around, to_device(given, filled.device))
                return made

            seconds[filled.name], given = timed(work)
            found[filled.name] = given
            if filled.name == last:
                break
        return seconds, found

    def search(self, way: Way, queries: SequenceBatch, threads: int) -> tuple[float, list[tuple[Any, ...]]]:
        """Seconds of a whole search from host memory, and what it finds."""
        source = MemorySource(replace(self.targets, names=range(len(self.targets))))
        space = SearchSpace(source.total_residues, source.sequences, source.longest)
        engine, sink = Engine(way.plan, registry(), queries, source, space, Settings(threads=threads)), MemorySink()
        seconds, _ = timed(lambda: engine.run(sink))
        hits = sink.hits
        return seconds, list(zip(*(hits.data[name].tolist() for name in ("query", "target", "score", "evalue")),
                                 strict=True))

    def ways(self, ours_alone: bool = False) -> Iterator[tuple[str, Way, int]]:
        """Name, way and threads of all there are: of those on the processor, by one thread and by all.

        Args:
            ours_alone: cuBLASTP's by one thread as well.
        """
        for name, way in self._ways.items():
            if way.backend == "cuda":
                if cuda_available():
                    yield name, way, self.threads[-1]
                    if ours_alone and name == OURS and self.threads[0] < self.threads[-1]:
                        yield f"{name}, {self.threads[0]} thread{'s' * (self.threads[0] > 1)}", way, self.threads[0]
            else:
                for threads in dict.fromkeys((self.threads[0], self.threads[-1])):
                    yield f"{name}, {threads} thread{'s' * (threads > 1)}", way, threads

    def row(self, part: str, query: SequenceBatch | int, what: str, place: object, seconds: float,
            note: str = "") -> Row:
        residues = query if isinstance(query, int) else query.total_residues
        return Row(part, self.name, residues, what, str(place), seconds, note)


def detection(context: Context, stage: Any) -> tuple[list[float], int, int]:
    """Seconds of the kernels of ``binned-hits`` or its like, the hits, and how many are left."""
    from seqloom.plugins.common.resident_cuda import device_memory
    from seqloom.plugins.protein_blast import hits_cuda
    from seqloom.plugins.protein_blast.words import HITS_PER_CELL

    targets, queries, bins = context.targets, context.queries, stage.options.num_bins
    blocks, longest = hits_cuda._blocks(), int(queries.lengths.max())
    layout = hits_cuda.KeyLayout.of(len(queries), len(targets), longest, targets.longest)
    if layout is None:
        raise SystemExit("keys of 63 bits don't hold these targets: take a smaller database")
    capacity = max(hits_cuda.LEAST_CAPACITY, hits_cuda.SLOTS // (blocks * bins))
    residues = int(hits_cuda.FULL * capacity * blocks * bins / HITS_PER_CELL / queries.total_residues)
    kernels, total, left = [0.0] * len(KERNELS), 0, []
    with device_memory().volume(targets, None) as volume:
        volume.arrived([0])
        detector = stage.detector(context, volume, blocks)
        launch, taken = detector.launch, [0.0]
        for low, high in hits_cuda.blocks_of_targets(targets.offsets, max(1, residues)):
            found, tops, room = detector.detect(low, high - low, layout, capacity)  # bins may turn out too small
            detector.launch = watched(launch, taken)
            found, tops, room = detector.detect(low, high - low, layout, room)
            detector.launch, first = launch, taken[-1]
            second, (hits, firsts) = timed(partial(detector.assemble, found, tops, room))
            del found
            third, _ = timed(partial(detector.sort, hits, firsts))
            fourth, keys = timed(partial(detector.filter, hits, firsts, layout, low))
            kernels = [sum(pair) for pair in zip(kernels, (first, second, third, fourth, 0.0), strict=True)]
            total += int(tops.sum())
            left += [] if keys is None else [keys]
        if left:
            kernels[-1], _ = timed(lambda: hits_cuda.in_order(left, layout.query + len(queries).bit_length()))
    return kernels, total, sum(map(len, left))


def best_detection(bench: Bench, context: Context, stage: Any) -> tuple[list[float], int, int]:
    """The least seconds of each kernel."""
    runs = bench.runs(lambda: detection(context, stage))
    return [min(times) for times in zip(*(kernels for kernels, _, _ in runs), strict=True)], *runs[-1][1:]


def by_bins(bench: Bench) -> Iterator[Row]:
    """Figure 14."""
    from seqloom.plugins.protein_blast.dfa_cuda import BinnedDfaHits

    for query in bench.queries:
        context = bench.with_words(query)
        for bins in bench.bins:
            kernels, hits, left = best_detection(bench, context, BinnedDfaHits(BinnedDfaHits.Options(num_bins=bins)))
            note = f"{hits:,} hits, {100 * left / max(1, hits):.1f} % left"
            for name, seconds in zip(KERNELS, kernels, strict=True):
                yield bench.row("bins", query, name, bins, seconds, note)


def by_buffering(bench: Bench) -> Iterator[Row]:
    """Figure 17."""
    from seqloom.plugins.protein_blast.dfa_cuda import Automaton, BinnedDfaHits
    from seqloom.plugins.protein_blast.dfa_reference import KIND
    from seqloom.plugins.protein_blast.hits_cuda import BinnedHits

    bins = bench.usual_bins
    for query in bench.queries:
        context = bench.with_words(query)
        for what, stage in (("automaton, near", BinnedDfaHits(BinnedDfaHits.Options(bins, "on"))),
                            ("automaton, in global memory", BinnedDfaHits(BinnedDfaHits.Options(bins, "off"))),
                            ("table of words", BinnedHits(BinnedHits.Options(bins)))):
            note = ""
            if isinstance(stage, BinnedDfaHits):
                buffers = Automaton(context.index(KIND), bins, stage.options.buffering == "on").buffers
                note = f"level {buffers.level}, {buffers.nbytes:,} bytes of a block, {buffers.warps} warps"
            yield bench.row("buffering", query, what, query.total_residues,
                            best_detection(bench, context, stage)[0][0], note)


def extension(bench: Bench, context: Context, hits: Records, stage: Any) -> tuple[float, Seeds]:
    """Seconds of the kernels of an extension, and its segments."""
    taken = [0.0]

    def extended() -> tuple[float, Seeds]:
        segments = stage.run(replace(context, counters=Counter()), hits)
        return taken[-1], segments  # a launch that had too little room isn't counted

    stage.launch = watched(stage.launch, taken)
    return bench.best(extended)


def hits_of(bench: Bench, query: SequenceBatch) -> tuple[Context, Records]:
    """The context of a query, and its hits as extensions take them."""
    from seqloom.plugins.protein_blast.dfa_cuda import BinnedDfaHits

    context = bench.with_words(query)
    stage = BinnedDfaHits(BinnedDfaHits.Options(num_bins=bench.usual_bins))
    return context, stage.run(replace(context, counters=Counter()), None)


def divisions(bench: Bench, options: Mapping[str, str]) -> Iterator[tuple[str, Any]]:
    """The ways to extend, by name."""
    from seqloom.plugins.protein_blast.ungapped_cuda import DiagonalUngapped, HitUngapped, WindowUngapped

    yield "by diagonal", DiagonalUngapped(DiagonalUngapped.Options(**options))
    yield "by hit", HitUngapped(HitUngapped.Options(**options))
    for size in ("4",) if bench.tiny else WINDOWS:
        yield f"by windows of {size}", WindowUngapped(WindowUngapped.Options(window_size=size, **options))


def by_extension(bench: Bench, part: str = "extensions") -> Iterator[Row]:
    """Figure 16, or, of all sources of scores, 15."""
    from seqloom.plugins.protein_blast.ungapped_cuda import Scores

    for query in bench.queries:
        context, hits = hits_of(bench, query)
        expected: list[dict[str, Any]] | None = None
        for source, options in SOURCES.items() if part == "scores" else ((MATRIX, SOURCES[MATRIX]),):
            for what, stage in divisions(bench, options):
                seconds, segments = extension(bench, context, hits, stage)
                expected = segments.rows() if expected is None else expected
                note = (f"{len(hits):,} hits, {len(segments):,} segments, "
                        f"{Scores.of(context, stage).shared:,} bytes of a block")
                yield bench.row(part, query, f"{what}, {source}" if part == "scores" else what, query.total_residues,
                                seconds, note if segments.rows() == expected else f"DIFFERENT: {note}")


def by_scores(bench: Bench) -> Iterator[Row]:
    """Figure 15."""
    return by_extension(bench, "scores")


def speed(bench: Bench) -> Iterator[Row]:
    """Figure 18."""
    for query in bench.queries:
        wanted: dict[str, Any] = {}

        def note(what: str, rows: list[Any], wanted: dict[str, Any] = wanted) -> str:
            same = wanted.setdefault(what, rows) == rows
            return f"{'' if same else 'DIFFERENT: '}{len(rows):,} {what}"

        for name, way, threads in bench.ways():

            def phases(way: Way = way, threads: int = threads, query: SequenceBatch = query) -> tuple[float, Any]:
                seconds, found = bench.slot_by_slot(way, query, threads, CRITICAL)
                return sum(seconds.values()), to_device(found[CRITICAL], "host")

            seconds, segments = bench.best(phases)
            yield bench.row("speed", query, "critical phases", name, seconds, note("segments", sorted(
                tuple(row.values()) for row in segments.rows())))
            seconds, hits = bench.best(lambda w=way, t=threads, q=query: bench.search(w, q, t))  # type: ignore[misc]
            yield bench.row("speed", query, "whole search", name, seconds, note("hits", hits))


def occupancy(bench: Bench) -> Iterator[Row]:
    """Figure 19c, as far as it is known before a kernel runs; nothing where devices are simulated."""
    if simulated():
        return
    from numba import cuda
    from seqloom.plugins.protein_blast import coarse_cuda, dfa_cuda, ungapped_cuda

    query = bench.queries[len(bench.queries) // 2]
    context, hits = hits_of(bench, query)
    for _, stage in divisions(bench, SOURCES[MATRIX]):
        extension(bench, context, hits, stage)
    coarse = coarse_cuda.CoarseUngapped(coarse_cuda.CoarseOptions(**SOURCES[MATRIX]))
    coarse.run(replace(context, counters=Counter()), None)
    automaton = dfa_cuda.Automaton(context.index(dfa_cuda.KIND), bench.usual_bins, True)
    buffers, scores = automaton.buffers, ungapped_cuda.Scores.of(context, coarse)
    warps = cuda.get_current_device().MAX_THREADS_PER_MULTIPROCESSOR // 32
    kernels = {"hit detection": (dfa_cuda.detect_kernel(bench.usual_bins, buffers.level, automaton.states),
                                 32 * buffers.warps, buffers.nbytes),
               "coarse-grained": (coarse_cuda.targets_kernel(scores.near, scores.positions, True,
                                                             coarse_cuda.MOST_COUNTED),
                                  scores.threads(coarse_cuda.THREADS, coarse_cuda.BLOCKS), scores.shared)}
    # As the stages ask for them: these are the kernels that have run.
    extend = partial(ungapped_cuda.extend_kernel, scores.near, scores.positions)
    forms = {"by diagonal": extend(1), "by hit": extend(1, alone=True),
             **{f"by windows of {size}": extend(int(size)) for size in WINDOWS}}
    threads_of_a_block = scores.threads(ungapped_cuda.THREADS, ungapped_cuda.BLOCKS)
    kernels |= {what: (made, threads_of_a_block, scores.shared) for what, made in forms.items()}
    for what, (made, threads, nbytes) in kernels.items():
        for compiled in made.dispatcher.overloads.values():
            blocks = cuda.current_context().get_active_blocks_per_multiprocessor(
                compiled.library.get_cufunc(), threads, nbytes)
            yield bench.row("occupancy", query, what, query.total_residues, int(blocks) * threads / 32 / warps,
                            f"{compiled.regs_per_thread} registers, {compiled.shared_mem_per_block + nbytes:,} bytes "
                            f"shared, {threads} threads a block")


def phase_of(slot: str) -> str:
    """What a slot does."""
    return next((phase for begin, phase in PHASES.items() if slot == begin),
                PHASES.get(slot.split(".")[0], OTHER))


def breakdown(bench: Bench) -> Iterator[Row]:
    """Figures 11 and 19d."""
    for query in bench.queries:
        for name, way, threads in bench.ways(ours_alone=True):
            phases: dict[str, float] = dict.fromkeys(PHASES.values(), 0.0)
            runs = [seconds for seconds, _ in bench.runs(
                lambda w=way, t=threads, q=query: bench.slot_by_slot(w, q, t))]  # type: ignore[misc]
            for slot in runs[0]:
                phase = phase_of(slot)
                phases[phase] = phases.get(phase, 0.0) + min(run[slot] for run in runs)
            whole, _ = bench.best(lambda w=way, t=threads, q=query: bench.search(w, q, t))  # type: ignore[misc]
            phases[OTHER] = phases.get(OTHER, 0.0) + max(0.0, whole - sum(phases.values()))
            for phase, seconds in phases.items():
                yield bench.row("breakdown", query, phase, name, seconds, f"whole search {whole:.4f} s")
        if cuda_available():
            yield bench.row("breakdown", query, COPYING, OURS, copying(bench), "beside kernels of the volume before")


def copying(bench: Bench) -> float:
    """Seconds in which the residues of all targets get to the device."""
    from seqloom.plugins.common.resident_cuda import device_memory

    def copied() -> tuple[float, None]:
        fresh = replace(bench.targets, residues=bench.targets.residues.copy())

        def send() -> None:
            with device_memory().volume(fresh, None) as volume:
                volume.arrived([0])

        return timed(send)[0], None

    return bench.best(copied)[0]


def scaling(bench: Bench) -> Iterator[Row]:
    """Figure 13."""
    count = 2 if bench.tiny else BATCH
    places = np.unique(np.arange(count) * len(bench.targets) // count).tolist()
    queries = SequenceBatch.of(PROTEIN, [PROTEIN.decode(bench.targets[place]) for place in places])
    way = WAYS[CPU_SCAN]
    for threads in bench.threads:
        runs = bench.runs(lambda t=threads: bench.slot_by_slot(way, queries, t))  # type: ignore[misc]
        for slot in ("extend.gapped", "extend.traceback"):
            given = runs[-1][1][slot]
            yield bench.row("scaling", queries, phase_of(slot), threads, min(run[slot] for run, _ in runs),
                            f"{len(queries)} queries, {len(given or ()):,} alignments")


ON_DEVICE: Mapping[str, Callable[[Bench], Iterable[Row]]] = {
    "bins": by_bins, "buffering": by_buffering, "scores": by_scores, "extensions": by_extension,
    "occupancy": occupancy}
PARTS: Mapping[str, Callable[[Bench], Iterable[Row]]] = {
    **ON_DEVICE, "speed": speed, "breakdown": breakdown, "scaling": scaling}


def database(path: str, residues: int) -> SequenceBatch:
    """The first sequences of a FASTA file, of so many residues at most."""
    texts = records(path)
    ends = np.cumsum([len(text) for text in texts])
    return SequenceBatch.of(PROTEIN, texts[: max(1, int(np.searchsorted(ends, residues, "right")))])


def tiny_targets() -> SequenceBatch:
    """A few short proteins, most of which have a stretch in common."""
    generator = np.random.default_rng(5)
    texts = ["".join(generator.choice(list("ARNDCQEGHILKMFPSTWYV"), length)) for length in (*_TINY, 9, 14)]
    return SequenceBatch.of(PROTEIN, [*texts, texts[0][2:] + "W", "C" + texts[1][3:]])


def small_for_the_simulator() -> None:
    """Few threads and little room at first, so that a simulated device is done in moments."""
    from seqloom.plugins.common import diagonal_tiles_cuda, radix_cuda, xdrop_cuda
    from seqloom.plugins.protein_blast import gapped_cuda, hits_cuda, ungapped_cuda

    diagonal_tiles_cuda.LANE_COUNTS, diagonal_tiles_cuda.ROW_COUNTS = (1, 2, 4), (4,)
    diagonal_tiles_cuda.LEAST_SPREAD, diagonal_tiles_cuda.WARPS = 4, 1
    xdrop_cuda.THREADS = gapped_cuda.THREADS = ungapped_cuda.THREADS = ungapped_cuda.MOST_THREADS = 1
    hits_cuda.SORTING, hits_cuda.LEAST_CAPACITY, hits_cuda.SLOTS = 4, 1, 1 << 10
    radix_cuda.BITS, radix_cuda.WORDS_PER_THREAD = 5, 2


def measure(arguments: argparse.Namespace) -> int:
    """Write the table; how many parts failed."""
    if arguments.tiny and simulated():
        small_for_the_simulator()
    parts = [part for part in arguments.parts if part not in ON_DEVICE or cuda_available()]
    if without := [part for part in arguments.parts if part not in parts]:
        print(f"there is no CUDA device: left out are {', '.join(without)}", file=sys.stderr)
    rounds, failed = 1 if arguments.tiny else arguments.rounds, 0
    with arguments.table.open("w", encoding="utf-8") as table:
        for path in [""] if arguments.tiny else arguments.fasta or [str(MAIN)]:
            targets = database(path, arguments.residues) if path else tiny_targets()
            name = Path(path).name.split(".")[0] if path else "tiny"
            print(f"{name}: {len(targets):,} proteins, {targets.total_residues:,} residues", flush=True)
            bench = Bench(name, targets, _TINY if arguments.tiny else LENGTHS, sorted(set(arguments.threads)), rounds,
                          arguments.tiny)
            failed += written(table, name, {part: partial(PARTS[part], bench) for part in parts})
    return failed


ACROSS = "residues of the query"
MS = "milliseconds"


def draw(arguments: argparse.Namespace) -> int:
    """Draw the charts, and write the table anew."""
    return drawn(arguments, "blastp_paper", draw_part)


def draw_part(folder: Path, name: str, part: str, database: str, rows: list[Row]) -> None:
    """The charts of a part."""
    queries = list(dict.fromkeys(row.query for row in rows))
    if part in ("bins", "breakdown"):
        for query in queries:
            chosen, path = [row for row in rows if row.query == query], folder / f"{name}_{query}.svg"
            if part == "bins":
                save_chart(path, f"Hit detection by number of bins, query of {query} residues, {database}",
                           "bins of a warp", MS, lines(chosen, lambda row: row.place))
            else:
                save_phases(path, f"Parts of a search, query of {query} residues, {database}", chosen)
                save_phases(folder / f"{name}_shares_{query}.svg",
                            f"Shares of a search, query of {query} residues, {database}", shares(chosen), "per cent")
        if part == "bins":
            save_chart(folder / f"{name}.svg", f"All kernels of hit detection by number of bins, {database}",
                       "bins of a warp", MS, lines(summed(rows), lambda row: row.place))
    elif part == "speed":
        for what in dict.fromkeys(row.what for row in rows):
            chosen = [row for row in rows if row.what == what]
            ours = {row.query: row.seconds for row in chosen if row.place == OURS}
            times: dict[str, list[tuple[float, float]]] = {}
            for row in chosen:
                if row.query in ours and row.place != OURS:
                    times.setdefault(row.place, []).append((row.query, row.seconds / ours[row.query]))
            if times:
                save_chart(folder / f"{name}_{what.split()[0]}.svg", f"cuBLASTP's stages, {what}, {database}", ACROSS,
                           "times as fast as", times)
    elif part == "occupancy":
        save_bars(folder / f"{name}.svg", f"Share of a multiprocessor's warps, {database}", "", "share",
                  ["\n".join(row.what.split()) for row in rows], {"warps": [row.seconds for row in rows]}, {})
    elif part == "scaling":
        first = {row.what: (row.seconds, int(row.place)) for row in reversed(rows)}
        series = {what: [(float(row.place), seconds * threads / row.seconds) for row in rows if row.what == what]
                  for what, (seconds, threads) in first.items()}
        longest = max(float(row.place) for row in rows)
        series["as many times as threads"] = [(float(row.place), float(row.place)) for row in rows
                                              if row.what == rows[0].what or float(row.place) == longest]
        save_chart(folder / f"{name}.svg", f"Strong scaling on the CPU, {database}", "threads", "times as fast as one",
                   series)
    elif part == "scores":
        # A chart for each way to extend: its name goes up to the first comma.
        for way in dict.fromkeys(row.what.split(", ")[0] for row in rows):
            chosen = [replace(row, what=row.what.removeprefix(f"{way}, ")) for row in rows
                      if row.what.startswith(f"{way}, ")]
            save_chart(folder / f"{name}_{way.replace(' ', '_')}.svg",
                       f"Extension {way}, by source of scores, {database}", ACROSS, MS,
                       lines(chosen, lambda row: row.query))
    else:
        title = {"buffering": "Hit detection with the automaton near and not",
                 "extensions": "Three ways to extend"}[part]
        save_chart(folder / f"{name}.svg", f"{title}, {database}", ACROSS, MS, lines(rows, lambda row: row.query))


def lines(rows: Sequence[Row], place: Callable[[Row], Any]) -> dict[str, list[tuple[float, float]]]:
    """Milliseconds by place of everything that was measured."""
    found: dict[str, list[tuple[float, float]]] = {}
    for row in rows:
        found.setdefault(row.what, []).append((float(place(row)), max(1e-4, 1e3 * row.seconds)))
    return found


def summed(rows: Sequence[Row]) -> list[Row]:
    """All kernels together, of each query and place."""
    found: dict[tuple[int, str], Row] = {}
    for row in rows:
        before = found.get((row.query, row.place))
        found[row.query, row.place] = replace(row, what=f"{row.query:,} residues", seconds=row.seconds + (
            before.seconds if before else 0.0))
    return list(found.values())


def shares(rows: Sequence[Row]) -> list[Row]:
    """Per cent in place of seconds, of what is done one after the other."""
    rows = [row for row in rows if row.what != COPYING]
    whole = dict.fromkeys((row.place for row in rows), 0.0)
    for row in rows:
        whole[row.place] += row.seconds
    return [replace(row, seconds=100 * row.seconds / max(1e-9, whole[row.place])) for row in rows]


def save_phases(path: Path, title: str, rows: Sequence[Row], up: str = "seconds") -> None:
    """Bars of phases; what goes on beside them is a mark."""
    names = list(dict.fromkeys(row.place for row in rows))
    seconds = {(row.what, row.place): row.seconds for row in rows}
    parts = {phase: [seconds.get((phase, name), 0.0) for name in names]
             for phase in dict.fromkeys(row.what for row in rows if row.what != COPYING)}
    marks = {COPYING: [seconds.get((COPYING, name), float("nan")) for name in names]} if any(
        what == COPYING for what, _ in seconds) else {}
    broken = ["\n".join(name.replace("coarse-", "coarse- ").split()) for name in names]
    save_bars(path, title, "", up, broken, parts, marks)


def main() -> None:
    parser, command = commands(__doc__, measure, draw)
    command.add_argument("--parts", nargs="+", default=list(PARTS), choices=list(PARTS))
    command.add_argument("--threads", type=int, nargs="+", default=all_threads())
    command.add_argument("--rounds", type=int, default=3)
    command.add_argument("--residues", type=int, default=1 << 25, help="of each database, at most")
    command.add_argument("--tiny", action="store_true", help="a few short sequences, once")
    carry_out(parser)


if __name__ == "__main__":
    main()
