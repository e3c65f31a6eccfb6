"""Who takes part in a run on a cluster, and what each has in hand: plain facts, kept by the caller."""

import asyncio
from collections import OrderedDict
from concurrent.futures import Future
from dataclasses import field
from typing import Any

from seqloom.core.classes import dataclass

from ..core.engine.balance import Load
from ..core.ports import Unit


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
        cells: of the units that it has done.
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
    cells: int = 0
    units: int = 0
    seconds: float = 0.0
    waited: float = 0.0
    sent: int = 0
    received: int = 0
    failed: int = 0

    @property
    def load(self) -> Load:
        """What it has in hand, and how quick it is with all units that it works on side by side."""
        speed = self.flight * self.cells / self.seconds if self.seconds else 0.0
        return Load(sum(attempt.unit.cells - attempt.told for attempt in self.active), speed)

    def account(self) -> dict[str, Any]:
        """What it did, as plain data."""
        return {"worker": self.address, "host": self.host, "pid": self.pid, "threads": self.threads,
                "device": "cuda" if self.cuda else "cpu",
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


def looked_at(task: asyncio.Future) -> None:
    """What went wrong in it is told to whoever waits for it, if anybody still does."""
    if not task.cancelled():
        task.exception()
