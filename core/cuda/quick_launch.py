"""CUDA kernels are launched by one call of the driver that keeps the interpreter.

To launch a kernel numba asks the driver several things and gives the interpreter away each time, which takes 0.1 ms,
and several times as long where other threads want the interpreter (docs/performance/blastp.md). So numba compiles and
loads kernels, and their arguments go straight to the driver. They stand in memory as numba's kernels read them: a
number by itself; an array as two words of 0, its number of items, their size in bytes, its address, its shape, and its
strides. Arguments of other types go by numba.
"""

import ctypes
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..backends import current_device
from ..classes import NamedTuple
from .driver import ENTER, LAUNCH, call_holding_gil, checked, driver_functions, handle_of

_WORD = ctypes.sizeof(ctypes.c_uint64)
_INTEGERS = (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64, np.bool_)
_NUMBERS: dict[type, Callable[[Any], int]] = {
    **dict.fromkeys((*_INTEGERS, bool, int), int),
    **dict.fromkeys((np.float64, float), lambda number: int(np.float64(number).view(np.uint64))),
    np.float32: lambda number: int(number.view(np.uint32)),
}
"""What stands in a word for numbers of a type."""
_ITEMS = "?bBhHiIlLqQfd"
"""Types of an array's items, as ``numpy.dtype.char``."""
_BITS = 63
"""Of the largest whole numbers of Python that numba passes as i8; others are u8."""
_loading = threading.Lock()
"""Held by whoever compiles or loads a kernel."""
LARGE_BLOCK = 48 << 10
"""Bytes of shared memory beyond which a kernel has to ask for more, before a block has them."""


class _Entry(NamedTuple):
    """A compiled kernel on a device: addresses of the driver's functions, the context, and the kernel's handle."""

    enter: int
    launch: int
    context: int
    kernel: int


class QuickKernel:
    """A CUDA kernel: ``kernel[blocks, threads, stream, shared](*arguments)`` queues it, as numba's do, by any thread.

    ``blocks`` and ``threads`` are numbers or up to three of them, ``shared`` is in bytes; the last two may be left out.
    Arguments are numbers and arrays of the current device. What the driver refuses raises ``BackendError``.

    Args:
        dispatcher: numba's, which has one compiled kernel for all arguments of the same types.
        allow: called with a kernel's handle before the first launch on a device whose blocks have more than
            ``LARGE_BLOCK`` bytes of shared memory, beside those that the kernel itself declares.
    """

    def __init__(self, dispatcher: Any, allow: Callable[[int], None]) -> None:
        self.dispatcher, self._allow = dispatcher, allow
        self._entries = dict[Any, _Entry]()
        self._allowed = set[Any]()

    def __getitem__(self, where: Sequence[Any]) -> Callable[..., None]:
        blocks, threads, stream, shared = (*where, 0, 0)[:4]

        def launched(*arguments: Any) -> None:
            kinds = current_device(), *map(_kind, arguments)
            entry = self._entries.get(kinds)
            large = shared > LARGE_BLOCK
            if entry is None or (large and kinds not in self._allowed):
                entry = self._entry(kinds, arguments, large)
            if entry is None:
                self.dispatcher[blocks, threads, stream, shared](*arguments)
            else:
                _launch(entry, (*_three(blocks), *_three(threads), shared, handle_of(stream)), arguments)

        return launched

    def _entry(self, kinds: Any, arguments: Sequence[Any], large: bool) -> _Entry | None:
        """Compile and load the kernel for these arguments, unless that is done; None where only numba launches it."""
        with _loading:
            made = self.dispatcher.compile(tuple(map(self.dispatcher.typeof_pyval, arguments)))
            loaded = int(made.library.get_cufunc().handle)
            if large and kinds not in self._allowed:
                self._allow(loaded)
                self._allowed.add(kinds)
            if all(kinds[1:]) and kinds not in self._entries:
                functions, context = driver_functions()
                self._entries[kinds] = _Entry(int(functions[ENTER]), int(functions[LAUNCH]), int(context), loaded)
            return self._entries.get(kinds)


def _kind(argument: Any) -> Any:
    """What tells arguments apart of which numba makes different kernels; None of those that numba alone can pass."""
    kind = type(argument)
    if kind in _NUMBERS:
        return None if kind is int and argument.bit_length() > _BITS else kind
    if not getattr(argument, "__cuda_ndarray__", False):
        return None
    dtype = argument.dtype
    return dtype.char if argument.strides == (dtype.itemsize,) and dtype.char in _ITEMS else None


def _three(sizes: int | Sequence[int]) -> tuple[int, ...]:
    return (*sizes, 1, 1)[:3] if isinstance(sizes, Sequence) else (sizes, 1, 1)


def _launch(entry: _Entry, where: tuple[Any, ...], arguments: Sequence[Any]) -> None:
    """Queue a kernel; its arguments are the driver's when this is done.

    Args:
        where: blocks and threads of three dimensions each, bytes of shared memory, and the handle of a stream.
    """
    words = list[int]()
    for argument in arguments:
        if number := _NUMBERS.get(type(argument)):
            words.append(number(argument))
        else:
            size, itemsize = argument.size, argument.dtype.itemsize
            words += 0, 0, size, itemsize, argument.device_ctypes_pointer.value or 0, size, itemsize
    kept = (ctypes.c_uint64 * len(words))(*words)
    first = ctypes.addressof(kept)
    places = (ctypes.c_uint64 * len(words))(*range(first, first + _WORD * len(words), _WORD))
    checked([call_holding_gil(entry.enter, entry.context) or call_holding_gil(
        entry.launch, entry.kernel, *where, ctypes.addressof(places), 0)], "launching a kernel on the device")
