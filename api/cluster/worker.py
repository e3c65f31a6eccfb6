"""What runs on a worker of a cluster: checks before the work, then units, one by one, from bytes to bytes.

A worker keeps what it has opened and prepared for a run, so that units that go where their volume is find it there.
"""

import json
import os
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, nullcontext, suppress
from dataclasses import replace
from heapq import heappop, heappush
from tempfile import TemporaryDirectory
from typing import Any

from ..budget import available_bytes, data_budget, reading_share
from ..core.context import SearchSpace
from ..core.engine.location import searched_source
from ..core.engine.planning import READERS, Settings
from ..core.engine.runner import Runner
from ..core.errors import Cancelled, InputError, SeqloomError
from ..core.options import option_infos
from ..core.pipeline import Plan
from ..core.ports import SlotStats, Span, Trace, Unit, UnitPlan, VolumeSource
from ..core.progress import Progress
from ..indexes import reading
from ..installed import registry
from ..opening import kept_pick, kept_plan, opened, whole
from .messages import from_result, packed, to_batch
from .sent_source import SentSource
from .versions import differences, identity

FORGOTTEN_AFTER = 600.0
"""Seconds after its last unit from which on a run whose caller has said nothing gives way to another."""
USABLE = 0.6
"""Part of the memory that Dask lets a worker have, which a search takes: Dask pauses workers at four fifths."""
TELLS_EVERY = 0.5
"""Seconds between two words about how far a unit is."""


class _Told(Progress):
    """How far one unit is, as the caller is told now and then; cancelled with its run."""

    def __init__(self, whole: Progress, tell: Callable[[int], object]) -> None:
        super().__init__(whole.cancellation)
        self._tell, self._next = tell, time.monotonic() + TELLS_EVERY

    def add(self, amount: int) -> None:
        super().add(amount)
        if (now := time.monotonic()) >= self._next:
            self._next = now + TELLS_EVERY
            self._tell(self.done)


class WorkerRun:
    """What a worker holds of one run.

    Attributes:
        used: when it was last of use, by ``time.monotonic``.
    """

    def __init__(self, plan: Plan, source: VolumeSource, space: SearchSpace, settings: Settings,
                 opened_files: ExitStack) -> None:
        self._opened, self._source, self.used, self.active = opened_files, source, time.monotonic(), 0
        searched = source if isinstance(source, SentSource) else searched_source(source, plan)
        self.progress = Progress()
        self.plan = reading(plan, searched)
        self._runner = Runner(self.plan, registry(), searched, space, settings, self.progress, whole)
        self._readers = ThreadPoolExecutor(READERS, "reader")
        self._lock = threading.Lock()
        self._queries: dict[int, bytes] = {}
        self._told: dict[str, SlotStats] = {}
        self._free: list[float] = []

    def begin(self, units: UnitPlan, flight: int, batches: int, volumes: int) -> None:
        """Units of this plan come next, ``flight`` of them side by side."""
        self._units, self._room = units, threading.Semaphore(flight)
        self._free, self._batches = [time.monotonic()] * flight, batches
        self._runner.keep(units, lambda batch: to_batch(self._queries[batch], registry()), batches, volumes)

    def unit(self, unit: Unit, ahead: Sequence[int], queries: bytes, residues: bytes | None,
             tell: Callable[[int], object]) -> bytes:
        """Carry out a unit; its result as bytes.

        Args:
            ahead: volumes that the next units want, to be read meanwhile.
            queries, residues: the batch, and the volume where this worker can't read it.
            tell: called now and then with the cells that are done.
        """
        with self._room:
            began = self._start()
            try:
                with self._lock:
                    self._queries.pop(unit.batch, None)
                    self._queries[unit.batch] = queries
                    for batch in [*self._queries][: -self._batches]:
                        del self._queries[batch]
                for volume in ahead:
                    self._readers.submit(self._read_ahead, volume)
                self._taken_parts()  # what a unit left that failed
                with self._having(unit.volume, residues):
                    result = self._runner.unit(unit, _Told(self.progress, tell))
                return from_result(result, self._new_of_indexes(), self._trace_of(unit), self._taken_parts(),
                                   seconds=time.monotonic() - began[0], waited=began[1])
            finally:
                self._end()

    def _having(self, volume: int, residues: bytes | None) -> AbstractContextManager[None]:
        if residues is None or not isinstance(self._source, SentSource):
            return nullcontext()
        return self._source.having(self._units.volumes[volume].first, residues)

    def _taken_parts(self) -> dict[tuple[str, str], bytes]:
        """Files that units have left for the end of the run, by slot and name; they are removed here. Where there are
        such, one unit is at work at a time."""
        found = {}
        for placed in self.plan.stages:
            folder = placed.stage.parts(self.plan.options)
            for path in sorted(folder.iterdir()) if folder else ():
                found[placed.name, path.name] = path.read_bytes()
                path.unlink()
        return found

    def close(self) -> None:
        """Stop, and let go of everything."""
        self.progress.cancellation.cancel()
        self._readers.shutdown(wait=False, cancel_futures=True)
        with suppress(Exception):
            self._opened.close()

    def _start(self) -> tuple[float, float]:
        """When a unit began, and for how many seconds there had been room for it."""
        with self._lock:
            self.active += 1
            now = self.used = time.monotonic()
            return now, now - heappop(self._free)

    def _end(self) -> None:
        with self._lock:
            self.active -= 1
            self.used = time.monotonic()
            heappush(self._free, self.used)

    def _read_ahead(self, volume: int) -> None:
        self.progress.cancellation.check()
        self._runner.volumes.get(volume)

    def _new_of_indexes(self) -> dict[str, SlotStats]:
        """What index slots did since this was last asked."""
        with self._lock:
            now = {name: replace(stats, counters=dict(stats.counters)) for name, stats in self._runner.totals.items()
                   if name.split(".")[0] == "index"}
            before, self._told = self._told, now
        return {name: _less(stats, before.get(name, SlotStats())) for name, stats in now.items()}

    def _trace_of(self, unit: Unit) -> Trace:
        """Of the targets that are followed, those of this unit; they are told once."""
        span, trace = self._units.volumes[unit.volume], self._runner.trace
        mine = [key for key in {**trace.seen, **trace.lost}
                if key[0] == unit.batch and span.first <= key[1] < span.last]
        return Trace({key: trace.seen.pop(key) for key in mine if key in trace.seen},
                     {key: trace.lost.pop(key) for key in mine if key in trace.lost})


def _less(stats: SlotStats, before: SlotStats) -> SlotStats:
    return SlotStats(stats.seconds - before.seconds, stats.records_in - before.records_in,
                     stats.records_out - before.records_out,
                     {name: number - before.counters.get(name, 0) for name, number in stats.counters.items()})


_runs: dict[tuple[str, str], WorkerRun] = {}
"""By address of the worker, of which a process may have several, and run."""
_lock = threading.Lock()


def _key(run: str) -> tuple[str, str]:
    from distributed import get_worker

    return get_worker().address, run


def hello(request: bytes) -> bytes:
    """Check whether this worker can take part in a run, and open what it needs.

    Args:
        request: plain data as JSON: run, identity, plan, databases, pick, space, memory, on_host, explain, own.

    Returns:
        JSON: ``refused``, why it can't, or host, pid, threads, memory (bytes for the run's data; None without a limit),
        cuda (whether units use a device) and sees (whether it reads the databases itself).
    """
    from distributed import get_worker

    worker, asked = get_worker(), json.loads(request)
    unlike = differences(identity(), asked["identity"])
    if unlike:
        return _refusal(f"it runs {unlike}; install the same versions there")
    if asked["own"]:
        from ..core.engine.heap import keep_freed_memory

        keep_freed_memory()
    threads = worker.state.nthreads
    files = ExitStack()
    try:
        memory = _budget(asked["memory"], worker.memory_manager.memory_limit, asked["on_host"])
        plan, space = _written_here(kept_plan(asked), files), SearchSpace(**asked["space"])
        if plan.deciding != asked["slots"]:
            return _refusal(f"its slots are {', '.join(plan.deciding)} instead of {', '.join(asked['slots'])}; "
                            "choose the back end with --backend")
        source = _source(asked, plan, space, threads, files)
        settings = Settings(threads=threads, memory=memory, device_memory=asked["device_memory"],
                            explain=frozenset(asked["explain"]))
        made = WorkerRun(plan, source, space, settings, files)
    except (SeqloomError, OSError) as error:
        files.close()
        return _refusal(_text(error))
    _forget_idle()
    with _lock:
        former, _runs[_key(asked["run"])] = _runs.get(_key(asked["run"])), made
    if former:
        former.close()
    import socket

    cuda = any(placed.stage.backend == "cuda" for placed in made.plan.working("unit"))
    return json.dumps({"host": socket.gethostname(), "pid": os.getpid(), "threads": threads, "memory": memory,
                       "cuda": cuda, "sees": not isinstance(source, SentSource)}).encode()


def _written_here(plan: Plan, files: ExitStack) -> Plan:
    """The plan with files in a folder of this worker in the place of those that the caller writes beside its results:
    what units leave for them is sent with their results."""
    named = [info.name for info in option_infos(plan.family.Options) if info.output]
    wanted = [name for name in named if getattr(plan.options, name) is not None]
    if not wanted:
        return plan
    folder = files.enter_context(TemporaryDirectory(prefix="seqloom-parts-"))
    plan = replace(plan, options=replace(plan.options, **{name: os.path.join(folder, name) for name in wanted}))
    for placed in plan.stages:
        placed.stage.begin(plan.options)
    return plan


def _source(asked: dict[str, Any], plan: Plan, space: SearchSpace, threads: int, files: ExitStack) -> VolumeSource:
    """The databases where this worker sees them all, else what is sent of them.

    Raises:
        InputError: one of them is another one here.
    """
    paths = [database["path"] for database in asked["databases"]]
    if not _sees(paths):
        return SentSource(plan.family.target, asked["alphabet"], space)
    source = files.enter_context(opened(paths, plan.family.target, kept_pick(asked), asked["memory"], threads))
    for then, now in zip(asked["databases"], source.fingerprints(), strict=True):
        if then["fingerprint"] != now["fingerprint"]:
            raise InputError(f"{now['path']} is another database there ({now['sequences']:,} sequences, here "
                             f"{then['sequences']:,}); give workers the same one, or take it away and it is sent")
    return source


def _sees(paths: Sequence[str]) -> bool:
    """Whether all databases are files here; what was given to the caller in memory has a name that is no whole path."""
    return all(os.path.isabs(path) and os.path.exists(path) for path in paths)


def _budget(asked: int | None, limit: int | None, on_host: int) -> int | None:
    """Bytes that a run's data may take: of what was asked for, else of Dask's limit, else of what the host has left."""
    if asked is None and limit:
        asked = int(limit * USABLE)
    if asked is not None:
        return data_budget(asked, reading_share(asked))
    spare = available_bytes()
    return None if spare is None else spare * 4 // 5 // max(1, on_host)


def begin(run: str, request: bytes) -> bytes:
    """Take over how a run is cut up: JSON of batches, volumes, flight, batches_kept and volumes_kept."""
    asked = json.loads(request)
    units = UnitPlan(tuple((a, b) for a, b in asked["batches"]), tuple(Span(*span) for span in asked["volumes"]))
    with _lock:
        mine = _runs[_key(run)]
    mine.begin(units, asked["flight"], asked["batches_kept"], asked["volumes_kept"])
    return b"{}"


def unit(run: str, attempt: str, batch: int, volume: int, cells: int, ahead: str, queries: bytes,
         residues: bytes | None = None) -> bytes:
    """Carry out a unit; its result, or what went wrong: ``error`` and ``cancelled``, as ``packed``."""
    from distributed import get_worker

    try:
        worker = get_worker()
        with _lock:
            mine = _runs.get(_key(run))
        if mine is None:
            return packed({"error": "the worker has let go of the run", "cancelled": False})
        return mine.unit(Unit(batch, volume, cells), json.loads(ahead), queries, residues,
                         lambda done: worker.log_event(f"seqloom-{run}", [attempt, done]))
    except Exception as error:
        return packed({"error": _text(error), "cancelled": isinstance(error, Cancelled)})


def stop(run: str, dask_worker: Any) -> None:
    """Have the units of a run that are at work here end soon. Called on the worker's event loop."""
    with _lock:
        mine = _runs.get((dask_worker.address, run))
    if mine:
        mine.progress.cancellation.cancel()


def forget(run: str, dask_worker: Any) -> None:
    """Let go of all that is held for a run."""
    with _lock:
        mine = _runs.pop((dask_worker.address, run), None)
    if mine:
        mine.close()


def _forget_idle() -> None:
    """Let go of runs whose caller has gone without a word."""
    now = time.monotonic()
    with _lock:
        idle = [key for key, run in _runs.items() if not run.active and now - run.used > FORGOTTEN_AFTER]
        gone = [_runs.pop(key) for key in idle]
    for run in gone:
        run.close()


def _refusal(why: str) -> bytes:
    return json.dumps({"refused": why}).encode()


def _text(error: BaseException) -> str:
    """What went wrong, with options as they are typed, for the caller's own error."""
    if isinstance(error, SeqloomError) and error.args:
        return str(error.args[0])
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return f"{type(error).__name__}: {error}"
