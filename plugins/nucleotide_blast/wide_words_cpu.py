"""Scan of targets for narrow words of many queries by wider ones.

Narrow words of many queries are in a target at every place by chance. A hit that needs many more bases has some of them
on one side of the word at least; so the words with these bases ahead of them and behind them are in two tables, and a
place of a target is looked for in both.
"""

from __future__ import annotations

import numpy as np
from seqloom.core.kernels.jit import inline, kernel
from seqloom.core.kernels.simd import prefetch
from seqloom.plugins.nucleotide_blast.query_words_cpu import QueryWords, query_words_at, wider_by, words_at
from seqloom.plugins.nucleotide_blast.scan_cpu import AT_ONCE, QueryTable, may_grow, whole_word
from seqloom.plugins.nucleotide_blast.word_table_cpu import WordTable, bit_of, rank_of, word_table

PAIRS = 256
"""Equal words whose query bases are fetched before the first of them is looked at."""


@kernel
def _wide_words(query, widths, width, more, back, words, places):
    """Words of queries with ``more`` bases ahead of or behind them, where there are such, and places; how many."""
    count = 0
    for number in range(len(widths)):
        if widths[number] != width:
            continue
        for place in range(query.begins[number], query.begins[number + 1]):
            if query.indexed[place]:
                ahead, behind = query_words_at(query, place, width, more)
                word = behind if back else ahead
                if word >= 0:
                    words[count], places[count] = word, place
                    count += 1
    return count


def wide_tables(queries: QueryWords, query: QueryTable, size: int, threads: int = 1) -> tuple[WordTable, WordTable]:
    """Tables of words with more bases ahead of them and behind them, which grow to ``size``."""
    width, more, widths = queries.width, wider_by(queries.width, size), queries.words["width"]

    def table(back: bool) -> WordTable:
        words, places = np.empty((2, queries.total), np.int32)
        count = _wide_words(query, widths, width, more, back, words, places)
        return word_table(words[:count], places[:count], 4 ** (width + more), threads)

    return table(False), table(True)


@inline
def _there(table, word):
    """A word if it is in a table, else −1."""
    known = word >= 0 and bit_of(table.bits, np.uint64(max(word, 0))) != 0
    return word if known else np.int64(-1)


@inline
def _rank(table, word):
    """That of a word that is in a table, whose places are fetched; −1 of others."""
    if word < 0:
        return np.int64(-1)
    rank = np.int64(rank_of(table, np.uint64(word)))
    prefetch(table.starts, rank)
    return rank


@kernel
def _find_present(piece, begin, count, width, more, stride, ahead, back, present):
    """Note which of ``count`` words from number ``begin`` on are in a table, and their ranks; returns how many.

    Which are can't be foreseen: without a branch, and before anything else is fetched.
    """
    for at in range(count):
        one, other = words_at(piece, (begin + at) * stride, width, more)
        present[1, at], present[2, at] = one, other
        prefetch(ahead.bits, max(one, 0) >> 6)
        prefetch(back.bits, max(other, 0) >> 6)
    there = np.int64(0)
    for at in range(count):
        one, other = _there(ahead, present[1, at]), _there(back, present[2, at])
        present[0, there], present[1, there], present[2, there] = (begin + at) * stride, one, other
        there += np.int64(one >= 0) | np.int64(other >= 0)
    for at in range(there):
        present[1, at], present[2, at] = _rank(ahead, present[1, at]), _rank(back, present[2, at])
    for at in range(there):
        if present[1, at] >= 0:
            prefetch(ahead.entries, ahead.starts[present[1, at]])
        if present[2, at] >= 0:
            prefetch(back.entries, back.starts[present[2, at]])
    return there


@kernel
def _use_pairs(piece, size, width, query, pairs, number, found, count):
    """Write the hits among equal words at pairs of places; returns how many rows there are then."""
    for at in range(number):
        place, target = pairs[0, at], pairs[1, at]
        if may_grow(piece, query, place, target, width, size):
            whole, start, opposite, shift = whole_word(piece, query, place, target, width, size)
            if whole:
                found[count, 0], found[count, 1], found[count, 2] = start, opposite, shift
                count += 1
    return count


@kernel
def scan_wide(piece, size, width, more, stride, ahead, back, query, found, first, present, pairs):
    """As ``scan``, in the tables of ``wide_tables``.

    present, pairs: ``room_for_wide``.
    """
    count = looked_up = 0
    places = min(max(0, (piece.size - width) // stride + 1), piece.behind)
    for begin in range(first, places, AT_ONCE):
        before, known, own = count, looked_up, min(AT_ONCE, places - begin)
        waiting = 0
        for at in range(_find_present(piece, begin, own, width, more, stride, ahead, back, present)):
            # Places in both tables are one pair; they rise in each.
            target, rank, other = present[0, at], present[1, at], present[2, at]
            entry = last = entry_back = last_back = np.int64(0)
            if rank >= 0:
                entry, last = np.int64(ahead.starts[rank]), np.int64(ahead.starts[rank + 1])
            if other >= 0:
                entry_back, last_back = np.int64(back.starts[other]), np.int64(back.starts[other + 1])
            while entry < last or entry_back < last_back:
                if waiting == pairs.shape[1]:
                    if count + waiting > len(found):
                        return before, known, begin
                    count = _use_pairs(piece, size, width, query, pairs, waiting, found, count)
                    waiting = 0
                if entry_back == last_back or (entry < last and ahead.entries[entry] <= back.entries[entry_back]):
                    place = np.int64(ahead.entries[entry])
                    entry_back += entry_back < last_back and back.entries[entry_back] == place
                    entry += 1
                else:
                    place = np.int64(back.entries[entry_back])
                    entry_back += 1
                pairs[0, waiting], pairs[1, waiting] = place, target
                prefetch(query.eights, max(0, place - 8))
                waiting += 1
                looked_up += 1
        if count + waiting > len(found):
            return before, known, begin
        count = _use_pairs(piece, size, width, query, pairs, waiting, found, count)
    return count, looked_up, -1


def room_for_wide() -> tuple[np.ndarray, np.ndarray]:
    """What ``scan_wide`` works in."""
    return np.empty((3, AT_ONCE + 1), np.int64), np.empty((2, PAIRS), np.int64)
