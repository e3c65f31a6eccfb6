"""The matches that can be unique between repetitive texts, in time that doesn't depend on how often they repeat.

A match that no longer one covers is, at its query place, the longest that the text has, and the longest one at the
place before doesn't hold it. Longest matches follow from the suffix array of text and query together: among suffixes of
the text, the best for a query suffix are its neighbours.
"""

import numpy as np
from seqloom.core.jit import kernel
from seqloom.plugins.exact_match.suffix_array_cpu import by_induction


@kernel
def _common_prefixes(both, order, rank, common):
    """Letters that each suffix shares with the one before it in order (Kasai et al. 2001)."""
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

    best: i8[m, 4] first text place, shared letters, second text place, shared letters.
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


def longest_matches(text: np.ndarray, query: np.ndarray, length: int) -> np.ndarray:
    """i8[n, 3] query place, text place and length of matches that no longer one covers, at most two for each interval.

    Args:
        text, query: u8 symbols; what ends a match differs in them.
        length: letters of a match at least.
    """
    both = np.concatenate([text, query])
    order = by_induction(both)
    rank, common = np.empty_like(order), np.zeros_like(order)
    _common_prefixes(both, order, rank, common)
    above, below = np.empty((len(query), 4), np.int64), np.empty((len(query), 4), np.int64)
    _neighbours(order, common, len(text), True, above)
    _neighbours(order, common, len(text), False, below)
    out = np.empty((2 * len(query), 3), np.int64)
    return out[: _choose(above, below, length, out)]
