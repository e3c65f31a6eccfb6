"""How queries are put on circles, and when they are; what is found there, in the simulator: ``on_cuda.py``."""

from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from seqloom.plugins.common.matrices import protein_matrix

sieve = pytest.importorskip("seqloom.plugins.common.diagonal_sieve_cuda", reason="numba-cuda is not installed",
                            exc_type=ImportError)
VALUES = pytest.importorskip("seqloom.core.cuda.one_hot", exc_type=ImportError).VALUES
EVERYTHING = np.ones(1)


def scores_of(length: int, seed: int = 1) -> np.ndarray:
    """i2[length, CODES] of a random query."""
    query = np.random.default_rng(seed).integers(0, 20, length)
    table = np.full((length, sieve.CODES), -1000, np.int16)
    matrix = protein_matrix("BLOSUM62")
    table[:, : len(matrix)] = matrix[query]
    return table


@given(st.lists(st.tuples(st.integers(40, 900), st.sampled_from([41, 43, 52, 60])), min_size=1, max_size=40))
def test_rings_hold_all_queries_in_their_order(queries: list[tuple[int, int]]) -> None:
    queries.sort(key=lambda query: query[1])
    sieves = [(n, sieve.sieve_for(scores_of(length), np.array([cutoff]), EVERYTHING))
              for n, (length, cutoff) in enumerate(queries)]
    rings = sieve.rings_of(tuple(sieves))
    told = [row for ring in rings for row in ring.limits[ring.classes :].reshape(ring.queries, -1).tolist()]
    assert [row[0] for row in told] == list(range(len(queries)))
    assert [(row[3], row[4]) for row in told] == queries
    for ring in rings:
        shape, rows = ring.shape, ring.limits[ring.classes :].reshape(ring.queries, -1)
        assert shape.circle % 4 == 0 and shape.passes * shape.columns >= shape.circle
        assert shape.shared_bytes <= 227 << 10
        table = ring.table[: shape.circle * sieve.CODES // 4].view(np.uint8).reshape(-1, sieve.CODES)
        exact = ring.table[len(table) * sieve.CODES // 4 :].view(np.int16).reshape(-1, sieve.CODES)
        for _, begin, row, length, cutoff in rows.tolist():
            values = VALUES[table[begin : begin + length + sieve.GAP]]
            assert (values[:length, : sieve.PAD] >= exact[row : row + length, : sieve.PAD]).all()
            assert values[length:].tolist() == [[0.0] * sieve.CODES, [float(sieve.ENDED)] * sieve.CODES,
                                                [0.0] * sieve.CODES]
            least = float(ring.limits[:1].astype(np.int16).view(np.float16)[0]) * 2048
            assert least <= cutoff - 2 * -values[:length, : sieve.PAD].min()
        assert rows[:, 4].max() - rows[:, 4].min() <= sieve._ALIKE


def test_low_cutoffs_and_long_queries_are_not_sieved() -> None:
    assert sieve.sieve_for(scores_of(300), np.array([41]), EVERYTHING)
    assert sieve.sieve_for(scores_of(300), np.array([25]), EVERYTHING) is None
    assert sieve.sieve_for(scores_of(sieve.MOST_POSITIONS), np.array([41]), EVERYTHING) is None
    assert sieve.sieve_for(np.ones((50, sieve.CODES), np.int16), np.array([41]), EVERYTHING) is None


@given(st.lists(st.integers(0, 300), max_size=30), st.integers(1, 40), st.integers(1, 40), st.integers(1, 40))
def test_whatever_is_within_reach_lies_in_a_piece_or_a_target(lengths: list[int], reach: int, least: int, most: int
                                                             ) -> None:
    sizes = np.array(lengths, np.int64)
    ranked = np.argsort(-sizes, kind="stable")
    with mock.patch.multiple(sieve, _LEAST_STEP=least, MOST_PIECES=most):
        pieces = sieve.windows_of(sieve.TargetOrder.of(
            np.arange(len(sizes)), sizes, sizes, lambda name, array: array), reach)
    assert len(pieces.begins) == len(pieces.owners) <= most
    assert sorted(set(pieces.owners.tolist())) == sorted(ranked[: pieces.cut].tolist())
    assert all(sizes[ranked[pieces.cut : len(sizes)]] <= pieces.length)
    before = np.cumsum(sizes) - sizes
    for owner in ranked[: pieces.cut]:
        starts = pieces.begins[pieces.owners == owner] - before[owner]
        assert starts.min() == 0 and starts.max() + pieces.length == sizes[owner]
        assert (np.diff(np.sort(starts)) <= pieces.length - reach).all()


def test_notes_are_as_frequent_as_random_residues_have_it() -> None:
    """Within a factor of some, of segments of random residues that are looked at and cut off at every other one."""
    generator, scores = np.random.default_rng(3), scores_of(60)
    lowest, limit, noted, cells = 3, 17, 0, 0
    table = np.maximum(scores, -lowest).astype(np.int64)
    for _ in range(400):
        target = generator.integers(0, 20, 60)
        sums = np.concatenate([[0], np.cumsum(table[np.arange(60), target])])[::2]
        noted += int((sums - np.minimum.accumulate(sums)).max() >= limit)
        cells += 60
    expected = sieve._notes(scores, np.array([limit + 2 * lowest]), EVERYTHING)[lowest == sieve._LOWEST].item()
    assert noted / cells / 8 < expected < 30 * noted / cells
