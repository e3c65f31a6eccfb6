"""Words in order, whichever of its ways ``sort_bucket`` takes."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from seqloom.plugins.common.sort_words_cpu import insert, sort_bucket, sort_buckets, sort_numbered, top_digit

_PLACE_BITS = 13


def numbered(words: np.ndarray) -> np.ndarray:
    return words.astype(np.uint64) << np.uint64(_PLACE_BITS) | np.arange(len(words), dtype=np.uint64)


def kinds(rng: np.random.Generator, count: int, bits: int) -> dict[str, np.ndarray]:
    words = rng.integers(0, 1 << bits, count, np.uint64)
    few = rng.choice(words[:20], count)
    low = np.uint64((1 << min(bits, 9)) - 1)
    return {"random": words, "equal": np.full(count, words[0]), "few": few, "differ below": few & ~low | words & low,
            "small": words & low, "sorted": np.sort(words), "falling": np.sort(words)[::-1]}


@settings(max_examples=60, deadline=None)
@given(st.sampled_from([1, 2, 48, 49, 300, 5000]), st.integers(1, 50), st.integers(0, 2**32))
def test_buckets_are_sorted(count, bits, seed):
    for kind, words in kinds(np.random.default_rng(seed), count, bits).items():
        given_ = numbered(words)
        wanted = np.sort(given_)
        sort_bucket(given_, np.empty_like(given_), _PLACE_BITS, bits)
        assert given_.tolist() == wanted.tolist(), kind


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from([0, 1, 50, 700]), min_size=1, max_size=8), st.integers(1, 40), st.integers(0, 2**32))
def test_only_the_given_stretches_are_sorted(sizes, bits, seed):
    starts = np.cumsum([5, *sizes])
    words = numbered(np.random.default_rng(seed).integers(0, 1 << bits, starts[-1] + 3, np.uint64))
    wanted, spare = words.copy(), np.zeros_like(words)
    for low, high in pairwise(starts):
        wanted[low:high].sort()
    sort_buckets(words, spare, starts, _PLACE_BITS, bits)
    assert words.tolist() == wanted.tolist()
    assert not spare[:5].any() and not spare[starts[-1] :].any()


@pytest.mark.parametrize("count", [1, 100, 8000])
@pytest.mark.parametrize("bits", [1, 7, 30, 51])
def test_words_are_numbered_and_sorted(count, bits):
    for kind, words in kinds(np.random.default_rng(count), count, bits).items():
        order = np.empty(count, np.uint64)
        sort_numbered(words.copy(), order, _PLACE_BITS, bits, top_digit(count, bits))
        assert order.tolist() == np.sort(numbered(words)).tolist(), kind


@given(st.lists(st.integers(0, 2**64 - 1), max_size=30))
def test_insertion_stops_at_the_most_moves(values):
    moves = sum(one > other for n, other in enumerate(values) for one in values[:n])
    words = np.array(values, np.uint64)
    assert insert(words, moves) and words.tolist() == sorted(values)
    if moves:
        assert not insert(np.array(values, np.uint64), moves - 1)
