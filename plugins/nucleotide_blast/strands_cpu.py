"""Strands of queries on the CPU: laid out, and looked through, eight bases at a time."""

from __future__ import annotations

import numpy as np
from seqloom.core.kernels.jit import inline, kernel
from seqloom.core.kernels.simd import lowest_bit
from seqloom.plugins.nucleotide_blast.packed_cpu import reversed_bytes

EACH = np.uint64(0x0101010101010101)
"""Once a number up to 255 in each byte."""
NO_BASE = np.uint64(0xFC) * EACH
"""Bits of codes that have none of them where they are bases."""


@inline
def next_unlike(codes, place, end, like, bits):
    """The first place from one on whose code differs from ``like`` in ``bits``; ``end`` where there is none before it.

    codes: ``sequence``. like, bits: u8, the same in each byte.
    """
    whole = min(end, len(codes.words))
    while place < whole:
        differing = (codes.words[place] ^ like) & bits
        if differing:
            return min(place + np.int64(lowest_bit(differing) >> np.uint64(3)), end)
        place += 8
    while place < end and not (np.uint64(codes.bases[place]) ^ like) & bits & np.uint64(0xFF):
        place += 1
    return min(place, end)


@kernel
def lay_out(codes, low, size, complement, at, strands, words):
    """Write a query of ``size`` codes and its reverse complement from ``at`` on, with a place between them.

    Args:
        codes: ``sequence`` of all queries; this one is there from ``low`` on.
        complement: of each code; that of a base is what is left of 3.
        strands, words: u1, and ``sequence(strands).words``.
    """
    forwards, own = codes.bases[low : low + size], strands[at : at + size]
    for k in range(size):
        own[k] = forwards[k]
    to, end, k = at + size + 1, low + size, 0
    while k < size:
        if k + 8 <= size and not codes.words[end - k - 8] & NO_BASE:
            words[to + k] = reversed_bytes(codes.words[end - k - 8] ^ np.uint64(3) * EACH)
            k += 8
            continue
        for place in range(k, min(k + 8, size)):
            strands[to + place] = complement[codes.bases[end - place - 1]]
        k += 8


@kernel
def complete(codes, begins, shut, indexed, length, groups, begin_words, opens):
    """What is told of every place of the strands of a batch, from the last one to the first.

    Args:
        codes, begins: of ``laid_out_strands``.
        shut, indexed: bool, of a word index, which has no place behind the strands of a query.
        groups: u1, ``ungapped_reference.packed`` of the codes.
        begin_words: bool, ``indexed``, and False behind the strands of a query.
        opens: bool, where ``length`` bases begin that aren't shut.
    """
    second = third = fourth = np.uint32(0)
    for query in range(len(begins) - 2, -1, -1):
        first, last, run = begins[query], begins[query + 1] - 1, 0
        begin_words[last] = opens[last] = False
        for place in range(last, first - 1, -1):
            code = np.uint32(codes[place])
            groups[place] = (code << np.uint32(6) | second << np.uint32(4) | third << np.uint32(2) | fourth
                             ) & np.uint32(0xFF)
            second, third, fourth = code, second, third
            if place < last:
                run = 0 if shut[place - query] else run + 1
                begin_words[place], opens[place] = indexed[place - query], run >= length
