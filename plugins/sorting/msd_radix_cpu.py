"""``msd-radix`` on the CPU: buckets by several symbols at a time, then each bucket by itself, in the cache."""

from itertools import pairwise

import numpy as np
from seqloom.core.engine.threads import by_threads
from seqloom.core.kernels.jit import kernel
from seqloom.core.records import Ragged
from seqloom.core.stages import row_type
from seqloom.plugins.common.sort_words_cpu import (
    Words,
    coding_of,
    insertion_sort,
    length_range,
    load_words,
    number,
    radix_sort,
    sort_buckets,
    sort_numbered,
    sort_strings,
    top_digit,
    whole_words,
)
from seqloom.plugins.sorting.msd_radix_reference import MsdRadix
from seqloom.plugins.sorting.threads_cpu import (
    Arrays,
    order_by_threads,
    places_of,
    sort_by_threads,
    useful_threads,
)

FEW_KEYS, FEW_CHARACTERS = 1000, 1 << 17
"""Keys that Python sorts about as quickly, with nothing to be compiled or loaded for it."""
_SMALL = 1 << 13  # strings of a bucket that is finished at once
_FEW = 256  # strings from which on passes by digits are quicker than comparing
_DIGIT = 11


@kernel
def _finish(values, offsets, codes, bits, per, ended, longest, words, rows, spare_words, spare_rows, low, high, left,
            depth):
    """Sort a bucket that fits the cache, whose words differ in their lowest ``left`` bits only."""
    if high - low <= _FEW:
        sort_strings(values, offsets, codes, bits, per, ended, longest, words, rows, low, high, depth, spare_words,
                     spare_rows)
        return
    radix_sort(words, rows, spare_words, spare_rows, low, high, 0, left, 8)
    if depth + per >= longest:
        return
    last = (np.uint64(1) << np.uint64(bits)) - np.uint64(1)
    first = low
    while first < high:
        word, behind = words[first], first + 1
        while behind < high and words[behind] == word:
            behind += 1
        if behind - first > 1 and not (ended and word & last == 0):
            load_words(values, offsets, codes, bits, per, rows, first, behind, depth + per, words)
            sort_strings(values, offsets, codes, bits, per, ended, longest, words, rows, first, behind, depth + per,
                         spare_words, spare_rows)
        first = behind


@kernel
def _by_buckets(values, offsets, codes, bits, per, ended, longest, words, rows, spare_words, spare_rows, low, high,
                left, depth):
    """Part a large bucket by the top digit that is left of its words, ``left`` bits; small ones are finished.

    depth: characters before those of the words, in which all keys of the bucket are equal.
    """
    stack = np.empty(((high - low) // _SMALL + 2, 4), np.int64)
    stack[0, 0], stack[0, 1], stack[0, 2], stack[0, 3] = low, high, left, depth
    top = 1
    last = (np.uint64(1) << np.uint64(bits)) - np.uint64(1)
    while top:
        top -= 1
        low, high, left, depth = stack[top]
        if high - low <= _SMALL:
            _finish(values, offsets, codes, bits, per, ended, longest, words, rows, spare_words, spare_rows, low, high,
                    left, depth)
            continue
        if left == 0:  # all words are equal
            if depth + per < longest and not (ended and words[low] & last == 0):
                load_words(values, offsets, codes, bits, per, rows, low, high, depth + per, words)
                stack[top, 0], stack[top, 1], stack[top, 2], stack[top, 3] = low, high, bits * per, depth + per
                top += 1
            continue
        digit = min(_DIGIT, left)
        left -= digit
        mask = np.uint64((1 << digit) - 1)
        at = np.zeros(1 << digit, np.int64)
        for place in range(low, high):
            at[(words[place] >> np.uint64(left)) & mask] += 1
        if at[(words[low] >> np.uint64(left)) & mask] < high - low:
            place = low
            for value in range(len(at)):
                count = at[value]
                at[value] = place
                place += count
            for place in range(low, high):
                value = (words[place] >> np.uint64(left)) & mask
                to = at[value]
                at[value] += 1
                spare_words[to], spare_rows[to] = words[place], rows[place]
            words[low:high] = spare_words[low:high]
            rows[low:high] = spare_rows[low:high]
            first = low
            for value in range(len(at)):
                behind = at[value]
                if behind - first > _SMALL:
                    stack[top, 0], stack[top, 1], stack[top, 2], stack[top, 3] = first, behind, left, depth
                    top += 1
                elif behind - first > 1:
                    _finish(values, offsets, codes, bits, per, ended, longest, words, rows, spare_words, spare_rows,
                            first, behind, left, depth)
                first = behind
        else:
            stack[top, 0], stack[top, 1], stack[top, 2], stack[top, 3] = low, high, left, depth
            top += 1


@kernel
def _each_bucket(values, offsets, codes, bits, per, ended, longest, words, rows, spare_words, spare_rows, starts, left,
                 depth):
    for bucket in range(len(starts) - 1):
        _by_buckets(values, offsets, codes, bits, per, ended, longest, words, rows, spare_words, spare_rows,
                    starts[bucket], starts[bucket + 1], left, depth)


@kernel
def _sort_rows(words, rows, spare_words, spare_rows, starts, bits):
    """Sort each stretch from one of ``starts`` to the next by the lowest bits, and its rows with it."""
    for bucket in range(len(starts) - 1):
        low, high = starts[bucket], starts[bucket + 1]
        if high - low > 48:
            radix_sort(words, rows, spare_words, spare_rows, low, high, 0, bits, 8)
        else:
            insertion_sort(words, rows, low, high)


class MsdRadixCpu(MsdRadix):
    __doc__ = MsdRadix.__doc__
    backend = "cpu"

    def order(self, keys: Ragged) -> np.ndarray:
        if len(keys) <= FEW_KEYS and keys.offsets[-1] - keys.offsets[0] <= FEW_CHARACTERS:
            return _order_of_few(keys)
        threads = useful_threads(self.threads, keys)
        whole = whole_words(keys, threads)
        if whole is not None:
            return _whole_order(whole, threads)
        lengths = length_range(keys, threads)
        coding, longest = coding_of(keys, threads, lengths=lengths), lengths[1]

        def finish(arrays: Arrays, starts: np.ndarray, left: int, depth: int) -> None:
            _each_bucket(keys.values, keys.offsets, *coding, longest, *arrays, starts, left, depth * coding.per)

        return order_by_threads(keys, coding, longest, threads, finish)


def _order_of_few(keys: Ragged) -> np.ndarray:
    """Stable order of keys, by comparing them."""
    first, last = keys.offsets[0], keys.offsets[-1]
    characters, bounds = keys.values[first:last].tobytes(), (keys.offsets - first).tolist()
    strings = [characters[begin:end] for begin, end in pairwise(bounds)]
    return np.array(sorted(range(len(strings)), key=strings.__getitem__), row_type(len(strings)))


def _whole_order(whole: Words, threads: int) -> np.ndarray:
    """Stable order of numbers."""
    count, (words, bits) = len(whole.words), whole
    place_bits, kind = max(1, (count - 1).bit_length()), row_type(count)
    if not count or not bits:
        return np.arange(count, dtype=kind)
    if bits + place_bits > 64:
        return sort_by_threads(words, np.arange(count, dtype=kind), 0, bits, threads,
                               lambda arrays, starts, left, depth: _sort_rows(*arrays, starts, left))[1]
    if threads == 1:
        order = np.empty_like(words)
        sort_numbered(words, order, place_bits, bits, top_digit(count, bits))
    else:
        by_threads(threads, 0, count, lambda n, first, last: number(words, first, last, place_bits))

        def finish(arrays: Arrays, starts: np.ndarray, left: int, depth: int) -> None:
            sort_buckets(arrays[0], arrays[2], starts, place_bits, left)

        order, _, words, _ = sort_by_threads(words, np.empty(0, kind), place_bits, bits, threads, finish)
    return places_of(order, place_bits, threads, words)
