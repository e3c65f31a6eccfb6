"""Memory that was freed is used again instead of being returned and asked for anew.

Stages make and drop arrays of some megabytes all the time. The C library returns such memory to the system as soon as
it is freed, and every thread has a heap of its own, so most arrays begin with pages that nobody has touched: handing
out and clearing one takes the system longer than filling it does, and much longer on a virtual machine.
"""

import ctypes
import gc
import os
from contextlib import suppress

_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8
"""Parameters of the C library's ``mallopt``."""

OWN_MAPPING = 32 << 20
"""Bytes from which on an array is a mapping of its own, which goes when it is freed: so large ones leave no holes. It
is the most that ``mallopt`` takes, and what the C library itself gets to when arrays of this size are freed."""
KEPT = 256 << 20
"""Bytes at the end of the heap that are kept when they are free."""


_of_program = False
"""Whether ``keep_freed_memory`` was called."""


def keep_freed_memory() -> None:
    """Have the process keep what it frees, in one heap for all threads.

    For programs of our own, before they start threads: how a process manages memory is not a library's to choose. Other
    C libraries than GNU's are left as they are.
    """
    global _of_program
    _of_program = True
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")  # pyarrow's own heap gives back what was freed
    with suppress(AttributeError, OSError, TypeError):
        choose = ctypes.CDLL(None).mallopt
        for parameter, value in ((_MMAP_THRESHOLD, OWN_MAPPING), (_TRIM_THRESHOLD, KEPT), (_ARENA_MAX, 1)):
            choose(parameter, value)


class Level:
    """Has the process give back what it keeps when that grows though its work doesn't.

    Arrays of many sizes that come and go leave holes in the heap; where work goes on for long, these add up. Pages in
    holes go back to the system when the process has got a tenth larger than it was at first. If it is so again after
    the next piece of work, that is what the work takes, and the pages would be asked for anew each time.
    """

    MORE, SETTLED = 1.1, 3

    def __init__(self) -> None:
        self._settling, self._least = self.SETTLED, 0

    def look(self) -> None:
        """To be called when a like piece of work begins anew."""
        now = _resident()
        if self._settling == self.SETTLED and _of_program:
            gc.freeze()  # modules and what else will stay: to look through it takes a tenth of a second
        if self._settling:
            self._settling -= 1
            self._least = max(self._least, now)
        elif now > self.MORE * self._least:
            self._settling = 1
            gc.collect()
            with suppress(AttributeError, OSError, TypeError):
                ctypes.CDLL(None).malloc_trim(0)


def _resident() -> int:
    """Pages that this process has in memory; 0 where the system doesn't say."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1])
    except (OSError, ValueError, IndexError):
        return 0
