"""Tables of words on the CPU.

A vector of presence bits says whether a word is in a table, and the number of bits set before it, kept for every 64, is
its rank; the places of the words lie one behind the other in order of rank. So a table has the size of the presence
vector and of the words that there are, whatever their width.
"""

from __future__ import annotations

import numpy as np
from seqloom.core.classes import NamedTuple
from seqloom.core.engine.threads import run_tasks
from seqloom.core.kernels.jit import inline, kernel
from seqloom.core.kernels.simd import prefetch

AT_ONCE = 256
"""Words of which everything is fetched before the first of them is put into a table."""
_WORTH_A_RANGE = 1 << 19
"""Words from which on another thread puts a range of them into the table."""


class WordTable(NamedTuple):
    """Words of some queries, or of targets, and where they are.

    Attributes:
        bits: u8, a bit for each word that there can be, set for those that are there.
        ranks: i4, how many bits are set before each of ``bits``. A word's rank is how many are set before its own.
        starts: i4[words that are there + 2], the first entry of the word of each rank; then how many entries there are,
            twice.
        entries: i4, places of words in the strands of the whole batch, or numbers of words, ascending in a word.
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


@inline
def _own_words(words, first, last, low, high, own):
    """Write the numbers of those of some words that are at least ``low`` and below ``high``; returns how many."""
    count = 0
    for number in range(first, last):
        own[count] = number
        count += (words[number] >= low) & (words[number] < high)
    return count


@kernel
def _mark(words, low, high, bits, own):
    """Set the presence bits of the words of a range; returns how many words there are, and how many different ones."""
    there, different = 0, 0
    for first in range(0, len(words), AT_ONCE):
        count = _own_words(words, first, min(first + AT_ONCE, len(words)), low, high, own)
        for at in range(count):
            word = words[own[at]]
            bits[word >> 6] |= np.uint64(1) << np.uint64(word & 63)
        there += count
    for block in range(low >> 6, high + 63 >> 6):
        different += _ones(bits[block])
    return there, different


@inline
def _note_ranks(table, words, own, count, ranks):
    """Write the ranks of some words, and fetch where their places begin: it is far from that of others."""
    for at in range(count):
        rank = rank_of(table, np.uint64(words[own[at]]))
        ranks[at] = rank
        prefetch(table.starts, rank + 1)


@kernel
def _fill(words, places, low, high, before, rank, table, own, ranks):
    """Put the places of the words of a range in these words' stretches.

    before, rank: how many words, and how many different ones, are below the range. Starts of the table are zero.
    own, ranks: i8[``AT_ONCE``].
    """
    starts, entries, first_rank = table.starts, table.entries, rank
    for block in range(low >> 6, high + 63 >> 6):
        table.ranks[block] = rank
        rank += _ones(table.bits[block])
    for first in range(0, len(words), AT_ONCE):
        count = _own_words(words, first, min(first + AT_ONCE, len(words)), low, high, own)
        _note_ranks(table, words, own, count, ranks)
        for at in range(count):
            starts[ranks[at] + 1] += 1
    for number in range(first_rank, rank):
        starts[number + 1], before = before, before + starts[number + 1]
    for first in range(0, len(words), AT_ONCE):
        count = _own_words(words, first, min(first + AT_ONCE, len(words)), low, high, own)
        _note_ranks(table, words, own, count, ranks)
        for at in range(count):
            rank = ranks[at] + 1
            ranks[at] = starts[rank]
            starts[rank] += 1
            prefetch(entries, ranks[at])
        for at in range(count):
            entries[ranks[at]] = places[own[at]]


def word_table(words: np.ndarray, places: np.ndarray, kinds: int, threads: int = 1) -> WordTable:
    """A table of i4 ``words`` (below ``kinds``) at i4 ``places``."""
    blocks, ranges = (kinds + 63) // 64, max(1, min(threads, len(words) // _WORTH_A_RANGE))
    bounds = (blocks * np.arange(ranges + 1) // ranges * 64).tolist()
    bits, own = np.zeros(blocks, np.uint64), np.empty((ranges, 2, AT_ONCE), np.int64)

    def mark(part: int) -> tuple[int, int]:
        counts: tuple[int, int] = _mark(words, *bounds[part : part + 2], bits, own[part, 0])
        return counts

    below = np.cumsum([(0, 0), *run_tasks(threads, mark, range(ranges))], axis=0)
    starts = np.zeros(below[-1, 1] + 2, np.int32)
    starts[-1] = len(words)
    table = WordTable(bits, np.empty(blocks, np.int32), starts, np.empty(len(words), np.int32))

    def fill(part: int) -> None:
        _fill(words, places, *bounds[part : part + 2], *below[part].tolist(), table, *own[part])

    run_tasks(threads, fill, range(ranges))
    return table
