"""Processes that are forked from one that has imported everything, so that a trial takes seconds on one processor.

What runs in them is what ``seqloom``, ``dask scheduler`` and ``dask worker`` run.
"""

import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_SERVER = multiprocessing.get_context("forkserver")
_SERVER.set_forkserver_preload(["tests.cluster_faults.imported"])
COMMANDS = {"seqloom": "seqloom.cli:run", "scheduler": "distributed.cli.dask_scheduler:main",
            "worker": "distributed.cli.dask_worker:main"}
"""Functions that carry out command lines, by what is typed."""


@dataclass
class Forked:
    """A process under way, like ``subprocess.Popen``.

    Attributes:
        args: its command line.
        errors: the file that it writes its standard error to.
    """

    process: multiprocessing.context.ForkServerProcess
    args: Sequence[str]
    errors: Path

    @property
    def pid(self) -> int:
        assert self.process.pid is not None
        return self.process.pid

    def poll(self) -> int | None:
        """Exit status, or the negative signal that ended it; None while it runs."""
        return self.process.exitcode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def wait(self, seconds: float) -> int:
        """Raises ``TimeoutError`` if it is still there after some seconds."""
        self.process.join(seconds)
        if self.process.exitcode is None:
            raise TimeoutError(f"{seconds} seconds")
        return self.process.exitcode


def forked(command: str, words: Sequence[str], folder: Path, environment: Mapping[str, str]) -> Forked:
    """Start a command of ``COMMANDS`` in a folder."""
    errors = folder / f"stderr-{command}-{time.monotonic_ns()}"
    process = _SERVER.Process(target=_carry_out, args=(command, [*words], str(folder), dict(environment), str(errors)))
    process.start()
    return Forked(process, [command, *words], errors)


def _carry_out(command: str, words: list[str], folder: str, environment: dict[str, str], errors: str) -> None:
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    for place, flags, number in ((os.devnull, os.O_WRONLY, 1), (errors, os.O_WRONLY | os.O_CREAT, 2)):
        opened = os.open(place, flags, 0o600)
        os.dup2(opened, number)
        os.close(opened)
    sys.argv = [command, *words]
    import importlib

    import dask.config

    dask.config.refresh()
    module, _, name = COMMANDS[command].partition(":")
    getattr(importlib.import_module(module), name)()
