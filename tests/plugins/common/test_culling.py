"""Shared endpoints and containment, by example and against definitions."""

from hypothesis import given
from hypothesis import strategies as st
from seqloom.plugins.common.culling import (
    Hsp,
    SavedHsps,
    drop_contained,
    encloses,
    purge_common_endpoints,
    score_order,
)

small = st.integers(0, 6)


@st.composite
def hsps(draw):
    query, target = draw(small), draw(small)
    return Hsp(draw(small), query, query + 1 + draw(small), target, target + 1 + draw(small))


lists = st.lists(hsps(), max_size=12)


def starts(found):
    return [(hsp.query_start, hsp.target_start) for hsp in found]


def ends(found):
    return [(hsp.query_end, hsp.target_end) for hsp in found]


@given(lists, st.randoms())
def test_purged_lists_have_every_endpoint_once(found, random):
    kept = purge_common_endpoints(found)
    assert len(set(starts(kept))) == len(kept) == len(set(ends(kept)))
    assert kept == sorted(kept, key=score_order)
    assert purge_common_endpoints(kept) == kept
    random.shuffle(found)
    assert purge_common_endpoints(found) == kept


@given(lists)
def test_the_best_of_each_start_survives_the_first_round(found):
    best = {}
    for hsp in found:
        point = (hsp.query_start, hsp.target_start)
        best[point] = max(best.get(point, 0), hsp.score)
    for hsp in purge_common_endpoints(found):
        assert hsp.score == best[hsp.query_start, hsp.target_start]


def test_boxes_are_closed_at_their_exclusive_ends():
    outer = Hsp(50, 10, 20, 30, 40)
    assert encloses(outer, Hsp(50, 10, 20, 30, 40))
    assert encloses(outer, Hsp(3, 20, 20, 40, 40))
    assert not encloses(outer, Hsp(51, 12, 18, 32, 38))
    assert not encloses(outer, Hsp(3, 12, 21, 32, 38))


def test_diagonal_separation():
    outer = Hsp(50, 0, 100, 0, 100)
    assert encloses(outer, Hsp(5, 10, 20, 40, 50))
    assert not encloses(outer, Hsp(5, 10, 20, 40, 50), diagonal_separation=6)
    assert encloses(outer, Hsp(5, 10, 20, 15, 25), diagonal_separation=6)
    assert not encloses(outer, Hsp(5, 10, 20, 16, 26), diagonal_separation=6)


@given(lists)
def test_dropped_hsps_were_enclosed_and_the_order_stays(found):
    kept = drop_contained(found)
    assert [hsp for hsp in found if any(hsp is other for other in kept)] == kept
    for place, hsp in enumerate(found):
        if not any(hsp is other for other in kept):
            assert any(encloses(earlier, hsp) for earlier in found[:place])


def test_saved_set_keeps_the_better_of_two_that_share_a_point():
    saved = SavedHsps()
    long, short = Hsp(30, 0, 40, 0, 40), Hsp(30, 0, 20, 0, 20)
    saved.add(long)
    saved.add(short)  # same start and score, shorter: it replaces the longer one
    assert not saved.contains(Hsp(1, 30, 35, 30, 35))
    assert saved.contains(Hsp(1, 5, 10, 5, 10))
    saved.add(Hsp(10, 0, 40, 0, 40))  # worse than the one with its start
    assert not saved.contains(Hsp(1, 30, 35, 30, 35))
