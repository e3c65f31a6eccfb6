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
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np
from llvmlite import ir
from numba import cuda as _cuda
from numba import types
from numba.extending import intrinsic as _intrinsic

from . import driver_cuda
from .backends import current_device, on_device
from .carriers_cuda import Carriers
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
    WAIT,
    Lane,
    added,
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
from .threads import by_threads, in_turn

cuda: Any = _cuda  # numba's types don't know what code on the device may do
intrinsic: Any = _intrinsic
PIECE = 1 << 19
"""Bytes that go at a time of what takes longer to make than to copy: the bus needn't wait long for the first."""
_COPY = "copy"  # threads that wait for the bus alone: tasks of every other kind may wait for them
_MOST_THREADS = 16
_LEAST_MADE = 1 << 13  # items that it is worth calling a thread for, where the host makes them
_LARGE = 1 << 20  # bytes of a result for each thread from which on caches don't keep it anyway
_BRIEF = 1 << 19
"""Bytes from which on others may have the interpreter while they are copied."""
_PAGE = 4096


class _Device:
    """One device as the driver knows it, by its number.

    Attributes:
        functions: u8[9], addresses of the driver's functions.
        context: handle of the device's context, which every thread has to enter.
    """

    def __init__(self, number: int) -> None:
        self._number = number
        self.functions, self.context = driver_functions()
        self._idle: deque[Lane] = deque()
        self._events: deque[Any] = deque()
        self.make_ready(1)  # numba registers what frees them at exit: what is registered behind that comes before it
        # When the process ends the system takes back all at once; numba would free piece by piece, each from whatever
        # device's context is current then.
        self._at_exit = cuda.current_context().defer_cleanup()
        atexit.register(self._at_exit.__enter__)
        self._carriers, self._hurried = (Carriers(self.functions, self.context) for _ in range(2))
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


@intrinsic
def _put_past(typing_context, array, place, value):
    """``array[place] = value`` past the caches, which would read the memory first; seen by others behind ``_fence``."""

    def build(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, values[0]).data
        item = context.get_value_as_data(builder, array.dtype, values[2])
        store = builder.store(item, builder.gep(data, [values[1]]), align=context.get_abi_sizeof(item.type))
        store.set_metadata("nontemporal", builder.module.add_metadata([ir.Constant(ir.IntType(32), 1)]))
        return context.get_dummy_value()

    return types.void(array, types.uintp, array.dtype), build


@intrinsic
def _fence(typing_context):
    """What was put past the caches is in memory."""

    def build(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        builder.fence("seq_cst")
        return context.get_dummy_value()

    return types.void(), build


@cache
def _sender(fill: Kernel) -> Kernel:
    """The kernel that has ``fill`` fill buffers, one after the other, and sends them as they are filled."""

    @kernel(helpers=(driver_cuda, sys.modules[fill.py_func.__module__], *fill.helpers))
    def send(functions, context, reached, last, there, buffers, events, stream, given):
        """Fill items reached … last − 1 of what begins at an address of the device, with others who do the same.

        reached: u8[1], the next item that nobody has taken. buffers: the two of them, as the items' type. What is on
        its way in the end, the events tell. 0, or an error's code.
        """
        each, size, turn = np.uint64(len(buffers[0])), np.uint64(buffers[0].itemsize), np.uint64(0)
        home, last = np.uint64(reached.ctypes.data), np.uint64(last)
        error = call(functions[ENTER], (context,))
        while True:
            begin = added(home, each) - each
            if begin >= last:
                return error
            error = error or call(functions[WAIT], (events[turn],))
            count, buffer = min(each, last - begin), buffers[turn]
            fill(buffer[:count], begin, given)
            place = np.uint64(buffer.ctypes.data)
            error = error or call(functions[SEND], (there + begin * size, place, count * size, stream))
            error = error or call(functions[RECORD], (events[turn], stream))
            turn ^= np.uint64(1)

    return send


@kernel(helpers=(driver_cuda,))
def _settled(functions, context, stream):
    """Wait for a stream. 0, or an error's code, as from those that follow."""
    return call(functions[ENTER], (context,)) or call(functions[SETTLE], (stream,))


def _followed(functions: np.ndarray, context: Any, event: Any, stream: Any, followers: Iterable[Any]) -> int:
    """Have streams wait for what is queued on a stream by now. 0, or an error's code, as from those that follow."""
    error = briefly(functions[ENTER], context) or briefly(functions[RECORD], event, stream)
    for follower in followers:
        error = error or briefly(functions[FOLLOW], follower, event, 0)
    return error


def _sent_through(functions: np.ndarray, context: Any, locked: int, there: int, size: int, event: Any, stream: Any,
                  followers: Iterable[Any]) -> int:
    """Queue a copy of page-locked memory to the device and have streams wait for it."""
    error = briefly(functions[ENTER], context) or briefly(functions[SEND], there, locked, size, stream)
    return error or _followed(functions, context, event, stream, followers)


@kernel(helpers=(driver_cuda,))
def _received_through(functions, host, context, there, locked, here, size, stream, behind):
    """The way back, when a stream has done what it has now."""
    error = call(functions[ENTER], (context,)) or call(functions[SETTLE], (behind,))
    error = error or call(functions[RECEIVE], (locked, there, size, stream))
    error = error or call(functions[SETTLE], (stream,))
    call(host[COPY_MEMORY], (here, locked, size))
    return error


@kernel
def _touch(out):
    """Write something to every page of an array."""
    for n in range(np.uint64(0), np.uint64(len(out)), np.uint64(_PAGE // out.itemsize)):
        out[n] = 0


@kernel(helpers=(driver_cuda,))
def _receive(functions, context, there, items, buffers, events, stream, out):
    """Copy from an address of the device to ``out``, of any type; ``items`` are the buffers as the device's type.

    While the first copy waits for the device, the memory of ``out`` is touched. 0, or an error's code.
    """
    each, size, large = np.uint64(items.shape[1]), np.uint64(items.itemsize), len(out) * out.itemsize > _LARGE
    home, error = np.uint64(buffers.ctypes.data), call(functions[ENTER], (context,))
    for first in range(np.uint64(0), np.uint64(len(out)) + each, each):
        turn = (first // each) & np.uint64(1)
        if first < np.uint64(len(out)):
            count = min(each, np.uint64(len(out)) - first)
            buffer = home + turn * each * size
            error = error or call(functions[WAIT], (events[turn],))  # for what is still on its way from the buffer
            error = error or call(functions[RECEIVE], (buffer, there + first * size, count * size, stream))
            error = error or call(functions[RECORD], (events[turn], stream))
        if first == 0:
            _touch(out)
        else:
            turn, begin = turn ^ np.uint64(1), first - each
            error = error or call(functions[WAIT], (events[turn],))
            part, received = out[begin : begin + each], items[turn]
            if large:
                for n in range(np.uint64(len(part))):
                    _put_past(part, n, received[n])
            else:
                for n in range(np.uint64(len(part))):
                    part[n] = received[n]
    _fence()
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
    if briefly(device.functions[ENTER], device.context) or briefly(device.functions[QUERY], handle):
        checked([_settled(device.functions, device.context, handle)])


def follow(stream: Any, followers: Sequence[Any]) -> None:
    """Have what will be queued on some streams wait for what is queued on another one by now."""
    if not SIMULATED:
        device = _current()
        with device.event() as event:
            checked([_followed(device.functions, device.context, event, handle_of(stream), map(handle_of, followers))])


def clear(array: Any, count: int, stream: Any) -> None:
    """Queue zeros for the first items, of four or eight bytes, of a device array."""
    if SIMULATED:
        array[:count] = 0
    if SIMULATED or not count:
        return
    device, address = _current(), array.device_ctypes_pointer.value
    checked([briefly(device.functions[ENTER], device.context) or briefly(
        device.functions[CLEAR], address, 0, count * array.dtype.itemsize // 4, handle_of(stream))])


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
        checked([_sent_through(device.functions, device.context, locked.ctypes.data, there.device_ctypes_pointer.value,
                               array.nbytes, event, handle_of(stream), map(handle_of, followers))])


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
    checked([_received_through(device.functions, host_functions(), device.context, np.uint64(address),
                               np.uint64(locked.ctypes.data), np.uint64(here.ctypes.data), np.uint64(here.nbytes),
                               handle_of(stream), handle_of(behind))])
    return here


def to_device_made(fill: Kernel, given: tuple[Any, ...], there: Any, first: int, last: int, threads: int = 1,
                   stream: Any = None) -> None:
    """Fill places of a device array with what a kernel of the host makes, piece by piece, as it goes there.

    Args:
        fill: called as ``fill(out, n, given)``, by several threads: fills an array with items n, n + 1, ….
        given: arrays and numbers for it.
        there: the device array.
        first, last: the places to be filled, first … last − 1.
        threads, stream: as of ``to_device``.
    """
    if last <= first:
        return
    kind = np.dtype(there.dtype)
    if SIMULATED:
        here = np.empty(last - first, kind)
        fill(here, np.uint64(first), given)
        there[first:last].copy_to_device(here)
        return
    _sent(fill, given, there.device_ctypes_pointer.value, kind, first, last, _LEAST_MADE * kind.itemsize, PIECE,
          threads, stream)


def _sent(fill: Kernel, given: tuple[Any, ...], address: int, kind: np.dtype, first: int, last: int, least: int,
          piece: int, threads: int, stream: Any) -> None:
    """Have items first … last − 1 of what begins at an address filled by threads.

    least: bytes that it is worth calling a thread for. piece: bytes that go at a time.
    """
    device, send, reached = _current(), _sender(fill), np.array([first], np.uint64)

    def work(_: int) -> int:
        with device.lane() as lane:
            buffers = tuple(buffer[:piece].view(kind) for buffer in lane.buffers)
            return send(device.functions, device.context, reached, last, np.uint64(address), buffers, lane.events,
                        handle_of(stream), given)

    together = _threads(threads, (last - first) * kind.itemsize // least)
    checked(in_turn(together, work, range(together), _COPY))
    if not stream:
        cuda.default_stream().synchronize()


def _threads(most: int, parts: int) -> int:
    """Of the host, for so many parts that are worth one each."""
    return max(1, min(most, parts, _MOST_THREADS))


def touch(array: np.ndarray, threads: int = 1) -> None:
    """Have the system find memory for a new array now: 0.6 microseconds a page, which may pass while others work."""
    by_threads(threads, 0, len(array), lambda n, first, last: _touch(array[first:last]), _COPY)


def to_host(array: Any, total: int, dtype: Any, threads: int = 1, stream: Any = None,
            here: np.ndarray | None = None) -> np.ndarray:
    """The first ``total`` items of a device array as ``dtype``, behind what is queued on the stream.

    here: of that type and length, to copy to; a new array when left out.
    """
    here = np.empty(total, dtype) if here is None else here
    source = np.dtype(array.dtype)
    if SIMULATED or not total:
        if total:
            here[:] = array[:total].copy_to_host()
        return here
    device, queue, address = _current(), handle_of(stream), array.device_ctypes_pointer.value

    def part(_: int, first: int, last: int) -> int:
        with device.lane() as lane:
            return _receive(device.functions, device.context, np.uint64(address + first * source.itemsize),
                            lane.buffers.view(source), lane.buffers, lane.events, queue, here[first:last])

    checked(by_threads(_threads(threads, here.nbytes // BUFFER), 0, total, part, _COPY))
    return here
