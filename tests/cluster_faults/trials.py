"""One fault at one random time, in a folder of its process."""

import random
import shutil
import tempfile
import time
from functools import cache
from pathlib import Path

from .harness import clean
from .scenarios import SCENARIOS


def trial(named: tuple[int, str, int], ends: float, prepared: Path) -> tuple[list[str], float] | None:
    """What goes wrong in one trial, and its seconds; None if it can't begin in time.

    Args:
        named: seed, scenario and number.
        ends: by ``time.time``, from when on none begins.
        prepared: folder of queries, database and the rows that one process finds.
    """
    if time.time() > ends:
        return None
    folder, wanted = _mine(prepared), (prepared / "out.tsv").read_bytes()
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
def _mine(prepared: Path) -> Path:
    _folders.append(tempfile.TemporaryDirectory(prefix="seqloom-cluster-"))
    return Path(shutil.copytree(prepared, _folders[-1].name, dirs_exist_ok=True))
