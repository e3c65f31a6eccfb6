"""The one door through which every host kernel is compiled: caching, floating-point rules and the CPU's features.

Kernels are compiled for this machine at first use and kept on disk: beside the installation where that can be written
to, else in the user's cache (or ``NUMBA_CACHE_DIR``). Both places are read, so an installation that one user has warmed
is warm for all. A kernel may call helpers of its own file, of ``core/simd.py``, whose text is part of every stamp, and
of the modules that it names as ``helpers``.

``SEQLOOM_SIMD`` chooses narrower vectors than the CPU has ("avx2", "portable"), for tests and comparisons. It must be
set before the first kernel is imported.
"""

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

SIMD_LEVELS = {"avx512": "", "avx2": "x86-64-v3", "portable": "x86-64"}
"""LLVM's name of the CPU that each level compiles for; "" is the host."""

level = os.environ.get("SEQLOOM_SIMD", "")
if level and level not in SIMD_LEVELS:
    raise ImportError(f"SEQLOOM_SIMD must be one of {', '.join(SIMD_LEVELS)}, not '{level}'")
if SIMD_LEVELS.get(level):
    os.environ["NUMBA_CPU_NAME"], os.environ["NUMBA_CPU_FEATURES"] = SIMD_LEVELS[level], ""

import numba  # noqa: E402  (reads the environment when it is imported)
from numba.core.caching import FunctionCache, IndexDataCacheFile  # noqa: E402
from numba.core.runtime import rtsys  # noqa: E402

_SHARED_HELPERS = hashlib.blake2b(
    b"".join((Path(__file__).parent / name).read_bytes() for name in ("jit.py", "simd.py")), digest_size=8).hexdigest()

on_compile: Callable[[str], None] | None = None
"""Told the name of every kernel that had to be compiled, for programs that want to say so."""


class _KernelCache(FunctionCache):
    """numba's cache on disk, stamped with the shared helpers too; it also reads what stands beside the installation."""

    def __init__(self, function: Any, helpers: tuple[ModuleType, ...]) -> None:
        super().__init__(function)
        texts = [hashlib.blake2b(Path(str(m.__file__)).read_bytes(), digest_size=8).hexdigest() for m in helpers]
        stamp = (self._impl.locator.get_source_stamp(), _SHARED_HELPERS, *texts)
        beside = str(Path(function.__code__.co_filename).parent / "__pycache__")
        base = self._impl.filename_base
        self._cache_file = IndexDataCacheFile(self._cache_path, base, stamp)
        self._beside = None if beside == self._cache_path else IndexDataCacheFile(beside, base, stamp)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        # A kernel that is loaded needs the runtime; the tables of types that numba sets up first (0.15 s) are only
        # for compiling, which sets them up itself.
        rtsys.initialize(target_context)
        with self._guard_against_spurious_io_errors():
            return self._load_overload(sig, target_context)

    def _load_overload(self, sig: Any, target_context: Any) -> Any:
        found = super()._load_overload(sig, target_context)
        if found is None and self._beside is not None:
            data = self._beside.load(self._index_key(sig, target_context.codegen()))
            found = data if data is None else self._impl.rebuild(target_context, data)
        return found

    def save_overload(self, sig: Any, data: Any) -> None:
        if on_compile:
            on_compile(self._py_func.__name__)
        super().save_overload(sig, data)


def kernel(function: Callable[..., Any] | None = None, *, helpers: tuple[ModuleType, ...] = ()) -> Any:
    """Compile a host kernel: cached, without the interpreter lock, IEEE arithmetic without contraction.

    Args:
        helpers: modules whose kernels this one calls.
    """
    if function is None:
        return lambda given: kernel(given, helpers=helpers)
    compiled = numba.njit(nogil=True, fastmath=False, error_model="numpy")(function)
    compiled._cache = _KernelCache(function, helpers)  # type: ignore[attr-defined]
    return compiled


def inline(function: Callable[..., Any]) -> Any:
    """Compile a small helper that is made part of every kernel that calls it."""
    return numba.njit(inline="always", error_model="numpy")(function)
