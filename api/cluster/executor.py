"""Carries the units of a run to the workers of a cluster, and those of lost ones to others."""

import json
import os
import sys
import time
from collections import deque
from collections.abc import Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from typing import TYPE_CHECKING, Any, Self

from ..core import output_files
from ..core.context import Queries
from ..core.engine.balance import sooner_elsewhere
from ..core.engine.engine import Engine
from ..core.engine.planning import READERS, Planner, Settings
from ..core.errors import Cancelled, ClusterError, StoreError
from ..core.ports import SlotStats, Unit, UnitPlan, UnitResult, VolumeSource
from . import worker as remote
from .connection import seconds
from .members import Attempt, LostError, Worker
from .messages import to_files, to_result, to_stats, unpacked
from .payloads import AHEAD, Payloads

if TYPE_CHECKING:
    from .session import Session

ATTEMPTS = 3
"""Times that a unit is tried."""
FEW = 16
"""Units left for each worker from which on it is looked at who ends them sooner."""
PULSE = 1.0
"""Seconds between two looks at the cluster."""


class ClusterExecutor:
    """An ``Executor`` on a cluster: a worker that has room gets the next unit, one of a volume that it holds if it can.

    Args:
        engine: whose totals and trace get what workers say.
    """

    idle = False

    def __init__(self, session: "Session", queries: Queries, searched: VolumeSource, planner: Planner, engine: Engine,
                 units: UnitPlan) -> None:
        self._session, self._queries, self._searched = session, queries, searched
        self._planner, self._engine, self._units = planner, engine, units
        self._progress, self._cancellation = engine.progress, engine.progress.cancellation
        self._parts = {placed.name: folder for placed in engine.plan.stages
                       if (folder := placed.stage.parts(engine.plan.options))}
        self._waiting: dict[int, deque[Unit]] = {}
        self._tries: dict[Unit, list[str]] = {}
        self._flying: dict[Future, Attempt] = {}
        self._greetings: dict[Future, str] = {}
        self._at: dict[int, int] = {}
        self._alone_since: float | None = None
        self._troubled = 0.0
        self._stopping: float | None = None
        self._payloads = Payloads(queries, searched, units, session.send, bool(self._parts))
        self._count = 0

    def __enter__(self) -> Self:
        session = self._session
        beginnings = [session.start(session.have_begin(worker, self._request(worker)))
                      for worker in session.workers.values()]
        while wait(beginnings, PULSE).not_done:
            session.check()
        for beginning, worker in zip(beginnings, [*session.workers.values()], strict=True):
            if beginning.exception():
                self._dismiss(worker, "doesn't begin")
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, traceback: object) -> None:
        if error:
            self._session.stop()
        for future in [*self._flying, *self._greetings]:
            future.cancel()

    def submit(self, units: Sequence[Unit]) -> None:
        for unit in units:
            self._waiting.setdefault(unit.volume, deque()).append(unit)

    def finished(self, timeout: float) -> list[UnitResult] | None:
        self._session.check()
        self._digest()
        if self._cancellation.requested:
            self._end_soon()
        elif self._session.heard > self._troubled:
            self._assign()
        waits = any(self._waiting.values()) and not self._cancellation.requested
        if not self._flying and not waits:
            return None
        done, _ = wait([*self._flying, *self._greetings], timeout, FIRST_COMPLETED)
        if not self._flying and not self._greetings:
            time.sleep(timeout)
        self._welcome([future for future in self._greetings if future in done])
        return [result for future in [*self._flying] if future in done and (result := self._result(future))]

    # ---- workers

    def _request(self, worker: Worker) -> dict[str, Any]:
        """How a worker is to work on the units."""
        units = self._units
        planner = Planner(self._engine.plan, self._queries, self._searched, self._engine.space, Settings(
            threads=worker.threads, memory=worker.memory, device_memory=self._engine.settings.device_memory))
        worker.flight = 1 if worker.cuda or self._parts else planner.flight(units)
        return {"batches": [list(batch) for batch in units.batches],
                "volumes": [[v.first, v.last, v.total_residues, v.longest] for v in units.volumes],
                "flight": worker.flight, "batches_kept": worker.flight + AHEAD + 1,
                "volumes_kept": max(planner.volumes_kept(units), worker.flight)}

    def _digest(self) -> None:
        """Take in what was seen and heard of workers since."""
        session, now = self._session, time.monotonic()
        named = {attempt.name: attempt for attempt in self._flying.values()}
        while session.told:
            name, done = session.told.popleft()
            if (attempt := named.get(name)) and done > attempt.told:
                self._progress.add(done - attempt.told)
                attempt.told, attempt.worker.moved = done, now
        present = session.present()
        for worker in [*session.workers.values()]:
            if why := session.loss(worker.address):
                self._dismiss(worker, why)
            elif worker.active and now - worker.moved > seconds("stuck"):
                self._dismiss(worker, f"made no progress for {seconds('stuck'):.0f} seconds")
        busy = {*session.workers, *session.refused, *self._greetings.values()}
        for address in present:
            if address not in busy and not session.loss(address):
                self._greetings[session.start(self._join(address))] = address
        if session.workers:
            self._alone_since = None
        else:
            self._alone_since = self._alone_since or now
            if now - self._alone_since > seconds("workers") and not self._greetings:
                raise ClusterError(f"no worker is left, and none has come for {seconds('workers'):.0f} seconds")

    async def _join(self, address: str) -> Worker:
        """A worker that has come while the run is under way."""
        worker = await self._session.greet(address)
        return await self._session.have_begin(worker, self._request(worker))

    def _welcome(self, greetings: Sequence[Future]) -> None:
        for greeting in greetings:
            address = self._greetings.pop(greeting)
            if isinstance(greeting.exception(), LostError):
                continue
            if greeting.exception():
                self._session.refused.add(address)
                print(f"seqloom: {greeting.exception()}; the others go on without it", file=sys.stderr)
            else:
                self._session.welcome(greeting.result())

    def _dismiss(self, worker: Worker, why: str) -> None:
        """Do without a worker; its units are done by others."""
        self._session.workers.pop(worker.address, None)
        self._session.gone.append(worker)
        for attempt in worker.active:
            attempt.lost = f"worker {worker.address} {why}"
            attempt.future.cancel()
        worker.held.clear()

    # ---- units

    def _assign(self) -> None:
        """Give units to workers that have room, first to those that have nothing to do."""
        for ahead in range(AHEAD + 1):
            workers = sorted(self._session.workers.values(), key=lambda worker: len(worker.active) - worker.flight)
            left = sum(map(len, self._waiting.values()))
            if ahead and left <= len(workers):  # the last ones go to whoever is done first
                return
            for worker in workers:
                while len(worker.active) < worker.flight + ahead and (unit := self._next(worker)):
                    self._begin(worker, unit)

    def _next(self, worker: Worker) -> Unit | None:
        """The unit that a worker had best do next: of a volume that it has, or else of one that few are at."""
        known = [volume for volume in reversed(worker.volumes) if self._waiting.get(volume)]
        others = sorted((volume for volume, units in self._waiting.items() if units and volume not in worker.volumes),
                        key=lambda volume: self._at.get(volume, 0))
        alone = len(self._session.workers) == 1
        for volume in (*known, *others):
            for unit in self._waiting[volume]:
                tried = worker.address in self._tries.get(unit, ())
                if alone or not (tried or self._sooner_elsewhere(worker, unit)):
                    self._waiting[volume].remove(unit)
                    return unit
        return None

    def _sooner_elsewhere(self, worker: Worker, unit: Unit) -> bool:
        """Whether a unit had better wait for a quicker worker; looked at when few are left alone."""
        if sum(map(len, self._waiting.values())) > FEW * len(self._session.workers):
            return False
        waiting = sum(other.cells for units in self._waiting.values() for other in units)
        others = [other.load for other in self._session.workers.values()
                  if other is not worker and other.address not in self._tries.get(unit, ())]
        return sooner_elsewhere(unit.cells, waiting, worker.load, others)

    def _begin(self, worker: Worker, unit: Unit) -> None:
        self._count += 1
        if not worker.active:
            worker.moved = time.monotonic()
        attempt = Attempt(unit, worker, f"seqloom-{self._session.run}-{unit.batch}-{unit.volume}-{self._count}")
        worker.volumes.pop(unit.volume, None)
        worker.volumes[unit.volume] = None
        worker.active.add(attempt)
        self._at[unit.volume] = self._at.get(unit.volume, 0) + 1
        ahead = self._ahead(worker, unit)
        attempt.future = self._session.start(self._carry_out(attempt, ahead))
        self._flying[attempt.future] = attempt

    def _ahead(self, worker: Worker, unit: Unit) -> list[int]:
        """Volumes that a worker reads while it is at a unit: none that must be sent."""
        if not worker.sees or self._waiting.get(unit.volume):
            return []
        return [attempt.unit.volume for attempt in worker.active if attempt.unit.volume != unit.volume][:READERS]

    async def _carry_out(self, attempt: Attempt, ahead: list[int]) -> bytes:
        """A unit, from what it needs to what it gives, as bytes."""
        unit, worker, session = attempt.unit, attempt.worker, self._session
        sending = [await self._payloads.held(worker, "batch", unit.batch)]
        if not worker.sees:
            sending.append(await self._payloads.held(worker, "volume", unit.volume))
        return await session.call(worker.address, remote.unit, session.run, attempt.name, *unit, json.dumps(ahead),
                                  key=attempt.name, sending=sending)

    def _result(self, future: Future) -> UnitResult | None:
        """What became of an attempt: a result, or None where its unit is done again.

        Raises:
            ClusterError: the unit has failed too often.
        """
        attempt = self._flying.pop(future)
        unit, worker = attempt.unit, attempt.worker
        worker.active.discard(attempt)
        self._at[unit.volume] -= 1
        worker.moved = time.monotonic()
        if future.cancelled() or future.exception():
            error = None if future.cancelled() else future.exception()
            self._troubled = time.monotonic()  # nothing begins until the scheduler has answered again
            return self._again(attempt, attempt.lost or f"worker {worker.address} lost it ({type(error).__name__})")
        facts, arrays = unpacked(future.result())
        if "error" in facts:
            if facts["cancelled"] and self._cancellation.requested:
                return UnitResult(unit, error=Cancelled("interrupted"))
            return self._again(attempt, f"worker {worker.address}: {facts['error']}")
        self._keep_parts(to_files(facts, arrays))
        result, trace = to_result(unit, facts, arrays["records"])
        result = result._replace(stats=self._planned(result.stats))
        self._engine.runner.add(self._planned(to_stats(facts["indexes"])))
        self._engine.trace.seen.update(trace.seen)
        self._engine.trace.lost.update(trace.lost)
        worker.units += 1
        worker.cells += unit.cells
        worker.seconds += facts["seconds"]
        worker.waited += facts["waited"]
        worker.received += len(future.result())
        self._progress.add(unit.cells - attempt.told)
        return result

    def _planned(self, stats: Mapping[str, SlotStats]) -> dict[str, SlotStats]:
        """Statistics of slots that the run has here too: a worker's device may bring others, for its own speed."""
        slots = {filled.name for filled in self._engine.plan.stages}
        return {name: stat for name, stat in stats.items() if name in slots}

    def _keep_parts(self, files: Mapping[tuple[str, str], bytes]) -> None:
        """Keep the files that a unit left, before it is kept itself.

        Raises:
            StoreError: one can't be written.
            ClusterError: one has a name that leads elsewhere.
        """
        for (slot, name), data in files.items():
            if slot not in self._parts or os.path.basename(name) != name or name.startswith("."):
                raise ClusterError(f"a worker sent a file that nobody asked for: {slot} {name}")
            path = self._parts[slot] / name
            try:
                with output_files.binary(path) as stream:
                    stream.write(data)
            except OSError as error:
                raise StoreError(f"{path}: {error.strerror or error}") from None

    def _again(self, attempt: Attempt, why: str) -> UnitResult | None:
        """Have a unit done again, elsewhere if there is another worker."""
        unit = attempt.unit
        attempt.worker.failed += 1
        self._progress.add(-attempt.told)
        if self._cancellation.requested:
            return UnitResult(unit, error=Cancelled("interrupted"))
        tries = self._tries.setdefault(unit, [])
        tries.append(attempt.worker.address)
        if len(tries) >= ATTEMPTS:
            raise ClusterError(f"a part of the work failed {ATTEMPTS} times, at last since {why}")
        if all(address in tries for address in self._session.workers):
            tries[:] = [""] * len(tries)  # whoever is there may try once more
        self._waiting.setdefault(unit.volume, deque()).appendleft(unit)
        return None

    def _end_soon(self) -> None:
        """A cancelled run: units at work are told to stop, and given up if they don't."""
        now = time.monotonic()
        if self._stopping is None:
            self._stopping = now
            self._session.stop()
        elif now - self._stopping > seconds("stop"):
            for future in self._flying:
                future.cancel()
