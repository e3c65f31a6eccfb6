"""A run on a cluster, as its caller sees it: workers are checked, and an executor carries units to them."""

import asyncio
import json
import sys
import time
import uuid
from collections import OrderedDict, deque
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Self, TypeVar

from ..core.context import Queries, SearchSpace
from ..core.engine.engine import Engine
from ..core.engine.planning import READERS, Planner, Settings
from ..core.errors import Cancelled, ClusterError
from ..core.options import option_infos
from ..core.pipeline import Plan
from ..core.ports import Unit, UnitPlan, UnitResult, VolumeSource
from ..storage.sequences.sources import Pick
from . import worker as remote
from .connection import connected, seconds
from .messages import from_batch, to_result, to_stats, unpacked
from .versions import identity

if TYPE_CHECKING:
    from distributed import Client

T = TypeVar("T")

ATTEMPTS = 3
"""Times that a unit is tried."""
AHEAD = 1
"""Units that wait at a worker for the one at work to end, so that what they need is there by then."""
PULSE = 1.0
"""Seconds between two looks at the cluster."""
PAYLOADS = 4
"""Batches and volumes whose bytes are kept for the next worker that wants them."""


class LostError(Exception):
    """A worker is lost."""


@dataclass
class Worker:
    """A worker as its caller knows it.

    Attributes:
        address, host, pid, threads: of its process.
        memory: bytes for the run's data there; None without a limit.
        cuda: whether its units use a device; then one is at work at a time.
        sees: whether it reads the databases itself.
        flight: units that it works on side by side.
        active: attempts that it has.
        volumes: those that it has had, the last one last.
        held: what was sent to it and stays there, by kind and number.
        moved: when a unit last came on there, by ``time.monotonic``.
        units, seconds, waited, sent, received, failed: what it did: seconds of work and of waiting for it, bytes, and
            attempts that failed.
    """

    address: str
    host: str = ""
    pid: int = 0
    threads: int = 1
    memory: int | None = None
    cuda: bool = False
    sees: bool = True
    flight: int = 1
    active: "set[Attempt]" = field(default_factory=set)
    volumes: "OrderedDict[int, None]" = field(default_factory=OrderedDict)
    held: "OrderedDict[tuple[str, int], asyncio.Task]" = field(default_factory=OrderedDict)
    moved: float = 0.0
    units: int = 0
    seconds: float = 0.0
    waited: float = 0.0
    sent: int = 0
    received: int = 0
    failed: int = 0

    def account(self) -> dict[str, Any]:
        """What it did, as plain data."""
        return {"worker": self.address, "host": self.host, "pid": self.pid, "threads": self.threads,
                "reads": "databases" if self.sees else "what is sent", "units": self.units,
                "seconds": round(self.seconds, 3), "waited": round(self.waited, 3), "sent": self.sent,
                "received": self.received, "failed": self.failed}


@dataclass(eq=False)
class Attempt:
    """A unit at a worker.

    Attributes:
        told: cells that it said are done.
        lost: why it was given up; "" if it wasn't.
    """

    unit: Unit
    worker: Worker
    name: str
    told: int = 0
    lost: str = ""
    future: "Future[bytes]" = field(default_factory=Future)


@contextmanager
def session(cluster: Any, plan: Plan, source: VolumeSource, space: SearchSpace, pick: Pick | None, threads: int,
            memory: int | None, device_memory: int | None, explain: frozenset[int]) -> "Iterator[Session]":
    """A cluster whose workers can take part in a run, for as long as this lasts.

    Args:
        cluster: see ``connection.connected``.
        plan: what runs.
        source: all that is searched, as the caller sees it.
        space, pick: of the run.
        threads: of workers that are started for it.
        memory, device_memory: bytes that each worker may take.
        explain: targets that are followed.

    Raises:
        ClusterError: nobody answers, or a worker has other versions or databases.
        UsageError: the run writes files beside its results, which workers can't.
    """
    for info in option_infos(plan.family.Options):
        if info.output and getattr(plan.options, info.name) is not None:
            raise ClusterError(f"{info.flag} is written by the process that searches; leave it or --cluster out")
    with connected(cluster, threads) as (client, own):
        run = uuid.uuid4().hex
        request = {
            "run": run, "identity": identity(), "plan": plan.provenance(), "own": bool(own),
            "slots": [placed.name for placed in plan.stages], "space": asdict(space),
            "databases": [{name: base[name] for name in ("path", "fingerprint", "sequences")}
                          for base in source.fingerprints()],
            "pick": asdict(pick) if pick else None, "memory": memory, "device_memory": device_memory,
            "explain": sorted(explain)}
        made = Session(client, run, request)
        try:
            made.greet_all(own or 1)
            yield made
        finally:
            made.close()


class Session:
    """What a caller holds of a cluster for one run.

    Attributes:
        workers: those that can take part, by address.
        gone: those that have left.
        refused: addresses of those that can't take part.
        told: words of how far an attempt is: its name, cells that are done.
        heard: when the scheduler last answered, by ``time.monotonic``.
    """

    def __init__(self, client: "Client", run: str, request: Mapping[str, Any]) -> None:
        self.client, self.run = client, run
        self._request = request
        self._loop: asyncio.AbstractEventLoop = client.loop.asyncio_loop  # type: ignore[union-attr]
        self.workers: dict[str, Worker] = {}
        self.gone: list[Worker] = []
        self.failed = ""
        self.told: deque[tuple[str, int]] = deque()
        self.refused: set[str] = set()
        self._seen: dict[str, Any] = {}
        self._beats: dict[str, tuple[float, float]] = {}
        self.heard = time.monotonic()
        self._watching = self.start(self._watch())
        client.subscribe_topic(f"seqloom-{run}", self._hear)

    # ---- talking

    def start(self, work: Coroutine[Any, Any, Any]) -> Future:
        """Have a coroutine carried out by the client's event loop."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    async def call(self, worker: str, function: Any, *args: Any, key: str, sending: Sequence[Any] = ()) -> bytes:
        """What a function gives that is carried out by a worker.

        Args:
            args: plain, before ``sending``, futures of what the worker has.
        """
        future = self.client.submit(function, *args, *sending, key=key, workers=[worker], allow_other_workers=False,
                                    pure=False)
        try:
            # Dask gathers the data of several at a time: who is given up doesn't take the others with it.
            gathering = asyncio.ensure_future(self.client.gather(future, asynchronous=True))
            gathering.add_done_callback(_looked_at)
            return await asyncio.shield(gathering)
        finally:
            future.release()

    async def send(self, worker: str, data: bytes) -> Any:
        """Bring data to a worker; the future of them."""
        [future] = await self.client.scatter([data], workers=[worker], hash=False, asynchronous=True,
                                             timeout=seconds("silence"))
        return future

    async def _tell_all(self, function: Any) -> None:
        with suppress(Exception):
            await asyncio.wait_for(self.client.run(function, self.run, on_error="ignore", asynchronous=True), 5)

    def stop(self) -> None:
        """Have the run's units end soon wherever they are."""
        self.start(self._tell_all(remote.stop))

    # ---- watching

    async def _watch(self) -> None:
        """Look at the cluster now and then. Nothing here waits without an end."""
        while self.client.status in ("running", "connecting"):
            with suppress(OSError, TimeoutError, asyncio.TimeoutError):
                identity = await asyncio.wait_for(self.client.scheduler.identity(), seconds("silence"))  # type: ignore[union-attr]
                now = time.monotonic()
                for address, facts in identity["workers"].items():
                    if self._beats.get(address, (0.0, 0.0))[0] != facts["last_seen"]:
                        self._beats[address] = facts["last_seen"], now
                self._seen, self.heard = identity["workers"], now
            await asyncio.sleep(PULSE)

    def _hear(self, event: tuple[float, Any]) -> None:
        attempt, done = event[1]
        self.told.append((attempt, done))

    def check(self) -> None:
        """Raise where the scheduler is lost.

        Raises:
            ClusterError: it is.
        """
        if self.client.status not in ("running", "connecting"):
            raise ClusterError("the cluster's scheduler is lost: it has ended, or the connection to it was cut")
        if time.monotonic() - self.heard > seconds("silence") + PULSE:
            raise ClusterError(f"the cluster's scheduler hasn't answered for {seconds('silence'):.0f} seconds")

    def present(self) -> dict[str, Any]:
        """What the scheduler says of each worker, by address."""
        return dict(self._seen)

    def loss(self, address: str) -> str:
        """Why a worker is taken for lost; empty if it isn't."""
        if address not in self._seen:
            return "is lost"
        if time.monotonic() - self._beats[address][1] > seconds("silence"):
            return f"gave no sign of life for {seconds('silence'):.0f} seconds"
        return ""

    async def unless_lost(self, address: str, work: Coroutine[Any, Any, T]) -> T:
        """What ``work`` gives that waits for a worker.

        Raises:
            LostError: the worker is lost, or it takes too long.
        """
        task, end = asyncio.ensure_future(work), time.monotonic() + seconds("stuck")
        try:
            while not task.done():
                await asyncio.wait([task], timeout=PULSE)
                if not task.done() and (why := self.loss(address)):
                    raise LostError(why)
                if not task.done() and time.monotonic() > end:
                    raise LostError("doesn't answer")
        finally:
            task.cancel()
        return task.result()

    # ---- workers

    def greet_all(self, least: int) -> None:
        """Check all workers that are there; waits until there are ``least``.

        Raises:
            ClusterError: none comes, or one can't take part.
        """
        end = time.monotonic() + seconds("workers")
        while len(present := self.present()) < least:
            self.check()
            if time.monotonic() > end:
                raise ClusterError(f"the cluster has {len(present)} workers after {seconds('workers'):.0f} seconds, of "
                                   f"{least} that are wanted")
            time.sleep(0.02)
        while not self.workers:
            greetings = {self.start(self.greet(address)): address for address in self.present()}
            while wait(greetings, PULSE).not_done:
                self.check()
            for greeting in greetings:
                with suppress(LostError):  # another one may come in its place
                    self.welcome(greeting.result())
            if not self.workers and time.monotonic() > end:
                raise ClusterError(f"no worker of the cluster has answered for {seconds('workers'):.0f} seconds")

    async def greet(self, address: str) -> Worker:
        """Check a worker.

        Raises:
            ClusterError: it can't take part.
            LostError: it is lost.
        """
        facts = self.present().get(address, {})
        hosts = [other.get("host") for other in self.present().values()]
        asked = {**self._request, "on_host": hosts.count(facts.get("host"))}
        try:
            answer = await self.unless_lost(address, self.call(
                address, remote.hello, json.dumps(asked).encode(), key=f"seqloom-hello-{uuid.uuid4().hex}"))
        except LostError:
            raise
        except Exception as error:  # whatever its program makes of the request
            await asyncio.sleep(2 * PULSE)
            if (why := self.loss(address)) or self.client.status != "running":
                raise LostError(why) from error
            raise ClusterError(f"worker {address} can't take part: {type(error).__name__}: {error}; is the same "
                               "version of seqloom installed there?") from error
        found = json.loads(answer)
        if "refused" in found:
            raise ClusterError(f"worker {address} can't take part: {found['refused']}")
        made = Worker(address, found["host"], found["pid"], found["threads"], found["memory"], found["cuda"],
                      found["sees"], moved=time.monotonic())
        return made

    async def have_begin(self, worker: Worker, request: Mapping[str, Any]) -> Worker:
        """Tell a worker how the run is cut up."""
        await self.unless_lost(worker.address, self.call(
            worker.address, remote.begin, self.run, json.dumps(request).encode(),
            key=f"seqloom-begin-{uuid.uuid4().hex}"))
        return worker

    def welcome(self, worker: Worker) -> None:
        """It takes part from now on; what it did before it was taken for lost counts as well."""
        for before in [other for other in self.gone if other.address == worker.address]:
            self.gone.remove(before)
            for name in ("units", "seconds", "waited", "sent", "received", "failed"):
                setattr(worker, name, getattr(worker, name) + getattr(before, name))
        self.workers[worker.address] = worker

    @property
    def settings(self) -> Settings:
        """How units may use the machine of the least of all workers."""
        memories = [worker.memory for worker in self.workers.values() if worker.memory is not None]
        return Settings(threads=min(worker.threads for worker in self.workers.values()),
                        memory=min(memories, default=None), workers=len(self.workers),
                        sent=not all(worker.sees for worker in self.workers.values()))

    def accounts(self) -> list[dict[str, Any]]:
        """What each worker did."""
        return [worker.account() for worker in [*self.gone, *self.workers.values()]
                if worker.units or worker.failed or worker.address in self.workers]

    def close(self) -> None:
        """Let workers forget the run."""
        with suppress(Exception):
            self.client.unsubscribe_topic(f"seqloom-{self.run}")
        if self.client.status == "running":
            with suppress(Exception):
                self.start(self._tell_all(remote.forget)).result(6)
        self._watching.cancel()

    def executor(self, engine: Engine, units: UnitPlan) -> "ClusterExecutor":
        """What carries the units of an engine to the workers."""
        return ClusterExecutor(self, engine.queries, engine.searched, engine.planner, engine, units)


class ClusterExecutor:
    """An ``Executor`` on a cluster: a worker that has room gets the next unit, one of a volume that it holds if it can.

    Args:
        engine: whose totals and trace get what workers say.
    """

    def __init__(self, session: Session, queries: Queries, searched: VolumeSource, planner: Planner, engine: Engine,
                 units: UnitPlan) -> None:
        self._session, self._queries, self._searched = session, queries, searched
        self._planner, self._engine, self._units = planner, engine, units
        self._progress, self._cancellation = engine.progress, engine.progress.cancellation
        self._waiting: dict[int, deque[Unit]] = {}
        self._tries: dict[Unit, list[str]] = {}
        self._flying: dict[Future, Attempt] = {}
        self._greetings: dict[Future, str] = {}
        self._at: dict[int, int] = {}
        self._alone_since: float | None = None
        self._troubled = 0.0
        self._stopping: float | None = None
        self._payloads: OrderedDict[tuple[str, int], asyncio.Task] = OrderedDict()
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
        worker.flight = 1 if worker.cuda else planner.flight(units)
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
                if alone or worker.address not in self._tries.get(unit, ()):
                    self._waiting[volume].remove(unit)
                    return unit
        return None

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
        sending = [await self._held(worker, "batch", unit.batch)]
        if not worker.sees:
            sending.append(await self._held(worker, "volume", unit.volume))
        return await session.call(worker.address, remote.unit, session.run, attempt.name, *unit, json.dumps(ahead),
                                  key=attempt.name, sending=sending)

    async def _held(self, worker: Worker, kind: str, number: int) -> Any:
        """The future of a batch or a volume that a worker has, which is sent there if it must be."""
        key = kind, number
        task = worker.held.get(key)
        if task is None or (task.done() and (task.cancelled() or task.exception() or task.result().cancelled())):
            task = worker.held[key] = asyncio.ensure_future(self._bring(worker, kind, number))
            task.add_done_callback(_looked_at)
        worker.held.move_to_end(key)
        same = [other for other in worker.held if other[0] == kind]
        for other in same[: -(worker.flight + AHEAD + 1)]:
            del worker.held[other]  # Dask drops there what nobody has a future of
        return await asyncio.shield(task)

    async def _bring(self, worker: Worker, kind: str, number: int) -> Any:
        data = await asyncio.shield(self._payload(kind, number))
        worker.sent += len(data)
        return await self._session.send(worker.address, data)

    def _payload(self, kind: str, number: int) -> asyncio.Task:
        """The bytes of a batch or a volume, made once for several workers."""
        key = kind, number
        task = self._payloads.get(key)
        if task is None or (task.done() and task.exception()):
            task = self._payloads[key] = asyncio.ensure_future(asyncio.to_thread(self._bytes, kind, number))
            task.add_done_callback(_looked_at)
        self._payloads.move_to_end(key)
        while len(self._payloads) > PAYLOADS:
            self._payloads.popitem(last=False)
        return task

    def _bytes(self, kind: str, number: int) -> bytes:
        if kind == "batch":
            return from_batch(self._queries.take(*self._units.batches[number]))
        return from_batch(self._searched.read(self._units.volumes[number]), names=False)

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
        result, trace = to_result(unit, facts, arrays["records"])
        self._engine.runner.add(to_stats(facts["indexes"]))
        self._engine.trace.seen.update(trace.seen)
        self._engine.trace.lost.update(trace.lost)
        worker.units += 1
        worker.seconds += facts["seconds"]
        worker.waited += facts["waited"]
        worker.received += len(future.result())
        self._progress.add(unit.cells - attempt.told)
        return result

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


def _looked_at(task: asyncio.Future) -> None:
    """What went wrong in it is told to whoever waits for it, if anybody still does."""
    if not task.cancelled():
        task.exception()
