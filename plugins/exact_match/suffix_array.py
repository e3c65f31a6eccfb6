"""Suffix array, Burrows–Wheeler transform and occurrence counts of a text of small symbols."""

import numpy as np

_SYMBOL_BITS = 5
_PACKED = 12  # symbols in one 64-bit key


def sorting_bytes(count: int) -> int:
    """Bytes that a suffix array takes while it is made on the CPU, with the text and what stays."""
    return 4 * suffix_type(count).itemsize * count


def suffix_type(count: int) -> np.dtype:
    """The integer type that numbers the suffixes of a text of ``count`` symbols."""
    return np.dtype(np.int32 if count < 1 << 31 else np.int64)


def suffix_array(text: np.ndarray) -> np.ndarray:
    """i4[n] (i8 from 2 G on): starts of the suffixes of u8[n] ``text`` in lexicographic order.

    The last symbol of the text must be greater than all others, and symbols below 32. Prefix doubling: suffixes are
    sorted by their first 12 symbols, then those that still tie by the rank of what follows, twice as many symbols each
    round (A. Drozd's thesis, 3.3.2, after Karp, Miller & Rosenberg 1972).
    """
    count = len(text)
    padded = np.concatenate([text, np.zeros(_PACKED, np.uint8)]).astype(np.int64)
    key = np.zeros(count, np.int64)
    for place in range(_PACKED):
        key = key << _SYMBOL_BITS | padded[place : place + count]
    order = np.argsort(key, kind="stable")
    tied = np.zeros(count, bool)
    tied[1:] = key[order][1:] == key[order][:-1]
    return resolve_ties(order.astype(suffix_type(count)), tied, _PACKED)


def resolve_ties(order: np.ndarray, tied: np.ndarray, width: int) -> np.ndarray:
    """``order`` with its ties resolved by doubling; changed in place.

    Args:
        order: suffixes sorted by their first ``width`` symbols at least.
        tied: bool[n], whether each ties with the one before.
    """
    count = len(order)
    places = np.arange(count)  # of the suffixes that still tie with a neighbour
    group = np.maximum.accumulate(np.where(tied, 0, places))
    rank = np.empty(count, order.dtype)
    rank[order] = group
    while True:
        open_ = _tied(group)
        places, group = places[open_], group[open_]
        if not len(places):
            return order
        suffixes = order[places]
        following = rank[suffixes + width]  # within the text: a suffix that reaches its end ties with none
        moves = np.lexsort([following, group])
        order[places] = suffixes[moves]
        group = _group_starts(places, group, following[moves])
        rank[order[places]] = group
        width *= 2


def _group_starts(places: np.ndarray, *keys: np.ndarray) -> np.ndarray:
    """Place of the first of each run of equal keys, for every member of the run."""
    starts = np.zeros(len(places), bool)
    starts[:1] = True
    for key in keys:
        starts[1:] |= key[1:] != key[:-1]
    return places[starts][np.cumsum(starts) - 1]


def _tied(group: np.ndarray) -> np.ndarray:
    """Whether each place shares its group with another one."""
    tied = np.zeros(len(group), bool)
    equal = group[1:] == group[:-1]
    tied[1:] |= equal
    tied[:-1] |= equal
    return tied


def transform(text: np.ndarray, suffixes: np.ndarray) -> np.ndarray:
    """u8[n]: the Burrows–Wheeler transform, the symbol before each suffix in sorted order (cyclic)."""
    return text[suffixes - 1]


def occurrence_counts(bwt: np.ndarray, symbols: int, bucket: int) -> np.ndarray:
    """i8[n / bucket + 1, symbols]: how often each symbol occurs in the transform before each bucket."""
    buckets = len(bwt) // bucket + 1
    cells = np.arange(len(bwt)) // bucket * symbols + bwt
    counts = np.bincount(cells, minlength=buckets * symbols).reshape(buckets, symbols)
    return np.cumsum(counts, axis=0) - counts
