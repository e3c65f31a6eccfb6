"""``minimizer-index`` on the CPU: window minima by doubling, chunk by chunk in the cache; buckets by counting sort."""

import numpy as np
from seqloom.core.engine.threads import by_threads
from seqloom.core.kernels.jit import inline, kernel

from .minimizer_index_reference import MinimizerIndex, place_type
from .minimizers import Words, table_bits

_CHUNK = 2048
_PART = 1 << 18
"""Words for the minimizers of which there is room at a time, since few words are."""
_U32, _U64 = np.uint32, np.uint64


# What goes over a chunk word by word is a function of its own each, so that it becomes vectors.


@kernel
def _pack(text, codes, bits, residues, first, size, words):
    """Words of ``residues`` residues that end at each of ``size`` places of the text from ``first`` on."""
    mask = _U32((_U64(1) << _U64(bits * residues)) - _U64(1))
    word = _U32(0)
    for i in range(_U64(size)):
        word = (_U32(word << _U32(bits)) | _U32(codes[text[_U64(first) + i]])) & mask
        words[i] = word


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
    for i in range(margin):
        target[i] = target[margin + size + i] = ~_U32(0)
    for i in range(size):
        target[margin + i] = ~source[i]


@kernel
def _pairwise_minimum(one, other, target, size):
    for i in range(size):
        target[i] = min(one[i], other[i])


@kernel
def _window_minimum(x, y, size, window):
    """Minima of ``window`` neighbours by doubling; returns the array that holds them and the other one."""
    width = 1
    while width < window:
        step = min(width, window - width)
        size -= step
        _pairwise_minimum(x, x[step:], y, size)
        x, y, width = y, x, width + step
    return x, y


@kernel
def _gather(hashes, greatest, first, begin, end, place, value, found):
    """Write place and hash of the words that equal the greatest of the minima of their windows, from ``found`` on."""
    for i in range(_U64(begin), _U64(end)):
        place[found] = _U64(first) + i
        value[found] = hashes[i]
        found += _U64(greatest[i] == _U32(~hashes[i]))
    return found


@inline
def bucket_of(value, bits):
    """Bucket of a hash in a table of ``2**bits``."""
    return _U64(_U32(value * _U32(0x9E3779B1)) >> _U32(32 - bits))


@kernel
def _minimizers(text, codes, bits, residues, window, begin, end, place, value):
    """Write places and hashes of the window minima of ``text`` among words begin … end − 1, ties all; their number."""
    span = _CHUNK + 3 * window + residues
    hashes, x, y = np.empty(span, _U32), np.empty(span, _U32), np.empty(span, _U32)
    words = len(text) - residues + 1
    found = _U64(0)
    for start in range(begin, end if words >= window else begin, _CHUNK):
        # Words first … last − 1 decide on start … stop − 1.
        first, stop = max(0, start - (window - 1)), min(start + _CHUNK, end)
        last = min(stop + window - 1, words)
        size = last - first
        _pack(text, codes, bits, residues, first, size + residues - 1, y)
        _scramble(y[residues - 1 :], hashes, x, size)
        x, y = _window_minimum(x, y, size, window)
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

    def part(n: int, first: int, last: int) -> tuple[list[np.ndarray], list[np.ndarray]]:
        size = min(_PART, last - first) + 1
        place, value = np.empty(size, place_type(text)), np.empty(size, np.uint32)
        places, values = [place[:0]], [value[:0]]
        for begin in range(first, last, _PART):
            count = _minimizers(text, codes, *words, begin, min(begin + _PART, last), place, value)
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
