"""Work for several threads of the host: kernels let go of the interpreter lock, and so does numpy where it copies."""

import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from queue import SimpleQueue
from typing import Any

import numpy as np

_SHORT_INTERVAL = 0.0001
"""Seconds for which a thread keeps the interpreter while others wait for it, where threads call a device often."""


_LARGE = 1 << 20
"""Bytes that a thread copies at a time."""
PER_PROCESSOR = 16
"""Threads for each processor, at most: some wait for files, devices and each other."""
_mine = threading.local()
"""``crews``: those that the thread works for."""


def bounded_threads(threads: int) -> int:
    """``threads``, or what is enough of them for the processors of this machine where more were asked for.

    More would each take memory and a part of the work that is too small, and gain nothing.
    """
    return min(threads, PER_PROCESSOR * (os.cpu_count() or 1))


class _Job:
    """Tasks that several threads take up, one after the other.

    Attributes:
        results: of all tasks, when nobody is at work any more.
        failures: errors by the number of the task.
        helpers: threads that are at work beside the one whose job it is.
    """

    def __init__(self, work: Callable[[Any], Any], tasks: Sequence[Any]) -> None:
        self._work, self._tasks, self._begun = work, tasks, 0
        self._lock = threading.Lock()
        self.results: list[Any] = [None] * len(tasks)
        self.failures: dict[int, BaseException] = {}
        self.helpers = 0

    @property
    def left(self) -> int:
        """Tasks that nobody has taken up."""
        return 0 if self.failures else len(self._tasks) - self._begun

    def do(self, goes_on: Callable[[], bool]) -> None:
        """Take up tasks until none is left, as long as ``goes_on`` says so."""
        while goes_on():
            with self._lock:
                number = self._begun
                if not self.left:
                    return
                self._begun += 1
            try:
                self.results[number] = self._work(self._tasks[number])
            except BaseException as error:
                self.failures[number] = error


class _Crew:
    """Threads for tasks of a purpose. Whoever has a job does it, and threads that have nothing to do help with it.

    Where all are busy nobody is called: to wake a thread and to hand it the interpreter takes as long as a small task.
    """

    def __init__(self, purpose: str, threads: int) -> None:
        self._threads, self._pool = threads, ThreadPoolExecutor(threads, purpose)
        self._changed = threading.Condition()
        self._jobs: list[_Job] = []
        self._at_work = self._coming = 0

    def do(self, job: _Job) -> None:
        """Have all tasks of a job done, or some after which one failed."""
        with self._changed:
            self._coming += 1  # a helper leaves, if there are no more threads than are at work
            self._changed.wait_for(lambda: self._at_work < self._threads)
            self._coming -= 1
            self._at_work += 1
            self._jobs.append(job)
            self._call(job.left - 1)
        try:
            self._work(job, lambda: True)
        finally:
            with self._changed:
                self._jobs.remove(job)
                self._changed.wait_for(lambda: not job.helpers)
                self._leave()

    def _call(self, most: int) -> None:
        for _ in range(min(most, self._threads - self._at_work - self._coming)):
            self._at_work += 1
            self._pool.submit(self._help)

    def _leave(self) -> None:
        self._at_work -= 1
        self._changed.notify_all()
        if any(job.left for job in self._jobs):
            self._call(1)

    def _help(self) -> None:
        """Do tasks of whoever has most left, until nobody has any or the owner of a job wants to begin."""
        job: _Job | None = None
        while True:
            with self._changed:
                if job:
                    job.helpers -= 1
                    self._changed.notify_all()
                job = None if self._coming else max(self._jobs, key=lambda job: job.left, default=None)
                if job is None or not job.left:
                    self._leave()
                    return
                job.helpers += 1
            self._work(job, lambda: not self._coming)

    def _work(self, job: _Job, goes_on: Callable[[], bool]) -> None:
        crews = _mine.__dict__.setdefault("crews", [])
        crews.append(self)
        try:
            job.do(goes_on)
        finally:
            crews.pop()


@cache
def _crew(purpose: str, threads: int) -> _Crew:
    return _Crew(purpose, threads)


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

    The caller does tasks itself, and threads of the purpose that have nothing to do help. All callers in a process
    share these, so that units in flight help one another out. A task that calls this itself does its own tasks, and may
    not wait in another way for tasks of the same purpose: what tasks of many kinds wait for, like copies, is a purpose
    of its own.

    Raises:
        Exception: of the first task that failed; the others have ended then, or will not begin.
    """
    if min(threads, len(tasks)) < 2 or (crew := _crew(purpose, threads)) in getattr(_mine, "crews", ()):
        return [work(task) for task in tasks]
    job = _Job(work, tasks)
    crew.do(job)
    if job.failures:
        raise job.failures[min(job.failures)]
    return job.results


def by_threads(threads: int, low: int, high: int, work: Callable[[int, int, int], Any],
               purpose: str = "stage") -> list[Any]:
    """What ``work(n, first, last)`` gives for each of ``threads`` parts of low … high, one for each thread."""
    bounds = [low + (high - low) * n // threads for n in range(threads + 1)]
    return run_tasks(threads, lambda n: work(n, bounds[n], bounds[n + 1]), range(threads), purpose)


def concatenated(parts: Sequence[np.ndarray], threads: int) -> np.ndarray:
    """As ``np.concatenate`` of one array or more of one type and one width; several threads copy large ones.

    New memory is the slow part of that: each thread has the system clear its own.
    """
    if threads < 2 or sum(part.nbytes for part in parts) < _LARGE:
        return np.concatenate(parts)
    whole = np.empty((sum(map(len, parts)), *parts[0].shape[1:]), parts[0].dtype)
    tasks, group, begin, end, size = list[tuple[int, int, list[np.ndarray]]](), list[np.ndarray](), 0, 0, 0
    for part in parts:
        step = max(1, _LARGE * len(part) // max(1, part.nbytes))
        for first in range(0, len(part), step):
            group.append(part[first : first + step])
            end, size = end + len(group[-1]), size + group[-1].nbytes
            if size >= _LARGE:
                tasks.append((begin, end, group))
                group, begin, size = [], end, 0

    def copy(task: tuple[int, int, list[np.ndarray]]) -> None:
        np.concatenate(task[2], out=whole[task[0] : task[1]])

    run_tasks(threads, copy, [*tasks, (begin, end, group)] if group else tasks, "join")
    return whole


def in_turn(threads: int, work: Callable[[Any], Any], items: Iterable[Any], purpose: str) -> Iterator[Any]:
    """What ``work`` gives for each item, in their order.

    The caller alone draws items, no more than ``threads`` ahead of what was taken from here. With one thread it does
    the work as well.

    Raises:
        Exception: of the first item whose work failed; no others begin then.
    """
    if threads < 2:
        yield from map(work, items)
        return
    waiting: deque[Future] = deque()
    with ThreadPoolExecutor(threads, purpose) as pool:
        try:
            for item in items:
                waiting.append(pool.submit(work, item))
                while len(waiting) > threads or (waiting and waiting[0].done()):
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for left in waiting:
                left.cancel()


def ahead(most: int, items: Iterator[Any], purpose: str) -> Iterator[Any]:
    """``items``, of which a thread draws up to ``most`` before they are taken from here.

    The thread may wait for a pipe that nobody writes to any more, so nobody waits for it.

    Raises:
        Exception: of drawing an item, behind those before it.
    """
    room, drawn, left = threading.Semaphore(most), SimpleQueue[tuple[Any, BaseException | None]](), threading.Event()

    def draw() -> None:
        try:
            while room.acquire() and not left.is_set():
                drawn.put((next(items), None))
        except BaseException as error:  # whoever takes the items raises it, but for the end of them
            drawn.put((None, error))

    threading.Thread(target=draw, name=purpose, daemon=True).start()
    try:
        while True:
            item, error = drawn.get()
            if isinstance(error, StopIteration):
                return
            if error:
                raise error
            room.release()
            yield item
    finally:
        left.set()
        room.release()
