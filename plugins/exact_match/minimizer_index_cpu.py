"""``minimizer-index`` on the CPU: window minima by doubling, chunk by chunk in the cache; buckets by counting sort."""

import numpy as np
from seqloom.core.engine.threads import by_threads
from seqloom.core.kernels.jit import inline, kernel
from seqloom.core.kernels.simd import (
    BYTE_LANES,
    LOOKUP_ENTRIES,
    greater_lanes,
    load,
    lookup,
    lookup_tables,
    lowest_bit,
    minimum,
    splat,
    store,
)

from .minimizer_index_reference import MinimizerIndex, place_type
from .minimizers import Words, table_bits
from .symbols import NEVER

_CHUNK = 2048
_PART = 1 << 18
"""Words for the minimizers of which there is room at a time, since few words are."""
_LANES = 16
"""Hashes that are looked at together. Arrays of a chunk have room for as many behind what counts."""
_U8, _U32, _U64 = np.uint8, np.uint32, np.uint64
_ALL = _U32(0xFFFFFFFF)


@kernel
def _code(text, codes, tables, first, size, coded):
    """Codes of ``size`` symbols of the text from ``first`` on; those of the table for all from its last one on."""
    done = 0
    while done < size and first + done + BYTE_LANES <= len(text):
        symbols = minimum(load(text, first + done, BYTE_LANES), splat(_U8(LOOKUP_ENTRIES - 1), BYTE_LANES))
        store(coded, done, lookup(tables, 0, symbols))
        done += BYTE_LANES
    for i in range(_U64(done), _U64(size)):
        coded[i] = codes[min(text[_U64(first) + i], _U8(LOOKUP_ENTRIES - 1))]


@kernel
def _pack(coded, bits, residues, size, x, y):
    """Words of ``residues`` codes from each of ``size`` places on, by doubling; gives the array that has them, and the
    other one. ``coded`` and the arrays hold residues − 1 more."""
    left = _U64(residues - 1)
    for i in range(_U64(size) + left):
        x[i] = coded[i]
    width = _U64(1)
    while width < _U64(residues):
        step = min(width, _U64(residues) - width)
        left -= step
        shift = _U32(_U64(bits) * step)
        for i in range(_U64(size) + left):
            y[i] = (x[i] << shift) | x[i + step]
        x, y, width = y, x, width + step
    return x, y


@kernel
def _scramble(words, hashes, again, size):
    """Hashes of words, written twice."""
    for i in range(size):
        word = words[i]
        word = _U32((word ^ (word >> _U32(15))) * _U32(0x2C1B3C6D))
        hashes[i] = again[i] = word ^ (word >> _U32(13))


@kernel
def _invert(source, target, size, margin):
    """The greatest becomes the least; what is outside, on either side, is greater than all."""
    margin, behind = _U64(margin), _U64(margin + size)
    for i in range(_U64(size)):
        target[margin + i] = ~source[i]
    for i in range(margin):
        target[i] = target[behind + i] = _ALL


@kernel
def _window_minimum(x, y, size, window):
    """Minima of ``window`` neighbours by doubling, twice at a time; returns the array that has them and the other one.

    ``size`` values are given; ``_LANES`` more are written over at the end.
    """
    width = 1
    while width < window:
        steps = min(3, -(-(window - width) // width))
        one, two, three = width, min(2 * width, window - width), min(3 * width, window - width)
        size -= three if steps == 3 else two if steps == 2 else min(one, window - width)
        if steps == 1:
            one = window - width
            for i in range(0, size, _LANES):
                store(y, i, minimum(load(x, i, _LANES), load(x, i + one, _LANES)))
        else:
            for i in range(0, size, _LANES):
                low = minimum(load(x, i, _LANES), load(x, i + one, _LANES))
                high = minimum(load(x, i + two, _LANES), load(x, i + three, _LANES))
                store(y, i, minimum(low, high))
        width += one if steps == 1 else two if steps == 2 else three
        x, y = y, x
    return x, y


@kernel
def _leave_out(text, first, span, least, size):
    """Minima of the windows of ``span`` symbols, from ``first`` on, that hold ``NEVER`` become the least there is."""
    end, done = first + size + span - 1, 0
    for place in range(first, end, _LANES):
        if place + _LANES <= len(text):
            there = greater_lanes(load(text, place, _LANES), splat(_U8(NEVER - 1), _LANES))
        else:
            there = _U64(0)
            for n in range(len(text) - place):
                there |= _U64(text[place + n] == NEVER) << _U64(n)
        while there:
            at = place + np.int64(lowest_bit(there)) - first
            there &= there - _U64(1)
            last = min(at + 1, size)
            for i in range(_U64(max(done, at - span + 1)), _U64(max(0, last))):
                least[i] = _U32(0)
            done = last


@kernel
def _gather(hashes, greatest, first, begin, end, place, value, found):
    """Write place and hash of the words that equal the greatest of the minima of their windows, from ``found`` on."""
    for start in range(begin, end, _LANES):
        other = greater_lanes(splat(_ALL, _LANES), load(hashes, start, _LANES) ^ load(greatest, start, _LANES))
        same = ~other & ((_U64(1) << _U64(min(_LANES, end - start))) - _U64(1))
        while same:
            i = _U64(start) + lowest_bit(same)
            same &= same - _U64(1)
            place[found] = _U64(first) + i
            value[found] = hashes[i]
            found += _U64(1)
    return found


@inline
def bucket_of(value, bits):
    """Bucket of a hash in a table of ``2**bits``."""
    return _U64(_U32(value * _U32(0x9E3779B1)) >> _U32(32 - bits))


@kernel
def _minimizers(text, codes, tables, bits, residues, window, begin, end, place, value):
    """Write places and hashes of the window minima of ``text`` among words begin … end − 1, ties all; their number.

    Windows that hold ``NEVER`` don't count. codes, tables: u1, the code of each symbol, plainly and of
    ``lookup_tables``.
    """
    span = _CHUNK + 3 * window + residues + 2 * BYTE_LANES
    hashes, x, y, coded = np.empty(span, _U32), np.empty(span, _U32), np.empty(span, _U32), np.empty(span, _U8)
    words = len(text) - residues + 1
    found = _U64(0)
    for start in range(begin, end if words >= window else begin, _CHUNK):
        # Words first … last − 1 decide on start … stop − 1.
        first, stop = max(0, start - (window - 1)), min(start + _CHUNK, end)
        last = min(stop + window - 1, words)
        size = last - first
        _code(text, codes, tables, first, size + residues - 1, coded)
        x, y = _pack(coded, bits, residues, size, x, y)
        _scramble(x, hashes, y, size)
        x, y = _window_minimum(y, x, size, window)
        _leave_out(text, first, window + residues - 1, x, size - window + 1)
        _invert(x, y, size - window + 1, window - 1)
        x, y = _window_minimum(y, x, size + window - 1, window)
        found = _gather(hashes, x, first, start - first, stop - first, place, value, found)
    return found


@kernel
def _group(place, value, bits, fine, head, grouped, sieve):
    """Counting sort of the places by bucket, and the sieve."""
    for v in value:
        head[bucket_of(v, bits)] += _U64(1)
        b = bucket_of(v, fine)
        sieve[b >> _U64(3)] |= np.uint8(1 << (b & _U64(7)))
    for b in range(1, len(head)):
        head[b] += head[b - 1]
    for i in range(len(place) - 1, -1, -1):
        b = bucket_of(value[i], bits)
        head[b] -= _U64(1)
        grouped[head[b]] = place[i]


def minimizers(text: np.ndarray, codes: np.ndarray, words: Words, threads: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Places and u4 hashes, as the function of this name of the reference gives them."""
    tables = lookup_tables(codes[None, :LOOKUP_ENTRIES])  # symbols are fewer, but for ``NEVER``, whose code is the last

    def part(n: int, first: int, last: int) -> tuple[list[np.ndarray], list[np.ndarray]]:
        size = min(_PART, last - first) + 1
        place, value = np.empty(size, place_type(text)), np.empty(size, np.uint32)
        places, values = [place[:0]], [value[:0]]
        for begin in range(first, last, _PART):
            count = _minimizers(text, codes, tables, *words, begin, min(begin + _PART, last), place, value)
            places.append(place[:count].copy())
            values.append(value[:count].copy())
        return places, values

    found = by_threads(threads, 0, max(0, len(text) - words.residues + 1), part)
    places, values = (np.concatenate([array for pair in found for array in pair[n]]) for n in range(2))
    return places, values


class MinimizerIndexCpu(MinimizerIndex):
    __doc__ = MinimizerIndex.__doc__
    backend = "cpu"

    def table(self, text: np.ndarray, codes: np.ndarray, words: Words,
              threads: int = 1) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        places, hashes = minimizers(text, codes, words, threads)
        bits, fine = table_bits(len(places))
        head, grouped = np.zeros((1 << bits) + 1, place_type(text)), np.empty_like(places)
        sieve = np.zeros(1 << (fine - 3), np.uint8)
        _group(places, hashes, bits, fine, head, grouped, sieve)
        return head, grouped, sieve
