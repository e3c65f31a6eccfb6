"""Freed memory is used again, tried in a new process, as the choice is made for a whole one."""

import platform
import subprocess
import sys

import pytest
from seqloom.core.engine import heap

FAULTS = """
import resource
import threading

import numpy as np
from seqloom.core.engine.heap import keep_freed_memory

{choice}

def work():
    for megabytes in (1, 2, 3):
        arrays = [np.empty(megabytes << 20, np.uint8) for _ in range(8)]
        for array in arrays:
            array[::4096] = 1

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(4):
        thread = threading.Thread(target=work)
        thread.start()
        work()
        thread.join()
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

faults()
print(faults())
"""


def faults(choice: str) -> int:
    """Pages that a process touches for the first time while two threads make and drop arrays."""
    done = subprocess.run([sys.executable, "-c", FAULTS.format(choice=choice)], check=True, capture_output=True,
                          text=True)
    return int(done.stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only GNU's C library is asked to")
def test_arrays_take_the_pages_of_earlier_ones() -> None:
    assert faults("keep_freed_memory()") < faults("") / 4


def test_memory_that_the_work_takes_is_given_back_once(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes, given_back = iter((80, 100, 100, 105, 111, 130, 130, 142, 144, 120, 142, 144)), list[int]()
    level, found = heap.Level(), list[int]()
    monkeypatch.setattr(heap, "_resident", lambda: found.append(next(sizes)) or found[-1])
    monkeypatch.setattr(heap.gc, "collect", lambda: given_back.append(found[-1]))
    for _ in range(12):
        level.look()
    assert given_back == [111, 144, 144]
