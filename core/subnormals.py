"""Arithmetic in which what is smaller than the smallest normal number is 0, as many programs have the processor do it.

Where answers are to be theirs, so must be what becomes of such numbers. The C library keeps the settings of the
processor in a structure, in which those of single and double precision stand at a place that belongs to the ABI.
"""

import ctypes
import os
import struct
import sys
import threading
from contextlib import ContextDecorator
from functools import cache
from typing import Any

_SIZE, _MXCSR = 32, 28
"""Bytes of ``fenv_t``, and where the control and status register is in it."""
_FLUSH = 1 << 15
THERE = sys.platform == "linux" and os.uname().machine == "x86_64"
"""Whether this can be asked for here."""


class _Mine(threading.local):
    """Of a thread: how many ``flushed`` it is in, and its settings before and since the outermost."""

    def __init__(self) -> None:
        self.depth, self.former, self.wanted = 0, (ctypes.c_char * _SIZE)(), (ctypes.c_char * _SIZE)()


_mine = _Mine()


class flushed(ContextDecorator):
    """Results of this thread that are smaller than any normal number (of f32 2**-126) become 0, of kernels and of
    numpy alike; also a decorator. Nothing is changed but on x86-64 with Linux, nor within another one."""

    def __enter__(self) -> None:
        _mine.depth += 1
        if _mine.depth == 1 and THERE:
            former, wanted = _mine.former, _mine.wanted
            _library().fegetenv(former)
            ctypes.memmove(wanted, former, _SIZE)
            struct.pack_into("<I", wanted, _MXCSR, struct.unpack_from("<I", former, _MXCSR)[0] | _FLUSH)
            _library().fesetenv(wanted)

    def __exit__(self, *error: object) -> None:
        _mine.depth -= 1
        if _mine.depth == 0 and THERE:
            _library().fesetenv(_mine.former)


@cache
def _library() -> Any:
    return ctypes.PyDLL(None)  # calls are too short for others to take their turn meanwhile
