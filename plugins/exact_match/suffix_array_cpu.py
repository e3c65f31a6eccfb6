"""Suffix arrays on the CPU: radix sort of packed words where texts repeat little, induced sorting (SA-IS) elsewhere.

Both ways give the same array. Radix sort is quicker on a genome; its ties are resolved word by word and, where few are
left, by doubling. SA-IS, which is linear whatever the text, has the repetitive ones: those of whose stretches a sample
holds many twice, and those that leave too many ties.

Source: A. Drozd's thesis on string sorting and BWT alignment, 4.4; G. Nong, S. Zhang & W. H. Chan, "Two efficient
algorithms for linear time suffix array construction", IEEE Transactions on Computers 60 (2011).
"""

from typing import Any

import numpy as np
from seqloom.core import prefetch as prefetch_module
from seqloom.core.jit import kernel
from seqloom.core.prefetch import prefetch
from seqloom.plugins.common import sort_words_cpu as words_cpu
from seqloom.plugins.common.sort_words_cpu import insertion_sort, radix_sort, sort_numbered, top_digit
from seqloom.plugins.exact_match.suffix_array import suffix_type

_ROUNDS = 4  # words compared before doubling, at most
_REPETITIVE = 16  # SA-IS if more than a 16th of the suffixes still tie with a neighbour
_WINDOW = 128  # length of the stretches that tell a repetitive text; about what the rounds compare
_SAMPLED = 8  # one stretch in 2 ** 8 is looked at
_AHEAD = 32  # places whose memory is asked for before they are needed


def suffix_array(text: np.ndarray) -> np.ndarray:
    """i4[n] (i8 from 2 G on): starts of the suffixes of u8[n] ``text`` in lexicographic order.

    The last symbol of the text must be greater than all others.
    """
    order = None if repeats(text) else _by_words(text)
    return by_induction(text) if order is None else order


def repeats(text: np.ndarray) -> bool:
    """Whether many stretches of the text occur twice, as far as a sample of them tells.

    The sample is drawn by content, so that equal stretches are in it together or not at all.
    """
    if len(text) < _WINDOW << _SAMPLED + 4:
        return False
    sample = np.empty(len(text) >> (_SAMPLED - 1), np.uint64)
    found = int(_sample(text, sample))
    if not len(sample) >> 2 <= found <= len(sample):  # half and twice what random text has
        return True
    return found - len(np.unique(sample[:found])) > found // _REPETITIVE


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
    key_bits = (base**letters - 1).bit_length()
    sort_numbered(keys, spare, place_bits, key_bits, top_digit(count, key_bits))
    order, tied = np.empty(count, suffix_type(count)), np.empty(count + 1, np.bool_)
    left = _split(spare, place_bits, order, tied)
    del keys, spare
    per = 64 // bits
    for done in range(_ROUNDS):
        if not left or (done and left <= count // _REPETITIVE):
            break
        if left > count // 2:
            return None
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


@kernel
def _sample(text, sample):
    """Hashes of stretches of the text; those that are drawn, as far as there is room. Returns how many are."""
    base, top = np.uint64(0x9E3779B97F4A7C15), np.uint64(1)
    for _ in range(_WINDOW):
        top *= base
    mixer = np.uint64(0xD6E8FEB86659FD93)
    rolling, found = np.uint64(0), np.uint64(0)
    for place in range(np.uint64(len(text))):
        rolling = rolling * base + text[place] + np.uint64(1)
        if place >= _WINDOW:
            rolling -= (text[place - np.uint64(_WINDOW)] + np.uint64(1)) * top
            mixed = (rolling ^ rolling >> np.uint64(29)) * mixer
            if mixed >> np.uint64(64 - _SAMPLED) == 0:
                if found < len(sample):
                    sample[found] = mixed
                found += np.uint64(1)
    return found


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
        insertion_sort(words, rows, 0, size)
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
    """The suffix array by induced sorting, in linear time; the text may be of any integers ≥ 0.

    A suffix is rising if it is less than the next one, else falling. The leftmost ones of rising stretches, sorted by
    what stands between each and the next such, sort all others; numbered by that rank they are a shorter text, whose
    suffix array is theirs.
    """
    count = len(text)
    kind = suffix_type(count)
    sizes = np.bincount(text)
    used = np.flatnonzero(sizes)
    ranks = np.zeros(len(sizes), kind)
    ranks[used] = np.arange(len(used))
    codes = np.empty(count, np.uint8 if len(used) <= 128 else kind)
    leftmost = np.empty(count // 2 + 1, kind)
    leftmost = leftmost[len(leftmost) - _classify(text, ranks, codes, leftmost) :]
    sizes = sizes[used].astype(kind)
    order, seeds = np.empty(count, kind), np.empty_like(leftmost)
    _induce(codes, sizes, leftmost, order, seeds)
    names = np.empty(count // 2 + 1, kind)
    distinct = _name(codes, leftmost, seeds, names)
    if distinct < len(leftmost):
        del order
        reduced = names[leftmost >> 1]
        del names
        seeds = leftmost[by_induction(reduced)]
        order = np.empty(count, kind)
    _induce(codes, sizes, seeds, order, np.empty(0, kind))
    return order


@kernel
def _classify(text, ranks, codes, leftmost):
    """Code of every place: twice the symbol's rank, and 1 if its suffix rises; fill ``leftmost`` from its end.

    Returns how many rising suffixes follow a falling one. Without branches, since nothing foretells them.
    """
    count = len(text)
    at: Any = len(leftmost)
    before, rose = ranks[text[count - 1]], np.int64(0)
    codes[count - 1] = before << 1
    for place in range(count - 2, -1, -1):
        symbol = ranks[text[place]]
        rises = np.int64(symbol < before) | (np.int64(symbol == before) & rose)
        codes[place] = symbol << 1 | rises
        leftmost[at - 1] = place + 1
        at -= rose & (1 - rises)
        before, rose = symbol, rises
    return len(leftmost) - at


@kernel(helpers=(prefetch_module,))
def _induce(codes, sizes, seeds, order, leftmost):
    """Sort all suffixes from the order of ``seeds``, the leftmost rising ones, among themselves.

    ``leftmost`` takes those ones in their new order, unless it is empty.
    """
    count = len(codes)
    order[:] = -1
    at = np.empty_like(sizes)
    place = 0
    for symbol in range(len(sizes)):
        place += sizes[symbol]
        at[symbol] = place
    for n in range(len(seeds) - 1, -1, -1):
        if n >= _AHEAD:
            prefetch(codes, seeds[n - _AHEAD])
        symbol = codes[seeds[n]] >> 1
        at[symbol] -= 1
        order[at[symbol]] = seeds[n]
    place = 0
    for symbol in range(len(sizes)):
        at[symbol] = place
        place += sizes[symbol]
    symbol = codes[count - 1] >> 1  # the last suffix is the first of its falling ones
    order[at[symbol]] = count - 1
    at[symbol] += 1
    for n in range(count):
        if n + _AHEAD < count:
            prefetch(codes, order[n + _AHEAD] - 1)
        suffix = order[n] - 1
        if suffix >= 0:
            code = codes[suffix]
            if not code & 1:
                order[at[code >> 1]] = suffix
                at[code >> 1] += 1
    place = 0
    for symbol in range(len(sizes)):
        place += sizes[symbol]
        at[symbol] = place
    bucket = len(sizes) - 1
    first = count - sizes[bucket]
    found = len(leftmost)
    for n in range(count - 1, -1, -1):
        if n < first:
            bucket -= 1
            first -= sizes[bucket]
        if n >= _AHEAD:
            prefetch(codes, order[n - _AHEAD] - 1)
        suffix = order[n] - 1
        if suffix >= 0:
            code = codes[suffix]
            if code & 1:
                at[code >> 1] -= 1
                order[at[code >> 1]] = suffix
            elif found and n >= at[bucket]:  # a rising suffix behind a falling one
                found -= 1
                leftmost[found] = suffix + 1


@kernel(helpers=(prefetch_module,))
def _name(codes, starts, seeds, names):
    """Number what stands from each of ``starts`` to the next by rank, equal ones alike; returns how many differ.

    seeds: the same places in order of that. names: by half the place, since no two are neighbours.
    """
    for n in range(len(starts) - 1):
        names[starts[n] >> 1] = starts[n + 1] - starts[n]
    if len(starts):
        names[starts[len(starts) - 1] >> 1] = 0  # reaches the end of the text: equals none
    before, length_before, distinct = 0, -1, 0
    for n in range(len(seeds)):
        if n + _AHEAD < len(seeds):
            prefetch(codes, seeds[n + _AHEAD])
            prefetch(names, seeds[n + _AHEAD] >> 1)
        place = seeds[n]
        length = names[place >> 1]
        equal = length == length_before and length > 0
        step = 0
        while equal and step <= length:
            equal = codes[before + step] == codes[place + step]
            step += 1
        distinct += not equal
        names[place >> 1] = distinct - 1
        before, length_before = place, length
    return distinct
