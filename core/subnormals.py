"""Arithmetic in which what is smaller than the smallest normal number is 0, as many programs have the processor do it.

Where answers are to be theirs, so must be what becomes of such numbers. The C library keeps the settings of the
processor in a structure, in which those of single and double precision stand at a place that belongs to the ABI.
"""

import ctypes
import os
import struct
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

_SIZE, _MXCSR = 32, 28
"""Bytes of ``fenv_t``, and where the control and status register is in it."""
_FLUSH = 1 << 15
THERE = sys.platform == "linux" and os.uname().machine == "x86_64"
"""Whether this can be asked for here."""


@contextmanager
def flushed() -> Iterator[None]:
    """Results of this thread that are smaller than any normal number (of f32 2**-126) become 0, of kernels and of
    numpy alike; also a decorator. Nothing is changed but on x86-64 with Linux."""
    if not THERE:
        yield
        return
    former = (ctypes.c_char * _SIZE)()
    _library().fegetenv(former)
    wanted = (ctypes.c_char * _SIZE)(*former)
    struct.pack_into("<I", wanted, _MXCSR, struct.unpack_from("<I", former, _MXCSR)[0] | _FLUSH)
    _library().fesetenv(wanted)
    try:
        yield
    finally:
        _library().fesetenv(former)


@cache
def _library() -> Any:
    return ctypes.PyDLL(None)  # calls are too short for others to take their turn meanwhile
