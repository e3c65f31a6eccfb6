"""Tables of words on the CPU.

A vector of presence bits says whether a word is in a table, and the number of bits set before it, kept for every 64, is
its rank; the places of the words lie one behind the other in order of rank. So a table has the size of the presence
vector and of the words that there are, whatever their width.
"""

from __future__ import annotations

import numpy as np
from seqloom.core.classes import NamedTuple
from seqloom.core.kernels.jit import inline, kernel
from seqloom.core.kernels.simd import prefetch

AT_ONCE = 256
"""Words of which everything is fetched before the first of them is put into a table."""


class WordTable(NamedTuple):
    """Words of some queries: u8 presence bits, i4 bits set before each 64, i4[words + 1] starts in i4 entries.

    Entries are places in the strands of the whole batch, ascending in a word.
    """

    bits: np.ndarray
    ranks: np.ndarray
    starts: np.ndarray
    entries: np.ndarray


@inline
def _ones(bits):
    """How many bits of a u8 are set."""
    bits -= bits >> np.uint64(1) & np.uint64(0x5555555555555555)
    bits = (bits & np.uint64(0x3333333333333333)) + (bits >> np.uint64(2) & np.uint64(0x3333333333333333))
    bits = bits + (bits >> np.uint64(4)) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64(bits * np.uint64(0x0101010101010101) >> np.uint64(56))


@inline
def bit_of(bits, word):
    """1 if a table with these presence bits has a u8 word, else 0; both u8, since signed places may be from the end."""
    return bits[word >> np.uint64(6)] >> (word & np.uint64(63)) & np.uint64(1)


@inline
def rank_of(table, word):
    """How many words of a table come before a u8 word."""
    block = word >> np.uint64(6)
    before = table.bits[block] & ((np.uint64(1) << (word & np.uint64(63))) - np.uint64(1))
    return np.int64(table.ranks[block]) + _ones(before)


@kernel
def _count_words(words, bits, ranks):
    """Set the presence bits and the ranks; returns the number of different words."""
    for word in words:
        bits[word >> 6] |= np.uint64(1) << np.uint64(word & 63)
    total = 0
    for block in range(len(bits)):
        ranks[block] = total
        total += _ones(bits[block])
    return total


@inline
def _note_ranks(table, words, first, last, ranks):
    """Write the ranks of some words, and fetch where their places begin: it is far from that of others."""
    for number in range(first, last):
        rank = rank_of(table, np.uint64(words[number]))
        ranks[number - first] = rank
        prefetch(table.starts, rank + 1)


@kernel
def _fill(words, places, table, ranks):
    """Put places in their words' stretches. Starts are i4[words + 2], zero. ranks: i8[``AT_ONCE``]."""
    starts, entries = table.starts, table.entries
    for first in range(0, len(words), AT_ONCE):
        last = min(first + AT_ONCE, len(words))
        _note_ranks(table, words, first, last, ranks)
        for at in range(last - first):
            starts[ranks[at] + 2] += 1
    for rank in range(2, len(starts)):
        starts[rank] += starts[rank - 1]
    for first in range(0, len(words), AT_ONCE):
        last = min(first + AT_ONCE, len(words))
        _note_ranks(table, words, first, last, ranks)
        for at in range(last - first):
            rank = ranks[at] + 1
            ranks[at] = starts[rank]
            starts[rank] += 1
            prefetch(entries, ranks[at])
        for at in range(last - first):
            entries[ranks[at]] = places[first + at]


def word_table(words: np.ndarray, places: np.ndarray, kinds: int) -> WordTable:
    """A table of i4 ``words`` (below ``kinds``) at i4 ``places``."""
    bits, ranks = np.zeros((kinds + 63) // 64, np.uint64), np.empty((kinds + 63) // 64, np.int32)
    starts = np.zeros(_count_words(words, bits, ranks) + 2, np.int32)
    entries = np.empty(len(words), np.int32)
    table = WordTable(bits, ranks, starts, entries)
    _fill(words, places, table, np.empty(AT_ONCE, np.int64))
    return table
