"""``nucleotide-ungapped`` on CUDA devices: hits that are there are sorted by diagonal, and a thread walks along each.

What the device doesn't do is done by the CPU: hits that may count as two, since they go on for another table word, and
pairs of hits on neighbouring diagonals.
"""

from __future__ import annotations

from itertools import groupby
from typing import Any

import numpy as np
from numba import cuda as _cuda
from seqloom.core.backends import on_device, with_capacity
from seqloom.core.context import Context
from seqloom.core.kernels.packed16 import SIMULATED
from seqloom.core.records import Seeds
from seqloom.plugins.common import radix_cuda
from seqloom.plugins.common.workspace_cuda import rounded
from seqloom.plugins.nucleotide_blast.extend_cuda import SEGMENT, extend_kernel, tabulate_kernel
from seqloom.plugins.nucleotide_blast.hits_cuda import DeviceHits, Kept, SeedsOnDevices
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
"""That there is room for at least."""


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
        for device, own in groupby(found.parts, lambda part: part[1].device):
            of_device = list(own)
            with on_device(device), DeviceHits.turn([hits for _, hits in of_device]):
                kept = Kept()
                for first, hits in of_device:
                    parts.append(segments_of(context, hits, found.length, found.chunks, first, kept)
                                 if hits.extended is None else hits.extended)
                    context.advance(hits.count, len(records))
        if len(parts) == 1:
            return parts[0]
        table = np.concatenate([np.empty((0, len(COLUMNS)), np.int32), *parts])
        # Pieces of parts rise, and each part is in order.
        return table[np.argsort(context.queries.locate(table[:, 0]), kind="stable")]


def segments_of(context: Context, hits: DeviceHits, length: int, chunks: np.ndarray, first: int, kept: Kept
                ) -> np.ndarray:
    """Rows of ``COLUMNS``, column by column, by query, piece, diagonal and place.

    Args:
        hits: of the current device.
        length: bases of a hit.
        chunks, first: i8[p, 2], target and begin of each piece; the number of the first one of the hits.
        kept: of the device of the hits.
    """
    if not hits.count:
        return np.empty((0, len(COLUMNS)), np.int32)
    scoring, queries = context.scoring, context.queries
    with hits.there(kept):
        (keys, rows), strands = hits.sorted_keys(), hits.strands
        scores, matrix, limits, *about = kept.of("scores", lambda _: [cuda.to_device(array) for array in (
            np.array(group_scores(scoring.reward, scoring.penalty), np.int32),
            np.ascontiguousarray(scoring.matrix, np.int32).ravel(), strand_limits(context).astype(np.int64).ravel(),
            queries.lengths.astype(np.int64), queries.ordinals.astype(np.int64), chunks)])

        def launch(room: int) -> tuple[int, np.ndarray]:
            segments = kept.of("segments", lambda size: cuda.device_array(size, np.int32), room * SEGMENT)
            order, counts = kept.of("order", radix_cuda.DeviceWords, room), cuda.to_device(np.zeros(1, np.int64))
            extend_kernel()[-(-hits.count // THREADS), THREADS](
                keys, rows, np.int64(hits.count), hits.places, hits.shifts, np.int64(hits.layout.bits), hits.packed,
                hits.lows, hits.lengths, hits.diagonals, strands.codes, strands.groups, strands.begins,
                strands.blocks, np.int64(BLOCK), scores, matrix, np.int64(scoring.matrix.shape[1]), limits,
                np.int64(context.options.window_size), np.int64(length), np.int64(SHORTEST_APPROXIMATE_WORD),
                segments, order.words, np.int64(room), counts)
            count = int(counts.copy_to_host()[0])
            if not 0 < count <= room:
                return count, np.empty((0, len(COLUMNS)), np.int32)
            size = len(COLUMNS) * count
            there = kept.of("columns", lambda size: cuda.device_array(size, np.int32), rounded(size))
            radix_cuda.number_rows[radix_cuda.grid(count)](0, count, 0, order.rows)
            order.sort(count, 32 + len(queries).bit_length())
            tabulate_kernel()[-(-count // THREADS), THREADS](
                segments, order.rows, np.int64(count), *about, np.int64(first), np.int64(PLUS), np.int64(MINUS),
                there)
            return count, there[:size].copy_to_host().reshape(len(COLUMNS), count).T

        result: np.ndarray = with_capacity(launch, rounded(SEGMENTS + hits.expected_segments))
        return result
