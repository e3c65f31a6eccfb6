"""Carries out the stages of a plan: prepares query batches and volumes, runs units, and runs the reduce stages.

Nothing here knows which unit is next, who else is at work, or where results are kept.
"""

import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..backends import to_device
from ..classes import dataclass
from ..context import Context, Queries, Scoring, SearchSpace
from ..distinct import ranked
from ..errors import CompositionError
from ..index import Index
from ..pipeline import FilledSlot, Plan
from ..ports import SlotStats, Span, Trace, Unit, UnitPlan, UnitResult, VolumeSource
from ..progress import Progress, UnitProgress
from ..records import Records
from ..registry import Registry
from ..sequences import SequenceBatch
from .cache import Cache, LazyIndexes
from .failures import naming
from .location import cut
from .masking import Maskers, ReadTargets, Searching
from .planning import Settings, devices_for_units, first_weights, wants_residues


@dataclass(frozen=True)
class PreparedBatch:
    """A query batch with masks, scoring and query-side indexes, which are made when they are first asked for."""

    queries: Queries
    scoring: Scoring
    indexes: Mapping[str, Index]


@dataclass(frozen=True)
class PreparedVolume:
    """A volume with target-side indexes, and the CUDA devices that its units are for; all where there are none."""

    targets: SequenceBatch
    indexes: dict[str, Index]
    devices: tuple[int, ...] = ()

    def rest(self) -> None:
        """Give back what no unit will ask for any more. Residues may be asked for, by who reports hits."""
        self.indexes.clear()
        self.targets.rest()


class Runner:
    """Runs the stages of one plan.

    Args:
        plan: from ``compose``.
        registry: where maskers and sorters are found.
        searched: what the stages see of the source.
        space: its size, or the size that statistics shall assume.
        settings: use of the machine.
        progress: told of the cells that are done; its cancellation stops the stages.
        targets: reads what maskers search.

    Attributes:
        totals: what each slot has done here, index slots included.
        trace: where targets that ``settings.explain`` names were seen last.
        batches, volumes: those that are prepared, by their number in the plan of units.
    """

    def __init__(self, plan: Plan, registry: Registry, searched: VolumeSource, space: SearchSpace, settings: Settings,
                 progress: Progress, targets: ReadTargets | None = None) -> None:
        self.plan, self.registry, self.searched = plan, registry, searched
        self.space, self.settings, self.progress = space, settings, progress
        self.cancellation = progress.cancellation
        self.stretch = plan.family.location(plan.options)
        self.totals: dict[str, SlotStats] = {p.name: SlotStats() for p in plan.stages}
        self.trace = Trace()
        self.batches = self.volumes = Cache(lambda number: None, 0)
        self._kept: tuple[tuple[Span, ...], int] | None = None
        self._kept_batches = 0
        self._queries: tuple[tuple[int, Callable[[int], Queries]], ...] = ()
        self._sorters = {b: registry.sorters(b, settings.threads, settings.device_memory)
                         for b in {p.stage.backend for p in plan.stages}}
        self._maskers = Maskers(plan, registry, Searching(Runner, targets, "", settings, self.cancellation))
        self._lock = threading.Lock()

    def keep(self, units: UnitPlan, queries: Callable[[int], Queries], batches: int, volumes: int) -> None:
        """Work on these units from now on, and on those before that are under way, which have the same volumes then.

        Volumes that are prepared stay so where the units have the same ones.

        Args:
            queries: gives the queries of a batch by its number.
            batches, volumes: how many of them stay prepared.
        """
        self._queries = *self._queries[-1:], (units.first_batch, queries)
        if self._kept_batches != batches:
            self._kept_batches, self.batches = batches, Cache(self._prepared, batches)
        if self._kept != (units.volumes, volumes):
            self._kept = units.volumes, volumes
            self.volumes = Cache(lambda volume: self.prepare_volume(units.volumes[volume]), volumes)

    def keep_no_former(self) -> None:
        """Let go of queries before those that ``keep`` was told of last: no unit of theirs is under way any more."""
        self._queries = self._queries[-1:]

    def _prepared(self, batch: int) -> PreparedBatch:
        """A batch of the units at work, or of those before."""
        return self.prepare_batch(next(queries for first, queries in reversed(self._queries) if batch >= first)(batch))

    def prepare_batch(self, queries: Any) -> PreparedBatch:
        """A query batch with all that stages look up in it."""
        if isinstance(queries, SequenceBatch):
            queries = self._maskers.masked(cut(queries, self.stretch))
        with naming(self.registry, "scoring of queries", "family", self.plan.family.name):
            scoring = self.plan.family.scoring(queries, self.space, self.plan.options)
        context = self._context(queries=queries, scoring=scoring)
        makers = {filled.stage.provides: filled for filled in self.plan.indexes("query")}
        indexes = LazyIndexes(
            tuple(makers), lambda kind, others: self._index(makers[kind], replace(context, indexes=others), queries))
        return PreparedBatch(queries, scoring, indexes)

    def prepare_volume(self, span: Span) -> PreparedVolume:
        """A volume with all that stages look up in it."""
        targets, devices = self.searched.read(span), self._devices_of(span)
        context = self._context(targets=targets, devices=devices)
        indexes: dict[str, Index] = {}
        for filled in self.plan.indexes("target"):
            indexes[filled.stage.provides] = self._index(filled, replace(context, indexes=indexes), targets)
        if wants_residues(self.plan):
            targets.load()
        return PreparedVolume(targets, indexes, devices)

    def _devices_of(self, span: Span) -> tuple[int, ...]:
        """The device that a volume's units have to themselves; none where all devices share them."""
        volumes = self._kept[0] if self._kept else ()
        if span not in volumes or (count := devices_for_units(self.plan)) > len(volumes):
            return ()
        return (volumes.index(span) % count,) if count > 1 else ()

    def unit(self, unit: Unit, progress: Progress | None = None) -> UnitResult:
        """Carry out a unit.

        Args:
            progress: told of its cells in place of that of the run.

        Raises:
            Cancelled: it was asked for.
            SeqloomError: from a stage.
        """
        self.cancellation.check()
        batch, volume = self.batches.get(unit.batch), self.volumes.get(unit.volume)
        indexes = LazyIndexes((*batch.indexes, *volume.indexes), lambda kind, _: (
            volume.indexes[kind] if kind in volume.indexes else batch.indexes[kind]))
        context = self._context(queries=batch.queries, targets=volume.targets, scoring=batch.scoring, indexes=indexes,
                                devices=volume.devices)
        followed = {t for t in self.settings.explain if t in set(volume.targets.ordinals.tolist())}
        slots = self.plan.working("unit")
        told = UnitProgress(progress or self.progress, unit.cells, self._weights(slots))
        records, stats = self._flow(unit.batch, slots, context, None, followed, told)
        told.end()
        return UnitResult(unit, records, stats)

    def whole_batch(self, unit: Unit) -> UnitResult:
        """Carry out the only unit of a batch, and the reduce stages behind it unless the run is cancelled meanwhile."""
        result = self.unit(unit)
        if result.records is None or self.cancellation.requested:
            return result
        hits, stats = self.reduce(unit.batch, [result.records])
        return result._replace(stats={**result.stats, **stats}, hits=hits)

    def reduce(self, number: int, parts: Sequence[Records], prepared: PreparedBatch | None = None
               ) -> tuple[Any, dict[str, SlotStats]]:
        """Run the reduce stages over all that the units of a batch gave; hits, and what the slots did.

        prepared: the batch, where others may be at work by then.
        """
        batch = prepared or self.batches.get(number)
        records: Any = type(parts[0]).concat(parts) if parts else None
        if records is None:  # no targets
            last = self.plan.working("unit")[-1].stage
            records = last.gives.empty(c for p in self.plan.working("unit") for c in p.stage.columns)
        context = self._context(queries=batch.queries, scoring=batch.scoring, indexes=batch.indexes)
        return self._flow(number, self.plan.working("reduce"), context, records, set(self.settings.explain))

    def add(self, stats: Mapping[str, SlotStats]) -> None:
        """Count what slots did."""
        with self._lock:
            for name, slot in stats.items():
                self.totals.setdefault(name, SlotStats()).add(slot)

    def _index(self, filled: FilledSlot, context: Context, batch: Any) -> Index:
        stats = SlotStats(records_in=len(batch), records_out=len(batch))
        begin = time.perf_counter()
        context = self._for_slot(context, filled)
        with naming(self.registry, f"slot '{filled.name}'", "stage", filled.stage.name, filled.stage.backend):
            index = filled.stage.run(context, batch)
        stats.seconds = time.perf_counter() - begin
        stats.counters = dict(context.counters)
        self.add({filled.name: stats})
        return index

    def _context(self, **fields: Any) -> Context:
        return Context(options=self.plan.options, space=self.space, catalog=self.searched, memory=self.settings.memory,
                       device_memory=self.settings.device_memory, cancellation=self.cancellation,
                       threads=self.settings.threads, **fields)

    def _for_slot(self, context: Context, filled: FilledSlot) -> Context:
        return replace(context, slot=filled.name, device=filled.device, counters=Counter(),
                       sorters=self._sorters[filled.stage.backend])

    def _weights(self, slots: Sequence[FilledSlot]) -> dict[str, float]:
        """What share of a unit's time each slot takes: as measured, once a unit has been done."""
        with self._lock:
            seconds = {slot.name: self.totals[slot.name].seconds for slot in slots}
        return seconds if sum(seconds.values()) else first_weights(self.plan)

    def _flow(self, number: int, stages: Sequence[FilledSlot], context: Context, records: Records | None,
              followed: set[int], progress: UnitProgress | None = None) -> tuple[Any, dict[str, SlotStats]]:
        """Hand records from stage to stage, moving them between devices only where neighbours differ."""
        stats = {}
        for filled in stages:
            self.cancellation.check()
            slot = SlotStats(records_in=0 if records is None else len(records))
            here = self._for_slot(context, filled)
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
                found, places = ranked(records.query)
                slot.passed = dict(zip(found.tolist(), np.bincount(places).tolist()))
            stats[filled.name] = slot
            if followed:
                self._follow(number, filled.name, records, followed)
        return to_device(records, "host"), stats

    def _follow(self, number: int, slot: str, records: Records, followed: set[int]) -> None:
        there = followed & set(np.asarray(to_device(records, "host").target).tolist())  # type: ignore[union-attr]
        with self._lock:
            for target in followed:
                key = (number, target)
                if target in there:
                    self.trace.seen.setdefault(key, []).append(slot)
                else:
                    self.trace.lost.setdefault(key, slot)
