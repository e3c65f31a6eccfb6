"""Callers, workers and schedulers, forked so that a trial takes seconds on one processor.

What runs in them is what ``seqloom``, ``dask scheduler`` and ``dask worker`` run.
"""

from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path

from .. import forked as processes
from ..forked import Forked

processes.preload("tests.cluster_faults.imported")


def _caller() -> None:
    _run("seqloom.cli", "run")


def _scheduler() -> None:
    _run("distributed.cli.dask_scheduler", "main")


def _worker() -> None:
    _run("distributed.cli.dask_worker", "main")


def _run(module: str, name: str) -> None:
    import dask.config

    dask.config.refresh()
    getattr(import_module(module), name)()


COMMANDS = {"seqloom": _caller, "scheduler": _scheduler, "worker": _worker}
"""Functions that carry out command lines, by what is typed."""


def forked(command: str, words: Sequence[str], folder: Path, environment: Mapping[str, str]) -> Forked:
    """Start a command of ``COMMANDS`` in a folder."""
    return processes.forked(COMMANDS[command], [command, *words], folder, environment)
