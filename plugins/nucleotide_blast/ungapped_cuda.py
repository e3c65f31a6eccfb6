"""``nucleotide-ungapped`` on CUDA devices: hits that are there are sorted by diagonal, and a thread walks along each.

What the device doesn't do is done by the CPU: hits that may count as two, since they go on for another table word, and
pairs of hits on neighbouring diagonals.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import cuda as _cuda
from seqloom.core.backends import on_device, with_capacity
from seqloom.core.context import Context
from seqloom.core.cuda.jit import launching
from seqloom.core.kernels.packed16 import SIMULATED
from seqloom.core.records import Seeds
from seqloom.plugins.common.workspace_cuda import rounded
from seqloom.plugins.nucleotide_blast.hits_cuda import DeviceHits, SeedsOnDevices
from seqloom.plugins.nucleotide_blast.scan_cuda import SEGMENT, extend_kernel
from seqloom.plugins.nucleotide_blast.scanned_cpu import BLOCK
from seqloom.plugins.nucleotide_blast.sort_cpu import SortedSeeds
from seqloom.plugins.nucleotide_blast.strands import MINUS, PLUS
from seqloom.plugins.nucleotide_blast.ungapped_cpu import (
    UngappedExtensionCpu,
    strand_limits,
    table_words,
)
from seqloom.plugins.nucleotide_blast.ungapped_reference import (
    SHORTEST_APPROXIMATE_WORD,
    group_scores,
    pair_reach,
)
from seqloom.plugins.nucleotide_blast.ungapped_segment_cpu import COLUMNS

cuda: Any = _cuda  # numba's types don't know what code on the device may do
THREADS = 1 if SIMULATED else 128
SEGMENTS = 1 << 12
"""That there is room for at least; usually for as many more as a sixteenth of the hits."""


class UngappedExtensionCuda(UngappedExtensionCpu):
    __doc__ = UngappedExtensionCpu.__doc__
    backend = "cuda"
    records_on = "host"

    def _of_scanned(self, context: Context, records: Seeds) -> np.ndarray | None:
        make, window = records.unmade, context.options.window_size
        if not isinstance(make, SortedSeeds) or not isinstance(make.unsorted, SeedsOnDevices):
            return super()._of_scanned(context, records)
        found = make.unsorted
        if window and (table_words(context)[2].any()
                       or pair_reach(window, context.options.off_diagonal_range, found.length)):
            return super()._of_scanned(context, records)
        parts = []
        for first, hits in found.parts:
            segments = _segments(context, hits, found.length)
            segments[:, 1] += first
            parts.append(segments)
            context.advance(hits.count, len(records))
        return _table(context, np.concatenate([np.empty((0, SEGMENT), np.int64), *parts]), found.chunks)


def _segments(context: Context, hits: DeviceHits, length: int) -> np.ndarray:
    """i8[n, SEGMENT] of hits of so many bases, in no order."""
    if not hits.count:
        return np.empty((0, SEGMENT), np.int64)
    scoring, strands = context.scoring, hits.strands
    with on_device(hits.device):
        keys, rows = hits.sorted_keys()
        scores, matrix, limits = map(cuda.to_device, (
            np.array(group_scores(scoring.reward, scoring.penalty), np.int32),
            np.ascontiguousarray(scoring.matrix, np.int32).ravel(), strand_limits(context).astype(np.int64).ravel()))

        def launch(room: int) -> tuple[int, np.ndarray]:
            segments, counts = cuda.device_array(room * SEGMENT, np.int32), cuda.to_device(np.zeros(1, np.int64))
            with launching:
                extend_kernel()[-(-hits.count // THREADS), THREADS](
                    keys, rows, np.int64(hits.count), hits.places, hits.shifts, np.int64(hits.layout.bits), hits.packed,
                    hits.lows, hits.lengths, hits.diagonals, strands.codes, strands.groups, strands.begins,
                    strands.blocks, np.int64(BLOCK), scores, matrix, np.int64(scoring.matrix.shape[1]), limits,
                    np.int64(context.options.window_size), np.int64(length), np.int64(SHORTEST_APPROXIMATE_WORD),
                    segments, np.int64(room), counts)
            count = int(counts.copy_to_host()[0])
            kept = min(count, room)
            here = segments[: kept * SEGMENT].copy_to_host() if kept else np.empty(0, np.int32)
            return count, here.reshape(-1, SEGMENT).astype(np.int64)

        result: np.ndarray = with_capacity(launch, rounded(SEGMENTS + hits.count // 16))
        return result


def _table(context: Context, segments: np.ndarray, chunks: np.ndarray) -> np.ndarray:
    """Rows of ``COLUMNS``, by query, piece, diagonal and place. chunks: i8[p, 2], target and begin of each piece."""
    query, piece, begun, opposite, length, score, word, word_target = segments.T
    order = np.lexsort((word_target, word_target - word, piece, query))
    query, piece, begun, opposite, length, score, word, word_target = segments[order].T
    size, chunk = context.queries.lengths[query], chunks[piece, 1]
    minus = word > size
    offset = np.where(minus, size + 1, 0)
    start, word = begun - offset, word - offset
    columns = (context.queries.ordinals[query], chunks[piece, 0], chunk, np.where(minus, MINUS, PLUS),
               np.where(minus, size - start - length, start), opposite + chunk, length, score,
               np.where(minus, size - word, word), word_target + chunk)
    assert len(columns) == len(COLUMNS)
    return np.stack(columns, axis=1).astype(np.int32)
