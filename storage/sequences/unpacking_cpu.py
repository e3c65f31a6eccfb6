"""Stretches of packed bases as codes, on the CPU: formats ask for many short ones."""

import numpy as np

from ...core.kernels.jit import inline, kernel


@inline
def _base_at(body, place):
    return body[place >> 2] >> np.uint8(6 - 2 * (place & 3)) & np.uint8(3)


@kernel
def unpack_spans(body, spans, codes, fours):
    """Write bases to u1 ``codes``, four of which ``fours`` has in each u4.

    Args:
        body: u1, four bases a byte, the first one highest, and a byte more that may be read.
        spans: i8[s, 3], place of the first base, place in ``codes``, bases.
    """
    for span in range(len(spans)):
        place, at, size = spans[span, 0], spans[span, 1], spans[span, 2]
        before = min(size, -at & 3)
        whole = (size - before) >> 2
        for k in range(before):
            codes[at + k] = _base_at(body, place + k)
        begin, to = place + before, (at + before) >> 2
        byte, down = begin >> 2, np.uint32(8 - 2 * (begin & 3))
        for number in range(whole):
            two = np.uint32(body[byte + number]) << np.uint32(8) | np.uint32(body[byte + number + 1])
            four = two >> down & np.uint32(0xFF)
            fours[to + number] = (four >> np.uint32(6) | four << np.uint32(4) & np.uint32(0x300)
                                  | four << np.uint32(14) & np.uint32(0x30000)
                                  | four << np.uint32(24) & np.uint32(0x3000000))
        for k in range(before + 4 * whole, size):
            codes[at + k] = _base_at(body, place + k)


@kernel
def mark_runs(runs, spans, codes):
    """Write the codes of rising runs, i8[m, 3] start, end and code, into the stretches of ``unpack_spans``."""
    for span in range(len(spans)):
        place, at, size = spans[span, 0], spans[span, 1], spans[span, 2]
        low, high = 0, len(runs)
        while low < high:  # the first run that ends behind the place
            middle = (low + high) >> 1
            if runs[middle, 1] <= place:
                low = middle + 1
            else:
                high = middle
        while low < len(runs) and runs[low, 0] < place + size:
            for k in range(max(0, runs[low, 0] - place), min(size, runs[low, 1] - place)):
                codes[at + k] = runs[low, 2]
            low += 1


__all__ = ["mark_runs", "unpack_spans"]
