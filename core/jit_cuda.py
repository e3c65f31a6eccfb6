"""The door through which CUDA kernels are compiled that call functions of other modules: kept on disk, as of the host.

numba-cuda keeps kernels where numba keeps those of the host (``core/jit.py``), but stamps them with the text of their
own file alone. Here the stamp covers all modules that a kernel's functions come from, so that none is kept too long.
"""

import hashlib
import threading
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from numba import cuda as _cuda

from .packed16 import SIMULATED

cuda: Any = _cuda  # numba's types don't know what code on the device may do
launching = threading.Lock()
"""Held by whoever starts a kernel: two threads don't load one at a time, and the simulator runs one at a time."""


def _loaded(kept: Any, signature: Any, target: Any) -> Any:
    """A kernel from disk, without the tables of types that numba sets up before (0.4 s): only compiling needs them."""
    with kept._guard_against_spurious_io_errors():
        return kept._load_overload(signature, target)


def kernel(*helpers: ModuleType, **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Compile a CUDA kernel at first use, once for all processes.

    Args:
        helpers: modules whose functions or constants it uses, beside its own.
        options: of ``cuda.jit``.
    """

    def compiled(function: Callable[..., Any]) -> Any:
        if SIMULATED:
            return cuda.jit(function)
        made = cuda.jit(function, cache=True, **options)
        kept = made._cache
        texts = [hashlib.blake2b(Path(str(m.__file__)).read_bytes(), digest_size=8).hexdigest() for m in helpers]
        stamp = (kept._impl.locator.get_source_stamp(), *texts)
        kept._cache_file = type(kept._cache_file)(cache_path=kept._cache_path, filename_base=kept._impl.filename_base,
                                                  source_stamp=stamp)
        kept.load_overload = lambda signature, target: _loaded(kept, signature, target)
        return made

    return compiled
