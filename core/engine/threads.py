"""Work for several threads of the host: kernels let go of the interpreter lock, and so does numpy where it copies."""

import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import cache
from typing import Any

_SHORT_INTERVAL = 0.0001
"""Seconds for which a thread keeps the interpreter while others wait for it, where threads call a device often."""


PER_PROCESSOR = 16
"""Threads for each processor, at most: some wait for files, devices and each other."""
_mine = threading.local()
"""``pool``: the purpose and size of the pool that the thread belongs to."""


def bounded_threads(threads: int) -> int:
    """``threads``, or what is enough of them for the processors of this machine where more were asked for.

    More would each take memory and a part of the work that is too small, and gain nothing.
    """
    return min(threads, PER_PROCESSOR * (os.cpu_count() or 1))


@cache
def _pool(purpose: str, threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, purpose, lambda: setattr(_mine, "pool", (purpose, threads)))


class _Pace:
    """How long threads keep the interpreter, as long as anybody wants it short."""

    def __init__(self) -> None:
        self._lock, self._wanted, self._usual = threading.Lock(), 0, 0.0

    @contextmanager
    def short_switch_interval(self) -> Iterator[None]:
        with self._lock:
            if not self._wanted:
                self._usual = sys.getswitchinterval()
                sys.setswitchinterval(min(self._usual, _SHORT_INTERVAL))
            self._wanted += 1
        try:
            yield
        finally:
            with self._lock:
                self._wanted -= 1
                if not self._wanted:
                    sys.setswitchinterval(self._usual)


short_switch_interval = _Pace().short_switch_interval
"""Context manager: threads hand the interpreter on quickly.

Every call of a device gives the interpreter away for a moment, and a thread that has it keeps it for 5 milliseconds
usually: some dozens of calls then take longer than what they start.
"""


def run_tasks(threads: int, work: Callable[[Any], Any], tasks: Sequence[Any], purpose: str = "stage") -> list[Any]:
    """What ``work`` gives for each of the tasks; every thread takes up the next one when it is done with one.

    All callers in a process share the threads of a purpose, so that units in flight help one another out: whoever has
    tasks left has them done by all threads. A task that calls this itself does its own tasks, and may not wait in
    another way for tasks of the same purpose: what tasks of many kinds wait for, like copies, is a purpose of its own.

    Raises:
        Exception: of the first task that failed; the others have ended then, or will not begin.
    """
    if min(threads, len(tasks)) < 2 or getattr(_mine, "pool", None) == (purpose, threads):
        return [work(task) for task in tasks]
    futures = [_pool(purpose, threads).submit(work, task) for task in tasks]
    try:
        return [future.result() for future in futures]
    except BaseException:
        for future in futures:
            future.cancel()
        wait(futures)
        raise


def by_threads(threads: int, low: int, high: int, work: Callable[[int, int, int], Any],
               purpose: str = "stage") -> list[Any]:
    """What ``work(n, first, last)`` gives for each of ``threads`` parts of low … high, one for each thread."""
    bounds = [low + (high - low) * n // threads for n in range(threads + 1)]
    return run_tasks(threads, lambda n: work(n, bounds[n], bounds[n + 1]), range(threads), purpose)
