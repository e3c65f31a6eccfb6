"""Checks of protein BLAST's CUDA stages: in the simulator on tiny tiles, on a device on whole ones.

``python -m tests.plugins.protein_blast.on_cuda CHECK…`` runs some of them, or all; ``NUMBA_ENABLE_CUDASIM=1``
simulates. ``--residues N`` goes on with random cases until the targets had so many residues.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from unittest.mock import patch

import numpy as np
from numba import cuda
from seqloom.core.alphabet import PROTEIN
from seqloom.core.backends import device_count, on_device, to_device
from seqloom.core.context import Context, SearchSpace
from seqloom.core.engine import planning
from seqloom.core.kernels.packed16 import SIMULATED
from seqloom.core.records import Seeds
from seqloom.core.sequences import SequenceBatch
from seqloom.core.stages import Shape
from seqloom.installed import registry
from seqloom.plugins.common import (
    diagonal_scan_cuda,
    diagonal_sieve_cuda,
    diagonal_tiles_cuda,
    radix_cuda,
    resident_cuda,
    workspace_cuda,
    xdrop_cuda,
)
from seqloom.plugins.common.grouping import group_starts
from seqloom.plugins.common.xdrop import extend_score, extend_score_restricted
from seqloom.plugins.protein_blast import coarse_cuda, dfa_cuda, gapped_cuda, hits_cuda, ungapped_cuda
from seqloom.plugins.protein_blast.dfa_cpu import NeighbourhoodDfaCpu
from seqloom.plugins.protein_blast.dfa_reference import DfaHits, DfaOptions
from seqloom.plugins.protein_blast.diagonals_cpu import SegmentDiagonalsCpu
from seqloom.plugins.protein_blast.diagonals_cuda import SegmentDiagonalsCuda
from seqloom.plugins.protein_blast.diagonals_reference import SegmentDiagonals
from seqloom.plugins.protein_blast.gapped_cuda import PreliminaryGappedCuda
from seqloom.plugins.protein_blast.gapped_reference import PreliminaryGapped, anchor_shift
from seqloom.plugins.protein_blast.scoring import read_as_query
from seqloom.plugins.protein_blast.seed_cpu import WordHitsCpu
from seqloom.plugins.protein_blast.seed_reference import WordHits
from seqloom.plugins.protein_blast.sort_diagonal_cpu import TwoHitDiagonalsCpu
from seqloom.plugins.protein_blast.sort_diagonal_reference import TwoHitDiagonals, near_another
from seqloom.plugins.protein_blast.ungapped_reference import TwoHitUngapped
from seqloom.testing import assert_same_hits, assert_same_records, run_pipeline

from ..checks import carry_out
from ..parts import ROOM, small_parts
from .segments import inputs
from .stages import AMINO, POOLS, context_of, drawn

if SIMULATED:
    diagonal_tiles_cuda.LANE_COUNTS, diagonal_tiles_cuda.ROW_COUNTS = (1, 2, 4), (4,)
    diagonal_tiles_cuda.LEAST_SPREAD, diagonal_tiles_cuda.WARPS = 4, 1
    xdrop_cuda.THREADS = gapped_cuda.THREADS = 1
    ungapped_cuda.MOST_THREADS = 4  # a window has a block of its own
    ungapped_cuda.THREADS, hits_cuda.SORTING, hits_cuda.LEAST_CAPACITY, hits_cuda.SLOTS = 1, 4, 1, 1 << 10
    radix_cuda.BITS, radix_cuda.WORDS_PER_THREAD = 5, 2
    # Several groups of queries, and more diagonals than there is room for at first.
    diagonal_scan_cuda._GROUP_QUERIES, diagonal_scan_cuda._FETCHED, diagonal_scan_cuda.ROOM = 2, 2, 4
    diagonal_sieve_cuda.ROOM, workspace_cuda._LEAST_BYTES = 32, 1


def related(generator: np.random.Generator, query: str, length: int) -> str:
    """A random sequence around a changed piece of a query."""
    low, high = sorted(generator.integers(0, len(query) + 1, 2).tolist())
    piece = [drawn(generator, 1, AMINO) if generator.random() < 0.2 else residue for residue in query[low:high]]
    flanks = [drawn(generator, int(n), POOLS[3]) for n in generator.integers(0, length + 1, 2)]
    return flanks[0] + "".join(piece) + flanks[1]


def check_diagonals() -> None:
    """The scan finds what the reference finds, of queries of one tile and of several, at cutoffs low and high."""
    generator = np.random.default_rng(4)
    sizes = (5, 36) if SIMULATED else (5, 127, 800, 1700)
    queries = [drawn(generator, n, AMINO) for n in sizes]
    targets = [drawn(generator, n, POOLS[3]) for n in (0, 1, 3, 6)]
    flanks, copies = (7, 1) if SIMULATED else (200, 5)
    targets += [related(generator, query, flanks) for query in queries for _ in range(copies)]
    for cutoff in (12,) if SIMULATED else (16, 41, 300):
        context = context_of(queries, targets, cutoff)
        expected = SegmentDiagonals().run(context, None)
        assert len(expected)
        assert_same_records(expected, SegmentDiagonalsCuda().run(context, None))
        assert context.counters["pairs left out"] % 2 == 0  # as many by both


def check_pieces() -> None:
    """Long targets of short queries are scanned in pieces, and what lies in two of them is found once."""
    generator = np.random.default_rng(43)
    for length in (3, 11, 20) if SIMULATED else (3, 10, 20, 40, 60, 90, 300):
        query = drawn(generator, length, AMINO)
        targets = [related(generator, query, 5) for _ in range(4 if SIMULATED else 3000)]
        targets += ["".join(targets[n::3]) for n in range(3)]
        context = context_of([query], targets, 9 if SIMULATED else 14)
        with (patch.object(diagonal_sieve_cuda, "_LEAST_STEP", 8), patch.object(
                diagonal_scan_cuda, "windows_of", wraps=diagonal_sieve_cuda.windows_of) as asked):
            found = SegmentDiagonalsCuda().run(context, None)
        assert asked.called and len(found)
        assert_same_records(SegmentDiagonals().run(context, None), found)


@contextmanager
def sieving(always: bool) -> Iterator[None]:
    """All queries are sieved, of short pieces of targets, or none."""
    usual = diagonal_scan_cuda.can_sieve, diagonal_scan_cuda.fills, diagonal_sieve_cuda._MOST_NOTES
    diagonal_scan_cuda.can_sieve, diagonal_scan_cuda.fills = lambda: always, lambda positions, targets: True
    diagonal_sieve_cuda._MOST_NOTES = 1.0
    with patch.object(diagonal_sieve_cuda, "_LEAST_STEP", 4):
        yield
    diagonal_scan_cuda.can_sieve, diagonal_scan_cuda.fills, diagonal_sieve_cuda._MOST_NOTES = usual


def check_sieve() -> None:
    """The sieve leaves what the reference finds: queries of one pass and of several, segments that begin and end
    anywhere, more of them than there is room for at first, targets in pieces and whole, classes of them, and other
    matrices."""
    if not SIMULATED and cuda.get_current_device().compute_capability[:2] != (9, 0):
        return
    generator = np.random.default_rng(41)
    sizes = ((1, 12),) if SIMULATED else ((1, 9, 60), (97, 130, 131), (350, 514), (1700, 4000), (9000,))
    for number, lengths in enumerate(sizes):
        queries = [drawn(generator, n, AMINO) for n in lengths]
        targets = [drawn(generator, n, POOLS[3]) for n in (0, 1, 3, 6)]
        targets += [related(generator, query, 5 if SIMULATED else 300)
                    for query in queries for _ in range(1 if SIMULATED else 200)]
        targets.append("".join(targets[-200 if SIMULATED else -6 :] * 2))
        for cutoff in (16,) if SIMULATED else (14, 30, 41):
            context = context_of(queries, targets, cutoff)
            with sieving(True):
                found = SegmentDiagonalsCuda().run(context, None)
            if SIMULATED:
                assert_same_records(SegmentDiagonals().run(context, None), found)
                continue
            with sieving(False):
                assert_same_records(SegmentDiagonalsCuda().run(context, None), found)
        batch, classes = SequenceBatch.of(PROTEIN, targets), generator.integers(0, 3, len(targets)).astype(np.uint8)
        scores = np.clip(np.rint(generator.normal(-1 if SIMULATED else -3, 5 + number, (lengths[-1], 24))), -40, 25)
        cutoffs = np.array([12, 19, 14]) if SIMULATED else np.array([40, 100, 60])
        asked = [diagonal_scan_cuda.Asked(3, diagonal_scan_cuda.scores_profile(scores), len(scores), cutoffs)]
        with sieving(True):
            sieved = diagonal_scan_cuda.good_diagonals(asked, batch, classes=classes)
        with sieving(False):
            expected = diagonal_scan_cuda.good_diagonals(asked, batch, classes=classes)
        assert len(expected[0]) and all(map(np.array_equal, sieved, expected))


def check_limits() -> None:
    """Cutoffs that every diagonal reaches, and those beyond what halves tell apart; pairs that are asked for."""
    generator = np.random.default_rng(5)
    query = drawn(generator, 11 if SIMULATED else 90, "W")
    ceiling, diagonal_scan_cuda.CEILING = diagonal_scan_cuda.CEILING, 20
    from seqloom.plugins.protein_blast import diagonals_cuda

    diagonals_cuda.CEILING = 20
    for cutoff in (0, 19, 40) if SIMULATED else (0, 19, 40, 77):
        context = context_of([query, query[:3]], ["W" * 9, "A", "AWWWC"], cutoff)
        expected = SegmentDiagonals().run(context, None)
        assert_same_records(expected, SegmentDiagonalsCuda().run(context, None))
    diagonal_scan_cuda.CEILING = diagonals_cuda.CEILING = ceiling


def check_devices() -> None:
    """Several devices share queries, or the targets of few; here one takes all shares."""
    generator = np.random.default_rng(6)
    for count in (1, 4):
        queries = [drawn(generator, 6, AMINO) for _ in range(count)]
        context = context_of(queries, [related(generator, queries[0], 3) for _ in range(5)], 9)
        context = replace(context, devices=(0, 0))
        assert_same_records(SegmentDiagonalsCpu().run(context, None), SegmentDiagonalsCuda().run(context, None))


def check_own_devices() -> None:
    """Units have a device each, by volume, where there are as many volumes; a simulator has one, which plays two."""
    generator, entered = np.random.default_rng(8), []

    @contextmanager
    def there(number: int) -> Iterator[None]:
        entered.append(number)
        with on_device(0 if device_count() == 1 else number):
            yield

    queries = [drawn(generator, n, AMINO) for n in (14, 16)]
    targets = [related(generator, query, 2) for query in queries * 3]
    sequences = SequenceBatch.of(PROTEIN, queries), SequenceBatch.of(PROTEIN, targets)
    options = {"evalue": 1e3, "comp_based_stats": "0", "seg": "no"}
    wanted = run_pipeline("blastp", *sequences, options, backend="cpu")
    with (patch.object(planning, "devices_to_count", lambda: True), patch.object(planning, "device_count", lambda: 2),
          patch.object(planning, "LEAST_FOR_DEVICE", 1), patch.object(resident_cuda, "on_device", there)):
        found = run_pipeline("blastp", *sequences, options, backend="cuda", volume_residues=45)
        assert_same_hits(wanted, found)
    assert min(entered.count(0), entered.count(1)) > 2, entered


UNGAPPED = ((ungapped_cuda.DiagonalUngapped, {}), (ungapped_cuda.HitUngapped, {}),
            *((ungapped_cuda.WindowUngapped, {"window_size": size}) for size in (("4",) if SIMULATED else ("8", "32"))))


def check_ungapped() -> None:
    """All three ways to extend give the segments of the reference, of two hits and of one."""
    generator = np.random.default_rng(8)
    longest, copies = (16, 1) if SIMULATED else (70, 40)
    for case in range(1 if SIMULATED else 20):
        queries = [drawn(generator, int(n), str(generator.choice(POOLS))) for n in generator.integers(9, longest, 2)]
        targets = [related(generator, queries[n % 2], 4) for n in range(copies)]
        for window in (0, 40):
            context = context_of(queries, [*targets, queries[0]], int(generator.integers(8, 20)), window_size=window,
                                 xdrop_ungap=float(generator.choice([2.0, 7.0])))
            hits = TwoHitDiagonalsCpu().run(sorted_by(context), WordHitsCpu().run(context, None))
            for stage, options in UNGAPPED:
                for scores in ("matrix", "pssm") if case % 2 else (("matrix", "pssm")[window == 0],):
                    expected = replace(context, counters=Counter()), replace(context, counters=Counter())
                    made = stage(stage.Options(scores=scores, **options))
                    assert_same_records(TwoHitUngapped().run(expected[0], hits), made.run(expected[1], hits))
                    assert expected[0].counters == expected[1].counters


MATRIX_ROWS = 28


def check_scores() -> None:
    """Tables of scores near and not, for which there is just room and not quite, in blocks of more threads, of queries
    just short enough for a position-specific one and not: the segments of the reference."""
    generator = np.random.default_rng(28)
    queries = [drawn(generator, n, AMINO) for n in ((13, 16) if SIMULATED else (300, 700))]
    targets = [*(related(generator, queries[n % 2], 4) for n in range(1 if SIMULATED else 200)), queries[1]]
    residues, stages = sum(map(len, queries)), (*UNGAPPED, (coarse_cuda.CoarseUngapped, {}))
    for case, (scores, buffering, rows_near, short, positions, near) in enumerate((
            ("pssm", "on", residues, 0, True, True), ("pssm", "on", residues - 1, 0, True, False),
            ("pssm", "off", residues, 0, True, False), ("matrix", "on", MATRIX_ROWS, residues, False, True),
            ("matrix", "on", MATRIX_ROWS - 1, residues, False, False), ("matrix", "off", residues, 0, False, False),
            ("auto", "auto", residues, residues, True, 64 * residues <= ungapped_cuda.NEAR),
            ("auto", "on", residues, residues - 1, False, True))):
        context = with_automaton(context_of(queries, targets, 12, window_size=(40, 0)[case % 2],
                                            matrix=("BLOSUM62", "PAM30")[case // 2 % 2]))
        hits = TwoHitDiagonalsCpu().run(sorted_by(context), WordHitsCpu().run(context, None))
        expected = TwoHitUngapped().run(context, hits)
        assert len(expected)
        nbytes = 64 * (residues if positions else MATRIX_ROWS)
        for stage, options in stages:
            made = stage(stage.Options(scores=scores, buffering=buffering, **options))
            around = replace(context, counters=Counter())
            with (patch.object(stage, "pssm_up_to", short),
                  patch.object(ungapped_cuda, "shared_room", lambda rows=rows_near: 64 * rows),
                  # Room for a table and a half: two blocks don't fit, so that one has more threads.
                  patch.object(ungapped_cuda, "SHARED_OF_PROCESSOR", nbytes * 3 // 2 + (8 << 10))):
                chosen = ungapped_cuda.Scores.of(context, made)
                assert (chosen.positions, chosen.near, chosen.shared) == (positions, near, nbytes * near)
                assert (chosen.threads(1, 8) > 1) == near
                shape = Shape(len(queries), residues, max(map(len, queries)), len(targets), 9, 9)
                assert ungapped_cuda.scores_footprint(made, shape) >= chosen.nbytes
                assert_same_records(expected, made.run(around, None if stage.reads else hits))
            assert around.counters["extensions"] == context.counters["extensions"]
    if not SIMULATED:  # as it comes: more than blocks usually have, and more than they can have
        for length, near in ((1054, True), (2000, False)):
            context = with_automaton(context_of([drawn(generator, length, AMINO)], targets * 3, 12))
            hits = TwoHitDiagonalsCpu().run(sorted_by(context), WordHitsCpu().run(context, None))
            expected = TwoHitUngapped().run(context, hits)
            for stage, options in stages:
                made = stage(stage.Options(scores="pssm", buffering="on", **options))
                newer = cuda.get_current_device().compute_capability >= (9, 0)
                assert ungapped_cuda.Scores.of(context, made).near == (near and newer)
                assert_same_records(expected, made.run(context, None if stage.reads else hits))


def check_coarse() -> None:
    """A thread a target gives the segments of the reference: of two hits and of one, by a queue and dealt out; where
    diagonals share places, segments take two attempts, and positions start anew in the midst."""
    generator = np.random.default_rng(18)
    usual = coarse_cuda.MOST_COUNTED, coarse_cuda.ROOM, coarse_cuda.THREADS_PER_PROCESSOR
    longest, copies = (16, 2) if SIMULATED else (150, 300)
    for case in range(2 if SIMULATED else 20):
        queries = [drawn(generator, int(n), str(generator.choice(POOLS[:4])))
                   for n in generator.integers(9, longest, 2)]
        targets = [related(generator, queries[n % 2], 4) for n in range(copies)]
        targets += ["", "A", queries[0] + drawn(generator, 30 if SIMULATED else 900, POOLS[1]) + queries[0]]
        # What was last on a diagonal of one target is there when the next begins.
        targets += [queries[n % 2][low : low + 6] for n in range(4) for low in (0, 2, 4)]
        for window in (0, 4, 40):
            context = with_automaton(context_of(queries, targets, int(generator.integers(8, 20)), window_size=window,
                                                xdrop_ungap=float(generator.choice([2.0, 7.0]))))
            hits = TwoHitDiagonalsCpu().run(sorted_by(context), WordHitsCpu().run(context, None))
            expected = TwoHitUngapped().run(context, hits)
            coarse_cuda.MOST_COUNTED = usual[0] if case % 2 else 100 if SIMULATED else 1200
            coarse_cuda.ROOM = 1 if case % 2 else usual[1]
            coarse_cuda.THREADS_PER_PROCESSOR = usual[2] if case % 2 else 1
            for scores, shares in (("matrix", "queue"), ("pssm", "dealt")):
                around = replace(context, counters=Counter())
                stage = coarse_cuda.CoarseUngapped(coarse_cuda.CoarseOptions(scores, shares=shares))
                assert_same_records(expected, stage.run(around, None))
                assert around.counters["extensions"] == context.counters["extensions"]
    coarse_cuda.MOST_COUNTED, coarse_cuda.ROOM, coarse_cuda.THREADS_PER_PROCESSOR = usual


def check_hits() -> None:
    """Binned hits are those of the reference that have a neighbour, in the order of diagonals, in whatever bins."""
    generator = np.random.default_rng(9)
    longest, copies = (14, 2) if SIMULATED else (300, 60)
    for bins, window, slots in ((2, 40, 1), (3, 0, 1 << 10), *(() if SIMULATED else ((128, 40, 1 << 26),))):
        hits_cuda.SLOTS, hits_cuda.SORTED_HERE = slots, 4 if SIMULATED else 1024
        queries = [drawn(generator, int(n), AMINO) for n in generator.integers(9, longest, 2)]
        targets = ["", "AC", *(related(generator, query, 5) for query in queries for _ in range(copies))]
        context = context_of(queries, targets, window_size=window)
        sorted_hits = TwoHitDiagonals().run(sorted_by(context), WordHits().run(context, None))
        expected = sorted_hits.take(near_another(sorted_hits, window)) if window else sorted_hits
        assert len(expected)
        around = replace(context, counters=Counter())
        found = hits_cuda.BinnedHits(hits_cuda.BinOptions(num_bins=bins)).run(around, None)
        assert found.device == "cuda"
        assert_same_records(expected, to_device(found, "host"))
        assert around.counters["hits"] == len(WordHits().run(context, None))
        if window:  # they stay on the device for who extends them
            assert_same_records(TwoHitUngapped().run(context, expected),
                                ungapped_cuda.DiagonalUngapped().run(context, found))
        warps = dfa_cuda.WARPS
        for buffering, dfa_cuda.WARPS in (("on", 2), ("off", warps)):
            around = replace(with_automaton(context), counters=Counter())
            made = dfa_cuda.BinnedDfaHits(dfa_cuda.BinnedDfaOptions(num_bins=bins, buffering=buffering))
            assert_same_records(expected, to_device(made.run(around, None), "host"))
            assert around.counters["hits"] == len(WordHits().run(context, None))
            dfa_cuda.WARPS = warps
    # Keys that don't hold all targets: each block of them by itself, and be it all of them.
    whole, hits_cuda.SLOTS, none_for_all = hits_cuda.KeyLayout.of, 1, iter([None])
    hits_cuda.KeyLayout.of = lambda *sizes: next(none_for_all, whole(*sizes))  # type: ignore[method-assign]
    found = hits_cuda.BinnedHits(hits_cuda.BinOptions(num_bins=bins)).run(context, None)
    hits_cuda.KeyLayout.of = whole  # type: ignore[method-assign]
    assert found.device == "host"
    assert_same_records(expected, found)


def with_automaton(context: Context) -> Context:
    """The context with an automaton of words beside their table."""
    words = NeighbourhoodDfaCpu().run(context, context.queries)
    return replace(context, indexes={**context.indexes, words.kind: words})


def check_automaton() -> None:
    """Hits of the automaton in the order of the reference: all near, some of it, none; in several groups of targets;
    of words of two and of four, and those of pairs and diagonals."""
    generator = np.random.default_rng(19)
    usual = dfa_cuda.GROUP_HITS
    queries = [drawn(generator, n, AMINO) for n in ((9, 12) if SIMULATED else (90, 517))]
    targets = ["", "AC", *(related(generator, query, 5 if SIMULATED else 90) for query in queries
                           for _ in range(1 if SIMULATED else 60)), queries[0] * 4, "X*", ""]
    sizes: tuple[tuple[int, int], ...] = ((3, 11),) if SIMULATED else ((2, 9), (3, 11), (4, 18))
    for size, threshold in sizes:
        context = with_automaton(context_of(queries, targets, word_size=size, threshold=threshold))
        expected = DfaHits().run(context, None)
        assert len(expected) > 10
        assert_same_records(WordHits().run(context, None), expected)
        for dfa_cuda.GROUP_HITS, room, buffering in (
                (usual, 1 << 10, "on"), (5, 28**2 * 4, "on"), (5, 112 << 10, "on"), (usual, 0, "off")):
            made = dfa_cuda.DfaHitsCuda(DfaOptions(buffering=buffering))
            with patch.object(dfa_cuda, "shared_room", lambda room=room: room):
                assert_same_records(expected, made.run(context, None))
        diagonals = SegmentDiagonals().run(context, None)
        assert_same_records(WordHits().run(context, diagonals), dfa_cuda.DfaHitsCuda().run(context, diagonals))
    dfa_cuda.GROUP_HITS = usual
    if not SIMULATED:  # more than blocks usually have
        context = with_automaton(context_of([drawn(generator, 2000, AMINO)], targets))
        assert dfa_cuda.Automaton(context.index("neighbourhood-dfa"), 0, True).buffers.nbytes > 48 << 10
        assert_same_records(DfaHits().run(context, None), dfa_cuda.DfaHitsCuda().run(context, None))


def sorted_by(context: Context) -> Context:
    """The context with a sorter of the host."""
    return replace(context, sorters={"msd-radix": registry().sorter("msd-radix", "cpu")})


GAPPED = ({}, {"evalue": 1e-3}, {"xdrop_gap": 60.0}, {"xdrop_gap": 0.5}, {"gapopen": 9, "gapextend": 2},
          {"matrix": "PAM30", "gapopen": 9, "gapextend": 1})


def sides_of(context: Context, seeds: Seeds, doubtful: np.ndarray) -> list[list[list[int]]]:
    """What ``ends_on_devices`` shall give: right and left side of each segment."""
    scoring, queries, found = context.scoring, read_as_query(context.queries.searched()), []
    rows = scoring.matrix_rows()
    first: dict[tuple[int, int], int] = {}
    for number, target, score, query_pos, target_pos, length in zip(
            *(seeds.data[name].tolist() for name in ("query", "target", "score", "query_pos", "target_pos", "length"))):
        place = int(context.queries.locate(number))
        query = queries[context.queries.offsets[place] : context.queries.offsets[place + 1]].tobytes()
        residues = context.target(target).tobytes()
        best = first.setdefault((number, target), score)
        shift = anchor_shift([rows[query[query_pos + k]][residues[target_pos + k]] for k in range(length)]) + 1
        one_sided = extend_score_restricted if scoring.may_restrict and best < doubtful[place] else extend_score
        costs = rows, scoring.gap_open, scoring.gap_extend, scoring.x_drop
        found.append([list(one_sided(query[query_pos + shift :], residues[target_pos + shift :], *costs)),
                      list(one_sided(query[: query_pos + shift][::-1], residues[: target_pos + shift][::-1], *costs))])
    return found


def check_gapped() -> None:
    """Both sides of segments as the reference has them, in groups, in full and not, and where a ring has no room."""
    usual = gapped_cuda._GROUP, xdrop_cuda.ROOM
    for case, options in enumerate(GAPPED[:3] if SIMULATED else GAPPED * 3):
        gapped_cuda._GROUP = 3 if SIMULATED else 100 if case % 2 else 1 << 18
        context, seeds = inputs(case, 1, 2, 20, **options) if SIMULATED else inputs(case, 4, 30, **options)
        if SIMULATED:
            seeds = seeds.take(np.arange(0, len(seeds), 2))
        bounds = group_starts(seeds.query, seeds.target)
        places = context.queries.locate(seeds.query), context.targets.locate(seeds.target)
        pairs = np.stack(places, axis=1)[bounds[:-1]]
        segments = np.stack([seeds.score, seeds.query_pos, seeds.target_pos, seeds.length], axis=1).astype(np.int64)
        doubtful = np.array([context.scoring.restricted_cutoff(place) for place in range(len(context.queries))])
        wanted, records = np.array(sides_of(context, seeds, doubtful)), PreliminaryGapped().run(context, seeds)
        for room in (128,) if SIMULATED and case else (128, 32):
            xdrop_cuda.ROOM = room
            xdrop_cuda.sides_kernel.cache_clear()
            ends = gapped_cuda.ends_on_devices(context, pairs, bounds, segments, doubtful)
            known = ends[..., 0] != xdrop_cuda.UNKNOWN
            assert np.array_equal(ends[known], wanted[known])
            assert case or known.all() == (room == 128)
            assert_same_records(records, PreliminaryGappedCuda().run(replace(context, threads=2), seeds))
    gapped_cuda._GROUP, xdrop_cuda.ROOM = usual
    xdrop_cuda.sides_kernel.cache_clear()


def check_pipeline() -> None:
    """The whole search gives the hits of the CPU."""
    generator = np.random.default_rng(7)
    queries = [drawn(generator, n, AMINO) for n in (14, 16)]
    targets = [*(query[1:] for query in queries), *(related(generator, query, 2) for query in queries)]
    sequences = SequenceBatch.of(PROTEIN, queries), SequenceBatch.of(PROTEIN, targets)
    options = {"evalue": 1e3, "comp_based_stats": "0", "seg": "no"}
    wanted = run_pipeline("blastp", *sequences, options, backend="cpu")
    assert len(wanted)
    assert_same_hits(wanted, run_pipeline("blastp", *sequences, options, backend="cuda", volume_residues=30))
    # The paper's stages, without the scan.
    assert_same_hits(wanted, run_pipeline(
        "blastp", *sequences, options, backend="cuda", settings=["seed.words.num_bins=2"],
        stages=["index.words=neighbourhood-dfa", "seed.words=binned-dfa-hits"]))
    assert_same_hits(wanted, run_pipeline(
        "blastp", *sequences, options, backend="cuda",
        settings=["seed.words.enabled=no", "sort.diagonal.enabled=no"],
        stages=["index.words=neighbourhood-dfa", "extend.ungapped=coarse-ungapped"]))
    assert_same_hits(wanted, run_pipeline(
        "blastp", *sequences, options, backend="cuda", settings=["seed.words.num_bins=2", "sort.diagonal.enabled=no"],
        stages=["seed.words=binned-hits", "extend.ungapped=diagonal-ungapped"]))


def check_parts() -> None:
    """Volumes that go through the device in parts give what whole ones give, in the scan and in the search."""
    generator = np.random.default_rng(9)
    queries = [drawn(generator, n, AMINO) for n in (14, 22, 16)]
    targets = [related(generator, queries[n % 3], int(generator.integers(0, 7))) for n in range(9)]
    targets[4] = ""
    context = context_of(queries, targets, 16)
    found = SegmentDiagonalsCuda().run(context, None)
    space = SearchSpace(context.targets.total_residues, len(targets), context.targets.longest)
    with small_parts() as asked:
        few = replace(context, space=space, device_memory=ROOM)
        for always in (False, SIMULATED or diagonal_sieve_cuda.can_sieve()):
            with sieving(always):
                assert_same_records(found, SegmentDiagonalsCuda().run(few, None))
        assert len(found) and len(asked[0].cut(few.targets.offsets)) >= 4
        sequences = SequenceBatch.of(PROTEIN, queries), SequenceBatch.of(PROTEIN, targets)
        options = {"evalue": 1e3, "comp_based_stats": "0", "seg": "no"}
        wanted = run_pipeline("blastp", *sequences, options, backend="cpu")
        assert len(wanted)
        for volume, threads in ((30, 1), (1 << 20, 1), (60, 3)):
            assert_same_hits(wanted, run_pipeline("blastp", *sequences, options, backend="cuda", threads=threads,
                                                  volume_residues=volume, device_memory=ROOM))


def check_random(residues: int, seed: int = 0) -> None:
    """Random cases, the filter and whole searches, until the targets had so many residues."""
    done = 0
    while done < residues:
        generator = np.random.default_rng(seed)
        queries = [drawn(generator, int(n), str(generator.choice([AMINO, POOLS[3]])))
                   for n in generator.integers(1, 1500, generator.integers(1, 7))]
        targets = [related(generator, queries[generator.integers(0, len(queries))], int(length))
                   for length in generator.integers(0, 900, 400)]
        context = context_of(queries, targets, int(generator.choice([16, 25, 41, 80])))
        expected, left_out = SegmentDiagonalsCpu().run(context, None), context.counters["pairs left out"]
        assert_same_records(expected, SegmentDiagonalsCuda().run(context, None))
        assert context.counters["pairs left out"] == 2 * left_out, seed
        options = {"evalue": float(generator.choice([1e-3, 10.0])), "comp_based_stats": str(seed % 3)}
        wanted, found = (run_pipeline("blastp", context.queries, context.targets, options, backend=backend, threads=4,
                                      volume_residues=size) for backend, size in (("cpu", 1 << 26), ("cuda", 50_000)))
        assert_same_hits(wanted, found)
        done, seed = done + context.targets.total_residues, seed + 1
    print(f"{done:,} residues of random targets, {seed} cases")


CHECKS = {"diagonals": check_diagonals, "pieces": check_pieces, "sieve": check_sieve, "limits": check_limits,
          "devices": check_devices, "own-devices": check_own_devices, "ungapped": check_ungapped,
          "scores": check_scores, "gapped": check_gapped, "coarse": check_coarse, "hits": check_hits,
          "automaton": check_automaton, "pipeline": check_pipeline, "parts": check_parts}


if __name__ == "__main__":
    carry_out(__doc__, CHECKS, check_random)
