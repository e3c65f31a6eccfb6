"""Searches that were asked for: kept on disk from the moment they are accepted, waiting, at work, ended.

A search is a folder named by the identifier of its run: ``request.json`` says what is wanted, ``query`` holds the
queries until the run is complete, ``state.json`` how it ended. One without that is unfinished: a server that starts
takes it up again, and the run goes on where it stopped. Files are written by renaming, so that a server may be killed
anywhere.
"""

import asyncio
import json
import os
import shutil
import time
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from seqloom.core.classes import dataclass

from .children import Child, TaskError
from .kept import KeptPages
from .settings import MAX_WAITING, UPLOADS, Settings

GRACE = 20.0
"""Seconds that a search has to stop in good order before it is killed, which loses what it is just at."""
ENDED = ("complete", "failed", "cancelled", "stopped")


@dataclass(eq=False)
class Search:
    """One that was asked for.

    Attributes:
        id: of the run, too.
        request: pipeline, databases by name, options, title, when it was asked for, the same on the command line.
        state: "queued", "running", "stopping", "complete", "failed", "cancelled", or "stopped" by the time limit.
        outcome: what ended it: hits, queries, seconds; or the error.
        progress: what its process said last.
        late: whether its time is up.
    """

    id: str
    request: Mapping[str, Any]
    state: str = "queued"
    outcome: dict[str, Any] = field(default_factory=dict)
    progress: dict[str, Any] | None = None
    child: Child | None = None
    late: bool = False

    @property
    def can_go_on(self) -> bool:
        """Whether it has ended before it was complete."""
        return self.state in ENDED and self.state != "complete"

    @property
    def fraction(self) -> float | None:
        """Share of the work that is done; None where nobody knows."""
        told = self.progress
        return told["done"] / told["total"] if told and told["total"] else None

    @property
    def left(self) -> float | None:
        """Seconds that the rest will take, about."""
        done = self.fraction
        return self.progress["seconds"] * (1 - done) / done if self.progress and done else None


def write_whole(path: Path, data: bytes) -> None:
    """Write a file that is there whole or not at all, also after a power cut."""
    part = path.with_name(f".{path.name}.part")
    with open(part, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    os.replace(part, path)


class Queue:
    """All searches of a server, some of which run.

    Args:
        paths: of databases, by name.
    """

    def __init__(self, settings: Settings, paths: Mapping[str, str]) -> None:
        self.settings, self.paths = settings, paths
        self.folder, self.pages = settings.folder / "searches", KeptPages(settings.folder / "pages")
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.searches: dict[str, Search] = {}
        self._waiting: deque[Search] = deque()
        self._coming: list[int] = []
        self._running: dict[str, asyncio.Task[None]] = {}
        self._closing = False
        self._load()

    def _load(self) -> None:
        for folder in sorted(self.folder.iterdir()):
            if folder.name.startswith("."):
                shutil.rmtree(folder, ignore_errors=True)  # one that was never accepted
                continue
            try:
                request = json.loads((folder / "request.json").read_bytes())
            except (OSError, ValueError):
                continue
            found = Search(folder.name, request)
            with suppress(OSError, ValueError):
                found.outcome = json.loads((folder / "state.json").read_bytes())
                found.state = found.outcome["state"]
            self.searches[found.id] = found
            if found.state not in ENDED:
                self._waiting.append(found)

    # ---- what requests ask for

    async def add(self, id: str, request: Mapping[str, Any], query: bytes) -> Search:
        """Accept a search; it is on disk when this returns. The server isn't held up by the disk meanwhile.

        Raises:
            TaskError: too many wait already.
        """
        count = len(self._waiting) + len(self._coming)
        stored = sum(waiting.request["bytes"] for waiting in self._waiting) + sum(self._coming)
        if count >= MAX_WAITING or stored > UPLOADS * self.settings.upload:
            raise TaskError("Busy", f"{count:,} searches are waiting already; try again later")
        self._coming.append(len(query))
        try:
            await asyncio.to_thread(self._keep, id, request, query)
        finally:
            self._coming.remove(len(query))
        found = self.searches[id] = Search(id, request)
        self._waiting.append(found)
        self.pump()
        return found

    def _keep(self, id: str, request: Mapping[str, Any], query: bytes) -> None:
        part = self.folder / f".{id}"
        part.mkdir(mode=0o700)
        for name, data in (("query", query), ("request.json", json.dumps(request).encode())):
            write_whole(part / name, data)
        os.rename(part, self.folder / id)

    @property
    def at_work(self) -> bool:
        return bool(self._running)

    def place(self, search: Search) -> int:
        """How many are before one that waits, and itself; 0 for one that doesn't."""
        return self._waiting.index(search) + 1 if search.state == "queued" else 0

    def places(self) -> dict[str, int]:
        """The same of all that wait."""
        return {search.id: place for place, search in enumerate(self._waiting, 1)}

    async def cancel(self, search: Search) -> None:
        """Stop one that waits or runs; what is done of it is kept."""
        if search in self._waiting:
            self._waiting.remove(search)
            search.state = "stopping"
            await self._ended(search, {"state": "cancelled", "error": "cancelled before it began"})
        elif search.state == "running":
            self._stop(search)

    def _stop(self, search: Search) -> None:
        search.state = "stopping"
        if search.child:
            search.child.stop()
        asyncio.get_running_loop().call_later(GRACE, self._kill, search)

    def _time_is_up(self, search: Search) -> None:
        if search.state == "running":
            search.late = True
            self._stop(search)

    def resume(self, search: Search) -> bool:
        """Have one go on that has ended before it was complete; False where nothing is left to do."""
        if not search.can_go_on or not (self.folder / search.id / "query").exists():
            return False
        (self.folder / search.id / "state.json").unlink(missing_ok=True)
        search.state, search.outcome, search.progress, search.late = "queued", {}, None, False
        self._waiting.append(search)
        self.pump()
        return True

    def forget(self, id: str) -> None:
        """Remove what is kept of a search that has ended."""
        self.searches.pop(id, None)
        shutil.rmtree(self.folder / id, ignore_errors=True)
        self.pages.forget(id)

    # ---- at work

    def pump(self) -> None:
        """Begin as many as may run."""
        while self._waiting and len(self._running) < self.settings.searches and not self._closing:
            search = self._waiting.popleft()
            search.state = "running"
            self._running[search.id] = asyncio.create_task(self._carry_out(search))

    async def close(self) -> None:
        """Stop all that run, in good order; the next server goes on with them."""
        self._closing = True
        for id in self._running:
            if child := self.searches[id].child:
                child.stop()
        if self._running:
            await asyncio.wait(self._running.values(), timeout=GRACE)
        for id in self._running:
            self._kill(self.searches[id])

    def _kill(self, search: Search) -> None:
        if search.id in self._running and search.child and (self._closing or search.state == "stopping"):
            search.child.kill()

    async def _carry_out(self, search: Search) -> None:
        limit = self.settings.search_seconds
        alarm = asyncio.get_running_loop().call_later(limit, self._time_is_up, search) if limit else None
        try:
            await self._ended(search, await self._outcome(search))
        except _Closing:
            pass  # the next server goes on with it
        finally:
            if alarm:
                alarm.cancel()
            search.child = None
            self._running.pop(search.id, None)
            self.pump()

    async def _outcome(self, search: Search) -> dict[str, Any]:
        """What a search comes to."""
        try:
            search.child = await Child.start(self._task(search))
            if search.state == "stopping":
                search.child.stop()
            return {"state": "complete", **await search.child.answer(lambda told: setattr(search, "progress", told))}
        except TaskError as error:
            if self._closing:
                raise _Closing from None
            if search.late:
                return {"state": "stopped", "error": self._said_of_late(search)}
            return {"state": "cancelled" if search.state == "stopping" else "failed", "kind": error.kind,
                    "error": self._without_paths(str(error), search)}
        except (OSError, KeyError) as error:
            return {"state": "failed", "kind": type(error).__name__, "error": str(error)}

    def _said_of_late(self, search: Search) -> str:
        told = search.progress or {}
        kept = f" ({told['parts_kept']:,} of {told['parts']:,} parts)" if told.get("parts") else ""
        return (f"stopped after {self.settings.search_seconds:g} seconds, for which a search may run here; what is "
                f"done is kept{kept}, and it can be resumed")

    def _task(self, search: Search) -> dict[str, Any]:
        folder, request, use = self.folder / search.id, search.request, self.settings
        gone = [name for name in request["databases"] if name not in self.paths]
        if gone:
            raise TaskError("InputError", f"database {gone[0]} isn't served any more")
        return {"do": "search", "id": search.id, "folder": str(folder.absolute()),
                "query": str((folder / "query").absolute()), "page": str(self.pages.of(search.id).absolute()),
                "pipeline": request["pipeline"], "databases": [self.paths[name] for name in request["databases"]],
                "options": request["options"], "command": request["command"], "results": str(use.results.absolute()),
                "threads": use.threads, "memory": use.memory, "backend": use.backend}

    def _without_paths(self, message: str, search: Search) -> str:
        """An error as people on the other side may read it: without places on this machine."""
        message = message.replace(str((self.folder / search.id / "query").absolute()), "query")
        for name in search.request["databases"]:
            message = message.replace(str(self.paths.get(name, name)), name)
        for path in (self.settings.folder.absolute(), self.settings.results.absolute()):
            message = message.replace(str(path), path.name)
        return message

    async def _ended(self, search: Search, outcome: dict[str, Any]) -> None:
        outcome = {**outcome, "ended": datetime.now(UTC).isoformat(timespec="seconds"), "at": time.time()}
        await asyncio.to_thread(self._note, self.folder / search.id, outcome)
        search.outcome, search.state = outcome, outcome["state"]

    def _note(self, folder: Path, outcome: Mapping[str, Any]) -> None:
        with suppress(OSError):  # it may have been deleted meanwhile, or the disk is full
            write_whole(folder / "state.json", json.dumps(outcome).encode())
        if outcome["state"] == "complete":
            (folder / "query").unlink(missing_ok=True)
            self.pages.tidy()


class _Closing(Exception):
    """The server ends before a search does."""
