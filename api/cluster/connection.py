"""Finds a cluster: a scheduler by its address or file, workers on this machine, or the client of a program."""

import logging
import re
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ..core.errors import ClusterError, MissingPackageError, UsageError

if TYPE_CHECKING:
    from distributed import Client

T = TypeVar("T")
_ADDRESS = re.compile(r"[a-z]+://\S+|[\w.-]+:\d+|\[[0-9a-f:]+\]:\d+", re.IGNORECASE)
_LOCAL = re.compile("local:([0-9]+)")
MOST_LOCAL = 1024
"""Worker processes on one machine."""

DEFAULTS = {"connect": 30.0, "workers": 60.0, "silence": 60.0, "stuck": 1800.0, "stop": 20.0}
"""Seconds, under the name ``seqloom`` in Dask's configuration: until a scheduler has answered; until there is a worker,
at the beginning and when all are lost; without a word of a worker or of the scheduler from which on it is taken for
lost; without any progress of a worker that has units; until units have stopped after Ctrl-C."""


def seconds(name: str) -> float:
    """One of ``DEFAULTS``, as configured."""
    import dask.config

    return float(dask.config.get(f"seqloom.{name}", DEFAULTS[name]))


def check_cluster(cluster: Any) -> None:
    """Refuse a text that names no cluster, before any work.

    Raises:
        UsageError: the text is neither an address, a file nor ``local:N``.
        MissingPackageError: Dask isn't installed.
    """
    if isinstance(cluster, str | Path):
        text = str(cluster)
        local = _LOCAL.fullmatch(text)
        if local and not 0 < int(local[1]) <= MOST_LOCAL:
            raise UsageError(f"--cluster {text}: give from 1 to {MOST_LOCAL} worker processes")
        if not local and not _ADDRESS.fullmatch(text) and not Path(text).is_file():
            raise UsageError(f"--cluster takes the address of a scheduler (tcp://HOST:PORT), a scheduler file that is "
                             f"there, or local:N, not '{text}'")
    try:
        import distributed  # noqa: F401  # that it is there
    except ModuleNotFoundError as error:
        raise MissingPackageError("distributed", "cluster") from error


@contextmanager
def connected(cluster: Any, threads: int) -> "Iterator[tuple[Client, int]]":
    """A client of the cluster, and how many workers belong to this call alone: 0 where the cluster is somebody's.

    Args:
        cluster: "local:N", an address, a scheduler file, a client of Dask, or what Dask calls a cluster.
        threads: of each worker of ``local:N``.

    Raises:
        ClusterError: nobody answers there.
    """
    from distributed import Client

    if isinstance(cluster, Client):
        if cluster.asynchronous:
            raise UsageError("cluster is an asynchronous client; give one that was made with asynchronous=False")
        yield cluster, 0
        return
    text = str(cluster) if isinstance(cluster, str | Path) else ""
    local = _LOCAL.fullmatch(text)
    with ExitStack() as stack:
        if text:
            stack.enter_context(_quiet())
        if local:
            cluster = stack.enter_context(_local(int(local[1]), threads))
        is_file = bool(text) and not local and not _ADDRESS.fullmatch(text)
        where = {"scheduler_file": text} if is_file else {"address": cluster}
        try:
            client = _in_time(lambda: Client(**where, timeout=seconds("connect"), set_as_default=False,
                                             name="seqloom"), 2 * seconds("connect"))
        except (OSError, TimeoutError, ValueError, TypeError) as error:
            raise ClusterError(f"no scheduler of Dask answers at {text or cluster}: "
                               f"{' '.join(str(error).split()) or type(error).__name__}") from error
        stack.callback(_closed, client)
        yield client, int(local[1]) if local else 0


def _in_time(work: Callable[[], T], limit: float) -> T:
    """What ``work`` gives, in a thread of its own: Dask waits without an end for a scheduler that is frozen.

    Raises:
        TimeoutError: it takes longer.
    """
    done: Future[T] = Future()

    def act() -> None:
        try:
            done.set_result(work())
        except BaseException as error:
            done.set_exception(error)

    threading.Thread(target=act, name="cluster", daemon=True).start()
    try:
        return done.result(limit)
    except FutureTimeout:
        raise TimeoutError(f"nothing in {limit:.0f} seconds") from None


def _closed(client: "Client") -> None:
    with suppress(Exception):
        _in_time(lambda: client.close(timeout=seconds("stop")), 2 * seconds("stop"))


@contextmanager
def _local(workers: int, threads: int) -> Iterator[Any]:
    """Worker processes on this machine, which nobody else can reach: on the loopback device, by certificates of this
    call alone."""
    import dask.config
    from distributed import LocalCluster

    with dask.config.set({"distributed.worker.daemon": True, "distributed.scheduler.http.routes": [],
                          "distributed.worker.http.routes": [], "distributed.worker.profile.enabled": False}):
        try:
            made = _in_time(partial(LocalCluster, n_workers=workers, threads_per_worker=threads, processes=True,
                                    host="127.0.0.1", security=True, dashboard_address="127.0.0.1:0", memory_limit=0,
                                    silence_logs=logging.CRITICAL), seconds("workers") + workers)
        except (OSError, RuntimeError, TimeoutError) as error:
            raise ClusterError(f"{workers} worker processes can't be started: "
                               f"{' '.join(str(error).split()) or type(error).__name__}") from error
        try:
            yield made
        finally:
            with suppress(Exception):
                _in_time(lambda: made.close(timeout=seconds("stop")), 2 * seconds("stop"))


@contextmanager
def _quiet() -> Iterator[None]:
    """Dask's own words about what we tell ourselves aren't shown."""
    names = [name for name in logging.root.manager.loggerDict if name.split(".")[0] in ("distributed", "tornado")]
    loggers = [logging.getLogger(name) for name in (*names, "asyncio")]
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for logger, level in zip(loggers, before, strict=True):
            logger.setLevel(level)
