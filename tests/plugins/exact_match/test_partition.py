"""The model of parts: its optimum against every split, the thesis's formulas, and costs that are kept."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from seqloom.core.errors import BudgetError, OptionError
from seqloom.plugins.exact_match.partition import (
    ORDERS,
    Costs,
    Work,
    about,
    best_split,
    costs_for,
    enough_devices,
    seconds,
)

costs = st.builds(Costs, st.floats(1e-3, 10), st.floats(1e-3, 10), st.floats(0, 100))
works = st.builds(Work, index=st.integers(1, 150), queries=st.integers(1, 400), memory=st.integers(20, 300),
                  least_index=st.integers(1, 20), least_queries=st.integers(1, 20), overlap=st.integers(0, 5),
                  devices=st.integers(1, 4), there=st.integers(0, 3), cut=st.integers(0, 5), cutting=st.floats(0, 200))


def every_split(work: Work, costs: Costs) -> list[tuple[float, str, int, int]]:
    """Time of every split of queries in up to 60 parts, by a plain count of what each device has to do, and to cut."""
    found = []
    for index_parts in range(1, max(1, work.index // work.least_index) + 1):
        part = -(-work.index // index_parts) + (work.overlap if index_parts > 1 else 0)
        copied = 0 if index_parts == work.there <= work.devices else costs.copy * part
        for query_parts in range(1, 61):
            size = work.queries / query_parts
            if part + max(size, min(work.least_queries, work.queries)) > work.memory:
                continue
            meet = costs.meeting + costs.search * size
            rounds = range(0, index_parts, work.devices)
            by_index = sum(copied + query_parts * (meet + costs.copy * size) for _ in rounds)
            rounds = range(0, query_parts, work.devices)
            by_queries = sum(costs.copy * size + index_parts * meet for _ in rounds)
            by_queries += copied if index_parts == 1 else sum(index_parts * copied for _ in rounds)
            anew = cutting(work, index_parts)
            found += [(by_index + anew, "index", index_parts, query_parts),
                      (by_queries + anew, "queries", index_parts, query_parts)]
    return found


def cutting(work: Work, index_parts: int) -> float:
    """Seconds until the index is there in so many parts."""
    return 0.0 if index_parts in (1, work.cut) or not work.cut else work.cutting


@settings(max_examples=200, deadline=None)
@given(works, costs)
def test_nothing_is_quicker(work, costs):
    try:
        split = best_split(work, costs)
    except BudgetError:
        assert not every_split(work, costs)
        return
    assume(split.query_parts <= 60)
    tried = every_split(work, costs)
    total = split.seconds + cutting(work, split.index_parts)
    assert total <= min(tried)[0] * (1 + 1e-9)
    mine = [t for t, *what in tried if what == [split.order, split.index_parts, split.query_parts]]
    assert not mine or total == pytest.approx(mine[0])
    assert 0 < split.share <= 1


def test_formulas_are_those_of_the_thesis():
    work, costs = Work(index=8000, queries=3000, memory=1000), Costs(search=0.5, copy=0.1)
    for order in ORDERS:
        for parts_i, parts_q in ((10, 20), (16, 6), (80, 4)):
            got = float(seconds(work, costs, order, np.array([parts_i]), np.array([parts_q]))[0])
            if order == "index":
                wanted = (0.5 + 0.1) * 3000 * parts_i + 0.1 * 8000
            else:
                wanted = 0.5 * 3000 * parts_i + 0.1 * 3000 + 0.1 * 8000 * parts_q
            assert got == pytest.approx(wanted)


@settings(max_examples=100, deadline=None)
@given(works, costs)
def test_the_next_part_is_sent_while_one_is_looked_up(work, costs):
    """With room for two parts: the time of each device's list of things to do, of which two are done at a time."""
    work = replace(work, buffers=2)
    try:
        split = best_split(work, costs)
    except BudgetError:
        return
    part = -(-work.index // split.index_parts) + (work.overlap if split.index_parts > 1 else 0)
    held = 1 if split.query_parts == 1 else 2
    assert part + held * work.queries / split.query_parts <= work.memory
    load = 0 if split.index_parts == work.there <= work.devices else costs.copy * part
    send, meet = costs.copy * work.queries / split.query_parts, costs.meeting + costs.search * (
        work.queries / split.query_parts)
    taken = 0.0
    if split.order == "index":
        for _ in range(0, split.index_parts, work.devices):
            taken += load + send
            for n in range(split.query_parts):
                taken += max(meet, send) if n + 1 < split.query_parts else meet
    else:
        rounds = -(-split.query_parts // work.devices)
        taken = send + (load if split.index_parts == 1 else rounds * split.index_parts * load)
        for n in range(rounds):
            taken += max(split.index_parts * meet, send) if n + 1 < rounds else split.index_parts * meet
    assert split.seconds == pytest.approx(taken)


def test_what_fits_is_not_cut():
    work, costs = Work(index=600, queries=300, memory=1000), Costs(1, 1)
    assert best_split(work, costs).index_parts == best_split(work, costs).query_parts == 1
    assert best_split(work, costs).seconds == 300 * 2 + 600
    resident = Work(index=600, queries=300, memory=1000, there=1)
    assert best_split(resident, costs).seconds == 300 * 2


def test_devices_keep_parts_or_share_queries():
    costs = Costs(1, 0.1)
    large = best_split(Work(index=3000, queries=10_000, memory=1100, devices=3), costs)
    assert (large.order, large.index_parts) == ("index", 3) and large.seconds == pytest.approx(11_000 + 100)
    small = best_split(Work(index=300, queries=9000, memory=9500, devices=3), costs)
    assert (small.order, small.index_parts, small.query_parts) == ("queries", 1, 3)
    assert small.seconds == pytest.approx(3300 + 30)


def test_so_many_devices_keep_the_index():
    costs, work = Costs(1, 0.1), Work(index=3000, queries=10_000, memory=1100)
    assert best_split(work, costs).index_parts > 1
    assert enough_devices(work, costs) == (3, best_split(replace(work, devices=3), costs).seconds)
    assert enough_devices(replace(work, devices=2), costs) == enough_devices(work, costs)
    assert enough_devices(replace(work, devices=3), costs) is None
    assert enough_devices(replace(work, index=300), costs) is None


@settings(max_examples=200, deadline=None)
@given(works, costs)
def test_no_fewer_devices_keep_the_index(work, costs):
    work = replace(work, cut=0)
    try:
        now = best_split(work, costs)
    except BudgetError:
        assume(False)
    if found := enough_devices(work, costs):
        devices, taken = found
        assert devices > work.devices and taken < now.seconds
        for some in range(work.devices, devices):
            assert best_split(replace(work, devices=some), costs).index_parts > some or some * work.memory < work.index


def test_an_index_stays_cut_as_it_is_unless_that_takes_longer():
    costs = Costs(1e-9, 1e-10)
    work = Work(index=4_000_000, queries=80_000_000, memory=2_000_000, buffers=2)
    best = best_split(work, costs)
    other = best.index_parts + 1
    cut = replace(work, cut=other, cutting=10.0)
    assert best_split(cut, costs).index_parts == other
    assert best_split(replace(cut, cutting=0.0), costs) == best
    assert best_split(replace(cut, memory=8_000_000_000), costs).index_parts == 1


def test_what_cannot_fit_is_told():
    with pytest.raises(BudgetError, match=r"smallest part of the index .* raise --device-memory"):
        best_split(Work(index=1000, queries=10, memory=50, least_index=60), Costs(1, 1))


def test_costs_are_measured_once_and_kept(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    taken = []

    def measure() -> Costs:
        taken.append(1)
        return Costs(len(taken) / 8, 0.5)

    assert costs_for("kept", "a device", measure) == costs_for("kept", "a device", measure) == Costs(0.125, 0.5)
    assert costs_for("kept", "another", measure) == Costs(0.25, 0.5)
    assert costs_for("anew", "a device", measure) == costs_for("kept", "a device", measure) == Costs(0.375, 0.5)
    assert costs_for("0.5,0.25", "a device", measure) == Costs(5e-10, 2.5e-10) and len(taken) == 3
    [file] = (tmp_path / "cache" / "seqloom").iterdir()
    assert json.loads(file.read_text().splitlines()[0])["another"] == {"search": 0.25, "copy": 0.5, "meeting": 0.0}
    file.write_text("{")
    assert costs_for("kept", "a device", measure) == Costs(0.5, 0.5)
    for text in ("soon", "1", "1,0", "nan,1", "-1,1"):
        with pytest.raises(OptionError, match="nanoseconds"):
            costs_for(text, "a device", measure)


@given(st.integers(0, 1 << 45))
def test_large_numbers_of_bytes_are_told_apart_by_their_leading_bits(queries: int) -> None:
    known = about(queries)
    assert queries <= known <= queries * 33 / 32 and (queries >= 1 << 26 or known == queries)
    assert about(known) == known
