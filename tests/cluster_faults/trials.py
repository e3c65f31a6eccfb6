"""One fault at one random time, in a folder of its process."""

import random
import tempfile
import time
from functools import cache
from pathlib import Path

from .harness import clean, prepare
from .scenarios import SCENARIOS


def trial(named: tuple[int, str, int], ends: float) -> tuple[list[str], float] | None:
    """What went wrong in one trial (seed, scenario, number), and its seconds; None if it didn't begin by ``ends``."""
    if time.time() > ends:
        return None
    folder, wanted = _prepared()
    clean(folder)
    since = time.monotonic()
    try:
        found = [*SCENARIOS[named[1]](folder, wanted, random.Random(" ".join(map(str, named))))]
    except (AssertionError, OSError) as error:
        found = [f"{type(error).__name__}: {error}"]
    return found, time.monotonic() - since


_folders: list[tempfile.TemporaryDirectory[str]] = []
"""Of this process; removed at its end."""


@cache
def _prepared() -> tuple[Path, bytes]:
    _folders.append(tempfile.TemporaryDirectory(prefix="seqloom-cluster-"))
    folder = Path(_folders[-1].name)
    return folder, prepare(folder)
