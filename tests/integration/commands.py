"""The command line as a process of its own."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from ..forked import Forked, forked, preload

COMMAND = [sys.executable, "-c", "from seqloom.cli import run; run()"]


def environment(**more: str) -> dict[str, str]:
    return {**os.environ, "SEQLOOM_BACKEND": "reference", **more}


def seqloom(folder: Path, *words: Any, check: bool = True, **more: str) -> subprocess.CompletedProcess:
    """Run a command in ``folder``; fails with its messages unless it ends well (or ``check`` is off)."""
    done = subprocess.run([*COMMAND, *map(str, words)], cwd=folder, env=environment(**more), capture_output=True,
                          text=True, timeout=300)
    if check:
        assert done.returncode == 0, f"seqloom {' '.join(map(str, words))}: {done.stderr}"
    return done


def started(folder: Path, *words: Any) -> Forked:
    """Start a command in ``folder`` and go on."""
    return forked(_command, ["seqloom", *map(str, words)], folder, environment(), Path(os.devnull))


def _command() -> None:
    from seqloom.cli import run

    run()


preload("tests.imported")
