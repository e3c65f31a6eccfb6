"""Files of runs beside a store: their names, and the marks of those that are finished."""

import os
from contextlib import suppress
from pathlib import Path

SUFFIX = ".duckdb"
"""End of the name of a run's file."""
DONE_SUFFIX = ".done"
"""End of the name of the empty file that says that a run is finished and its file closed."""


def mark_of(path: Path) -> Path:
    """The mark that belongs to a run's file."""
    return path.with_suffix(DONE_SUFFIX)


def mark_done(path: Path) -> None:
    """Say that the run in this file is finished. The file itself keeps its name, so that nobody misses it."""
    mark_of(path).touch()


def remove(path: Path) -> None:
    """Delete a run's file and all that belongs to it: the mark first, since a file without its log isn't whole."""
    for name in (str(mark_of(path)), f"{path}.wal", str(path)):
        with suppress(FileNotFoundError):
            os.unlink(name)
