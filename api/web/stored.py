"""The runs of the store, as a process that opened it found them: the server opens no store itself."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .children import Helpers, TaskError

EVERY, EVERY_AT_WORK = 2.0, 15.0
"""Seconds between two looks whether the store has changed; while searches run, which the server knows anyway, it always
has."""
FIRST = 15.0
"""Seconds that a request waits for the first list, at most, or for one that has a run which the last one hadn't."""


class StoredRuns:
    """A list that is looked at beside requests, so that none has to wait for it.

    Args:
        results: path of the store.
    """

    def __init__(self, helpers: Helpers, results: Path) -> None:
        self._helpers, self._results = helpers, results
        self._runs: list[dict[str, Any]] | None = None
        self._stamp: Any = None
        self._looking: asyncio.Task[None] | None = None

    async def watch(self, at_work: Callable[[], bool]) -> None:
        """Keep the list up to date, until cancelled."""
        loop = asyncio.get_running_loop()
        looked = -EVERY_AT_WORK
        while True:
            if not at_work() or loop.time() - looked > EVERY_AT_WORK:
                await asyncio.wait({self._start()})
                looked = loop.time()
            await asyncio.sleep(EVERY)

    async def all(self) -> list[dict[str, Any]]:
        """Runs as they were a moment ago."""
        if self._runs is None:
            await asyncio.wait({self._start()}, timeout=FIRST)
        return self._runs or []

    async def find(self, id: str) -> dict[str, Any] | None:
        """A run; the store is looked at anew for one that wasn't there a moment ago."""
        found = next((run for run in await self.all() if run["id"] == id), None)
        if found is None and self._now() != self._stamp:
            await asyncio.wait({self._start()}, timeout=FIRST)
            found = next((run for run in self._runs or [] if run["id"] == id), None)
        return found

    def forget(self, id: str) -> None:
        """Leave out a run that was deleted."""
        self._runs = [run for run in self._runs or [] if run["id"] != id]

    def _start(self) -> "asyncio.Task[None]":
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look())
        return self._looking

    async def _look(self) -> None:
        stamp = self._now()
        at_work = any(run["state"] == "running" for run in self._runs or [])  # one that is killed changes no file
        if self._runs is not None and stamp == self._stamp and not at_work:
            return
        try:
            self._runs = await self._helpers.ask({"do": "runs", "results": str(self._results)})
            self._stamp = stamp
        except TaskError:
            pass  # the list stays as it was

    def _now(self) -> Any:
        """What changes whenever a run comes to the store, changes or goes."""
        found: list[Any] = []
        for path in (self._results, f"{self._results}.wal", f"{self._results}.runs"):
            try:
                state = os.stat(path)
                found.append((state.st_mtime_ns, state.st_size))
            except OSError:
                found.append(None)
        return found
