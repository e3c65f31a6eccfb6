"""Checks that letters arrive on a CUDA device, or a simulated one (``NUMBA_ENABLE_CUDASIM=1``), as they were.

``python -m tests.core.letters_on_device`` runs them.
"""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import cuda
from seqloom.core.copies_cuda import begin_to_device, settle
from seqloom.core.driver_cuda import urgent_stream
from seqloom.core.letters_cuda import TOGETHER, WORDS, arrived, unpack
from seqloom.core.packed16 import SIMULATED

BLOCK = TOGETHER * WORDS


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 100), st.sampled_from([8, 16, 32]), st.integers(0, 2**32 - 1))
def check_unpacking(count: int, size: int, seed: int) -> None:
    letters = np.random.default_rng(seed).integers(0, 32, count).astype(np.uint8)
    there = cuda.device_array(count + 1, np.uint8)
    there.copy_to_device(np.append(arrived(letters, size), np.uint8(77)))
    unpack(there, count, 0, size)
    assert there.copy_to_host().tolist() == [*letters.tolist(), 77]


def check_sending(count: int, before: int) -> None:
    """From any address of the host, as volumes are sent."""
    letters = np.random.default_rng(count).integers(0, 32, before + count).astype(np.uint8)[before:]
    there, unpacking = cuda.device_array(count + 1, np.uint8), urgent_stream()
    stream = 0 if SIMULATED else cuda.stream()
    there.copy_to_device(np.full(count + 1, 77, np.uint8))
    begin_to_device(letters, there, 4, stream, packed=True)()
    settle(stream, behind=False)
    unpack(there, count, unpacking)
    settle(unpacking)
    found = there.copy_to_host()
    assert (found[:-1] == letters).all() and found[-1] == 77


if __name__ == "__main__":
    check_unpacking()
    sizes = [0, 1, 2, 3, BLOCK - 1, BLOCK, BLOCK + 1]
    if not SIMULATED:
        sizes += [size + more for size in (3 << 20, 100 << 20) for more in (-1, 0, 1)]
    for size in sizes:
        for before in (0, 3) if SIMULATED else range(9):
            check_sending(size, before)
