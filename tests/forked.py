"""Processes that are forked from one that has imported everything: they begin at once, whatever is under way here.

All modules that are preloaded have to be named before the first process begins: at import, as ``preload`` is called.
"""

import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

SERVER = multiprocessing.get_context("forkserver")
_PRELOADED: list[str] = []


def preload(*modules: str) -> None:
    """Have modules imported once for all processes."""
    _PRELOADED.extend(modules)
    SERVER.set_forkserver_preload(_PRELOADED)


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
        """Nothing happens to one that has ended, whether or not its end has been told here yet."""
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def wait(self, seconds: float = 300) -> int:
        """Raises ``TimeoutError`` if it is still there after some seconds."""
        self.process.join(seconds)
        if self.process.exitcode is None:
            raise TimeoutError(f"{seconds} seconds")
        return self.process.exitcode


def forked(command: Callable[[], object], words: Sequence[str], folder: Path, environment: Mapping[str, str],
           errors: Path | None = None) -> Forked:
    """Start a command, a function of a module, in a folder; ``words`` are what was typed, its name first."""
    errors = errors or folder / f"stderr-{words[0]}-{time.monotonic_ns()}"
    process = SERVER.Process(target=_carry_out, args=(command, [*words], str(folder), dict(environment), str(errors)))
    process.start()
    return Forked(process, words, errors)


def _carry_out(command: Callable[[], object], words: list[str], folder: str, environment: dict[str, str],
               errors: str) -> None:
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    for place, flags, number in ((os.devnull, os.O_WRONLY, 1), (errors, os.O_WRONLY | os.O_CREAT, 2)):
        opened = os.open(place, flags, 0o600)
        os.dup2(opened, number)
        os.close(opened)
    sys.argv = words
    command()
