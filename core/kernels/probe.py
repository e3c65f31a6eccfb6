"""Compiles a small kernel, runs it, and compares what it gives with numpy: ``python -m seqloom.core.kernels.probe``.

For a process of its own: where LLVM doesn't know how to do what a kernel asks for, it ends the process. The kernel has
the operations that ask most of it. Status 0 and a line that says what was done, or another status.
"""

import os
import sys
from tempfile import TemporaryDirectory

import numpy as np

from .jit import kernel
from .simd import (
    ALL_LANES,
    BYTE_LANES,
    aligned,
    in_place,
    load,
    lookup,
    lookup_tables,
    maximum,
    not_greater_lanes,
    store,
)


@kernel
def _compared(left, right, tables, results, among):
    a, b = load(left, 0, BYTE_LANES), load(right, 0, BYTE_LANES)
    store(results, 0, in_place(maximum(a, b)) + lookup(tables, 0, b))
    return not_greater_lanes(a, b, among)


def main() -> int:
    left, right, results = (aligned(BYTE_LANES, np.uint8) for _ in range(3))
    left[:] = np.arange(BYTE_LANES) * 37 % 101
    right[:] = np.arange(BYTE_LANES) * 11 % 32
    table = np.arange(32, dtype=np.uint8)[None] * 8
    with TemporaryDirectory(prefix="seqloom-") as folder:
        os.environ["NUMBA_CACHE_DIR"] = folder  # so that it is compiled anew
        greater = int(_compared(left, right, lookup_tables(table), results, ALL_LANES))
    wanted = np.minimum(np.maximum(left, right).astype(np.int64) + table[0][right], 255)
    bits = sum(1 << lane for lane in np.flatnonzero(left <= right).tolist())
    if greater != bits or not np.array_equal(results, wanted):
        print("it gives other numbers than numpy", file=sys.stderr)
        return 1
    print(f"vectors of {BYTE_LANES} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
