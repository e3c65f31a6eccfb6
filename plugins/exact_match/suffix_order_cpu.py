"""The order of suffixes of texts that are in memory, compiled."""

import numpy as np
from seqloom.core.kernels.jit import inline, kernel
from seqloom.core.kernels.simd import greater_lanes, load, lowest_bit, splat

_LANES = 32  # symbols that are compared together


@kernel
def sort_runs(text, places, firsts, end, rows, spare, unsure):
    """Bring the rows of each run in the order of what the text holds from their places on; equal ones stay as they are.

    Args:
        text: u8, symbols; ``end`` and all above it are behind every other, and end a text.
        places: i8[n], where each row's suffix begins.
        firsts: i8[r + 1], the first row of each run, and n.
        rows: i8[n], the numbers of all rows; gets those of each run in order. spare: i8[n].
        unsure: bool[r], gets whether two texts of a run end before they differ.
    """
    for run in range(len(firsts) - 1):
        first, last = firsts[run], firsts[run + 1]
        width = 1
        while width < last - first:
            left = first
            while left + width < last:
                middle, right = left + width, min(left + 2 * width, last)
                one, other = left, middle
                for place in range(left, right):
                    order = -1
                    if one == middle:
                        order = 1
                    elif other < right:
                        order = _compared(text, places[rows[one]], places[rows[other]], end)
                        if order == 0:
                            unsure[run] = True
                    if order > 0:
                        spare[place] = rows[other]
                        other += 1
                    else:
                        spare[place] = rows[one]
                        one += 1
                rows[left:right] = spare[left:right]
                left = right
            width *= 2


@inline
def _compared(text, here, there, end):
    """−1, 1, or 0 where both end before they differ; a place is equal to itself, for which 0 says nothing."""
    if here == there:
        return -1
    while max(here, there) + _LANES <= len(text):
        symbols = load(text, here, _LANES)
        stops = greater_lanes(symbols ^ load(text, there, _LANES), splat(np.uint8(0), _LANES))
        stops |= greater_lanes(symbols, splat(np.uint8(end - 1), _LANES))
        same = np.int64(lowest_bit(stops)) if stops else _LANES
        here += same
        there += same
        if stops:
            break
    while text[here] == text[there]:
        if text[here] >= end:
            return 0
        here += 1
        there += 1
    return -1 if text[here] < text[there] else 1
