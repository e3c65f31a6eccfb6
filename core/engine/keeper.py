"""Commits what units give, and the hits of a batch as soon as all its units are there."""

from collections import Counter, deque
from collections.abc import Mapping, Sequence, Set
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np

from ..distinct import distinct
from ..errors import Cancelled, CompositionError
from ..pipeline import Plan
from ..ports import ResultSink, SlotStats, TargetInfo, Unit, UnitPlan, UnitResult, VolumeSource
from ..progress import Progress
from ..records import Alignments, Hits
from .location import moved_back
from .runner import Runner

REDUCED_AT_ONCE = 2
"""Batches whose reduce stages run at a time, where there are threads for it."""


class Keeper:
    """Hands results over to a sink, which keeps each with its done mark in one step.

    When all volumes of a batch are done its reduce stages run, and the final hits replace the partial ones; where one
    volume is all, they are kept at once. One thread uses it; hits are kept in the order in which batches were done.

    Args:
        sink: where results go.
        runner: what carries out reduce stages.
        source: says what targets are.
        progress: told of the units that are kept.
        pool: threads for the reduce stages; the caller's own when left out.

    Attributes:
        sink: as given.
    """

    def __init__(self, sink: ResultSink, runner: Runner, source: VolumeSource, progress: Progress,
                 pool: ThreadPoolExecutor | None = None) -> None:
        self.sink, self._runner, self._source, self._pool = sink, runner, source, pool
        self._reducing: deque[tuple[int, UnitResult | None, Future]] = deque()
        self._plan, self._progress = runner.plan, progress
        self._units: UnitPlan | None = None
        self._missing = Counter[int]()
        self._stretches = runner.stretch, runner.plan.family.target_location(runner.plan.options)

    def begin(self, units: UnitPlan, todo: Sequence[Unit], reduced: Set[int]) -> None:
        """Keep what a portion of the queries gives from now on; what was before is kept.

        Batches whose units are all there and that aren't ``reduced`` are at once.

        Args:
            units: the plan of the portion.
            todo: units that the sink hasn't got.
            reduced: batches that it has.
        """
        self._units, self._missing = units, Counter(unit.batch for unit in todo)
        for batch, _ in units.numbered:
            if batch not in reduced and not self._missing[batch]:
                self._reduce(batch, None)

    def keep(self, results: Sequence[UnitResult]) -> None:
        """Commit what units gave. A cancelled run reduces nothing more: what its units finish is kept."""
        assert self._units is not None
        ready: list[tuple[int, UnitResult | None]] = []
        for result in results:
            batch, volume, _ = result.unit
            assert result.records is not None
            self._runner.add(result.stats)
            if len(self._units.volumes) == 1:
                ready.append((batch, result))
            else:
                self.sink.commit_unit(batch, volume, result.records, result.stats)
                self._progress.parts_kept += 1
                self._missing[batch] -= 1
                if not self._missing[batch]:
                    ready.append((batch, None))
        for batch, whole in ready:
            if whole and whole.hits is not None:
                self._keep_hits(batch, whole.hits, whole.stats)
            elif not self._progress.cancellation.requested:
                self._reduce(batch, whole)
            elif whole and whole.records is not None:
                self.sink.commit_unit(batch, 0, whole.records, whole.stats)
            self._progress.parts_kept += whole is not None
        self._keep_reduced(REDUCED_AT_ONCE)

    def finish(self) -> None:
        """Keep what is being reduced.

        Raises:
            Cancelled: it was asked for before all batches of the portion were done.
        """
        self._keep_reduced(0)
        if self._units:
            kept = self.sink.done_batches()
            if any(batch not in kept for batch, _ in self._units.numbered):
                self._progress.cancellation.check()

    def _reduce(self, number: int, whole: UnitResult | None) -> None:
        """The hits of a batch, from what its only unit gave as a ``whole`` or from the parts that are kept."""
        parts = [whole.records] if whole and whole.records is not None else self.sink.partials(number)
        # With the batch at hand, since the runner may be at work on the next portion before it is reduced.
        batch = self._runner.batches.get(number)
        if self._pool:
            self._keep_reduced(REDUCED_AT_ONCE - 1)
            self._reducing.append((number, whole, self._pool.submit(self._runner.reduce, number, parts, batch)))
        else:
            self._keep_all(number, whole, *self._runner.reduce(number, parts, batch))

    def _keep_reduced(self, most: int) -> None:
        """Keep the hits of batches whose reduce stages are done, and wait for some while there are more than these."""
        while self._reducing and (len(self._reducing) > most or self._reducing[0][2].done()):
            number, whole, reduced = self._reducing.popleft()
            try:
                self._keep_all(number, whole, *reduced.result())
            except Cancelled:
                if whole and whole.records is not None:
                    self.sink.commit_unit(number, 0, whole.records, whole.stats)

    def _keep_all(self, number: int, whole: UnitResult | None, hits: Hits, stats: dict[str, SlotStats]) -> None:
        """Commit what the reduce stages of a batch gave."""
        self._runner.add(stats)
        self._keep_hits(number, hits, {**whole.stats, **stats} if whole else stats)

    def _keep_hits(self, number: int, hits: Hits, stats: Mapping[str, SlotStats]) -> None:
        """Commit the hits of a batch, with what slots did for them that isn't kept yet."""
        check_columns(self._plan, hits)
        numbers = distinct(hits.target)
        info = self._source.info(numbers) if len(numbers) else _no_targets()
        self.sink.commit_batch(number, moved_back(hits, *self._stretches), info, stats)


def check_columns(plan: Plan, hits: Hits) -> None:
    """Refuse columns that no stage declares.

    Raises:
        CompositionError: it names the column.
    """
    declared = plan.columns
    base = {c.name for c in (*Hits.columns, *Alignments.columns)}
    for column in (*hits.extra, *hits.alignments.extra):
        if column.name in declared and declared[column.name].type != column.type:
            raise CompositionError(f"results have a column '{column.name}' of type {column.type}, which is "
                                   f"declared as {declared[column.name].type}")
        if column.name not in declared and column.name not in base:
            raise CompositionError(f"results have a column '{column.name}' that no stage of the pipeline declares")


def _no_targets() -> TargetInfo:
    none = np.empty(0, np.int64)
    return TargetInfo(none, [], [], none, none, none)
