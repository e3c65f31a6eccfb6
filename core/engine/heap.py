"""Memory that was freed is used again instead of being returned and asked for anew.

Stages make and drop arrays of some megabytes all the time. The C library returns such memory to the system as soon as
it is freed, and every thread has a heap of its own, so most arrays begin with pages that nobody has touched: handing
out and clearing one takes the system longer than filling it does, and much longer on a virtual machine.
"""

import ctypes
from contextlib import suppress

_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8
"""Parameters of the C library's ``mallopt``."""

OWN_MAPPING = 32 << 20
"""Bytes from which on an array is a mapping of its own, which goes when it is freed: so large ones leave no holes. It
is the most that ``mallopt`` takes, and what the C library itself gets to when arrays of this size are freed."""
KEPT = 256 << 20
"""Bytes at the end of the heap that are kept when they are free."""


def keep_freed_memory() -> None:
    """Have the process keep what it frees, in one heap for all threads.

    For programs of our own, before they start threads: how a process manages memory is not a library's to choose. Other
    C libraries than GNU's are left as they are.
    """
    with suppress(AttributeError, OSError, TypeError):
        choose = ctypes.CDLL(None).mallopt
        for parameter, value in ((_MMAP_THRESHOLD, OWN_MAPPING), (_TRIM_THRESHOLD, KEPT), (_ARENA_MAX, 1)):
            choose(parameter, value)
