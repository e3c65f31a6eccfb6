"""Hits of words in the order of the targets, where they come in that of the queries.

Millions of hits are put into buckets of neighbouring words first, and by word there, so that what belongs together
stays in the caches.
"""

from __future__ import annotations

import numpy as np
from seqloom.core.engine.threads import run_tasks
from seqloom.core.kernels.jit import kernel
from seqloom.plugins.common.grouping import even_parts

_FEW, _BUCKET_BITS = 4, 8
"""Words of targets for each hit from which on hits are sorted by comparing them; bits of the number of a bucket."""


@kernel
def _count_in_buckets(rows, shift, counts):
    """Add to the counts of buckets, of 2^``shift`` words each, those of rows with their words."""
    for row in range(len(rows)):
        counts[rows[row, 3] >> shift] += 1


@kernel
def _put_in_buckets(rows, shift, places, bucketed):
    """Write rows to the places of their buckets, which go on."""
    for row in range(len(rows)):
        bucket = rows[row, 3] >> shift
        place = places[bucket]
        places[bucket] = place + 1
        for column in range(4):
            bucketed[place, column] = rows[row, column]


@kernel
def _put_by_word(rows, word, begin, ends, ordered):
    """Write three columns of a bucket's rows in the order of their words, which are numbered from ``word`` on, from
    ``begin`` on; ``ends`` is 0 of each word, then the place behind its rows."""
    for row in range(len(rows)):
        ends[rows[row, 3] - word] += 1
    place = begin
    for n in range(len(ends)):
        ends[n], place = place, place + ends[n]
    for row in range(len(rows)):
        place = ends[rows[row, 3] - word]
        ends[rows[row, 3] - word] = place + 1
        for column in range(3):
            ordered[place, column] = rows[row, column]


def by_word(threads: int, parts: list[np.ndarray], firsts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows of hits, i4[n, 3], in the order of the words of chunks and as they come, and i8[c + 1], where each chunk's
    begin.

    Args:
        parts: i4[k, 4], with the number of the word in the fourth column.
        firsts: i8[c + 1], numbers of the first word of each chunk, and how many words there are.
    """
    count, words = sum(map(len, parts)), int(firsts[-1])
    if _FEW * count < words:
        found = np.concatenate([np.empty((0, 4), np.int32), *parts])
        found = found[np.argsort(found[:, 3], kind="stable")]
        return np.ascontiguousarray(found[:, :3]), np.searchsorted(found[:, 3], firsts)
    shift = max(0, int(words - 1).bit_length() - _BUCKET_BITS)
    of_threads = [parts[first:last] for first, last in even_parts(len(parts), threads, threads)]
    places = np.zeros((len(of_threads), ((words - 1) >> shift) + 1), np.int64)
    bucketed, ordered = np.empty((count, 4), np.int32), np.empty((count, 3), np.int32)
    ends = np.zeros(words, np.int64)

    def counted(number: int) -> None:
        for rows in of_threads[number]:
            _count_in_buckets(rows, shift, places[number])

    def put(number: int) -> None:
        for rows in of_threads[number]:
            _put_in_buckets(rows, shift, places[number], bucketed)

    def put_by_word(buckets: tuple[int, int]) -> None:
        for bucket in range(*buckets):
            begin, end = begins[bucket : bucket + 2].tolist()
            first = bucket << shift
            _put_by_word(bucketed[begin:end], first, begin, ends[first : first + (1 << shift)], ordered)

    run_tasks(threads, counted, range(len(of_threads)))
    begins = np.concatenate([[0], np.cumsum(places.sum(axis=0))])
    places[:] = begins[:-1] + np.cumsum(places, axis=0) - places
    run_tasks(threads, put, range(len(of_threads)))
    run_tasks(threads, put_by_word, even_parts(len(begins) - 1, threads))
    return ordered, np.concatenate([[0], ends])[firsts]
