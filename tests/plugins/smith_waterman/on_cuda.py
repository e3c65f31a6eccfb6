"""Checks of the CUDA kernels of exact Smith–Waterman: in the simulator on tiny tiles, on a device on whole ones.

``python -m tests.plugins.smith_waterman.on_cuda CHECK…`` runs some of them, or all, each in a process of its own, since
some choose the kernels for good; ``NUMBA_ENABLE_CUDASIM=1`` simulates.
"""

import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any
from unittest import mock

import numpy as np
from seqloom.core.alphabet import NUCLEOTIDE, PROTEIN
from seqloom.core.context import Context, Scoring
from seqloom.core.engine.memory import MemorySink
from seqloom.core.errors import BackendError, BudgetError
from seqloom.core.kernels.packed16 import ORDINARY, PACKED, SIMULATED, SINGLE, Arithmetic
from seqloom.core.sequences import Intervals, SequenceBatch
from seqloom.plugins.common import resident_cuda, target_order_cuda
from seqloom.plugins.common.stretches_cpu import Stretches
from seqloom.plugins.common.workspace_cuda import WorkKind, WorkSize
from seqloom.plugins.smith_waterman import (
    antidiagonal_cuda,
    extend_cuda,
    recurrence_cuda,
    seed_cuda,
    targets_cuda,
)
from seqloom.plugins.smith_waterman.extend_reference import best_ends
from seqloom.plugins.smith_waterman.matrices import printed_matrix
from seqloom.plugins.smith_waterman.reach import reach_of
from seqloom.plugins.smith_waterman.recurrence_reference import Packed
from seqloom.plugins.smith_waterman.scoring import SmithWatermanOptions, SmithWatermanScoring
from seqloom.plugins.smith_waterman.seed_cuda import SmithWatermanScoresCuda, shares
from seqloom.plugins.smith_waterman.seed_reference import best_scores
from seqloom.plugins.smith_waterman.targets_cuda import ScoreRequest
from seqloom.testing import assert_same_hits, run_pipeline

RESIDUES = PROTEIN.encode("ARNDCQEGHILKMFPSTWYVBZXU*OJ")
if SIMULATED:
    recurrence_cuda.ROW_COUNTS, recurrence_cuda.LANE_COUNTS = (1, 2), (4,)
    recurrence_cuda.TILE_ROWS, recurrence_cuda.LAST_ROWS, recurrence_cuda.TILE_LANES = (2, 3), (1, 2, 3), 4
    recurrence_cuda.MOST_BETWEEN = 2
    recurrence_cuda.WARPS = targets_cuda.WARPS = 1
    targets_cuda._SELECTING = 16
    # Several groups of queries, more scores than there is room for at first, borders in parts.
    targets_cuda._GROUP_QUERIES, targets_cuda._KEPT = 1, 2
    targets_cuda.border_columns = lambda need: (need.longest, need.longest)


def batch(texts: list[str], alphabet=PROTEIN) -> SequenceBatch:
    return SequenceBatch.of(alphabet, texts)


def check_places(arithmetic: Arithmetic, gap_open: int, gap_extend: int, lengths: tuple[int, ...]) -> None:
    """Scores and first best cells equal the reference's; reaches hold what scores the best."""
    rng = np.random.default_rng(gap_open)
    targets_cuda.packed_arithmetic = lambda: arithmetic
    scoring = Scoring(printed_matrix("BLOSUM62"), gap_open, gap_extend)
    for length in lengths:
        query = RESIDUES[rng.integers(0, 20, length)]
        texts = [RESIDUES[rng.integers(0, 27, n)] for n in (0, 1, 4, 11)]
        texts.append(np.concatenate([RESIDUES[rng.integers(0, 20, 3)], query[1 : length - 1]]))
        targets = SequenceBatch.of(PROTEIN, texts)
        stretches, everything = Stretches.of(targets, np.arange(5), None), np.arange(5)
        wanted = [best_ends(query, Packed.of([t], scoring))[0] for t in texts]
        scores = [w[0] for w in wanted]
        with targets_cuda.on_device_targets(targets, stretches, everything, 2, length, None, lambda: None) as device:
            found, high = device.scores([ScoreRequest([query], 0), ScoreRequest([query], 5)], scoring)
            assert found.scores.tolist() == scores, (length, scores)
            assert high.numbers.tolist() == [n for n in range(5) if scores[n] >= 5]
            some = np.array([n for n in (4, 2, 3, 1) if scores[n]], np.int64)
            ends = device.ends(query, scoring, some)
            assert [tuple(map(int, end)) for end in zip(*ends, strict=True)] == [wanted[n] for n in some]
            reaches = device.reaches(query, scoring, some, ends)
            for n, (score, _, column), reach in zip(some.tolist(), zip(*ends, strict=True), reaches, strict=True):
                part = texts[n][column + 1 - reach : column + 1]
                assert best_scores(query, Packed.of([part], scoring)).tolist() == [score]


def check_pieces() -> None:
    """Long targets are scored in pieces that overlap by the reach of the queries, also where scores overflow."""
    rng = np.random.default_rng(8)
    scoring = Scoring(printed_matrix("BLOSUM62"), 0, 11)
    queries = [RESIDUES[rng.integers(0, 20, n)] for n in ((2, 3) if SIMULATED else (2, 40, 700))]
    reach = reach_of(scoring, [len(q) for q in queries])
    usual = recurrence_cuda.numbers
    cases = [(arithmetic, lengths, ceiling) for arithmetic in (PACKED, SINGLE) for ceiling in (1 << 15, 1)
             for lengths in ((33, 3), (32, 65), (43, 31, 5, 1))]
    for arithmetic, lengths, ceiling in (cases[0], cases[4], cases[7]) if SIMULATED else cases:
        targets_cuda.packed_arithmetic = lambda a=arithmetic: a
        targets_cuda.numbers = lambda *a, c=ceiling: [  # below which scores aren't computed again
            n._replace(ceiling=min(n.ceiling, c)) if n.arithmetic.numbers == 2 else n for n in usual(*a)]
        lengths = lengths if SIMULATED else [n * reach // 6 for n in lengths]
        texts = [RESIDUES[rng.integers(0, 20, n)] for n in rng.permutation(lengths)]
        for text in texts:  # alignments everywhere, across the border of two pieces too
            for place in range(5, len(text) - 2, 7):
                text[place : place + 2] = queries[0]
        targets = SequenceBatch.of(PROTEIN, texts)
        stretches, everything = Stretches.of(targets, np.arange(len(texts)), None), np.arange(len(texts))
        wanted = [best_scores(query, Packed.of(texts, scoring)).tolist() for query in queries]
        with (mock.patch.object(target_order_cuda, "LEAST_PIECE", 4 * reach),
              targets_cuda.on_device_targets(targets, stretches, everything, len(queries), len(queries[-1]), None,
                                             lambda: None, reach) as device):
            assert device._works.pieces.cut == sum(n > 5 * reach for n in lengths)
            for least in (0, 8):
                found = device.scores([ScoreRequest([query], least) for query in queries], scoring)
                for of_query, scores in zip(found, wanted, strict=True):
                    high = [n for n, score in enumerate(scores) if score >= least]
                    assert of_query.numbers.tolist() == high
                    assert of_query.scores.tolist() == [scores[n] for n in high]


def check_overflow() -> None:
    """What sixteen bits don't hold is scored again in more, on the device and beyond that on the host."""
    # The simulator takes a lower ceiling, which few residues reach.
    length, ceiling = (9, 500) if SIMULATED else (280, 1 << 15)
    usual = recurrence_cuda.numbers
    targets_cuda.numbers = lambda *a: [n._replace(ceiling=min(n.ceiling, ceiling)) if n.arithmetic.numbers == 2 else n
                                       for n in usual(*a)]
    for best, beyond in ((127, 1), ((1 << 30) // length + 1, 0)):
        matrix = np.full((28, 28), -4, np.int32)
        np.fill_diagonal(matrix, best)
        both = batch(["A" * length, "C" * 3])
        context = Context(queries=both, targets=both, scoring=SmithWatermanScoring(matrix, 11, 1),
                          options=SmithWatermanOptions(evalue=None), counters=Counter())
        found = SmithWatermanScoresCuda().run(context, None)
        assert found.score.tolist() == [length * best, 3 * best], found.score
        assert context.counters["scored again in full precision"] == beyond


def check_pipelines() -> None:
    """The pipelines give the same on CPU and CUDA, with ends found by either, and by the paper's method."""
    from pyarrow import parquet

    rng = np.random.default_rng(3)
    residues = list("ACDEFGHIKLMNPQRSTVWY")
    queries = ["".join(rng.choice(residues, n)) for n in (4, 7)]
    targets = ["".join(rng.choice(residues, n)) for n in (1, 4)]
    targets += [queries[1][:3] + queries[1][4:], queries[0][1:] + "A"]
    sequences = batch(queries), batch(targets)
    sink = MemorySink()
    with tempfile.TemporaryDirectory() as folder:
        files = [f"{folder}/{n}.parquet" for n in range(2)]
        wanted = run_pipeline("sw", *sequences, {"evalue": 1e6, "all_scores": files[0]}, backend="cpu")
        assert len(wanted)
        assert_same_hits(wanted, run_pipeline("sw", *sequences, {"evalue": 1e6, "all_scores": files[1]}, backend="cuda",
                                              sink=sink))
        scores = [parquet.read_table(file).to_pylist() for file in files]
    # Two devices: the simulator's only one takes both shares, by query and by target.
    one, seed_cuda.device_count = seed_cuda.device_count, lambda: 2
    for some in (slice(0, 2), slice(0, 1)):
        few = batch(queries[some]), batch(targets[1:3])
        assert_same_hits(run_pipeline("sw", *few, {"evalue": 1e6}, backend="cpu"),
                         run_pipeline("sw", *few, {"evalue": 1e6}, backend="cuda"))
    seed_cuda.device_count = one
    assert scores[0] == scores[1] and len(scores[0]) == len(queries) * len(targets)
    assert sink.stats[0]["seed.scores"].counters["split by query"] == 1
    extend_cuda.LEAST_CELLS = 0
    assert_same_hits(wanted, run_pipeline("sw", *sequences, {"evalue": 1e6}, backend="cuda", volume_residues=11,
                                          threads=2))
    antidiagonal_cuda.MOST_THREADS = 4
    for reuse in ("no", "vectors", "yes"):
        assert_same_hits(wanted, run_pipeline(
            "sw", *sequences, {"evalue": 1e6}, stages=["seed.scores=antidiagonal-scores"],
            settings=[f"seed.scores.data_reuse={reuse}"], backend="cuda"))
    query = "".join(rng.choice(list("ACGT"), 7))
    back = NUCLEOTIDE.decode(NUCLEOTIDE.complement[NUCLEOTIDE.encode(query)][::-1])
    sequences = batch([query], NUCLEOTIDE), batch([query[1:6], back[1:], "T"], NUCLEOTIDE)
    wanted = run_pipeline("sw-nucleotide", *sequences, {"evalue": 1e6}, backend="cpu")
    assert len(wanted)
    assert_same_hits(wanted, run_pipeline("sw-nucleotide", *sequences, {"evalue": 1e6}, backend="cuda"))
    # Volumes of nucleotides are sent before they are searched, like those of proteins.
    for pipeline, some in (("sw-nucleotide", sequences), ("sw", few)):
        with mock.patch.object(resident_cuda.DeviceMemory, "bring", autospec=True,
                               side_effect=resident_cuda.DeviceMemory.bring) as bring:
            found = run_pipeline(pipeline, *some, {"evalue": 1e6}, backend="cuda", volume_residues=7)
        assert bring.call_count == 2
        assert_same_hits(run_pipeline(pipeline, *some, {"evalue": 1e6}, backend="cpu"), found)


def check_antidiagonals() -> None:
    """The paper's kernels score targets that begin and end anywhere in a word, and queries in strips, all schemes."""
    rng = np.random.default_rng(12)
    antidiagonal_cuda.MOST_THREADS = 2 if SIMULATED else 32
    targets = SequenceBatch.of(PROTEIN, [RESIDUES[rng.integers(0, 20, n)] for n in (1, 2, 5, 3, 4, 9)])
    residues = np.pad(targets.residues, (0, -targets.total_residues % 4))
    order = np.argsort(-targets.lengths, kind="stable")
    pairs = antidiagonal_cuda.AntidiagonalTargets(
        antidiagonal_cuda.cuda.to_device(residues), targets.total_residues, targets.offsets[order],
        targets.lengths[order])
    for gap_open, gap_extend in ((11, 1), (0, 0)):
        scoring = Scoring(printed_matrix("BLOSUM62"), gap_open, gap_extend)
        packed = Packed.of([targets[n] for n in order.tolist()], scoring)
        for length in (1, 6, 11) if SIMULATED else (1, 6, 11, 150):
            query = RESIDUES[rng.integers(0, 20, length)]
            wanted = best_scores(query, packed).tolist()
            assert max(wanted) > 0
            for name, scheme in antidiagonal_cuda.SCHEMES.items():
                for at_once in (0, 4):
                    found = pairs.scores(query, scoring, scheme, at_once).tolist()
                    assert found == wanted, (name, length, at_once, found, wanted)


def residues_of(volume: resident_cuda.Volume, count: int) -> np.ndarray:
    """The residues of a volume that is on the device, or on its way there."""
    volume.arrived([0])
    return volume.residues[:count].copy_to_host()


def check_memory() -> None:
    """Volumes come and go within the budget; one that is there can be used while another is copied."""
    volumes = [batch(["A" * n, "CW" * n]) for n in (40, 40, 39)]
    size = resident_cuda.VolumeSize.of(120, 2).nbytes
    memory, budget = resident_cuda.DeviceMemory(1 << 30), 2 * size

    def there(number: int) -> bool:
        with memory.volume(volumes[number], budget) as volume:
            assert volume.target_order.order.tolist() == [1, 0] and memory._used <= budget
            return residues_of(volume, volumes[number].total_residues).tolist() == volumes[number].residues.tolist()

    assert all(there(n) for n in (0, 1, 0, 1)) and memory.copies == 2
    assert there(2) and there(1) and memory.copies == 3  # the one used longest ago went
    memory.bring(volumes[0], budget)
    assert there(1) and there(2) and memory.copies == 5  # that which nobody has used yet stays
    assert there(0) and memory.copies == 5
    assert there(2) and there(1) and memory.copies == 6
    copy, begun, go_on = resident_cuda.begin_to_device, threading.Event(), threading.Event()

    def slow(*arguments: Any, **named: Any) -> Callable[[], None]:
        finish = copy(*arguments, **named)
        return lambda: (begun.set(), go_on.wait(30), finish())[2]

    with ThreadPoolExecutor(1) as pool, mock.patch.object(resident_cuda, "begin_to_device", slow):
        done = pool.submit(there, 0)
        assert begun.wait(30) and there(1) and not done.done()
        go_on.set()
        assert done.result()

    def failing(*arguments: Any, **named: Any) -> Callable[[], None]:
        copy(*arguments, **named)
        raising = mock.Mock(side_effect=[BackendError("failed"), None])
        return raising

    with mock.patch.object(resident_cuda, "begin_to_device", failing):
        for number in (2, 2):
            try:
                assert there(number) is None
            except BackendError as error:
                assert str(error) == "failed"
    assert there(2) and there(0) and there(1) and memory._used <= budget
    with memory.volume(volumes[0], budget), memory.volume(volumes[1], budget):
        resident_cuda._PATIENCE = 0.01
        try:
            with memory.volume(volumes[2], budget):
                raise AssertionError
        except BudgetError as error:
            assert "fewer threads" in str(error)


def check_residues() -> None:
    """Residues of volumes stand on the device as they are searched, in the room that is planned for."""
    memory, rng, count = resident_cuda.DeviceMemory(1 << 30), np.random.default_rng(5), 10_000 if SIMULATED else 9 << 20
    for alphabet in (PROTEIN, NUCLEOTIDE):
        residues = rng.integers(0, len(alphabet), count).astype(np.uint8)
        volume = SequenceBatch.of(alphabet, [residues[:100], residues[100:]])
        budget = resident_cuda.VolumeSize.of(count, 2).nbytes
        with memory.volume(volume, budget) as held:
            assert (residues_of(held, count) == residues).all() and memory._used <= budget
    masked = replace(volume, hard=Intervals.of([(0, 5, 50)]))
    with memory.volume(masked, None) as held:
        assert (residues_of(held, count) == masked.searched()).all()


def check_streaming() -> None:
    """Volumes that don't fit together go through the device one after the other, with the same working space."""
    targets = batch([residue * 40 for residue in "ACDE"])
    context = Context(options=SmithWatermanOptions(evalue=None), counters=Counter(), queries=batch(["ACDE"]),
                      scoring=SmithWatermanScoring(printed_matrix("BLOSUM62"), 11, 1))
    resident_cuda._memory.cache_clear()
    memory = resident_cuda.device_memory()
    made, usual = [], resident_cuda.Workspace
    resident_cuda.Workspace = lambda *arguments: made.append(arguments) or usual(*arguments)
    need = WorkSize(1, 40, 40, 1, 4).rounded()
    # Room for what a unit needs and the volume behind it, but not for another one.
    budget = targets_cuda.working_bytes(need) + 2 * resident_cuda.VolumeSize.of(40, 1).nbytes
    volumes = [targets.take(n, n + 1) for n in range(4)]
    arrays, device_array = Counter(), resident_cuda.cuda.device_array
    resident_cuda.cuda.device_array = lambda *arguments: arrays.update(made=1) or device_array(*arguments)
    made_before = []
    for volume in volumes:
        made_before.append(arrays["made"])
        memory.bring(volume, budget)
        found = SmithWatermanScoresCuda().run(replace(context, targets=volume, device_memory=budget), None)
        assert len(found) == 1 and memory._used <= budget
    assert len(made) == 1 and memory.copies == 4
    assert made_before[2] == made_before[3] == arrays["made"]  # the third volume is where the first one was
    memory.release_idle()
    assert memory._used == sum(held.extent.nbytes for held in memory._held)


def check_side_by_side() -> None:
    """Units find room side by side, and volumes ahead of them make room, with what is planned for and no more."""
    volumes = [batch(["A" * n, "CW" * n]) for n in range(40, 46)]
    need, kind = WorkSize(2, 135, 90, 1, 4).rounded(), targets_cuda._EXACT
    work = targets_cuda.working_bytes(need)
    flight, extent = 3, resident_cuda.VolumeSize.of(135, 2).nbytes
    memory, budget = resident_cuda.DeviceMemory(1 << 30), (flight + 1) * extent + flight * work
    together = threading.Barrier(flight)

    def unit(volume: SequenceBatch) -> bool:
        with memory.volume(volume, budget) as held:
            together.wait(30)  # all of them have a volume when they ask for working space
            with memory.workspace(kind, need, budget):
                assert memory._used <= budget
                return residues_of(held, volume.total_residues).tolist() == volume.residues.tolist()

    with ThreadPoolExecutor(2) as readers, ThreadPoolExecutor(flight) as units:
        ahead = [readers.submit(memory.bring, volume, budget) for volume in volumes]
        assert all(units.map(unit, volumes * 2, timeout=50))
        for reading in ahead:
            reading.result()


def check_parts() -> None:
    """Stages whose volumes come part by part find room, whatever those before them have left."""
    generator, kind = np.random.default_rng(5), WorkKind("work", lambda need, columns: 1000 * need.stretches)
    memory, budget = resident_cuda.DeviceMemory(1 << 30), 120_000
    sizes = [(stretches, resident_cuda.part_size(40_000, 400, 200, [0.9 * budget],
                                                 lambda part, work=stretches: 1000 * work))
             for stretches in (10, 60, 90, 10, 80, 20, 100, 90, 30)]
    assert len({size.residues for _, size in sizes}) > 4
    with mock.patch.object(resident_cuda, "_PATIENCE", 2):
        for stretches, size in sizes:
            parts = [batch(["".join(generator.choice(list("ARND"), size.residues))]) for _ in range(4)]
            with memory.parts(iter(parts), size, kind, WorkSize(stretches, 0, 0, 2, 0), budget) as (space, volumes):
                for part, volume in zip(parts, volumes, strict=True):
                    assert residues_of(volume, part.total_residues).tolist() == part.residues.tolist()
                    assert space.need.stretches >= stretches and memory._used <= budget
        # What nobody can make room for is refused, also while somebody has working space.
        with memory.working_space(100_000, budget, "work"):
            try:
                with memory.working_space(50_000, budget, "more"):
                    raise AssertionError("there is no room")
            except BudgetError as error:
                assert "fewer threads" in str(error)


def check_working_space() -> None:
    """Stages of a kind hand working space on; it grows where there is room, and none of another kind goes."""
    memory, counts = resident_cuda.DeviceMemory(1 << 30), Counter()
    kinds = [WorkKind(what, lambda need, columns: 1000 * need.stretches, fills=what == "a") for what in "ab"]
    made, device_array = Counter(), resident_cuda.cuda.device_array

    def count(what: str, number: int) -> None:
        counts[what] += number

    def used(kind: WorkKind, stretches: int, residues: int = 0, budget: int | None = None) -> tuple[int, int]:
        """What there is room for in the working space that is found for so much."""
        with memory.workspace(kind, WorkSize(stretches, residues, 0, 2, 0), budget, count) as space:
            space.room("numbers", stretches, np.int32)[:1].copy_to_device(np.array([7], np.int32))
            assert space.fetch(space.room("numbers", 1, np.int32), 0, 1).tolist() == [7]
            assert len(space.streams) == 2
            return space.need[:2]

    with mock.patch.object(resident_cuda.cuda, "device_array",
                           lambda *arguments: made.update(arrays=1) or device_array(*arguments)):
        for kind in kinds * 3:
            assert used(kind, 2) == (2, 0)
        assert memory._used == 4000 and counts["working spaces made"] == made["arrays"] == 2
        assert used(kinds[0], 1, 5) == (2, 5) and used(kinds[0], 2) == (2, 5)  # it has grown for both
        assert used(kinds[0], 6) == (6, 5) and memory._used == 8000 and counts["working spaces made"] == 2
        with memory.workspace(kinds[0], WorkSize(6, 0, 0, 2, 0), None):
            assert used(kinds[0], 3) == (3, 0) and memory._used == 11_000  # one is in use, so that there are two
        assert used(kinds[0], 1) == (3, 0)  # the smallest that suffices
        # Without room to grow it goes, and then that of others that nobody uses.
        assert used(kinds[0], 8, 0, 11_000) == (8, 0) and memory._used <= 11_000
        assert used(kinds[1], 4, 0, 11_000) == (4, 0) and memory._used <= 11_000
    assert {"ms waiting for a turn", "ms waiting for the device"} < set(counts)
    memory.release_idle()
    assert not memory._used


def check_shares() -> None:
    """Every pair is done by exactly one device, however many there are."""
    targets = batch(["A" * n for n in (5, 1, 0, 9, 7)])
    stretches = Stretches.of(targets, np.arange(5), None)
    even, one_long = np.full(7, 50), np.array([40, 950, 60, 50, 50, 50, 50])
    for queries in ([0], [0, 1, 2, 3, 4, 5, 6]):
        for devices in (1, 2, 3):
            for lengths in (even, one_long):
                divided, how = shares(queries, lengths, stretches, devices)
                pairs = sorted((q, t) for s in divided for q in s.queries for t in s.stretches.tolist())
                assert pairs == sorted((q, t) for q in queries for t in range(5))
                by_query = len(queries) >= 2 * devices and (devices == 1 or lengths is even)
                assert how == ("split by query" if by_query else "split by target")
    # Longest first to whom has least: no device waits long for another.
    lengths = np.array([10, 70, 20, 60, 50, 30])
    divided, how = shares(range(6), lengths, stretches, 3)
    assert how == "split by query" and [int(lengths[share.queries].sum()) for share in divided] == [80, 80, 80]


CHECKS = {
    "packed": lambda: check_places(PACKED, 11, 1, (1, 2, 5, 12, 26)),
    "packed-linear": lambda: check_places(PACKED, 0, 1, (9,)),
    "packed-flat": lambda: check_places(PACKED, 5, 0, (9,)),
    "ordinary": lambda: check_places(ORDINARY, 11, 1, (9,)),
    "single": lambda: check_places(SINGLE, 11, 1, (9,)),
    "pieces": check_pieces,
    "overflow": check_overflow,
    "pipelines": check_pipelines,
    "antidiagonals": check_antidiagonals,
    "memory": check_memory,
    "letters": check_residues,
    "streaming": check_streaming,
    "side-by-side": check_side_by_side,
    "parts": check_parts,
    "working-space": check_working_space,
    "shares": check_shares,
}

if __name__ == "__main__":
    names = sys.argv[1:] or list(CHECKS)
    if len(names) == 1:
        CHECKS[names[0]]()
        print(names[0], "passed")
    else:
        for name in names:
            subprocess.run([sys.executable, "-m", "tests.plugins.smith_waterman.on_cuda", name], check=True)
