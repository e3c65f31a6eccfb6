"""The one door through which every host kernel is compiled: caching, floating-point rules and the CPU's features.

Kernels are compiled for this machine at first use and kept on disk: beside the installation where that can be written
to, else in the user's cache (or ``NUMBA_CACHE_DIR``). Both places are read, so an installation that one user has warmed
is warm for all. A kernel may call helpers of its own file, of ``core/simd.py``, whose text is part of every stamp, and
of the modules that it names as ``helpers``.

``SEQLOOM_SIMD`` chooses narrower vectors than the CPU has ("avx2", "portable"), for tests and comparisons. It must be
set before the first kernel is imported.
"""

import hashlib
import io
import os
import pickle
import sys
from collections.abc import Callable
from functools import cache
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
from llvmlite.binding import add_symbol  # noqa: E402
from numba.core.caching import FunctionCache, IndexDataCacheFile  # noqa: E402
from numba.core.environment import Environment, _rebuild_env, lookup_environment  # noqa: E402
from numba.core.runtime._nrt_python import c_helpers  # noqa: E402

_SHARED_HELPERS = hashlib.blake2b(
    b"".join((Path(__file__).parent / name).read_bytes() for name in ("jit.py", "simd.py")), digest_size=8).hexdigest()

on_compile: Callable[[str], None] | None = None
"""Told the name of every kernel that had to be compiled, for programs that want to say so."""


@cache
def _add_runtime_symbols() -> None:
    for name, address in c_helpers.items():
        add_symbol(name if name.startswith("_") else f"NRT_{name}", address)


class _CacheFile(IndexDataCacheFile):
    """Kernels on disk, read without the modules of numba's own that they were compiled with (0.06 s)."""

    def _load_data(self, name: str) -> Any:
        return _Unpickler(io.BytesIO(Path(self._data_path(name)).read_bytes())).load()


class _Unpickler(pickle.Unpickler):
    """Kernels name the modules whose functions they call, for what runs in the interpreter; ours run nothing there."""

    def find_class(self, module: str, name: str) -> Any:
        return _environment if name == _rebuild_env.__name__ else super().find_class(module, name)


def _environment(module: str, constants: list, name: str) -> Environment:
    if module in sys.modules or not module.startswith("numba."):
        return _rebuild_env(module, constants, name)
    environment = lookup_environment(name)
    if environment is None:
        environment = Environment({"__name__": module})
        environment.consts[:] = constants
        environment.env_name = name
        Environment._memo[name] = environment
    return environment


class _KernelCache(FunctionCache):
    """numba's cache on disk, stamped with the shared helpers too; it also reads what stands beside the installation."""

    def __init__(self, function: Any, helpers: tuple[ModuleType, ...]) -> None:
        super().__init__(function)
        texts = [hashlib.blake2b(Path(str(m.__file__)).read_bytes(), digest_size=8).hexdigest() for m in helpers]
        stamp = (self._impl.locator.get_source_stamp(), _SHARED_HELPERS, *texts)
        beside = str(Path(function.__code__.co_filename).parent / "__pycache__")
        base = self._impl.filename_base
        self._cache_file = _CacheFile(self._cache_path, base, stamp)
        self._beside = None if beside == self._cache_path else _CacheFile(beside, base, stamp)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        # Of what numba sets up first, a kernel that is loaded needs the addresses of the runtime; its tables of types
        # and the runtime's compiled part (0.15 s and 0.02 s) are for compiling, which sets them up itself.
        _add_runtime_symbols()
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
