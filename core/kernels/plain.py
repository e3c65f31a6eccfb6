"""Kernels compiled, kept and loaded by numba alone, through its public interface: the way round the other modules.

``SEQLOOM_JIT=numba`` chooses it. It is taken as well where a release of numba or llvmlite has moved what
``compiler.py`` and ``loader.py`` need of them. The results are the same. Starting takes longer: numba is imported.
"""

import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..user_cache import Unsafe, kernel_cache, make_private, refuse
from .deferred import resolved


def compiled(function: Any, stamp: bytes | None, tell: Callable[[], None]) -> Any:
    """The function, compiled by numba when it is called.

    Args:
        stamp: of ``stamps.py``; kept code is taken only from a folder for this stamp. None: it isn't kept.
        tell: called if it isn't kept by now.
    """
    import numba

    options: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
    made = resolved(function)
    folder = None if stamp is None or function.__closure__ else _folder(function, stamp)
    if folder is None:
        tell()
        return numba.njit(**options)(made)
    if not any(folder.rglob("*.nbi")):
        tell()
    config: Any = numba.config  # its attributes are made when it is imported
    before, config.CACHE_DIR = config.CACHE_DIR, str(folder)
    try:
        return numba.njit(cache=True, **options)(made)
    except RuntimeError:  # numba finds no place to keep it in
        return numba.njit(**options)(made)
    finally:
        config.CACHE_DIR = before


def _folder(function: Any, stamp: bytes) -> Path | None:
    """A folder of this user for code with a stamp: numba itself looks at the file that the function is in, no other."""
    name = f"{function.__name__}-{zlib.crc32(stamp):08x}{zlib.adler32(stamp):08x}"
    try:
        folder = kernel_cache() / "numba" / name
        make_private(folder)
        return folder
    except (OSError, RuntimeError):
        return None
    except Unsafe as error:
        refuse(error)
        return None
