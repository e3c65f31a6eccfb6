"""A run whose results go to writers batch by batch, in order of queries, and are kept nowhere else, or in a file too.

Each output has a thread that writes, and a channel to it that holds a few batches: who searches waits for the slowest
writer, so that memory stays the same however many queries there are.
"""

import queue
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from seqloom.core.classes import NamedTuple

from ...core.engine.memory import MemorySink
from ...core.errors import Cancelled, StoreError
from ...core.ports import QueryBlock, ResultSink, SlotStats, TargetInfo, UnitPlan, VolumeSource
from ...core.progress import Cancellation
from ...core.records import Hits, Records
from ...core.sequences import ModelBatch, SequenceBatch
from .memory_run import HeldReport
from .report import QUERIES_AT_ONCE, Reporting
from .run_row import INCOMPLETE, NUMBER, OF_RUN, begun, new_run_id, numbered

if TYPE_CHECKING:
    import duckdb

    from ...core.pipeline import Plan

_GONE = "the results were written and not kept; search again without --no-store"
AHEAD = 4
"""Batches that wait for a writer, at most."""
WAIT = 0.2
"""Seconds after which a cancellation, or the end of a writer, is noticed at the latest."""


class _Finished(NamedTuple):
    """A batch with its hits."""

    queries: SequenceBatch | ModelBatch
    hits: Hits
    targets: TargetInfo


class Channel:
    """Batches on their way to one writer.

    Args:
        run: whose batches they are.
        cancellation: of the search.
        in_turn: whether who hands a batch over waits until it is written.

    Attributes:
        id, number: of the run.
        closed: whether the writer has ended.
    """

    def __init__(self, run: "StreamedRun", cancellation: Cancellation, in_turn: bool = False) -> None:
        self.id, self.number, self.closed = run.id, run.number, False
        self._in_turn, self._written = in_turn, threading.Semaphore(0)
        self._waiting: queue.Queue[_Finished | None] = queue.Queue(AHEAD)
        self._run, self._cancellation, self._failed = run, cancellation, threading.Event()
        self._read = False

    def report(self, source: VolumeSource | None, plan: "Plan | None") -> Reporting:
        """The results for the writer."""
        return self._run.report_of(self, source, plan)

    def put(self, batch: _Finished | None) -> None:
        """Hand a batch over, None behind the last one, as soon as there is room; a writer that has ended gets none."""
        while not self.closed:
            self._cancellation.check()
            try:
                self._waiting.put(batch, timeout=WAIT)
                break
            except queue.Full:
                continue
        while self._in_turn and batch is not None and not self.closed:
            self._cancellation.check()
            if self._written.acquire(timeout=WAIT):
                break

    def fail(self) -> None:
        """No further batch will come, and what is written is of no use."""
        self._failed.set()

    def batches(self) -> Iterator[_Finished]:
        """All batches in order.

        Raises:
            Cancelled: the search has failed.
            StoreError: they were read before.
        """
        if self._read:
            raise StoreError(_GONE)
        self._read = True
        while True:
            if self._failed.is_set():
                raise Cancelled("the search has ended before its time")
            try:
                batch = self._waiting.get(timeout=WAIT)
            except queue.Empty:
                continue
            if batch is None:
                return
            yield batch
            self._written.release()  # who writes asks for the next one


class StreamedRun:
    """A run under way, as ``RunResults``, whose reports can each be read once, while it goes on.

    Args:
        provenance, later: as of ``MemoryRun``.
        queries: the first portion of them.
        source: what is searched.
        cancellation: of the search.
        in_turn: whether batches are written before the next ones are searched.
        kept: identifier of the run that keeps the results as well, if one does.

    Attributes:
        id: unique identifier of the run.
        number: the run's number in tables, of which it has none.
    """

    number = NUMBER

    def __init__(self, provenance: Mapping[str, Any], later: Mapping[str, Callable[[], Any]],
                 queries: SequenceBatch | ModelBatch, source: VolumeSource, cancellation: Cancellation,
                 in_turn: bool = False, kept: str | None = None) -> None:
        self.id, self.is_open, self._is_kept = kept or new_run_id(), True, kept is not None
        self._later, self._queries, self._cancellation = later, queries, cancellation
        self._in_turn = in_turn
        row = {**begun(self.id, provenance, queries), "state": INCOMPLETE, "finished": None, "error": None}
        self._known = {**row["provenance"], **{name: row[name] for name in OF_RUN if name not in later}}
        self._databases = numbered(source.fingerprints())
        self._sink, self._totals = MemorySink(), dict[str, SlotStats]()
        self._channels: list[Channel] = []
        self._next = 0

    # ---- what the engine asks for

    def plan(self) -> UnitPlan | None:
        return self._sink.plan()

    def begin(self, plan: UnitPlan, queries: SequenceBatch | ModelBatch | None = None) -> None:
        if queries is not None:
            self._queries = queries
            self._sink = MemorySink()  # without the done marks of the former portion
        self._sink.begin(plan)
        self._done: set[int] = set()

    def done_units(self) -> set[tuple[int, int]]:
        return self._sink.done_units()

    def done_batches(self) -> set[int]:
        return set(self._done)

    def commit_unit(self, batch: int, volume: int, records: Records, stats: Mapping[str, SlotStats]) -> None:
        self._sink.commit_unit(batch, volume, records, self.note_stats(stats))

    def partials(self, batch: int) -> list[Records]:
        return self._sink.partials(batch)

    def commit_batch(self, batch: int, hits: Hits, targets: TargetInfo, stats: Mapping[str, SlotStats]) -> None:
        self._sink.commit_batch(batch, hits, targets, self.note_stats(stats))
        self._done.add(batch)
        plan = self._sink.plan()
        assert plan is not None
        while self._next in self._sink.batches:
            low = int(self._queries.ordinals[0])
            first, last = plan.batches[self._next - plan.first_batch]
            self._hand_out(_Finished(self._queries.take(first - low, last - low), self._sink.batches.pop(self._next),
                                     self._sink.targets.pop(self._next)))
            self._next += 1

    # ---- what the rest of the program asks for

    def channel(self) -> Channel:
        """A way to one more writer, to be opened before the first batch is done."""
        self._channels.append(Channel(self, self._cancellation, self._in_turn))
        return self._channels[-1]

    def report_of(self, channel: Channel, source: VolumeSource | None, plan: "Plan | None") -> Reporting:
        """The results for the writer at the end of ``channel``."""
        later = {**self._later, "provenance": lambda: dict(self._known), "databases": lambda: self._databases}
        return _StreamedReport(channel, dict(self._known), source, plan, later, self._queries.take(0, 0), self._totals)

    def end(self) -> None:
        """All batches are done."""
        for channel in self._channels:
            channel.put(None)

    @property
    def connection(self) -> "duckdb.DuckDBPyConnection":
        raise StoreError(_GONE)

    def report(self, source: VolumeSource | None, plan: "Plan | None") -> Reporting:
        raise StoreError(_GONE)

    def finish(self, state: str, seconds: float = 0.0, error: str | None = None,
               indexes: Mapping[str, SlotStats] | None = None) -> None:
        """Nothing is kept of how the run ended."""

    def note(self, name: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Nothing is kept with the run."""

    def release(self) -> None:
        """Nothing holds the databases."""

    def close(self) -> None:
        """Writers that wait for more are told that none will come."""
        self.is_open = False
        for channel in self._channels:
            channel.fail()

    discard = close

    # ---- inside

    def _hand_out(self, batch: _Finished) -> None:
        for channel in self._channels:
            channel.put(batch)
        if not self._is_kept and all(channel.closed for channel in self._channels):
            raise Cancelled("nobody wants the results any more")

    def note_stats(self, stats: Mapping[str, SlotStats]) -> Mapping[str, SlotStats]:
        """Count what slots did; gives what is left to be kept."""
        for name, new in stats.items():
            self._totals.setdefault(name, SlotStats()).add(new)
        return {}


class AlsoStreamed:
    """A ``ResultSink`` that keeps results and hands every batch to writers as soon as it is kept.

    Args:
        kept: keeps them.
        stream: has the channels to the writers.
    """

    def __init__(self, kept: ResultSink, stream: StreamedRun) -> None:
        self._kept, self._stream = kept, stream
        self.plan, self.partials = kept.plan, kept.partials
        self.done_units, self.done_batches = kept.done_units, kept.done_batches

    def begin(self, plan: UnitPlan, queries: SequenceBatch | ModelBatch | None = None) -> None:
        for sink in (self._kept, self._stream):
            sink.begin(plan, queries)

    def commit_unit(self, batch: int, volume: int, records: Records, stats: Mapping[str, SlotStats]) -> None:
        self._kept.commit_unit(batch, volume, records, stats)
        self._stream.note_stats(stats)  # which reports print; its records come with the batch

    def commit_batch(self, batch: int, hits: Hits, targets: TargetInfo, stats: Mapping[str, SlotStats]) -> None:
        for sink in (self._kept, self._stream):
            sink.commit_batch(batch, hits, targets, stats)


class _StreamedReport(HeldReport):
    """Reports batches as they come, once."""

    def __init__(self, channel: Channel, known: dict[str, Any], source: VolumeSource | None, plan: "Plan | None",
                 later: Mapping[str, Callable[[], Any]], queries: SequenceBatch | ModelBatch,
                 totals: Mapping[str, SlotStats]) -> None:
        super().__init__(known, source, plan, later, queries, MemorySink(), totals)
        self._channel = channel

    def blocks(self, residues: bool = False) -> Iterator[QueryBlock]:
        for queries, hits, targets in self._channel.batches():
            held = MemorySink()
            held.commit_batch(0, hits, targets, {})
            self.hold(queries, held)
            self.times = max(HeldReport.times, len(queries) // QUERIES_AT_ONCE)  # as many as a batch has
            yield from self._blocks(self._first, self._first + len(queries), residues)
