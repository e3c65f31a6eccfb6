"""Large arrays to a CUDA device and back, at the speed of the bus.

The device reads and writes memory of its own kind only; arrays elsewhere go by way of two stages of that kind, one of
which is filled by several threads while the other one is sent.
"""

import threading
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
from numba import cuda as _cuda

from .packed16 import SIMULATED
from .threads import by_threads

cuda: Any = _cuda  # numba's types don't know what code on the device may do
STAGE = 16 << 20
"""Bytes that are copied at a time."""
_COPIERS = 4  # threads that saturate the memory
_in_use = threading.Lock()  # held by whoever fills or empties the stages


@cache
def _stages() -> tuple[Any, Any]:
    """Two buffers that the device reads and writes by itself."""
    make = np.empty if SIMULATED else cuda.pinned_array
    return make(STAGE, np.uint8), make(STAGE, np.uint8)


def _pieces(total: int, item: int) -> Iterator[tuple[int, int, int]]:
    """(number, first, last) of the pieces of ``total`` items of ``item`` bytes that fill a stage."""
    size = STAGE // item
    return ((n, first, min(first + size, total)) for n, first in enumerate(range(0, total, size)))


def to_device(array: np.ndarray, threads: int = 1, there: Any = None) -> Any:
    """A copy of a one-dimensional array on the device.

    Args:
        threads: of the host, that copy.
        there: the device array to copy to, of at least the length; a new one, of one item at least, when left out.
    """
    there = cuda.device_array(max(1, len(array)), array.dtype) if there is None else there
    if SIMULATED or array.nbytes < STAGE:
        if len(array):
            there[: len(array)].copy_to_device(np.ascontiguousarray(array))
        return there
    stream, sent = cuda.stream(), [cuda.event(timing=False) for _ in range(2)]
    with _in_use:
        for n, first, last in _pieces(len(array), array.itemsize):
            stage = _stages()[n % 2].view(array.dtype)[: last - first]
            if n > 1:
                sent[n % 2].synchronize()
            _copy(stage, array[first:last], threads)
            there[first:last].copy_to_device(stage, stream=stream)
            sent[n % 2].record(stream)
        stream.synchronize()
    return there


def to_host(array: Any, total: int, dtype: Any, threads: int = 1) -> np.ndarray:
    """The first ``total`` items of a device array as ``dtype``."""
    here = np.empty(total, dtype)
    source = np.dtype(array.dtype)
    if SIMULATED or total * source.itemsize < STAGE:
        if total:
            here[:] = array[:total].copy_to_host()
        return here
    cuda.synchronize()
    stream, come = cuda.stream(), [cuda.event(timing=False) for _ in range(2)]
    pieces = list(_pieces(total, source.itemsize))
    with _in_use:
        for n in range(len(pieces) + 1):
            if n < len(pieces):
                _, first, last = pieces[n]
                array[first:last].copy_to_host(_stages()[n % 2].view(source)[: last - first], stream=stream)
                come[n % 2].record(stream)
            if n:
                _, first, last = pieces[n - 1]
                come[(n - 1) % 2].synchronize()
                _copy(here[first:last], _stages()[(n - 1) % 2].view(source)[: last - first], threads)
    return here


def _copy(target: np.ndarray, source: np.ndarray, threads: int) -> None:
    """Copy by some threads; numpy lets go of the interpreter lock while it copies."""
    threads = min(threads, _COPIERS)
    by_threads(threads, 0, len(target), lambda n, a, b: np.copyto(target[a:b], source[a:b]))
