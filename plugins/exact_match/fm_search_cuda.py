"""The FM-index on a CUDA device: its tables there, and the host's look-ups compiled for it.

The functions are those of ``fm_search_cpu``, the same source: they call each other by name, and here the names stand
for device functions.
"""

import threading
from types import FunctionType
from typing import Any, NamedTuple
from weakref import ref

import numpy as np
from numba import cuda as _cuda
from seqloom.core.index import Index
from seqloom.plugins.exact_match import fm_search_cpu as host
from seqloom.plugins.exact_match.fm_index import Tables, tables_of

cuda: Any = _cuda  # numba's types don't know what code on the device may do


@cuda.jit(device=True)
def count_bits(word):
    return np.uint64(cuda.popc(word))


def _device_functions(*kernels: Any, **given: Any) -> dict[str, Any]:
    """Device functions made of host kernels, each of which calls only those before it, or those given."""
    made = given
    for kernel in kernels:
        plain = kernel.py_func
        names = {**plain.__globals__, **made}
        made[plain.__name__] = cuda.jit(device=True)(FunctionType(plain.__code__, names, plain.__name__))
    return made


_functions = _device_functions(
    host.mapped_base, host._mapped_byte, host._odd_before, host.is_plain, host._odd_inside, host.mapped, host.extended,
    host.symbol_before, host.locate, count_bits=count_bits)
mapped_base, is_plain = _functions["mapped_base"], _functions["is_plain"]
extended, locate = _functions["extended"], _functions["locate"]


class DeviceTables(NamedTuple):
    """``Tables`` with arrays on the device."""

    symbols: Any
    blocks: Any
    odd_rows: Any
    shift: np.uint64
    packed: bool
    samples: Any
    marks: Any


_lock = threading.Lock()
_kept: list[tuple[Any, DeviceTables]] = []  # the index sent last, and its tables


def device_tables(index: Index) -> tuple[Tables, DeviceTables]:
    """The tables of an index of kind ``fm-index`` on the host and on the device, where those of the last one stay."""
    fm = tables_of(index)
    with _lock:
        if not _kept or _kept[0][0]() is not fm.blocks:
            _kept[:] = [(ref(fm.blocks), DeviceTables(*(
                _sent(part) if isinstance(part, np.ndarray) else part for part in fm)))]
        return fm, _kept[0][1]


def _sent(array: np.ndarray) -> Any:
    """A copy on the device; of no length where the array has none, which the device can't be asked for."""
    if array.size:
        return cuda.to_device(np.ascontiguousarray(array))
    return cuda.device_array((1, *array.shape[1:]), array.dtype)[:0]
