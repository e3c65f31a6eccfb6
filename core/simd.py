"""Explicit vectors for kernels: a few lanes of a small integer in one register, with saturating arithmetic.

Plain loops vectorise several times worse than vectors that are spelled out, so kernels that decide the speed say what
they mean: ``h = load(column, place, LANES) + lookup(profile, row, letters)``. ``+`` and ``-`` saturate, signed or
unsigned as the lanes are; ``wrapped_sum`` and ``wrapped_difference`` don't; ``&``, ``|`` and ``^`` are those of bits.
``BYTE_LANES`` is the number of 8-bit lanes that this CPU handles best. What the operations do stands in
``core/operations.py``.
"""

from typing import Any

import numpy as np

from .jit import Operation, host_cpu, host_features

_FEATURES = host_features()
HAS_BYTE_PERMUTE = {"avx512vbmi", "avx512bw"} <= _FEATURES
HAS_AVX2 = "avx2" in _FEATURES
HAS_SSSE3 = "ssse3" in _FEATURES
CACHE_LINE = 64
BYTE_LANES: int = 64 if HAS_BYTE_PERMUTE else 32 if HAS_AVX2 else 16
"""Lanes of 8 bits per vector on this CPU; as many lanes of 16 bits take two registers."""
ALL_LANES = np.uint64(2**BYTE_LANES - 1)
"""The bits of all of ``BYTE_LANES`` lanes, from which ``not_greater_lanes`` starts."""
SATURATES_ON_ONE_PORT: bool = HAS_BYTE_PERMUTE and not host_cpu().startswith("znver")
"""Whether a cycle takes one of those operations on whole registers that saturate or choose the greater, but two sums
that wrap around, and a comparison beside them: so it is with AVX-512 of Intel, not of AMD."""

load: Any = Operation("load")
store: Any = Operation("store")
splat: Any = Operation("splat")
spread: Any = Operation("spread")
widened: Any = Operation("widened")
wrapped_sum: Any = Operation("wrapped_sum")
wrapped_difference: Any = Operation("wrapped_difference")
lowered: Any = Operation("lowered")
lowered_to: Any = Operation("lowered_to")
maximum: Any = Operation("maximum")
minimum: Any = Operation("minimum")
choose_greater: Any = Operation("choose_greater")
greater_lanes: Any = Operation("greater_lanes")
not_greater_lanes: Any = Operation("not_greater_lanes")
in_place: Any = Operation("in_place")
lowest_bit: Any = Operation("lowest_bit")
shift_in: Any = Operation("shift_in")
move_up: Any = Operation("move_up")
move_down: Any = Operation("move_down")
lookup: Any = Operation("lookup")
squeezed: Any = Operation("squeezed")


def aligned(size: int, dtype: Any) -> np.ndarray:
    """An uninitialised flat array that begins on a cache line, so that no vector of it crosses one."""
    dtype = np.dtype(dtype)
    room = np.empty(size * dtype.itemsize + CACHE_LINE, np.uint8)
    start = -room.ctypes.data % CACHE_LINE
    return room[start : start + size * dtype.itemsize].view(dtype)


LOOKUP_ENTRIES = 32
"""Entries of a table for ``lookup``: enough for the letters of an alphabet and padding."""


def lookup_tables(rows: np.ndarray) -> np.ndarray:
    """Tables for ``lookup``, laid out for this CPU.

    Args:
        rows: i1 or u1[k, 32].

    Returns:
        Flat array of the same type; table i begins at ``i * LOOKUP_STRIDE``.
    """
    rows = np.ascontiguousarray(rows)
    if HAS_BYTE_PERMUTE:
        laid = np.concatenate([rows, rows], axis=1)
    elif HAS_SSSE3:
        half = [np.tile(rows[:, part : part + 16], (1, BYTE_LANES // 16)) for part in (0, 16)]
        laid = np.concatenate(half, axis=1)
    else:
        laid = rows
    tables = aligned(laid.size, laid.dtype)
    tables[:] = laid.reshape(-1)
    return tables


LOOKUP_STRIDE: int = 64 if HAS_BYTE_PERMUTE else 2 * BYTE_LANES if HAS_SSSE3 else LOOKUP_ENTRIES
