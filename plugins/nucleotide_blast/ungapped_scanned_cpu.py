"""Ungapped extension of word hits as a scan finds them, which keeps in mind how far each diagonal is done."""

from __future__ import annotations

import numpy as np
from seqloom.core.kernels.jit import inline, kernel
from seqloom.core.kernels.simd import prefetch
from seqloom.plugins.nucleotide_blast.scanned_cpu import OPPOSITE, PLACE, SHIFT
from seqloom.plugins.nucleotide_blast.ungapped_reference import SHORTEST_APPROXIMATE_WORD
from seqloom.plugins.nucleotide_blast.ungapped_segment_cpu import (
    COLUMNS,
    CUTOFF,
    REDUCED,
    X_DROP,
    group_place,
    groups_of,
    most_of_approximate,
    segment,
    write_segment,
)

DIAGONAL_OF, PLACE_OF = len(COLUMNS), len(COLUMNS) + 1
"""Columns of a table behind those of segments: of the word hit."""
DIAGONALS_PER_CELL = 8
"""Diagonals are hashed where that takes so many times fewer cells than one for each."""
AT_ONCE = 32
"""Hits of which everything is fetched before the first of them is extended."""
_SPREADING, _NONE = 0x9E3779B1, np.iinfo(np.int32).min


@inline
def _cell_of(keys, mask, diagonal, shift):
    """Where a diagonal is kept: if there are no keys by its last bits without ``shift`` that all have in common, else
    where its key stands, or none yet."""
    if keys is None:
        return diagonal >> shift & mask
    cell = (diagonal * _SPREADING) >> 16 & mask
    while keys[cell] != diagonal and keys[cell] != _NONE:
        cell = (cell + 1) & mask
    keys[cell] = diagonal
    return cell


@inline
def _own_hits(hits, first, last, before, groups, codes, share, mask, explored, keys, own):
    """Write which of some hits are on this task's diagonals, and fetch what is needed of them; returns how many."""
    count, others = 0, (np.int64(1) << share[1]) - 1
    for at in range(first, last):
        q = np.int64(hits[at, PLACE]) - before
        diagonal = np.int64(hits[at, OPPOSITE]) - q
        own[count] = at
        if diagonal & others == share[0]:
            count += 1
            prefetch(groups, group_place(codes, q) >> 3)  # which counts elements of eight bytes side by side
            if keys is None:
                prefetch(explored, diagonal >> share[1] & mask)
    return count


@kernel
def _extend_in_turn(rules, query, groups, bits, words, low, width, hits, before, limits, window, length, numbers,
                    share, mask, explored, keys, own, table, count):
    """``ungapped_cpu._extend_group`` of hits as a scan finds them; returns the number of rows.

    before: what places count from. share: see ``extend_scanned``, as ``mask``, ``explored``, ``keys``, which may be
    None, and ``own``.
    """
    size = (len(query) - 2) // 2
    for first in range(0, len(hits), AT_ONCE):
        last = min(first + AT_ONCE, len(hits))
        there = _own_hits(hits, first, last, before, groups, len(query) - 1, share, mask, explored, keys, own)
        for number in range(there):
            at = own[number]
            q, t = np.int64(hits[at, PLACE]) - before, np.int64(hits[at, OPPOSITE])
            cell = _cell_of(keys, mask, t - q, share[1])
            known = np.int64(explored[cell])
            start, end, minus = t - hits[at, SHIFT], t + length, q > size
            if start < known >> 1:
                continue
            if window and (known & 1 or start + length > (known >> 1) + window):
                explored[cell] = 2 * end
                continue
            limit = limits[np.int64(minus)]
            if length >= SHORTEST_APPROXIMATE_WORD:
                most = most_of_approximate(rules[1], groups, len(query) - 1, words, low, width, q, t, limit[X_DROP])
                if 0 <= most < min(limit[REDUCED], limit[CUTOFF]):
                    explored[cell] = 2 * end
                    continue
            found = segment(rules, query, groups, bits, low, width, q, t, length, end, limit)
            if found[3] < limit[CUTOFF]:
                explored[cell] = 2 * end
                continue
            explored[cell] = 2 * (found[1] + found[2]) + 1
            write_segment(table[count], size, numbers, minus, found, q, t)
            table[count, DIAGONAL_OF], table[count, PLACE_OF] = t - q, t
            count += 1
    return count


@kernel
def extend_scanned(rules, strands, groups, begins, bits, words, spans, hits, bounds, places, numbers, limits, window,
                    length, share, sizes, explored, keys, own, table):
    """``_extend_in_turn`` of every query and chunk; returns the number of segments.

    Rows of ``table`` have the diagonal and the place of the hit behind their columns.

    Args:
        groups: ``group_bytes``. words: ``eights`` of the bits.
        share: of all diagonals, as two numbers: the last bits of those that are looked at, and how many bits these are.
        sizes: i8[g, 2], how many cells each query and chunk takes of ``explored``, and of ``keys``: as many or none.
        explored: i4, of diagonals: twice how far the last hit there was explored, and 1 if it was saved. Without keys
            there are more cells than twice the bases of the query and ``window``: what hits of another diagonal with
            the same last bits left behind lies before any place of this one.
        keys: i4, diagonals. own: i8[``AT_ONCE``].
    """
    count = 0
    for group in range(len(places)):
        place, low = places[group], spans[group, 0]
        query, some = strands[begins[place] : begins[place + 1]], slice(bounds[group], bounds[group + 1])
        of_query = groups_of(groups, begins, place)
        width, before, cells = spans[group, 1] - low, begins[place] - place, sizes[group, 0]
        if sizes[group, 1]:
            explored[:cells] = -2 * window
            keys[:cells] = _NONE
            count = _extend_in_turn(rules, query, of_query, bits, words, low, width, hits[some], before,
                                    limits[place], window, length, numbers[group], share, cells - 1, explored, keys,
                                    own, table, count)
        else:
            cells >>= share[1]
            explored[:cells] = -2 * window
            count = _extend_in_turn(rules, query, of_query, bits, words, low, width, hits[some], before,
                                    limits[place], window, length, numbers[group], share, cells - 1, explored, None,
                                    own, table, count)
    return count


def cells_of_diagonals(diagonals: np.ndarray, hits: np.ndarray) -> np.ndarray:
    """``sizes`` of ``extend_scanned``: a cell for every diagonal, or where hits are few, twice as many as these.

    Args:
        diagonals, hits: i8[g], how many cells diagonals need at least, and hits, of each query and chunk.
    """
    by_diagonal, by_hit = (1 << np.frexp(counts)[1].astype(np.int64) for counts in (diagonals, 2 * hits))
    hashed = by_hit < by_diagonal // DIAGONALS_PER_CELL
    return np.stack([np.where(hashed, by_hit, by_diagonal), np.where(hashed, by_hit, 0)], axis=1)
