"""Checks of the profile HMM stages on CUDA: in the simulator on tiny tiles, on a device on whole ones.

``python -m tests.plugins.profile_hmm.on_cuda CHECK…`` runs some of them, or all; ``NUMBA_ENABLE_CUDASIM=1`` simulates.
``--residues N`` goes on with random cases until the targets had so many residues.
"""

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
from numba import cuda as _cuda
from seqloom.core.alphabet import PROTEIN
from seqloom.core.context import Context, SearchSpace
from seqloom.core.cuda.jit import kernel as kept_kernel
from seqloom.core.engine.engine import Engine
from seqloom.core.engine.memory import MemorySink, MemorySource
from seqloom.core.engine.planning import Planner, Settings
from seqloom.core.kernels.packed8 import maximum4, subtract4
from seqloom.core.kernels.packed16 import SIMULATED
from seqloom.core.options import build_options
from seqloom.core.pipeline import compose
from seqloom.core.records import Records
from seqloom.core.sequences import ModelBatch, SequenceBatch
from seqloom.installed import registry
from seqloom.plugins.common import diagonal_scan_cuda, diagonal_tiles_cuda
from seqloom.plugins.common.resident_cuda import device_memory
from seqloom.plugins.profile_hmm import extend_forward_cuda, msv_warps_cuda, pairs_cuda, warp_blocks
from seqloom.plugins.profile_hmm.extend_bias_cpu import BiasFilterCpu
from seqloom.plugins.profile_hmm.extend_bias_cuda import BiasFilterCuda
from seqloom.plugins.profile_hmm.extend_forward_cpu import ForwardFilterCpu
from seqloom.plugins.profile_hmm.extend_forward_cuda import ForwardFilterCuda
from seqloom.plugins.profile_hmm.extend_viterbi_cpu import ViterbiFilterCpu
from seqloom.plugins.profile_hmm.extend_viterbi_cuda import ViterbiFilterCuda
from seqloom.plugins.profile_hmm.index_cpu import HmmProfilesCpu
from seqloom.plugins.profile_hmm.index_reference import profile_of
from seqloom.plugins.profile_hmm.msv_cpu import decided, length_costs, scores_and_p_values
from seqloom.plugins.profile_hmm.msv_reference import best_segments, msv_scores
from seqloom.plugins.profile_hmm.msv_warps_cuda import OVERFLOW, SentColumns, layout_of
from seqloom.plugins.profile_hmm.options import ProfileOptions
from seqloom.plugins.profile_hmm.profile import BYTE_BASE, BYTE_SCALE, ByteProfile, SearchProfile, search_profile
from seqloom.plugins.profile_hmm.seed_msv_cpu import MsvFilterCpu, SsvFilterCpu, Targets
from seqloom.plugins.profile_hmm.seed_msv_cuda import Lengths, MsvFilterCuda, SsvFilterCuda, least_segments
from seqloom.plugins.profile_hmm.seed_msv_reference import SsvFilter
from seqloom.plugins.profile_hmm.seed_msv_warps_cuda import MsvWarps, MsvWarpsOptions, SsvWarps, WarpOptions
from seqloom.testing import assert_same_hits, assert_same_records, run_pipeline

from ..checks import carry_out
from ..parts import ROOM, small_parts
from .models import batch, random_model, random_target

if SIMULATED:
    diagonal_tiles_cuda.LANE_COUNTS, diagonal_tiles_cuda.ROW_COUNTS = (1, 2, 4), (4,)
    diagonal_tiles_cuda.LEAST_SPREAD, diagonal_tiles_cuda.WARPS = 4, 1
    diagonal_scan_cuda._GROUP_QUERIES, diagonal_scan_cuda._FETCHED, diagonal_scan_cuda.LEAST_FOUND = 2, 2, 4
    pairs_cuda.group_size = lambda *sizes: pairs_cuda.GroupSize(8, 1 << 16)
    warp_blocks.WIDTH = 32
cuda: Any = _cuda
extend_forward_cuda._WORTH = 0  # the host leaves all pairs to the device


def context_of(models: ModelBatch, targets: SequenceBatch, **options: float) -> Context:
    context = Context(queries=models, targets=targets, options=build_options(ProfileOptions, options))
    index = HmmProfilesCpu().run(context, models)
    return Context(queries=models, targets=targets, options=context.options, indexes={index.kind: index})


def same(context: Context, on_cpu: Any = MsvFilterCpu, on_device: Any = MsvFilterCuda) -> int:
    """Check that the device's pairs and counters are the CPU's; how many pairs there are."""
    expected, counters = on_cpu().run(context, None), dict(context.counters)
    context.counters.clear()
    assert_same_records(expected, on_device().run(context, None))
    assert counters == {name: number for name, number in context.counters.items() if name in counters}
    context.counters.clear()
    return len(expected)


def drawn(seed: int, lengths: list[int], sizes: list[int]) -> tuple[ModelBatch, SequenceBatch]:
    """Models of some lengths, and targets of some sizes, of which every other holds a copy of a model's consensus."""
    models = [random_model(length, seed + n) for n, length in enumerate(lengths)]
    targets = [random_target(size, seed + n, models[n % len(models)] if n % 2 else None) if size else
               np.empty(0, np.uint8) for n, size in enumerate(sizes)]
    return batch(*models), SequenceBatch.of(PROTEIN, targets)


def residues_of(targets: SequenceBatch) -> list[np.ndarray]:
    return [targets.searched()[begin:end] for begin, end in pairwise(targets.offsets.tolist())]


FILTERS: dict[str, tuple[Any, Any]] = {
    "bias": (BiasFilterCpu, BiasFilterCuda),
    "viterbi": (ViterbiFilterCpu, ViterbiFilterCuda),
    "forward": (ForwardFilterCpu, ForwardFilterCuda),
}


def check_pairs() -> None:
    """Models of one tile and of several, at thresholds that few pass, most and all."""
    lengths, sizes = ([5, 19], [9, 0, 21, 13]) if SIMULATED else ([10, 120, 700, 2400], [0, *range(30, 1500, 9)])
    context = context_of(*drawn(3, lengths, sizes))
    found = same(context)
    assert 0 < found < len(lengths) * len(sizes), found
    for first in (0.5, 1.0):
        assert same(context_of(context.queries, context.targets, F1=first)) >= found


def same_scores(context: Context, pairs: Records, at_host: dict[str, int]) -> None:
    """Check that filters on the device give what the CPU's give, and that the CPU is asked so often, at most."""
    everything = np.arange(len(pairs))
    for name, (on_cpu, on_device) in FILTERS.items():
        expected, found = (np.full(len(pairs), np.nan, np.float32) for _ in range(2))
        on_cpu().score(context, pairs, everything, expected)
        context.counters.clear()
        on_device().score(context, pairs, everything, found)
        assert found.tobytes() == expected.tobytes(), (name, np.flatnonzero(found != expected), found, expected)
        assert context.counters["by the host"] <= at_host[name], (name, dict(context.counters))
        if not SIMULATED:  # else ``check_pipeline`` runs them
            assert_same_records(on_cpu().run(context, pairs), on_device().run(context, pairs))


def check_filters() -> None:
    """All pairs of models of one slot and of several with targets of all kinds, by all filters behind MSV."""
    if SIMULATED:
        context = context_of(*drawn(3, [5, 101], [9, 0, 7]), F1=1.0, F3=1.0)
    else:
        lengths, sizes = [1, 10, 64, 65, 120, 700, 2400, 9000], [0, *range(1, 1500, 9), 35_000]
        context = context_of(*drawn(3, lengths, sizes), F1=1.0, F3=1.0)
    copy = profile_of(context, len(context.queries) - 1).model.consensus[20:38]  # enough for sums to be scaled
    odd = [PROTEIN.encode(letters) for letters in ("*", "*****", "XX*A", copy)]
    context = replace(context, targets=SequenceBatch.of(PROTEIN, [*residues_of(context.targets), *odd]))
    pairs = MsvFilterCpu().run(context, None)
    assert len(pairs) == len(context.queries) * np.count_nonzero(context.targets.lengths)
    # Left to the CPU: the longest model, what scores nearly too much or hardly anything, and what has no path.
    same_scores(context, pairs, {"bias": len(pairs) // 100, "viterbi": len(pairs) // 2, "forward": len(pairs) // 3})


def may_pass(profile: SearchProfile, targets: Targets, score: int) -> np.ndarray:
    """bool[n]: whether each target passes at P 0.02 or is looked at by MSV, if its best segment scores so much."""
    best, model = np.full((1, len(targets.costs)), score, np.uint8), profile.model
    _, ended, overflow, again = decided([profile.bytes], best, targets.costs)
    values = scores_and_p_values(ended, overflow, targets.costs, targets.nulls,
                                 *np.array([[model.msv_mu], [model.msv_lambda]]))[1]
    return again[0] | (values[0] <= 0.02)


def check_cutoffs() -> None:
    """No target passes with a segment below the least one of its cost, and for each cost some does with that."""
    context = context_of(*drawn(5, [12, 90, 400], [*range(1, 900, 7), 5000]))
    whole, costs = Targets(context, context.targets.ordinals, ()), Lengths.of(context)
    assert np.array_equal(costs.costs, whole.costs) and np.array_equal(costs.classes, whole.costs)
    for query in range(len(context.queries)):
        profile = profile_of(context, query)
        cutoffs, always = least_segments(profile, costs, 0.02)
        assert not always.all()
        for cost in np.unique(whole.costs[~always]).tolist():
            same, least = whole.costs == cost, int(cutoffs[cost])
            assert least > 0
            assert not may_pass(profile, whole, min(least - 1, 255))[same].any()
            assert least > 255 or may_pass(profile, whole, least)[same].any()
        assert may_pass(profile, whole, 0)[always].any() == always.any()


def check_pipeline() -> None:
    """The whole search gives the hits of the CPU, with units side by side and pairs for host and device."""
    models, targets = drawn(11, [18, 23], [30, 41, 26] if SIMULATED else list(range(40, 400, 3)))
    options = {"E": 1e6, "domE": 1e6, "F1": 0.3, "F2": 1.0, "F3": 1.0}
    wanted = run_pipeline("hmmsearch", models, targets, options, backend="cpu")
    assert len(wanted)
    extend_forward_cuda._WORTH = 2
    assert_same_hits(wanted, run_pipeline("hmmsearch", models, targets, options, backend="cuda", threads=3,
                                          volume_residues=targets.total_residues // 2))


def check_parts() -> None:
    """Volumes that go through the device in parts give the CPU's hits; so do pairs whose targets alone are sent.

    Groups of pairs are small, so that several are at work on a part.
    """
    models, targets = drawn(11, [18, 23], [30, 41, 26, 0, 35] if SIMULATED else list(range(40, 400, 3)))
    options = {"E": 1e6, "domE": 1e6, "F1": 0.3, "F2": 1.0, "F3": 1.0}
    wanted = run_pipeline("hmmsearch", models, targets, options, backend="cpu")
    assert len(wanted)
    extend_forward_cuda._WORTH = 2
    with small_parts() as asked:
        for threads, words in ((1, 1 << 8), (3, 1 << 16)):  # sets of one model, and of all
            pairs_cuda.group_size = lambda *sizes, words=words: pairs_cuda.GroupSize(8, words)
            assert_same_hits(wanted, run_pipeline("hmmsearch", models, targets, options, backend="cuda",
                                                  threads=threads, device_memory=ROOM))
    assert len(asked) > 8


def check_budget() -> None:
    """Units side by side find room in what is planned for two of them, whichever filters they are in."""
    if SIMULATED:
        pairs_cuda.group_size = lambda *sizes: pairs_cuda.GroupSize(8, 1 << 8)
        diagonal_scan_cuda._GROUP_WORDS = 1 << 8
        diagonal_scan_cuda.ROOM = 64
    models, targets = drawn(11, [18, 9], [30, 41, 26])
    options = {"E": 1e6, "domE": 1e6, "F1": 0.3, "F2": 1.0, "F3": 1.0}
    wanted = run_pipeline("hmmsearch", models, targets, options, backend="cpu")
    names, source, sink = registry(), MemorySource(targets), MemorySink()
    space = SearchSpace(source.total_residues, source.sequences, source.longest)
    plan = compose(names, names.pipeline("hmmsearch"), options, "cuda")
    settings = Settings(threads=3, volume_residues=45)
    planner = Planner(plan, models, source, space, settings)
    units = planner.units()
    need = planner.need(units.batches, units.volumes, 2).device
    assert len(units.volumes) == 3 and need < planner.need(units.batches, units.volumes, 3).device
    Engine(plan, names, models, source, space, replace(settings, device_memory=need)).run(sink)
    assert len(wanted) and device_memory()._used <= need
    assert_same_hits(wanted, sink.hits)


def pair_words(first, second, larger, less):  # type: ignore[no-untyped-def]
    """Kernel: what ``packed8.py`` makes of pairs of words."""
    n = cuda.grid(1)
    if n < len(first):
        larger[n] = maximum4(first[n], second[n])
        less[n] = subtract4(first[n], second[n])


def check_bytes() -> None:
    """Maxima and differences of four bytes in a register are those of the bytes."""
    levels = np.array([0, 1, 2, 126, 127, 128, 129, 254, 255], np.uint8)
    pairs = np.stack(np.meshgrid(levels, levels, indexing="ij"), -1).reshape(-1, 2)
    pairs = np.concatenate([np.repeat(pairs, 4, 0), np.random.default_rng(1).integers(0, 256, (400, 2), np.uint8)])
    pairs = np.random.default_rng(2).permutation(pairs)
    first, second = (np.ascontiguousarray(pairs[:, k]) for k in (0, 1))
    found = np.empty((2, len(first) // 4), np.int32)
    sent = [cuda.to_device(part) for part in (first.view(np.int32), second.view(np.int32), *found)]
    with_words = kept_kernel()(pair_words)
    with_words[-(-found.shape[1] // 32), 32](*sent)
    larger, less = (part.copy_to_host().view(np.uint8) for part in sent[2:])
    assert np.array_equal(larger, np.maximum(first, second))
    assert np.array_equal(less, np.maximum(first, second) - second)


def same_by_warps(profile: ByteProfile, targets: list[np.ndarray], model: str, numbers: int, most_rows: int,
                  sequences: int, blocks: int, balanced: bool = True) -> int:
    """Check what kernels say of targets; how many scores overflow."""
    lengths = np.array([len(target) for target in targets], np.int64)
    begins = np.cumsum(lengths) - lengths
    costs, _ = length_costs(lengths)
    lay = warp_blocks.in_blocks if balanced else warp_blocks.in_sequence
    columns = lay(np.concatenate(targets), begins, lengths, blocks)
    layout = layout_of(profile.cost.shape[1], numbers, most_rows, sequences)
    found = SentColumns(columns, costs).scores(profile, model, numbers, layout)
    if model == "ssv":
        wanted = np.minimum(best_segments(profile, targets), 255 - profile.bias)
        assert np.array_equal(found, wanted), (layout, np.flatnonzero(found != wanted), found, wanted)
        return 0
    expected, overflow = msv_scores(profile, targets), found == OVERFLOW
    scores = ((found - costs).astype(np.float32) - np.float32(BYTE_BASE)) / BYTE_SCALE - np.float32(3.0)
    scores[overflow] = np.inf
    assert scores.tobytes() == expected.tobytes(), (layout, np.flatnonzero(scores != expected), scores, expected)
    return int(overflow.sum())


def some_targets(kinds: list[tuple[str, int]], model: Any, seed: int) -> list[np.ndarray]:
    """Random targets of some sizes, and pieces of a model's consensus of at most so many residues, once and twice."""
    consensus, made = PROTEIN.encode(model.consensus), []
    for n, (kind, size) in enumerate(kinds):
        piece = consensus[n % max(1, len(consensus) - size + 1) :][:size]
        made.append({"random": random_target(size, seed + n), "piece": piece,
                     "twice": np.concatenate([piece, random_target(3, seed + n), piece])}[kind])
    return made


KINDS = ("random", "piece", "twice")


def same_by_several(rows: int, spare: int, seed: int, model: str, numbers: int, sequences: int, blocks: int,
                    balanced: bool, dearer: int, count: int, longest: int) -> None:
    """Check a random model, of so many sequences a warp, with some targets.

    Args:
        rows, spare: registers of states, and how many of these states there are no nodes for.
        dearer: added to what entering the model costs.
        count, longest: of targets, and residues of them.
    """
    width, generator = 32 * numbers // sequences, np.random.default_rng(seed)
    drawn_model = random_model(width * rows - spare % width, seed)
    profile = search_profile(drawn_model).bytes
    kinds = [(str(generator.choice(KINDS)), int(generator.integers(1, longest))) for _ in range(count)]
    same_by_warps(replace(profile, entry=profile.entry + dearer), some_targets(kinds, drawn_model, seed), model,
                  numbers, rows, sequences, blocks, balanced)


def check_warps() -> None:
    """Random models and targets, by all kernels of several sequences a warp; and scores at their bounds."""
    if SIMULATED:
        from hypothesis import given, settings
        from hypothesis import strategies as st

        case = given(st.integers(2, 6), st.integers(0, 5), st.integers(0, 999), st.sampled_from(["msv", "ssv"]),
                     st.sampled_from([2, 4]), st.sampled_from([32, 16, 8]), st.integers(1, 2), st.booleans(),
                     st.sampled_from([0, 0, 70]), st.integers(1, 90), st.just(22))(same_by_several)
        settings(deadline=None, database=None, derandomize=True, max_examples=16)(case)()
    else:
        for seed in range(30):
            few = np.random.default_rng(seed).integers
            same_by_several(int(few(2, 48)), int(few(6)), seed, ("msv", "ssv")[seed % 2], 2 + seed // 2 % 2 * 2,
                            int(1 << few(1, 6)), int(few(1, 9)), bool(few(2)), int(few(2)) * 70, 900, 200)
    gaining = np.full((28, 64), 5, np.uint8)
    for numbers in (2, 4):
        overflows = [same_by_warps(ByteProfile(gaining, 10, entry, 3), [np.full(n, 3, np.uint8) for n in range(8, 30)],
                                   "msv", numbers, 2 * numbers, 8, 1) for entry in range(20, 25)]
        assert overflows == sorted(overflows, reverse=True) and overflows[0] > overflows[-1] > 0
        # Nothing of the highest scores is left to the sequences behind; J keeps its first value where nothing gains.
        high, losing = np.full((28, 24), 5, np.uint8), np.full((28, 8), 30, np.uint8)
        for model in ("msv", "ssv"):
            same_by_warps(ByteProfile(high, 25, 20, 3), [np.full(n, 3, np.uint8) for n in [20] * 32 + [2] * 9], model,
                          numbers, 12, 32, 1)
        for entry in (20, 120):
            same_by_warps(ByteProfile(losing, 10, entry, 3), [np.full(n, 3, np.uint8) for n in range(1, 6)], "msv",
                          numbers, 4, 32, 1)


def check_layouts() -> None:
    """Every number of sequences a warp, models at the bounds of each, and states in shared memory."""
    cases: list[tuple[int, int, int, int]] = []  # length, numbers, most sequences, most rows
    if SIMULATED:
        cases = [(128, 2, 32, 8), (129, 4, 32, 4), (64, 4, 4, 48), (70, 2, 2, 48), (70, 4, 1, 48), (140, 2, 1, 2)]
        kinds = [("random", 3), ("piece", 9), ("twice", 2)]
    else:
        for numbers in (2, 4):
            for sequences in (32, 16, 8, 4, 2, 1):
                width = 32 * numbers // sequences
                cases += [(48 * width, numbers, sequences, 48), (7 * width - 1, numbers, sequences, 7)]
            cases += [(length, numbers, 32, 48) for length in (1, 48 * 32 * numbers + 1, 10_000, 24_000)]
        kinds = [(kind, size) for size in range(1, 300, 7) for kind in ("random", "piece", "twice")]
    overflows = 0
    for length, numbers, sequences, rows in cases:
        model = random_model(length, length)
        targets = some_targets(kinds if length <= 5000 else kinds[::8], model, 5)
        for kind in ("msv", "ssv"):
            overflows += same_by_warps(search_profile(model).bytes, targets, kind, numbers, rows, sequences, 1)
    assert SIMULATED or overflows


def check_shared_lanes() -> None:
    """Two and four sequences in a lane: random models and targets, and scores that leave eight bits beside others."""
    if SIMULATED:
        warp_blocks.WIDTH = msv_warps_cuda.WIDEST
    costs = np.full((28, 5), 60, np.uint8)
    costs[3], costs[4], costs[5] = 0, 200, 50  # much gained, nothing left, little gained
    for numbers, sequences in ((2, 64), (4, 64), (4, 128)):
        width, overflows = 32 * numbers // sequences, 0
        high = ByteProfile(np.tile(costs, width), 60, 20, 3)
        assert layout_of(5 * width, numbers, 5, sequences) == (sequences, 5, True)
        targets = [np.full(1 + n % 7, 3 + n % 3, np.uint8) for n in range(sequences + 70)]
        for model in ("msv", "ssv"):
            overflows += same_by_warps(high, targets, model, numbers, 5, sequences, 1)
            for seed in range(sequences, sequences + 1 if SIMULATED else sequences + 3):
                few = np.random.default_rng(seed).integers
                rows, blocks, count, longest = ((2, 1, 140, 6) if SIMULATED else
                                                ((5, 12, 24)[seed % 3], int(few(1, 9)), 3000, 200))
                same_by_several(rows, 1, seed, model, numbers, sequences, blocks, model == "msv" or bool(few(2)),
                                70 * (seed % 3 == 0), count, longest)
        assert overflows > sequences // 9, overflows
        found = best_segments(high, targets)
        assert (found + high.bias > 255).any() and (found == 0).any()


def check_ssv() -> None:
    """SSV alone gives the reference's pairs and the CPU's, by the scan and by warps with every setting; and with a
    pipeline its hits."""
    choices: list[dict[str, Any]] = [{}, {"numbers": 4, "rows": 4}, {"blocks": False, "sequences": 16}]
    lengths, sizes = ([5, 19], [9, 0, 21, 13]) if SIMULATED else ([10, 120, 700, 2400], [0, *range(30, 1500, 9)])
    models, targets = drawn(3, lengths, sizes)
    for first in (0.02, 0.5, 1.0):
        context = context_of(models, targets, F1=first)
        found = same(context, SsvFilterCpu, SsvFilterCuda)
        assert 0 < found <= len(lengths) * np.count_nonzero(targets.lengths)
        expected = SsvFilter().run(context, None)
        assert len(expected) == found
        for chosen in choices if first == 0.5 or not SIMULATED else choices[:1]:
            context.counters.clear()
            assert_same_records(expected, SsvWarps(build_options(WarpOptions, chosen)).run(context, None))
            assert context.counters["passed"] == found
    models, targets = drawn(11, [18], [30, 41])
    options = {"E": 1e6, "domE": 1e6, "F1": 0.6, "F2": 1.0, "F3": 1.0}
    wanted = run_pipeline("hmmsearch", models, targets, options, stages=["seed.msv=ssv"])
    assert len(wanted)
    for backend, stage in (("cpu", "ssv"), ("cuda", "ssv"), ("cuda", "ssv-warps")):
        assert_same_hits(wanted, run_pipeline("hmmsearch", models, targets, options, stages=[f"seed.msv={stage}"],
                                              backend=backend))
    if SIMULATED:
        msv_warps_cuda.SHARED_BYTES = 128  # of 64 nodes: the longer model is the CPU's
        context = context_of(*drawn(3, [3, 65], [9, 30]), F1=1.0)
        assert_same_records(SsvFilter().run(context, None), SsvWarps(WarpOptions()).run(context, None))


def rises(profile: ByteProfile, target: np.ndarray) -> int:
    """How often what entering the model is worth rises in a target, or 100 where a score overflows."""
    cost = int(length_costs(np.array([len(target)]))[0][0]) + profile.entry
    j, begin, times = 0, max(BYTE_BASE - cost, 0), 0
    cells = np.zeros(profile.cost.shape[1] + 1, np.int64)
    for code in target:
        cells[1:] = np.maximum(np.maximum(cells[:-1], begin) + profile.bias - profile.cost[code], 0)
        if cells.max() + profile.bias >= 255:
            return 100
        j = max(j, int(cells.max()) - profile.end)
        worth = max(max(BYTE_BASE, j) - cost, 0)
        times, begin = times + (worth > begin), worth
    return times


def rising_case(seed: int, length: int, bias: int, entry: int, end: int, count: int, longest: int
                ) -> tuple[ByteProfile, list[np.ndarray]]:
    """A model without a pattern, and targets of pieces of what it likes best and of residues that gain nothing."""
    generator = np.random.default_rng(seed)
    cost = generator.integers(bias // 2, bias + 40, (28, length)).astype(np.uint8)
    cost[20:] = np.maximum(cost[20:], bias + int(generator.integers(0, 2)))
    gain = int(generator.integers(3, 1 + min(bias, 20)))
    cost[generator.integers(0, 20, length), np.arange(length)] = bias - gain
    best, targets = cost.argmin(axis=0).astype(np.uint8), []
    enough = 1 + (entry + end + 3) // gain  # residues with which entering the model is worth more
    for n in range(count):
        parts = [generator.integers(20, 28, 1 + n % 9).astype(np.uint8)] * (n % 5 == 0)
        while n % 5 and sum(map(len, parts)) < 1 + n % longest:
            size = max(1, enough + int(generator.integers(-2, 3)))
            first = int(generator.integers(max(1, length - size)))
            between = generator.integers(0, 28, int(generator.integers(3))).astype(np.uint8)
            parts += [best[first : first + size], between]
        targets.append(np.concatenate(parts)[: longest + 2])
    return ByteProfile(cost, bias, entry, end), targets


def check_rises() -> None:
    """Scores that rise to where entering the model is worth more, again and again, beside others that overflow and
    those of residues that gain nothing: by every number of sequences a warp, with states in shared memory as well."""
    seen = np.zeros(3, np.int64)  # targets in which it rises once, more often, and that overflow

    def same_case(seed: int, numbers: int, most: int, rows: int, held: bool, model: str, bias: int, entry: int,
                  end: int, short: int) -> None:
        sequences = min(most, 32 * numbers) if held else 1
        length = short or 32 * numbers // sequences * rows - seed % 2
        if SIMULATED:
            warp_blocks.WIDTH = max(32, sequences)
        blocks = 1 + seed % 2
        count, longest = (blocks * warp_blocks.WIDTH + 16, 22) if SIMULATED else (3000, 150)  # some columns have two
        profile, targets = rising_case(seed, length, bias, entry, end, count, longest)
        same_by_warps(profile, targets, model, numbers, rows if held else 2, sequences, blocks, seed % 3 > 0)
        if model == "msv":
            times = np.array([rises(profile, target) for target in targets[:200]])
            seen[:] += (times == 1).sum(), ((times > 1) & (times < 100)).sum(), (times == 100).sum()

    seed = 0
    for _ in range(1 if SIMULATED else 8):
        for numbers in (2, 4):
            for most in (1, 2, 4, 8, 16, 32, 32 * numbers, 1, 1):
                few = np.random.default_rng(seed)
                bias, entry, end, short = (int(few.choice(some)) for some in (
                    [6, 9, 20, 40, 64], [0, 5, 25, 40, 70, 100, 189, 200], [0, 3, 20], [0, 0, 0, 1, 2]))
                rows = int(few.choice(range(2, 6) if SIMULATED else (3, 12, 47)))  # each shape is compiled
                for model in ("msv", "ssv") if seed % 3 == 0 else ("msv",):
                    same_case(seed, numbers, most, max(3, rows) if seed % 9 > 6 else rows, seed % 9 < 7, model, bias,
                              entry, end, short if seed % 9 < 7 else 0)
                seed += 1
    assert seen.min() > 30, seen
    # Residues that gain nothing in targets with which HMMER doesn't try SSV: J may stay below its usual first value.
    losing = np.full((28, 5), 40, np.uint8)
    losing[4:8], losing[8:12], losing[12:] = 11, 10, np.arange(10, 26, dtype=np.uint8)[:, None]
    targets = [np.full(1 + n % 3, n % 28, np.uint8) for n in range(90)]
    targets += [np.array([n % 28, n % 25], np.uint8) for n in range(60)]
    # Entering the model is dear: what overflows does so before J makes it worth more, and bytes carry nothing.
    costs = np.full((28, 16), 32, np.uint8)
    costs[4] = 63
    beside = [np.full(1 + n % 11, 3 + n // 11 % 2, np.uint8) for n in range(140)]  # one of each in a lane
    for numbers, most in ((2, 16), (4, 16), (4, 64), (4, 128)):
        if SIMULATED:
            warp_blocks.WIDTH = max(32, most)
        for model in ("msv", "ssv"):
            same_by_warps(ByteProfile(costs, 64, 200, 0), beside, model, numbers, 16, most, 1)
    if SIMULATED:
        warp_blocks.WIDTH = 32  # the same for all kernels of so many sequences, which are kept
    for n, entry in enumerate((100, 110, 120, 150, 186, 200)):
        same_by_warps(ByteProfile(losing, 10, entry, 3), targets, "msv", 2, 5, 32, 1)
        if n % 2 or not SIMULATED:  # a warp for each takes long: short models and long ones in turn
            same_by_warps(ByteProfile(losing, 10, entry, 3), targets, "msv", 4, 5, 1, 1)
        if n % 2 == 0 or not SIMULATED:
            same_by_warps(ByteProfile(np.tile(losing, 40), 10, entry, 3), targets, "msv", 2, 2, 1, 1)


def pair_halves(first, second, halves, back, less):  # type: ignore[no-untyped-def]
    """Kernel: pairs of whole numbers as halves, and these less others."""
    n = cuda.grid(1)
    if n < len(first):
        halves[n] = msv_warps_cuda.halves_of(first[n])
        back[n] = msv_warps_cuda.numbers_of(halves[n])
        less[n] = msv_warps_cuda.numbers_of(msv_warps_cuda.less_of_pairs(halves[n],
                                                                         msv_warps_cuda.halves_of(second[n])))


def check_halves() -> None:
    """Whole numbers below 1,024 are halves and whole again, and halves less others are 0 at least."""
    few = np.random.default_rng(1)
    first = np.concatenate([np.arange(1024), few.permutation(1024)]).astype(np.int16).reshape(2, -1).T.copy()
    second = np.where(few.integers(0, 3, first.shape) > 0, few.integers(0, 1024, first.shape), first).astype(np.int16)
    sent = [cuda.to_device(part.view(np.int32).reshape(-1)) for part in (first, second, *(0 * first,) * 3)]
    kept_kernel()(pair_halves)[32, 32](*sent)
    halves, back, less = (part.copy_to_host().view(np.uint16).reshape(-1, 2) for part in sent[2:])
    assert np.array_equal(halves, first.astype(np.float16).view(np.uint16))
    assert np.array_equal(back, first) and np.array_equal(less, np.maximum(first - second, 0))


def check_columns() -> None:
    """The stage gives the CPU's pairs with every setting, at thresholds that few pass, most and all."""
    choices: list[dict[str, Any]] = [
        {}, {"model": "ssv"}, {"model": "ssv", "numbers": 4, "blocks": False}, {"numbers": 4, "rows": 4},
        {"blocks": False, "sequences": 16}]
    lengths, sizes = ([5, 19], [9, 0, 21, 13]) if SIMULATED else ([10, 120, 700, 2400], [0, *range(30, 1500, 9)])
    models, targets = drawn(3, lengths, sizes)
    for first in (0.02, 0.5, 1.0):
        context = context_of(models, targets, F1=first)
        expected = MsvFilterCpu().run(context, None)
        for chosen in choices if first == 0.5 or not SIMULATED else choices[:2]:
            context.counters.clear()
            assert_same_records(expected, MsvWarps(build_options(MsvWarpsOptions, chosen)).run(context, None))
            assert context.counters["passed"] == len(expected) and context.counters["blocks"] == 1 + (not SIMULATED)
    nothing = context_of(models, SequenceBatch.of(PROTEIN, [np.empty(0, np.uint8)]))
    assert len(MsvWarps(MsvWarpsOptions()).run(nothing, None)) == 0
    models, targets = drawn(11, [18], [30, 41])
    options = {"E": 1e6, "domE": 1e6, "F1": 0.6, "F2": 1.0, "F3": 1.0}
    wanted = run_pipeline("hmmsearch", models, targets, options, backend="cpu")
    assert len(wanted)
    for model in ("msv", "ssv"):
        found = run_pipeline("hmmsearch", models, targets, options, stages=["seed.msv=msv-warps"], backend="cuda",
                             settings=[f"seed.msv.model={model}", "seed.msv.sequences=16"])
        assert_same_hits(wanted, found)
    if SIMULATED:
        msv_warps_cuda.SHARED_BYTES = 128  # of 64 nodes: the longer model is the CPU's
        context = context_of(*drawn(3, [3, 65], [9, 30]), F1=1.0)
        assert_same_records(MsvFilterCpu().run(context, None), MsvWarps(MsvWarpsOptions()).run(context, None))


def check_random(residues: int, seed: int = 0) -> None:
    """Random cases, the filters and whole searches, until the targets had so many residues."""
    done = 0
    while done < residues:
        generator = np.random.default_rng(seed)
        lengths = generator.integers(1, 1200, generator.integers(1, 6)).tolist()
        models, targets = drawn(100 * seed, lengths, generator.integers(0, 1200, 300).tolist())
        context = context_of(models, targets, F1=float(generator.choice([0.02, 0.3, 1.0])))
        same(context)
        pairs = MsvFilterCpu().run(context, None)
        same_scores(context, pairs, dict.fromkeys(FILTERS, len(pairs)))
        wanted, found = (
            run_pipeline("hmmsearch", models, targets, {}, backend=backend, threads=4, volume_residues=size)
            for backend, size in (("cpu", 1 << 26), ("cuda", 50_000)))
        assert_same_hits(wanted, found)
        done, seed = done + targets.total_residues, seed + 1
    print(f"{done:,} residues of random targets, {seed} cases")


CHECKS = {"pairs": check_pairs, "filters": check_filters, "cutoffs": check_cutoffs, "pipeline": check_pipeline,
          "budget": check_budget, "bytes": check_bytes, "warps": check_warps, "layouts": check_layouts,
          "columns": check_columns, "parts": check_parts, "ssv": check_ssv, "shared-lanes": check_shared_lanes,
          "rises": check_rises, "halves": check_halves}


if __name__ == "__main__":
    carry_out(__doc__, CHECKS, check_random)
