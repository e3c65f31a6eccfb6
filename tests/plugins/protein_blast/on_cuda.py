"""Checks of protein BLAST's CUDA stages: in the simulator on tiny tiles, on a device on whole ones.

``python -m tests.plugins.protein_blast.on_cuda CHECK…`` runs some of them, or all; ``NUMBA_ENABLE_CUDASIM=1``
simulates. ``--residues N`` goes on with random cases until the targets had so many residues.
"""

import argparse

import numpy as np
from seqloom.core.alphabet import PROTEIN
from seqloom.core.kernels.packed16 import SIMULATED
from seqloom.core.sequences import SequenceBatch
from seqloom.plugins.common import diagonal_scan_cuda
from seqloom.plugins.protein_blast.diagonals_cpu import SegmentDiagonalsCpu
from seqloom.plugins.protein_blast.diagonals_cuda import SegmentDiagonalsCuda
from seqloom.plugins.protein_blast.diagonals_reference import SegmentDiagonals
from seqloom.testing import assert_same_hits, assert_same_records, run_pipeline

from .stages import AMINO, POOLS, context_of, drawn

if SIMULATED:
    diagonal_scan_cuda.LANE_COUNTS, diagonal_scan_cuda.ROW_COUNTS = (4,), (4,)
    diagonal_scan_cuda.LEAST_SPREAD, diagonal_scan_cuda.WARPS = 4, 1
    # Several groups of queries, and more diagonals than there is room for at first.
    diagonal_scan_cuda._GROUP_QUERIES, diagonal_scan_cuda._FETCHED, diagonal_scan_cuda.LEAST_ROOM = 2, 2, 4


def related(generator: np.random.Generator, query: str, length: int) -> str:
    """A random sequence around a changed piece of a query."""
    low, high = sorted(generator.integers(0, len(query) + 1, 2).tolist())
    piece = [drawn(generator, 1, AMINO) if generator.random() < 0.2 else residue for residue in query[low:high]]
    flanks = [drawn(generator, int(n), POOLS[3]) for n in generator.integers(0, length + 1, 2)]
    return flanks[0] + "".join(piece) + flanks[1]


def check_diagonals() -> None:
    """The scan finds what the reference finds, of queries of one tile and of several, at cutoffs low and high."""
    generator = np.random.default_rng(4)
    sizes = (5, 36) if SIMULATED else (5, 127, 800, 2100)
    queries = [drawn(generator, n, AMINO) for n in sizes]
    targets = [drawn(generator, n, POOLS[3]) for n in (0, 1, 3, 6)]
    flanks, copies = (7, 1) if SIMULATED else (200, 60)
    targets += [related(generator, query, flanks) for query in queries for _ in range(copies)]
    for cutoff in (12,) if SIMULATED else (16, 41, 300):
        context = context_of(queries, targets, cutoff)
        expected = SegmentDiagonals().run(context, None)
        assert len(expected)
        assert_same_records(expected, SegmentDiagonalsCuda().run(context, None))
        assert context.counters["pairs left out"] % 2 == 0  # as many by both


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
    usual = diagonal_scan_cuda.device_count
    diagonal_scan_cuda.device_count = lambda: 2
    for count in (1, 4):
        queries = [drawn(generator, 6, AMINO) for _ in range(count)]
        context = context_of(queries, [related(generator, queries[0], 3) for _ in range(5)], 9)
        assert_same_records(SegmentDiagonalsCpu().run(context, None), SegmentDiagonalsCuda().run(context, None))
    diagonal_scan_cuda.device_count = usual


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


def check_random(residues: int, seed: int = 0) -> None:
    """Random cases, until the targets had so many residues."""
    done = 0
    while done < residues:
        generator = np.random.default_rng(seed)
        queries = [drawn(generator, int(n), str(generator.choice([AMINO, POOLS[3]])))
                   for n in generator.integers(1, 1500, generator.integers(1, 7))]
        targets = [related(generator, queries[generator.integers(0, len(queries))], int(length))
                   for length in generator.integers(0, 900, 400)]
        context = context_of(queries, targets, int(generator.choice([16, 25, 41, 80])))
        expected, counters = SegmentDiagonalsCpu().run(context, None), dict(context.counters)
        context.counters.clear()
        assert_same_records(expected, SegmentDiagonalsCuda().run(context, None))
        assert counters == dict(context.counters), seed
        done, seed = done + context.targets.total_residues, seed + 1
    print(f"{done:,} residues of random targets, {seed} cases")


CHECKS = {"diagonals": check_diagonals, "limits": check_limits, "devices": check_devices, "pipeline": check_pipeline}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checks", nargs="*", choices=[[], *CHECKS])
    parser.add_argument("--residues", type=int, default=0)
    arguments = parser.parse_args()
    for name in arguments.checks or CHECKS:
        CHECKS[name]()
        print(name, "passed")
    if arguments.residues:
        check_random(arguments.residues)
