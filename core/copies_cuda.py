"""Large arrays to a CUDA device and back, at the speed of the bus.

The device reads and writes page-locked memory by itself; arrays elsewhere go by way of small buffers of that kind.
Every thread of the host has two of them: while one is on its way the other one is filled, or emptied. Kernels of the
host do this and call the driver themselves, since a bus that takes 20 microseconds for a buffer would wait for an
interpreter that serves sixteen threads. Buffers are few and small enough to stay in the processor's caches, so that the
host's memory is read once and written once.

What is sent as it is, threads copy that never come back to the interpreter: they wait for pieces in a kernel. Whoever
sends leaves them all pieces of an array and goes on; each thread takes the next one when it is done with one, since
some are given a slow processor, and while pieces of one array are under way, those of the next follow.

What is small goes by way of page-locked memory of its owner. To copy it and to wait for it is one call of a kernel:
every call of the driver from the interpreter gives that away, and several threads would wait for it again each time.
"""

import atexit
import ctypes
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import cuda as _cuda
from numba import types
from numba.core.cgutils import unpack_tuple
from numba.extending import intrinsic as _intrinsic

from .backends import current_device, on_device
from .errors import BackendError
from .jit import Kernel, kernel
from .packed16 import SIMULATED
from .threads import by_threads, in_turn

cuda: Any = _cuda  # numba's types don't know what code on the device may do
intrinsic: Any = _intrinsic
BUFFER = 2 << 20
"""Bytes of a buffer."""
PIECE = 1 << 19
"""Bytes that go at a time of what takes longer to make than to copy: the bus needn't wait long for the first."""
_COPY = "copy"  # threads that wait for the bus alone: tasks of every other kind may wait for them
_MOST_THREADS = 16
_LEAST_MADE = 1 << 13  # items that it is worth calling a thread for, where the host makes them
_LARGE = 1 << 20  # bytes of a result for each thread from which on caches don't keep it anyway
_ENTER, _SEND, _RECEIVE, _RECORD, _WAIT, _SETTLE = range(6)
_FUNCTIONS = ("cuCtxSetCurrent", "cuMemcpyHtoDAsync", "cuMemcpyDtoHAsync", "cuEventRecord", "cuEventSynchronize",
              "cuStreamSynchronize")
_SEMAPHORE_WAIT, _SEMAPHORE_POST, _COPY_MEMORY = range(3)
_HOST_FUNCTIONS = ("sem_wait", "sem_post", "memcpy")  # of the C library
_PAGE = 4096
_WORD = 8
_PIECES = 4096
"""That may be under way at a time."""
_MOST_PIECES = _PIECES // 8
"""Of one array."""
_FROM, _TO, _BYTES, _STREAM, _SENT = range(5)
"""Words of a piece: addresses on host and device, its bytes, a stream, and the address of words of what is sent."""
_LEFT, _ERROR = 4, 5
"""Words of what is sent, behind a semaphore that is posted when the memory may change: pieces left, an error's code."""
_TAKEN = 4
"""Word of a line of pieces, behind a semaphore that is posted for each: how many have been taken."""


class _Lane(NamedTuple):
    """What a thread of the host has to copy to and from one device.

    Attributes:
        buffers: page-locked u1[2, BUFFER].
        events: u8[2], handles of events that come when a buffer's last copy is done.
        held: the events themselves, which numba destroys when nobody holds them.
    """

    buffers: np.ndarray
    events: np.ndarray
    held: tuple[Any, Any]


_library = ctypes.PyDLL(None)
"""The C library; what is called of it doesn't wait, and so needn't let go of the interpreter."""


@cache
def _host_functions() -> np.ndarray:
    """u8[3], addresses."""
    return np.array([ctypes.cast(getattr(_library, name), ctypes.c_void_p).value for name in _HOST_FUNCTIONS],
                    np.uint64)


def _new_words() -> np.ndarray:
    """Words of what is sent, or of a line of pieces, with a semaphore of POSIX at 0."""
    words = np.zeros(6, np.uint64)
    _library.sem_init(ctypes.c_void_p(words.ctypes.data), 0, 0)
    return words


class _Carriers:
    """Threads of the host that copy to a device, a piece each, what stands in line.

    Args:
        functions, context: as of ``_Device``.
        size: bytes of a piece, if there aren't too many then.
    """

    def __init__(self, functions: np.ndarray, context: np.uint64, size: int = BUFFER) -> None:
        self._functions, self._context, self._size = functions, context, size
        self._pieces, self._line = np.zeros((_PIECES, 5), np.uint64), _new_words()
        self._lanes: list[_Lane] = []
        self._given = self._under_way = 0
        self._changed = threading.Condition()

    def __len__(self) -> int:
        return len(self._lanes)

    def add(self, lane: _Lane) -> None:
        """One more, with a lane of its own."""
        self._lanes.append(lane)
        threading.Thread(target=_carry, name="carrier", daemon=True, args=(
            self._functions, _host_functions(), self._context, self._line, self._pieces, lane.buffers,
            lane.events)).start()

    def send(self, source: int, there: int, size: int, stream: np.uint64) -> Callable[[], None]:
        """Have bytes copied from an address of the host to one of the device; gives what waits until they may change.

        Who has begun much has to wait for some of it before there is room for more.
        """
        each = max(self._size, -(-size // _MOST_PIECES))
        begins = each * np.arange(-(-size // each), dtype=np.uint64)
        sent = _new_words()
        sent[_LEFT] = len(begins)
        with self._changed:
            self._changed.wait_for(lambda: self._under_way + len(begins) <= _PIECES)
            places = (self._given + np.arange(len(begins))) % _PIECES
            lengths: Any = np.minimum(each, size - begins)
            for word, values in enumerate((source + begins, there + begins, lengths, stream, sent.ctypes.data)):
                self._pieces[places, word] = values
            self._given += len(begins)
            self._under_way += len(begins)
            _post(_host_functions(), self._line, len(begins))

        def finish() -> None:
            try:
                if len(begins):
                    _await(_host_functions(), sent)
                    _checked([int(sent[_ERROR])])
            finally:
                with self._changed:
                    self._under_way -= len(begins)
                    self._changed.notify_all()

        return finish


class _Device:
    """One device as the driver knows it, by its number.

    Attributes:
        functions: u8[6], addresses of the driver's functions.
        context: handle of the device's context, which every thread has to enter.
    """

    def __init__(self, number: int) -> None:
        self._number = number
        self.functions, self.context = _driver()
        self._idle: deque[_Lane] = deque()
        self._events: deque[Any] = deque()
        self.make_ready(1)  # numba registers what frees them at exit: what is registered behind that comes before it
        # When the process ends the system takes back all at once; numba would free piece by piece, each from whatever
        # device's context is current then.
        self._at_exit = cuda.current_context().defer_cleanup()
        atexit.register(self._at_exit.__enter__)
        self._carriers, self._hurried = (_Carriers(self.functions, self.context) for _ in range(2))
        self._starting = threading.Lock()

    def make_ready(self, count: int) -> None:
        """Have so many lanes that nobody uses."""
        self._idle.extend([_new_lane() for _ in range(count - len(self._idle))])

    def _taken(self) -> _Lane:
        try:
            return self._idle.pop()
        except IndexError:
            with on_device(self._number):
                return _new_lane()

    @contextmanager
    def lane(self) -> Iterator[_Lane]:
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

    def carriers(self, count: int, hurried: bool = False) -> _Carriers:
        """So many or more; they are started when they are first asked for. Others do what is hurried."""
        carriers = self._hurried if hurried else self._carriers
        with self._starting:
            while len(carriers) < count:
                carriers.add(self._taken())
        return carriers


def _new_lane() -> _Lane:
    """One for the current device: a millisecond for each MiB."""
    events = cuda.event(timing=False), cuda.event(timing=False)
    return _Lane(cuda.pinned_array((2, BUFFER), np.uint8), np.array([int(event.handle) for event in events], np.uint64),
                 events)


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


def _driver() -> tuple[np.ndarray, np.uint64]:
    """The addresses, and the current context."""
    from cuda.bindings import driver

    found = [driver.cuGetProcAddress(name.encode(), 12000, 0)[:2] for name in _FUNCTIONS]
    return np.array([int(address) for _, address in found], np.uint64), np.uint64(int(driver.cuCtxGetCurrent()[1]))


@intrinsic
def _call(typing_context, address, arguments):
    """What the C function at an address returns, an i4, for arguments of 64 bits."""

    def build(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        words = unpack_tuple(builder, values[1])
        shape = ir.FunctionType(ir.IntType(32), [ir.IntType(64)] * len(words))
        return builder.call(builder.inttoptr(values[0], shape.as_pointer()), words)

    return types.int32(types.uint64, types.UniTuple(types.uint64, len(arguments))), build


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


def _atomic(operation: str) -> Any:
    """Function of an address and a word: what the word there becomes, which no other thread can come between."""

    @intrinsic
    def changed(typing_context, address, word):
        def build(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            there = builder.inttoptr(values[0], ir.IntType(64).as_pointer())
            before = builder.atomic_rmw(operation, there, values[1], "seq_cst")
            return _AFTER[operation](builder, before, values[1])

        return types.uint64(types.uint64, types.uint64), build

    return changed


_AFTER: dict[str, Callable[[Any, Any, Any], Any]] = {
    "add": lambda builder, before, word: builder.add(before, word),
    "sub": lambda builder, before, word: builder.sub(before, word),
    "umax": lambda builder, before, word: builder.select(builder.icmp_unsigned(">", word, before), word, before),
}
_added, _subtracted, _raised = map(_atomic, _AFTER)


@cache
def _sender(fill: Kernel) -> Kernel:
    """The kernel that has ``fill`` fill buffers, one after the other, and sends them as they are filled."""

    @kernel(helpers=(sys.modules[fill.py_func.__module__], *fill.helpers))
    def send(functions, context, reached, last, there, buffers, events, stream, given):
        """Fill items reached … last − 1 of what begins at an address of the device, with others who do the same.

        reached: u8[1], the next item that nobody has taken. buffers: the two of them, as the items' type. What is on
        its way in the end, the events tell. 0, or an error's code.
        """
        each, size, turn = np.uint64(len(buffers[0])), np.uint64(buffers[0].itemsize), np.uint64(0)
        home, last = np.uint64(reached.ctypes.data), np.uint64(last)
        error = _call(functions[_ENTER], (context,))
        while True:
            begin = _added(home, each) - each
            if begin >= last:
                return error
            error = error or _call(functions[_WAIT], (events[turn],))
            count, buffer = min(each, last - begin), buffers[turn]
            fill(buffer[:count], begin, given)
            place = np.uint64(buffer.ctypes.data)
            error = error or _call(functions[_SEND], (there + begin * size, place, count * size, stream))
            error = error or _call(functions[_RECORD], (events[turn], stream))
            turn ^= np.uint64(1)

    return send


@kernel
def _carry(functions, host, context, line, pieces, buffers, events):
    """Send pieces (u8[n, 5], the first again behind the last) as they come into line, forever."""
    each, turn, home = np.uint64(buffers.shape[1]), np.uint64(0), np.uint64(line.ctypes.data)
    entered = _call(functions[_ENTER], (context,))
    while True:
        while _call(host[_SEMAPHORE_WAIT], (home,)):  # a signal may end it
            pass
        number = _added(home + np.uint64(_TAKEN * _WORD), np.uint64(1)) - np.uint64(1)
        piece, error = pieces[number % np.uint64(len(pieces))], entered
        for begin in range(np.uint64(0), piece[_BYTES], each):
            error = error or _call(functions[_WAIT], (events[turn],))
            count, buffer = min(each, piece[_BYTES] - begin), np.uint64(buffers[turn].ctypes.data)
            _call(host[_COPY_MEMORY], (buffer, piece[_FROM] + begin, count))
            error = error or _call(functions[_SEND], (piece[_TO] + begin, buffer, count, piece[_STREAM]))
            error = error or _call(functions[_RECORD], (events[turn], piece[_STREAM]))
            turn ^= np.uint64(1)
        sent = piece[_SENT]
        _raised(sent + np.uint64(_ERROR * _WORD), np.uint64(error))
        if not _subtracted(sent + np.uint64(_LEFT * _WORD), np.uint64(1)):
            _call(host[_SEMAPHORE_POST], (sent,))


@kernel
def _post(host, semaphore, count):
    """Let so many through that wait for a semaphore."""
    for _ in range(count):
        _call(host[_SEMAPHORE_POST], (np.uint64(semaphore.ctypes.data),))


@kernel
def _await(host, semaphore):
    """Until a semaphore is posted."""
    while _call(host[_SEMAPHORE_WAIT], (np.uint64(semaphore.ctypes.data),)):
        pass


@kernel
def _settled(functions, context, stream):
    """Wait for a stream. 0, or an error's code, as from those that follow."""
    return _call(functions[_ENTER], (context,)) or _call(functions[_SETTLE], (stream,))


@kernel
def _reached(functions, context, event, stream):
    """Wait for an event that comes when a stream has done what it has now."""
    error = _call(functions[_ENTER], (context,)) or _call(functions[_RECORD], (event, stream))
    return error or _call(functions[_WAIT], (event,))


@kernel
def _sent_through(functions, host, context, here, locked, there, size, stream):
    """Copy from one address of the host to another, from there to the device, and wait."""
    _call(host[_COPY_MEMORY], (locked, here, size))
    error = _call(functions[_ENTER], (context,)) or _call(functions[_SEND], (there, locked, size, stream))
    return error or _call(functions[_SETTLE], (stream,))


@kernel
def _received_through(functions, host, context, there, locked, here, size, stream, behind):
    """The way back, when a stream has done what it has now."""
    error = _call(functions[_ENTER], (context,)) or _call(functions[_SETTLE], (behind,))
    error = error or _call(functions[_RECEIVE], (locked, there, size, stream))
    error = error or _call(functions[_SETTLE], (stream,))
    _call(host[_COPY_MEMORY], (here, locked, size))
    return error


@kernel
def _touch(out):
    """Write something to every page of an array."""
    for n in range(np.uint64(0), np.uint64(len(out)), np.uint64(_PAGE // out.itemsize)):
        out[n] = 0


@kernel
def _receive(functions, context, there, items, buffers, events, stream, out):
    """Copy from an address of the device to ``out``, of any type; ``items`` are the buffers as the device's type.

    While the first copy waits for the device, the memory of ``out`` is touched. 0, or an error's code.
    """
    each, size, large = np.uint64(items.shape[1]), np.uint64(items.itemsize), len(out) * out.itemsize > _LARGE
    home, error = np.uint64(buffers.ctypes.data), _call(functions[_ENTER], (context,))
    for first in range(np.uint64(0), np.uint64(len(out)) + each, each):
        turn = (first // each) & np.uint64(1)
        if first < np.uint64(len(out)):
            count = min(each, np.uint64(len(out)) - first)
            buffer = home + turn * each * size
            error = error or _call(functions[_WAIT], (events[turn],))  # for what is still on its way from the buffer
            error = error or _call(functions[_RECEIVE], (buffer, there + first * size, count * size, stream))
            error = error or _call(functions[_RECORD], (events[turn], stream))
        if first == 0:
            _touch(out)
        else:
            turn, begin = turn ^ np.uint64(1), first - each
            error = error or _call(functions[_WAIT], (events[turn],))
            part, received = out[begin : begin + each], items[turn]
            if large:
                for n in range(np.uint64(len(part))):
                    _put_past(part, n, received[n])
            else:
                for n in range(np.uint64(len(part))):
                    part[n] = received[n]
    _fence()
    return error


def _checked(errors: list[int]) -> None:
    if any(errors):
        raise BackendError(f"copying to or from the device failed (code {max(errors)} of the CUDA driver)")


def _handle(stream: Any) -> np.uint64:
    return np.uint64(int(stream.handle) if stream else 0)


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
    finish = carriers.send(array.ctypes.data, target, array.nbytes, _handle(stream))

    def finished(sent: np.ndarray = array) -> None:  # holds the array
        finish()

    return finished


def settle(stream: Any, behind: bool = True) -> None:
    """Wait until all is done that is queued on a stream of the current device.

    behind: also what is queued there from now on, as long as there is any.
    """
    if SIMULATED:
        return
    device = _current()
    if behind:
        _checked([_settled(device.functions, device.context, _handle(stream))])
    else:
        with device.event() as event:
            _checked([_reached(device.functions, device.context, event, _handle(stream))])


def send_through(locked: np.ndarray, array: np.ndarray, there: Any, stream: Any) -> None:
    """Have a copy of ``array`` at the beginning of a device array, by way of page-locked memory of at least its size.

    All of one type. It is done, and so is all that was queued on the stream.
    """
    if SIMULATED:
        there[: len(array)].copy_to_device(array)
        return
    device, array = _current(), np.ascontiguousarray(array)
    _checked([_sent_through(device.functions, _host_functions(), device.context, np.uint64(array.ctypes.data),
                            np.uint64(locked.ctypes.data), np.uint64(there.device_ctypes_pointer.value),
                            np.uint64(array.nbytes), _handle(stream))])


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
    _checked([_received_through(device.functions, _host_functions(), device.context, np.uint64(address),
                                np.uint64(locked.ctypes.data), np.uint64(here.ctypes.data), np.uint64(here.nbytes),
                                _handle(stream), _handle(behind))])
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
                        _handle(stream), given)

    together = _threads(threads, (last - first) * kind.itemsize // least)
    _checked(in_turn(together, work, range(together), _COPY))
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
    device, queue, address = _current(), _handle(stream), array.device_ctypes_pointer.value

    def part(_: int, first: int, last: int) -> int:
        with device.lane() as lane:
            return _receive(device.functions, device.context, np.uint64(address + first * source.itemsize),
                            lane.buffers.view(source), lane.buffers, lane.events, queue, here[first:last])

    _checked(by_threads(_threads(threads, here.nbytes // BUFFER), 0, total, part, _COPY))
    return here
