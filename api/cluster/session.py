"""A run on a cluster, as its caller sees it: workers are checked, watched and spoken to."""

import asyncio
import json
import time
import uuid
from collections import deque
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from contextlib import contextmanager, suppress
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, TypeVar

from ..core.context import SearchSpace
from ..core.engine.engine import Engine
from ..core.engine.planning import Settings
from ..core.errors import ClusterError
from ..core.pipeline import Plan
from ..core.ports import UnitPlan, VolumeSource
from ..storage.sequences.sources import Pick
from . import worker as remote
from .connection import connected, seconds
from .executor import PULSE, ClusterExecutor
from .members import LostError, Worker, looked_at
from .versions import identity

if TYPE_CHECKING:
    from distributed import Client

T = TypeVar("T")


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
    """
    with connected(cluster, threads) as (client, own):
        run = uuid.uuid4().hex
        request = {
            "run": run, "identity": identity(), "plan": plan.provenance(), "own": bool(own),
            "alphabet": source.alphabet.name,
            "slots": plan.deciding, "space": asdict(space),
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
            gathering.add_done_callback(looked_at)
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
            for name in ("cells", "units", "seconds", "waited", "sent", "received", "failed"):
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
