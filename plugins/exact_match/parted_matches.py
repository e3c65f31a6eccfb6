"""Maximal exact matches of a text from those of its stretches, each of which reaches into the next one.

A match that ends within the stretch that it begins in was found there, if it can count. One that was cut off where a
stretch ends is longer than what two stretches have in common, and so holds all of that: it is found by looking for this
in the query, and read on to both sides.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from seqloom.core.kernels.jit import kernel
from seqloom.core.keys import stable_order

from .fm_index import IndexPart, Tables
from .fm_seed_cpu import codes_of
from .whole_seed_cpu import located, rows_of


def whole_matches(rows: np.ndarray, part: IndexPart, text: np.ndarray, query: np.ndarray) -> np.ndarray:
    """i8[n, 3] places in query and text and lengths: what is a match of the whole text, and begins in a part.

    Args:
        rows: matches of the part's stretch, by places in it.
        text: u1 symbols of the whole text. query: u1 symbols.
    """
    if part.whole:
        return rows
    rows = rows[rows[:, 1] < part.places] + [0, part.begin, 0]
    begin, stretch_end = rows[:, 1], part.begin + len(part.text) - 1
    goes_on = (begin == part.begin) & (begin > 0) & (text[begin - 1] == query[rows[:, 0] - 1])
    behind = np.minimum(begin + rows[:, 2], len(text) - 1)
    goes_on |= (behind == stretch_end) & (text[behind] == query[rows[:, 0] + rows[:, 2]])
    return rows[~goes_on]


def crossing_matches(parts: Sequence[IndexPart], overlap: int, text: np.ndarray, query: np.ndarray) -> np.ndarray:
    """i8[n, 3]: matches that hold all that a part has in common with the next one.

    Args:
        overlap: residues that parts reach into the next.
    """
    symbols, found = query.tobytes(), [np.empty((0, 3), np.int64)]
    for part in parts[1:]:
        if part.begin + overlap < len(text) - 1:
            common = text[part.begin : part.begin + overlap].tobytes()
            places = np.array(list(_places(symbols, common)), np.int64)
            rows = np.empty((len(places), 3), np.int64)
            _read_on(text, query, places, part.begin, overlap, rows)
            found.append(rows)
    return np.concatenate(found)


def _places(symbols: bytes, common: bytes) -> Iterator[int]:
    """Where some symbols occur."""
    place = symbols.find(common)
    while place >= 0:
        yield place
        place = symbols.find(common, place + 1)


@kernel
def _read_on(text, query, places, begin, length, rows):
    """Fill the matches that hold ``length`` symbols from ``begin`` on in the text, and from one of the places on in the
    query, whose first and last symbol match none."""
    for n in range(len(places)):
        start, first, last = places[n], begin, begin + length
        behind = start + length
        while first > 0 and text[first - 1] == query[start - 1]:
            first -= 1
            start -= 1
        while last < len(text) and text[last] == query[behind]:
            last += 1
            behind += 1
        rows[n, 0], rows[n, 1], rows[n, 2] = start, first, last - first


def distinct_matches(rows: np.ndarray) -> np.ndarray:
    """i8[m, 3]: the different ones of i8[n, 3] ``rows``, by place in the query, then in the text."""
    rows = rows[stable_order([rows[:, 0], rows[:, 1], rows[:, 2]])]
    return rows[(np.diff(rows, axis=0, prepend=-1) != 0).any(axis=1)]


def joined_matches(rows: np.ndarray, fm: Tables, query: np.ndarray, unique: bool) -> np.ndarray:
    """i8[m, 3]: matches of a text from those of its parts, some of which may be there twice.

    Args:
        fm: index of the whole text.
        unique: of matches with one query interval the first two in order of their suffixes stay, and none that a longer
            one covers; else all.
    """
    rows = distinct_matches(rows)
    if not unique or not len(rows):
        return rows
    rows = rows[stable_order([rows[:, 0], -rows[:, 2]])]
    first = np.flatnonzero((np.diff(rows[:, [0, 2]], axis=0, prepend=-1) != 0).any(axis=1))
    intervals, sizes = rows[first], np.diff(first, append=len(rows))
    ends = intervals[:, 0] + intervals[:, 2]
    before = np.concatenate([[-1], np.maximum.accumulate(ends)[:-1]])
    stay = before < ends
    alone, several = intervals[stay & (sizes == 1)], intervals[stay & (sizes > 1)]
    return np.concatenate([alone, _first_two(fm, query, several)])


def _first_two(fm: Tables, query: np.ndarray, intervals: np.ndarray) -> np.ndarray:
    """The first two matches of query intervals that have more than one, in order of their suffixes."""
    starts, lengths = intervals[:, 0].astype(np.uint64), intervals[:, 2].astype(np.uint64)
    lows, highs = rows_of(fm, codes_of(fm), query, starts, lengths)
    numbers, places = located(fm, lows, np.minimum(highs, lows + np.uint64(2)))
    return np.stack([intervals[numbers, 0], places, intervals[numbers, 2]], axis=1)
