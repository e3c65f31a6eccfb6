"""Suffix arrays on the CPU: radix sort of packed words where texts repeat little, induced sorting (SA-IS) elsewhere.

Both ways give the same array. Radix sort is several times quicker on a genome; its ties are resolved word by word and,
where long repeats are left, by doubling. When too much is left, the text is a repetitive one and SA-IS takes over,
which is linear whatever the text.

Source: A. Drozd's thesis on string sorting and BWT alignment, 4.4; G. Nong, S. Zhang & W. H. Chan, "Two efficient
algorithms for linear time suffix array construction", IEEE Transactions on Computers 60 (2011).
"""

import numpy as np
from seqloom.core.jit import kernel
from seqloom.plugins.common import sort_words_cpu as words_cpu
from seqloom.plugins.common.sort_words_cpu import radix_sort, sort_numbered
from seqloom.plugins.exact_match.suffix_array import suffix_type

_ROUNDS = 4  # words compared before doubling
_REPETITIVE = 16  # SA-IS if more than a 16th of the suffixes still tie with a neighbour


def suffix_array(text: np.ndarray) -> np.ndarray:
    """i4[n] (i8 from 2 G on): starts of the suffixes of u8[n] ``text`` in lexicographic order.

    The last symbol of the text must be greater than all others.
    """
    order = _by_words(text)
    return by_induction(text) if order is None else order


def _by_words(text: np.ndarray) -> np.ndarray | None:
    """The suffix array by radix sort; None if the text is repetitive."""
    count = len(text)
    used = np.flatnonzero(np.bincount(text, minlength=256))
    ranks = np.zeros(256, np.uint8)
    ranks[used] = np.arange(len(used))
    bits = max(1, (len(used) - 1).bit_length())
    place_bits = max(1, (count - 1).bit_length())
    base, letters = max(2, len(used)), 1
    while base ** (letters + 1) <= 1 << (64 - place_bits):
        letters += 1
    keys, spare = np.empty(count, np.uint64), np.empty(count, np.uint64)
    _numerals(text, ranks, base, letters, keys)
    sort_numbered(keys, spare, place_bits, (base**letters - 1).bit_length())
    order, tied = np.empty(count, suffix_type(count)), np.empty(count + 1, np.bool_)
    left = _split(spare, place_bits, order, tied)
    del keys, spare
    per = 64 // bits
    for _ in range(_ROUNDS):
        if left > count // 2:
            return None
        if not left:
            return order
        left = _refine(text, ranks, bits, per, letters, order, tied, *_runs(tied))
        letters += per
    if left > count // _REPETITIVE:
        return None
    if left:
        rank = np.empty_like(order)
        _rank(order, tied, rank)
    while left:
        left = _double(rank, letters, place_bits, order, tied, *_runs(tied))
        letters *= 2
    return order


def _runs(tied: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """i8[k] first place and i8[k] size of each run of suffixes that tie."""
    edges = np.flatnonzero(tied[1:] != tied[:-1])
    return edges[::2], edges[1::2] + 1 - edges[::2]


@kernel
def _numerals(text, ranks, base, letters, keys):
    """The first ``letters`` symbols of every suffix as digits of a number of this base; 0 stands behind the end."""
    top = np.uint64(1)
    for _ in range(letters - 1):
        top *= np.uint64(base)
    number = np.uint64(0)
    count = len(text)
    for place in range(letters):
        number = number * np.uint64(base) + np.uint64(ranks[text[place]] if place < count else 0)
    for place in range(count):
        keys[place] = number
        ahead = place + letters
        number = (number - np.uint64(ranks[text[place]]) * top) * np.uint64(base)
        if ahead < count:
            number += np.uint64(ranks[text[ahead]])


@kernel
def _split(numbered, place_bits, order, tied):
    """Take sorted numbers apart: places, and whether each key equals the one before; returns how many do."""
    mask = (np.uint64(1) << np.uint64(place_bits)) - np.uint64(1)
    before = ~np.uint64(0)
    left = 0
    for n in range(len(numbered)):
        key = numbered[n] >> np.uint64(place_bits)
        order[n] = numbered[n] & mask
        tied[n] = n > 0 and key == before
        left += tied[n]
        before = key
    tied[len(numbered)] = False
    return left


@kernel(helpers=(words_cpu,))
def _sort_run(words, rows, spare_words, spare_rows, size, bits, first, order, tied):
    """Sort the run of ``size`` suffixes at place ``first`` by their words; returns how many still tie."""
    if size <= 32:
        for n in range(1, size):
            word, row = words[n], rows[n]
            hole = n
            while hole > 0 and words[hole - 1] > word:
                words[hole], rows[hole] = words[hole - 1], rows[hole - 1]
                hole -= 1
            words[hole], rows[hole] = word, row
    else:
        radix_sort(words, rows, spare_words, spare_rows, 0, size, 0, bits, 8 if size < 10000 else 11)
    left = 0
    for n in range(size):
        order[first + n] = rows[n]
        tied[first + n] = n > 0 and words[n] == words[n - 1]
        left += tied[first + n]
    return left


@kernel(helpers=(words_cpu,))
def _refine(text, ranks, bits, per, depth, order, tied, firsts, sizes):
    """Sort each run of tied suffixes by its next ``per`` symbols, the first after ``depth``; returns the ties left."""
    most, count, left = sizes.max(), len(text), 0
    words, spare_words = np.empty(most, np.uint64), np.empty(most, np.uint64)
    rows, spare_rows = np.empty(most, order.dtype), np.empty(most, order.dtype)
    for run in range(len(firsts)):
        first = firsts[run]
        for n in range(sizes[run]):
            suffix = np.int64(order[first + n])
            word = np.uint64(0)
            for place in range(suffix + depth, suffix + depth + per):
                word <<= np.uint64(bits)
                if place < count:
                    word |= np.uint64(ranks[text[place]])
            words[n], rows[n] = word, suffix
        left += _sort_run(words, rows, spare_words, spare_rows, sizes[run], bits * per, first, order, tied)
    return left


@kernel
def _rank(order, tied, rank):
    """Rank of every suffix: the first place of its run."""
    first = 0
    for n in range(len(order)):
        if not tied[n]:
            first = n
        rank[order[n]] = first


@kernel(helpers=(words_cpu,))
def _double(rank, depth, bits, order, tied, firsts, sizes):
    """Sort each run of tied suffixes, equal in ``depth`` symbols, by the rank of what follows; returns what ties."""
    most, left = sizes.max(), 0
    words, spare_words = np.empty(most, np.uint64), np.empty(most, np.uint64)
    rows, spare_rows = np.empty(most, order.dtype), np.empty(most, order.dtype)
    for run in range(len(firsts)):
        first, size = firsts[run], sizes[run]
        for n in range(size):  # within the text: a suffix that reaches its end ties with none
            words[n], rows[n] = rank[np.int64(order[first + n]) + depth], order[first + n]
        left += _sort_run(words, rows, spare_words, spare_rows, size, bits, first, order, tied)
        place = first
        for n in range(first, first + size):
            if not tied[n]:
                place = n
            rank[order[n]] = place
    return left


def by_induction(text: np.ndarray) -> np.ndarray:
    """The suffix array by induced sorting, in linear time; the text may be of any unsigned or signed integers ≥ 0."""
    count = len(text)
    kind = suffix_type(count)
    if count == 1:
        return np.zeros(1, kind)
    sizes = np.bincount(text).astype(kind)
    rising = np.empty(count, np.bool_)
    sorted_, starts = np.empty(count, kind), np.empty(count // 2 + 1, kind)
    starts = starts[: _lms_places(text, rising, starts)]
    _induce(text, rising, sizes, starts, sorted_)
    names = np.full(count, -1, kind)
    distinct = _name(text, rising, sorted_, names)
    if distinct < len(starts):
        reduced = names[starts]
        del names
        order = by_induction(reduced)
    else:
        order = np.empty(len(starts), kind)
        order[names[starts]] = np.arange(len(starts), dtype=kind)
    _induce(text, rising, sizes, starts[order], sorted_)
    return sorted_


@kernel
def _lms_places(text, rising, starts):
    """Note which suffixes are less than the next one; write where such a stretch begins, and return how many do."""
    count = len(text)
    rising[count - 1] = False
    found = 0
    for place in range(count - 2, -1, -1):
        rising[place] = text[place] < text[place + 1] or (text[place] == text[place + 1] and rising[place + 1])
        found += rising[place + 1] and not rising[place]
    total = found
    for place in range(count - 1):
        if rising[place + 1] and not rising[place]:
            starts[total - found] = place + 1
            found -= 1
    return total


@kernel
def _induce(text, rising, sizes, seeds, order):
    """Sort all suffixes from the order of ``seeds`` among themselves."""
    count = len(text)
    order[:] = -1
    at = np.empty_like(sizes)
    place = 0
    for symbol in range(len(sizes)):
        place += sizes[symbol]
        at[symbol] = place
    for n in range(len(seeds) - 1, -1, -1):
        symbol = text[seeds[n]]
        at[symbol] -= 1
        order[at[symbol]] = seeds[n]
    place = 0
    for symbol in range(len(sizes)):
        at[symbol] = place
        place += sizes[symbol]
    symbol = text[count - 1]  # the last suffix is the first of its falling ones
    order[at[symbol]] = count - 1
    at[symbol] += 1
    for n in range(count):
        suffix = order[n] - 1
        if suffix >= 0 and not rising[suffix]:
            symbol = text[suffix]
            order[at[symbol]] = suffix
            at[symbol] += 1
    place = 0
    for symbol in range(len(sizes)):
        place += sizes[symbol]
        at[symbol] = place
    for n in range(count - 1, -1, -1):
        suffix = order[n] - 1
        if suffix >= 0 and rising[suffix]:
            symbol = text[suffix]
            at[symbol] -= 1
            order[at[symbol]] = suffix


@kernel
def _name(text, rising, order, names):
    """Number the stretches between beginnings of rising ones by rank, equal ones alike; returns how many differ."""
    count = len(text)
    before, distinct = -1, 0
    for n in range(count):
        place = order[n]
        if place < 1 or not rising[place] or rising[place - 1]:
            continue
        equal = before >= 0
        step = 0
        while equal:
            a, b = before + step, place + step
            if a >= count or b >= count or text[a] != text[b] or rising[a] != rising[b]:
                equal = False
            elif step > 0:
                first, second = rising[a] and not rising[a - 1], rising[b] and not rising[b - 1]
                if first != second:
                    equal = False
                elif first:
                    break
            step += 1
        distinct += not equal
        names[place] = distinct - 1
        before = place
    return distinct
