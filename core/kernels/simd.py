"""Explicit vectors for kernels: a few lanes of a small integer in one register, with saturating arithmetic.

Plain loops vectorise several times worse than vectors that are spelled out, so kernels that decide the speed say what
they mean: ``h = load(column, place, LANES) + lookup(profile, row, residues)``. ``+`` and ``-`` saturate, signed or
unsigned as the lanes are; ``wrapped_sum`` and ``wrapped_difference`` don't; ``&``, ``|`` and ``^`` are those of bits.
Of f32 lanes ``+``, ``-``, ``*`` and ``/`` are rounded one by one, never contracted. ``BYTE_LANES`` is the number of
8-bit lanes that this CPU handles best. What the operations do stands in ``core/kernels/intrinsics.py``.
"""

from ctypes import addressof, c_char
from typing import Any

import numpy as np

from .cpu import (
    ALL_LANES,
    BYTE_LANES,
    HAS_AVX2,
    HAS_BYTE_PERMUTE,
    HAS_SSSE3,
    SATURATES_ON_ONE_PORT,
    WORKS_BY_HALVES,
)
from .deferred import Operation

CACHE_LINE = 64
load: Any = Operation("load")
store: Any = Operation("store")
splat: Any = Operation("splat")
spread: Any = Operation("spread")
widened: Any = Operation("widened")
joined: Any = Operation("joined")
whole_numbers: Any = Operation("whole_numbers")
highest_bytes: Any = Operation("highest_bytes")
bits_of: Any = Operation("bits_of")
numbers_of: Any = Operation("numbers_of")
shifted_down: Any = Operation("shifted_down")
wrapped_sum: Any = Operation("wrapped_sum")
wrapped_difference: Any = Operation("wrapped_difference")
lowered: Any = Operation("lowered")
lowered_to: Any = Operation("lowered_to")
maximum: Any = Operation("maximum")
minimum: Any = Operation("minimum")
choose_greater: Any = Operation("choose_greater")
greater_lanes: Any = Operation("greater_lanes")
not_greater_lanes: Any = Operation("not_greater_lanes")
every_lane: Any = Operation("every_lane")
within: Any = Operation("within")
mask_bits: Any = Operation("mask_bits")
in_place: Any = Operation("in_place")
highest: Any = Operation("highest")
highest_bit: Any = Operation("highest_bit")
lowest_bit: Any = Operation("lowest_bit")
picked_bits: Any = Operation("picked_bits")
shift_in: Any = Operation("shift_in")
move_up: Any = Operation("move_up")
move_down: Any = Operation("move_down")
lookup: Any = Operation("lookup")
squeezed: Any = Operation("squeezed")
quads: Any = Operation("quads")
same_quads: Any = Operation("same_quads")
quads_up: Any = Operation("quads_up")
quads_down: Any = Operation("quads_down")
quads_pairs: Any = Operation("quads_pairs")
quads_halves: Any = Operation("quads_halves")
words_at: Any = Operation("words_at")
prefetch: Any = Operation("prefetch")
"""``prefetch(array, index)`` starts to fetch an element, of a one-dimensional array, into the cache: kernels that jump
about in large arrays wait less if they say where to."""


def aligned(size: int, dtype: Any) -> np.ndarray:
    """An uninitialised flat array that begins on a cache line, so that no vector of it crosses one."""
    dtype = np.dtype(dtype)
    room = np.empty(size * dtype.itemsize + CACHE_LINE, np.uint8)
    start = -addressof(c_char.from_buffer(room.data)) % CACHE_LINE  # sooner than ``ctypes.data``
    return room[start : start + size * dtype.itemsize].view(dtype)


LOOKUP_ENTRIES = 32
"""Entries of a table for ``lookup``: enough for the residues of an alphabet and padding."""


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

__all__ = [  # handed on by the package as well
    "ALL_LANES", "BYTE_LANES", "CACHE_LINE", "HAS_AVX2", "HAS_BYTE_PERMUTE", "HAS_SSSE3", "LOOKUP_ENTRIES",
    "LOOKUP_STRIDE", "SATURATES_ON_ONE_PORT", "WORKS_BY_HALVES", "aligned", "bits_of", "choose_greater",
    "every_lane", "greater_lanes", "highest", "highest_bit", "highest_bytes", "in_place", "joined", "load", "lookup",
    "lookup_tables", "lowered", "lowered_to", "lowest_bit", "mask_bits", "maximum", "minimum", "move_down", "move_up",
    "not_greater_lanes", "numbers_of", "picked_bits", "prefetch", "quads", "quads_down", "quads_halves", "quads_pairs",
    "quads_up", "same_quads", "shift_in", "shifted_down", "splat", "spread", "squeezed", "store", "whole_numbers",
    "widened", "within", "words_at", "wrapped_difference", "wrapped_sum",
]
