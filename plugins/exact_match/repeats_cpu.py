"""Matches between repetitive texts, in time that depends on how many there are and not on how often texts repeat.

Both ways go along the suffix array of text and query together. A match that no longer one covers is, at its query
place, the longest that the text has, and the longest one at the place before doesn't hold it: among suffixes of the
text, the best for a query suffix are its neighbours. All maximal matches of a query suffix are with suffixes of the
text around it that have another symbol before them; runs of suffixes that have the same one are leapt over.
"""

import numpy as np
from seqloom.core.backends import with_capacity
from seqloom.core.kernels.jit import kernel

from .suffix_induction_cpu import by_induction


@kernel
def _common_prefixes(both, order, rank, common):
    """Residues that each suffix shares with the one before it in order (Kasai et al. 2001)."""
    count = len(both)
    for n in range(count):
        rank[order[n]] = n
    shared = 0
    for place in range(count):
        if rank[place] == 0:
            shared = 0
            continue
        other = order[rank[place] - 1]
        while max(place, other) + shared < count and both[place + shared] == both[other + shared]:
            shared += 1
        common[rank[place]] = shared
        shared = max(0, shared - 1)


@kernel
def _neighbours(order, common, size, up, best):
    """Per query place, the two suffixes of the text that come next in one direction, and what they share with it.

    best: i8[m, 4] first text place, shared residues, second text place, shared residues.
    """
    count = len(order)
    one, two, shared_one, shared_two = -1, -1, 0, 0
    for step in range(count):
        n = step if up else count - 1 - step
        if step:
            between = common[n if up else n + 1]
            shared_one, shared_two = min(shared_one, between), min(shared_two, between)
        place = order[n]
        if place < size:
            two, shared_two = one, shared_one
            one, shared_one = place, count
        else:
            best[place - size, 0], best[place - size, 1] = one, shared_one
            best[place - size, 2], best[place - size, 3] = two, shared_two


@kernel
def _choose(above, below, length, out):
    """Write two of the longest matches of each place whose longest match the place before doesn't hold, or the one."""
    found = 0
    before = 0
    for place in range(len(above)):
        longest = max(above[place, 1], below[place, 1])
        if longest >= length and before != longest + 1:
            some = 0
            for side in (above, below):
                for n in (0, 2):
                    if some < 2 and side[place, n] >= 0 and side[place, n + 1] == longest:
                        out[found, 0], out[found, 1], out[found, 2] = place, side[place, n], longest
                        found += 1
                        some += 1
        before = longest
    return found


@kernel
def _maximal(both, order, common, size, length, up, passed, leap, found, out):
    """Write the maximal matches of each query suffix with suffixes of the text before it in one direction.

    passed, leap: integer[n, 2] for suffixes of the text: the next one of the text, and the next with another symbol
    before it, going back; each with what is shared up to there. Returns how many matches are written now.
    """
    count = len(order)
    last, shared_last = -1, 0
    for step in range(count):
        n = step if up else count - 1 - step
        if step:
            shared_last = min(shared_last, int(common[n if up else n + 1]))
        place = int(order[n])
        before = both[place - 1]
        if place < size:
            passed[n, 0], passed[n, 1] = last, shared_last
            leap[n, 0], leap[n, 1] = last, shared_last
            if last >= 0 and both[int(order[last]) - 1] == before:
                leap[n, 0], leap[n, 1] = leap[last, 0], min(shared_last, int(leap[last, 1]))
            last, shared_last = n, count
            continue
        other, shared = last, shared_last
        while other >= 0 and shared >= length:
            suffix = int(order[other])
            if both[suffix - 1] == before:
                other, shared = int(leap[other, 0]), min(shared, int(leap[other, 1]))
                continue
            if found < len(out):
                out[found, 0], out[found, 1], out[found, 2] = place - size, suffix, shared
            found += 1
            other, shared = int(passed[other, 0]), min(shared, int(passed[other, 1]))
    return found


def _in_order(text: np.ndarray, query: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Text and query together, the order of their suffixes, and what each shares with the one before it in order."""
    both = np.concatenate([text, query])
    order = by_induction(both)
    rank, common = np.empty_like(order), np.zeros_like(order)
    _common_prefixes(both, order, rank, common)
    return both, order, common


def maximal_matches(text: np.ndarray, query: np.ndarray, length: int) -> np.ndarray:
    """i8[n, 3] query place, text place and length of all maximal matches.

    Args:
        text, query: u8 symbols; what ends a match differs in them, and they begin and end with such.
        length: residues of a match at least.
    """
    both, order, common = _in_order(text, query)
    passed, leap = np.empty((len(order), 2), order.dtype), np.empty((len(order), 2), order.dtype)

    def launch(capacity: int) -> tuple[int, np.ndarray]:
        out, count = np.empty((capacity, 3), np.int64), 0
        for up in (True, False):
            count = int(_maximal(both, order, common, len(text), length, up, passed, leap, count, out))
        return count, out[:count]

    return with_capacity(launch, len(query))


def longest_matches(text: np.ndarray, query: np.ndarray, length: int) -> np.ndarray:
    """i8[n, 3] query place, text place and length of matches that no longer one covers, at most two for each interval.

    Args:
        text, query: u8 symbols; what ends a match differs in them.
        length: residues of a match at least.
    """
    _, order, common = _in_order(text, query)
    above, below = np.empty((len(query), 4), np.int64), np.empty((len(query), 4), np.int64)
    _neighbours(order, common, len(text), True, above)
    _neighbours(order, common, len(text), False, below)
    out = np.empty((2 * len(query), 3), np.int64)
    return out[: _choose(above, below, length, out)]
