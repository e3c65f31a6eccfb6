"""Culling and best hits against plain statements of what they leave."""

from hypothesis import given
from hypothesis import strategies as st
from seqloom.plugins.common.winnow import FORK, Entry, best_hits, best_of_target, culled, dominates

LENGTH = 100


@st.composite
def hsps(draw: st.DrawFn, most: int) -> list[Entry]:
    """HSPs with ever later targets, as they come."""
    found = []
    for row in range(draw(st.integers(0, most))):
        begin = draw(st.integers(0, LENGTH - 1))
        end = draw(st.integers(begin + 1, LENGTH))
        found.append(Entry(row, begin, end, draw(st.integers(1, 60)), row // 2, draw(st.integers(0, 5)),
                           draw(st.sampled_from([1e-9, 1e-3, 1.0]))))
    return found


@given(hsps(FORK - 1), st.integers(1, 4))
def test_culling_leaves_out_what_so_many_better_ones_cover(entries: list[Entry], limit: int) -> None:
    """As long as the tree is one node: every newcomer is held against those that are there, and they against it."""
    there: dict[int, int] = {}
    for new in entries:
        above = sum(dominates(entries[row], new) for row in there)
        if above >= limit:
            continue
        there = {row: left - dominates(new, entries[row]) for row, left in there.items()}
        there = {row: left for row, left in there.items() if left > 0}
        there[new.row] = limit - above
    left = culled([Entry(e.row, e.begin, e.end, e.score, e.target, e.target_start) for e in entries], LENGTH, limit)
    assert {entry.row for entry in left} == set(there)


@given(hsps(120), st.integers(1, 4))
def test_culling_keeps_the_best_of_all_and_never_more_with_less_room(entries: list[Entry], limit: int) -> None:
    left = culled(entries, LENGTH, limit)
    assert len({entry.row for entry in left}) == len(left)
    assert all(entry.merit > 0 for entry in left) and bool(left) == bool(entries)


def test_an_hsp_that_spans_a_node_counts_against_all_in_it() -> None:
    """More short HSPs than a node holds lie in a half of the query; a long and poor one pushes them all out."""
    short = [Entry(row, 2 * row, 2 * row + 2, 50, row, 0) for row in range(FORK)]
    long = Entry(FORK, 0, LENGTH, 20, FORK, 0)
    assert not any(dominates(long, entry) for entry in short)
    left = {entry.row for entry in culled([*short, long], LENGTH, 1)}
    assert FORK in left and len(left) < FORK


@given(hsps(60), st.sampled_from([0.0, 0.1, 0.4]), st.sampled_from([0.01, 0.1, 0.3]))
def test_no_best_hit_lies_in_a_clearly_better_one(entries: list[Entry], overhang: float, edge: float) -> None:
    best = best_hits(entries, overhang, edge, len(entries))
    assert bool(best) == bool(entries)
    for one in best:
        for other in best:
            inside = other.begin <= one.begin and one.end <= other.end and other is not one
            if inside and other.evalue <= one.evalue and other.row > one.row:
                assert other.score / other.length * (1 - edge) <= one.score / one.length


def test_nothing_hangs_over_best_hits_that_were_too_many() -> None:
    """The first one's range is longer by 4 at both ends; a poor one that reaches beyond it by 1 then stays."""
    first = Entry(0, 20, 60, 40, 0, 0)
    others = [Entry(row, 70 + row, 80 + row, 9, row, 0) for row in (1, 2)]
    poor = Entry(3, 19, 59, 4, 3, 0)
    for most, stays in ((3, False), (2, True)):
        assert (poor in best_hits([first, *others, poor], 0.1, 0.1, most)) == stays


def test_best_of_a_target_may_reach_out_by_three() -> None:
    ranges = [(10, 50), (7, 53), (6, 50), (20, 30), (6, 54), (0, 9)]
    assert best_of_target(ranges, [False] * 6) == [True, False, True, False, True, True]


def test_best_of_a_target_looks_at_each_strand_first() -> None:
    ranges = [(63, 69), (64, 70), (68, 73)]
    assert best_of_target(ranges, [True, False, False]) == [True, False, False]  # the second leaves the third out first
    assert best_of_target(ranges, [False, False, False]) == [True, False, True]
    assert best_of_target(ranges, [False, True, False]) == [True, False, True]
