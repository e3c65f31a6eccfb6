"""Re-scoring of traced alignments and cutting of those that share an end."""

from seqloom.core.alphabet import NUCLEOTIDE
from seqloom.plugins.common.nucleotide_statistics import residue_scores
from seqloom.plugins.nucleotide_blast.greedy import DELETE, INSERT, PAIR
from seqloom.plugins.nucleotide_blast.rescore import (
    BaseCosts,
    TracedHsp,
    best_part,
    cut_common_ends,
    cut_head,
    cut_tail,
)

AFFINE = BaseCosts.of(residue_scores(2, -3).tolist(), 2, -3, 5, 2)
LINEAR = BaseCosts.of(residue_scores(1, -2).tolist(), 1, -2, 0, 0)
FIRST, SECOND = "ACGGTCATTGCAACTG", "TTGACCGATGCATTAGCAAT"


def codes(text: str) -> bytes:
    return NUCLEOTIDE.encode(text).tobytes()


def whole(script, query: str, target: str) -> TracedHsp:
    return TracedHsp(0, 0, len(query), 0, len(target), script=script)


def test_linear_gap_of_an_odd_reward_is_counted_in_halves():
    query, target = FIRST + SECOND, FIRST + "A" + SECOND
    hsp = whole([[PAIR, 16], [DELETE, 1], [PAIR, 20]], query, target)
    part = best_part(hsp, codes(query), codes(target), LINEAR, 10)
    assert part is not None and part.score == 33  # 36 - 2.5, halves dropped
    assert part.script == hsp.script


def test_the_best_part_is_kept_where_the_score_falls_below_zero():
    query, target = FIRST + "A" * 9 + SECOND, FIRST + "C" * 9 + SECOND
    hsp = whole([[PAIR, 45]], query, target)
    part = best_part(hsp, codes(query), codes(target), LINEAR, 10)
    assert part is not None
    assert (part.score, part.query_start, part.query_end, part.script) == (20, 25, 45, [[PAIR, 20]])


def test_part_below_the_cutoff_is_dropped():
    assert best_part(whole([[PAIR, 16]], FIRST, FIRST), codes(FIRST), codes(FIRST), LINEAR, 17) is None
    assert best_part(whole([], "", ""), codes(FIRST), codes(FIRST), LINEAR, 1) is None


def test_equal_bases_beyond_the_ends_are_taken_in_but_no_ambiguities():
    query = "AN" + FIRST + "AN"
    hsp = TracedHsp(0, 5, 15, 5, 15, script=[[PAIR, 10]])
    part = best_part(hsp, codes(query), codes(query), AFFINE, 1)
    assert part is not None
    assert (part.query_start, part.query_end, part.score, part.script) == (2, 19, 34, [[PAIR, 17]])


def test_cuts_begin_and_end_at_the_given_point():
    hsp = whole([[PAIR, 10], [INSERT, 3], [PAIR, 10]], "A" * 23, "A" * 20)
    head = cut_head(hsp, 12, 10)
    assert (head.query_start, head.target_start, head.script) == (13, 10, [[PAIR, 10]])
    head = cut_head(hsp, 15, 12)
    assert (head.query_start, head.target_start, head.script) == (15, 12, [[PAIR, 8]])
    tail = cut_tail(hsp, 4, 4)
    assert (tail.query_end, tail.target_end, tail.script) == (4, 4, [[PAIR, 4]])
    assert cut_head(hsp, 30, 30) is hsp


def test_of_those_that_share_an_end_the_best_stays_and_the_longer_leaves_a_rest():
    best = TracedHsp(50, 0, 40, 0, 40, script=[[PAIR, 40]])
    longer = TracedHsp(45, 0, 60, 0, 62, script=[[PAIR, 40], [DELETE, 2], [PAIR, 20]])
    shorter = TracedHsp(30, 0, 20, 0, 20, script=[[PAIR, 20]])
    earlier = TracedHsp(20, -5, 40, -5, 40, script=[[PAIR, 45]])
    kept, rest = cut_common_ends([longer, best, shorter, earlier])
    assert kept == [best]
    assert [(r.query_start, r.query_end) for r in rest] == [(-5, 0), (40, 60)]
