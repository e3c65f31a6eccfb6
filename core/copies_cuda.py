"""Large arrays to a CUDA device and back, at the speed of the bus.

The device reads and writes page-locked memory by itself; arrays elsewhere go by way of small buffers of that kind.
Every thread of the host has two of them: while one is on its way the other one is filled, or emptied. Kernels of the
host do this and call the driver themselves, since a bus that takes 20 microseconds for a buffer would wait for an
interpreter that serves sixteen threads. Buffers are few and small enough to stay in the processor's caches, so that the
host's memory is read once and written once.

What is sent as it is goes by threads of its own (``carriers_cuda.py``).

What is small goes by way of page-locked memory of its owner. To copy it back and to wait for it is one call of a
kernel, since whoever gives the interpreter away waits for it again: a tenth of a millisecond and more where several
threads want it. What needn't wait for a device, like queueing a copy, is called without giving it away.
"""

import atexit
import ctypes
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
from numba import cuda as _cuda

from . import driver_cuda
from .backends import current_device, on_device
from .carriers_cuda import Carriers
from .crossings_cuda import Crew, Crossing, Driver, Return, words_of
from .driver_cuda import (
    BUFFER,
    CLEAR,
    COPY_MEMORY,
    ENTER,
    FOLLOW,
    QUERY,
    RECEIVE,
    RECORD,
    SEND,
    SETTLE,
    Lane,
    briefly,
    call,
    checked,
    driver_functions,
    handle_of,
    host_functions,
    new_lane,
)
from .jit import Kernel, kernel
from .packed16 import SIMULATED
from .threads import in_turn

cuda: Any = _cuda  # numba's types don't know what code on the device may do
_COPY = "copy"  # threads that wait for the bus alone: tasks of every other kind may wait for them
_MOST_THREADS = 16
_LEAST_MADE = 1 << 13  # items that it is worth calling a thread for, where the host makes them
_BRIEF = 1 << 19
"""Bytes from which on others may have the interpreter while they are copied."""


class _Device:
    """One device as the driver knows it, by its number.

    Attributes:
        driver: with the context of the device, which every thread has to enter.
    """

    def __init__(self, number: int) -> None:
        self._number = number
        functions, context = driver_functions()
        self.driver = Driver(functions, host_functions(), context)
        self._idle: deque[Lane] = deque()
        self._events: deque[Any] = deque()
        self.make_ready(1)  # numba registers what frees them at exit: what is registered behind that comes before it
        # When the process ends the system takes back all at once; numba would free piece by piece, each from whatever
        # device's context is current then.
        self._at_exit = cuda.current_context().defer_cleanup()
        atexit.register(self._at_exit.__enter__)
        self._carriers, self._hurried = (Carriers(functions, context) for _ in range(2))
        self._crews: dict[tuple[Kernel, np.dtype, np.dtype], Crew] = {}
        self._starting = threading.Lock()

    def make_ready(self, count: int) -> None:
        """Have so many lanes that nobody uses."""
        self._idle.extend([new_lane() for _ in range(count - len(self._idle))])

    def _taken(self) -> Lane:
        try:
            return self._idle.pop()
        except IndexError:
            with on_device(self._number):
                return new_lane()

    @contextmanager
    def lane(self) -> Iterator[Lane]:
        """One that nobody else uses meanwhile; there are as many as have been used at a time."""
        lane = self._taken()
        try:
            yield lane
        finally:
            self._idle.append(lane)

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

    def crew(self, fill: Kernel, there: np.dtype, here: np.dtype) -> Crew:
        """Threads that fill arrays of one type, and receive another one."""
        with self._starting:
            kind = fill, there, here
            if kind not in self._crews:
                self._crews[kind] = Crew(self.driver, fill, there, here)
            return self._crews[kind]

    def carriers(self, count: int, hurried: bool = False) -> Carriers:
        """So many or more; they are started when they are first asked for. Others do what is hurried."""
        carriers = self._hurried if hurried else self._carriers
        with self._starting:
            while len(carriers) < count:
                carriers.add(self._taken())
        return carriers


@cache
def _device(number: int) -> _Device:
    return _Device(number)


_making = threading.Lock()


def _current() -> _Device:
    with _making:
        return _device(current_device())


def make_ready(threads: int) -> None:
    """Have what so many threads of the host need to copy to the current device: some milliseconds for each."""
    if not SIMULATED:
        _current().carriers(threads)


@kernel(helpers=(driver_cuda,))
def _settled(functions, host, context, stream):
    """Wait for a stream. 0, or an error's code, as from those that follow."""
    return call(functions[ENTER], (context,)) or call(functions[SETTLE], (stream,))


def _followed(driver: Driver, event: Any, stream: Any, followers: Iterable[Any]) -> int:
    """Have streams wait for what is queued on a stream by now. 0, or an error's code, as from those that follow."""
    functions, _, context = driver
    error = briefly(functions[ENTER], context) or briefly(functions[RECORD], event, stream)
    for follower in followers:
        error = error or briefly(functions[FOLLOW], follower, event, 0)
    return error


def _sent_through(driver: Driver, locked: int, there: int, size: int, event: Any, stream: Any,
                  followers: Iterable[Any]) -> int:
    """Queue a copy of page-locked memory to the device and have streams wait for it."""
    functions, _, context = driver
    error = briefly(functions[ENTER], context) or briefly(functions[SEND], there, locked, size, stream)
    return error or _followed(driver, event, stream, followers)


@kernel(helpers=(driver_cuda,))
def _received_through(functions, host, context, there, locked, here, size, stream, behind):
    """The way back, when a stream has done what it has now."""
    error = call(functions[ENTER], (context,)) or call(functions[SETTLE], (behind,))
    error = error or call(functions[RECEIVE], (locked, there, size, stream))
    error = error or call(functions[SETTLE], (stream,))
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
    if not (stream or SIMULATED):
        cuda.default_stream().synchronize()
    return there


def begin_to_device(array: np.ndarray, there: Any, threads: int, stream: Any, at: int = 0,
                    hurried: bool = False) -> Callable[[], None]:
    """As ``to_device``, but the array has to stay as it is until what this returns has been called, which waits.

    Copies that are begun one after the other are done in that order, without a gap; those that are ``hurried`` overtake
    others.
    """
    array = np.ascontiguousarray(array)
    if SIMULATED or not len(array):
        if len(array):
            there[at : at + len(array)].copy_to_device(array)
        return lambda: None
    target = there.device_ctypes_pointer.value + at * array.itemsize
    carriers = _current().carriers(_threads(threads, array.nbytes // BUFFER), hurried)
    finish = carriers.send(array.ctypes.data, target, array.nbytes, handle_of(stream))

    def finished(sent: np.ndarray = array) -> None:  # holds the array
        finish()

    return finished


def settle(stream: Any) -> None:
    """Wait until all is done that is queued on a stream of the current device, or will be meanwhile."""
    if SIMULATED:
        return
    device, handle = _current(), handle_of(stream)
    functions, _, context = device.driver
    if briefly(functions[ENTER], context) or briefly(functions[QUERY], handle):
        checked([_settled(*device.driver, handle)])


def follow(stream: Any, followers: Sequence[Any]) -> None:
    """Have what will be queued on some streams wait for what is queued on another one by now."""
    if not SIMULATED:
        device = _current()
        with device.event() as event:
            checked([_followed(device.driver, event, handle_of(stream), map(handle_of, followers))])


def clear(array: Any, count: int, stream: Any) -> None:
    """Queue zeros for the first items, of four or eight bytes, of a device array."""
    if SIMULATED:
        array[:count] = 0
    if SIMULATED or not count:
        return
    functions, _, context = _current().driver
    address = array.device_ctypes_pointer.value
    checked([briefly(functions[ENTER], context) or briefly(
        functions[CLEAR], address, 0, count * array.dtype.itemsize // 4, handle_of(stream))])


def send_through(locked: np.ndarray, array: np.ndarray, there: Any, stream: Any, followers: Sequence[Any]) -> None:
    """Queue a copy of ``array`` to the beginning of a device array, by way of page-locked memory that holds as much.

    All of one type. What is queued on the streams ``followers`` from now on comes behind the copy. The host goes on; it
    leaves the page-locked memory alone until one of them has come so far.
    """
    if SIMULATED:
        there[: len(array)].copy_to_device(array)
        return
    device, array = _current(), np.ascontiguousarray(array)
    if array.nbytes < _BRIEF:
        ctypes.memmove(locked.ctypes.data, array.ctypes.data, array.nbytes)
    else:
        locked[: len(array)] = array
    with device.event() as event:
        checked([_sent_through(device.driver, locked.ctypes.data, there.device_ctypes_pointer.value, array.nbytes,
                               event, handle_of(stream), map(handle_of, followers))])


def receive_through(locked: np.ndarray, there: Any, first: int, last: int, stream: Any, behind: Any) -> np.ndarray:
    """Items first … last − 1 of a device array, by way of page-locked memory of at least their size.

    They are copied on a stream when all is done that is queued on the stream ``behind``.
    """
    here = np.empty(last - first, there.dtype)
    if SIMULATED:
        here[:] = there[first:last].copy_to_host()
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
    with crossing(fill, given, there, [first, last], threads, stream):
        pass
    if not (stream or SIMULATED):
        cuda.default_stream().synchronize()


@contextmanager
def crossing(fill: Kernel, given: tuple[Any, ...], there: Any, bounds: Sequence[int], threads: int = 1,
             stream: Any = None, back: np.ndarray | None = None) -> Iterator[Any]:
    """Begin to fill a device array part by part; then something may come back, received by the same threads.

    Args:
        fill, given, there, threads: as of ``to_device_made``.
        bounds: the first place of each part, and the end.
        stream: for copies.
        back: for what comes back, of the type that it has on the device.

    Returns:
        A ``Crossing`` or what does as one where the device is simulated.
    """
    if SIMULATED:
        yield _Simulated(fill, given, there, bounds, back)
        return
    device, bus, here = _current(), handle_of(stream), np.dtype(np.int32) if back is None else back.dtype
    worth = max((bounds[-1] - bounds[0]) // _LEAST_MADE, 0 if back is None else back.nbytes // BUFFER)
    # Where a host has just as many processors, one is left to the thread that queues work of the device.
    together = _threads(min(threads, _MOST_THREADS - 1), worth)
    crew = device.crew(fill, np.dtype(there.dtype), here)
    with ExitStack() as held:
        held.enter_context(crew.taken)
        lanes = [held.enter_context(device.lane()) for _ in range(together)]
        events = [held.enter_context(device.event()) for _ in range(2)]
        come = None if back is None else Return(device.driver, events[0], bus, back, here, together)
        with Crossing(crew, given, there, bounds, lanes, events[1], bus, come) as parts:
            yield parts


class _Simulated:
    """As ``Crossing``, for a simulated device: all parts go at once."""

    def __init__(self, fill: Kernel, given: tuple[Any, ...], there: Any, bounds: Sequence[int],
                 back: np.ndarray | None) -> None:
        self._back = back
        for first, last in pairwise(bounds):
            here = np.empty(last - first, there.dtype)
            fill(here, np.uint64(first), words_of(given))
            if last > first:
                there[first:last].copy_to_device(here)

    def follow(self, part: int, stream: Any) -> None:
        pass

    def come_back(self, array: Any, behind: Any) -> None:
        assert self._back is not None
        if len(self._back):
            self._back[:] = array[: len(self._back)].copy_to_host()


def _threads(most: int, parts: int) -> int:
    """Of the host, for so many parts that are worth one each."""
    return max(1, min(most, parts, _MOST_THREADS))


def to_host(array: Any, total: int, dtype: Any, threads: int = 1, stream: Any = None) -> np.ndarray:
    """The first ``total`` items of a device array as ``dtype``, behind what is queued on the stream."""
    here = np.empty(total, dtype)
    if SIMULATED or not total:
        if total:
            here[:] = array[:total].copy_to_host()
        return here
    device, queue, together = _current(), handle_of(stream), _threads(threads, here.nbytes // BUFFER)
    with device.event() as event:
        back = Return(device.driver, event, queue, here, np.dtype(array.dtype), together)
        back.begin(array, stream)

        def part(_: int) -> int:
            with device.lane() as lane:
                return back.receive(lane)

        checked(in_turn(together, part, range(together), _COPY))
    return here
