"""``lsd-radix`` on the CPU: keys that fit 64 bits as one packed number each, longer ones word by word from the last."""

import numpy as np
from seqloom.core.engine.threads import by_threads
from seqloom.core.kernels.jit import kernel
from seqloom.core.records import Ragged
from seqloom.core.stages import row_type
from seqloom.plugins.common.sort_words_cpu import (
    Coding,
    Words,
    coding_of,
    insertion_sort,
    length_range,
    load_words,
    number,
    radix_sort,
    whole_words,
)
from seqloom.plugins.sorting import threads_cpu
from seqloom.plugins.sorting.lsd_radix_reference import LsdRadix
from seqloom.plugins.sorting.threads_cpu import Arrays, load_by_threads, move_by_digit, places_of, useful_threads

_DIGIT = 11


@kernel
def _by_words(values, offsets, codes, bits, per, ranked, joined, least, rows, words, spare_rows, spare_words):
    """Sort by the last word of each key, then the one before, … down to word ``least``; returns how many have that.

    joined: i8, number of keys that have a word 0, 1, …. ``rows`` are filled from the back: a key that joins goes before
    all longer ones.
    """
    total = len(ranked)
    size = 0
    for depth in range(len(joined) - 1, least - 1, -1):
        if joined[depth] > size:
            rows[total - joined[depth] : total - size] = ranked[size : joined[depth]]
            size = joined[depth]
        low = total - size
        load_words(values, offsets, codes, bits, per, rows, low, total, depth * per, words)
        if size <= 64:
            insertion_sort(words, rows, low, total)
        else:
            radix_sort(words, rows, spare_words, spare_rows, low, total, 0, bits * per, 8 if size < 10000 else 11)
    return size


class LsdRadixCpu(LsdRadix):
    __doc__ = LsdRadix.__doc__
    backend = "cpu"

    def order(self, keys: Ragged) -> np.ndarray:
        threads = useful_threads(self.threads, keys)
        whole = whole_words(keys, threads)
        if whole is not None:
            return _order_of_words(whole, threads)
        lengths = length_range(keys, threads)
        coding = coding_of(keys, threads, lengths=lengths)
        ranked, joined = by_length(keys, coding.per, lengths)
        parallel = int(np.count_nonzero(joined >= threads_cpu.LEAST)) if threads > 1 else 0
        rows = order_by_words(keys, coding, ranked, joined, parallel)
        for depth in range(parallel - 1, -1, -1):
            rows = np.concatenate([ranked[len(rows) : joined[depth]], rows])
            words = load_by_threads(keys, coding, rows, depth * coding.per, threads)
            rows = _sorted_rows(words, rows, coding.bits * coding.per, threads)
        return np.concatenate([ranked[len(rows) :], rows])


def by_length(keys: Ragged, per: int, lengths: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    """Rows, longest first, equal ones as they stand; i8[k]: how many of them have a word 0, 1, … of ``per``.

    Args:
        lengths: of the shortest and of the longest key.
    """
    shortest, longest = lengths
    if shortest == longest:
        return np.arange(len(keys), dtype=row_type(len(keys))), np.full(-(-longest // per), len(keys), np.int64)
    missing = longest - np.diff(keys.offsets)
    joined = np.cumsum(np.bincount(-(-(longest - missing) // per), minlength=1)[::-1])[::-1][1:]
    # numpy sorts numbers of 16 bits by radix, wider ones by merging.
    ranked = np.argsort(missing.astype(np.uint16) if longest < 1 << 16 else missing, kind="stable")
    return ranked.astype(row_type(len(keys)), copy=False), np.ascontiguousarray(joined)


def order_by_words(keys: Ragged, coding: Coding, ranked: np.ndarray, joined: np.ndarray, least: int) -> np.ndarray:
    """Rows of the keys that have a word number ``least``, in order of what they hold from there on."""
    if least >= len(joined):
        return np.empty(0, ranked.dtype)
    ranked = ranked[: joined[least]]
    rows, words = np.empty_like(ranked), np.empty(len(ranked), np.uint64)
    _by_words(keys.values, keys.offsets, *coding[:3], ranked, joined, least, rows, words, np.empty_like(rows),
              np.empty_like(words))
    return rows


def _order_of_words(whole: Words, threads: int) -> np.ndarray:
    """Stable order of numbers."""
    count, (words, bits) = len(whole.words), whole
    place_bits, kind = max(1, (count - 1).bit_length()), row_type(count)
    if not count or not bits:
        return np.arange(count, dtype=kind)
    if bits + place_bits > 64:
        return _sorted_rows(words, np.arange(count, dtype=kind), bits, threads)
    by_threads(threads, 0, count, lambda n, first, last: number(words, first, last, place_bits))
    words, _, room, _ = _radix_sorted(words, np.empty(0, kind), place_bits, bits, threads)
    return places_of(words, place_bits, threads, room)


def _sorted_rows(words: np.ndarray, rows: np.ndarray, bits: int, threads: int) -> np.ndarray:
    return _radix_sorted(words, rows, 0, bits, threads)[1]


def _radix_sorted(words: np.ndarray, rows: np.ndarray, shift: int, bits: int, threads: int) -> Arrays:
    """Words in order of ``bits`` bits from ``shift`` on, their rows, if any, and room; all that is given changes."""
    count = len(words)
    digit = -(-bits // -(-bits // _DIGIT)) if count > 10000 else 8
    spare_words, spare_rows = np.empty_like(words), np.empty_like(rows)
    if threads == 1:
        radix_sort(words, rows, spare_words, spare_rows, 0, count, shift, bits, digit)
        return words, rows, spare_words, spare_rows
    for low in range(shift, shift + bits, digit):
        width = min(digit, shift + bits - low)
        if move_by_digit(words, rows, spare_words, spare_rows, 0, count, low, width, threads) is not None:
            words, rows, spare_words, spare_rows = spare_words, spare_rows, words, rows
    return words, rows, spare_words, spare_rows

