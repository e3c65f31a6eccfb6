"""Names of the stretches of a text between leftmost rising suffixes: by a table, or by radix sort of their symbols.

Induced sorting names these stretches by their order. Where few of them differ, a table holds those, and only they are
sorted. Where symbols are few, nearly all stretches fit a word, and equal ones have equal words: then a radix sort has
them in order, with nothing to be looked up in the text. The others are sorted on, word by word.

A stretch ends with the first symbol of the next one, and that counts as more than the same symbol inside of a longer
one: there the suffix falls, and it is less. The last stretch ends with the text, which is less than any symbol.
"""

import numpy as np
from seqloom.core.kernels.jit import inline, kernel
from seqloom.core.kernels.simd import prefetch
from seqloom.plugins.common.sort_words_cpu import insertion_sort, radix_sort, sort_numbered, top_digit

FEWEST = 1 << 12
"""Stretches from which on this pays."""
_MOST_DIFFERENT = 1 << 16  # stretches of a table, which the cache is to hold
_LEAST_COPIES = 4  # of a stretch, on average, for a table to pay
_LEAST_SYMBOLS = 6  # of a word
_AHEAD = 32  # stretches whose memory is asked for before they are needed
_ODD = 0x9E3779B97F4A7C15


def named_by_table(codes: np.ndarray, bounds: np.ndarray, symbols: int) -> tuple[np.ndarray, int] | None:
    """The name of each stretch, equal ones alike, and how many differ; None if these are too many for a table.

    Args:
        codes: twice the rank of each symbol of the text, and 1 if its suffix rises.
        bounds: where stretches begin, in order, and the end of the text.
        symbols: how many there are.
    """
    count, kind = len(bounds) - 1, bounds.dtype
    if count < FEWEST:
        return None
    most = min(count // _LEAST_COPIES, _MOST_DIFFERENT)
    firsts, pool = np.empty(most, kind), np.empty(len(codes) // _LEAST_COPIES, kind)
    names, slots = np.empty(count, kind), np.zeros(1 << (2 * most).bit_length(), kind)
    different = int(_fill_table(codes, bounds, slots, pool, firsts, names))
    if different < 0:
        return None
    firsts = firsts[:different]
    ranked = _in_order(codes, bounds[:-1][firsts], bounds[1:][firsts], symbols)[0]
    pool[names[firsts[ranked]]] = np.arange(different)
    _look_up(pool, names)
    return names, different


@kernel
def _fill_table(codes, bounds, slots, pool, firsts, names):
    """Fill the place of each stretch in ``pool``, which takes length and symbols of the different ones.

    slots: 0, and then the place of a stretch of this hash plus 1. firsts: takes the first of equal stretches.

    Returns:
        How many differ; −1 where there is no room for them.
    """
    count, mask, found, free = len(bounds) - 1, np.uint64(len(slots) - 1), 0, np.int64(0)
    for number in range(count):
        begin, length = np.int64(bounds[number]), np.int64(bounds[number + 1]) - np.int64(bounds[number])
        last = number + 1 == count
        length += not last  # the first symbol of the next one counts
        mixed = np.uint64(length)
        for place in range(begin, begin + length):
            mixed = (mixed + np.uint64(codes[place])) * np.uint64(_ODD)
            mixed ^= mixed >> np.uint64(32)
        slot, same = mixed & mask, False
        while slots[slot] and not same:
            known = np.int64(slots[slot])
            same, step = pool[known - 1] == length and not last, 0
            while same and step < length:
                same = pool[known + step] == codes[begin + step]
                step += 1
            if not same:
                slot = (slot + np.uint64(1)) & mask
        if not same:
            if found == len(firsts) or free + length >= len(pool):
                return -1
            pool[free] = length
            for step in range(length):
                pool[free + 1 + step] = codes[begin + step]
            slots[slot], firsts[found] = free + 1, number
            found += 1
            free += length + 1
        names[number] = slots[slot] - 1
    return found


@kernel
def _look_up(pool, names):
    """Names for places in the pool."""
    for n in range(len(names)):
        names[n] = pool[names[n]]


def pays(stretches: int, symbols: int) -> bool:
    """Whether so many stretches of an alphabet of so many symbols are named quickest by sorting their words."""
    place_bits = max(1, (stretches - 1).bit_length())
    return stretches >= FEWEST and (2 * symbols + 1) ** _LEAST_SYMBOLS <= 1 << (64 - place_bits)


def named(codes: np.ndarray, bounds: np.ndarray, symbols: int) -> tuple[np.ndarray, np.ndarray, int]:
    """Numbers of the stretches in order, the name of each, equal ones alike, and how many differ.

    Args:
        codes, bounds, symbols: as of ``named_by_table``.
    """
    ranked, fresh, words = _in_order(codes, bounds[:-1], bounds[1:], symbols)
    names = words.view(bounds.dtype)[: len(ranked)]  # which are needed no more
    return ranked, names, int(_number(ranked, fresh, names))


def _in_order(codes: np.ndarray, begins: np.ndarray, ends: np.ndarray,
              symbols: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Numbers of some stretches in order, bool[n] whether each of these differs from the one before, and room."""
    count, base, kind = len(begins), 2 * symbols + 1, begins.dtype
    place_bits = max(1, (count - 1).bit_length())
    per, long_per = _most_digits(base, 64 - place_bits), _most_digits(base, 64)
    bits = (base**per - 1).bit_length()
    words, order = np.empty(count, np.uint64), np.empty(count, np.uint64)
    _pack(codes, begins, ends, _powers(base, per), words)
    sort_numbered(words, order, place_bits, bits, top_digit(count, bits))
    ranked, fresh, runs = np.empty(count, kind), np.empty(count, np.bool_), np.empty((count // 2 + 1, 2), kind)
    found = int(_rank(order, place_bits, begins, ends, per, ranked, fresh, runs))
    if found:
        _sort_on(codes, begins, ends, _powers(base, long_per), (base**long_per - 1).bit_length(), per, runs[:found],
                 ranked, fresh)
    return ranked, fresh, words


def _most_digits(base: int, bits: int) -> int:
    digits = 1
    while base ** (digits + 1) <= 1 << bits:
        digits += 1
    return digits


def _powers(base: int, most: int) -> np.ndarray:
    """u8[most + 1]: base to the power of 0, 1, …; the last one, which may be 2 to the power of 64, as 0."""
    return np.array([base**n & ((1 << 64) - 1) for n in range(most + 1)], np.uint64)


@inline
def _word(codes, begin, end, powers):
    """The symbols of a stretch from a place on as digits, of whose base there are ``powers``; filled up with 0."""
    word, base, per = np.uint64(0), powers[1], len(powers) - 1
    behind = min(begin + per, end + 1, len(codes))
    for place in range(begin, behind):
        word = word * base + np.uint64((codes[place] & ~1) + 1)
    if end < begin + per and end < len(codes):
        word += np.uint64(1)
    return word * powers[begin + per - behind] if behind > begin else np.uint64(0)


@kernel
def _pack(codes, begins, ends, powers, words):
    """Fill the first word of each stretch."""
    for number in range(len(begins)):
        words[number] = _word(codes, np.int64(begins[number]), np.int64(ends[number]), powers)


@kernel
def _rank(order, place_bits, begins, ends, per, ranked, fresh, runs):
    """Fill the numbers of stretches in order, and whether each differs from the one before; returns how many runs.

    order: words with numbers below them. runs: takes the first place and the size of each run of stretches that have
    equal words and go on.
    """
    mask = (np.uint64(1) << np.uint64(place_bits)) - np.uint64(1)
    found, first = 0, 0
    for n in range(len(order)):
        ranked[n] = order[n] & mask
        fresh[n] = n == 0 or (order[n] ^ order[n - 1]) >> np.uint64(place_bits) != np.uint64(0)
        if fresh[n]:
            first = n
        elif n + 1 == len(order) or (order[n] ^ order[n + 1]) >> np.uint64(place_bits) != np.uint64(0):
            number = np.int64(ranked[n])
            if ends[number] - begins[number] >= per:
                runs[found, 0], runs[found, 1] = first, n + 1 - first
                found += 1
    return found


@kernel
def _sort_on(codes, begins, ends, powers, bits, depth, runs, ranked, fresh):
    """Sort runs of stretches that are equal in ``depth`` symbols by what follows, in words of some ``bits`` bits."""
    per = len(powers) - 1
    most = np.int64(runs[:, 1].max())
    words, spare_words = np.empty(most, np.uint64), np.empty(most, np.uint64)
    spare = np.empty(most, ranked.dtype)
    stack = np.empty((most // 2 + 2, 3), np.int64)
    for run in range(len(runs)):
        stack[0, 0], stack[0, 1], stack[0, 2] = runs[run, 0], runs[run, 1], depth
        top = 1
        while top:
            top -= 1
            first, size, done = stack[top, 0], stack[top, 1], stack[top, 2]
            rows = ranked[first : first + size]
            for n in range(size):
                number = np.int64(rows[n])
                words[n] = _word(codes, np.int64(begins[number]) + done, np.int64(ends[number]), powers)
            if size <= 32:
                insertion_sort(words, rows, 0, size)
            else:
                radix_sort(words, rows, spare_words, spare, 0, size, 0, bits, 8 if size < 10000 else 11)
            open_ = 0
            for n in range(1, size + 1):
                if n < size:
                    fresh[first + n] = words[n] != words[n - 1]
                if n == size or fresh[first + n]:
                    number = np.int64(rows[open_])
                    if n - open_ > 1 and ends[number] - begins[number] >= done + per:
                        stack[top, 0], stack[top, 1], stack[top, 2] = first + open_, n - open_, done + per
                        top += 1
                    open_ = n


@kernel
def _number(ranked, fresh, names):
    """Fill the names of stretches, by their order; returns how many there are."""
    different = 0
    for n in range(len(ranked)):
        prefetch(names, np.int64(ranked[min(n + _AHEAD, len(ranked) - 1)]))
        different += fresh[n]
        names[ranked[n]] = different - 1
    return different
