"""Batches whose reduce stages run in threads of their own."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any, cast

import pytest
from seqloom.core.engine.keeper import REDUCED_AT_ONCE, Keeper
from seqloom.core.errors import Cancelled, InputError
from seqloom.core.ports import Unit, UnitPlan, UnitResult
from seqloom.core.progress import Progress
from seqloom.core.records import Hits

BATCHES, VOLUMES = 5, 2


class Sink:
    """Notes what is committed; parts are the numbers of their units."""

    def __init__(self) -> None:
        self.units: dict[int, list[Any]] = {}
        self.batches: list[int] = []

    def commit_unit(self, batch: int, volume: int, records: Any, stats: Any) -> None:
        self.units.setdefault(batch, []).append(records)

    def partials(self, batch: int) -> list[Any]:
        return self.units[batch]

    def done_batches(self) -> set[int]:
        return set(self.batches)

    def commit_batch(self, batch: int, hits: Hits, targets: Any, stats: Any) -> None:
        assert self.units.pop(batch) == [f"{batch} {volume}" for volume in range(VOLUMES)]
        self.batches.append(batch)


class Runner:
    """Reduces batches as ``work`` does."""

    def __init__(self, work: Any) -> None:
        self.work, self.stretch, self.at_once, self.most = work, None, 0, 0
        family = SimpleNamespace(target_location=lambda options: None)
        self.plan = SimpleNamespace(family=family, options=None, columns={})
        self._lock = threading.Lock()
        self.batches = {number: f"batch {number}" for number in range(BATCHES)}

    def add(self, stats: Any) -> None:
        pass

    def reduce(self, number: int, parts: list[Any], batch: str) -> tuple[Hits, dict[str, Any]]:
        with self._lock:
            self.at_once += 1
            self.most = max(self.most, self.at_once)
        assert batch == f"batch {number}"
        try:
            self.work(number)
        finally:
            with self._lock:
                self.at_once -= 1
        return Hits.empty(), {}


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(REDUCED_AT_ONCE) as threads:
        yield threads


def keeper(sink: Sink, runner: Runner, pool: ThreadPoolExecutor | None, progress: Progress | None = None) -> Keeper:
    todo = [Unit(batch, volume, 1) for batch in range(BATCHES) for volume in range(VOLUMES)]
    units = SimpleNamespace(volumes=range(VOLUMES), numbered=[(batch, None) for batch in range(BATCHES)])
    made = Keeper(cast(Any, sink), cast(Any, runner), cast(Any, None), progress or Progress(), pool)
    made.begin(cast(UnitPlan, units), todo, set())
    return made


def keep(made: Keeper, batch: int) -> None:
    made.keep([UnitResult(Unit(batch, volume, 1), cast(Any, f"{batch} {volume}"), {}) for volume in range(VOLUMES)])


def test_hits_are_kept_in_the_order_in_which_batches_were_done(pool: ThreadPoolExecutor) -> None:
    """The first one takes until the second is reduced; a third waits for a place."""
    second = threading.Event()
    sink = Sink()
    runner = Runner(lambda number: second.wait(10) if number == 0 else second.set())
    made = keeper(sink, runner, pool)
    for batch in range(BATCHES):
        keep(made, batch)
    made.finish()
    assert sink.batches == [*range(BATCHES)] and not sink.units
    assert runner.most <= REDUCED_AT_ONCE


def test_without_threads_a_batch_is_kept_when_its_last_unit_is_there() -> None:
    sink = Sink()
    made = keeper(sink, Runner(lambda number: None), None)
    for batch in range(BATCHES):
        keep(made, batch)
        assert sink.batches == [*range(batch + 1)]


def test_what_a_cancelled_run_has_not_reduced_is_kept_as_parts(pool: ThreadPoolExecutor) -> None:
    def cancelled(number: int) -> None:
        if number:
            raise Cancelled

    sink = Sink()
    made = keeper(sink, Runner(cancelled), pool)
    keep(made, 0)
    keep(made, 1)
    made.finish()
    assert sink.batches == [0] and [*sink.units] == [1]


def test_what_a_reduce_stage_complains_of_is_raised(pool: ThreadPoolExecutor) -> None:
    def fail(number: int) -> None:
        raise InputError("too much")

    made = keeper(Sink(), Runner(fail), pool)
    with pytest.raises(InputError, match="too much"):
        keep(made, 0)
        made.finish()
