"""How a run is cut into units: query batches × volumes that fit the memory, occupy the threads and take some seconds.

Nothing here changes a result. The plan is made once and kept with the run; a resumed run goes on with it.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import pairwise

import numpy as np

from ..backends import device_count, devices_to_count
from ..classes import NamedTuple, dataclass
from ..context import Queries, SearchSpace
from ..errors import BudgetError
from ..pipeline import Plan
from ..ports import Span, UnitPlan, VolumeSource
from ..records import Records
from ..stages import BATCH_RESIDUES, LARGE_BATCH, Shape

LEAST_FLIGHT = 2
"""Units that find room side by side in any case, if there are as many threads: what one of them does alone, like
reading and sorting, goes on beside another's work."""
READERS = 2
"""Volumes that are read ahead of those at work, at a time: the indexes of one are made while the residues of another
are being read."""
UNIT_SECONDS = 3.0
"""What a unit takes at most, by the estimates of its stages: it is what an interruption loses."""
UNEVEN = 1.2
"""What the time of the busiest thread may be, in those that it takes with volumes of one size."""
SHORT_QUERY = 50
"""Residues of a query from which on a batch is bounded by residues, else by how many queries it has."""
LEAST_FOR_DEVICE = 1 << 24
"""Residues of a volume that is cut off for another device."""
MOST_UNITS = 2000
"""Units that are made for that reason, at most: each is kept by a transaction of its own."""
STARTING = 0.02
"""Seconds that a unit takes beside what its stages do, about."""
TURNS = 8
"""Units that are enough where they take turns with a device: while one has it, others are at work on the host. More
have smaller volumes, and so more parts of these in all."""
FEW_UNITS = 4
"""Times as many units as one at a time would be, that units side by side may be at most: those of which two find room
in little memory can be so small that starting them takes longer than what they do."""


@dataclass(frozen=True)
class Settings:
    """How a run uses the machine. Nothing here changes a result.

    Attributes:
        threads: most units side by side, and threads that the stages of all of them share.
        memory: bytes of host memory that the run's data may take; None without a limit.
        device_memory: bytes of device memory likewise.
        batch_queries, batch_residues: most queries and query residues of a batch; None leaves them to the stages.
        volume_residues: most target residues of a volume; None leaves it to the stages.
        explain: global numbers of targets to follow through the stages.
        workers: processes that carry units out, each with so many threads and so much memory; 0 for this one alone.
        sent: whether some of them are sent volumes, since they can't read them.
        in_turn: one unit after another: nothing is read ahead, and results are kept or written while nothing else
            happens. For measuring what the overlap gains.
    """

    threads: int = 1
    memory: int | None = None
    device_memory: int | None = None
    batch_queries: int | None = None
    batch_residues: int | None = None
    volume_residues: int | None = None
    explain: frozenset[int] = frozenset()
    workers: int = 0
    sent: bool = False
    in_turn: bool = False


class BatchLimits(NamedTuple):
    """Most residues and queries of a batch."""

    residues: int
    queries: int

    @classmethod
    def of(cls, plan: Plan, settings: Settings) -> "BatchLimits":
        """As settings say, or as suits the stages of a plan."""
        stages = [filled.stage for filled in (*plan.indexes("query"), *plan.working("unit"))]
        suited = [min(stage.batch_residues * max(1, settings.threads // stage.flight), LARGE_BATCH) if stage.flight
                  else stage.batch_residues for stage in stages]
        residues = settings.batch_residues or max(suited)
        return cls(residues, settings.batch_queries or max(BATCH_RESIDUES, residues) // SHORT_QUERY)


class Need(NamedTuple):
    """Bytes that units side by side need at most, and the slots that need most of them.

    Attributes:
        host, device: bytes.
        host_slot, device_slot: names of slots; "" where none needs anything.
    """

    host: int = 0
    host_slot: str = ""
    device: int = 0
    device_slot: str = ""

    def over_host(self, settings: Settings) -> bool:
        return settings.memory is not None and self.host > settings.memory

    def over_device(self, settings: Settings) -> bool:
        return settings.device_memory is not None and self.device > settings.device_memory

    def fits(self, settings: Settings) -> bool:
        return not self.over_host(settings) and not self.over_device(settings)


class _Cut(NamedTuple):
    """A way to cut a run, with the limits that it comes from."""

    batch_residues: int
    volume_residues: int
    batches: list[tuple[int, int]]
    volumes: Sequence[Span]

    @property
    def units(self) -> int:
        return len(self.batches) * len(self.volumes)


class Planner:
    """Plans one run.

    Args:
        plan: what runs.
        queries: all queries.
        source: everything that is searched.
        space: its size.
        settings: use of the machine.
        former: the plan of the queries before these; its volumes are kept where they find room.
        portions: how many portions of queries, as many as these, are in memory at a time: one is read and another
            written while these are searched.
    """

    def __init__(self, plan: Plan, queries: Queries, source: VolumeSource, space: SearchSpace,
                 settings: Settings, former: UnitPlan | None = None, portions: int = 1) -> None:
        self.plan, self.queries, self.source, self.space, self.settings = plan, queries, source, space, settings
        self._former, self._portions = former, portions
        self._volumes = former.volumes if former else None
        self._first = int(queries.ordinals[0]) if len(queries) else 0
        self._limits = BatchLimits.of(plan, settings)
        flights = [filled.stage.flight for filled in plan.working("unit") if filled.stage.flight]
        self._keep_volumes = any(filled.stage.keeps_volumes for filled in plan.indexes("target"))
        self._side_by_side = 1 if settings.in_turn else min([settings.threads, *flights])

    def units(self) -> UnitPlan:
        """Batches and volumes that keep units side by side within the memory budget.

        Raises:
            BudgetError: even one query against the longest target needs more.
        """
        if self._former:
            with suppress(BudgetError):
                return self._numbered(self._units_side_by_side())
            self._volumes = None  # these queries need smaller ones
        return self._numbered(self._units_side_by_side())

    def _units_side_by_side(self) -> UnitPlan:
        """Units of which some find room side by side, as long as these aren't many more for it."""
        for flight in range(min(self.settings.threads, LEAST_FLIGHT), 1, -1):
            with suppress(BudgetError):
                plan = self._units_that_fit(flight)
                if plan.units <= FEW_UNITS or plan.units <= FEW_UNITS * self._units_that_fit(1).units:
                    return plan
        return self._units_that_fit(1)

    def _numbered(self, plan: UnitPlan) -> UnitPlan:
        """The plan of these queries, whose batches stand behind those of the former."""
        before = self._former
        return replace(plan, first_batch=before.first_batch + len(before.batches)) if before else plan

    def queries_of(self, plan: UnitPlan, batch: int) -> Queries:
        """The queries of a batch, by its number in the run."""
        first, last = plan.batches[batch - plan.first_batch]
        return self.queries.take(first - self._first, last - self._first)

    def flight(self, plan: UnitPlan) -> int:
        """Units that run side by side: one for each thread, or as many as occupy all, or as memory allows."""
        flights = range(min(self._side_by_side, max(1, plan.units)), 1, -1)
        return next((flight for flight in flights
                     if self.need(plan.batches, plan.volumes, flight).fits(self.settings)), 1)

    def volumes_kept(self, plan: UnitPlan) -> int:
        """How many volumes may stay in memory: all when they fit in half the budget, else those in use and the next.

        Models that are targets, whose profiles are large, stay if another batch of queries is to see them.
        """
        if not plan.volumes or not plan.batches:
            return 1
        if self.plan.family.target == "model" and len(plan.batches) == 1:
            return self.flight(plan) + READERS
        shape = self._shape(plan.batches, plan.volumes)
        total = sum(self._volume_bytes(v.total_residues, v.sequences) for v in plan.volumes)
        total += sum(len(plan.volumes) * filled.stage.footprint(shape).kept for filled in self.plan.indexes("target"))
        fits = self.settings.memory is None or 2 * total < self.settings.memory
        return max(1, len(plan.volumes)) if fits else self.flight(plan) + READERS

    def schedule(self, plan: UnitPlan) -> Iterator[tuple[int, int]]:
        """Batch by batch while all volumes stay in memory, else volume by volume so that each is read once."""
        numbers, volumes = range(plan.first_batch, plan.first_batch + len(plan.batches)), range(len(plan.volumes))
        if self.volumes_kept(plan) >= len(volumes):
            return ((b, v) for b in numbers for v in volumes)
        return ((b, v) for v in volumes for b in numbers)

    def cells(self, plan: UnitPlan, batch: int, volume: int) -> int:
        """Query residues × target residues of a unit."""
        return self._residues(plan.batches[batch - plan.first_batch]) * plan.volumes[volume].total_residues

    # ---- memory

    def need(self, batches: Sequence[tuple[int, int]], volumes: Sequence[Span], flight: int) -> Need:
        """What so many units side by side need at most."""
        if not batches or not volumes:
            return Need()
        shape, threads = self._shape(batches, volumes), self.settings.threads
        flight = min(flight, len(batches) * len(volumes))
        at_once = min(flight + READERS, len(volumes))
        batches_at_once = min(flight + 1, len(batches))
        held = at_once * self._volume_bytes(shape.target_residues, shape.targets)
        held += batches_at_once * shape.query_residues + self._portions * int(self.queries.nbytes)
        building, device_held, share = (0, ""), 0, 1.0
        asked_for = self._kinds_asked_for()
        host, device = [(0, "")], [(0, "")]
        for filled in self.plan.stages:
            alone, by_all = (filled.stage.footprint(replace(shape, share=share, threads=n)) for n in (1, threads))
            share *= filled.stage.leaves
            if filled.stage.kind == "index":
                if filled.stage.side == "query" and filled.stage.provides not in asked_for:
                    continue  # these are made when they are asked for
                held += (at_once if filled.stage.side == "target" else batches_at_once) * by_all.kept
                building = max(building, (by_all.host - by_all.kept, filled.name))
                # A device that is short of room has the volumes at work and the next one.
                device_held += by_all.device * (min(flight + 1, len(volumes)) if filled.stage.side == "target" else 1)
                continue
            # Every unit in flight needs what one thread does, and each thread more than units its own part.
            idle = (threads - flight) / max(1, threads - 1)
            host.append((flight * alone.host + int(idle * (by_all.host - alone.host)), filled.name))
            units = 1 if alone.in_turn else flight
            device.append((units * alone.device + int(idle * (by_all.device - alone.device)), filled.name))
        if at_once > 1:
            held += building[0]
        else:  # the only volume is ready before any unit begins
            host.append(building)
        (most, slot), (most_device, device_slot) = max(host), max(device)
        return Need(held + most, slot, device_held + most_device, device_slot)

    def _kinds_asked_for(self) -> set[str]:
        """Kinds of index that some stage looks at, with the records that it will be handed."""
        kinds = {kind for filled in self.plan.stages if filled.stage.kind == "index" for kind in filled.stage.reads}
        given: type[Records] | None = None
        for filled in (*self.plan.working("unit"), *self.plan.working("reduce")):
            kinds.update(filled.stage.looks_up(given))
            given = filled.stage.gives
        return kinds

    def _volume_bytes(self, residues: int, targets: int) -> int:
        """What a volume takes without its indexes."""
        return residues * wants_residues(self.plan) + 24 * targets

    def _shape(self, batches: Sequence[tuple[int, int]], volumes: Sequence[Span]) -> Shape:
        """Of a unit that is as large as any, in every respect."""
        return Shape(
            queries=max(b - a for a, b in batches),
            query_residues=max(self._residues(b) for b in batches),
            longest_query=self.queries.longest,
            targets=max(v.sequences for v in volumes),
            target_residues=max(v.total_residues for v in volumes),
            longest_target=max(v.longest for v in volumes),
            database_targets=self.space.sequences,
            database_residues=self.space.total_residues,
            options=self.plan.options,
            memory=self.settings.memory,
            device_memory=self.settings.device_memory,
        )

    def _residues(self, batch: tuple[int, int]) -> int:
        before, after = self.queries.offsets[[batch[0] - self._first, batch[1] - self._first]].tolist()
        return int(after - before)

    def _batches(self, residues: int) -> list[tuple[int, int]]:
        """All queries in batches of at most so many residues."""
        return [(a + self._first, b + self._first)
                for a, b in query_batches(self.queries, self._limits.queries, residues)]

    def _parts_of(self, batches: Sequence[tuple[int, int]], parts: int) -> list[tuple[int, int]]:
        """So many batches of like size for each one."""
        first = self._first
        return [(a + first, b + first) for low, high in batches
                for a, b in even_batches(self.queries, low - first, high - first, parts)]

    # ---- cutting

    def _units_that_fit(self, flight: int) -> UnitPlan:
        """Units of which so many find room side by side."""
        settings, residues = self.settings, self._limits.residues
        looking = (*self.plan.indexes("target"), *self.plan.working("unit"))
        volume_residues = settings.volume_residues or max(f.stage.volume_residues for f in looking)
        whole = _Cut(residues, volume_residues, self._batches(residues),
                     self._volumes or self.source.plan(volume_residues))
        ways = self._fitting(whole, flight)
        cut = ways[0] if len(ways) == 1 else min(ways, key=lambda way: way.units * (self._seconds(way) + STARTING))
        return self._short_units(self._for_devices(self._enough_units(self._for_workers(cut))))

    def _for_devices(self, cut: _Cut) -> _Cut:
        """Volumes cut further so that each device has as many, where units have a device each."""
        devices, total = devices_for_units(self.plan), sum(v.total_residues for v in cut.volumes)
        rounds = -(-len(cut.volumes) // devices)
        if (self._volumes or self._keep_volumes or not len(cut.volumes) % devices
                or total < LEAST_FOR_DEVICE * rounds * devices):
            return cut
        even = total // (rounds * devices) + self.source.longest + 1
        return cut._replace(volume_residues=even, volumes=self.source.plan(even))

    def _for_workers(self, cut: _Cut) -> _Cut:
        """Cut further as the model of several workers says, which weighs what each of them must read and be sent."""
        settings = self.settings
        if settings.workers < 2 or not cut.units:
            return cut
        from .balance import Costs, Work, best_cut

        work = Work(len(self.queries), sum(map(self._residues, cut.batches)),
                    sum(v.total_residues for v in cut.volumes), self._seconds(cut) * cut.units)
        batches, volumes = best_cut(work, Costs(sent=settings.sent), settings.workers * settings.threads,
                                    len(cut.batches), len(cut.volumes), MOST_UNITS)
        if batches > 1:
            cut = cut._replace(batches=self._parts_of(cut.batches, batches))
        return self._volumes_in_parts(cut, volumes) if volumes > 1 else cut

    def _fitting(self, whole: _Cut, flight: int) -> list[_Cut]:
        """With batches of each size the largest volumes of which so many units find room side by side.

        Raises:
            BudgetError: none do.
        """
        if self.need(whole.batches, whole.volumes, flight).fits(self.settings):
            return [whole]
        batches, volumes = list(_halved(whole, self._smaller_batches)), list(_halved(whole, self._smaller_volumes))
        found, place = list[_Cut](), 0

        def way(size: _Cut, place: int) -> _Cut:
            return size._replace(volume_residues=volumes[place].volume_residues, volumes=volumes[place].volumes)

        def fits(cut: _Cut) -> bool:
            return self.need(cut.batches, cut.volumes, flight).fits(self.settings)

        for size in batches:
            while not (fitting := fits(way(size, place))) and place < len(volumes) - 1:
                place += 1
            if fitting:
                # Those that fit with larger batches may be larger with these.
                while place and fits(way(size, place - 1)):
                    place -= 1
                found.append(way(size, place))
        if found:
            return found
        least = way(batches[-1], len(volumes) - 1)
        need, settings = self.need(least.batches, least.volumes, flight), self.settings
        if need.over_host(settings):
            raise BudgetError(f"slot '{need.host_slot}' for one query and one target", need.host, settings.memory or 0,
                              "raise --memory")
        raise BudgetError(f"slot '{need.device_slot}' for one query and one target", need.device,
                          settings.device_memory or 0, "raise --device-memory")

    def _smaller_batches(self, cut: _Cut) -> _Cut | None:
        """Batches of half the residues; None where there is nothing to cut.

        What is cut need not be the longest sequence, which may stand alone; so limits shrink in any case.
        """
        if cut.batch_residues <= 1 or not any(b - a > 1 for a, b in cut.batches):
            return None
        fewer = max(1, min(cut.batch_residues, max(map(self._residues, cut.batches))) // 2)
        return cut._replace(batch_residues=fewer, batches=self._batches(fewer))

    def _smaller_volumes(self, cut: _Cut) -> _Cut | None:
        """Volumes of half the residues, likewise."""
        if self._volumes or cut.volume_residues <= 1 or not any(v.sequences > 1 for v in cut.volumes):
            return None
        fewer = max(1, min(cut.volume_residues, max(v.total_residues for v in cut.volumes)) // 2)
        return cut._replace(volume_residues=fewer, volumes=self.source.plan(fewer))

    def _enough_units(self, cut: _Cut) -> _Cut:
        """Cut further until units occupy all threads, if that is worth it: many queries by query, few by volume.

        Stages share the threads, whichever unit they work for; what they do alone goes on beside other units' work.
        Units that take turns with a device are cut by volume: so targets are brought there once for all queries.
        """
        cells = sum(map(self._residues, cut.batches)) * sum(v.total_residues for v in cut.volumes)
        least = max(filled.stage.least_cells for filled in self.plan.stages)
        in_turn = any(self._takes_turns(cut))
        side_by_side = min(TURNS, self._side_by_side) if in_turn else self._side_by_side
        wanted = max(1, min(side_by_side * max(1, self.settings.workers), cells // least))
        if in_turn and cut.units < wanted:
            cut = self._even_volumes(cut, -(-wanted // len(cut.batches)))
            return self._in_parts(cut, wanted // max(1, cut.units))
        cut = self._even_rounds(cut, wanted)
        return self._in_parts(cut, -(-wanted // max(1, cut.units)))

    def _even_rounds(self, cut: _Cut, threads: int) -> _Cut:
        """Volumes for fewer queries than threads, cut so that all threads end at about the same time."""
        rounds = -(-len(cut.volumes) // threads)
        total, most = (of(v.total_residues for v in cut.volumes) for of in (sum, partial(max, default=0)))
        if len(self.queries) >= threads or len(cut.batches) != 1 or rounds * most * threads < UNEVEN * total:
            return cut
        return self._even_volumes(cut, rounds * threads)

    def _even_volumes(self, cut: _Cut, count: int) -> _Cut:
        """So many volumes of about the same size, if that makes them smaller."""
        if self._volumes or self._keep_volumes:
            return cut
        total, most = (of(v.total_residues for v in cut.volumes) for of in (sum, max))
        even = total // count + self.source.longest + 1
        return cut._replace(volume_residues=even, volumes=self.source.plan(even)) if even < most else cut

    def _short_units(self, cut: _Cut) -> UnitPlan:
        """Cut further until a unit takes some seconds at most, by the estimates of the stages: so that what is done is
        shown, and kept when the run is interrupted."""
        if cut.units:
            seconds = self._seconds(cut)
            parts = int(seconds / UNIT_SECONDS)
            parts = min(parts, MOST_UNITS // cut.units)
            cut = self._in_parts(cut, parts)
            if parts > 1 and (left := min(int(self._seconds(cut) / UNIT_SECONDS), MOST_UNITS // cut.units)) > 1:
                cut = self._volumes_in_parts(cut, left)  # few queries, of which some are long
        return UnitPlan(tuple(cut.batches), tuple(cut.volumes))

    def _seconds(self, cut: _Cut) -> float:
        """What the largest unit takes: what the stage does that takes longest. A device whose turn it is works for it
        alone, where stages say what they take beside those of other units."""
        shape, share, longest = self._shape(cut.batches, cut.volumes), 1.0, 0.0
        for filled, turns in zip(self.plan.working("unit"), self._takes_turns(cut), strict=True):
            seconds = filled.stage.seconds(replace(shape, share=share))
            longest = max(longest, seconds / self._side_by_side if turns else seconds)
            share *= filled.stage.leaves
        return longest

    def _takes_turns(self, cut: _Cut) -> Iterator[bool]:
        """Whether each stage takes turns with a device; none where there is nothing to do."""
        if not cut.units:
            return
        shape, share = self._shape(cut.batches, cut.volumes), 1.0
        for filled in self.plan.working("unit"):
            yield filled.stage.footprint(replace(shape, share=share)).in_turn
            share *= filled.stage.leaves

    def _in_parts(self, cut: _Cut, parts: int) -> _Cut:
        """So many times as many units, about."""
        if parts < 2:
            return cut
        if len(self.queries) >= parts * len(cut.batches):
            return cut._replace(batches=self._parts_of(cut.batches, parts))
        return self._volumes_in_parts(cut, parts)

    def _volumes_in_parts(self, cut: _Cut, parts: int) -> _Cut:
        if self._volumes or self._keep_volumes:
            return cut
        fewer = min(cut.volume_residues, -(-max(v.total_residues for v in cut.volumes) // parts))
        return cut._replace(volume_residues=fewer, volumes=self.source.plan(max(1, fewer)))


def _halved(cut: _Cut | None, smaller: Callable[[_Cut], _Cut | None]) -> Iterator[_Cut]:
    """A way to cut and those that follow from it."""
    while cut:
        yield cut
        cut = smaller(cut)


def devices_for_units(plan: Plan) -> int:
    """CUDA devices of which units have one each; 1 where there is one, or all devices share each unit."""
    asked = any(filled.stage.own_device for filled in plan.stages) and devices_to_count()
    return device_count() if asked else 1


def wants_residues(plan: Plan) -> bool:
    """Whether units, or the indexes that are made for them, look at residues of targets."""
    return any(filled.stage.reads_residues for filled in (*plan.indexes("target"), *plan.working("unit")))


def first_weights(plan: Plan) -> dict[str, float]:
    """Share of a unit's time that each slot takes, about, before any has been measured: half is for seed stages."""
    slots = plan.working("unit")
    kinds = [f.stage.kind == "seed" for f in slots]
    return {f.name: 1 / kinds.count(seeds) for f, seeds in zip(slots, kinds, strict=True)}


def query_batches(queries: Queries, most: int, residues: int) -> list[tuple[int, int]]:
    """Queries cut into batches of at most ``most`` queries and ``residues`` residues (one query at least), in order."""
    ends = queries.offsets[1:]
    batches: list[tuple[int, int]] = []
    first = before = 0
    while first < len(queries):
        fitting = int(np.searchsorted(ends, before + residues, "right"))
        stop = min(max(fitting, first + 1), first + most, len(queries))
        batches.append((first, stop))
        first, before = stop, int(ends[stop - 1])
    return batches


def even_batches(queries: Queries, first: int, stop: int, count: int) -> list[tuple[int, int]]:
    """Queries ``first`` … ``stop`` − 1 cut into at most ``count`` batches of about as many residues, in order."""
    ends = np.cumsum(queries.lengths[first:stop])
    middles = (ends - queries.lengths[first:stop] / 2) / max(1, int(ends[-1]))
    share = np.searchsorted(np.arange(1, count) / count, middles, side="right")
    cuts = [0, *(np.flatnonzero(np.diff(share)) + 1).tolist(), len(share)]
    return [(first + a, first + b) for a, b in pairwise(cuts)]
