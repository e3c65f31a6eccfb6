"""The third filter: the Viterbi score in saturating 16-bit arithmetic. CUDAMPF++ equation (2)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .exact_math import F32
from .profile import MINUS_INFINITY, WORD_BASE, WORD_SCALE, WordProfile, word_move

if TYPE_CHECKING:
    from numpy.typing import NDArray

_END = -500
"""E → C and E → J of a multihit model: half a chance each, in 1/500 bits."""


def viterbi_score(profile: WordProfile, target: NDArray[np.uint8]) -> np.float32:
    """Raw Viterbi filter score in nats, f32; +inf where 16 bits overflow, −inf where no path exists.

    Args:
        profile: words of the query.
        target: u8 residue codes, not empty.
    """
    move = word_move(len(target))
    width = profile.entry.shape[0]
    # Cell 0 of each row stands for the missing node 0.
    match, insert, delete = (np.full(width + 1, MINUS_INFINITY, np.int32) for _ in range(3))
    # D_k = max over earlier nodes of M + MD + all DD between; sums of DD make that one running maximum.
    to_here = np.zeros(width, np.int64)
    np.cumsum(profile.dd[:-1], out=to_here[1:])
    begin = WORD_BASE + move
    best_c = best_j = MINUS_INFINITY
    for emission in profile.match[target]:
        best = np.maximum(_add(match[:-1], profile.into_mm), _add(profile.entry, begin))
        best = np.maximum(best, _add(insert[:-1], profile.into_im))
        best = np.maximum(best, _add(delete[:-1], profile.into_dm))
        insert[1:] = np.maximum(_add(match[1:], profile.mi), _add(insert[1:], profile.ii))
        match[1:] = _add(best, emission)
        opened = _add(match[1:-1], profile.md[:-1]) - to_here[1:]
        delete[2:] = np.maximum(np.maximum.accumulate(opened) + to_here[1:], MINUS_INFINITY)
        end = int(match[1:].max())
        if end >= 32767:
            return F32(np.inf)
        best_c = max(best_c, end + _END, MINUS_INFINITY)
        best_j = max(best_j, end + _END, MINUS_INFINITY)
        begin = max(max(best_j, WORD_BASE) + move, MINUS_INFINITY)
    if best_c == MINUS_INFINITY:
        return F32(-np.inf)
    return (F32(best_c) + F32(move) - F32(WORD_BASE)) / WORD_SCALE - F32(3.0)


def _add(a: NDArray[np.int32], b: NDArray[np.int32] | int) -> NDArray[np.int32]:
    """Saturating 16-bit addition."""
    return np.minimum(np.maximum(a + b, MINUS_INFINITY), 32767)
