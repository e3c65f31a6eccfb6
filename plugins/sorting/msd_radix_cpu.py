"""``msd-radix`` on the CPU: buckets by several symbols at a time, then each bucket by itself, in the cache."""

import numpy as np
from seqloom.core.jit import kernel
from seqloom.core.records import Ragged
from seqloom.plugins.common import sort_words_cpu as words_cpu
from seqloom.plugins.common.sort_words_cpu import Words, coding_of, load_words, sort_numbered, sort_strings, whole_words
from seqloom.plugins.sorting.msd_radix_reference import MsdRadix

_SMALL = 1 << 13  # strings of a bucket that is finished at once
_DIGIT = 11


@kernel(helpers=(words_cpu,))
def _by_buckets(values, offsets, codes, bits, per, ended, longest, words, rows, spare_words, spare_rows):
    """Part large buckets by the top digit that is left of their words; small ones are sorted out by quicksort."""
    total = len(rows)
    stack = np.empty((total // _SMALL + 2, 4), np.int64)
    stack[0, 0], stack[0, 1], stack[0, 2], stack[0, 3] = 0, total, bits * per, 0
    top = 1
    last = (np.uint64(1) << np.uint64(bits)) - np.uint64(1)
    while top:
        top -= 1
        low, high, left, depth = stack[top]
        if high - low <= _SMALL:
            sort_strings(values, offsets, codes, bits, per, ended, longest, words, rows, low, high, depth, spare_words,
                         spare_rows)
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
                    sort_strings(values, offsets, codes, bits, per, ended, longest, words, rows, first, behind, depth,
                                 spare_words, spare_rows)
                first = behind
        else:
            stack[top, 0], stack[top, 1], stack[top, 2], stack[top, 3] = low, high, left, depth
            top += 1


class MsdRadixCpu(MsdRadix):
    __doc__ = MsdRadix.__doc__
    backend = "cpu"

    def order(self, keys: Ragged) -> np.ndarray:
        count = len(keys)
        whole = whole_words(keys)
        if whole is not None and (order := _whole_order(whole)) is not None:
            return order
        rows, words = np.arange(count, dtype=np.int64), np.empty(count, np.uint64)
        coding, longest = coding_of(keys), int(np.diff(keys.offsets).max())
        load_words(keys.values, keys.offsets, *coding[:3], rows, 0, count, 0, words)
        _by_buckets(keys.values, keys.offsets, *coding, longest, words, rows, np.empty_like(words), np.empty_like(rows))
        return rows


def _whole_order(whole: Words) -> np.ndarray | None:
    """i8[n]: stable order of numbers; None where their places don't fit beside them."""
    count = len(whole.words)
    place_bits = max(1, (count - 1).bit_length())
    if not count or not whole.bits:
        return np.arange(count, dtype=np.int64)
    if whole.bits + place_bits > 64:
        return None
    spare = np.empty_like(whole.words)
    sort_numbered(whole.words, spare, place_bits, whole.bits)
    spare &= np.uint64((1 << place_bits) - 1)
    return spare.view(np.int64)
