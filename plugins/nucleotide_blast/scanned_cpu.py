"""Word hits as a scan of the targets finds them: what seeds are made of, and what the ungapped extension can do with.

A hit takes three numbers here and ten columns as a seed; and a scan comes by the hits of a diagonal in the order in
which they are extended, so that nothing needs to be sorted for one who keeps in mind how far each diagonal is done.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np
from seqloom.core.classes import NamedTuple
from seqloom.core.engine.threads import concatenated
from seqloom.core.kernels.jit import inline, kernel
from seqloom.plugins.nucleotide_blast.strands import MINUS, PLUS

PLACE, OPPOSITE, SHIFT = range(3)
"""Columns of a hit: place in the strands of the whole batch, place in the chunk, shift."""
BLOCK = 64
"""Places for which there is one note of the query that they begin in."""


class Places(NamedTuple):
    """Which query a place in the strands of a batch belongs to.

    Attributes:
        begins: i8[k + 1], where the strands of each query begin.
        blocks: i4, the query at the first of every ``BLOCK`` places.
    """

    begins: np.ndarray
    blocks: np.ndarray


def places_of(begins: np.ndarray) -> Places:
    """``Places`` of strands that begin at i8[k + 1] ``begins``."""
    blocks = np.searchsorted(begins, np.arange(0, begins[-1] + 1, BLOCK), "right") - 1
    return Places(begins, blocks.astype(np.int32))


@inline
def query_at(places, place):
    """The query that a place is in. places: ``Places``, or what has the same among other fields."""
    number = np.int64(places.blocks[place // BLOCK])
    while places.begins[number + 1] <= place:
        number += 1
    return number


@kernel
def _grouped(places, rows, counts, order):
    """Stable order of rows by query. counts: i8[queries + 1], zero."""
    for row in range(len(rows)):
        counts[query_at(places, rows[row, PLACE]) + 1] += 1
    for number in range(1, len(counts)):
        counts[number] += counts[number - 1]
    for row in range(len(rows)):
        number = query_at(places, rows[row, PLACE])
        order[counts[number]] = row
        counts[number] += 1


@kernel
def _split(places, rows, order, firsts, hits, groups, bounds):
    """Write ``Scanned``; returns the number of groups. firsts: i8[c + 1], rows of chunks."""
    count, known, last = 0, np.int64(-1), np.int64(0)
    for at in range(len(order)):
        row = order[at]
        number = query_at(places, rows[row, PLACE])
        if number != known or row >= last:
            chunk = np.searchsorted(firsts, row, "right") - 1
            known, last = number, firsts[chunk + 1]
            groups[count, 0], groups[count, 1], bounds[count] = number, chunk, at
            count += 1
        hits[at, PLACE], hits[at, OPPOSITE], hits[at, SHIFT] = rows[row, PLACE], rows[row, OPPOSITE], rows[row, SHIFT]
    bounds[count] = len(order)
    return count


@kernel
def _columns(scanned, begins, length, queries, query_number, target_number, query_pos, target_pos, frame, chunk_of,
             shift):
    """Columns of seeds of ``length`` bases. queries: their numbers."""
    for group in range(len(scanned.groups)):
        number, chunk = scanned.groups[group, 0], scanned.groups[group, 1]
        target, low = scanned.chunks[chunk, 0], scanned.chunks[chunk, 1]
        begin, size = begins[number], (begins[number + 1] - begins[number]) // 2
        for at in range(scanned.bounds[group], scanned.bounds[group + 1]):
            place = scanned.hits[at, PLACE] - begin
            minus = place > size
            query_number[at], target_number[at] = queries[number], target
            query_pos[at] = 2 * size + 1 - place - length if minus else place
            target_pos[at], chunk_of[at] = scanned.hits[at, OPPOSITE] + low, low
            frame[at], shift[at] = MINUS if minus else PLUS, scanned.hits[at, SHIFT]


class Scanned(NamedTuple):
    """i4[n, 3] hits by query and chunk, and their groups.

    bounds: i8[g + 1], the first hit of each group. groups: i8[g, 2], query and chunk of each. chunks: i8[c, 2], the
    number of the target of each and where it begins there.
    """

    hits: np.ndarray
    bounds: np.ndarray
    groups: np.ndarray
    chunks: np.ndarray


def joined(rows: list[np.ndarray], threads: int) -> np.ndarray:
    """Rows of hits, i4[n, 3], one behind the other; several threads copy them."""
    return rows[0] if len(rows) == 1 else concatenated([np.empty((0, 3), np.int32), *rows], threads)


def scanned(places: Places, found: list[list[np.ndarray]], chunks: np.ndarray, threads: int = 1) -> Scanned:
    """Hits of all chunks by query. found: rows, i4[n, 3], of each chunk, in the order of the scan."""
    hits = joined([rows for parts in found for rows in parts if len(rows)], threads)
    firsts = np.cumsum([0, *(sum(map(len, parts)) for parts in found)])
    if len(places.begins) == 2:
        there = np.flatnonzero(np.diff(firsts))
        return Scanned(hits, np.append(firsts[there], len(hits)),
                       np.stack([np.zeros(len(there), np.int64), there], axis=1), chunks)
    order = np.empty(len(hits), np.int64)
    _grouped(places, hits, np.zeros(len(places.begins), np.int64), order)
    by_query, groups = np.empty_like(hits), np.empty((len(hits), 2), np.int64)
    bounds = np.empty(len(hits) + 1, np.int64)
    count = _split(places, hits, order, firsts, by_query, groups, bounds)
    return Scanned(by_query, bounds[: count + 1].copy(), groups[:count].copy(), chunks)


class ScannedSeeds:
    """Makes the columns of seeds of hits, of ``length`` bases, in queries of these numbers.

    Attributes:
        kept: hits that an extension of single ones could save.
        follow: whether the hits of each diagonal come in the order of their places.
    """

    def __init__(self, kept: Scanned, begins: np.ndarray, length: int, queries: np.ndarray, follow: bool,
                 all_hits: Callable[[], Scanned] | None = None) -> None:
        """all_hits: finds those that weren't kept, too, in the order of their words."""
        self.kept, self.begins, self.length, self.queries, self.follow = kept, begins, length, queries, follow
        self._all_hits = all_hits

    @cached_property
    def found(self) -> Scanned:
        """All hits."""
        return self._all_hits() if self._all_hits else self.kept

    def __call__(self) -> dict[str, np.ndarray]:
        found, count = self.found, len(self.found.hits)
        query_number, query_pos, target_pos, chunk_of, shift = np.empty((5, count), np.int32)
        target_number, frame = np.empty(count, np.int64), np.empty(count, np.int8)
        _columns(found, self.begins, self.length, self.queries, query_number, target_number, query_pos, target_pos,
                 frame, chunk_of, shift)
        return {
            "query": query_number, "target": target_number, "query_pos": query_pos, "target_pos": target_pos,
            "length": np.full(count, self.length, np.int32), "query_frame": frame,
            "target_frame": np.full(count, PLUS, np.int8), "chunk": chunk_of, "shift": shift,
        }  # fmt: skip


def by_words(found: Scanned, strides: np.ndarray) -> Scanned:
    """Hits of each group by the places of their words in the target, then in the query. strides: i8[k], of queries."""
    group = np.repeat(np.arange(len(found.groups)), np.diff(found.bounds))
    stride = strides[found.groups[group, 0]]
    place, opposite, shift = found.hits.T.astype(np.int64)
    begin = opposite - shift
    word = -(-begin // stride) * stride  # a hit has one place that is a multiple of its stride
    return found._replace(hits=found.hits[np.lexsort((place - shift + word - begin, word, group))])
