"""Keys cut into ranges of their order, by splitters that are drawn from them.

A key is in range 2n if it comes behind n splitters and equals none, and in range 2n + 1 if it equals splitter n: keys
that occur often are a range of their own, which is in order as it stands. A range has its rows in ascending order, so
whatever sorts it stably keeps all equal keys as they stand.

Source: W. D. Frazer & A. C. McKellar, "Samplesort: a sampling approach to minimal storage tree sorting", JACM 17
(1970).
"""

import numpy as np
from seqloom.core.classes import NamedTuple, dataclass
from seqloom.core.engine.threads import by_threads
from seqloom.core.kernels.jit import kernel
from seqloom.core.records import Ragged
from seqloom.plugins.sorting.msd_radix_cpu import MsdRadixCpu

_DRAWN = 256  # keys that are drawn for each splitter


class Ranges(NamedTuple):
    """Keys in ranges.

    Attributes:
        rows: i4[n], of all keys, range by range, ascending in each.
        starts: i8[ranges + 1], the first place in ``rows`` of each range, and the end.
    """

    rows: np.ndarray
    starts: np.ndarray

    def unsorted(self) -> list[tuple[int, int]]:
        """First place and the one behind the last of each range that isn't in order as it stands."""
        bounds = self.starts.tolist()
        return [(first, last) for first, last in zip(bounds[::2], bounds[1::2], strict=True) if last - first > 1]


@dataclass(frozen=True, eq=False)
class KeyRange:
    """Some keys, or all of them.

    Attributes:
        keys: all of them, u1 rows with i8 offsets.
        lengths: of the shortest and of the longest of all.
        rows: i4, those that are meant, ascending; None for all.
    """

    keys: Ragged
    lengths: tuple[int, int]
    rows: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.keys) if self.rows is None else len(self.rows)

    def characters(self, threads: int) -> int:
        """How many they have together."""
        keys, rows = self.keys, self.rows
        if rows is None:
            return int(keys.offsets[-1] - keys.offsets[0])
        return sum(by_threads(threads, 0, len(rows), lambda _, first, last: _characters(keys.offsets, rows, first,
                                                                                        last)))

    def copied(self, threads: int) -> Ragged:
        """The keys one behind the other: where some are meant, a copy."""
        return self.keys if self.rows is None else taken(self.keys, self.rows, threads)

    def rows_of(self, places: np.ndarray, threads: int) -> np.ndarray:
        """Rows of all keys of some of these, i4 both."""
        rows = self.rows
        if rows is None:
            return places
        out = np.empty(len(places), np.int32)
        by_threads(threads, 0, len(places), lambda _, first, last: _rows_of(rows, places, first, last, out))
        return out


@kernel
def _compare(values, offsets, one, other):
    """Less than 0, 0 or more, as one key comes before another, equals it or comes behind it."""
    here, there = offsets[one], offsets[other]
    size, other_size = offsets[one + 1] - here, offsets[other + 1] - there
    for n in range(min(size, other_size)):
        if values[here + n] != values[there + n]:
            return np.int64(values[here + n]) - np.int64(values[there + n])
    return size - other_size


@kernel
def _find_ranges(values, offsets, splitters, first, last, found, counts):
    """Fill the ranges of keys first … last − 1, and count the keys of each. splitters: i8, rows in order."""
    for row in range(first, last):
        low, high, equal = 0, len(splitters), 0
        while low < high:
            middle = (low + high) // 2
            order = _compare(values, offsets, row, splitters[middle])
            if order == 0:
                low = high = middle
                equal = 1
            elif order < 0:
                high = middle
            else:
                low = middle + 1
        found[row] = 2 * low + equal
        counts[2 * low + equal] += 1


@kernel
def _put_rows(found, first, last, at, rows):
    """Put rows first … last − 1 to where ``at`` says for their ranges."""
    for row in range(first, last):
        to = at[found[row]]
        at[found[row]] = to + 1
        rows[to] = row


@kernel
def _characters(offsets, rows, first, last):
    """How many characters some of the rows have together."""
    total = 0
    for n in range(first, last):
        total += offsets[rows[n] + 1] - offsets[rows[n]]
    return total


@kernel
def _copy_keys(values, offsets, rows, first, last, at, values_out, offsets_out):
    """Copy the keys of some rows one behind the other, the first one to place ``at``."""
    for n in range(first, last):
        offsets_out[n] = at
        for place in range(offsets[rows[n]], offsets[rows[n] + 1]):
            values_out[at] = values[place]
            at += 1


@kernel
def _rows_of(rows, places, first, last, out):
    for n in range(first, last):
        out[n] = rows[places[n]]


def ranges_of(keys: Ragged, wanted: int, threads: int) -> Ranges:
    """Some ``wanted`` ranges of about the same size; fewer, where keys are often equal, and those of equal keys.

    Args:
        keys: u1 rows, fewer than 2³¹, with i8 offsets.
    """
    splitters, count = _splitters(keys, wanted), len(keys)
    total = 2 * len(splitters) + 1
    found, counts = np.empty(count, np.min_scalar_type(total)), np.zeros((threads, total), np.int64)
    by_threads(threads, 0, count, lambda n, first, last: _find_ranges(keys.values, keys.offsets, splitters, first, last,
                                                                      found, counts[n]))
    starts = np.concatenate([[0], np.cumsum(counts.sum(axis=0))])
    places, rows = starts[:-1] + np.cumsum(counts, axis=0) - counts, np.empty(count, np.int32)
    by_threads(threads, 0, count, lambda n, first, last: _put_rows(found, first, last, places[n], rows))
    return Ranges(rows, starts)


def _splitters(keys: Ragged, wanted: int) -> np.ndarray:
    """i8: rows of different keys in ascending order, which part the keys that were drawn into as many as ``wanted``."""
    drawn = np.random.default_rng(1).integers(0, len(keys), _DRAWN * wanted)
    some = keys.take(drawn)
    order = MsdRadixCpu().order(some)[_DRAWN::_DRAWN]
    kept = [row for n, row in enumerate(order) if n == 0 or not np.array_equal(some[row], some[order[n - 1]])]
    return drawn[np.array(kept, np.int64)]


def taken(keys: Ragged, rows: np.ndarray, threads: int) -> Ragged:
    """A copy of the keys of some rows, made by several threads."""
    sizes = by_threads(threads, 0, len(rows), lambda _, first, last: keys.width * (last - first) or _characters(
        keys.offsets, rows, first, last))
    begins = np.concatenate([[0], np.cumsum(sizes)])
    offsets, values = np.empty(len(rows) + 1, np.int64), np.empty(int(begins[-1]), np.uint8)
    offsets[-1] = begins[-1]
    by_threads(threads, 0, len(rows), lambda n, first, last: _copy_keys(keys.values, keys.offsets, rows, first, last,
                                                                        begins[n], values, offsets))
    return Ragged(offsets, values, width=keys.width)

