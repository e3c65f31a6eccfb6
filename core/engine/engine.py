"""The engine: plans a run, has an executor carry its units out, and has their results kept.

A unit is one query batch against one volume. The planner says which there are (``planning``), an executor carries them
out by a runner (``runner``), on threads of this process (``thread_executor``) or elsewhere, and a keeper commits what
they give (``keeper``). The thread that called ``Engine.run`` alone talks to executor and sink.
A run that was interrupted resumes where it stopped, and no row is there twice.
"""

from collections.abc import Callable, Iterator, Sequence, Set
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import field, replace
from itertools import islice
from typing import Any, Protocol

import numpy as np

from ..classes import dataclass
from ..context import Queries, SearchSpace
from ..errors import Cancelled, InputError
from ..pipeline import FilledSlot, Plan
from ..ports import Executor, ResultSink, SlotStats, Trace, Unit, UnitPlan, UnitResult, VolumeSource
from ..progress import Cancellation, Progress
from ..registry import Registry
from ..sequences import SequenceBatch
from .heap import Level
from .keeper import REDUCED_AT_ONCE, Keeper
from .location import check_stretch, searched_source
from .masking import ReadTargets, left_by_maskers
from .planning import Planner, Settings
from .runner import Runner
from .thread_executor import Pools, ThreadExecutor, pool
from .threads import short_switch_interval


class Portions(Protocol):
    """Queries that are read while others are searched.

    Attributes:
        part: of all queries, those that the last portion ended with, about; None where nobody knows.
    """

    part: float | None

    @property
    def at_hand(self) -> bool:
        """Whether the next queries have been read."""

    def widen(self) -> None:
        """Give more at a time from now on."""

    def read_ahead(self) -> None:
        """Begin to read the next queries, unless one thing is to be done after the other."""

    def next(self, cancellation: Cancellation) -> Queries | None:
        """The next queries, numbered behind the last ones; None when there are no more. Waits for them.

        Raises:
            Cancelled: it was asked for.
            InputError: they can't be used.
        """


PORTIONS_AT_ONCE = 5
"""Portions of queries in memory: one is read, two wait and one is written while one is searched."""
StartExecutor = Callable[[UnitPlan], AbstractContextManager[Executor]]
"""Makes the executor for a plan of units; the engine enters it."""
WAIT = 0.2
"""Seconds after which a cancellation is noticed at the latest."""
LOOK = 0.004
"""Seconds after which it is noticed that the next queries have been read."""


@dataclass
class _Portion:
    """Queries that are searched together.

    Attributes:
        planner, plan: how they are cut up.
        queries: they themselves, where they aren't the first of a run.
        executor: what carries out the units of this portion, once it has begun.
        todo, reduced: units that the sink didn't have then, and batches that it had.
        stack: ends the executor.
    """

    planner: Planner
    plan: UnitPlan
    queries: Queries | None = None
    executor: Executor | None = None
    todo: Sequence[Unit] = ()
    reduced: Set[int] = frozenset()
    stack: ExitStack = field(default_factory=ExitStack)

    def may_go_with(self, other: "_Portion") -> bool:
        """Whether units of both can be under way at a time."""
        return self.plan.volumes == other.plan.volumes and self._limits() == other._limits()

    def _limits(self) -> tuple[int, int]:
        return self.planner.flight(self.plan), self.planner.volumes_kept(self.plan)


class Engine:
    """Runs one plan over queries and targets.

    Args:
        plan: from ``compose``.
        registry: where maskers and sorters are found.
        queries: all queries, numbered from 0, or the first portion of many; of a run that goes on, that at which it
            stopped.
        source: everything that is searched.
        space: its size, or the size that statistics shall assume.
        settings: use of the machine.
        progress: told of the cells (query residues × target residues) that are done, and of the units that are
            kept. Set its cancellation to stop after the units in flight; ``run`` then raises ``Cancelled``.
        executor: makes what carries out units; threads of this process when left out.
        more: gives further portions of queries, each when it has been read.
        targets: reads what maskers search.

    Attributes:
        queries: those of the portion at work.
        asked: how many queries there were so far.
        totals: what each slot has done for this engine, index slots included.
        searched: what the stages see of the source: all of it, or a stretch of every target.
        trace: where targets that ``settings.explain`` names were seen last.
    """

    def __init__(self, plan: Plan, registry: Registry, queries: Queries, source: VolumeSource, space: SearchSpace,
                 settings: Settings, progress: Progress | None = None, executor: StartExecutor | None = None,
                 more: "Portions | None" = None, targets: ReadTargets | None = None) -> None:
        self.plan, self.queries, self.source = plan, queries, source
        self.space, self.progress = space, progress or Progress()
        self.settings = settings = left_by_maskers(plan, registry, settings)
        self.cancellation = self.progress.cancellation
        self.target_stretch = plan.family.target_location(plan.options)
        self.searched, self._more = searched_source(source, plan), more
        self.planner = self._planner(queries)
        self.asked = int(queries.ordinals[-1]) + 1 if len(queries) else 0
        self.runner = Runner(plan, registry, self.searched, space, settings, self.progress, targets)
        self._executor = executor
        self._level = Level()
        self._pools = Pools(ExitStack())
        self._ahead: UnitPlan | None = None
        self._begun: list[FilledSlot] = []

    @property
    def totals(self) -> dict[str, SlotStats]:
        return self.runner.totals

    @property
    def trace(self) -> Trace:
        return self.runner.trace

    def unit_plan(self) -> UnitPlan:
        """How the queries at work are cut up; see ``Planner.units``."""
        return replace(self.planner.units(), more=self._more is not None)

    def _planner(self, queries: Queries, former: UnitPlan | None = None) -> Planner:
        return Planner(self.plan, queries, self.searched, self.space, self.settings, former,
                       PORTIONS_AT_ONCE if self._more else 1)

    @contextmanager
    def reading_ahead(self) -> Iterator[None]:
        """Plan, and read the first volume in the background, while the caller prepares a new run's sink and runs it.

        Raises:
            BudgetError: as of ``unit_plan``.
        """
        plan = self._ahead = self.unit_plan()
        self._hold(plan)
        if self.settings.in_turn:
            yield
            return
        with short_switch_interval(), pool(1, "reader") as reader:
            for _, volume in islice(() if self._executor else self.planner.schedule(plan), 1):
                reader.submit(self.runner.volumes.get, volume)
            yield

    def _hold(self, plan: UnitPlan) -> None:
        """Let the runner work on the units of a plan."""
        planner = self.planner
        self.runner.keep(plan, lambda batch: planner.queries_of(plan, batch), planner.flight(plan) + 1,
                         planner.volumes_kept(plan))

    def run(self, sink: ResultSink) -> dict[str, SlotStats]:
        """Do all work that ``sink`` doesn't have yet; returns ``totals``.

        Raises:
            Cancelled: it was asked for; everything committed stays and the run can be resumed.
            SeqloomError: from a stage, the executor or the sink.
        """
        plan = sink.plan()
        if plan is None:
            plan = self._begin(sink)
        else:
            self._hold(plan)
        if self._more:
            if self.planner.volumes_kept(plan) < len(plan.volumes):
                self._more.widen()
            self._more.read_ahead()
        self.progress.parts = self.progress.parts_kept = 0
        alone = self.settings.in_turn or self.settings.threads == 1
        with pool(REDUCED_AT_ONCE, "reduce") as reducers, ExitStack() as pools:
            self._pools = Pools(pools)
            keeper = Keeper(sink, self.runner, self.source, self.progress, None if alone else reducers)
            try:
                portion: _Portion | None = _Portion(self.planner, plan)
                while portion:
                    portion = self._search(portion, keeper) or self._next(portion)
            except Exception:
                with suppress(Exception):  # what was done before is kept
                    keeper.finish()
                raise
            keeper.finish()
        for filled in self.plan.stages:
            filled.stage.finish(self.plan.options)
        return self.totals

    def _search(self, portion: _Portion, keeper: Keeper) -> _Portion | None:
        """Do all units of a portion of the queries that the sink doesn't have yet.

        They begin while the last batches of the portion before are reduced; these are kept before anything of this one
        is. Returns the next portion if its queries have been read meanwhile: its units begin as those of this one
        end.
        """
        following = None
        executor = portion.executor or self._started(portion, keeper.sink)
        with portion.stack:
            keeper.finish()
            if portion.queries is not None:
                keeper.sink.begin(portion.plan, portion.queries)
            keeper.begin(portion.plan, portion.todo, portion.reduced)
            while (results := executor.finished(LOOK if self._more and not following else WAIT)) is not None:
                self._take(results, keeper)
                if not following and executor.idle and self._may_overlap():
                    following = self._next(portion)
                    if following and following.may_go_with(portion):
                        self._started(following, keeper.sink)
        self.runner.keep_no_former()
        if self.settings.in_turn:
            keeper.finish()
        return following

    def _may_overlap(self) -> bool:
        """Whether the next queries are there and can be searched while others are."""
        return bool(self._more and self._more.at_hand and not self.settings.in_turn
                    and not self.cancellation.requested)

    def _started(self, portion: _Portion, sink: ResultSink) -> Executor:
        """Have the units of a portion begun that the sink doesn't have yet."""
        plan = portion.plan
        if portion.queries is not None:
            self.queries, self.asked = portion.queries, int(portion.queries.ordinals[-1]) + 1
            self.planner = portion.planner
            self._hold(plan)
        done, portion.reduced = sink.done_units(), sink.done_batches()
        portion.todo = [Unit(b, v, self.planner.cells(plan, b, v)) for b, v in self.planner.schedule(plan)
                        if b not in portion.reduced and (b, v) not in done]
        self.progress.parts += plan.units
        self.progress.parts_kept += plan.units - len(portion.todo)
        tell = self.progress.begin if portion.queries is None else self.progress.expect
        tell(sum(unit.cells for unit in portion.todo), "cell")
        if self._more:
            self.progress.estimate(self._more.part)
        start = self._executor or (lambda plan: ThreadExecutor(self.runner, self.planner.flight(plan), plan,
                                                               self._pools))
        portion.executor = portion.stack.enter_context(start(plan))
        portion.executor.submit(portion.todo)
        return portion.executor

    def _next(self, former: _Portion) -> _Portion | None:
        """The next portion of queries, cut up; waits for them."""
        queries = self._more.next(self.cancellation) if self._more else None
        if queries is None:
            return None
        self._level.look()
        planner = self._planner(queries, former.plan)
        return _Portion(planner, replace(planner.units(), more=True), queries)

    def _begin(self, sink: ResultSink) -> UnitPlan:
        """Keep the plan of a new run."""
        plan = self._ahead
        if plan is None:
            plan = self.unit_plan()
            self._hold(plan)
        self._ahead = None
        for filled in self.plan.stages:
            filled.stage.begin(self.plan.options)
            self._begun.append(filled)
        sink.begin(plan)
        return plan

    def _take(self, results: list[UnitResult], keeper: Keeper) -> None:
        """Keep what units gave; then raise what went wrong in one of them."""
        for result in results:
            if isinstance(result.error, Cancelled):
                self.cancellation.cancel()
        keeper.keep([result for result in results if not result.error])
        for error in [result.error for result in results if result.error and not isinstance(result.error, Cancelled)]:
            raise error

    def loaded_targets(self, numbers: np.ndarray) -> SequenceBatch | None:
        """A volume of the last ``run`` that is in memory still and has all targets with i8[k] ascending ``numbers``."""
        if self.target_stretch is not None:  # those in memory aren't whole
            return None
        for volume in self.runner.volumes.made() if len(numbers) else ():
            own = volume.targets.ordinals
            if len(own) and own[0] <= numbers[0] and numbers[-1] <= own[-1] and volume.targets.loaded:
                return volume.targets
        return None

    def loaded_models(self, first: int, last: int) -> Sequence[Any]:
        """Queries first … last − 1 where they are models; else none."""
        return () if isinstance(self.queries, SequenceBatch) else self.queries.models[first:last]

    def discard(self) -> None:
        """Have stages remove what they made beside results: ``run`` failed, and nobody can resume it."""
        for filled in self._begun:
            filled.stage.discard(self.plan.options)


def check_queries(plan: Plan, queries: Queries, source: VolumeSource) -> None:
    """Refuse queries or databases of the wrong kind before any work; the message says which."""
    kind = "model" if not isinstance(queries, SequenceBatch) else queries.alphabet.name
    if kind != plan.family.query:
        raise InputError(f"pipeline '{plan.pipeline.name}' takes {plan.family.query} queries, these are {kind} ones")
    held = source.kind
    if held != plan.family.target:
        what = "models" if held == "model" else f"{held} sequences"
        raise InputError(f"pipeline '{plan.pipeline.name}' searches {plan.family.target} databases, this one holds "
                         f"{what}")
    described = queries if kind == "model" else source
    sequences = source if kind == "model" else queries
    if "model" in (kind, held) and described.alphabet != sequences.alphabet:
        raise InputError(f"pipeline '{plan.pipeline.name}' compares models with {sequences.alphabet.name} sequences, "
                         f"these are models of {described.alphabet.name} ones; search with another pipeline: "
                         "seqloom pipelines list")
    if isinstance(queries, SequenceBatch):
        check_stretch(queries.longest, plan.family.location(plan.options), "query")
    check_stretch(source.longest, plan.family.target_location(plan.options), "target")
