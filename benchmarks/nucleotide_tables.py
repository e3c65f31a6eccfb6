"""Tables of query words of nucleotide BLAST: today's, BLAST's small one and megablast's (``docs/blastn.md``).

For queries of some lengths and two tasks: bytes of the table, the time of making it, and how many bases a second the
seed stage then scans with it, on one thread, of random targets that have pieces of the query; today's is made of the
same words of the query as the others then, whatever is least work. Seeds must be the same ones in the same order, which
is checked, and then rows of whole searches.

Where there is a CUDA device, G-BLASTN's kernels are measured beside ours: the seed stage with each table, against
targets that are there, and its kernels: scan, look-up, and mini-extension, which is part of our look-up. Whole searches
have other words in the usual table, and leave hits out that no extension saves, which is measured, too. ``python -m
benchmarks.nucleotide_tables`` does this alone. Where there are very many seeds, they are counted only.
"""

import hashlib
import math
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import seqloom
from seqloom.core.alphabet import NUCLEOTIDE
from seqloom.core.backends import cuda_available
from seqloom.core.context import Context, SearchSpace
from seqloom.core.pipeline import compose
from seqloom.core.records import Seeds
from seqloom.core.sequences import SequenceBatch
from seqloom.installed import registry
from seqloom.plugins.nucleotide_blast import seed_cpu
from seqloom.plugins.nucleotide_blast.paper_tables_cpu import chained_table, gathered, small_table
from seqloom.plugins.nucleotide_blast.query_words_cpu import Sampling
from seqloom.plugins.nucleotide_blast.word_table_cpu import word_table

from .smith_waterman_gpu import show
from .timing import Timing

TABLES = ("nucleotide-word-table", "small-word-table", "megablast-word-table")
TASKS = {"megablast": {}, "blastn": {"dust": "no"}}
LENGTHS = (500, 10_000, 100_000, 1_000_000)
SCANNED, SCANNED_BY_DEVICE = 32_000_000, 512_000_000
"""Bases of the targets."""
PIECES, PIECE = 200, 300
"""Of the query that lie among these, and their bases."""
ROUNDS = 5
MOST_COMPARED = 4_000_000
"""Seeds that are brought back from a device."""


def drawn(length: int, scanned: int = SCANNED) -> tuple[SequenceBatch, SequenceBatch]:
    """A random query, and a target of random bases with pieces of it."""
    random = np.random.default_rng(length)
    query, target = (random.integers(0, 4, count, np.uint8) for count in (length, scanned))
    for place in random.integers(0, scanned - PIECE, PIECES).tolist():
        begin = int(random.integers(0, max(1, length - PIECE)))
        piece = query[begin : begin + PIECE]
        target[place : place + len(piece)] = piece
    return SequenceBatch.of(NUCLEOTIDE, [query]), SequenceBatch.of(NUCLEOTIDE, [target])


def quickest(work: Callable[[], object]) -> float:
    """Seconds of this thread, the least of some rounds after one that compiles."""
    taken = []
    for _ in range(1 + ROUNDS):
        begin = time.thread_time()
        work()
        taken.append(time.thread_time() - begin)
    return min(taken[1:])


def digest_of(seeds: Seeds) -> str:
    """Of all seeds, in their order."""
    return hashlib.blake2b(b"".join(np.ascontiguousarray(seeds.data[name]).tobytes()
                                    for name in ("query_pos", "target_pos", "query_frame"))).hexdigest()


def tables_and_scans(task: str, length: int) -> Iterator[Timing]:
    """What each table takes, and the seed stage with it."""
    names, (queries, targets) = registry(), drawn(length)
    known = None
    for table in TABLES:
        plan = compose(names, names.pipeline(task), TASKS[task], "cpu", [f"index.words={table}"])
        context = Context(queries=queries, targets=targets, options=plan.options)
        made = [filled.stage.run(context, queries if filled.stage.side == "query" else targets)
                for filled in plan.indexes("query") + plan.indexes("target")]
        words = made[0]
        width, begins = int(words["width"][0]), words["strand_offsets"]
        pairs, room = gathered(words, width, begins), int(begins[-1])
        kinds = 4**width
        small = "backbone" in {name.partition(".")[2] for name in words.arrays}
        work = {"nucleotide-word-table": lambda pairs=pairs, kinds=kinds: word_table(*pairs, kinds),
                "small-word-table": lambda pairs=pairs, kinds=kinds, room=room: (
                    small_table(*pairs, kinds, room) or chained_table(*pairs, kinds, room)),
                "megablast-word-table": lambda pairs=pairs, kinds=kinds, room=room: (
                    chained_table(*pairs, kinds, room))}[table]
        found = work()
        arrays = found.values() if isinstance(found, dict) else found
        size = sum(array.nbytes for array in arrays)
        building = quickest(work)
        context = replace(context, indexes={index.kind: index for index in made})
        [stage] = [filled.stage for filled in plan.stages if filled.slot.name == "seed.words"]
        seeds = stage.run(context, None)
        digest = digest_of(seeds)
        assert known in (None, digest), f"{table} finds other seeds"
        known = digest
        seconds = quickest(lambda stage=stage, context=context: stage.run(context, None))  # the table is there by now
        fits = "" if table != "small-word-table" or small else " (no room in 16 bits: megablast's)"
        yield Timing(f"{task} {length:,}: {table.removesuffix('-table')}", seconds,
                     f"{SCANNED / seconds / 1e9:.2f} G bases/s; words of {width}; table {size / 1e6:.2f} MB, made in "
                     f"{1000 * building:.2f} ms{fits}; {len(seeds):,} hits")


def rows(length: int) -> Iterator[Timing]:
    """Whole searches by each table: the same rows."""
    queries, targets = drawn(length)
    known, taken = None, []
    with tempfile.TemporaryDirectory() as folder:
        for table in TABLES:
            begin = time.perf_counter()
            run = seqloom.search("megablast", queries, targets, store=False, backend="cpu", evalue=1e-5,
                                 stages=[f"index.words={table}"])
            taken.append(time.perf_counter() - begin)
            run.write(Path(folder) / "rows", "6 std btop")
            found = (Path(folder) / "rows").read_bytes()
            assert found and known in (None, found), f"rows by {table} are others"
            known = found
    assert known is not None
    count = known.count(b"\n")
    yield Timing(f"megablast {length:,}: whole searches", min(taken), f"{count:,} rows, the same by all tables")


PASSES = {"hits_cuda": {"scan_kernel": "scan", "look_up_kernel": "look-up", "look_up_sampled_kernel": "look-up"},
          "paper_tables_cuda": {"scan_table_kernel": "scan", "look_up_kernel": "look-up",
                                "extend_pairs_kernel": "mini-extension"}}
"""Kernels of modules, and what each does."""


class Watched:
    """A kernel whose seconds are added up, until the device is done each time."""

    def __init__(self, kernel: Any, what: str, taken: dict[str, float]) -> None:
        self._kernel, self._what, self._taken = kernel, what, taken

    def __getitem__(self, where: Any) -> Callable[..., None]:
        from numba import cuda

        def launch(*arguments: Any) -> None:
            cuda.synchronize()
            begin = time.perf_counter()
            self._kernel[where](*arguments)
            cuda.synchronize()
            self._taken[self._what] += time.perf_counter() - begin

        return launch


@contextmanager
def watching(taken: dict[str, float]) -> Iterator[None]:
    """Have the seconds of all passes added up."""
    from seqloom.plugins.nucleotide_blast import hits_cuda, paper_tables_cuda

    with ExitStack() as patched:
        for module in (hits_cuda, paper_tables_cuda):
            for name, what in PASSES[module.__name__.rpartition(".")[2]].items():
                get = getattr(module, name)
                patched.enter_context(mock.patch.object(
                    module, name, lambda *given, get=get, what=what: Watched(get(*given), what, taken)))
        yield


def scans_by_device(task: str, length: int) -> Iterator[Timing]:
    """The seed stage with each table on a device, and its kernels."""
    names, (queries, targets) = registry(), drawn(length, SCANNED_BY_DEVICE)
    space = SearchSpace(targets.total_residues, len(targets), targets.longest)
    known, bases, seeds = None, None, None
    for table, of_search in ((TABLES[0], True), *((table, False) for table in TABLES)):
        plan = compose(names, names.pipeline(task), TASKS[task], "cuda", [f"index.words={table}"])
        # Words of other widths are looked for where scores say which hits are kept.
        scoring = {"scoring": plan.family.scoring(queries, space, plan.options)} if of_search else {}
        context = Context(queries=queries, targets=targets, options=plan.options, space=space, counters=Counter(),
                          **scoring)
        bases = bases or [filled.stage.run(context, targets) for filled in plan.indexes("target")]
        made = [filled.stage.run(context, queries) for filled in plan.indexes("query")] + bases
        context = replace(context, indexes={index.kind: index for index in made})
        [stage] = [filled.stage for filled in plan.stages if filled.slot.name == "seed.words"]
        seconds, kernels = [], []
        for _ in range(1 + ROUNDS):
            seeds = None  # there may be room for those of one run
            begin = time.perf_counter()
            seeds = stage.run(context, None)
            seconds.append(time.perf_counter() - begin)
            assert not context.counters["units without room on a device"], "too little memory"
        count = len(seeds)
        if not of_search:
            found = digest_of(seeds) if count <= MOST_COMPARED else str(count)
            assert known in (None, found), f"{table} finds other seeds"
            known = found
        seeds = None
        for _ in range(ROUNDS):
            taken: dict[str, float] = Counter()  # type: ignore[assignment]
            with watching(taken):
                stage.run(context, None)
            kernels.append(taken)
        best = min(seconds[1:])
        passes = {what: min(taken[what] for taken in kernels) for what in kernels[0]}
        whole = sum(passes.values())
        shares = ", ".join(f"{what} {1000 * taken:.2f}" for what, taken in passes.items())
        name = f"{table.removesuffix('-table')}{', as in searches' * of_search}"
        yield Timing(f"device, {task} {length:,}: {name}", best,
                     f"{SCANNED_BY_DEVICE / best / 1e9:.1f} G bases/s; kernels {SCANNED_BY_DEVICE / whole / 1e9:.1f}, "
                     f"ms: {shares}; {count:,} hits")


def measure_devices() -> Iterator[Timing]:
    """Nothing where there is no device."""
    if cuda_available():
        for task in TASKS:
            for length in LENGTHS:
                yield from scans_by_device(task, length)


def measure() -> Iterator[Timing]:
    """Tables of all lengths by both tasks."""
    own_words: dict[str, Callable[..., object]] = {"cheapest": lambda *_: (0, "queries"),
                                                   "best_sampling": lambda *_: Sampling(8, 1, math.inf)}
    with mock.patch.multiple(seed_cpu, **own_words):
        for task in TASKS:
            for length in LENGTHS:
                yield from tables_and_scans(task, length)
    yield from rows(10_000)
    yield from measure_devices()


if __name__ == "__main__":
    show(measure_devices())
