"""Work for several threads of the host: kernels let go of the interpreter lock, and so does numpy where it copies."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads)


def in_turn(threads: int, work: Callable[[Any], Any], tasks: Sequence[Any]) -> list[Any]:
    """What ``work`` gives for each of the tasks; every thread takes up the next one when it is done with one."""
    return [work(task) for task in tasks] if threads == 1 else list(_pool(threads).map(work, tasks))


def by_threads(threads: int, low: int, high: int, work: Callable[[int, int, int], Any]) -> list[Any]:
    """What ``work(n, first, last)`` gives for each of ``threads`` parts of low … high, one for each thread."""
    bounds = [low + (high - low) * n // threads for n in range(threads + 1)]
    return in_turn(threads, lambda n: work(n, bounds[n], bounds[n + 1]), range(threads))
