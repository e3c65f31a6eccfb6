"""What threads of the host make goes to a CUDA device, part by part, and what the device makes of it comes back.

The threads wait in a kernel and never come back to the interpreter, which would hand itself on from one to the next for
a millisecond when they begin, and for another one when they end. Each fills and sends pieces of all parts, one after
the other, and waits for nobody. Then, while the device works, they have the system find memory for the result, which
takes about as long as to receive it; and they receive it.
"""

import threading
from collections.abc import Sequence
from functools import cache
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic as _intrinsic

from ..classes import NamedTuple
from ..kernels.jit import Kernel, kernel
from .driver import (
    ASK,
    BUFFER,
    ENTER,
    RECEIVE,
    RECORD,
    SEMAPHORE_POST,
    SEMAPHORE_WAIT,
    SEND,
    WAIT,
    WAIT_EVENT,
    PinnedPair,
    added,
    array_at,
    call,
    checked,
    handle_of,
    raised,
    subtracted,
)
from .upload_pool import ERROR, LEFT, await_post, new_words, post

intrinsic: Any = _intrinsic  # numba's own type counts the typing context among the arguments of a call
_LEAST_PIECE = 1 << 18
_PIECES = 4
"""Of each thread, at least, that sends something large: so all of them end at about the same time."""
_READY, _TOUCHED, _TAKEN, _FROM, _EVENT, _STREAM = range(4, 10)
"""Words of what comes back, behind a semaphore that is posted when it is on its way: whether it is; bytes of memory
that have been touched and items that have been taken up by some thread; an address of the device, 0 if nothing comes
after all; the event behind which it is there, and the stream for copies."""
_WORD = 8
_LINE, _PAGE, _LARGE_PAGE = 64, 1 << 12, 1 << 21
(_TURN, _LANES, _BUS, _REACHED, _PARTS, _FIRSTS, _BEFORE, _SENT, _TO, _SIZE, _GIVEN, _BACK, _BACK_SIZE, _OUT, _COUNT,
 _DONE) = range(6, 22)
"""Words of transfer threads, behind those of what is sent (``upload_pool.py``), what ``StagedTransfer`` says: how many
of the threads have begun; addresses, but for a stream, the number of parts, bytes of pieces, and items that come
back."""
_LANE = 4  # words: addresses of two buffers, and two events
_GIVEN_WORDS, _RETURN = 16, 10  # words
_LARGE = 1 << 22  # bytes of a result from which on caches don't keep it anyway


@intrinsic
def _put_line_past(typing_context, array, place, items, first):
    """``array[place + n] = items[first + n]`` for a line of memory, which must begin there, past the caches.

    They would read the memory first. Others see it behind ``_fence``.
    """

    def build(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        to, of = (context.get_data_type(kind.dtype) for kind in (array, items))
        lanes = _LINE // context.get_abi_sizeof(to)
        target, source = (context.make_array(kind)(context, builder, value).data
                          for kind, value in ((array, values[0]), (items, values[2])))
        there = builder.bitcast(builder.gep(target, [values[1]]), ir.VectorType(to, lanes).as_pointer())
        here = builder.bitcast(builder.gep(source, [values[3]]), ir.VectorType(of, lanes).as_pointer())
        line = builder.load(here, align=1)
        if to != of:
            longer = builder.sext if items.dtype.signed else builder.zext
            line = longer(line, ir.VectorType(to, lanes))
        store = builder.store(line, there, align=_LINE)
        store.set_metadata("nontemporal", builder.module.add_metadata([ir.Constant(ir.IntType(32), 1)]))
        return context.get_dummy_value()

    return types.void(array, types.uintp, items, types.uintp), build


@intrinsic
def _fence(typing_context):
    """What was put past the caches is in memory."""

    def build(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        builder.fence("seq_cst")
        return context.get_dummy_value()

    return types.void(), build


@kernel
def _arrived(functions, host, context, sent, event, bus, stream):
    """Wait until all of a part has been sent by one stream, and have another one wait until it is there.

    0, or an error's code, as from those that follow.
    """
    while call(host[SEMAPHORE_WAIT], (sent,)):  # a signal may end it
        pass
    error = call(functions[ENTER], (context,)) or call(functions[RECORD], (event, bus))
    return error or call(functions[WAIT_EVENT], (stream, event, np.uint64(0)))


@kernel
def _released(functions, host, context, back, threads, behind):
    """Let threads receive what the words ``back`` tell of, when a stream has done what it has now."""
    home, error = np.uint64(back.ctypes.data), np.int32(0)
    if back[_FROM]:
        error = call(functions[ENTER], (context,)) or call(functions[RECORD], (back[_EVENT], behind))
    raised(home + np.uint64(_READY * _WORD), np.uint64(1))
    for _ in range(threads):
        call(host[SEMAPHORE_POST], (home,))
    return error


@intrinsic
def _written(typing_context, address):
    """Write the byte at an address as it is, even while another thread changes it."""

    def build(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        byte = ir.IntType(8)
        builder.cmpxchg(builder.inttoptr(values[0], byte.as_pointer()), byte(0), byte(0), "seq_cst", "seq_cst")
        return context.get_dummy_value()

    return types.void(types.uint64), build


@kernel
def touch(first, last):
    """Write to every page from one address to another, and change nothing."""
    for address in range(first, last, np.uint64(_PAGE)):
        _written(address)


@kernel
def _copy_past(out, items):
    """As many of some items as there is room for, by way of the caches only where no whole line is written."""
    size, line = np.uint64(len(out)), np.uint64(_LINE // out.itemsize)
    head = min(size, (-np.uint64(out.ctypes.data) & np.uint64(_LINE - 1)) // np.uint64(out.itemsize))
    lines = (size - head) // line
    for n in range(head):
        out[n] = items[n]
    for n in range(lines):
        _put_line_past(out, head + n * line, items, head + n * line)
    for n in range(head + lines * line, size):
        out[n] = items[n]
    _fence()


@kernel
def receive(functions, host, context, back, buffers, events, out):
    """Copy what the words ``back`` tell of to ``out``, of any type, with others who do so too.

    buffers: the two of them, as the device's type. Memory of ``out`` is touched as long as the device works. 0, or an
    error's code.
    """
    home, base = np.uint64(back.ctypes.data), np.uint64(out.ctypes.data)
    each, size, total = np.uint64(len(buffers[0])), np.uint64(buffers[0].itemsize), np.uint64(len(out))
    width, page = np.uint64(out.itemsize), np.uint64(_LARGE_PAGE)
    ready, touched, taken = (home + np.uint64(_READY * _WORD), home + np.uint64(_TOUCHED * _WORD),
                             home + np.uint64(_TAKEN * _WORD))
    error = call(functions[ENTER], (context,))
    while not (raised(ready, np.uint64(0)) and (not back[_FROM] or not call(functions[ASK], (back[_EVENT],)))):
        begin = added(touched, page) - page + base // page * page  # or two threads would find one page
        if begin >= base + total * width:
            break
        touch(max(begin, base), min(begin + page, base + total * width))
    while call(host[SEMAPHORE_WAIT], (home,)):
        pass
    if not back[_FROM]:
        return error
    error = error or call(functions[WAIT], (back[_EVENT],))
    turn, behind, large = np.uint64(0), total, total * width > np.uint64(_LARGE)
    while True:
        first = added(taken, each) - each
        if first < total:
            count, buffer = min(each, total - first), np.uint64(buffers[turn].ctypes.data)
            error = error or call(functions[WAIT], (events[turn],))  # for what is still on its way from the buffer
            error = error or call(functions[RECEIVE], (buffer, back[_FROM] + first * size, count * size, back[_STREAM]))
            error = error or call(functions[RECORD], (events[turn], back[_STREAM]))
        turn ^= np.uint64(1)
        if behind < total:
            error = error or call(functions[WAIT], (events[turn],))
            part, received = out[behind : behind + each], buffers[turn]
            if large:
                _copy_past(part, received)
            else:
                for n in range(np.uint64(len(part))):
                    part[n] = received[n]
        if first >= total:
            return error
        behind = first


@cache
def _workers_kernel(fill: Kernel) -> Kernel:
    """The kernel of threads that have ``fill`` fill buffers and send them, and then receive what comes back."""

    @kernel
    def serve(functions, host, context, workers, none, there, here):
        """Take part in what the words ``workers`` tell of, again and again, until there are no buffers.

        none, there, here: empty arrays, of u8, of what is filled and of what comes back.
        """
        home, one, line = np.uint64(workers.ctypes.data), np.uint64(1), np.uint64(_LANE * _WORD)
        entered = call(functions[ENTER], (context,))
        while True:
            while call(host[SEMAPHORE_WAIT], (home,)):  # a signal may end it
                pass
            if not workers[_LANES]:
                return
            number = added(home + np.uint64(_TURN * _WORD), one) - one
            pair = array_at(workers[_LANES] + number * line, np.uint64(_LANE), none)
            parts, events, bus, size = workers[_PARTS], pair[2:], workers[_BUS], np.uint64(there.itemsize)
            firsts, before = array_at(workers[_FIRSTS], parts + one, none), array_at(workers[_BEFORE], parts + one,
                                                                                     none)
            sent, given = array_at(workers[_SENT], parts, none), array_at(workers[_GIVEN], np.uint64(_GIVEN_WORDS),
                                                                          none)
            each, turn, part, error = workers[_SIZE] // size, np.uint64(0), np.uint64(0), entered
            while True:
                piece = added(workers[_REACHED], one) - one
                if piece >= before[parts]:
                    break
                while piece >= before[part + one]:
                    part += one
                begin = firsts[part] + (piece - before[part]) * each
                error = error or call(functions[WAIT], (events[turn],))
                count = min(each, firsts[part + one] - begin)
                fill(array_at(pair[turn], count, there), begin, given)
                error = error or call(functions[SEND], (workers[_TO] + begin * size, pair[turn], count * size, bus))
                error = error or call(functions[RECORD], (events[turn], bus))
                turn ^= one
                if not subtracted(sent[part] + np.uint64(LEFT * _WORD), one):
                    call(host[SEMAPHORE_POST], (sent[part],))
            if workers[_BACK]:
                each = workers[_BACK_SIZE] // np.uint64(here.itemsize)
                buffers = array_at(pair[0], each, here), array_at(pair[1], each, here)
                back, out = array_at(workers[_BACK], np.uint64(_RETURN), none), array_at(workers[_OUT],
                                                                                         workers[_COUNT], here)
                error = receive(functions, host, context, back, buffers, events, out) or error
            raised(home + np.uint64(ERROR * _WORD), np.uint64(error))
            if not subtracted(home + np.uint64(LEFT * _WORD), one):
                call(host[SEMAPHORE_POST], (workers[_DONE],))

    return serve


class Driver(NamedTuple):
    """What kernels need to call it: addresses of its functions, those of the host's, and a device's context."""

    functions: np.ndarray
    host: np.ndarray
    context: np.uint64


class Download:
    """What comes back from a device, for some threads to receive.

    Args:
        event: the handle of one that nobody else uses meanwhile.
        bus: that of the stream for copies.
        out: where it goes, of any type.
        kind: its type on the device.

    Attributes:
        words: what ``receive`` is told.
        size: bytes of a piece.
    """

    def __init__(self, driver: Driver, event: np.uint64, bus: np.uint64, out: np.ndarray, kind: np.dtype,
                 threads: int) -> None:
        self._driver, self.out, self._kind, self._threads = driver, out, kind, threads
        self.size, self.words = piece_of(len(out) * kind.itemsize, threads), new_words(_RETURN)
        self.words[_EVENT], self.words[_STREAM] = event, bus

    def begin(self, array: Any, behind: Any) -> None:
        """Have it come from a device array when a stream has done what it has now; from None nothing comes."""
        self.words[_FROM] = 0 if array is None else array.device_ctypes_pointer.value
        checked([_released(*self._driver, self.words, self._threads, handle_of(behind))])

    def receive(self, pair: PinnedPair) -> int:
        """Called by each of the threads; waits for ``begin``. 0, or an error's code."""
        buffers = tuple(buffer[: self.size].view(self._kind) for buffer in pair.buffers)
        return receive(*self._driver, self.words, buffers, pair.events, self.out)


def piece_of(size: int, threads: int) -> int:
    """Bytes that go at a time of so many: each copy costs the driver as much as half a MiB costs the bus."""
    return min(BUFFER, max(_LEAST_PIECE, size // threads // _LEAST_PIECE * _LEAST_PIECE))


class TransferThreads:
    """Threads of the host for staged transfers with one ``fill``, one at a time.

    Args:
        there: type of what is filled.
        here: type of what comes back.
    """

    def __init__(self, driver: Driver, fill: Kernel, there: np.dtype, here: np.dtype) -> None:
        self.driver, self.fill, self.there, self.here = driver, fill, there, here
        self.words, self.done, self._count = new_words(_DONE + 1), new_words(), 0
        self.taken = threading.Lock()
        self._given = (*driver, self.words, np.empty(0, np.uint64), np.empty(0, there), np.empty(0, here))
        post(self.words, 1)
        _workers_kernel(fill)(*self._given)  # compiled here, where an error is seen

    def have(self, count: int) -> None:
        """Be so many or more."""
        while self._count < count:
            threading.Thread(target=_workers_kernel(self.fill), name="transfer", daemon=True, args=self._given).start()
            self._count += 1


def words_of(given: Sequence[Any]) -> np.ndarray:
    """u8: numbers, and for each array two of them, its address and length: from these ``array_at`` makes it."""
    words = np.zeros(_GIVEN_WORDS, np.uint64)
    assert all(item.flags.c_contiguous for item in given if isinstance(item, np.ndarray))
    flat = [word for item in given
            for word in ((item.ctypes.data, len(item)) if isinstance(item, np.ndarray) else (item,))]
    words[: len(flat)] = flat
    return words


class StagedTransfer:
    """Parts of a device array on their way, and what comes back behind them. A ``with`` statement waits for all.

    Args:
        workers: threads, which nobody else uses meanwhile.
        given: arrays and numbers for what fills: called as ``fill(out, n, words_of(given))``, by several threads, it
            fills an array with items n, n + 1, ….
        there: the device array.
        bounds: the first item of each part, and the end.
        pairs: one for each thread.
        event: the handle of one that nobody else uses meanwhile.
        bus: that of the stream for copies.
        back: what comes back, if anything does.
    """

    def __init__(self, workers: TransferThreads, given: Sequence[Any], there: Any, bounds: Sequence[int],
                 pairs: list[PinnedPair], event: np.uint64, bus: np.uint64, back: "Download | None" = None) -> None:
        self._workers, self._event, self._bus, self._back, self._coming = workers, event, bus, back, False
        threads, item = len(pairs), workers.there.itemsize
        size = piece_of((bounds[-1] - bounds[0]) * item, _PIECES * threads)
        counts = [-(-(last - first) // (size // item)) for first, last in pairwise(bounds)]
        self._sent = [new_words() for _ in counts]
        for words, count in zip(self._sent, counts, strict=True):
            words[LEFT] = count
            if not count:
                post(words, 1)
        firsts, before = np.array(bounds, np.uint64), np.array([0, *accumulate(counts)], np.uint64)
        sent = np.array([words.ctypes.data for words in self._sent], np.uint64)
        places = np.array([[*(buffer.ctypes.data for buffer in pair.buffers), *pair.events.tolist()]
                           for pair in pairs], np.uint64)
        reached, held = np.zeros(1, np.uint64), words_of(given)
        self._held = firsts, before, sent, places, reached, held, given, there  # as long as threads need them
        words = workers.words
        words[LEFT], words[ERROR], words[_TURN], words[_DONE] = threads, 0, 0, workers.done.ctypes.data
        words[_LANES], words[_BUS], words[_REACHED] = places.ctypes.data, bus, reached.ctypes.data
        words[_PARTS], words[_FIRSTS], words[_BEFORE] = len(counts), firsts.ctypes.data, before.ctypes.data
        words[_SENT], words[_TO], words[_SIZE] = sent.ctypes.data, there.device_ctypes_pointer.value, size
        words[_GIVEN], words[_BACK] = held.ctypes.data, 0
        if back is not None:
            words[_BACK], words[_BACK_SIZE] = back.words.ctypes.data, back.size
            words[_OUT], words[_COUNT] = back.out.ctypes.data, len(back.out)
        workers.have(threads)
        post(words, threads)

    def make_wait(self, part: int, stream: Any) -> None:
        """Have a stream wait until a part is there."""
        words = np.uint64(self._sent[part].ctypes.data)
        checked([_arrived(*self._workers.driver, words, self._event, self._bus, handle_of(stream))])

    def download(self, array: Any, behind: Any) -> None:
        """Have the first items of a device array come back when a stream has done what it has now."""
        assert self._back is not None
        self._coming = True
        self._back.begin(array, behind)

    def __enter__(self) -> "StagedTransfer":
        return self

    def __exit__(self, kind: Any, *_: object) -> None:
        if self._back is not None and not self._coming:
            self._back.begin(None, None)
        await_post(self._workers.done)
        if not kind:
            checked([int(self._workers.words[ERROR])])
