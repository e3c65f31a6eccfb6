"""The integer filters against obvious loops over cells, and random numbers and P-values against known values."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from seqloom.plugins.profile_hmm.bias_reference import bias_odds, bias_score
from seqloom.plugins.profile_hmm.exact_math import F32, compensated_sum, expf, log_sum, odds
from seqloom.plugins.profile_hmm.msv_reference import best_segments, msv_scores, ssv_scores
from seqloom.plugins.profile_hmm.p_values import exponential_log_survival, exponential_survival, gumbel_survival
from seqloom.plugins.profile_hmm.profile import (
    BYTE_BASE,
    BYTE_SCALE,
    MINUS_INFINITY,
    WORD_BASE,
    WORD_SCALE,
    ByteProfile,
    byte_length_cost,
    null_score,
    search_profile,
    stripe,
    unstripe,
    word_move,
)
from seqloom.plugins.profile_hmm.random_numbers import RandomNumbers

from tests.plugins.profile_hmm.models import random_model, random_target

sizes = st.tuples(st.integers(1, 60), st.integers(1, 120), st.integers(0, 1000), st.booleans())


def msv_by_cells(profile, target):
    """MSV as the paper writes it, one saturating byte at a time; J starts where SSV's floor puts it."""
    length_cost = byte_length_cost(len(target))
    to_begin = length_cost + profile.entry
    no_ssv = to_begin + profile.end + profile.bias >= 127
    j = 0 if no_ssv else max(BYTE_BASE - to_begin - profile.end, 0)
    begin = max(max(BYTE_BASE, j) - to_begin, 0)
    row = [0] * (profile.cost.shape[1] + 1)
    for code in target:
        new = [0]
        for k in range(1, len(row)):
            new.append(max(min(max(row[k - 1], begin) + profile.bias, 255) - int(profile.cost[code, k - 1]), 0))
        row = new
        if max(row) + profile.bias >= 255:
            return F32(np.inf)
        j = max(j, max(row) - profile.end)
        begin = max(max(BYTE_BASE, j) - to_begin, 0)
    return (F32(j - length_cost) - F32(BYTE_BASE)) / BYTE_SCALE - F32(3.0)


def ssv_by_cells(profile, target):
    """SSV: MSV that is entered from N alone, so that the best segment, if one gains, is all that counts."""
    length_cost = byte_length_cost(len(target))
    to_begin = length_cost + profile.entry
    best = 0
    for first in range(-len(target), profile.cost.shape[1]):  # diagonals: node − residue
        running = 0
        for place in range(max(0, -first), min(len(target), profile.cost.shape[1] - first)):
            running = max(running + profile.bias - int(profile.cost[target[place], first + place]), 0)
            best = max(best, running)
    j = 0 if to_begin + profile.end + profile.bias >= 127 else max(BYTE_BASE - to_begin - profile.end, 0)
    if best:
        reached = max(BYTE_BASE - to_begin, 0) + best
        if reached + profile.bias >= 255:
            return F32(np.inf)
        j = max(j, reached - profile.end)
    return (F32(j - length_cost) - F32(BYTE_BASE)) / BYTE_SCALE - F32(3.0)


def viterbi_by_cells(profile, target):
    """Viterbi one saturating word at a time, delete states in order of nodes."""

    def add(a, b):
        return max(min(int(a) + int(b), 32767), MINUS_INFINITY)

    width, move = len(profile.entry), word_move(len(target))
    match, insert, delete = ([MINUS_INFINITY] * (width + 1) for _ in range(3))
    begin, c = WORD_BASE + move, MINUS_INFINITY
    for code in target:
        m, i, d = ([MINUS_INFINITY] * (width + 1) for _ in range(3))
        for k in range(1, width + 1):
            best = max(
                add(begin, profile.entry[k - 1]),
                add(match[k - 1], profile.into_mm[k - 1]),
                add(insert[k - 1], profile.into_im[k - 1]),
                add(delete[k - 1], profile.into_dm[k - 1]),
            )
            m[k] = add(best, profile.match[code, k - 1])
            i[k] = max(add(match[k], profile.mi[k - 1]), add(insert[k], profile.ii[k - 1]))
            if k > 1:
                d[k] = max(add(m[k - 1], profile.md[k - 2]), add(d[k - 1], profile.dd[k - 2]))
        match, insert, delete = m, i, d
        if max(m[1:]) >= 32767:
            return F32(np.inf)
        c = max(c, add(max(m[1:]), -500))
        begin = add(max(c, WORD_BASE), move)
    if c == MINUS_INFINITY:
        return F32(-np.inf)
    return (F32(c) + F32(move) - F32(WORD_BASE)) / WORD_SCALE - F32(3.0)


def pair(size):
    length, residues, seed, related = size
    model = random_model(length, seed)
    return search_profile(model), random_target(residues, seed + 1, model if related else None)


@given(sizes)
@settings(max_examples=40, deadline=None)
def test_msv_equals_the_loop_over_cells(size):
    profile, target = pair(size)
    assert msv_scores(profile.bytes, [target])[0] == msv_by_cells(profile.bytes, target)


@given(sizes, st.sampled_from([0, 0, 40, 90]))
@settings(max_examples=60, deadline=None)
def test_ssv_equals_the_loop_over_diagonals(size, dearer):
    profile, target = pair(size)
    dear = replace(profile.bytes, entry=profile.bytes.entry + dearer)
    assert ssv_scores(dear, [target])[0] == ssv_by_cells(dear, target)


@given(sizes, st.sampled_from([0, 0, 40, 90]))
@settings(max_examples=60, deadline=None)
def test_ssv_says_no_more_than_msv_and_the_same_where_hmmer_leaves_it_at_that(size, dearer):
    profile, target = pair(size)
    dear = replace(profile.bytes, entry=profile.bytes.entry + dearer)
    ssv, msv = ssv_scores(dear, [target])[0], msv_scores(dear, [target])[0]
    assert ssv <= msv
    # HMMER 3.3.2 asks MSV where J could be used, and where signed bytes or the costs leave SSV's range.
    costs = byte_length_cost(len(target)) + dear.entry
    best = int(best_segments(dear, [target])[0])
    if costs + dear.end + dear.bias < 127 and best < 127 - dear.bias and best <= costs + dear.end:
        assert ssv == msv


def test_ssv_counts_one_segment_where_msv_counts_two():
    profile = ByteProfile(np.where(np.arange(28)[:, None] == 3, 5, 60) * np.ones(30, np.int64), 10, 20, 3)
    once = np.array([3] * 9 + [4] * 40, np.uint8)
    twice = np.concatenate([once, once])[: len(once)]
    assert ssv_scores(profile, [once])[0] == msv_scores(profile, [once])[0]
    twice[20:29] = 3
    assert ssv_scores(profile, [twice])[0] == ssv_scores(profile, [once])[0] <= msv_scores(profile, [twice])[0]
    longer = np.array(([3] * 9 + [4]) * 6, np.uint8)
    assert ssv_scores(profile, [longer])[0] < msv_scores(profile, [longer])[0]


def test_msv_of_many_targets_equals_msv_of_each():
    model = random_model(40, 3)
    profile = search_profile(model).bytes
    targets = [random_target(1 + 7 * n, n, model if n % 3 == 0 else None) for n in range(60)]
    together = msv_scores(profile, targets)
    assert together.tolist() == [msv_scores(profile, [t])[0] for t in targets]
    assert np.isinf(together).any() and np.isfinite(together).any()


@given(sizes)
@settings(max_examples=25, deadline=None)
def test_viterbi_equals_the_loop_over_cells(size):
    from seqloom.plugins.profile_hmm.viterbi_reference import viterbi_score

    profile, target = pair(size)
    assert viterbi_score(profile.words, target) == viterbi_by_cells(profile.words, target)


def test_bias_score_is_the_forward_score_of_two_states():
    model = random_model(30, 1)
    target = random_target(80, 2)
    table = bias_odds(model).astype(float)
    stay, biased = 80 / 81, 30 / 8
    transition = np.array([[stay, 1 - stay], [1 / (biased + 1), biased / (biased + 1)]])
    state = np.array([0.999, 0.001])
    for n, code in enumerate(target):
        state = (state if n == 0 else state @ transition) * table[code]
    expected = math.log(state.sum()) + 80 * math.log(stay) + math.log(1 - stay)
    assert bias_score(bias_odds(model), 30, target) == pytest.approx(expected, abs=1e-4)


def test_null_score_is_that_of_a_geometric_length():
    assert null_score(149) == pytest.approx(149 * math.log(149 / 150) + math.log(1 / 150), rel=1e-6)


def test_random_numbers_are_hmmers():
    numbers = RandomNumbers(42)
    assert numbers.state == 1265258399
    assert numbers.next() == 0.10076649952679873
    assert [round(numbers.next() * 2**32) for _ in range(3)] == [3613595717, 2598039618, 264748763]
    assert RandomNumbers(0).state != RandomNumbers(0).state


def test_p_values():
    assert gumbel_survival(10.0, -8.0, 0.7) == pytest.approx(math.exp(-0.7 * 18), rel=1e-5)
    assert gumbel_survival(-30.0, -8.0, 0.7) == 1.0
    assert gumbel_survival(math.inf, -8.0, 0.7) == 0.0
    assert gumbel_survival(-math.inf, -8.0, 0.7) == 1.0
    assert exponential_survival(-5.0, -4.0, 0.7) == 1.0
    assert exponential_log_survival(6.0, -4.0, 0.7) == -7.0


def test_elementary_functions():
    x = np.linspace(-88, 88, 2001, dtype=np.float32)
    assert odds(x) == pytest.approx(np.exp(x.astype(float)), rel=3e-7)
    assert odds(np.array([-np.inf, -90.0, 89.0], np.float32)).tolist() == [0.0, 0.0, np.inf]
    assert expf(x) == pytest.approx(np.exp(x.astype(float)), rel=1.5e-7)
    assert expf(-np.inf) == 0.0
    assert log_sum(0.0, 0.0) == F32(math.log(2.0))
    assert log_sum(3.0, -np.inf) == log_sum(-np.inf, 3.0) == log_sum(3.0, -20.0) == 3.0
    assert compensated_sum([1e8] + [1.0] * 10) == F32(1e8 + 10)


def test_stripes_go_there_and_back():
    for length in (1, 4, 5, 8, 9, 30):
        values = np.arange(1, length + 1, dtype=np.float32)
        striped = stripe(values)
        assert striped.shape == (max(2, -(-length // 4)), 4)
        assert unstripe(striped, length).tolist() == values.tolist()
