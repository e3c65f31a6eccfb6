"""The scan for good diagonals of targets against sums along every diagonal, by one part or by many."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from seqloom.core.alphabet import PROTEIN
from seqloom.core.kernels.simd import BYTE_LANES
from seqloom.core.sequences import SequenceBatch
from seqloom.plugins.common import diagonal_scan
from seqloom.plugins.common.diagonal_scan import CEILING, good_diagonals


def slow_diagonals(matrix: np.ndarray, query: np.ndarray, target: np.ndarray, cutoff: int) -> list[int]:
    """Diagonals with a segment of ``cutoff``: the largest difference of two sums along it, the later less the earlier.

    A segment begins anew where its sum would fall below nothing, however low the score is that brings it there.
    """
    found = []
    for diagonal in range(-len(query) + 1, len(target)):
        first = max(0, -diagonal)
        places = np.arange(first, min(len(query), len(target) - diagonal))
        sums = np.concatenate([[0], np.cumsum(matrix[query[places], target[places + diagonal]].astype(np.int64))])
        if (sums - np.minimum.accumulate(sums)).max() >= cutoff:
            found.append(diagonal)
    return found


def check(matrix: np.ndarray, query: np.ndarray, targets: list[np.ndarray], cutoff: int) -> int:
    """Compare with the slow way; gives the number of diagonals."""
    _, places, diagonals = good_diagonals(matrix, [query], SequenceBatch.of(PROTEIN, targets), [cutoff])
    expected = [(place, diagonal) for place, target in enumerate(targets)
                for diagonal in slow_diagonals(matrix, query, target, cutoff)]
    assert list(zip(places.tolist(), diagonals.tolist(), strict=True)) == expected
    return len(expected)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 40), st.integers(1, 2 * BYTE_LANES + 1), st.integers(0, 30),
       st.sampled_from([(-4, 11), (-128, 127), (-1, 1), (-20, 40), (1, 9), (-9, -1), (-32768, 11)]),
       st.sampled_from([1, 2, 5, 20, 60, 127, 128, 129, 254, 255]))
def test_any_matrix(seed: int, size: int, count: int, longest: int, span: tuple[int, int], cutoff: int) -> None:
    generator = np.random.default_rng(seed)
    matrix = generator.integers(*span, (28, 28), endpoint=True).astype(np.int32)
    lengths = generator.integers(0, longest, count, endpoint=True)
    residues = generator.integers(1, 28, 3) if seed % 2 else np.arange(1, 28)
    check(matrix, generator.choice(residues, size).astype(np.uint8),
          [generator.choice(residues, length).astype(np.uint8) for length in lengths], cutoff)


@pytest.mark.parametrize(("size", "cutoff"), [(size, cutoff) for size in range(1, 8)
                                              for cutoff in (1, 4, 5, 126, 127, 128, 129, 254, 255)
                                              if cutoff <= 127 * size])
def test_ends_of_queries_and_targets(size: int, cutoff: int) -> None:
    """Segments that reach the cutoff with the last residue of a query or target, wherever in its lane that stands."""
    matrix = np.full((28, 28), -3, np.int32)
    matrix[1, 1] = cutoff // size
    matrix[2, 2] = cutoff - cutoff // size * (size - 1)
    match = np.array([1] * (size - 1) + [2], np.uint8)
    other = np.full(9, 3, np.uint8)
    assert check(matrix, match, [np.concatenate([other[:k], match]) for k in range(9)], cutoff) >= 9
    assert check(matrix, np.concatenate([match, other]), [match] * (BYTE_LANES + 3), cutoff) >= BYTE_LANES
    assert check(matrix, match, [np.concatenate([match, other[:k]]) for k in range(9)], cutoff) >= 9


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.lists(st.tuples(st.integers(0, 30), st.integers(1, 300)), min_size=1, max_size=6),
       st.sampled_from([(-4, 11), (-128, 127), (-20, 40)]))
def test_queries_together(seed: int, sizes: list[tuple[int, int]], span: tuple[int, int]) -> None:
    """Queries of any lengths and cutoffs have the diagonals that each has alone."""
    generator = np.random.default_rng(seed)
    matrix = generator.integers(*span, (28, 28), endpoint=True).astype(np.int32)
    queries = [generator.integers(1, 28, size).astype(np.uint8) for size, _ in sizes]
    targets = SequenceBatch.of(PROTEIN, [generator.integers(1, 28, n).astype(np.uint8)
                                           for n in generator.integers(0, 60, 2 * BYTE_LANES)])
    cutoffs = [cutoff for _, cutoff in sizes]
    together = np.stack(good_diagonals(matrix, queries, targets, cutoffs))
    alone = [np.stack(good_diagonals(matrix, [query], targets, [cutoff]))
             for query, cutoff in zip(queries, cutoffs, strict=True)]
    for number, columns in enumerate(alone):
        columns[0] = number
    assert np.array_equal(together, np.concatenate(alone, axis=1))


@pytest.mark.parametrize("span", [(5, 9), (-4, 11)])
def test_long_segments(span: tuple[int, int]) -> None:
    """Segments that reach the cutoff again and again, and others beside them."""
    generator = np.random.default_rng(1)
    matrix = generator.integers(-9, -2, (28, 28)).astype(np.int32)
    matrix[np.arange(28), np.arange(28)] = generator.integers(*span, 28, endpoint=True)
    query = generator.integers(1, 28, 200).astype(np.uint8)
    targets = [np.concatenate([query[k:], query[:k], query[k // 2 :]]) for k in range(0, 200, 7)]
    assert check(matrix, query, targets, 40) >= 60


def test_a_good_target_doesn_t_help_the_one_behind_it() -> None:
    """Even the largest score is gone where a target ends."""
    matrix = np.full((28, 28), 1, np.int32)
    matrix[1, 1] = 100
    targets = [np.ones(40, np.uint8), *[np.full(n % 7, 2, np.uint8) for n in range(6 * BYTE_LANES)]]
    assert check(matrix, np.ones(60, np.uint8), targets, 90)


def test_beyond_the_ceiling_the_ceiling_counts() -> None:
    matrix = np.full((28, 28), 50, np.int32)
    found = good_diagonals(matrix, [np.ones(9, np.uint8)], SequenceBatch.of(PROTEIN, ["A" * 9]), [400])[2]
    assert found.tolist() == slow_diagonals(matrix, np.ones(9, np.int64), np.ones(9, np.int64), CEILING)


@pytest.mark.parametrize(("query", "targets"), [("", ["MKV"]), ("MKV", []), ("MKV", ["", ""])])
def test_nothing_to_scan(query: str, targets: list[str]) -> None:
    residues = SequenceBatch.of(PROTEIN, [query]).residues
    found = good_diagonals(np.ones((28, 28), np.int32), [residues], SequenceBatch.of(PROTEIN, targets), [1])
    assert [len(column) for column in found] == [0, 0, 0]


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 90), st.integers(1, 7), st.sampled_from([3, 20, 60]),
       st.sampled_from([1, 3]))
def test_parts(seed: int, size: int, lane: int, cutoff: int, threads: int) -> None:
    """Targets in pieces of any size, by several threads: each diagonal once, in order."""
    generator = np.random.default_rng(seed)
    matrix = generator.integers(-4, 11, (28, 28)).astype(np.int32)
    targets = SequenceBatch.of(PROTEIN, [generator.integers(0 if n % 5 == 0 else 1, 28, n).astype(np.uint8)
                                         for n in generator.integers(0, 90, 40)])
    query = generator.integers(1, 28, size).astype(np.uint8)
    whole = good_diagonals(matrix, [query], targets, [cutoff])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(diagonal_scan, "LANE", lane)
        patch.setattr(diagonal_scan, "OVERLAP", 0)
        parts = good_diagonals(matrix, [query], targets, [cutoff], threads)
    for one, other in zip(whole, parts, strict=True):
        assert np.array_equal(one, other)


def test_segments_across_two_targets_are_none() -> None:
    """What would be a segment of one long target isn't one of the two that lie one behind the other."""
    query = np.arange(1, 21).astype(np.uint8)
    matrix = np.where(np.eye(28, dtype=bool), 5, -4).astype(np.int32)
    for cut in range(1, 20):
        targets = [query[:cut], query[cut:], np.empty(0, np.uint8), query[:cut]]
        found = check(matrix, query, targets, 60)
        assert found == sum(5 * len(target) >= 60 for target in targets)


def test_more_than_there_is_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diagonal_scan, "LEAST_NOTED", 1)
    generator = np.random.default_rng(3)
    matrix = generator.integers(-4, 11, (28, 28)).astype(np.int32)
    targets = [generator.integers(1, 28, n).astype(np.uint8) for n in range(40)]
    assert check(matrix, generator.integers(1, 28, 30).astype(np.uint8), targets, 5) > 100
