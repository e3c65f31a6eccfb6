"""Masking of queries, as the family of a pipeline asks for it."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from ..classes import NamedTuple
from ..context import Queries, SearchSpace
from ..errors import CompositionError
from ..pipeline import Plan, compose
from ..ports import SlotStats, Unit, UnitPlan, UnitResult, VolumeSource
from ..progress import Cancellation, Progress
from ..records import Hits, Records
from ..registry import Registry
from ..sequences import Intervals, SequenceBatch
from ..stages import Masker, MaskSearch
from .failures import naming
from .memory import MemorySource
from .planning import Planner, Settings

OF_MEMORY = 4
"""Part of the memory for a run's data that the search of a masker may take."""
ReadTargets = Callable[[str, str], tuple[SequenceBatch, SearchSpace]]
"""Reads all of a database or file of sequences of a kind, and says how large a search of it is."""


class Carrier(Protocol):
    """What carries out the stages of a plan: see ``Runner``."""

    def keep(self, units: UnitPlan, queries: Callable[[int], Queries], batches: int, volumes: int) -> None: ...
    def unit(self, unit: Unit) -> UnitResult: ...
    def reduce(self, number: int, parts: Sequence[Records]) -> tuple[Any, dict[str, SlotStats]]: ...


class Searching(NamedTuple):
    """How searches that maskers need are carried out.

    Attributes:
        start: makes what carries out a plan, as ``Runner`` is made.
        targets: reads what is searched; None where nobody opens databases.
        backend: as of ``compose``.
        settings: use of the machine, of which a part of the memory is taken.
        cancellation: stops them.
    """

    start: Callable[[Plan, Registry, VolumeSource, SearchSpace, Settings, Progress], Carrier]
    targets: ReadTargets | None = None
    backend: str = "auto"
    settings: Settings = Settings()
    cancellation: Cancellation | None = None


class _Opened(NamedTuple):
    """What a masker's search looks through, and what carries it out."""

    plan: Plan
    source: MemorySource
    space: SearchSpace
    carrier: Carrier


class MaskerSearch:
    """The search of a masker: what is searched is read once, at the first batch, and serves all others.

    Args:
        registry: where plugins are found.
        wanted: the search.
        how: it is carried out.
    """

    def __init__(self, registry: Registry, wanted: MaskSearch, how: Searching) -> None:
        self._registry, self._wanted, self._how = registry, wanted, how
        use = how.settings
        self._settings = Settings(use.threads, use.memory // OF_MEMORY if use.memory else None, use.device_memory)
        self._lock = threading.Lock()
        self._opened: _Opened | None = None
        self._former: UnitPlan | None = None

    def __call__(self, batch: SequenceBatch) -> Hits:
        """Hits of the sequences of a batch, numbered from 0; one batch at a time.

        Raises:
            InputError: what is to be searched can't be.
            SeqloomError: from a stage.
        """
        queries = replace(batch, ordinals=np.arange(len(batch), dtype=np.int64))
        with self._lock:
            self._opened = self._opened or self._open()
            plan, source, space, carrier = self._opened
            if not len(batch) or not source.sequences:
                return Hits.empty()
            planner = Planner(plan, queries, source, space, self._settings, self._former)
            units = self._former = planner.units()
            carrier.keep(units, lambda number: planner.queries_of(units, number), 1, planner.volumes_kept(units))
            found = []
            for number, _ in units.numbered:
                parts = [carrier.unit(Unit(number, volume, planner.cells(units, number, volume))).records
                         for volume in range(len(units.volumes))]
                found.append(carrier.reduce(number, [part for part in parts if part is not None])[0])
            return Hits.concat(found)

    def _open(self) -> _Opened:
        wanted, registry, how = self._wanted, self._registry, self._how
        if how.targets is None:
            raise CompositionError(f"a masker searches {wanted.database}, and nobody here opens databases")
        plan = compose(registry, registry.pipeline(wanted.pipeline), wanted.options, how.backend)
        batch, space = how.targets(wanted.database, plan.family.target)
        source = MemorySource(batch, wanted.database)
        return _Opened(plan, source, space, how.start(plan, registry, source, space, self._settings,
                                                      Progress(how.cancellation)))


def left_by_maskers(plan: Plan, registry: Registry, settings: Settings) -> Settings:
    """The same with the memory that searches of the plan's maskers leave its own."""
    searching = any(registry.masker(request.masker).search is not Masker.search
                    for request in plan.family.masking(plan.options))
    return replace(settings, memory=settings.memory - settings.memory // OF_MEMORY) if (
        searching and settings.memory) else settings


def ready(masker: Masker, registry: Registry, how: Searching) -> Masker:
    """The same masker, with the search that it needs; see ``MaskerSearch``."""
    if (wanted := masker.search()) is not None:
        masker.found = MaskerSearch(registry, wanted, how)
    return masker


class Maskers:
    """The maskers of a plan, each with whether it masks softly: made once, for all batches of a run.

    Args:
        plan: from ``compose``.
        registry: where maskers are found.
        how: their searches are carried out; with the back end of the plan.
    """

    def __init__(self, plan: Plan, registry: Registry, how: Searching) -> None:
        self._plan, self._registry, self._how = plan, registry, how._replace(backend=plan.backend)
        self._lock = threading.Lock()
        self._made: Sequence[tuple[Masker, bool]] | None = None

    def masked(self, queries: SequenceBatch) -> SequenceBatch:
        """Queries with the stretches that a run masks, softly or hard.

        Raises:
            CompositionError: a masker isn't for such sequences.
            StageError: a masker failed.
        """
        soft, hard = Intervals.empty(), Intervals.empty()
        for masker, softly in self._all():
            if queries.alphabet.name not in masker.alphabets:
                raise CompositionError(f"masker '{masker.name}' is not for {queries.alphabet.name} sequences")
            with naming(self._registry, "masking of queries", "masker", masker.name):
                found = masker.intervals(replace(queries, soft=soft, hard=hard))
            if softly:
                soft = soft.merged(found)
            else:
                hard = hard.merged(found)
        return replace(queries, soft=soft, hard=hard)

    def _all(self) -> Sequence[tuple[Masker, bool]]:
        with self._lock:
            if self._made is None:
                self._made = [(self._masker(request.masker, request.options), request.soft)
                              for request in self._plan.family.masking(self._plan.options)]
            return self._made

    def _masker(self, name: str, options: Any) -> Masker:
        kind = self._registry.masker(name)
        return ready(kind(kind.Options(**options)), self._registry, self._how)


__all__ = ["MaskerSearch", "Maskers", "ReadTargets", "Searching", "left_by_maskers", "ready"]
