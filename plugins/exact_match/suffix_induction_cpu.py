"""Suffix arrays by induced sorting (SA-IS), in time that is linear whatever the text.

Source: G. Nong, S. Zhang & W. H. Chan, "Two efficient algorithms for linear time suffix array construction", IEEE
Transactions on Computers 60 (2011).
"""

from typing import Any

import numpy as np
from seqloom.core.kernels.jit import kernel
from seqloom.core.kernels.simd import prefetch

from .suffix_array import suffix_type
from .suffix_names_cpu import named, named_by_table, pays

_AHEAD = 32  # places whose memory is asked for before they are needed
_TABLES, _FEW = 4, 256  # in which symbols are counted where there are few


def by_induction(text: np.ndarray) -> np.ndarray:
    """The suffix array by induced sorting, in linear time; the text may be of any integers ≥ 0.

    A suffix is rising if it is less than the next one, else falling. The leftmost ones of rising stretches, sorted by
    what stands between each and the next such, sort all others; numbered by that rank they are a shorter text, whose
    suffix array is theirs.
    """
    count = len(text)
    kind = suffix_type(count)
    symbols = int(text.max()) + 1
    counts = np.zeros((_TABLES if symbols <= _FEW else 1, symbols), np.int64)
    _count(text, counts)
    sizes = counts.sum(axis=0)
    used = np.flatnonzero(sizes)
    ranks = np.zeros(len(sizes), kind)
    ranks[used] = np.arange(len(used))
    codes = np.empty(count, _code_type(len(used), kind))
    bounds = np.empty(count // 2 + 2, kind)
    bounds[-1] = count
    bounds = bounds[len(bounds) - 1 - _classify(text, ranks, codes, bounds[:-1]) :]
    sizes, leftmost = sizes[used].astype(kind), bounds[:-1]
    found = named_by_table(codes, bounds, len(used))
    if found:
        ranked = by_induction(found[0])
    else:
        by_words = pays(len(leftmost), len(used))
        ranked, reduced, different = (named(codes, bounds, len(used)) if by_words
                                      else _named_by_induction(codes, sizes, leftmost))
        if different < len(leftmost):
            ranked = by_induction(reduced)
    order = np.empty(count, kind)
    _seed(codes, sizes, leftmost, ranked, order)
    _induce(codes, sizes, order, np.empty(0, kind))
    return order


def _code_type(symbols: int, kind: np.dtype) -> np.dtype:
    """The narrowest type that holds twice the rank of each of some symbols."""
    types = np.dtype(np.uint8), np.dtype(np.uint16), kind
    return next(one for one in types if 2 * symbols <= 1 << 8 * one.itemsize)


def _named_by_induction(codes: np.ndarray, sizes: np.ndarray,
                        leftmost: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
    """As ``named``, by sorting the leftmost rising suffixes as if each ended where the next one begins."""
    if not len(leftmost):
        return leftmost, leftmost, 0
    order, seeds = np.empty(len(codes), leftmost.dtype), np.empty_like(leftmost)
    _seed(codes, sizes, leftmost, leftmost[:0], order)
    _induce(codes, sizes, order, seeds)
    del order
    names = np.empty(len(codes) // 2 + 1, leftmost.dtype)
    different = int(_name(codes, leftmost, seeds, names))
    reduced = names[leftmost >> 1]
    return (_places(leftmost, seeds) if different == len(leftmost) else reduced), reduced, different


def _places(leftmost: np.ndarray, seeds: np.ndarray) -> np.ndarray:
    """Where each of ``seeds`` stands in ``leftmost``, which is in order."""
    return np.searchsorted(leftmost, seeds)


@kernel
def _count(text, counts):
    """How often each symbol occurs, in tables that are to be added up: in a run of a symbol, each number of one table
    would wait for the one before. ``np.bincount`` would make a text of eight-byte integers first."""
    for place in range(len(text)):
        counts[place & (len(counts) - 1), text[place]] += 1


@kernel
def _classify(text, ranks, codes, leftmost):
    """Code of every place: twice the symbol's rank, and 1 if its suffix rises; fill ``leftmost`` from its end.

    Returns how many rising suffixes follow a falling one. Without branches, since nothing predicts them.
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


@kernel
def _seed(codes, sizes, leftmost, ranked, order):
    """Put the leftmost rising suffixes at the ends of their symbols' stretches of ``order``, and −1 elsewhere.

    ranked: their numbers in order; where there are none, they come as they stand in the text.
    """
    order[:] = -1
    count = len(leftmost)
    behind = np.zeros_like(sizes)  # how many have each symbol, then where the stretch of the next one begins
    for n in range(count):
        behind[codes[leftmost[n]] >> 1] += 1
    if not len(ranked):
        place = 0
        for symbol in range(len(sizes)):
            place += sizes[symbol]
            behind[symbol] = place
        for n in range(count - 1, -1, -1):
            symbol = codes[leftmost[n]] >> 1
            behind[symbol] -= 1
            order[behind[symbol]] = leftmost[n]
        return
    place, n = 0, 0
    for symbol in range(len(sizes)):
        place += sizes[symbol]
        for to in range(place - behind[symbol], place):
            prefetch(leftmost, ranked[min(n + _AHEAD, count - 1)])
            order[to] = leftmost[ranked[n]]
            n += 1


@kernel
def _induce(codes, sizes, order, leftmost):
    """Sort all suffixes from the order of the leftmost rising ones, which ``_seed`` has put there.

    On the way a suffix whose predecessor rises stands as its complement. So the first pass, which puts falling suffixes
    in their places, and the second, which puts rising ones, look at each symbol of the text once between them.

    ``leftmost`` takes the leftmost rising ones in their new order, unless it is empty.
    """
    count = len(codes)
    at = np.empty_like(sizes)
    place = 0
    for symbol in range(len(sizes)):
        at[symbol] = place
        place += sizes[symbol]
    suffix: Any = count - 1  # the first of the falling ones of its symbol
    symbol = codes[suffix] >> 1
    order[at[symbol]] = suffix ^ -np.int64(codes[max(suffix, 1) - 1] & 1)
    at[symbol] += 1
    known: Any = np.int64(0)  # what has been written last, and where
    to: Any = np.int64(-1)
    for n in range(count):
        prefetch(codes, max(1, order[min(n + _AHEAD, count - 1)]) - 1)
        here = known if n == to else np.int64(order[n])  # in a run of a symbol it is what comes next
        if here > 0:
            suffix = here - 1
            symbol = codes[suffix] >> 1
            known, to = suffix ^ -np.int64(codes[max(suffix, 1) - 1] & 1), np.int64(at[symbol])
            order[to] = known
            at[symbol] += 1
    place = 0
    for symbol in range(len(sizes)):
        place += sizes[symbol]
        at[symbol] = place
    bucket = len(sizes) - 1
    first = count - sizes[bucket]
    found = len(leftmost)
    to, lately = np.int64(-1), np.int64(-1)  # and of which symbol
    for n in range(count - 1, -1, -1):
        if n < first:
            bucket -= 1
            first -= sizes[bucket]
        prefetch(codes, max(1, ~order[max(n - _AHEAD, 0)]) - 1)
        here = known if n == to else np.int64(order[n])
        if here < 0:
            order[n] = ~here
            suffix = ~here - 1
            own = np.int64(codes[suffix] >> 1)
            to = (to if own == lately else np.int64(at[own])) - 1
            known, lately = suffix ^ -np.int64(codes[max(suffix, 1) - 1] & (suffix > 0)), own
            at[own] = to
            order[to] = known
        elif found and n >= at[bucket] and here:  # a rising suffix behind a falling one
            found -= 1
            leftmost[found] = here


@kernel
def _name(codes, starts, seeds, names):
    """Number what stands from each of ``starts`` to the next by rank, equal ones alike; returns how many differ.

    seeds: the same places in order of that. names: by half the place, since no two are neighbours.
    """
    for n in range(len(starts) - 1):
        names[starts[n] >> 1] = starts[n + 1] - starts[n]
    if len(starts):
        names[starts[len(starts) - 1] >> 1] = 0  # reaches the end of the text: equals none
    before, length_before, different = 0, -1, 0
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
        different += not equal
        names[place >> 1] = different - 1
        before, length_before = place, length
    return different
