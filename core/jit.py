"""The one door through which every kernel is compiled, so that caching and floating-point rules are decided once.

Kernels are cached on disk beside the installation, or in ``NUMBA_CACHE_DIR`` where that is set or the installation
can't be written to.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

if "NUMBA_CACHE_DIR" not in os.environ and not os.access(Path(__file__).parent, os.W_OK):
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    os.environ["NUMBA_CACHE_DIR"] = str(Path(base) / "seqloom" / "numba")

import numba


def kernel(function: Callable[..., Any]) -> Any:
    """Compile a host kernel: cached, without the interpreter lock, IEEE arithmetic, no error checks."""
    return numba.njit(cache=True, nogil=True, fastmath=False, error_model="numpy")(function)


def inline(function: Callable[..., Any]) -> Any:
    """Compile a helper that kernels call."""
    return numba.njit(cache=True, nogil=True, fastmath=False, error_model="numpy", inline="never")(function)
