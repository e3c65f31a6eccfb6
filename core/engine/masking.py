"""Masking of queries, as the family of a pipeline asks for it."""

import threading
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..classes import dataclass
from ..context import SearchSpace
from ..errors import CompositionError
from ..pipeline import Plan, compose
from ..ports import Unit, UnitPlan
from ..progress import Cancellation, Progress
from ..records import Hits
from ..registry import Registry
from ..sequences import Intervals, SequenceBatch
from ..stages import Masker, MaskSearch
from .failures import naming
from .memory import MemorySource
from .planning import Planner, Settings

if TYPE_CHECKING:
    from .runner import Runner

OF_MEMORY = 4
"""Part of the memory for a run's data that the search of a masker may take."""


@dataclass(frozen=True)
class _Searched:
    """What a masker's search looks through, and what carries it out."""

    plan: Plan
    source: MemorySource
    space: SearchSpace
    runner: "Runner"


class MaskerSearch:
    """The search of a masker: what is searched is read once, at the first batch, and serves all others.

    Args:
        registry: where plugins are found; its ``targets`` reads what is searched.
        wanted: the search.
        backend: as of ``compose``.
        settings: use of the machine, of which a part of the memory is taken.
        cancellation: stops it.
    """

    def __init__(self, registry: Registry, wanted: MaskSearch, backend: str = "auto", settings: Settings | None = None,
                 cancellation: Cancellation | None = None) -> None:
        self._registry, self._wanted, self._backend = registry, wanted, backend
        use = settings or Settings()
        memory = use.memory // OF_MEMORY if use.memory else None
        self._settings = Settings(use.threads, memory, use.device_memory)
        self._cancellation, self._lock = cancellation, threading.Lock()
        self._searched: _Searched | None = None
        self._former: UnitPlan | None = None

    def __call__(self, batch: SequenceBatch) -> Hits:
        """Hits of the sequences of a batch, numbered from 0; one batch at a time.

        Raises:
            InputError: what is to be searched can't be.
            SeqloomError: from a stage.
        """
        queries = replace(batch, ordinals=np.arange(len(batch), dtype=np.int64))
        with self._lock:
            searched = self._searched = self._searched or self._opened()
            runner, plan = searched.runner, searched.plan
            if not len(batch) or not searched.source.sequences:
                return Hits.empty()
            planner = Planner(plan, queries, searched.source, searched.space, self._settings, self._former)
            units = planner.units()
            self._former = units
            runner.keep(units, lambda number: planner.queries_of(units, number), 1, planner.volumes_kept(units))
            found = []
            for number, _ in units.numbered:
                parts = [runner.unit(Unit(number, volume, planner.cells(units, number, volume))).records
                         for volume in range(len(units.volumes))]
                found.append(runner.reduce(number, [part for part in parts if part is not None])[0])
            return Hits.concat(found)

    def _opened(self) -> _Searched:
        from .runner import Runner

        wanted, registry = self._wanted, self._registry
        plan = compose(registry, registry.pipeline(wanted.pipeline), wanted.options, self._backend)
        batch, space = registry.targets(wanted.database, plan.family.target)
        source = MemorySource(batch, wanted.database)
        progress = Progress(self._cancellation)
        return _Searched(plan, source, space, Runner(plan, registry, source, space, self._settings, progress))


def ready(masker: Masker, registry: Registry, backend: str = "auto", settings: Settings | None = None,
          cancellation: Cancellation | None = None) -> Masker:
    """The same masker, with the search that it needs; see ``MaskerSearch``."""
    if (wanted := masker.search()) is not None:
        masker.found = MaskerSearch(registry, wanted, backend, settings, cancellation)
    return masker


class Maskers:
    """The maskers of a plan, each with whether it masks softly: made once, for all batches of a run.

    Args:
        plan: from ``compose``.
        registry: where maskers are found.
        settings: use of the machine.
        cancellation: stops their searches.
    """

    def __init__(self, plan: Plan, registry: Registry, settings: Settings | None = None,
                 cancellation: Cancellation | None = None) -> None:
        self._plan, self._registry, self._settings = plan, registry, settings
        self._cancellation, self._lock = cancellation, threading.Lock()
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
        return ready(kind(kind.Options(**options)), self._registry, self._plan.backend, self._settings,
                     self._cancellation)


__all__ = ["MaskerSearch", "Maskers", "ready"]
