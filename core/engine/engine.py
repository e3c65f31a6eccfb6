"""Carries out a plan: cuts the work into units, runs the stages, and commits what they give.

A unit is one query batch against one volume. Units run on a bounded number of threads while the next volume is read;
the thread that called ``Engine.run`` alone talks to the sink, which keeps a unit's result and its done mark in one
step. When all volumes of a batch are done its reduce stages run, and the final hits replace the partial ones likewise;
where one volume is all, they are kept at once.
A run that was interrupted therefore resumes where it stopped, and no row is there twice.
"""

import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

import numpy as np

from ..backends import to_device
from ..context import Context, Queries, Scoring, SearchSpace
from ..distinct import distinct
from ..errors import Cancelled, CompositionError, InputError
from ..index import Index
from ..pipeline import FilledSlot, Plan
from ..ports import ResultSink, SlotStats, Span, TargetInfo, UnitPlan, VolumeSource
from ..progress import Progress, UnitProgress
from ..records import Alignments, Hits, Records
from ..registry import Registry
from ..sequences import SequenceBatch
from .cache import Cache, LazyIndexes
from .failures import naming
from .location import check_stretch, cut, cut_source, moved_back
from .masking import masked
from .planning import READERS, Planner, Settings
from .threads import short_switch_interval


@dataclass
class Trace:
    """Where followed targets were last seen and lost: (query batch, target) → slots that still had it."""

    seen: dict[tuple[int, int], list[str]] = field(default_factory=dict)
    lost: dict[tuple[int, int], str] = field(default_factory=dict)


@dataclass(frozen=True)
class PreparedBatch:
    """A query batch with masks, scoring and query-side indexes, which are made when they are first asked for."""

    queries: Queries
    scoring: Scoring
    indexes: Mapping[str, Index]


@dataclass(frozen=True)
class PreparedVolume:
    """A volume with target-side indexes."""

    targets: SequenceBatch
    indexes: Mapping[str, Index]


class Engine:
    """Runs one plan over queries and targets.

    Args:
        plan: from ``compose``.
        registry: where maskers and sorters are found.
        queries: all queries, numbered from 0.
        source: everything that is searched.
        space: its size, or the size that statistics shall assume.
        settings: use of the machine.
        progress: told of the cells (query residues × target residues) that are done, and of the units that are
            kept. Set its cancellation to stop after the units in flight; ``run`` then raises ``Cancelled``.

    Attributes:
        totals: what each slot has done in this process, index slots included.
        searched: what the stages see of the source: all of it, or a stretch of every target.
        trace: where targets that ``settings.explain`` names were seen last.
    """

    def __init__(self, plan: Plan, registry: Registry, queries: Queries, source: VolumeSource, space: SearchSpace,
                 settings: Settings, progress: Progress | None = None) -> None:
        self.plan, self.registry, self.queries, self.source = plan, registry, queries, source
        self.space, self.settings, self.progress = space, settings, progress or Progress()
        self.cancellation = self.progress.cancellation
        self.stretch = plan.family.location(plan.options)
        self.target_stretch = plan.family.target_location(plan.options)
        self.searched = cut_source(source, self.target_stretch)
        self.planner = Planner(plan, queries, self.searched, space, settings)
        self.trace = Trace()
        self.totals: dict[str, SlotStats] = {p.name: SlotStats() for p in plan.stages}
        self._ahead: tuple[UnitPlan, Cache] | None = None
        self._volumes: Cache | None = None
        self._begun: list[FilledSlot] = []
        self._sorters = {b: registry.sorters(b, settings.threads, settings.device_memory)
                         for b in {p.stage.backend for p in plan.stages}}
        self._stats_lock = threading.Lock()

    def unit_plan(self) -> UnitPlan:
        """How the run is cut up; see ``Planner.units``."""
        return self.planner.units()

    # ---- running

    @contextmanager
    def reading_ahead(self) -> Iterator[None]:
        """Plan, and read the first volume in the background, while the caller prepares a new run's sink and runs it.

        Raises:
            BudgetError: as of ``unit_plan``.
        """
        plan = self.unit_plan()
        self._ahead = plan, self._volume_cache(plan)
        with short_switch_interval(), _pool(1, "reader") as reader:
            for _, volume in islice(self.planner.schedule(plan), 1):
                reader.submit(self._ahead[1].get, volume)
            yield

    def _volume_cache(self, plan: UnitPlan) -> Cache:
        return Cache(lambda volume: self._prepare_volume(plan.volumes[volume]), keep=self.planner.volumes_kept(plan))

    def run(self, sink: ResultSink) -> dict[str, SlotStats]:
        """Do all work that ``sink`` doesn't have yet; returns ``totals``.

        Raises:
            Cancelled: it was asked for; everything committed stays and the run can be resumed.
            SeqloomError: from a stage or the sink.
        """
        plan, volumes = sink.plan(), None
        if plan is None:
            plan, volumes = self._ahead or (self.unit_plan(), None)
            self._ahead = None
            for filled in self.plan.stages:
                filled.stage.begin(self.plan.options)
                self._begun.append(filled)
            sink.begin(plan)
        volumes = volumes or self._volume_cache(plan)
        self._volumes = volumes
        done, reduced = sink.done_units(), sink.done_batches()
        todo = [(b, v) for b, v in self.planner.schedule(plan) if b not in reduced and (b, v) not in done]
        missing = Counter(b for b, _ in todo)
        flight = self.planner.flight(plan)
        self.progress.parts = len(plan.batches) * len(plan.volumes)
        self.progress.parts_kept = self.progress.parts - len(todo)
        self.progress.begin(sum(self.planner.cells(plan, b, v) for b, v in todo), "cell")
        batches = Cache(lambda b: self._prepare_batch(plan.batches[b]), keep=flight + 1)
        for batch in range(len(plan.batches)):
            if batch not in reduced and not missing[batch]:
                self._reduce(batch, batches.get(batch), sink, None, {})

        def work(batch: int, volume: int) -> tuple[Records, dict[str, SlotStats]]:
            self.cancellation.check()
            return self._unit(batch, batches.get(batch), volumes.get(volume), self.planner.cells(plan, batch, volume))

        def read_ahead(volume: int) -> None:
            self.cancellation.check()
            volumes.get(volume)

        with _pool(flight, "unit") as pool, _pool(READERS, "reader") as reader:
            waiting = iter(todo)
            flying: dict[Future, tuple[int, int]] = {}
            try:
                while True:
                    while (not self.cancellation.requested and len(flying) < flight + READERS
                           and (unit := next(waiting, None))):
                        reader.submit(read_ahead, unit[1])
                        flying[pool.submit(work, *unit)] = unit
                    if not flying:
                        break
                    finished, _ = wait(flying, timeout=0.2, return_when=FIRST_COMPLETED)
                    failure: BaseException | None = None
                    ready: list[tuple[int, Records | None, dict[str, SlotStats]]] = []
                    for future in [future for future in flying if future in finished]:  # in the order of the schedule
                        batch, volume = flying.pop(future)
                        if isinstance(error := future.exception(), Cancelled):
                            self.cancellation.cancel()
                            continue
                        if error:
                            failure = error
                            continue
                        records, stats = future.result()
                        self._add(stats)
                        if len(plan.volumes) == 1:
                            ready.append((batch, records, stats))
                        else:
                            sink.commit_unit(batch, volume, records, stats)
                            self.progress.parts_kept += 1
                            missing[batch] -= 1
                            if not missing[batch]:
                                ready.append((batch, None, {}))
                    # A cancelled run goes on only until the units in flight have stopped: what they finish is kept.
                    for batch, whole, stats in ready:
                        if not self.cancellation.requested:
                            self._reduce(batch, batches.get(batch), sink, whole, stats)
                        elif whole is not None:
                            sink.commit_unit(batch, 0, whole, stats)
                        self.progress.parts_kept += whole is not None
                    if failure:
                        raise failure
                if len(sink.done_batches()) < len(plan.batches):
                    self.cancellation.check()
            except BaseException:
                self.cancellation.cancel()
                reader.shutdown(wait=False, cancel_futures=True)
                pool.shutdown(wait=False, cancel_futures=True)
                raise
        for filled in self.plan.stages:
            filled.stage.finish(self.plan.options)
        return self.totals

    def loaded_targets(self, numbers: np.ndarray) -> SequenceBatch | None:
        """A volume of the last ``run`` that is in memory still and has all targets with i8[k] ascending ``numbers``."""
        if self.target_stretch is not None:  # those in memory aren't whole
            return None
        for volume in self._volumes.made() if self._volumes and len(numbers) else ():
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

    def _prepare_batch(self, bounds: tuple[int, int]) -> PreparedBatch:
        queries: Any = self.queries.take(*bounds)
        if isinstance(queries, SequenceBatch):
            queries = masked(cut(queries, self.stretch), self.plan, self.registry)
        with naming(self.registry, "scoring of queries", "family", self.plan.family.name):
            scoring = self.plan.family.scoring(queries, self.space, self.plan.options)
        context = self._context(queries=queries, scoring=scoring)
        makers = {filled.stage.provides: filled for filled in self.plan.indexes("query")}
        indexes: Mapping[str, Index] = LazyIndexes(
            tuple(makers), lambda kind: self._index(makers[kind], replace(context, indexes=indexes), queries))
        return PreparedBatch(queries, scoring, indexes)

    def _prepare_volume(self, span: Span) -> PreparedVolume:
        targets = self.searched.read(span)
        context = self._context(targets=targets)
        indexes: dict[str, Index] = {}
        for filled in self.plan.indexes("target"):
            indexes[filled.stage.provides] = self._index(filled, replace(context, indexes=indexes), targets)
        if self.planner.residues_wanted:
            targets.load()
        return PreparedVolume(targets, indexes)

    def _index(self, filled: FilledSlot, context: Context, batch: Any) -> Index:
        stats = SlotStats(records_in=len(batch), records_out=len(batch))
        begin = time.perf_counter()
        context = self._for_slot(context, filled, stats)
        with naming(self.registry, f"slot '{filled.name}'", "stage", filled.stage.name, filled.stage.backend):
            index = filled.stage.run(context, batch)
        stats.seconds = time.perf_counter() - begin
        stats.counters = dict(context.counters)
        self._add({filled.name: stats})
        return index

    def _context(self, **fields: Any) -> Context:
        return Context(options=self.plan.options, space=self.space, catalog=self.searched, memory=self.settings.memory,
                       device_memory=self.settings.device_memory, cancellation=self.cancellation,
                       threads=self.settings.threads, **fields)

    def _for_slot(self, context: Context, filled: FilledSlot, stats: SlotStats) -> Context:
        return replace(context, slot=filled.name, device=filled.device, counters=Counter(),
                       sorters=self._sorters[filled.stage.backend])

    def _unit(self, number: int, batch: PreparedBatch, volume: PreparedVolume,
              cells: int) -> tuple[Records, dict[str, SlotStats]]:
        indexes = LazyIndexes((*batch.indexes, *volume.indexes), lambda kind: (
            volume.indexes[kind] if kind in volume.indexes else batch.indexes[kind]))
        context = self._context(queries=batch.queries, targets=volume.targets, scoring=batch.scoring, indexes=indexes)
        followed = {t for t in self.settings.explain if t in set(volume.targets.ordinals.tolist())}
        slots = self.plan.working("unit")
        progress = UnitProgress(self.progress, cells, self._weights(slots))
        given = self._flow(number, slots, context, None, followed, progress)
        progress.end()
        return given

    def _weights(self, slots: Sequence[FilledSlot]) -> dict[str, float]:
        """What share of a unit's time each slot takes: as measured, once a unit has been done."""
        with self._stats_lock:
            seconds = {slot.name: self.totals[slot.name].seconds for slot in slots}
        return seconds if sum(seconds.values()) else self.planner.weights()

    def _flow(self, number: int, stages: Sequence[FilledSlot], context: Context, records: Records | None,
              followed: set[int], progress: UnitProgress | None = None) -> tuple[Any, dict[str, SlotStats]]:
        """Hand records from stage to stage, moving them between devices only where neighbours differ."""
        stats = {}
        for filled in stages:
            self.cancellation.check()
            slot = SlotStats(records_in=0 if records is None else len(records))
            here = self._for_slot(context, filled, slot)
            if progress:
                here = replace(here, progress=progress.stage(filled.name))
            begin = time.perf_counter()
            with naming(self.registry, f"slot '{filled.name}'", "stage", filled.stage.name, filled.stage.backend):
                records = filled.stage.run(here, to_device(records, filled.device))
            slot.seconds = time.perf_counter() - begin
            if not isinstance(records, filled.stage.gives):
                raise CompositionError(f"slot '{filled.name}' ('{filled.stage.name}') gave {type(records).__name__} "
                                       f"instead of {filled.stage.gives.__name__}")
            slot.records_out, slot.counters = len(records), dict(here.counters)
            if filled.stage.counts_queries:
                found, sizes = np.unique(records.query, return_counts=True)
                slot.passed = dict(zip(found.tolist(), sizes.tolist()))
            stats[filled.name] = slot
            if followed:
                self._follow(number, filled.name, records, followed)
        return to_device(records, "host"), stats

    def _follow(self, number: int, slot: str, records: Records, followed: set[int]) -> None:
        there = followed & set(np.asarray(to_device(records, "host").target).tolist())  # type: ignore[union-attr]
        with self._stats_lock:
            for target in followed:
                key = (number, target)
                if target in there:
                    self.trace.seen.setdefault(key, []).append(slot)
                else:
                    self.trace.lost.setdefault(key, slot)

    def _reduce(self, number: int, batch: PreparedBatch, sink: ResultSink, whole: Records | None,
                unit: Mapping[str, SlotStats]) -> None:
        """Run the reduce stages over the ``whole`` that a single ``unit`` gave, or over the parts that are kept."""
        parts = sink.partials(number) if whole is None else [whole]
        records: Any = type(parts[0]).concat(parts) if parts else None
        if records is None:  # no targets
            last = self.plan.working("unit")[-1].stage
            records = last.gives.empty(c for p in self.plan.working("unit") for c in p.stage.columns)
        context = self._context(queries=batch.queries, scoring=batch.scoring, indexes=batch.indexes)
        hits, stats = self._flow(number, self.plan.working("reduce"), context, records, set(self.settings.explain))
        self._check_columns(hits)
        numbers = distinct(hits.target)
        info = self.source.info(numbers) if len(numbers) else _no_targets()
        sink.commit_batch(number, moved_back(hits, self.stretch, self.target_stretch), info, {**unit, **stats})
        self._add(stats)

    def _check_columns(self, hits: Hits) -> None:
        declared = self.plan.columns
        base = {c.name for c in (*Hits.columns, *Alignments.columns)}
        for column in (*hits.extra, *hits.alignments.extra):
            if column.name in declared and declared[column.name].type != column.type:
                raise CompositionError(f"results have a column '{column.name}' of type {column.type}, which is "
                                       f"declared as {declared[column.name].type}")
            if column.name not in declared and column.name not in base:
                raise CompositionError(f"results have a column '{column.name}' that no stage of the pipeline declares")

    def _add(self, stats: Mapping[str, SlotStats]) -> None:
        with self._stats_lock:
            for name, slot in stats.items():
                self.totals.setdefault(name, SlotStats()).add(slot)


@contextmanager
def _pool(threads: int, name: str) -> Iterator[ThreadPoolExecutor]:
    """Threads that have ended when the block has; only a second Ctrl-C doesn't wait for them."""
    pool = ThreadPoolExecutor(threads, thread_name_prefix=name)
    try:
        yield pool
    except KeyboardInterrupt:
        pool.shutdown(wait=False, cancel_futures=True)
        raise
    except BaseException:
        pool.shutdown(cancel_futures=True)
        raise
    pool.shutdown()


def _no_targets() -> TargetInfo:
    none = np.empty(0, np.int64)
    return TargetInfo(none, [], [], none, none, none)


def check_queries(plan: Plan, queries: Queries, source: VolumeSource) -> None:
    """Refuse queries or databases of the wrong kind before any work; the message says which."""
    kind = "model" if not isinstance(queries, SequenceBatch) else queries.alphabet.name
    if kind != plan.family.query:
        raise InputError(f"pipeline '{plan.pipeline.name}' takes {plan.family.query} queries, these are {kind} ones")
    held = getattr(source, "kind", source.alphabet.name)
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
