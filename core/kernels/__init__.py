"""Kernels of the host: ``kernel``, ``inline`` and what ``simd`` has, for stages that decide the speed.

The names are imported when they are first asked for.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .jit import inline, kernel
    from .simd import (
        ALL_LANES,
        BYTE_LANES,
        CACHE_LINE,
        HAS_AVX2,
        HAS_BYTE_PERMUTE,
        HAS_SSSE3,
        LOOKUP_ENTRIES,
        LOOKUP_STRIDE,
        SATURATES_ON_ONE_PORT,
        WORKS_BY_HALVES,
        aligned,
        choose_greater,
        greater_lanes,
        highest,
        highest_bit,
        highest_bytes,
        in_place,
        joined,
        load,
        lookup,
        lookup_tables,
        lowered,
        lowered_to,
        lowest_bit,
        maximum,
        minimum,
        move_down,
        move_up,
        not_greater_lanes,
        picked_bits,
        prefetch,
        quads,
        quads_down,
        quads_halves,
        quads_pairs,
        quads_up,
        same_quads,
        shift_in,
        splat,
        spread,
        squeezed,
        store,
        whole_numbers,
        widened,
        words_at,
        wrapped_difference,
        wrapped_sum,
    )

__all__ = [  # of ``jit``, and all of ``simd``
    "ALL_LANES",
    "BYTE_LANES",
    "CACHE_LINE",
    "HAS_AVX2",
    "HAS_BYTE_PERMUTE",
    "HAS_SSSE3",
    "LOOKUP_ENTRIES",
    "LOOKUP_STRIDE",
    "SATURATES_ON_ONE_PORT",
    "WORKS_BY_HALVES",
    "aligned",
    "choose_greater",
    "greater_lanes",
    "highest",
    "highest_bit",
    "highest_bytes",
    "in_place",
    "inline",
    "joined",
    "kernel",
    "load",
    "lookup",
    "lookup_tables",
    "lowered",
    "lowered_to",
    "lowest_bit",
    "maximum",
    "minimum",
    "move_down",
    "move_up",
    "not_greater_lanes",
    "picked_bits",
    "prefetch",
    "quads",
    "quads_down",
    "quads_halves",
    "quads_pairs",
    "quads_up",
    "same_quads",
    "shift_in",
    "splat",
    "spread",
    "squeezed",
    "store",
    "whole_numbers",
    "widened",
    "words_at",
    "wrapped_difference",
    "wrapped_sum",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{'jit' if name in ('inline', 'kernel') else 'simd'}", __name__), name)
    globals()[name] = value
    return value
