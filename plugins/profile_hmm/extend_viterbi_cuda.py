"""``viterbi-filter`` on CUDA devices; the CPU scores what the device leaves to it (``viterbi_cuda.py``)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from seqloom.core.context import Context
from seqloom.core.cuda.jit import kernel as kept_kernel
from seqloom.core.cuda.transfer import clear
from seqloom.core.kernels.packed16 import PACKED, SIMULATED, packed_arithmetic
from seqloom.core.records import Records
from seqloom.core.stages import Footprint, Shape
from seqloom.plugins.common.resident_cuda import Volume
from seqloom.plugins.common.resident_index_cuda import KIND, OnDevices
from seqloom.plugins.common.workspace_cuda import Workspace

from .extend_viterbi_cpu import ViterbiFilterCpu
from .extend_viterbi_reference import ViterbiFilter
from .pairs_cuda import PATHS, Begun, Layout, Tables, Work, blocks, device_footprint, over_works, runs_of, works_of
from .viterbi_cpu import raw_scores, word_moves
from .viterbi_cuda import LANES, DeviceWords, score_targets, shared_bytes, warps_of

if TYPE_CHECKING:
    from numpy.typing import NDArray


class ViterbiFilterCuda(OnDevices, ViterbiFilterCpu):
    __doc__ = ViterbiFilter.__doc__
    reads = (*ViterbiFilter.reads, KIND)

    def footprint(self, shape: Shape) -> Footprint:
        return device_footprint(shape, super().footprint(shape).host, PATHS)

    def score(self, context: Context, records: Records, chosen: NDArray[np.int64],
              scores: NDArray[np.float32]) -> None:
        if packed_arithmetic() is not PACKED:
            super().score(context, records, chosen, scores)
            return
        lengths = context.targets.lengths[context.targets.locate(records.target)]
        least_move = int(word_moves(np.array([context.targets.longest]))[0])
        works = works_of(context, records, chosen, DeviceWords, least_move)
        # Of about as many slots together, which find room in equal blocks.
        fitting = sorted((work for work in works if work.model.fits), key=lambda work: work.model.slots)
        left = [np.empty(0, np.int64), *(work.rows for work in works if not work.model.fits)]
        bounds = np.zeros((len(records), 2), np.int64)
        for work in fitting:
            bounds[work.rows] = work.model.floor, work.model.ceiling
        for rows, (best,) in over_works(context, PATHS, fitting, _begin):
            told = (best > bounds[rows, 0]) & (best < bounds[rows, 1])
            scores[rows[told]] = raw_scores(best[told], word_moves(lengths[rows[told]]))
            left.append(rows[~told])
        again = np.sort(np.concatenate(left))
        context.count("by the host", len(again))
        super().score(context, records, again, scores)


def _begin(works: Sequence[Work], tables: Tables, volume: Volume, space: Workspace, slot: int) -> Begun:
    """Queue the scoring of a group of works."""
    stream, order, layout = space.streams[slot], volume.target_order, Layout.of(works, tables, 1)
    places, models = space.send(f"places {slot}", layout.places), space.send(f"models {slot}", layout.models)
    moves = space.send(f"moves {slot}", word_moves(order.lengths[layout.places]).astype(np.int32))
    launches = runs_of([work.model.slots.bit_length() for work in works])
    best, counters = (space.room(f"{name} {slot}", size, np.int32)
                      for name, size in (("results", len(layout.rows)), ("counters", len(launches))))
    clear(counters, len(launches), stream)
    for number, (begin, end) in enumerate(launches):
        room, first = works[end - 1].model.slots, int(layout.firsts[begin])
        count, warps = int(layout.firsts[end]) - first, 1 if SIMULATED else warps_of(room)
        _kernel()[min(blocks(), -(-count // warps)), LANES * warps, stream, shared_bytes(room, warps)](
            tables.words, tables.facts, models, np.int32(room), volume.residues, order.begins, order.ends, places,
            moves, np.int32(first), np.int32(count), counters, np.int32(number), best)
    return Begun(layout.rows, slot, (best,))


@cache
def _kernel() -> Any:
    return kept_kernel()(score_targets)
