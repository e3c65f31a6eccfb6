"""Joining of alignments that two pieces of a target share."""

import pytest
from seqloom.plugins.common.culling import Hsp
from seqloom.plugins.nucleotide_blast.chunks import merge_chunks, overlaps


def test_parts_on_one_diagonal_are_joined_to_their_box():
    first = Hsp(80, 0, 450, 4_999_550, 5_000_000, 100, 4_999_650)
    second = Hsp(100, 430, 900, 80, 550, 600, 250)
    merged = merge_chunks([(0, {1: [first]}), (4_999_900, {1: [second]})])[1]
    assert len(merged) == 1
    joined = merged[0]
    assert (joined.query_start, joined.query_end) == (0, 900)
    assert (joined.target_start, joined.target_end) == (4_999_550, 5_000_450)
    assert (joined.anchor_query, joined.anchor_target) == (600, 5_000_150)
    assert joined.score == int((80 + 100) / (450 + 470) * 900)


def test_others_stay_apart():
    first = Hsp(80, 0, 500, 4_999_500, 5_000_000, 100, 4_999_650)
    elsewhere = Hsp(100, 400, 900, 3000, 3500, 600, 3200)
    merged = merge_chunks([(0, {1: [first]}), (4_999_900, {1: [elsewhere], -1: [Hsp(9, 0, 5, 0, 5)]})])
    assert {frame: len(hsps) for frame, hsps in merged.items()} == {1: 2, -1: 1}
    assert merged[1][0].target_start == 5_002_900  # the better one is first


@pytest.mark.parametrize(("second", "joined"), [
    (Hsp(20, 8, 28, 0, 20), True),  # begins in the first, as short as it is
    (Hsp(20, 12, 28, 1, 17), False),  # begins behind the first in the query
    (Hsp(20, 3, 24, 0, 20), True),  # begins five diagonals away
    (Hsp(20, 0, 22, 2, 20), False),  # twelve
    (Hsp(9, 3, 9, 0, 1), True),  # ends in it
    (Hsp(9, 9, 29, 3, 23), False),  # begins behind it in the target
])
def test_alignments_that_meet_in_the_three_bases_before_a_masked_one(second, joined):
    """A stretch behind a masked base, at 102, is searched from 100 on."""
    merged = merge_chunks([(0, {1: [Hsp(30, 0, 10, 92, 102)]}), (100, {1: [second]})])[1]
    assert len(merged) == 2 - joined


def test_one_alignment_may_take_in_several_of_several_pieces():
    parts = [(0, {1: [Hsp(30, 0, 10, 92, 102)]}), (100, {1: [Hsp(12, 8, 14, 0, 6)]}),
             (104, {1: [Hsp(40, 12, 50, 0, 38), Hsp(7, 13, 20, 1, 8)]}), (300, {1: [Hsp(50, 0, 50, 0, 50)]})]
    merged = merge_chunks(parts)[1]
    assert [(hsp.target_start, hsp.target_end) for hsp in merged] == [(92, 142), (300, 350)]


def test_what_lies_in_a_better_one_goes_before_the_next_piece_is_looked_at():
    """The second of the first piece would be joined to that of the next, and then be the best."""
    def parts():
        return [(0, {1: [Hsp(30, 0, 30, 0, 30), Hsp(10, 20, 30, 92, 102)]}), (100, {1: [Hsp(25, 28, 53, 0, 25)]})]

    joined, best = merge_chunks(parts())[1], merge_chunks(parts(), best_of=100)[1]
    assert [(hsp.query_start, hsp.query_end) for hsp in joined] == [(20, 53), (0, 30)]
    assert [(hsp.query_start, hsp.query_end) for hsp in best] == [(0, 30), (28, 53)]


def test_segments_are_joined_on_one_diagonal_only_and_wherever_they_lie_in_the_overlap():
    def merged(second: Hsp) -> list[Hsp]:
        first = Hsp(100, 0, 50, 4_999_950, 5_000_000)
        return merge_chunks([(0, {1: [first]}), (4_999_900, {1: [second]})], overlaps)[1]

    whole = merged(Hsp(200, 0, 100, 50, 150))
    assert [(hsp.query_start, hsp.query_end, hsp.target_start, hsp.target_end) for hsp in whole] == [
        (0, 100, 4_999_950, 5_000_050)]
    assert len(merged(Hsp(200, 1, 101, 50, 150))) == len(merged(Hsp(200, 60, 100, 110, 150))) == 2
