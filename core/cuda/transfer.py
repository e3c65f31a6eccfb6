"""Large arrays to a CUDA device and back, at the speed of the bus.

The device reads and writes page-locked memory by itself; arrays elsewhere go by way of small buffers of that kind.
Every thread of the host has two of them: while one is on its way the other one is filled, or emptied. Kernels of the
host do this and call the driver themselves, since a bus that takes 20 microseconds for a buffer would wait for an
interpreter that serves sixteen threads. Buffers are few and small enough to stay in the processor's caches, so that the
host's memory is read once and written once.

What is sent as it is goes by threads of its own (``upload_pool.py``).

What is small goes by way of page-locked memory of its owner. To copy it back and to wait for it is one call of a
kernel, since whoever gives the interpreter away waits for it again: a tenth of a millisecond and more where several
threads want it. What needn't wait for a device, like queueing a copy, is called without giving it away.

Where the driver can't be called like that, and where ``SEQLOOM_COPY=numba`` asks for it, numba copies: the same bytes,
several times slower, and nothing is done meanwhile.
"""

import atexit
import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
from numba import cuda as _cuda

from ..backends import current_device, on_device
from ..engine.threads import run_tasks
from ..kernels.jit import Kernel, kernel
from ..kernels.packed16 import SIMULATED
from .driver import (
    BUFFER,
    CLEAR,
    COPY_MEMORY,
    ENTER,
    NOT_READY,
    QUERY,
    RECEIVE,
    RECORD,
    SEND,
    SLEEP,
    WAIT_EVENT,
    PinnedPair,
    call,
    call_holding_gil,
    checked,
    driver_functions,
    handle_of,
    host_functions,
    new_pinned_pair,
)
from .staged_transfer import Download, Driver, StagedTransfer, TransferThreads, words_of
from .upload_pool import UploadPool

cuda: Any = _cuda  # numba's types don't know what code on the device may do
_COPY = "copy"  # threads that wait for the bus alone: tasks of every other kind may wait for them
_MOST_THREADS = 16
_LEAST_MADE = 1 << 13  # items that it is worth calling a thread for, where the host makes them
_CHOICES = ("", "seqloom", "numba")
if os.environ.get("SEQLOOM_COPY", "") not in _CHOICES:
    raise ImportError(f"SEQLOOM_COPY must be one of {', '.join(_CHOICES[1:])}, not '{os.environ['SEQLOOM_COPY']}'")
_BRIEF = 1 << 19
"""Bytes from which on others may have the interpreter while they are copied."""
_ATTENTIVE, _LEAST_PAUSE, _LONGEST_PAUSE = 100, 20, 500
"""How often a stream is asked whether it is done before whoever waits sleeps in between, and for how many microseconds,
a quarter more each time. The driver's own waiting keeps a processor busy that other units have work for."""


class _Device:
    """One device as the driver knows it, by its number.

    Attributes:
        driver: with the context of the device, which every thread has to enter.
    """

    def __init__(self, number: int) -> None:
        self._number = number
        functions, context = driver_functions()
        self.driver = Driver(functions, host_functions(), context)
        self._idle: deque[PinnedPair] = deque()
        self._events: deque[Any] = deque()
        self.make_ready(1)  # numba registers what frees them at exit: what is registered behind that comes before it
        # When the process ends the system takes back all at once; numba would free piece by piece, each from whatever
        # device's context is current then.
        self._at_exit = cuda.current_context().defer_cleanup()
        atexit.register(self._at_exit.__enter__)
        self._uploads, self._high_priority = (UploadPool(functions, context) for _ in range(2))
        self._threads_by_kind: dict[tuple[Kernel, np.dtype, np.dtype], TransferThreads] = {}
        self._starting = threading.Lock()

    def make_ready(self, count: int) -> None:
        """Have so many lanes that nobody uses."""
        self._idle.extend([new_pinned_pair() for _ in range(count - len(self._idle))])

    def _taken(self) -> PinnedPair:
        try:
            return self._idle.pop()
        except IndexError:
            with on_device(self._number):
                return new_pinned_pair()

    @contextmanager
    def pair(self) -> Iterator[PinnedPair]:
        """One that nobody else uses meanwhile; there are as many as have been used at a time."""
        pair = self._taken()
        try:
            yield pair
        finally:
            self._idle.append(pair)

    @contextmanager
    def event(self) -> Iterator[np.uint64]:
        """The handle of one that nobody else uses meanwhile."""
        try:
            event = self._events.pop()
        except IndexError:
            event = cuda.event(timing=False)
        try:
            yield np.uint64(int(event.handle))
        finally:
            self._events.append(event)

    def workers(self, fill: Kernel, there: np.dtype, here: np.dtype) -> TransferThreads:
        """Threads that fill arrays of one type, and receive another one."""
        with self._starting:
            kind = fill, there, here
            if kind not in self._threads_by_kind:
                self._threads_by_kind[kind] = TransferThreads(self.driver, fill, there, here)
            return self._threads_by_kind[kind]

    def uploads(self, count: int, high_priority: bool = False) -> UploadPool:
        """So many or more; they are started when they are first asked for. Others do what has high priority."""
        uploads = self._high_priority if high_priority else self._uploads
        with self._starting:
            while len(uploads) < count:
                uploads.add(self._taken())
        return uploads


@cache
def _device(number: int) -> _Device:
    return _Device(number)


_making = threading.Lock()


def _current() -> _Device:
    with _making:
        return _device(current_device())


@cache
def _by_numba() -> bool:
    """Whether numba copies, through its public interface."""
    if SIMULATED or os.environ.get("SEQLOOM_COPY") == "numba":
        return True
    try:
        current_device()
        driver_functions(), host_functions()
    except (ImportError, AttributeError, TypeError) as error:
        print(f"seqloom: numba copies to the device by itself, since this release of it isn't known "
              f"({type(error).__name__}: {error}); results are the same, copying takes longer (SEQLOOM_COPY=numba: "
              "without this line)", file=sys.stderr)
        return True
    return False


def make_ready(threads: int) -> None:
    """Have what so many threads of the host need to copy to the current device: some milliseconds for each."""
    if not _by_numba():
        _current().uploads(threads)


@kernel
def _done(functions, host, stream):
    """Wait until a stream has done all that it has. 0, or an error's code, as from those that follow."""
    error = call(functions[QUERY], (stream,))
    for _ in range(_ATTENTIVE):
        if error != NOT_READY:
            return error
        error = call(functions[QUERY], (stream,))
    pause = np.uint64(_LEAST_PAUSE)
    while error == NOT_READY:
        call(host[SLEEP], (pause,))
        pause = min(pause + (pause >> np.uint64(2)), np.uint64(_LONGEST_PAUSE))
        error = call(functions[QUERY], (stream,))
    return error


@kernel
def _synchronized(functions, host, context, stream):
    """Wait for a stream."""
    return call(functions[ENTER], (context,)) or _done(functions, host, stream)


def _made_wait(driver: Driver, event: Any, stream: Any, waiting: Iterable[Any]) -> int:
    """Have streams wait for what is queued on a stream by now. 0, or an error's code, as from those that follow."""
    functions, _, context = driver
    error = call_holding_gil(functions[ENTER], context) or call_holding_gil(functions[RECORD], event, stream)
    for waiter in waiting:
        error = error or call_holding_gil(functions[WAIT_EVENT], waiter, event, 0)
    return error


def _sent_through(driver: Driver, locked: int, there: int, size: int, event: Any, stream: Any,
                  waiting: Iterable[Any]) -> int:
    """Queue a copy of page-locked memory to the device and have streams wait for it."""
    functions, _, context = driver
    error = call_holding_gil(functions[ENTER], context) or call_holding_gil(functions[SEND], there, locked, size,
                                                                            stream)
    return error or _made_wait(driver, event, stream, waiting)


@kernel
def _received_through(functions, host, context, there, locked, here, size, stream, behind):
    """The way back, when a stream has done what it has now."""
    error = call(functions[ENTER], (context,)) or _done(functions, host, behind)
    error = error or call(functions[RECEIVE], (locked, there, size, stream))
    error = error or _done(functions, host, stream)
    call(host[COPY_MEMORY], (here, locked, size))
    return error


def to_device(array: np.ndarray, threads: int = 1, there: Any = None, stream: Any = None, at: int = 0) -> Any:
    """A copy of a one-dimensional array on the device.

    Args:
        threads: of the host, that copy.
        there: the device array to copy to, of at least the length; a new one, of one item at least, when left out.
        stream: the copy is queued there, and may be done later than the call; the array may change at once. Without
            one it is done.
        at: the place in ``there`` of the first item.
    """
    there = cuda.device_array(max(1, len(array)), array.dtype) if there is None else there
    begin_to_device(array, there, threads, stream, at)()
    if not stream:
        synchronize(stream)
    return there


def begin_to_device(array: np.ndarray, there: Any, threads: int, stream: Any, at: int = 0,
                    high_priority: bool = False) -> Callable[[], None]:
    """As ``to_device``, but the array has to stay as it is until what this returns has been called, which waits.

    Copies that are begun one after the other are done in that order, without a gap; those that are ``high_priority``
    overtake others.
    """
    array = np.ascontiguousarray(array)
    if not len(array):
        return lambda: None
    if _by_numba():
        there[at : at + len(array)].copy_to_device(array, stream or 0)
        return lambda: synchronize(stream)
    target = there.device_ctypes_pointer.value + at * array.itemsize
    uploads = _current().uploads(_threads(threads, array.nbytes // BUFFER), high_priority)
    finish = uploads.send(array.ctypes.data, target, array.nbytes, handle_of(stream))

    def finished(sent: np.ndarray = array) -> None:  # holds the array
        finish()

    return finished


def synchronize(stream: Any) -> None:
    """Wait until all is done that is queued on a stream of the current device, or will be meanwhile."""
    if _by_numba():
        if not SIMULATED:
            (stream or cuda.default_stream()).synchronize()
        return
    device, handle = _current(), handle_of(stream)
    functions, _, context = device.driver
    if call_holding_gil(functions[ENTER], context) or call_holding_gil(functions[QUERY], handle):
        checked([_synchronized(*device.driver, handle)])


def make_wait(stream: Any, waiting: Sequence[Any]) -> None:
    """Have what will be queued on some streams wait for what is queued on another one by now."""
    if _by_numba():
        if not SIMULATED:
            event = cuda.event(timing=False)
            event.record(stream or cuda.default_stream())
            for waiter in waiting:
                event.wait(waiter or cuda.default_stream())
        return
    device = _current()
    with device.event() as event:
        checked([_made_wait(device.driver, event, handle_of(stream), map(handle_of, waiting))])


def clear(array: Any, count: int, stream: Any) -> None:
    """Queue zeros for the first items, of four or eight bytes, of a device array."""
    if not count:
        return
    if _by_numba():
        array[:count].copy_to_device(np.zeros(count, array.dtype), stream or 0)
        return
    functions, _, context = _current().driver
    address = array.device_ctypes_pointer.value
    checked([call_holding_gil(functions[ENTER], context) or call_holding_gil(
        functions[CLEAR], address, 0, count * array.dtype.itemsize // 4, handle_of(stream))])


def send_through(locked: np.ndarray, array: np.ndarray, there: Any, stream: Any, waiting: Sequence[Any]) -> None:
    """Queue a copy of ``array`` to the beginning of a device array, by way of page-locked memory that holds as much.

    All of one type. What is queued on the streams ``waiting`` from now on comes behind the copy. The host goes on; it
    leaves the page-locked memory alone until one of them has come so far.
    """
    if _by_numba():
        there[: len(array)].copy_to_device(np.ascontiguousarray(array), stream or 0)
        make_wait(stream, waiting)
        return
    device, array = _current(), np.ascontiguousarray(array)
    if array.nbytes < _BRIEF:
        call_holding_gil(host_functions()[COPY_MEMORY], locked.ctypes.data, array.ctypes.data, array.nbytes)
    else:
        locked[: len(array)] = array
    with device.event() as event:
        checked([_sent_through(device.driver, locked.ctypes.data, there.device_ctypes_pointer.value, array.nbytes,
                               event, handle_of(stream), map(handle_of, waiting))])


def receive_through(locked: np.ndarray, there: Any, first: int, last: int, stream: Any, behind: Any) -> np.ndarray:
    """Items first … last − 1 of a device array, by way of page-locked memory of at least their size.

    They are copied on a stream when all is done that is queued on the stream ``behind``.
    """
    here = np.empty(last - first, there.dtype)
    if _by_numba():
        synchronize(behind)
        here[:] = there[first:last].copy_to_host(stream=stream or 0)
        synchronize(stream)
        return here
    device = _current()
    address = there.device_ctypes_pointer.value + first * here.itemsize
    checked([_received_through(*device.driver, np.uint64(address), np.uint64(locked.ctypes.data),
                               np.uint64(here.ctypes.data), np.uint64(here.nbytes), handle_of(stream),
                               handle_of(behind))])
    return here


def to_device_made(fill: Kernel, given: tuple[Any, ...], there: Any, first: int, last: int, threads: int = 1,
                   stream: Any = None) -> None:
    """Fill places of a device array with what a kernel of the host makes, piece by piece, as it goes there.

    Args:
        fill: called as ``fill(out, n, words_of(given))``, by several threads: fills an array with items n, n + 1, ….
        given: arrays and numbers for it.
        there: the device array.
        first, last: the places to be filled, first … last − 1.
        threads, stream: as of ``to_device``.
    """
    with staged_transfer(fill, given, there, [first, last], threads, stream):
        pass
    if not stream:
        synchronize(stream)


@contextmanager
def staged_transfer(fill: Kernel, given: tuple[Any, ...], there: Any, bounds: Sequence[int], threads: int = 1,
             stream: Any = None, back: np.ndarray | None = None) -> Iterator[Any]:
    """Begin to fill a device array part by part; then something may come back, received by the same threads.

    Args:
        fill, given, there, threads: as of ``to_device_made``.
        bounds: the first place of each part, and the end.
        stream: for copies.
        back: for what comes back, of the type that it has on the device.

    Returns:
        A ``StagedTransfer`` or what does as one where numba copies.
    """
    if _by_numba():
        yield _TransferByNumba(fill, given, there, bounds, stream, back)
        return
    device, bus, here = _current(), handle_of(stream), np.dtype(np.int32) if back is None else back.dtype
    worth = max((bounds[-1] - bounds[0]) // _LEAST_MADE, 0 if back is None else back.nbytes // BUFFER)
    # Where a host has just as many processors, one is left to the thread that queues work of the device.
    together = _threads(min(threads, _MOST_THREADS - 1), worth)
    workers = device.workers(fill, np.dtype(there.dtype), here)
    with ExitStack() as held:
        held.enter_context(workers.taken)
        pairs = [held.enter_context(device.pair()) for _ in range(together)]
        events = [held.enter_context(device.event()) for _ in range(2)]
        come = None if back is None else Download(device.driver, events[0], bus, back, here, together)
        with StagedTransfer(workers, given, there, bounds, pairs, events[1], bus, come) as parts:
            yield parts


class _TransferByNumba:
    """As ``StagedTransfer``: all parts go at once, and what comes back is waited for."""

    def __init__(self, fill: Kernel, given: tuple[Any, ...], there: Any, bounds: Sequence[int], stream: Any,
                 back: np.ndarray | None) -> None:
        self._back, self._stream = back, stream
        for first, last in pairwise(bounds):
            here = np.empty(last - first, there.dtype)
            fill(here, np.uint64(first), words_of(given))
            if last > first:
                begin_to_device(here, there, 1, stream, first)()

    def make_wait(self, part: int, stream: Any) -> None:
        """Parts are there."""

    def download(self, array: Any, behind: Any) -> None:
        assert self._back is not None
        if len(self._back):
            self._back[:] = receive_through(self._back, array, 0, len(self._back), self._stream, behind)


def _threads(most: int, parts: int) -> int:
    """Of the host, for so many parts that are worth one each."""
    return max(1, min(most, parts, _MOST_THREADS))


def to_host(array: Any, total: int, dtype: Any, threads: int = 1, stream: Any = None) -> np.ndarray:
    """The first ``total`` items of a device array as ``dtype``, behind what is queued on the stream."""
    here = np.empty(total, dtype)
    if not total:
        return here
    if _by_numba():
        here[:] = receive_through(here, array, 0, total, stream, stream)
        return here
    device, queue, together = _current(), handle_of(stream), _threads(threads, here.nbytes // BUFFER)
    with device.event() as event:
        back = Download(device.driver, event, queue, here, np.dtype(array.dtype), together)
        back.begin(array, stream)

        def part(_: int) -> int:
            with device.pair() as pair:
                return back.receive(pair)

        checked(run_tasks(together, part, range(together), _COPY))
    return here
