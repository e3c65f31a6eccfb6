"""A database read as a whole, apart: by a process of its own, since DuckDB itself may die of a damaged file."""

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from .core import errors
from .core.errors import (
    DamagedError,
    LockedError,
    OutOfMemoryError,
    PluginError,
    SchemaError,
    SeqloomError,
    StoreError,
)
from .core.progress import Progress

_DAMAGE = {signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT, signal.SIGILL, signal.SIGFPE}


def check(path: "str | Path", progress: Progress | None = None) -> tuple[list[str], dict[str, Any]]:
    """What is wrong with the database at ``path``, as ``Database.check`` says it, and what ``Database.info`` does.

    Args:
        progress: told of the residues that are checked; its cancellation stops the work.

    Raises:
        DamagedError: it can't be read without harm.
        SeqloomError: it can't be opened, with the reason.
    """
    progress = progress or Progress()
    command = [sys.executable, "-P", "-c", f"from {__name__} import _tell; _tell()", str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, start_new_session=True) as child:
        assert child.stdout is not None
        try:
            said: dict[str, Any] = {}
            for line in child.stdout:
                said = json.loads(line)
                if "total" in said:
                    progress.begin(said["total"], said["unit"])
                elif "done" in said:
                    progress.advance(said["done"])
        finally:
            if child.poll() is None and sys.exc_info()[0]:
                child.kill()
    if "problems" in said:
        return said["problems"], said["info"]
    if "error" in said:
        raise getattr(errors, said["kind"])(said["error"])
    if -child.returncode in _DAMAGE:
        raise DamagedError(f"{path} is damaged: DuckDB dies of reading it ({signal.Signals(-child.returncode).name}); "
                           "make it anew from its sequence files, or restore it from a copy")
    raise StoreError(f"{path} can't be checked: the process that read it has ended with status {child.returncode}; "
                     "check again")


class _Told(Progress):
    """Progress that is told to the process that asked."""

    def begin(self, total: int, unit: str) -> None:
        super().begin(total, unit)
        _say(total=total, unit=unit)

    def advance(self, amount: int) -> None:
        super().advance(amount)
        _say(done=amount)


def _tell() -> None:
    """Check the database that the command line names, and tell of it in lines of JSON."""
    from .any_database import open_any

    try:
        with open_any(sys.argv[1]) as database:
            _say(problems=database.check(_Told()), info=database.info())
    except SeqloomError as error:
        known = (SchemaError, DamagedError, LockedError, PluginError)
        _say(error=error.args[0], kind=next((kind.__name__ for kind in known if isinstance(error, kind)), "StoreError"))
    except MemoryError as error:
        _say(error=OutOfMemoryError(sys.argv[1], error).args[0], kind="SeqloomError")


def _say(**what: Any) -> None:
    print(json.dumps(what, default=str), flush=True)


__all__ = ["check"]
