"""What the host takes to launch a kernel: by one call of the driver, as seqloom does, and by numba's own launch.

    python -m benchmarks.launches_gpu [--launches 2000] [--beside 0 1 16]

Microseconds a launch, the median of rounds taken in turns; of a kernel with three arrays and two numbers, which does
next to nothing. ``--beside``: so many threads of the same process run Python code meanwhile.
"""

import argparse
import statistics
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numba import cuda as _cuda
from seqloom.core.cuda.jit import kernel

from .smith_waterman_gpu import show
from .timing import Timing

cuda: Any = _cuda  # numba's types don't know what code on the device may do
BLOCKS, THREADS = 8, 128
ROUNDS = 7


@kernel()
def add(a, b, factor, least, sums):
    n = cuda.grid(1)
    if n >= least:
        sums[n] = a[n] + factor * b[n]


@contextmanager
def busy(threads: int) -> Iterator[None]:
    """So many threads that run Python code."""
    done = threading.Event()

    def count() -> None:
        n = 0
        while not done.is_set():
            n += 1

    running = [threading.Thread(target=count) for _ in range(threads)]
    for thread in running:
        thread.start()
    try:
        yield
    finally:
        done.set()
        for thread in running:
            thread.join()


def seconds_each(launch: Callable[[], None], launches: int) -> float:
    """Of one launch; what is queued is done before and afterwards, which isn't counted."""
    cuda.synchronize()
    begin = time.perf_counter()
    for _ in range(launches):
        launch()
    taken = time.perf_counter() - begin
    cuda.synchronize()
    return taken / launches


def measure(launches: int, beside: Sequence[int]) -> Iterator[Timing]:
    stream = cuda.stream()
    values = np.arange(BLOCKS * THREADS, dtype=np.int32)
    a, b, sums = (cuda.to_device(values) for _ in range(3))
    arguments = a, b, np.int32(3), np.int64(0), sums
    ways = {"one call": lambda: add[BLOCKS, THREADS, stream](*arguments),
            "numba": lambda: add.dispatcher[BLOCKS, THREADS, stream](*arguments)}
    for way, launch in ways.items():
        sums.copy_to_device(np.zeros_like(values))
        launch()
        cuda.synchronize()
        if not np.array_equal(sums.copy_to_host(), 4 * values):
            raise SystemExit(f"the kernel launched by {way} gave other sums")
    for threads in beside:
        with busy(threads):
            count = launches if not threads else max(20, launches // 20)
            taken = [{way: seconds_each(launch, count) for way, launch in ways.items()} for _ in range(ROUNDS)]
        for way in ways:
            each = [turn[way] * 1e6 for turn in taken]
            yield Timing(f"launch by {way}, {threads} threads beside", statistics.median(each) / 1e6,
                         f"{statistics.median(each):.1f} microseconds ({min(each):.1f} to {max(each):.1f})")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--launches", type=int, default=2000)
    parser.add_argument("--beside", type=int, nargs="*", default=[0, 1, 16])
    given = parser.parse_args()
    show(measure(given.launches, given.beside))
