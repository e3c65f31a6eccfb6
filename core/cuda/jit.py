"""The door through which CUDA kernels are compiled: kept on disk, as those of the host.

numba-cuda keeps kernels where numba keeps those of the host, but stamps them with the time of their own file alone.
Here the stamp covers all functions and constants that a kernel uses (``core/kernels/stamps.py``), so that none is kept
too long, and kernels are taken only from folders that nobody else may write to.
"""

import hashlib
import os
import threading
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from numba import cuda as _cuda

from ..kernels.packed16 import SIMULATED
from ..kernels.stamps import stamp
from ..user_cache import Unsafe, check_safe, kernel_cache, refuse, trusted_owners
from .quick_launch import LARGE_BLOCK, QuickKernel

cuda: Any = _cuda  # numba's types don't know what code on the device may do
# Kernels are small where their work is: nobody who searches can do anything about it. It may be said in bold type.
warnings.filterwarnings("ignore", r".*Grid size \d+ will likely result in GPU under-utilization")
_kernels = dict[tuple[Any, ...], Any]()
"""By their functions and options, so that each is compiled once."""
_making = threading.Lock()
simulating = threading.Lock()
"""Held while a kernel runs in the simulator, which runs one at a time."""


_MOST_SHARED = 227 << 10
"""Bytes of shared memory that a block may have whose kernel asks for it (compute capability 9.0)."""
_FOR_TWO = 112 << 10
"""Such bytes with which a multiprocessor still has two blocks (compute capability 9.0)."""


def shared_room() -> int:
    """Bytes of shared memory that a block may fill with tables: two of a multiprocessor can; of older devices 48 KB."""
    newer = SIMULATED or cuda.get_current_device().compute_capability >= (9, 0)
    return _FOR_TWO if newer else LARGE_BLOCK


def _allow_shared(name: str, loaded: int) -> None:
    """Have blocks of a kernel with that handle be as large as the current device has room for."""
    from cuda.bindings import driver

    error, *_ = driver.cuKernelSetAttribute(
        driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, _MOST_SHARED, loaded,
        int(cuda.get_current_device().id))
    if error:
        raise RuntimeError(f"a block of the kernel {name} can't have {_MOST_SHARED} bytes of shared memory: "
                           f"{error.name}")


def _loaded(kept: Any, signature: Any, target: Any) -> Any:
    """A kernel from disk, without the tables of types that numba sets up before (0.4 s): only compiling needs them."""
    with kept._guard_against_spurious_io_errors():
        return kept._load_overload(signature, target)


def kernel(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Compile a CUDA kernel at first use, once for all processes where it can be kept.

    ``kernel[blocks, threads, stream, shared](*arguments)`` launches it, by any thread. A block may have more shared
    memory than kernels usually can; if it can't have so much, that raises ``RuntimeError``.

    Args:
        options: of ``cuda.jit``.
    """

    def compiled(function: Any) -> Any:
        key = function, *sorted(options.items())
        with _making:
            if key not in _kernels:
                _kernels[key] = _SimulatedKernel(function) if SIMULATED else QuickKernel(
                    _dispatcher(function, options), partial(_allow_shared, function.__name__))
            return _kernels[key]

    return compiled


class _SimulatedKernel:
    """A kernel in the simulator."""

    def __init__(self, function: Any) -> None:
        self._made = cuda.jit(function)

    def __getitem__(self, where: tuple[Any, ...]) -> Callable[..., None]:
        def launched(*arguments: Any) -> None:
            with simulating:
                self._made[where](*arguments)

        return launched


def _dispatcher(function: Any, options: dict[str, Any]) -> Any:
    """Numba's, which keeps what it compiles where that is safe."""
    source = Path(function.__code__.co_filename)
    depends = stamp(function)
    if depends is None or not _has_a_place(source):
        return cuda.jit(function, **options)
    try:
        made = cuda.jit(function, cache=True, **options)
    except RuntimeError:  # numba finds no place after all
        return cuda.jit(function, **options)
    kept = made._cache
    folder = Path(kept._cache_path)
    try:
        check_safe(folder, folder.stat(), trusted_owners(source))
    except Unsafe as error:
        refuse(error)
        return cuda.jit(function, **options)
    text = hashlib.blake2b(depends, digest_size=16).hexdigest()
    kept._cache_file = type(kept._cache_file)(cache_path=kept._cache_path, filename_base=kept._impl.filename_base,
                                              source_stamp=(kept._impl.locator.get_source_stamp(), text))
    kept.load_overload = lambda signature, target: _loaded(kept, signature, target)
    return made


def _has_a_place(source: Path) -> bool:
    """Whether numba finds a folder for kernels; for users without a home it would make one that is named ``~``."""
    beside = source.parent / "__pycache__"
    try:
        kernel_cache()
    except RuntimeError:
        return os.access(beside if beside.exists() else source.parent, os.W_OK)
    return True
