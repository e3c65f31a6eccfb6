"""A run whose results are not kept: they stay in memory as they are, and become tables when somebody asks in SQL.

Most of such results are written out once, in the order in which they stand, and forgotten. That takes no database,
whose making, filling and reading would take longer than many a search. Results that outgrow their room become tables at
once, since DuckDB puts on disk what exceeds the memory that it may take.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.engine.memory import MemorySink
from ...core.ports import SlotStats, TargetInfo, UnitPlan, VolumeSource
from ...core.records import Hits, Ragged, Records, children_order
from ...core.sequences import ModelBatch, SequenceBatch
from ...core.text_rows import TextRows
from .report import Asked, Reporting
from .run_row import INCOMPLETE, NUMBER, OF_RUN, OF_SLOT, begun, new_run_id, numbered, utc_now

if TYPE_CHECKING:
    import duckdb

    from ...core.pipeline import Plan
    from .run_file import RunFile

ROOM = 64 << 20
"""Bytes of targets up to which they are looked at when somebody asks only, and of results that stay in memory."""
SHARE = 4
"""Part of DuckDB's memory that results may take before they are handed over to it."""


class MemoryRun:
    """A run under way or finished, as ``RunResults``.

    Args:
        provenance: plain data that says what runs.
        later: gives what it says besides, by name: what takes time to find out and few ask for.
        queries: of the run.
        source: what is searched.
        memory: bytes that DuckDB may take when it holds the results.
        room: bytes of results that stay in memory as they are, where ``memory`` doesn't say otherwise.

    Attributes:
        id: unique identifier of the run.
        number: the run's number in the tables.
    """

    number = NUMBER

    def __init__(self, provenance: Mapping[str, Any], later: Mapping[str, Callable[[], Any]],
                 queries: SequenceBatch | ModelBatch, source: VolumeSource, memory: int | None = None,
                 room: int = ROOM) -> None:
        self.id, self.is_open = new_run_id(), True
        self._provenance, self._later, self._queries, self._memory = provenance, later, queries, memory
        self._source: VolumeSource | None = source
        self._room = room if memory is None else memory // SHARE
        self._held = MemorySink()
        self._tables: RunFile | None = None
        self._totals: dict[str, SlotStats] = {}
        self._row: dict[str, Any] = {"state": INCOMPLETE, "finished": None, "seconds": 0.0, "error": None}

    # ---- what the engine asks for

    def plan(self) -> UnitPlan | None:
        return self._sink.plan()

    def begin(self, plan: UnitPlan, queries: SequenceBatch | ModelBatch | None = None) -> None:
        if queries is not None and not self._tables:
            self._queries = type(queries).concat([self._queries, queries])  # type: ignore[list-item]
            self._room = min(self._room, ROOM) - int(queries.nbytes)
            queries = None
        self._sink.begin(plan, queries)
        self._make_room()

    def done_units(self) -> set[tuple[int, int]]:
        return self._sink.done_units()

    def done_batches(self) -> set[int]:
        return self._sink.done_batches()

    def commit_unit(self, batch: int, volume: int, records: Records, stats: Mapping[str, SlotStats]) -> None:
        self._sink.commit_unit(batch, volume, records, self._noted(stats))
        self._make_room()

    def partials(self, batch: int) -> list[Records]:
        return self._sink.partials(batch)

    def commit_batch(self, batch: int, hits: Hits, targets: TargetInfo, stats: Mapping[str, SlotStats]) -> None:
        self._sink.commit_batch(batch, hits, targets, self._noted(stats))
        self._make_room()

    # ---- what the rest of the program asks for

    @property
    def connection(self) -> "duckdb.DuckDBPyConnection":
        """On which tables and views can be queried; they are made when they are first asked for."""
        return self._in_tables().connection

    def report(self, source: VolumeSource | None, plan: "Plan | None") -> Reporting:
        """The results for writers."""
        if self._tables:
            return self._tables.report(source, plan)
        row = {**begun(self.id, self._provenance, self._queries), **self._row}
        later = {**self._later, "provenance": self._whole_provenance, "databases": lambda: self._databases}
        known = {**row["provenance"], **{name: row[name] for name in OF_RUN if name not in later}}
        return HeldReport(known, source, plan, later, self._queries, self._held, self._totals)

    def finish(self, state: str, seconds: float = 0.0, error: str | None = None,
               indexes: Mapping[str, SlotStats] | None = None) -> None:
        """Note how the run ended; see ``RunResults``."""
        self._row = {"state": state, "finished": utc_now(), "seconds": seconds, "error": error}
        of_indexes = self._noted({name: s for name, s in (indexes or {}).items() if name.split(".")[0] == "index"})
        if self._tables:
            self._tables.finish(state, seconds, error, of_indexes)

    def note(self, name: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Keep further plain data with the provenance; see ``RunResults``."""
        self._provenance = {**self._provenance, name: [*self._provenance.get(name, ()), *rows]}
        if self._tables:
            self._tables.note(name, rows)

    def release(self) -> None:
        """Do without the databases from now on; small ones are looked at only when somebody asks what they hold."""
        if self._source and self._source.total_residues > ROOM:
            _ = self._databases

    def close(self) -> None:
        """Forget the results."""
        if self._tables:
            self._tables.close()
        self.is_open = False

    discard = close

    # ---- inside

    @property
    def _sink(self) -> "MemorySink | RunFile":
        return self._tables or self._held

    def _noted(self, stats: Mapping[str, SlotStats]) -> Mapping[str, SlotStats]:
        """Those that are still to be kept: without tables they are added up here."""
        if self._tables:
            return stats
        for name, new in stats.items():
            self._totals.setdefault(name, SlotStats()).add(new)
        return {}

    def _make_room(self) -> None:
        if not self._tables and self._held.nbytes > max(0, self._room):
            self._in_tables()

    def _in_tables(self) -> "RunFile":
        if not self._tables:
            from .run_file import RunFile

            tables = RunFile.create(":memory:", self._whole_provenance(), self._queries, self._databases, self._memory,
                                    self.id)
            self._held.hand_over(tables)
            tables.add(self._totals)
            if self._row["finished"]:
                tables.finish(self._row["state"], self._row["seconds"], self._row["error"])
            self._tables, self._held, self._queries = tables, MemorySink(), self._queries.take(0, 0)
        return self._tables

    def _whole_provenance(self) -> dict[str, Any]:
        return {**self._provenance, **{name: find() for name, find in self._later.items()}}

    @cached_property
    def _databases(self) -> list[dict[str, Any]]:
        assert self._source is not None
        source, self._source = self._source, None
        return numbered(source.fingerprints())


class HeldReport(Reporting):
    """Of a run whose results are as the engine gave them."""

    times = 4  # their hits are in memory anyway

    def __init__(self, known: dict[str, Any], source: VolumeSource | None, plan: "Plan | None",
                 later: Mapping[str, Callable[[], Any]], queries: SequenceBatch | ModelBatch, held: MemorySink,
                 totals: Mapping[str, SlotStats]) -> None:
        super().__init__(known, source, plan, later)
        self._totals = totals
        self.hold(queries, held)

    def hold(self, queries: SequenceBatch | ModelBatch, held: MemorySink) -> None:
        """Report these queries, whose numbers follow one another, and their hits from now on."""
        self._queries, self._held = queries, held
        self._first = int(queries.ordinals[0]) if len(queries) else 0
        for made in ("_all", "_known"):
            self.__dict__.pop(made, None)

    def _taken(self, first: int, last: int) -> Any:
        return self._queries.take(first - self._first, last - self._first)

    def sizes(self, first: int, last: int) -> np.ndarray:
        owners = [records.query for batch in self._held.batches.values() for records in (batch, batch.alignments)]
        places = np.concatenate([np.empty(0, np.int32), *owners]) - self._first
        return np.bincount(places, minlength=last - self._first)[first - self._first : last - self._first]

    def asked(self, first: int, last: int, residues: bool) -> Asked:
        batch = self._taken(first, last)
        nothing = TextRows.blank(len(batch))
        known = Ragged(batch.offsets, batch.residues) if residues and isinstance(batch, SequenceBatch) else None
        return Asked(batch.ordinals, batch.names, batch.descriptions or nothing,
                     getattr(batch, "accessions", None) or nothing, batch.lengths, known)

    def sequence(self, number: int) -> SequenceBatch:
        assert isinstance(self._queries, SequenceBatch)
        return self._taken(number, number + 1)

    def models(self, first: int, last: int) -> Sequence[Any]:
        return self._taken(first, last).models if isinstance(self._queries, ModelBatch) else ()

    def passed(self, first: int, last: int) -> Iterable[tuple[int, str, int]]:
        return [(query, slot, totals.passed[query]) for slot, totals in list(self._totals.items()) if totals.passed
                for query in range(first, last) if query in totals.passed]

    def slots(self) -> Sequence[Mapping[str, Any]]:
        made = (self.run["provenance"].get("plan") or {}).get("slots", ())
        return [{**{name: slot.get(name) for name in OF_SLOT[:4]},
                 **{name: getattr(self._totals.get(slot["slot"], SlotStats()), name) for name in OF_SLOT[4:]}}
                for slot in made]

    def hits(self, first: int, last: int) -> Hits:
        bounds = (np.searchsorted(records.query, [first, last]).tolist()
                  for records in (self._all, self._all.alignments))
        return self._all.cut(*chain.from_iterable(bounds))

    def targets(self, numbers: np.ndarray) -> TargetInfo:
        return self._known.take(np.searchsorted(self._known.numbers, numbers))

    @cached_property
    def _all(self) -> Hits:
        """All hits by query and rank, their children in the order of the hits."""
        hits, children = self._held.hits, self._held.hits.alignments
        hits = hits.with_alignments(Hits.empty().alignments)
        hits = hits if _ascending(hits.query) else hits.take(np.argsort(hits.query, kind="stable"))
        order = children_order(hits, children)
        in_order = len(order) == len(children) and _ascending(order)
        return hits.with_alignments(children if in_order else children.take(order))

    @cached_property
    def _known(self) -> TargetInfo:
        """Of all targets with hits, by number; one that has hits in several batches is there as often."""
        parts = list(self._held.targets.values())

        def together(name: str) -> np.ndarray:
            return np.concatenate([np.empty(0, np.int64), *(getattr(part, name) for part in parts)])

        numbers = together("numbers")
        names = [name for part in parts for name in part.names]
        descriptions = [text for part in parts for text in part.descriptions or [""] * len(part.names)]
        taxa = [taxon for part in parts for taxon in part.taxa or [None] * len(part.names)]
        whole = TargetInfo(numbers, names, descriptions, together("lengths"), together("databases"),
                           together("ordinals"), taxa if any(taxa) else ())
        return whole.take(np.argsort(numbers, kind="stable")) if len(parts) > 1 else whole


def _ascending(values: np.ndarray) -> bool:
    return bool((values[1:] >= values[:-1]).all())
