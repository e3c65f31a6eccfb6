"""Batches and volumes as bytes: made once, sent to the workers that want them, and kept there for as long as they are
of use."""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Any

from ..core.context import Queries
from ..core.ports import UnitPlan, VolumeSource
from ..core.sequences import SequenceBatch
from .members import Worker, looked_at
from .messages import from_batch

AHEAD = 1
"""Units that wait at a worker for the one at work to end, so that what they need is there by then."""
READY = 4
"""Batches and volumes whose bytes are kept for the next worker that wants them."""


class Payloads:
    """What workers are sent of one run. Used by the event loop of Dask's client alone.

    Args:
        queries, searched, plan: all queries and targets, and how they are cut up.
        send: brings bytes to the worker at an address, and gives their future.
        names: whether volumes of sequences are sent with their names.
    """

    def __init__(self, queries: Queries, searched: VolumeSource, plan: UnitPlan,
                 send: Callable[[str, bytes], Awaitable[Any]], names: bool) -> None:
        self._names = names
        self._queries, self._searched, self._plan, self._send = queries, searched, plan, send
        self._ready: OrderedDict[tuple[str, int], asyncio.Task] = OrderedDict()

    async def held(self, worker: Worker, kind: str, number: int) -> Any:
        """The future of a batch or a volume that a worker has, which is sent there if it must be."""
        key = kind, number
        task = worker.held.get(key)
        if task is None or (task.done() and (task.cancelled() or task.exception() or task.result().cancelled())):
            task = worker.held[key] = asyncio.ensure_future(self._bring(worker, kind, number))
            task.add_done_callback(looked_at)
        worker.held.move_to_end(key)
        same = [other for other in worker.held if other[0] == kind]
        for other in same[: -(worker.flight + AHEAD + 1)]:
            del worker.held[other]  # Dask drops there what nobody has a future of
        return await asyncio.shield(task)

    async def _bring(self, worker: Worker, kind: str, number: int) -> Any:
        data = await asyncio.shield(self._made(kind, number))
        worker.sent += len(data)
        return await self._send(worker.address, data)

    def _made(self, kind: str, number: int) -> asyncio.Task:
        """The bytes of a batch or a volume, made once for several workers."""
        key = kind, number
        task = self._ready.get(key)
        if task is None or (task.done() and task.exception()):
            task = self._ready[key] = asyncio.ensure_future(asyncio.to_thread(self._bytes, kind, number))
            task.add_done_callback(looked_at)
        self._ready.move_to_end(key)
        while len(self._ready) > READY:
            self._ready.popitem(last=False)
        return task

    def _bytes(self, kind: str, number: int) -> bytes:
        if kind == "batch":
            return from_batch(self._queries.take(*self._plan.batches[number]))
        volume = self._searched.read(self._plan.volumes[number])
        if self._names and isinstance(volume, SequenceBatch) and not len(volume.names):
            names = self._searched.info(volume.ordinals).names
            volume = SequenceBatch(volume.alphabet, volume.residues, volume.offsets, volume.ordinals, volume.lower,
                                   volume.soft, volume.hard, names=names, descriptions=[""] * len(names))
        return from_batch(volume, self._names)
