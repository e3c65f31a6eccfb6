"""The scan of interleaved targets against all segments, for protein matrices and for any profile."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from seqloom.core.alphabet import PROTEIN
from seqloom.core.sequences import SequenceBatch
from seqloom.core.simd import BYTE_LANES
from seqloom.plugins.common.lanes import interleaved
from seqloom.plugins.common.scan import CEILING, best_scores, profile_tables


def slow_best(profile: np.ndarray, target: np.ndarray) -> int:
    """Best segment of any diagonal: the largest difference of two sums along it, the later less the earlier."""
    best = 0
    for diagonal in range(-len(profile) + 1, len(target)):
        first = max(0, -diagonal)
        places = np.arange(first, min(len(profile), len(target) - diagonal))
        sums = np.concatenate([[0], np.cumsum(profile[places, target[places + diagonal]])])
        best = max(best, int((sums - np.minimum.accumulate(sums)).max()))
    return best


def check(profile: np.ndarray, targets: list[np.ndarray]) -> np.ndarray:
    batch = SequenceBatch.of(PROTEIN, targets)
    found = best_scores(profile_tables(profile), len(profile), interleaved(batch))
    assert found.tolist() == [min(CEILING, slow_best(profile, target)) for target in targets]
    return found


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 40), st.integers(1, 2 * BYTE_LANES + 1), st.integers(0, 30),
       st.sampled_from([(-4, 11), (-128, 127), (-1, 1), (-20, 40), (1, 9), (-9, -1)]))
def test_any_profile(seed: int, size: int, count: int, longest: int, span: tuple[int, int]) -> None:
    generator = np.random.default_rng(seed)
    profile = generator.integers(*span, (size, 28), endpoint=True).astype(np.int32)
    lengths = generator.integers(0, longest, count, endpoint=True)
    check(profile, [generator.integers(0, 28, length).astype(np.uint8) for length in lengths])


@pytest.mark.parametrize("total", [126, 127, 128, 129, 253, 254, 255, 256, 257, 1000])
def test_scores_around_the_ends_of_eight_bits(total: int) -> None:
    """A segment that sums to ``total`` in steps of one to four, between letters that end it."""
    for step in (1, 2, 3, 4):
        profile = np.full((total // step + 3, 28), -5, np.int32)
        profile[1 : 1 + total // step, 1] = step
        profile[1 + total // step, 1] = total % step if total % step else -5
        target = np.full(len(profile) + 9, 1, np.uint8)
        target[:3] = target[-4:] = 2
        found = check(profile, [target, target[:5], np.zeros(0, np.uint8)])
        assert found[0] <= min(total, CEILING)


def test_scores_far_beyond_the_ceiling() -> None:
    profile = np.full((3000, 28), 100, np.int32)
    assert check(profile[:30], [np.ones(30, np.uint8), np.ones(2, np.uint8), np.ones(3, np.uint8)]).max() == CEILING


def test_scores_beyond_eight_bits_are_clipped() -> None:
    """−32768, as of the gap letter, ends every segment of a score up to 128."""
    profile = np.full((20, 28), 3, np.int32)
    profile[10] = -32768
    check(profile, [np.ones(20, np.uint8), np.ones(9, np.uint8)])
    assert best_scores(profile_tables(profile), 20, interleaved(SequenceBatch.of(PROTEIN, ["A" * 20]))).tolist() == [30]


def test_an_empty_profile() -> None:
    assert check(np.zeros((0, 28), np.int32), [np.ones(4, np.uint8)]).tolist() == [0]
