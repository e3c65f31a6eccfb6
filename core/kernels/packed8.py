"""Arithmetic of four numbers of eight bits, none negative, in one 32-bit register, for CUDA kernels.

Devices had instructions for these once (compute capability 3.0), the video instructions of PTX; since then each of them
becomes some 25 others. Here a maximum is six: which numbers are larger is told by the highest bit of a difference that
borrows nothing from the number beside, and that bit is made as wide as the number. In numba's simulator all are a few
lines of Python with the same steps.
"""

from typing import Any

from .packed16 import SIMULATED, choose_bytes, signed_word

HIGHEST, OTHERS = 0x80808080, 0x7F7F7F7F
WIDENED = 0xBA98
"""The selector of ``choose_bytes`` that fills each byte with its highest bit."""
KEEP = tuple(signed_word(~(255 << 8 * j)) for j in range(4))
TAKE = tuple(~keep for keep in KEEP)
"""Masks of all bytes of a word but one, and of that one."""

maximum4: Any
subtract4: Any
if not SIMULATED:
    from .packed16 import instruction

    _MAXIMUM = f""".reg .b32 t, u, m;
        or.b32 t, $1, {HIGHEST}; and.b32 u, $2, {OTHERS}; sub.s32 t, t, u;
        lop3.b32 m, $1, $2, t, 0xB2; prmt.b32 m, m, 0, {WIDENED}; lop3.b32 m, $1, $2, m, 0xE4;"""
    maximum4 = instruction(f"{{{_MAXIMUM} mov.b32 $0, m;}}", 2)
    subtract4 = instruction(f"{{{_MAXIMUM} sub.s32 $0, m, $2;}}", 2)
else:

    def _maximum4(a: int, b: int) -> int:
        """The larger number of each byte."""
        a, b = int(a) & 0xFFFFFFFF, int(b) & 0xFFFFFFFF
        difference = (a | HIGHEST) - (b & OTHERS)
        larger = (a & ~b) | (~(a ^ b) & difference)
        mask = choose_bytes(larger, larger, WIDENED)
        return signed_word((a & mask) | (b & ~mask))

    def _subtract4(a: int, b: int) -> int:
        """Each byte less that of ``b``, at least 0."""
        return signed_word(_maximum4(a, b) - int(b))

    maximum4, subtract4 = _maximum4, _subtract4
