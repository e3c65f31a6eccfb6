"""``lsd-radix`` on the CPU: keys that fit 64 bits as one packed number each, longer ones word by word from the last."""

import numpy as np
from seqloom.core.jit import kernel
from seqloom.core.records import Ragged
from seqloom.plugins.common import sort_words_cpu as words_cpu
from seqloom.plugins.common.sort_words_cpu import Words, coding_of, load_words, radix_sort, whole_words
from seqloom.plugins.sorting.lsd_radix_reference import LsdRadix

_DIGIT = 11


@kernel(helpers=(words_cpu,))
def _by_words(values, offsets, codes, bits, per, by_length, joined, rows, words, spare_rows, spare_words):
    """Sort by the last word of each key, then the one before, …; a key takes part from its own last word on.

    joined: i8, number of keys that have a word 0, 1, …. ``rows`` are filled from the back: a key that joins goes before
    all longer ones.
    """
    total = len(by_length)
    size = 0
    for depth in range(len(joined) - 1, -1, -1):
        if joined[depth] > size:
            rows[total - joined[depth] : total - size] = by_length[size : joined[depth]]
            size = joined[depth]
        low = total - size
        load_words(values, offsets, codes, bits, per, rows, low, total, depth * per, words)
        if size <= 64:
            for place in range(low + 1, total):
                word, row = words[place], rows[place]
                hole = place
                while hole > low and words[hole - 1] > word:
                    words[hole], rows[hole] = words[hole - 1], rows[hole - 1]
                    hole -= 1
                words[hole], rows[hole] = word, row
        else:
            radix_sort(words, rows, spare_words, spare_rows, low, total, 0, bits * per, 8 if size < 10000 else 11)
    rows[: total - size] = by_length[size:]


class LsdRadixCpu(LsdRadix):
    __doc__ = LsdRadix.__doc__
    backend = "cpu"

    def order(self, keys: Ragged) -> np.ndarray:
        whole = whole_words(keys)
        if whole is not None:
            return order_of_words(whole)
        coding, lengths = coding_of(keys), np.diff(keys.offsets)
        by_length = np.argsort(-lengths, kind="stable")
        needed = -(-lengths // coding.per)
        joined = np.cumsum(np.bincount(needed, minlength=1)[::-1])[::-1][1:]
        rows, words = np.empty(len(keys), np.int64), np.empty(len(keys), np.uint64)
        _by_words(keys.values, keys.offsets, *coding[:3], by_length, np.ascontiguousarray(joined), rows, words,
                  np.empty_like(rows), np.empty_like(words))
        return rows


def order_of_words(whole: Words) -> np.ndarray:
    """i8[n]: stable order of numbers."""
    count, (words, bits) = len(whole.words), whole
    place_bits = max(1, (count - 1).bit_length())
    if not count or not bits:
        return np.arange(count, dtype=np.int64)
    digit = -(-bits // -(-bits // _DIGIT)) if count > 10000 else 8
    if bits + place_bits <= 64:
        _number(words, place_bits)
        none = np.empty(0, np.int64)
        radix_sort(words, none, np.empty_like(words), none, 0, count, place_bits, bits, digit)
        words &= np.uint64((1 << place_bits) - 1)
        return words.view(np.int64)
    rows = np.arange(count, dtype=np.int64)
    radix_sort(words, rows, np.empty_like(words), np.empty_like(rows), 0, count, 0, bits, digit)
    return rows


@kernel
def _number(words, bits):
    """Put each word's place below it."""
    for place in range(np.uint64(len(words))):
        words[place] = (words[place] << np.uint64(bits)) | place
