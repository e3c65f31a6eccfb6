"""The FM-index on CUDA devices: its tables there, and the host's look-ups compiled for them.

The functions are those of ``fm_search_cpu``, the same source: they call each other by name, and here the names stand
for device functions.
"""

import threading
from dataclasses import dataclass
from types import FunctionType
from typing import Any, NamedTuple
from weakref import ref

import numpy as np
from numba import cuda as _cuda
from seqloom.core.backends import device_count, on_device, simulated
from seqloom.core.cuda.transfer import to_device
from seqloom.plugins.exact_match import fm_search_cpu as host

from .fm_index import Tables
from .fm_seed_cpu import codes_of

cuda: Any = _cuda  # numba's types don't know what code on the device may do


if simulated():  # whose threads, while one calls a function, may find no ``popc`` in the module

    @cuda.jit(device=True)
    def count_bits(word):
        return np.uint64(int(word).bit_count())
else:

    @cuda.jit(device=True)
    def count_bits(word):
        return np.uint64(cuda.popc(word))


def device_functions(*kernels: Any, **given: Any) -> dict[str, Any]:
    """Device functions by name, made of host kernels, each of which calls only those before it, or those given."""
    made = given
    for kernel in kernels:
        plain = kernel.py_func
        names = {**plain.__globals__, **made}
        made[plain.__name__] = cuda.jit(device=True)(FunctionType(plain.__code__, names, plain.__name__))
    return made


FUNCTIONS = device_functions(
    host.mapped_base, host._mapped_byte, host._odd_before, host.is_plain, host._odd_inside, host.mapped, host.extended,
    host.symbol_before, host.locate, host.shared, count_bits=count_bits)
"""The host's look-ups as device functions."""


class DeviceTables(NamedTuple):
    """``Tables`` with arrays on the device, and ``codes``, u8[256]: see ``codes_of``."""

    symbols: Any
    blocks: Any
    odd_rows: Any
    shift: np.uint64
    packed: bool
    samples: Any
    marks: Any
    codes: Any


in_use = threading.RLock()
"""Held by whoever has tables sent to devices: one at a time, so that all of the memory is its own."""


@dataclass(eq=False)
class _Kept:
    """Tables on a device: of which index, and their bytes."""

    blocks: ref
    device: int
    tables: DeviceTables
    size: int

    def holds(self, fm: Tables, device: int) -> bool:
        return self.device == device and self.blocks() is fm.blocks


_kept: list[_Kept] = []  # the last used last
_changing = threading.Lock()  # held by whoever changes the list: devices work at the same time


def free_memory() -> int:
    """Bytes that can be had on each device, with those of the tables that are kept there."""
    least = 1 << 40
    for device in range(device_count()):
        with on_device(device):
            free = cuda.current_context().get_memory_info()[0]
        least = min(least, int(min(free, 1 << 40)) + sum(kept.size for kept in _kept if kept.device == device))
    return least * 9 // 10


def tables_bytes(fm: Tables) -> int:
    """Bytes of tables on a device."""
    return sum(part.nbytes for part in fm if isinstance(part, np.ndarray))


def is_there(fm: Tables, device: int) -> bool:
    """Whether the tables are on a device."""
    return any(kept.holds(fm, device) for kept in _kept)


def forget() -> None:
    """Let go of all tables on devices."""
    with _changing:
        _kept.clear()


def device_tables(fm: Tables, device: int, room: int, threads: int) -> DeviceTables:
    """The tables on the device at work, where they stay; those used longest ago leave for what doesn't fit ``room``.

    Args:
        room: bytes for all tables on the device.
        threads: of the host, that copy.
    """
    with _changing:
        found = [kept for kept in _kept if kept.holds(fm, device)]
        _kept[:] = [kept for kept in _kept if kept not in found and kept.blocks() is not None]
        size = tables_bytes(fm)
        while (here := [kept for kept in _kept if kept.device == device]) and sum(k.size for k in here) + size > room:
            _kept.remove(here[0])
    if not found:
        parts: list[Any] = [_sent(part, threads) if isinstance(part, np.ndarray) else part for part in fm]
        parts.append(to_device(codes_of(fm)))
        found = [_Kept(ref(fm.blocks), device, DeviceTables(*parts), size)]
    with _changing:
        _kept.extend(found)
    return found[0].tables


def _sent(array: np.ndarray, threads: int) -> Any:
    """A copy on the device; of no length where the array has none, which the device can't be asked for."""
    if array.size:
        return to_device(array.reshape(-1), threads).reshape(array.shape)
    return cuda.device_array((1, *array.shape[1:]), array.dtype)[:0]
