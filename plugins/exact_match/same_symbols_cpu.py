"""How far text and query are the same from two places on, many symbols at a time."""

import numpy as np
from seqloom.core.kernels.jit import kernel
from seqloom.core.kernels.simd import greater_lanes, highest_bit, load, lowest_bit, splat

_U64 = np.uint64
_LANES = 32  # symbols that are compared together


@kernel
def _differ(text, r, query, p):
    """u8 with a bit for each of ``_LANES`` symbols from two places on that are not the same."""
    return greater_lanes(load(text, r, _LANES) ^ load(query, p, _LANES), splat(np.uint8(0), _LANES))


@kernel
def same_before(text, r, query, p, most):
    """How many symbols before two places are the same, up to ``most``, which stand before both."""
    same = _U64(0)
    while same < most:
        if min(p, r) - same >= _U64(_LANES):
            differ = _differ(text, r - same - _U64(_LANES), query, p - same - _U64(_LANES))
            if differ:
                return min(most, same + _U64(_LANES - 1) - highest_bit(differ))
            same += _U64(_LANES)
        elif text[r - same - _U64(1)] == query[p - same - _U64(1)]:
            same += _U64(1)
        else:
            return same
    return most


@kernel
def same_behind(text, r, query, p):
    """How many symbols from two places on are the same; behind a strand stand more than ``_LANES`` that match none."""
    same = _U64(0)
    while r + same + _U64(_LANES) <= _U64(len(text)):
        differ = _differ(text, r + same, query, p + same)
        if differ:
            return same + lowest_bit(differ)
        same += _U64(_LANES)
    while text[r + same] == query[p + same]:
        same += _U64(1)
    return same
