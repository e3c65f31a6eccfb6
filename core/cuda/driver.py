"""The CUDA driver as kernels of the host call it: without the interpreter, and by many threads at a time.

A thread that copies has a lane of its own: two page-locked buffers, and an event for each.
"""

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from llvmlite import ir
from numba import carray, types
from numba import cuda as _cuda
from numba.core.cgutils import unpack_tuple
from numba.extending import intrinsic as _intrinsic

from ..classes import NamedTuple
from ..errors import BackendError
from ..kernels.jit import kernel

cuda: Any = _cuda  # numba's types don't know what code on the device may do
intrinsic: Any = _intrinsic
BUFFER = 2 << 20
"""Bytes of a buffer."""
ENTER, SEND, RECEIVE, RECORD, WAIT, WAIT_EVENT, ASK, QUERY, CLEAR, LAUNCH = range(10)
_FUNCTIONS = ("cuCtxSetCurrent", "cuMemcpyHtoDAsync", "cuMemcpyDtoHAsync", "cuEventRecord", "cuEventSynchronize",
              "cuStreamWaitEvent", "cuEventQuery", "cuStreamQuery", "cuMemsetD32Async", "cuLaunchKernel")
NOT_READY = 600
"""What the driver answers while work is being done."""
SEMAPHORE_WAIT, SEMAPHORE_POST, COPY_MEMORY, SLEEP = range(4)
_HOST_FUNCTIONS = ("sem_wait", "sem_post", "memcpy", "usleep")  # of the C library
_VERSION = 12000
"""Of the driver's functions: that of CUDA 12.0."""


class PinnedPair(NamedTuple):
    """What a thread of the host has to copy to and from one device.

    Attributes:
        buffers: page-locked u1[2, BUFFER].
        events: u8[2], handles of events that come when a buffer's last copy is done.
        held: the events themselves, which numba destroys when nobody holds them.
    """

    buffers: np.ndarray
    events: np.ndarray
    held: tuple[Any, Any]


def new_pinned_pair() -> PinnedPair:
    """One for the current device: a millisecond for each MiB."""
    events = cuda.event(timing=False), cuda.event(timing=False)
    return PinnedPair(cuda.pinned_array((2, BUFFER), np.uint8), np.array([int(event.handle) for event in events],
                                                                         np.uint64), events)


def driver_functions() -> tuple[np.ndarray, np.uint64]:
    """u8[10], addresses of the driver's functions; and the current context."""
    from cuda.bindings import driver

    cuda.current_context()  # the thread may have asked the device for nothing yet, and have none
    found = [driver.cuGetProcAddress(name.encode(), _VERSION, 0)[:2] for name in _FUNCTIONS]
    return np.array([int(address) for _, address in found], np.uint64), np.uint64(int(driver.cuCtxGetCurrent()[1]))


library = ctypes.PyDLL(None)
"""The C library; what is called of it doesn't wait, and so needn't let go of the interpreter."""


@cache
def host_functions() -> np.ndarray:
    """u8[4], addresses."""
    return np.array([ctypes.cast(getattr(library, name), ctypes.c_void_p).value for name in _HOST_FUNCTIONS],
                    np.uint64)


@cache
def _brief(address: int, words: int) -> Any:
    return ctypes.PYFUNCTYPE(ctypes.c_int32, *[ctypes.c_uint64] * words)(address)


def call_holding_gil(address: Any, *words: Any) -> int:
    """What the C function at an address returns, one that doesn't wait, for arguments of 64 bits.

    The thread keeps the interpreter meanwhile: to get it back takes longer than most that is asked of a driver.
    """
    return int(_brief(int(address), len(words))(*map(int, words)))


def urgent_stream() -> Any:
    """A stream of the current device whose kernels begin before those that wait in other streams.

    Raises:
        BackendError: the device gives none.
    """
    from cuda.bindings import driver

    cuda.current_context()  # which this thread may not have had before: the driver would know no device
    error, _, most_urgent = driver.cuCtxGetStreamPriorityRange()
    if not error:
        error, stream = driver.cuStreamCreateWithPriority(int(driver.CUstream_flags.CU_STREAM_DEFAULT), most_urgent)
    if error:
        raise BackendError(f"the device gives no stream (code {int(error)} of the CUDA driver)")
    return cuda.external_stream(int(stream))


def handle_of(stream: Any) -> np.uint64:
    return np.uint64(int(stream.handle) if stream else 0)


def checked(errors: list[int], what: str = "copying to or from the device") -> None:
    """Raise ``BackendError`` if any of these is the code of an error."""
    if any(errors):
        raise BackendError(f"{what} failed (code {max(errors)} of the CUDA driver)")


@intrinsic
def call(typing_context, address, arguments):
    """What the C function at an address returns, an i4, for arguments of 64 bits."""

    def build(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        words = unpack_tuple(builder, values[1])
        shape = ir.FunctionType(ir.IntType(32), [ir.IntType(64)] * len(words))
        return builder.call(builder.inttoptr(values[0], shape.as_pointer()), words)

    return types.int32(types.uint64, types.UniTuple(types.uint64, len(arguments))), build


@intrinsic
def bytes_at(typing_context, address):
    """What is at an address, for ``numba.carray``."""

    def build(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return builder.inttoptr(values[0], ir.IntType(8).as_pointer())

    return types.CPointer(types.uint8)(types.uint64), build


@kernel
def bytes_from(address, count):
    """u1: so many bytes, from an address on."""
    return carray(bytes_at(address), (count,))


@kernel
def array_at(address, count, like):
    """So many items, from an address on, of the type of the array ``like``."""
    return bytes_from(address, count * np.uint64(like.itemsize)).view(like.dtype)


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
added, subtracted, raised = map(_atomic, _AFTER)
