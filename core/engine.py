"""Carries out a plan: cuts the work into units, runs the stages, and commits what they give.

A unit is one query batch against one volume. Units run on a bounded number of threads while the next volume is read;
the thread that called ``Engine.run`` alone talks to the sink, which keeps a unit's result and its done mark in one
step. When all volumes of a batch are done its reduce stages run, and the final hits replace the partial ones likewise;
where one volume is all, they are kept at once.
A run that was interrupted therefore resumes where it stopped, and no row is there twice.
"""

import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import islice, pairwise
from typing import Any

import numpy as np

from .backends import place
from .context import Cancellation, Context, Queries, Scoring, SearchSpace
from .distinct import distinct
from .errors import BudgetError, Cancelled, CompositionError, InputError
from .index import Index
from .pipeline import PlacedStage, Plan
from .ports import ResultSink, SlotStats, Span, TargetInfo, UnitPlan, VolumeSource
from .records import Alignments, Hits, Records
from .registry import Registry
from .sequences import Intervals, SequenceBatch
from .stages import Shape
from .threads import brisk

LEAST_FLIGHT = 2
"""Units that find room side by side in any case, if there are as many threads: what one of them does alone, like
reading and sorting, goes on beside another's work."""

READERS = 2
"""Volumes that are read ahead of those at work, at a time: the indexes of one are made while the letters of another are
on their way."""


@dataclass(frozen=True)
class Settings:
    """How a run uses the machine. Nothing here changes a result.

    Attributes:
        threads: most units side by side, and threads that the stages of all of them share.
        memory: bytes of host memory that the run's data may take; None without a limit.
        device_memory: bytes of device memory likewise.
        batch_queries, batch_letters: most queries and query letters of a batch.
        volume_letters: most target letters of a volume; None leaves it to the stages.
        explain: global numbers of targets to follow through the stages.
    """

    threads: int = 1
    memory: int | None = None
    device_memory: int | None = None
    batch_queries: int = 1000
    batch_letters: int = 1_000_000
    volume_letters: int | None = None
    explain: frozenset[int] = frozenset()


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


class _Cache:
    """The last few things made, by key; each is made once even when several threads ask at the same time."""

    def __init__(self, make: Callable[[Any], Any], keep: int) -> None:
        self._make, self._keep = make, keep
        self._lock = threading.Lock()
        self._made: OrderedDict[Any, Future] = OrderedDict()

    def made(self) -> list[Any]:
        """What there is now, without what failed."""
        with self._lock:
            return [future.result() for future in self._made.values() if future.done() and not future.exception()]

    def get(self, key: Any) -> Any:
        with self._lock:
            future, mine = self._made.get(key), False
            if future is None:
                future, mine = Future(), True
                self._made[key] = future
                while len(self._made) > self._keep:
                    self._made.popitem(last=False)
            else:
                self._made.move_to_end(key)
        if mine:
            try:
                future.set_result(self._make(key))
            except BaseException as error:
                future.set_exception(error)
        return future.result()


class _Indexes(Mapping[str, Index]):
    """Indexes by kind, each made when it is first asked for: many are for one way of several that a stage may take."""

    def __init__(self, kinds: Sequence[str], make: Callable[[str], Index]) -> None:
        self._kinds, self._made = tuple(kinds), _Cache(make, len(kinds))

    def __getitem__(self, kind: str) -> Index:
        if kind not in self._kinds:
            raise KeyError(kind)
        return self._made.get(kind)

    def __contains__(self, kind: object) -> bool:
        return kind in self._kinds

    def __iter__(self) -> Iterator[str]:
        return iter(self._kinds)

    def __len__(self) -> int:
        return len(self._kinds)


class Engine:
    """Runs one plan over queries and targets.

    Args:
        plan: from ``compose``.
        registry: where maskers and sorters are found.
        queries: all queries, numbered from 0.
        source: everything that is searched.
        space: its size, or the size that statistics shall assume.
        settings: use of the machine.
        cancellation: set it to stop after the units in flight; ``run`` then raises ``Cancelled``.
        progress: called with the cells (query letters × target letters) of each unit done.

    Attributes:
        totals: what each slot has done in this process, index slots included.
        trace: where targets that ``settings.explain`` names were seen last.
    """

    def __init__(self, plan: Plan, registry: Registry, queries: Queries, source: VolumeSource, space: SearchSpace,
                 settings: Settings, cancellation: Cancellation | None = None,
                 progress: Callable[[int], None] = lambda cells: None) -> None:
        self.plan, self.registry, self.queries, self.source = plan, registry, queries, source
        self.space, self.settings, self.progress = space, settings, progress
        self.cancellation = cancellation or Cancellation()
        self.trace = Trace()
        self.totals: dict[str, SlotStats] = {p.name: SlotStats() for p in plan.stages}
        self._ahead: tuple[UnitPlan, _Cache] | None = None
        self._volumes: _Cache | None = None
        self._begun: list[PlacedStage] = []
        self._sorters = {b: registry.sorters(b, settings.threads, settings.device_memory)
                         for b in {p.stage.backend for p in plan.stages}}
        self._stats_lock = threading.Lock()

    # ---- planning

    def unit_plan(self) -> UnitPlan:
        """Batches and volumes that keep units side by side within the memory budget.

        Raises:
            BudgetError: even one query against the longest target needs more.
        """
        if min(self.settings.threads, LEAST_FLIGHT) > 1:
            with suppress(BudgetError):
                return self._units_that_fit(LEAST_FLIGHT)
        return self._units_that_fit(1)

    def _units_that_fit(self, flight: int) -> UnitPlan:
        """Units of which so many find room side by side."""
        letters, volume_letters = self.settings.batch_letters, self.settings.volume_letters
        volume_letters = volume_letters or max(placed.stage.volume_letters for placed in self.plan.stages)
        batches = query_batches(self.queries, self.settings.batch_queries, letters)
        volumes = self.source.plan(volume_letters)
        while not self._fits(batches, volumes, flight):
            need, slot, device_need, device_slot = self._need(batches, volumes, flight)
            over = self.settings.memory is not None and need > self.settings.memory
            # What is cut need not be the longest sequence, which may stand alone; so limits shrink in any case.
            ways = []
            if letters > 1 and any(b - a > 1 for a, b in batches):
                fewer = max(1, min(letters, max(map(self._letters, batches))) // 2)
                ways.append((fewer, volume_letters, query_batches(self.queries, self.settings.batch_queries, fewer),
                             volumes))
            if volume_letters > 1 and any(v.sequences > 1 for v in volumes):
                fewer = max(1, min(volume_letters, max(v.letters for v in volumes)) // 2)
                ways.append((letters, fewer, batches, self.source.plan(fewer)))
            if not ways:
                what = f"slot '{slot if over else device_slot}' for one query and one target"
                if over:
                    raise BudgetError(what, need, self.settings.memory or 0, "raise --memory")
                raise BudgetError(what, device_need, self.settings.device_memory or 0, "raise --device-memory")
            # The way that needs less then; of ways that are as good, the one that makes fewer units.
            letters, volume_letters, batches, volumes = min(ways, key=lambda way: (
                self._need(way[2], way[3], flight)[0 if over else 2], len(way[2]) * len(way[3])))
        return self._enough_units(batches, volumes, volume_letters)

    def _fits(self, batches: Sequence[tuple[int, int]], volumes: Sequence[Span], flight: int) -> bool:
        host, _, device, _ = self._need(batches, volumes, flight)
        return ((self.settings.memory is None or host <= self.settings.memory)
                and (self.settings.device_memory is None or device <= self.settings.device_memory))

    def _flight(self, plan: UnitPlan) -> int:
        """Units that run side by side: one for each thread, or as many as memory allows."""
        flights = range(min(self.settings.threads, max(1, len(plan.batches) * len(plan.volumes))), 1, -1)
        return next((flight for flight in flights if self._fits(plan.batches, plan.volumes, flight)), 1)

    def _enough_units(self, batches: list[tuple[int, int]], volumes: Sequence[Span], volume_letters: int) -> UnitPlan:
        """Cut further until there is a unit for each thread, if that is worth it: many queries by query, few by volume.

        Stages share the threads, whichever unit they work for; what they do alone goes on beside other units' work.
        """
        cells = sum(map(self._letters, batches)) * sum(v.letters for v in volumes)
        least = max(placed.stage.least_cells for placed in self.plan.stages)
        wanted = max(1, min(self.settings.threads, cells // least))
        missing = -(-wanted // max(1, len(batches) * len(volumes)))
        if missing > 1 and len(self.queries) >= missing * len(batches):
            batches = [cut for batch in batches for cut in even_batches(self.queries, *batch, missing)]
        elif missing > 1:
            volumes = self.source.plan(min(volume_letters, -(-max(v.letters for v in volumes) // missing)))
        return UnitPlan(tuple(batches), tuple(volumes))

    def _letters(self, batch: tuple[int, int]) -> int:
        return int(self.queries.lengths[batch[0] : batch[1]].sum())

    def _need(self, batches: Sequence[tuple[int, int]], volumes: Sequence[Span],
              flight: int) -> tuple[int, str, int, str]:
        """Bytes that so many units side by side need on host and device, and the slots that need most."""
        if not batches or not volumes:
            return 0, "", 0, ""
        shape, threads = self._shape(batches, volumes), self.settings.threads
        flight = min(flight, len(batches) * len(volumes))
        at_once = min(flight + READERS, len(volumes))
        held = at_once * self._volume_bytes(shape.target_letters, shape.targets) + 2 * shape.query_letters
        held += int(self.queries.nbytes)
        device_held, share = 0, 1.0
        host, device = [(0, "")], [(0, "")]
        for placed in self.plan.stages:
            alone, by_all = (placed.stage.footprint(replace(shape, share=share, threads=n)) for n in (1, threads))
            share *= placed.stage.leaves
            if placed.stage.kind == "index":
                held, device_held = held + by_all.host, device_held + by_all.device
                if placed.stage.side == "target":
                    held += (at_once - 1) * by_all.kept
                    # A device that is short of room has the volumes at work and the next one.
                    device_held += (min(flight + 1, len(volumes)) - 1) * by_all.device
                continue
            # Every unit in flight needs what one thread does, and each thread more than units its own part.
            idle = (threads - flight) / max(1, threads - 1)
            host.append((flight * alone.host + int(idle * (by_all.host - alone.host)), placed.name))
            device.append((flight * alone.device + int(idle * (by_all.device - alone.device)), placed.name))
        (most, slot), (most_device, device_slot) = max(host), max(device)
        return held + most, slot, device_held + most_device, device_slot

    def _shape(self, batches: Sequence[tuple[int, int]], volumes: Sequence[Span]) -> Shape:
        """Of a unit that is as large as any, in every respect."""
        return Shape(
            queries=max(b - a for a, b in batches),
            query_letters=max(self._letters(b) for b in batches),
            longest_query=int(self.queries.lengths.max()),
            targets=max(v.sequences for v in volumes),
            target_letters=max(v.letters for v in volumes),
            longest_target=max(v.longest for v in volumes),
            database_targets=self.space.sequences,
            database_letters=self.space.letters,
            options=self.plan.options,
        )

    def _volume_bytes(self, letters: int, targets: int) -> int:
        """What a volume takes without its indexes."""
        return letters * self._residues_wanted + 24 * targets

    @property
    def _residues_wanted(self) -> bool:
        """Whether units, or the indexes that are made for them, look at residues of targets."""
        return any(placed.stage.reads_residues for placed in (*self.plan.indexes("target"), *self.plan.working("unit")))

    # ---- running

    @contextmanager
    def reading_ahead(self) -> Iterator[None]:
        """Plan, and read the first volume in the background, while the caller prepares a new run's sink and runs it.

        Raises:
            BudgetError: as of ``unit_plan``.
        """
        plan = self.unit_plan()
        self._ahead = plan, self._volume_cache(plan)
        with brisk(), ThreadPoolExecutor(1, thread_name_prefix="reader") as reader:
            for _, volume in islice(self._schedule(plan), 1):
                reader.submit(self._ahead[1].get, volume)
            yield

    def _volume_cache(self, plan: UnitPlan) -> _Cache:
        return _Cache(lambda volume: self._prepare_volume(plan.volumes[volume]), keep=self._volumes_kept(plan))

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
            for placed in self.plan.stages:
                placed.stage.begin(self.plan.options)
                self._begun.append(placed)
            sink.begin(plan)
        volumes = volumes or self._volume_cache(plan)
        self._volumes = volumes
        done, reduced = sink.done_units(), sink.done_batches()
        todo = [(b, v) for b, v in self._schedule(plan) if b not in reduced and (b, v) not in done]
        missing = Counter(b for b, _ in todo)
        flight = self._flight(plan)
        batches = _Cache(lambda b: self._prepare_batch(plan.batches[b]), keep=2 * flight + 1)
        for batch in range(len(plan.batches)):
            if batch not in reduced and not missing[batch]:
                self._reduce(batch, batches.get(batch), sink, None, {})

        def work(batch: int, volume: int) -> tuple[Records, dict[str, SlotStats]]:
            self.cancellation.check()
            return self._unit(batch, batches.get(batch), volumes.get(volume))

        def read_ahead(volume: int) -> None:
            self.cancellation.check()
            volumes.get(volume)

        with (ThreadPoolExecutor(flight, thread_name_prefix="unit") as pool,
              ThreadPoolExecutor(READERS, thread_name_prefix="reader") as reader):
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
                    for future in sorted(finished, key=lambda f: flying[f]):
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
                            missing[batch] -= 1
                            if not missing[batch]:
                                ready.append((batch, None, {}))
                        self.progress(self._cells(plan, batch, volume))
                    # A cancelled run goes on only until the units in flight have stopped: what they finish is kept.
                    for batch, whole, stats in ready:
                        if not self.cancellation.requested:
                            self._reduce(batch, batches.get(batch), sink, whole, stats)
                        elif whole is not None:
                            sink.commit_unit(batch, 0, whole, stats)
                    if failure:
                        raise failure
                if len(sink.done_batches()) < len(plan.batches):
                    self.cancellation.check()
            except BaseException:
                self.cancellation.cancel()
                reader.shutdown(wait=False, cancel_futures=True)
                pool.shutdown(wait=False, cancel_futures=True)
                raise
        for placed in self.plan.stages:
            placed.stage.finish(self.plan.options)
        return self.totals

    def at_hand(self, numbers: np.ndarray) -> SequenceBatch | None:
        """A volume of the last ``run`` that is in memory still and has all targets with i8[k] ascending ``numbers``."""
        for volume in self._volumes.made() if self._volumes and len(numbers) else ():
            own = volume.targets.ordinals
            if len(own) and own[0] <= numbers[0] and numbers[-1] <= own[-1] and volume.targets.loaded:
                return volume.targets
        return None

    def discard(self) -> None:
        """Have stages remove what they made beside results: ``run`` failed, and nobody can resume it."""
        for placed in self._begun:
            placed.stage.discard(self.plan.options)

    def cells(self, plan: UnitPlan, sink: ResultSink) -> int:
        """Query letters × target letters still to be done."""
        done, reduced = sink.done_units(), sink.done_batches()
        return sum(self._cells(plan, b, v) for b, v in self._schedule(plan) if b not in reduced and (b, v) not in done)

    def _cells(self, plan: UnitPlan, batch: int, volume: int) -> int:
        return self._letters(plan.batches[batch]) * plan.volumes[volume].letters

    def _volumes_kept(self, plan: UnitPlan) -> int:
        """How many volumes may stay in memory: all when they fit in half the budget, else those in use and the next."""
        if not plan.volumes or not plan.batches:
            return 1
        shape = self._shape(plan.batches, plan.volumes)
        total = sum(self._volume_bytes(v.letters, v.sequences) for v in plan.volumes)
        total += sum(len(plan.volumes) * placed.stage.footprint(shape).kept for placed in self.plan.indexes("target"))
        fits = self.settings.memory is None or 2 * total < self.settings.memory
        return max(1, len(plan.volumes)) if fits else self._flight(plan) + READERS

    def _schedule(self, plan: UnitPlan) -> Iterator[tuple[int, int]]:
        """Batch by batch while all volumes stay in memory, else volume by volume so that each is read once."""
        count_b, count_v = len(plan.batches), len(plan.volumes)
        if self._volumes_kept(plan) >= count_v:
            return ((b, v) for b in range(count_b) for v in range(count_v))
        return ((b, v) for v in range(count_v) for b in range(count_b))

    def _prepare_batch(self, bounds: tuple[int, int]) -> PreparedBatch:
        queries: Any = self.queries.take(*bounds)
        if isinstance(queries, SequenceBatch):
            queries = self._mask(queries)
        scoring = self.plan.family.scoring(queries, self.space, self.plan.options)
        context = self._context(queries=queries, scoring=scoring)
        makers = {placed.stage.provides: placed for placed in self.plan.indexes("query")}
        indexes: Mapping[str, Index] = _Indexes(
            tuple(makers), lambda kind: self._index(makers[kind], replace(context, indexes=indexes), queries))
        return PreparedBatch(queries, scoring, indexes)

    def _mask(self, queries: SequenceBatch) -> SequenceBatch:
        soft, hard = Intervals.empty(), Intervals.empty()
        for request in self.plan.family.masking(self.plan.options):
            masker_type = self.registry.masker(request.masker)
            masker = masker_type(masker_type.Options(**request.options))
            if queries.alphabet.name not in masker.alphabets:
                raise CompositionError(f"masker '{request.masker}' is not for {queries.alphabet.name} sequences")
            found = masker.intervals(queries)
            if request.soft:
                soft = soft.merged(found)
            else:
                hard = hard.merged(found)
        return replace(queries, soft=soft, hard=hard)

    def _prepare_volume(self, span: Span) -> PreparedVolume:
        targets = self.source.read(span)
        context = self._context(targets=targets)
        indexes: dict[str, Index] = {}
        for placed in self.plan.indexes("target"):
            indexes[placed.stage.provides] = self._index(placed, replace(context, indexes=indexes), targets)
        if self._residues_wanted:
            targets.load()
        return PreparedVolume(targets, indexes)

    def _index(self, placed: PlacedStage, context: Context, batch: Any) -> Index:
        stats = SlotStats(records_in=len(batch), records_out=len(batch))
        begin = time.perf_counter()
        context = self._for_slot(context, placed, stats)
        index = placed.stage.run(context, batch)
        stats.seconds = time.perf_counter() - begin
        stats.counters = dict(context.counters)
        self._add({placed.name: stats})
        return index

    def _context(self, **fields: Any) -> Context:
        return Context(options=self.plan.options, space=self.space, catalog=self.source, memory=self.settings.memory,
                       device_memory=self.settings.device_memory, cancellation=self.cancellation,
                       threads=self.settings.threads, **fields)

    def _for_slot(self, context: Context, placed: PlacedStage, stats: SlotStats) -> Context:
        return replace(context, slot=placed.name, device=placed.device, counters=Counter(),
                       sorters=self._sorters[placed.stage.backend])

    def _unit(self, number: int, batch: PreparedBatch,
              volume: PreparedVolume) -> tuple[Records, dict[str, SlotStats]]:
        indexes = _Indexes((*batch.indexes, *volume.indexes), lambda kind: (
            volume.indexes[kind] if kind in volume.indexes else batch.indexes[kind]))
        context = self._context(queries=batch.queries, targets=volume.targets, scoring=batch.scoring, indexes=indexes)
        followed = {t for t in self.settings.explain if t in set(volume.targets.ordinals.tolist())}
        return self._flow(number, self.plan.working("unit"), context, None, followed)

    def _flow(self, number: int, stages: Sequence[PlacedStage], context: Context, records: Records | None,
              followed: set[int]) -> tuple[Any, dict[str, SlotStats]]:
        """Hand records from stage to stage, moving them between devices only where neighbours differ."""
        stats = {}
        for placed in stages:
            self.cancellation.check()
            slot = SlotStats(records_in=0 if records is None else len(records))
            here = self._for_slot(context, placed, slot)
            begin = time.perf_counter()
            records = placed.stage.run(here, place(records, placed.device))
            slot.seconds = time.perf_counter() - begin
            if not isinstance(records, placed.stage.gives):
                raise CompositionError(f"slot '{placed.name}' ('{placed.stage.name}') gave {type(records).__name__} "
                                       f"instead of {placed.stage.gives.__name__}")
            slot.records_out, slot.counters = len(records), dict(here.counters)
            stats[placed.name] = slot
            if followed:
                self._follow(number, placed.name, records, followed)
        return place(records, "host"), stats

    def _follow(self, number: int, slot: str, records: Records, followed: set[int]) -> None:
        there = followed & set(np.asarray(place(records, "host").target).tolist())  # type: ignore[union-attr]
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
        sink.commit_batch(number, hits, info, {**unit, **stats})
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


def query_batches(queries: Queries, most: int, letters: int) -> list[tuple[int, int]]:
    """Queries cut into batches of at most ``most`` queries and ``letters`` letters (one query at least), in order."""
    batches: list[tuple[int, int]] = []
    first, size = 0, 0
    for number, length in enumerate(queries.lengths.tolist()):
        if number > first and (number - first >= most or size + length > letters):
            batches.append((first, number))
            first, size = number, 0
        size += length
    if len(queries):
        batches.append((first, len(queries)))
    return batches


def even_batches(queries: Queries, first: int, stop: int, count: int) -> list[tuple[int, int]]:
    """Queries ``first`` … ``stop`` − 1 cut into at most ``count`` batches of about as many letters, in order."""
    ends = np.cumsum(queries.lengths[first:stop])
    middles = (ends - queries.lengths[first:stop] / 2) / max(1, int(ends[-1]))
    share = np.searchsorted(np.arange(1, count) / count, middles, side="right")
    cuts = [0, *(np.flatnonzero(np.diff(share)) + 1).tolist(), len(share)]
    return [(first + a, first + b) for a, b in pairwise(cuts)]


def _no_targets() -> TargetInfo:
    none = np.empty(0, np.int64)
    return TargetInfo(none, [], [], none, none, none)


def check_queries(plan: Plan, queries: Queries, source: VolumeSource) -> None:
    """Refuse queries or databases of the wrong kind before any work; the message says which."""
    kind = "model" if not isinstance(queries, SequenceBatch) else queries.alphabet.name
    if kind != plan.family.query:
        raise InputError(f"pipeline '{plan.pipeline.name}' takes {plan.family.query} queries, these are {kind} ones")
    if source.alphabet.name != plan.family.target:
        raise InputError(f"pipeline '{plan.pipeline.name}' searches {plan.family.target} databases, this one holds "
                         f"{source.alphabet.name} sequences")
