"""The engine: same results however work is cut up, resumption, cancellation, budget, statistics, traces."""

import random
import threading
import time
from dataclasses import replace
from unittest import mock

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from seqloom.core.alphabet import NUCLEOTIDE, PROTEIN
from seqloom.core.context import SearchSpace
from seqloom.core.engine import memory as in_memory
from seqloom.core.engine.engine import Engine, check_queries
from seqloom.core.engine.memory import MemorySink, MemorySource, cut_spans
from seqloom.core.engine.planning import UNIT_SECONDS, Settings, even_batches, query_batches
from seqloom.core.engine.runner import PreparedVolume
from seqloom.core.engine.threads import run_tasks
from seqloom.core.errors import (
    BudgetError,
    Cancelled,
    CompositionError,
    DamagedError,
    InputError,
    OutOfMemoryError,
    StageError,
)
from seqloom.core.hookspecs import hookimpl
from seqloom.core.pipeline import compose
from seqloom.core.ports import UnitPlan
from seqloom.core.progress import Cancellation, Progress
from seqloom.core.records import Column, Hits, Seeds
from seqloom.core.registry import Registry
from seqloom.core.sequences import ModelBatch, SequenceBatch, UnreadBatch
from seqloom.core.stages import Footprint, Stage
from seqloom.testing import assert_same_hits, check_pipeline, check_sorter, check_stage, run_pipeline

from tests.core import toy

QUERIES = toy.sequences(9, 30, seed=1)
TARGETS = toy.sequences(16, 36, seed=2)
REGISTRY = toy.registry()


class StrictSink(MemorySink):
    """Refuses anything that would put a row in twice, and fails when told to.

    Args:
        fail: called with the name of every method that changes something, before ("…") and after ("… done") its effect.
    """

    def __init__(self, fail=lambda moment: None) -> None:
        super().__init__()
        self.fail = fail
        self.units: list[tuple[int, int]] = []
        self.thread = threading.get_ident()

    def begin(self, plan) -> None:
        assert self.plan() is None
        self.fail("begin")
        super().begin(plan)
        self.fail("begin done")

    def commit_unit(self, batch, volume, records, stats) -> None:
        assert threading.get_ident() == self.thread, "the sink is used by one thread alone"
        assert (batch, volume) not in self.done_units()
        assert batch not in self.done_batches()
        self.fail("unit")
        super().commit_unit(batch, volume, records, stats)
        self.units.append((batch, volume))
        self.fail("unit done")

    def commit_batch(self, batch, hits, targets, stats) -> None:
        assert batch not in self.done_batches()
        volumes = range(len(self.plan().volumes))
        assert {v for b, v in self.done_units() if b == batch} == set(volumes) or len(volumes) == 1
        assert targets.numbers.tolist() == sorted(set(hits.target.tolist()))
        self.fail("batch")
        super().commit_batch(batch, hits, targets, stats)
        self.fail("batch done")


def engine(queries=QUERIES, targets=TARGETS, registry=REGISTRY, source=None, pipeline=toy.TOY, options=None,
           cancellation=None, progress=None, **limits) -> Engine:
    plan = compose(registry, pipeline, options, "reference")
    source = source or MemorySource(targets)
    space = SearchSpace(source.total_residues, source.sequences, source.longest)
    return Engine(plan, registry, queries, source, space, Settings(**limits), progress or Progress(cancellation))


def whole() -> Hits:
    return run_pipeline(toy.TOY, QUERIES, TARGETS, registry=REGISTRY)


# ---- results


def test_the_toy_pipeline_finds_what_brute_force_finds() -> None:
    assert toy.found(whole()) == toy.expected(QUERIES, TARGETS)
    few = run_pipeline("toy", QUERIES, TARGETS, {"least": 6, "max_target_seqs": 1}, registry=REGISTRY)
    assert toy.found(few) == toy.expected(QUERIES, TARGETS, least=6, most=1)
    assert whole().alignments.toy_residues[0] in QUERIES.text(0)


def test_results_do_not_depend_on_volumes_batches_and_threads() -> None:
    check_pipeline("toy", QUERIES, TARGETS, registry=REGISTRY, least=15)


@settings(max_examples=25, deadline=None)
@given(st.integers(5, 400), st.integers(1, 9), st.integers(1, 100), st.integers(1, 4))
def test_any_cut_gives_the_same_rows(volume_residues, batch_queries, batch_residues, threads) -> None:
    sink = StrictSink()
    engine(volume_residues=volume_residues, batch_queries=batch_queries, batch_residues=batch_residues,
           threads=threads).run(sink)
    assert_same_hits(whole(), sink.hits)


def test_hits_of_a_query_do_not_depend_on_the_other_queries() -> None:
    together = toy.found(whole())
    for n in range(len(QUERIES)):
        alone = replace(QUERIES.take(n, n + 1), ordinals=np.array([0]))
        assert [(n, *h[1:]) for h in toy.found(run_pipeline("toy", alone, TARGETS, registry=REGISTRY))] == [
            h for h in together if h[0] == n]


def test_statistics_depend_on_the_search_space_alone() -> None:
    space = SearchSpace(1 << 20, 7)
    part = run_pipeline("toy", QUERIES, TARGETS.take(0, 5), registry=REGISTRY, space=space)
    assert np.array_equal(part.bit_score, part.score - 20.0)


def test_masking_hides_residues_from_all_stages() -> None:
    queries = SequenceBatch.of(PROTEIN, ["CDCAAAACDC"])
    targets = SequenceBatch.of(PROTEIN, ["CDCAAAACDC"])
    assert toy.found(run_pipeline("toy", queries, targets, {"least": 3}, registry=REGISTRY))[0][2] == 10
    masked = run_pipeline("toy", queries, targets, {"least": 3, "mask": True}, registry=REGISTRY)
    assert {c["toy_residues"] for c in masked.alignments.rows()} == {"CDC"}


@pytest.mark.parametrize("which", ["no targets", "no queries", "nothing alike", "empty sequences"])
def test_nothing_to_find(which: str) -> None:
    texts = {"no queries": [], "empty sequences": ["", ""]}.get(which, ["CDCD"])
    queries = SequenceBatch.of(PROTEIN, texts)
    targets = SequenceBatch.of(PROTEIN, [] if which == "no targets" else ["", "WWWWW"])
    sink = StrictSink()
    stats = engine(queries, targets, volume_residues=2).run(sink)
    assert len(sink.hits) == len(sink.hits.alignments) == 0
    assert set(stats) == {s.name for s in toy.TOY.slots}
    assert len(sink.done_batches()) == (which != "no queries")


# ---- resumption


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 3), st.sampled_from([0.05, 0.3, 0.6]))
def test_a_run_that_fails_anywhere_any_number_of_times_ends_with_the_same_rows(seed, threads, chance) -> None:
    dice = random.Random(seed)

    class Dead(Exception):
        pass

    def fail(moment: str) -> None:
        if dice.random() < chance:
            raise Dead(moment)

    sink = StrictSink(fail)
    for attempt in range(100):
        if attempt == 60:
            sink.fail = lambda moment: None
        try:
            # Limits may change between attempts: the plan of the first one stays.
            engine(volume_residues=dice.choice([60, 200, 1000]), batch_queries=dice.choice([2, 4]),
                   threads=threads).run(sink)
            break
        except Dead:
            pass
    assert_same_hits(whole(), sink.hits)
    batches, volumes = len(sink.plan().batches), len(sink.plan().volumes)
    assert len(sink.units) == len(set(sink.units)) and (len(sink.units) == batches * volumes or volumes == 1)


def test_a_run_that_is_done_does_nothing_when_run_again() -> None:
    sink = StrictSink()
    engine(volume_residues=100, batch_queries=3).run(sink)
    sink.fail = lambda moment: pytest.fail(f"{moment} a second time")
    again = engine()
    stats = again.run(sink)
    assert all(s.seconds == 0 and s.records_in == 0 for s in stats.values())


def test_an_error_of_a_stage_arrives_as_it_is_and_leaves_a_resumable_sink() -> None:
    class Failing(MemorySource):
        def read(self, span):
            if span.first and self.broken:
                raise OSError("disk on fire")
            return super().read(span)

    source, sink = Failing(TARGETS), StrictSink()
    source.broken = True
    with pytest.raises(OSError, match="disk on fire"):
        engine(source=source, volume_residues=200, batch_queries=3, threads=2).run(sink)
    source.broken = False
    engine(source=source, threads=2).run(sink)
    assert_same_hits(whole(), sink.hits)


# ---- cancellation


@pytest.mark.parametrize("after", range(0, 12, 3))
def test_a_cancelled_run_can_be_resumed(after: int) -> None:
    cancellation, left = Cancellation(), [after]

    def fail(moment: str) -> None:
        left[0] -= 1
        if left[0] < 0:
            cancellation.cancel()

    sink = StrictSink(fail)
    with pytest.raises(Cancelled) as caught:
        engine(volume_residues=150, batch_queries=2, cancellation=cancellation, threads=2).run(sink)
    assert caught.value.exit_status == 130
    assert len(sink.done_batches()) < 5
    sink.fail = lambda moment: None
    engine(threads=2).run(sink)
    assert_same_hits(whole(), sink.hits)


def test_cancellation_stops_a_stage_in_its_loop() -> None:
    cancellation = Cancellation()
    queries, targets = toy.sequences(1, 4, 5), toy.sequences(1, 60, 6)
    seen = []

    class Watched(toy.WordSeeds):
        name = "toy-watched"

        def run(self, context, records):
            seen.append(context.slot)
            cancellation.cancel()
            return super().run(context, records)

    registry = with_stages(Watched)
    with pytest.raises(Cancelled):
        engine(queries, targets, registry, pipeline=toy.TOY.with_stage("seed.words", "toy-watched"),
               cancellation=cancellation).run(StrictSink())
    assert seen == ["seed.words"]


def test_a_cancelled_unit_begins_no_further_stage() -> None:
    """Stages without a long loop need not look at the cancellation: the engine does so before each."""
    cancellation, ran = Cancellation(), []

    class Stopping(toy.WordSeeds):
        name = "toy-stopping"

        def run(self, context, records):
            cancellation.cancel()
            return super().run(context, records)

    class Late(toy.ScoreLength):
        name = "toy-late"

        def run(self, context, records):
            ran.append(context.slot)
            return super().run(context, records)

    pipeline = toy.TOY.with_stage("seed.words", "toy-stopping").with_stage("score.length", "toy-late")
    sink = StrictSink()
    with pytest.raises(Cancelled):
        engine(registry=with_stages(Stopping, Late), pipeline=pipeline, cancellation=cancellation).run(sink)
    assert not ran and not sink.done_units() and not sink.done_batches()


def test_units_that_finish_after_the_cancellation_are_kept() -> None:
    cancellation, both = Cancellation(), threading.Barrier(2)

    class Meeting(toy.ScoreLength):
        name = "toy-meeting"

        def run(self, context, records):
            scored = super().run(context, records)
            both.wait(20)
            cancellation.cancel()
            return scored

    sink = StrictSink()
    with pytest.raises(Cancelled):
        engine(registry=with_stages(Meeting), pipeline=toy.TOY.with_stage("score.length", "toy-meeting"), threads=2,
               volume_residues=150, cancellation=cancellation).run(sink)
    assert len(sink.units) == 2
    engine(threads=2).run(sink)
    assert_same_hits(whole(), sink.hits)


def test_a_cancellation_after_the_last_row_changes_nothing() -> None:
    cancellation = Cancellation()
    last = len(query_batches(QUERIES, 2, 10**9))
    done: list[str] = []

    def fail(moment: str) -> None:
        done.append(moment)
        if done.count("batch done") == last:
            cancellation.cancel()

    engine(batch_queries=2, cancellation=cancellation).run(sink := StrictSink(fail))
    assert len(sink.done_batches()) == last


def test_no_further_volume_is_read_once_cancelled() -> None:
    cancellation, late = Cancellation(), []

    class Slow(MemorySource):
        def read(self, span):
            if cancellation.requested:
                late.append(span.first)
            time.sleep(0.02)
            return super().read(span)

    def fail(moment: str) -> None:
        cancellation.cancel()

    with pytest.raises(Cancelled):
        engine(source=Slow(TARGETS), volume_residues=20, threads=4, cancellation=cancellation).run(StrictSink(fail))
    assert len(late) <= 2, "those whose turn it was; not the whole row that waits"


def test_the_first_volume_is_read_once_while_the_sink_is_prepared() -> None:
    reads: list[int] = []
    there = threading.Event()

    class Watched(MemorySource):
        def read(self, span):
            reads.append(span.first)
            there.set()
            return super().read(span)

    run = engine(source=Watched(TARGETS), volume_residues=100, threads=2)
    with run.reading_ahead():
        assert there.wait(30)
        assert reads == [0]
        run.run(sink := StrictSink())
    assert sorted(reads) == [span.first for span in sink.plan().volumes]
    assert_same_hits(whole(), sink.hits)


@pytest.mark.parametrize("ahead", [True, False])
def test_volumes_are_read_while_others_are_searched_unless_told_otherwise(ahead: bool) -> None:
    events: list[str] = []
    second = threading.Event()

    class Watched(MemorySource):
        def read(self, span):
            events.append("read")
            if events.count("read") == 2:
                second.set()
            return super().read(span)

    def kept(moment: str) -> None:
        if moment == "unit":
            assert not ahead or second.wait(30)
            events.append("kept")

    run = engine(source=Watched(TARGETS), volume_residues=100, batch_queries=9, threads=3, in_turn=not ahead)
    with run.reading_ahead():
        run.run(sink := StrictSink(kept))
    volumes = len(sink.plan().volumes)
    assert volumes > 3 and len(sink.plan().batches) == 1 and events.count("read") == volumes
    assert ahead or events == ["read", "kept"] * volumes
    assert_same_hits(whole(), sink.hits)


class Portions:
    """Queries one batch at a time, as the engine is given them behind the first."""

    part = None

    def __init__(self, batches: list[SequenceBatch]) -> None:
        self.batches = batches

    @property
    def at_hand(self) -> bool:
        return bool(self.batches)

    def widen(self) -> None:
        pass

    def read_ahead(self) -> None:
        pass

    def next(self, cancellation: Cancellation) -> SequenceBatch | None:
        cancellation.check()
        return self.batches.pop(0) if self.batches else None


@pytest.mark.parametrize("fails", [False, True])
def test_the_next_queries_are_searched_while_those_before_are_reduced(fails: bool, monkeypatch) -> None:
    """Reducing the first portion waits for units of the second; it is kept even if these fail."""
    begun, rank, seeds = threading.Event(), toy.Rank.run, toy.WordSeeds.run

    def reduce(self, context, records):
        if 0 in context.queries.ordinals:
            assert begun.wait(10)
        return rank(self, context, records)

    def search(self, context, records):
        if 0 not in context.queries.ordinals:
            begun.set()
            if fails:
                raise InputError("no more")
        return seeds(self, context, records)

    monkeypatch.setattr(toy.Rank, "run", reduce)
    monkeypatch.setattr(toy.WordSeeds, "run", search)
    made, sink = engine(QUERIES.take(0, 4), threads=2, volume_residues=200), MemorySink()
    made._more = Portions([QUERIES.take(4, 6), QUERIES.take(6, 9)])
    if fails:
        with pytest.raises(InputError, match="no more"):
            made.run(sink)
        assert {*sink.hits.query.tolist()} == {*whole().query.tolist()} & {0, 1, 2, 3}
    else:
        made.run(sink)
        assert_same_hits(sink.hits, whole())


@pytest.mark.parametrize("in_turn", [False, True])
def test_the_next_queries_are_searched_while_the_last_unit_of_those_before_goes_on(in_turn: bool, monkeypatch) -> None:
    """The last unit of every portion waits for one of the next, and what that gives is kept behind it all the same."""
    wanted, portions = whole(), [QUERIES.take(first, last) for first, last in ((0, 3), (3, 6), (6, 9))]
    begun, seeds, kept = {0: threading.Event(), 3: threading.Event(), 6: threading.Event()}, toy.WordSeeds.run, []
    last = max(TARGETS.ordinals)

    def search(self, context, records):
        first = int(context.queries.ordinals[0])
        begun[first].set()
        if first < 6 and last in context.targets.ordinals:
            assert begun[first + 3].wait(10) is not in_turn
        return seeds(self, context, records)

    class Sink(MemorySink):
        def commit_unit(self, batch, volume, records, stats):
            kept.append(batch)
            super().commit_unit(batch, volume, records, stats)

    if in_turn:
        for event in begun.values():
            monkeypatch.setattr(event, "wait", lambda seconds, event=event: event.is_set())
    monkeypatch.setattr(toy.WordSeeds, "run", search)
    made = engine(portions[0], threads=2, volume_residues=200, in_turn=in_turn)
    made._more = Portions(portions[1:])
    made.run(sink := Sink())
    assert kept == sorted(kept) and len(set(kept)) == 3
    assert_same_hits(sink.hits, wanted)


def test_volumes_that_are_in_memory_are_at_hand() -> None:
    run = engine(volume_residues=100)
    some = np.array([0, 2], np.int64)
    assert run.loaded_targets(some) is None, "nothing is read before the run"
    run.run(sink := StrictSink())
    first, second = sink.plan().volumes[:2]
    volume = run.loaded_targets(some)
    assert [volume.by_ordinal(n).tolist() for n in some.tolist()] == [TARGETS[n].tolist() for n in some.tolist()]
    assert run.loaded_targets(np.array([second.first])).ordinals[0] == second.first
    assert run.loaded_targets(np.array([first.last - 1, first.last])) is None, "no volume has both"
    assert run.loaded_targets(np.empty(0, np.int64)) is None


def test_a_volume_whose_residues_nobody_read_is_not_at_hand() -> None:
    targets = UnreadBatch.from_readers(PROTEIN, TARGETS.offsets, TARGETS.ordinals, lambda: TARGETS.residues,
                                       lambda: TARGETS.lower)
    run = engine()
    with mock.patch.object(run.runner, "prepare_volume", lambda span: PreparedVolume(targets, {})):
        run.runner.keep(run.unit_plan(), QUERIES.take, 1, 1)
        run.runner.volumes.get(0)
    assert not targets.loaded and run.loaded_targets(targets.ordinals) is None
    targets.load()
    assert targets.loaded and run.loaded_targets(targets.ordinals) is targets


def test_what_goes_wrong_in_reading_ahead_is_told_by_the_run() -> None:
    class Broken(MemorySource):
        def read(self, span):
            raise DamagedError("chunk 0 is gone")

    run = engine(source=Broken(TARGETS))
    with run.reading_ahead(), pytest.raises(DamagedError, match="chunk 0 is gone"):
        run.run(StrictSink())
    with pytest.raises(KeyError), run.reading_ahead():
        raise KeyError("the sink can't be made")


@pytest.mark.parametrize("wanted", [True, False])
def test_residues_are_read_ahead_where_a_stage_wants_them(wanted: bool, monkeypatch) -> None:
    monkeypatch.setattr(Stage, "reads_residues", wanted)
    reads: list[int] = []

    class Unread(MemorySource):
        def read(self, span):
            batch = super().read(span)

            def residues():
                reads.append(span.first)
                return batch.residues

            return UnreadBatch.from_readers(batch.alphabet, batch.offsets, batch.ordinals, residues,
                                            lambda: batch.lower)

    run = engine(source=Unread(TARGETS), volume_residues=100, threads=2, batch_queries=3)
    plan = run.unit_plan()
    run.runner.prepare_volume(plan.volumes[0])
    assert reads == [0]  # by the index of words, or by the engine
    run.run(sink := StrictSink())
    assert sorted(reads) == sorted([0, *(span.first for span in sink.plan().volumes)]), "each volume once"
    assert_same_hits(whole(), sink.hits)


# ---- budget


def test_memory_is_set_aside_for_what_is_read_and_for_indexes_that_stay(monkeypatch) -> None:
    def need(volumes: int) -> int:
        return run.planner.need(plan.batches, plan.volumes[:volumes], 2).host

    run = engine(volume_residues=100, batch_queries=3)
    plan = run.unit_plan()
    most = max(span.total_residues for span in plan.volumes)
    read = [need(1), need(9)]
    monkeypatch.setattr(Stage, "reads_residues", False)
    unread = [need(1), need(9)]
    count, rest = divmod(read[1] - unread[1], most)
    assert read[0] - unread[0] == plan.volumes[0].total_residues and count > 2 and not rest
    [index] = run.plan.indexes("target")
    for stays, more in ((None, 1000), (300, 300)):
        monkeypatch.setattr(type(index.stage), "footprint", lambda self, shape: Footprint(host=0))
        nothing = need(9)
        made = Footprint(host=1000, stays=stays)
        monkeypatch.setattr(type(index.stage), "footprint", lambda self, shape, made=made: made)
        assert need(9) - nothing == 1000 + (count - 1) * more


@pytest.mark.parametrize("queries", [QUERIES, toy.sequences(1, 30, seed=3)])
@pytest.mark.parametrize("share", [0.9, 0.5, 0.2])
def test_the_budget_makes_units_smaller_and_results_stay(queries, share: float) -> None:
    free = engine(queries).unit_plan()
    need = engine(queries).planner.need(free.batches, free.volumes, 1).host
    single = [(n, n + 1) for n in range(len(queries))]
    least = engine(queries).planner.need(single, MemorySource(TARGETS).plan(1), 1).host
    budget = int(least + share * (need - least))
    tight = engine(queries, memory=budget)
    plan = tight.unit_plan()
    assert len(plan.batches) * len(plan.volumes) > len(free.batches) * len(free.volumes)
    assert tight.planner.need(plan.batches, plan.volumes, 1).host <= budget
    sink = StrictSink()
    tight.run(sink)
    assert_same_hits(run_pipeline("toy", queries, TARGETS, registry=REGISTRY), sink.hits)


def test_a_budget_that_cannot_be_met_says_what_is_needed_what_is_there_and_what_to_do() -> None:
    with pytest.raises(BudgetError) as caught:
        engine(memory=5000).run(StrictSink())
    longest = int(QUERIES.lengths.max())
    assert caught.value.have == 5000
    assert caught.value.need > 1000 * longest
    assert "slot 'seed.words' for one query and one target needs" in str(caught.value)
    assert str(caught.value).endswith("raise --memory")


def test_device_memory_has_a_budget_of_its_own() -> None:
    from seqloom.core.stages import Footprint

    class Device(toy.WordSeeds):
        name = "toy-device"

        def footprint(self, shape):
            return Footprint(device=shape.target_residues * 100)

    registry, pipeline = with_stages(Device), toy.TOY.with_stage("seed.words", "toy-device")
    longest = int(TARGETS.lengths.max())
    plan = engine(registry=registry, pipeline=pipeline, device_memory=100 * longest).unit_plan()
    assert max(v.total_residues for v in plan.volumes) <= longest
    with pytest.raises(BudgetError, match="raise --device-memory"):
        engine(registry=registry, pipeline=pipeline, device_memory=100 * longest - 1).unit_plan()


@pytest.mark.parametrize(("turns", "flight"), [(True, 3), (False, 1)])
def test_units_that_take_turns_with_device_memory_need_it_once(turns: bool, flight: int) -> None:
    from seqloom.core.stages import Footprint

    asked = set()

    class Device(toy.WordSeeds):
        name = "toy-device"

        def footprint(self, shape):
            asked.add(shape.device_memory)
            return Footprint(device=shape.target_residues, in_turn=turns)

    registry, pipeline = with_stages(Device), toy.TOY.with_stage("seed.words", "toy-device")
    longest = int(TARGETS.lengths.max())
    planner = engine(registry=registry, pipeline=pipeline, device_memory=longest, threads=3,
                     volume_residues=longest).planner
    assert planner.flight(planner.units()) == flight and asked == {longest}


@pytest.mark.parametrize("turns", [True, False])
def test_units_that_take_turns_with_a_device_are_fewer(turns: bool, monkeypatch) -> None:
    """As many as have it and are on the host meanwhile, and longer ones: it works for one of them alone."""
    from seqloom.core.engine.planning import TURNS, UNIT_SECONDS
    from seqloom.core.stages import Footprint

    queries, threads = toy.sequences(64, 30, seed=3), 16
    cells = queries.total_residues * TARGETS.total_residues

    class Device(toy.WordSeeds):
        name = "toy-device"

        def footprint(self, shape):
            return Footprint(device=shape.target_residues, in_turn=turns)

    def cut(seconds: float) -> UnitPlan:
        monkeypatch.setattr(Device, "cells_per_second", cells / seconds)
        return engine(queries, registry=with_stages(Device), pipeline=toy.TOY.with_stage("seed.words", "toy-device"),
                      threads=threads).unit_plan()

    whole = cut(1.0)
    assert whole.units == 1
    many = cut(40 * UNIT_SECONDS).units
    assert many <= 3 if turns else many >= 30
    for stage in engine().plan.stages:
        monkeypatch.setattr(type(stage.stage), "least_cells", 1)
    plan = cut(1.0)
    if turns:  # by volume: targets are brought to the device once for all queries
        assert plan.batches == whole.batches and TURNS / 2 < plan.units <= TURNS
    else:
        assert plan.units == threads


@pytest.mark.parametrize("per_query", [1, 20, 400])
@pytest.mark.parametrize("share", [0.6, 0.3, 0.1])
def test_little_device_memory_makes_as_few_units_as_it_allows(per_query: int, share: float) -> None:
    """Whether it is batches or volumes that take the room."""
    from seqloom.core.engine.planning import query_batches
    from seqloom.core.stages import Footprint

    class Device(toy.WordSeeds):
        name = "toy-device"

        def footprint(self, shape):
            return Footprint(device=shape.target_residues + per_query * shape.query_residues)

    queries, targets = toy.sequences(16, 30, seed=3), toy.sequences(16, 40, seed=4)
    registry, pipeline = with_stages(Device), toy.TOY.with_stage("seed.words", "toy-device")
    most = targets.total_residues + per_query * queries.total_residues
    least = int(targets.lengths.max()) + per_query * int(queries.lengths.max())
    given = engine(queries, targets, registry=registry, pipeline=pipeline,
                   device_memory=int(least + share * (most - least)))
    planner, source = given.planner, MemorySource(targets)
    ways = [(query_batches(queries, len(queries), queries.total_residues >> cut),
             source.plan(targets.total_residues >> other)) for cut in range(6) for other in range(6)]
    fitting = [len(batches) * len(volumes) for batches, volumes in ways
               if planner.need(batches, volumes, 1).fits(planner.settings)]
    assert 1 < given.unit_plan().units <= 1.25 * min(fitting)  # limits are cut elsewhere


@settings(max_examples=200, deadline=None)
@example([0, 0], [5, 0, 0], 1).via("sequences without residues can't be cut apart by residues")
@example([7], [1000, 100, 100], 4000).via("the longest target stands alone and is more than half of the volume")
@given(st.lists(st.integers(0, 50), min_size=1, max_size=8), st.lists(st.integers(0, 50), min_size=1, max_size=8),
       st.integers(1, 100_000))
def test_planning_always_ends(queries, targets, memory) -> None:
    try:
        plan = engine(SequenceBatch.of(PROTEIN, ["A" * n for n in queries]),
                      SequenceBatch.of(PROTEIN, ["A" * n for n in targets]), memory=memory).unit_plan()
    except BudgetError:
        return
    assert [b for b, _ in plan.batches] + [len(queries)] == [0] + [e for _, e in plan.batches]
    assert [v.first for v in plan.volumes] + [len(targets)] == [0] + [v.last for v in plan.volumes]


# ---- order of work


class CountingSource(MemorySource):
    def __init__(self, batch) -> None:
        super().__init__(batch)
        self.reads: list[int] = []

    def read(self, span):
        self.reads.append(span.first)
        return super().read(span)


def test_batch_by_batch_when_volumes_fit_in_memory_and_volume_by_volume_otherwise() -> None:
    for memory, outer in ((None, 0), (TARGETS.total_residues, 1)):
        source, sink = CountingSource(TARGETS), StrictSink()
        run = engine(source=source, volume_residues=100, batch_queries=2, memory=memory)
        # The footprint alone would exceed this budget: the plan is given.
        sink.begin(engine(volume_residues=100, batch_queries=2).unit_plan())
        run.run(sink)
        blocks = [unit[outer] for unit in sink.units]
        assert len(sink.units) > 20
        assert blocks == sorted(blocks)
        assert sorted(source.reads) == sorted(set(source.reads)), "each volume is read once"
        assert_same_hits(whole(), sink.hits)


@pytest.mark.parametrize("memory", [None, TARGETS.total_residues])
def test_volumes_rest_when_no_unit_needs_them_any_more(memory: int | None, monkeypatch) -> None:
    """Their indexes go, and what residues take that can be had again; results are reported all the same."""
    rested, prepared = [], []
    monkeypatch.setattr(SequenceBatch, "rest", lambda batch: rested.append(int(batch.ordinals[0])))
    sink, source = StrictSink(), CountingSource(TARGETS)
    run = engine(source=source, volume_residues=100, batch_queries=2, memory=memory)
    prepare = run.runner.prepare_volume
    monkeypatch.setattr(run.runner, "prepare_volume", lambda span: prepared.append(prepare(span)) or prepared[-1])
    sink.begin(engine(volume_residues=100, batch_queries=2).unit_plan())
    run.run(sink)
    assert sorted(rested) == sorted(source.reads), "each once"
    assert prepared and not any(volume.indexes for volume in prepared)
    assert_same_hits(whole(), sink.hits)


@pytest.mark.parametrize("threads", [1, 2, 3, 4])
def test_a_few_volumes_are_of_one_size_for_several_threads(threads: int, monkeypatch) -> None:
    """Else some threads would have nothing to do while another is at the last one."""
    targets = SequenceBatch.of(PROTEIN, ["A" * (n % 7 + 1) for n in range(1000)])
    for stage in engine().plan.stages:
        monkeypatch.setattr(type(stage.stage), "least_cells", 1)
    run = engine(QUERIES.take(0, 1), targets, volume_residues=targets.total_residues * 3 // 7, threads=threads)
    sizes = [span.total_residues for span in run.unit_plan().volumes]
    if threads == 1:
        assert len(sizes) == 3
    else:
        assert len(sizes) == -(-3 // threads) * threads
        assert max(sizes) < 1.1 * min(sizes) + targets.longest * threads


def test_units_side_by_side_are_not_many_more_for_it(monkeypatch) -> None:
    """What each of two units takes however small it is may leave room for tiny ones; then one goes after the other."""
    fixed = 10 * TARGETS.total_residues
    monkeypatch.setattr(toy.WordSeeds, "footprint", lambda self, shape: Footprint(fixed + 20 * shape.target_residues))
    for room, side_by_side in ((fixed, True), (fixed // 6, False)):
        run, alone = (engine(threads=threads, memory=2 * fixed + room, volume_residues=TARGETS.total_residues // 4)
                      for threads in (2, 1))
        plan, of_one = run.unit_plan(), alone.unit_plan()
        assert of_one.units > 3
        if side_by_side:
            assert of_one.units < plan.units <= 4 * of_one.units
        else:
            assert plan == of_one


def test_volumes_that_something_is_stored_for_are_not_cut_for_threads(monkeypatch) -> None:
    targets = SequenceBatch.of(PROTEIN, ["A" * (n % 7 + 1) for n in range(1000)])
    for stage in engine().plan.stages:
        monkeypatch.setattr(type(stage.stage), "least_cells", 1)
    monkeypatch.setattr(toy.TargetWords, "keeps_volumes", True)
    run = engine(QUERIES.take(0, 1), targets, threads=3)
    assert len(run.unit_plan().volumes) == 1
    monkeypatch.setattr(toy.TargetWords, "keeps_volumes", False)
    assert len(engine(QUERIES.take(0, 1), targets, threads=3).unit_plan().volumes) > 1


def test_progress_counts_every_cell_once() -> None:
    cells = QUERIES.total_residues * TARGETS.total_residues
    run = engine(volume_residues=100, batch_queries=2)
    sink = StrictSink()
    run.run(sink)
    assert (run.progress.done, run.progress.total, run.progress.unit) == (cells, cells, "cell")
    assert run.progress.parts == run.progress.parts_kept == len(sink.plan().batches) * len(sink.plan().volumes)
    again = engine(volume_residues=100, batch_queries=2)
    again.run(sink)
    assert (again.progress.done, again.progress.total) == (0, 0)
    assert again.progress.parts_kept == again.progress.parts == run.progress.parts


def test_stages_say_how_far_they_are_within_a_unit() -> None:
    class Telling(toy.WordSeeds):
        name = "toy-telling"

        def run(self, context, records):
            context.advance(1, 2)
            seen.append(progress.done)
            return super().run(context, records)

    seen, progress = [], Progress()
    engine(registry=with_stages(Telling), pipeline=toy.TOY.with_stage("seed.words", "toy-telling"),
           progress=progress).run(StrictSink())
    assert seen == [round(QUERIES.total_residues * TARGETS.total_residues / 4)] and progress.done == progress.total


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("queries", [QUERIES, toy.sequences(1, 30, seed=3)])
def test_units_take_some_seconds_at_most_and_results_stay(queries, threads) -> None:
    """By the estimates of stages: many queries are cut by query, few by volume, and what is short not at all."""
    class Slow(toy.WordSeeds):
        name = "toy-slow"
        cells_per_second = queries.total_residues * TARGETS.total_residues / (8 * UNIT_SECONDS)

    class Quick(Slow):
        name = "toy-quick"
        cells_per_second = queries.total_residues * TARGETS.total_residues / (1.5 * UNIT_SECONDS)

    def run(stage):
        return engine(queries, registry=with_stages(stage), pipeline=toy.TOY.with_stage("seed.words", stage.name),
                      threads=threads)

    sink = StrictSink()
    run(Slow).run(sink)
    plan = sink.plan()
    assert 6 <= len(plan.batches) * len(plan.volumes) <= 20
    assert len(plan.volumes) == 1 if len(queries) > 1 else len(plan.batches) == 1
    assert_same_hits(run_pipeline("toy", queries, TARGETS, registry=REGISTRY), sink.hits)
    quick = run(Quick).unit_plan()
    assert len(quick.batches) * len(quick.volumes) == 1
    with mock.patch("seqloom.core.engine.planning.MOST_UNITS", 3):
        plan = run(Slow).unit_plan()
        assert len(plan.batches) * len(plan.volumes) <= 4


def test_what_goes_wrong_in_a_plugin_is_said_to_be_its_failure() -> None:
    class Broken(toy.WordSeeds):
        name = "toy-broken"

        def run(self, context, records):
            raise ValueError("boom")

    class Greedy(toy.WordSeeds):
        name = "toy-greedy"

        def run(self, context, records):
            raise MemoryError

    def run(stage):
        engine(registry=with_stages(stage), pipeline=toy.TOY.with_stage("seed.words", stage.name)).run(StrictSink())

    with pytest.raises(StageError, match=r"stage .toy-broken. of plugin .* failed: ValueError: boom"):
        run(Broken)
    with pytest.raises(OutOfMemoryError, match=r"slot .seed.words. got no more memory.*--memory"):
        run(Greedy)


def test_indexes_of_queries_are_made_when_they_are_asked_for() -> None:
    made = []

    class Watched(toy.QueryWords):
        name = "toy-watched"

        def run(self, context, records):
            made.append(len(records))
            return super().run(context, records)

    class Idle(toy.WordSeeds):
        name = "toy-idle"
        reads = ()

        def run(self, context, records):
            return Seeds.empty()

    registry = with_stages(Watched, Idle)
    pipeline = toy.TOY.with_stage("index.queries", "toy-watched")
    engine(registry=registry, pipeline=pipeline, threads=3, volume_residues=100).run(StrictSink())
    assert made == [len(QUERIES)], "once for all volumes"
    engine(registry=registry, pipeline=pipeline.with_stage("seed.words", "toy-idle")).run(StrictSink())
    assert len(made) == 1


def test_stages_of_all_units_share_the_threads() -> None:
    lock, at_work, most = threading.Lock(), [0], [0]

    class Threaded(toy.WordSeeds):
        name = "toy-threaded"

        def run(self, context, records):
            assert context.threads == 3

            def task(_: int) -> None:
                with lock:
                    at_work[0] += 1
                    most[0] = max(most[0], at_work[0])
                time.sleep(0.001)
                with lock:
                    at_work[0] -= 1

            run_tasks(context.threads, task, range(50))
            return super().run(context, records)

    pipeline = toy.TOY.with_stage("seed.words", "toy-threaded")
    engine(registry=with_stages(Threaded), pipeline=pipeline, threads=3, batch_queries=1).run(StrictSink())
    assert most[0] == 3


def test_short_memory_means_fewer_units_side_by_side() -> None:
    """Units whose needs hardly shrink with them aren't cut to nothing for the sake of many threads."""
    flying, most = [0], [0]

    class Hungry(toy.WordSeeds):
        name = "toy-hungry"

        def footprint(self, shape):
            return Footprint(host=1_000_000)

        def run(self, context, records):
            flying[0] += 1
            most[0] = max(most[0], flying[0])
            time.sleep(0.05)
            flying[0] -= 1
            return super().run(context, records)

    def run(memory: int | None) -> int:
        most[0] = 0
        engine(registry=with_stages(Hungry), pipeline=toy.TOY.with_stage("seed.words", "toy-hungry"), threads=8,
               batch_queries=1, memory=memory).run(StrictSink())
        return most[0]

    assert run(None) > 3
    assert run(3_500_000) <= 3
    assert run(2_500_000) <= 2
    assert run(1_500_000) == 1
    with pytest.raises(BudgetError):
        run(900_000)


def test_memory_of_threads_is_counted_once_for_all_units() -> None:
    class Hungry(toy.WordSeeds):
        name = "toy-hungry"

        def footprint(self, shape):
            return Footprint(host=1_000_000 + shape.threads * 10_000)

    def need(batch_queries: int) -> int:
        run = engine(registry=with_stages(Hungry), pipeline=toy.TOY.with_stage("seed.words", "toy-hungry"), threads=4,
                     batch_queries=batch_queries)
        batches = query_batches(run.queries, batch_queries, 10**9)
        assert len(batches) in (1, len(run.queries))
        return run.planner.need(batches, run.source.plan(10**9), 4).host

    units = len(QUERIES)
    assert 1_040_000 <= need(units) < 1_060_000
    assert 4_040_000 <= need(1) < 4_060_000 and units >= 4


def test_cutting_queries_and_targets() -> None:
    lengths = np.array([5, 0, 7, 20, 1, 1])
    assert [(s.first, s.last, s.total_residues, s.longest) for s in cut_spans(lengths, 12)] == [
        (0, 3, 12, 7), (3, 4, 20, 20), (4, 6, 2, 1)]
    assert cut_spans(np.array([], np.int64), 5) == []
    source = MemorySource(TARGETS)
    for volume in map(source.read, source.plan(60)):
        assert (volume.lengths == np.diff(volume.offsets)).all() and len(volume) < len(TARGETS)
    queries = SequenceBatch.of(PROTEIN, ["A" * n for n in lengths])
    assert query_batches(queries, 2, 100) == [(0, 2), (2, 4), (4, 6)]
    assert query_batches(queries, 100, 12) == [(0, 3), (3, 4), (4, 6)]


@given(st.lists(st.integers(0, 9), max_size=40), st.integers(1, 60), st.integers(1, 5))
def test_a_volume_knows_its_longest_target(lengths: list[int], residues: int, together: int) -> None:
    with mock.patch.object(in_memory, "_TOGETHER", together):
        spans = cut_spans(np.array(lengths, np.int64), residues)
    assert [n for span in spans for n in range(span.first, span.last)] == list(range(len(lengths)))
    for span in spans:
        its = lengths[span.first : span.last]
        assert (span.total_residues, span.longest) == (sum(its), max(its))
        assert span.total_residues <= residues or span.sequences == 1


# ---- statistics and traces


def test_counters_and_seconds_of_every_slot() -> None:
    sink = StrictSink()
    stats = engine(volume_residues=100, batch_queries=2).run(sink)
    assert list(stats) == [s.name for s in toy.TOY.slots]
    assert all(s.seconds > 0 for s in stats.values())
    assert stats["index.queries"].counters == {"sequences indexed": len(QUERIES)}
    seeds, order, extend, score = (stats[n] for n in ("seed.words", "sort.diagonal", "extend.exact", "score.length"))
    assert seeds.records_in == 0
    assert seeds.records_out == order.records_in == order.records_out == extend.records_in > 0
    assert score.records_in - score.records_out == score.counters["too short"] > 0
    assert stats["sort.rank"].records_out == len(whole())
    # The sink was told the same, save for indexes, which serve several units.
    told: dict = {}
    for entry in sink.stats:
        for name, slot in entry.items():
            told.setdefault(name, type(slot)()).add(slot)
    assert {n: (s.records_in, s.records_out, s.counters) for n, s in told.items()} == {
        n: (s.records_in, s.records_out, s.counters) for n, s in stats.items() if not n.startswith("index.")}


def test_a_trace_says_where_a_target_was_lost() -> None:
    queries = SequenceBatch.of(PROTEIN, ["ACDACDACD"])
    targets = SequenceBatch.of(PROTEIN, ["ACDACDACD", "WWWACDWWW", "WWWWWWWWW", "WACDACDWW", "ACDACDACC"])
    run = engine(queries, targets, options={"max_target_seqs": 2}, explain=frozenset(range(5)), volume_residues=18)
    run.run(StrictSink())
    assert run.trace.lost == {(0, 1): "score.length", (0, 2): "seed.words", (0, 3): "sort.rank"}
    assert run.trace.seen[0, 0] == ["seed.words", "sort.diagonal", "extend.exact", "score.length", "sort.rank"]
    assert run.trace.seen[0, 1] == ["seed.words", "sort.diagonal", "extend.exact"]
    assert (0, 2) not in run.trace.seen
    assert run.trace.seen[0, 3][-1] == "score.length"


# ---- what stages must keep to


def with_stages(*stages) -> Registry:
    class Extra:
        SEQLOOM_API = toy.SEQLOOM_API

        @hookimpl
        def seqloom_stages(self) -> list:
            return list(stages)

    made = toy.registry()
    made.register(Extra(), "extra")
    return made


def test_columns_that_no_stage_declares_are_refused() -> None:
    class Undeclared(toy.Rank):
        name = "toy-undeclared"

        def run(self, context, records):
            hits = super().run(context, records)
            return hits.replace((Column("colour", "i4", "of the hit"),), colour=np.zeros(len(hits), np.int32))

    class Declared(Undeclared):
        name, columns = "toy-declared", (Column("colour", "i4", "of the hit"),)

    registry = with_stages(Undeclared, Declared)
    with pytest.raises(CompositionError, match="a column 'colour' that no stage of the pipeline declares"):
        run_pipeline(toy.TOY.with_stage("sort.rank", "toy-undeclared"), QUERIES, TARGETS, registry=registry)
    hits = run_pipeline(toy.TOY.with_stage("sort.rank", "toy-declared"), QUERIES, TARGETS, registry=registry)
    assert set(hits.colour.tolist()) == {0}


def test_columns_of_another_type_than_declared_are_refused() -> None:
    class Other(toy.Rank):
        name, columns = "toy-other", (Column("colour", "i4", "of the hit"),)

        def run(self, context, records):
            hits = super().run(context, records)
            return hits.replace((Column("colour", "str", "of the hit"),), colour=np.full(len(hits), "red", object))

    with pytest.raises(CompositionError, match=r"column 'colour' of type str.*declared as i4"):
        run_pipeline(toy.TOY.with_stage("sort.rank", "toy-other"), QUERIES, TARGETS, registry=with_stages(Other))


def test_records_of_another_type_than_declared_are_refused() -> None:
    class Wrong(toy.ScoreLength):
        name = "toy-wrong"

        def run(self, context, records):
            return None

    with pytest.raises(CompositionError, match=r"slot 'score.length' .* gave NoneType instead of Alignments"):
        run_pipeline(toy.TOY.with_stage("score.length", "toy-wrong"), QUERIES, TARGETS, registry=with_stages(Wrong))


def test_queries_and_databases_of_the_wrong_kind_are_refused() -> None:
    plan = compose(REGISTRY, toy.TOY, backend="reference")
    bases = SequenceBatch.of(NUCLEOTIDE, ["ACGT"])
    models = ModelBatch(PROTEIN, [object()], np.array([3]), np.array([0]), ["m"])
    with pytest.raises(InputError, match="'toy' takes protein queries, these are nucleotide ones"):
        check_queries(plan, bases, MemorySource(TARGETS))
    with pytest.raises(InputError, match="'toy' takes protein queries, these are model ones"):
        check_queries(plan, models, MemorySource(TARGETS))
    with pytest.raises(InputError, match="'toy' searches protein databases, this one holds nucleotide"):
        check_queries(plan, QUERIES, MemorySource(bases))


@pytest.mark.parametrize("name", sorted({s.name for s in REGISTRY.stages()}))
def test_toy_stages_conform(name: str) -> None:
    check_stage(name, REGISTRY)


def test_the_toy_sorter_conforms() -> None:
    check_sorter("toy-sorter", REGISTRY)


def test_even_batches_share_residues() -> None:
    lengths = [5, 1, 1, 1, 4, 4, 4, 4, 1, 1, 1, 5]
    queries = SequenceBatch.of(QUERIES.alphabet, ["A" * n for n in lengths])
    cut = even_batches(queries, 0, len(lengths), 4)
    assert [sum(lengths[a:b]) for a, b in cut] == [8, 8, 8, 8]
    assert even_batches(queries, 4, 6, 9) == [(4, 5), (5, 6)]
    assert even_batches(queries, 2, 5, 1) == [(2, 5)]
