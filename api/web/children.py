"""Processes that work for the server; see ``worker``."""

import asyncio
import json
import os
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

NICE, NICE_SEARCH = 3, 7
"""By how much workers stand back for the server, so that pages are quick; searches more than tasks with a visitor
waiting."""
ANSWER = 64 << 20
"""Characters of an answer, at most."""


class TaskError(Exception):
    """What a worker says has gone wrong.

    Attributes:
        kind: name of the error's class; "Gone" for a process that ended without a word, "TimeoutError".
        status: exit status that the command line would have: 2 for a request that is wrong.
    """

    def __init__(self, kind: str, message: str, status: int = 1) -> None:
        super().__init__(message)
        self.kind, self.status = kind, status


class Child:
    """A process at work on one task."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    @classmethod
    async def start(cls, task: Mapping[str, Any]) -> "Child":
        # A group of its own keeps Ctrl-C from it. It stays in the server's session, though: between sessions Linux
        # shares processors without regard to the priorities of their processes.
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-P", "-m", f"{__package__}.worker", stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE, limit=ANSWER, process_group=0, env=_environment())
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, process.pid, os.getpriority(os.PRIO_PROCESS, 0) + (
                NICE_SEARCH if task["do"] == "search" else NICE))
        child = cls(process)
        assert process.stdin
        with suppress(ConnectionError):
            process.stdin.write(json.dumps(task, default=str).encode() + b"\n")
            await process.stdin.drain()
        return child

    async def answer(self, told: Callable[[Any], None] | None = None) -> Any:
        """What the task gives; ``told`` hears of progress.

        Raises:
            TaskError: it failed.
        """
        assert self._process.stdout
        try:
            async for line in self._process.stdout:
                said = json.loads(line)
                if "progress" in said and told:
                    told(said["progress"])
                elif "done" in said:
                    return said["done"]
                elif "error" in said:
                    error = said["error"]
                    raise TaskError(error["kind"], error["message"], error.get("status", 1))
        except ValueError:
            raise TaskError("Gone", "the process that worked on it gave no sensible answer") from None
        finally:
            await self.end()
        raise TaskError("Gone", "the process that worked on it ended before its time (status "
                                f"{self._process.returncode})")

    def stop(self) -> None:
        """Ask it to stop; a search keeps what it has done."""
        if self._process.stdin:
            self._process.stdin.close()

    def kill(self) -> None:
        with suppress(ProcessLookupError):
            self._process.kill()

    async def end(self) -> None:
        """Wait for its end, which is not far."""
        self.stop()
        try:
            await asyncio.wait_for(self._process.wait(), 5)
        except (TimeoutError, asyncio.CancelledError):
            self.kill()
            with suppress(asyncio.CancelledError):
                await self._process.wait()
            raise


def _environment() -> dict[str, str]:
    """Workers import this very package, wherever it was imported from, and nothing from the working directory."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path and os.path.isabs(path))}


class Helpers:
    """Short tasks that requests wait for, a few at a time."""

    def __init__(self, most: int = 2, waiting: int = 64) -> None:
        self._free, self._most, self._waiting = asyncio.Semaphore(most), waiting, 0

    async def ask(self, task: Mapping[str, Any], seconds: float = 120.0) -> Any:
        """What a task gives.

        Raises:
            TaskError: it failed, took too long, or too many wait already (kind "Busy").
        """
        if self._waiting >= self._most:
            raise TaskError("Busy", "the server is busy; try again later")
        self._waiting += 1
        try:
            async with self._free:
                child = await Child.start(task)
                try:
                    return await asyncio.wait_for(child.answer(), seconds)
                except TimeoutError:
                    raise TaskError("TimeoutError", f"stopped after {seconds:g} seconds") from None
                finally:
                    child.kill()
        finally:
            self._waiting -= 1
