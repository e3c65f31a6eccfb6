"""Ungapped extension: exact and approximate segments, passing over explored diagonals, two-hit windows."""

import random
from functools import partial
from itertools import accumulate

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from seqloom.core.alphabet import NUCLEOTIDE
from seqloom.plugins.common.nucleotide_statistics import SENTINEL, residue_scores
from seqloom.plugins.nucleotide_blast import ungapped_cpu, ungapped_scanned_cpu
from seqloom.plugins.nucleotide_blast.packed_cpu import eights, packed_bits
from seqloom.plugins.nucleotide_blast.scoring import NucleotideScoring, QueryScoring, StrandScoring
from seqloom.plugins.nucleotide_blast.strands import both_strands
from seqloom.plugins.nucleotide_blast.ungapped_reference import (
    Extender,
    Pairing,
    TableWords,
    WordHit,
    extend_hits,
    group_scores,
    packed,
    pair_reach,
)
from seqloom.plugins.nucleotide_blast.ungapped_scanned_cpu import cells_of_diagonals
from seqloom.plugins.nucleotide_blast.ungapped_segment_cpu import group_bytes, group_place, most_of_approximate

from tests.plugins.nucleotide_blast.sequences import random_bases, relative

SCORING = NucleotideScoring(matrix=residue_scores(2, -3), reward=2, penalty=-3)
FAR = 10_000


def extender(query: str, target: str) -> Extender:
    return Extender(both_strands(NUCLEOTIDE.encode(query)), NUCLEOTIDE.encode(target), SCORING)


def limits(cutoff: int, reduced: int, x_drop: int = 20) -> QueryScoring:
    return QueryScoring(StrandScoring(ungapped_cutoff=cutoff, reduced_cutoff=reduced, xdrop_ungapped=x_drop))


def best_to_one_side(scores: list[int]) -> int:
    return max([0, *np.cumsum(scores).tolist()])


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(0, 20), st.integers(0, 20))
def test_exact_extension_without_limit_is_the_best_on_both_sides(seed, before, after):
    source = random.Random(seed)
    word = random_bases(source, 11)
    query = random_bases(source, before) + word + random_bases(source, after)
    target = random_bases(source, before) + word + random_bases(source, after)
    pairs = [2 if a == b else -3 for a, b in zip(query, target, strict=True)]
    segment = extender(query, target).exact(before, before, FAR)
    # Further to the right the running score may not fall below what has been gained.
    assert segment.score == sum(pairs[segment.query : segment.query + segment.length])
    assert sum(pairs[segment.query : before]) == best_to_one_side(pairs[:before][::-1])
    assert segment.query <= before and segment.query + segment.length >= before + 11


def test_exact_extension_stops_at_the_x_drop_and_at_the_end_of_the_strand():
    query = "ACGTACGTACG" + "TTTT" + "GGCCGGCCGGCC"
    target = "ACGTACGTACG" + "AAAA" + "GGCCGGCCGGCC"
    assert extender(query, target).exact(0, 0, 11).length == 11
    assert extender(query, target).exact(0, 0, 12).length == 27
    assert extender("ACGTACGTACG", "ACGTACGTACGACGTACGT").exact(0, 0, FAR).length == 11


def test_groups_of_four_score_like_their_bases():
    scores = group_scores(2, -3)
    source = random.Random(1)
    for _ in range(50):
        first, second = random_bases(source, 4), random_bases(source, 4)
        bits = packed(NUCLEOTIDE.encode(first))[0] ^ packed(NUCLEOTIDE.encode(second))[0]
        assert scores[bits] == sum(2 if a == b else -3 for a, b in zip(first, second, strict=True))


def test_approximate_segment_consists_of_whole_groups_of_the_target():
    text = random_bases(random.Random(2), 60)
    segment = extender(text, text).approximate(5, 5, 16, FAR)
    assert segment.target == 0 and segment.length == 60 and segment.score == 120
    text = random_bases(random.Random(2), 62)
    shifted = extender("A" + text, text).approximate(6, 5, 16, FAR)
    assert (shifted.target, shifted.length) == (0, 60)


def test_approximate_score_is_close_to_the_exact_one():
    source = random.Random(3)
    for _ in range(30):
        query = random_bases(source, 200)
        target = query[:11] + relative(source, query[11:100], 0.05) + random_bases(source, 50)
        aligned = extender(query, target)
        exact, approximate = aligned.exact(0, 0, 22), aligned.approximate(0, 0, 11, 22)
        assert approximate.score <= exact.score + 22


def hits(*starts: int, length: int = 11, query: int = 0) -> list[WordHit]:
    return [WordHit(query + start, start, length, 0, 1) for start in starts]


def test_hits_in_an_explored_part_are_passed_over():
    text = random_bases(random.Random(4), 100)
    found = list(extend_hits(extender(text, text), hits(0, 4, 40, 88), Pairing(), limits(20, 10)))
    assert [(hit.target, segment.length) for hit, segment in found] == [(0, 100)]


def test_failed_extension_explores_its_word_only():
    source = random.Random(5)
    query, target = random_bases(source, 60), random_bases(source, 60)
    query, target = "ACGTACGTACG" + query, "ACGTACGTACG" + target
    assert not list(extend_hits(extender(query, target), hits(0, 2), Pairing(), limits(500, 400)))


def test_at_one_place_hits_of_the_first_of_two_templates_come_first():
    """Whichever their places in the query are: those of a template alone come in reverse."""
    query, target = "ACGTT" + "AGGTT", "ACGTT"
    one, two = WordHit(0, 0, 5, 0, 1), WordHit(5, 0, 5, 0, 1)
    aligned = extender(query, target)

    def order(first: list[int]) -> list[WordHit]:
        return sorted([one, two], key=partial(Pairing(40, 1, first=first).scan_place, aligned))

    assert order([]) == order([0, 2, 4]) == [two, one]
    assert order([0, 1, 4]) == [one, two]  # the second isn't one of this template


def test_with_a_window_only_the_second_hit_is_extended():
    text = random_bases(random.Random(6), 200)
    aligned = extender(text, text)
    assert not list(extend_hits(aligned, hits(0, length=18), Pairing(40), limits(20, 10)))
    assert not list(extend_hits(aligned, hits(0, 59, 130, length=18), Pairing(40), limits(20, 10)))
    found = list(extend_hits(aligned, hits(0, 30, 150, length=18), Pairing(40), limits(20, 10)))
    assert [hit.target for hit, _ in found] == [30]


def test_a_hit_that_goes_on_for_another_word_counts_as_two():
    text = random_bases(random.Random(7), 60)
    indexed = np.concatenate([np.ones(53, bool), np.zeros(7 + 1, bool), np.ones(53, bool), np.zeros(7, bool)])
    aligned, words = extender(text, text), TableWords(indexed, 8)
    assert words.goes_on(aligned, hits(0)[0]) == (11, True)
    assert words.goes_on(aligned, hits(45)[0]) == (4, False)
    found = list(extend_hits(aligned, hits(0, length=11), Pairing(40, words=words), limits(20, 10)))
    assert [segment.length for _, segment in found] == [60]
    masked = TableWords(np.where(np.arange(len(indexed)) == 14, False, indexed), 8)
    assert masked.goes_on(aligned, hits(0)[0]) == (10, False)
    assert not list(extend_hits(aligned, hits(0, length=11), Pairing(40, words=masked), limits(20, 10)))


def test_the_first_of_two_hits_may_lie_on_a_diagonal_nearby():
    source = random.Random(8)
    first, second = random_bases(source, 12), random_bases(source, 12)
    query, target = first + second, first + "A" + second
    aligned = extender(query, target)
    pair = [WordHit(0, 0, 12, 0, 1), WordHit(12, 13, 12, 0, 1)]
    assert not list(extend_hits(aligned, pair, Pairing(40), limits(500, 400)))
    found = list(extend_hits(aligned, pair, Pairing(40, reach=1), limits(500, 400)))
    # with company it is kept, whatever it scores
    assert [(hit.target, segment.score) for hit, segment in found] == [(13, 24)]
    assert (pair_reach(40, 5, 12), pair_reach(14, 5, 12), pair_reach(8, 5, 12)) == (5, 2, 0)


def test_an_approximate_segment_reaches_as_far_as_table_words_go_on():
    source = random.Random(8)
    first, second = random_bases(source, 12), random_bases(source, 13)
    query, target = first + second + "C" * 9, first + "A" + second + "G" * 9
    indexed = np.arange(2 * len(query) + 1) <= len(query) - 8
    aligned, words = extender(query, target), TableWords(indexed, 8)
    pair = [WordHit(0, 0, 12, 0, 1), WordHit(12, 13, 12, 0, 1)]
    assert words.goes_on(aligned, pair[1]) == (1, False)
    found = list(extend_hits(aligned, pair, Pairing(40, 1, words), limits(500, 400)))
    assert [(segment.target, segment.length) for _, segment in found] == [(12, 14)]


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([0, 40]), st.booleans())
def test_few_hits_of_long_queries_are_kept_by_diagonal_as_many_are(seed, window, related):
    generator, length, least = np.random.default_rng(seed), 12, 14
    codes = generator.integers(0, 4, (2, 500)).astype(np.uint8)
    if related:
        codes[1, 100:400] = codes[0, 100:400]
    strands = np.append(both_strands(codes[0]), np.uint8(SENTINEL))
    hits = np.array([(q, t, 0) for t in sorted(generator.integers(0, 488, 60).tolist())
                     for q in (t, int(generator.integers(0, 488)))], np.int32)
    begins, bits, tables = np.array([0, len(strands)]), packed_bits(codes[1]), []
    for cells, share in (([1024, 0], (0, 0)), ([256, 256], (0, 0)), ([1024, 0], (0, 2)), ([1024, 0], (1, 2)),
                         ([256, 256], (2, 2)), ([1024, 0], (3, 2))):
        table = np.zeros((len(hits), ungapped_scanned_cpu.PLACE_OF + 1), np.int32)
        count = ungapped_scanned_cpu.extend_scanned(
            (SCORING.matrix, np.array(group_scores(2, -3))), strands, eights(group_bytes(strands, begins)), begins,
            bits, eights(bits), np.array([[0, 500]]), hits, np.array([0, len(hits)]), np.zeros(1, np.int64),
            np.zeros((1, 3), np.int64), np.array([[[20, least, least]] * 2]), window, length, share, np.array([cells]),
            np.empty(1024, np.int32), np.empty(cells[1], np.int32),
            np.empty(ungapped_scanned_cpu.AT_ONCE, np.int64), table)
        tables.append(table[:count].tolist())
    assert tables[0] == tables[1] and (tables[0] or not related)
    for own, some in enumerate(tables[2:]):  # a task has the diagonals that end with its bits
        assert some == [row for row in tables[0] if row[ungapped_scanned_cpu.DIAGONAL_OF] & 3 == own]


@pytest.mark.parametrize(("sizes", "threads", "several"), [([10], 2, 1), ([10, 10], 2, 1), ([1 << 20], 1, 1),
                                                            ([1 << 20], 2, 2), ([1 << 20], 3, 4), ([1 << 20, 5], 4, 2)])
def test_threads_share_the_diagonals_of_a_large_group(sizes, threads, several):
    bounds = np.cumsum([0, *sizes])
    parts = ungapped_cpu._shared_parts(bounds, threads)
    groups = [part for part, (own, _) in parts if own == 0]
    assert [n for first, last in groups for n in range(first, last)] == [*range(len(sizes))]
    assert [own for part, (own, _) in parts if part[0] == 0] == [*range(several)]
    assert {1 << bits for part, (_, bits) in parts if part[0] == 0} == {several}


def test_groups_of_strands_are_those_of_the_reference():
    generator = np.random.default_rng(3)
    sizes = [1, 2, 3, 7, 40, 41]
    strands, begins = generator.integers(0, 16, sum(sizes)).astype(np.uint8), np.cumsum([0, *sizes])
    groups = eights(group_bytes(strands, begins))
    for query, size in enumerate(sizes):
        own = strands[begins[query] : begins[query + 1]]
        found = [int(groups[begins[query] + 4 * query + group_place(size - 1, place)]) & 255 for place in range(size)]
        assert found == packed(own).tolist()


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([(1, -3), (2, -3), (5, -4)]), st.integers(0, 60))
def test_eight_groups_to_either_side_score_as_one_by_one(seed, pair, x_drop):
    generator = np.random.default_rng(seed)
    codes, place, first = generator.integers(0, 4, (2, 64)).astype(np.uint8), 32, int(generator.integers(0, 4))
    same = generator.random(64) < generator.choice([0, 0.5, 0.9])
    codes[1, same] = codes[0, same]
    scores = group_scores(*pair)
    gains = [scores[packed(codes[0, at : at + 4])[0] ^ packed(codes[1, at : at + 4])[0]] for at in range(0, 64, 4)]
    left, right = ([0, *accumulate(side)] for side in (gains[7::-1], gains[8:]))
    goes_on = any(side[-1] >= max(side) - x_drop for side in (left, right))
    groups = eights(group_bytes(np.append(codes[0], np.uint8(SENTINEL)), np.array([0, 65])))
    bits = packed_bits(np.concatenate([np.zeros(first, np.uint8), codes[1]]))
    most = most_of_approximate(np.array(scores), groups, 64, eights(bits), first, 64, place, place, x_drop)
    assert most == (-1 if goes_on else max(left) + max(right))


def test_hits_are_kept_by_diagonal_where_they_are_few():
    assert cells_of_diagonals(np.array([1000, 1000]), np.array([500, 10])).tolist() == [[1024, 0], [32, 32]]
