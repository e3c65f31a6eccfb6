"""Greedy alignment against dynamic programming, its edit scripts, and their clean-up."""

import random
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from seqloom.core.alphabet import NUCLEOTIDE
from seqloom.plugins.nucleotide_blast import greedy_cpu
from seqloom.plugins.nucleotide_blast.gap_cleanup import clean_gaps, joined
from seqloom.plugins.nucleotide_blast.greedy import DELETE, INSERT, PAIR, GreedyAligner, equal_bases, extend

from tests.plugins.nucleotide_blast.sequences import random_bases, relative

FAR = 10_000


def codes(text: str) -> bytes:
    return NUCLEOTIDE.encode(text).tobytes()


def best_prefix_score(query: bytes, target: bytes, match: int, mismatch: int, gap: int) -> int:
    """Best score of an alignment from the start of both sequences, by the full recurrence."""
    row = [-gap * j for j in range(len(target) + 1)]
    best = 0
    for i, a in enumerate(query, 1):
        above, row = row, [-gap * i]
        for j, b in enumerate(target, 1):
            row.append(max(above[j - 1] + (match if a == b else -mismatch), above[j] - gap, row[-1] - gap))
        best = max(best, *row)
    return best


def consumed(script) -> tuple[int, int]:
    query = sum(length for operation, length in script if operation != DELETE)
    target = sum(length for operation, length in script if operation != INSERT)
    return query, target


def differences(script, query: bytes, target: bytes) -> int:
    count = i = j = 0
    for operation, length in script:
        if operation == PAIR:
            count += sum(query[i + k] != target[j + k] for k in range(length))
        else:
            count += length
        i += length if operation != DELETE else 0
        j += length if operation != INSERT else 0
    return count


@settings(max_examples=80, deadline=None)
@given(
    st.integers(0, 10**6),
    st.integers(5, 80),
    st.sampled_from([0, 0.05, 0.15]),
    st.sampled_from([(2, 4), (2, 6), (4, 5)]),
)
def test_score_without_x_drop_is_that_of_dynamic_programming(seed, length, rate, scores):
    source = random.Random(seed)
    query = random_bases(source, length)
    target = relative(source, query, rate) + random_bases(source, 5)
    query, target = codes(query), codes(target)
    match, mismatch = scores
    found = extend(query, target, match, mismatch, FAR, trace=True)
    score = (found.query + found.target) * match // 2 - found.differences * (match + mismatch)
    assert score == best_prefix_score(query, target, match, mismatch, match // 2 + mismatch)
    assert consumed(found.script) == (found.query, found.target)
    assert differences(found.script, query, target) == found.differences
    run = slice(found.run_query, found.run_query + found.run_length)
    assert query[run] == target[found.run_target : found.run_target + found.run_length]


def of_kernel(query: bytes, target: bytes, back: bool, with_run: bool, match: int, mismatch: int, x_drop: int):
    """What ``greedy_cpu.extend`` finds of sequences that lie within others, and its edit script."""
    pads = [bytes([3] * size) for size in (5, 9)]
    one, other = (greedy_cpu.sequence(np.frombuffer(pad + (text[::-1] if back else text) + pad, np.uint8))
                  for text, pad in zip((query, target), pads, strict=True))
    rows = greedy_cpu.rows_room(1 << 16, 1 << 10)
    found, script = np.zeros(7, np.int64), np.empty((1 << 10, 2), np.int32)
    q, t = (len(pad) + (len(text) if back else 0) for text, pad in zip((query, target), pads, strict=True))
    state = greedy_cpu.extend(one, q, len(query), other, t, len(target), back, match, mismatch, x_drop, with_run, rows,
                              found)
    assert state == greedy_cpu.DONE
    runs = greedy_cpu.script_of(rows, found, script) if found[greedy_cpu.DIFFERENCES] else 0
    return found.tolist(), script[:runs][::-1].tolist()


@settings(max_examples=120, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 250), st.sampled_from([0.02, 0.1, 0.3]), st.booleans(),
       st.sampled_from([(2, 4, 28), (2, 4, 108), (4, 5, 60), (2, 6, 400)]))
def test_kernel_finds_what_the_reference_does(seed, length, rate, back, costs):
    source = random.Random(seed)
    query = random_bases(source, length)
    target = relative(source, query, rate) + random_bases(source, source.choice([0, 3, 100]))
    query, target = codes(query), codes(target)
    expected = extend(query, target, *costs, trace=True)
    ends = [expected.query, expected.target, expected.differences]
    found, script = of_kernel(query, target, back, True, *costs)
    assert found[:6] == [*ends, expected.run_query, expected.run_target, expected.run_length]
    assert not expected.differences or script == expected.script
    shorter, same = of_kernel(query, target, back, False, *costs)
    assert (shorter[:3], same) == (ends, script)


@pytest.mark.parametrize("room", [(40, 100), (1 << 16, 3)])
def test_kernel_says_what_there_is_too_little_of(room):
    query, target = (greedy_cpu.sequence(np.frombuffer(codes(text * 10), np.uint8))
                     for text in ("ACGTTGCA", "AGGTTCCA"))
    state = greedy_cpu.extend(query, 0, 80, target, 0, 80, False, 2, 4, 200, True, greedy_cpu.rows_room(*room),
                              np.zeros(7, np.int64))
    assert state == (greedy_cpu.MORE_ROWS if room[1] == 3 else greedy_cpu.MORE_CELLS)


def test_x_drop_ends_the_extension():
    left, right = random_bases(random.Random(1), 30), random_bases(random.Random(2), 60)
    query, target = codes(left + right), codes(left + "ACGTTGCATT" + right)
    assert extend(query, target, 2, 4, 20).query < 40
    assert extend(query, target, 2, 4, 200).query == 90


def test_equal_sequences_need_no_search():
    text = codes(random_bases(random.Random(3), 200))
    found = extend(text, text, 2, 4, 20, trace=True)
    assert (found.query, found.target, found.differences, found.script) == (200, 200, 0, [[PAIR, 200]])


def test_ambiguities_never_match():
    query, target = codes("ACGTN"), codes("ACGTN")
    found = GreedyAligner(query, target, 1, -2, 20).align(0, 0)
    assert (found.query_end, found.score) == (4, 4)


def test_two_sided_alignment_is_the_same_from_every_point_of_a_match():
    source = random.Random(4)
    query = random_bases(source, 150)
    aligner = GreedyAligner(codes(query), codes(random_bases(source, 20) + query + random_bases(source, 9)), 1, -2, 20)
    for start in (0, 40, 149, 150):
        found = aligner.align(start, start + 20, trace=True)
        assert (found.query_start, found.query_end, found.target_start, found.score) == (0, 150, 20, 150)
        assert found.script == [[PAIR, 150]]


def test_anchor_lies_in_the_longest_run():
    source = random.Random(5)
    left, middle, right = (random_bases(source, n) for n in (20, 60, 20))
    query, target = left + "A" + middle + "A" + right, left + "C" + middle + "C" + right
    found = GreedyAligner(codes(query), codes(target), 1, -2, 20).align(5, 5)
    assert (found.query_start, found.query_end) == (0, 102)
    assert (found.anchor_query, found.anchor_target) == (51, 51)


def test_equal_bases_counts_over_long_runs():
    text = bytes([0, 1, 2, 3] * 100)
    assert equal_bases(text, 0, text, 0) == 400
    assert equal_bases(text, 3, text[:-1] + b"\1", 3) == 396
    assert equal_bases(text, 0, text, 1) == 0


@settings(max_examples=80, deadline=None)
@given(st.integers(0, 10**6), st.integers(20, 150))
def test_clean_up_keeps_the_aligned_bases(seed, length):
    source = random.Random(seed)
    query = random_bases(source, length)
    query, target = codes(query), codes(relative(source, query, 0.25))
    found = extend(query, target, 2, 4, FAR, trace=True)
    query, target = query[: found.query], target[: found.target]
    cleaned = clean_gaps(found.script, query, target)
    assert consumed(cleaned) == consumed(found.script)
    assert all(length > 0 for _, length in cleaned)
    assert all(a[0] != b[0] for a, b in pairwise(cleaned))


def test_opposite_gaps_that_meet_become_pairs():
    assert joined([[PAIR, 5], [INSERT, 3], [DELETE, 2], [PAIR, 4]]) == [[PAIR, 7], [INSERT, 1], [PAIR, 4]]
    assert joined([[PAIR, 5], [INSERT, 2], [DELETE, 2], [PAIR, 4]]) == [[PAIR, 11]]
    assert joined([[PAIR, 5], [INSERT, 0], [PAIR, 4]]) == [[PAIR, 9]]


def test_opposite_gaps_around_one_pair_become_two_mismatches():
    query, target = codes("ACGTACGTAGCACGTTACGT"), codes("ACGTACGTGTCACGTTACGT")
    script = [[PAIR, 8], [INSERT, 1], [PAIR, 1], [DELETE, 1], [PAIR, 10]]
    assert clean_gaps(script, query, target) == [[PAIR, 20]]


def test_long_run_takes_in_equal_bases_beside_it():
    run = "ACGGTCATTGCAACTG"
    query, target = codes("TTG" + "C" + run), codes("TTG" + "AC" + run)
    # The base C before the run could go with it; the gap is moved to its other side.
    script = [[PAIR, 4], [DELETE, 1], [PAIR, 16]]
    assert clean_gaps(script, query, target) == [[PAIR, 3], [DELETE, 1], [PAIR, 17]]
