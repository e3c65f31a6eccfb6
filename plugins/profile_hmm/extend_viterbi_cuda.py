"""``viterbi-filter`` on CUDA devices; the CPU scores what the device leaves to it (``viterbi_cuda.py``)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from seqloom.core.context import Context
from seqloom.core.cuda.jit import kernel as kept_kernel
from seqloom.core.cuda.jit import launching
from seqloom.core.cuda.transfer import clear
from seqloom.core.kernels.packed16 import PACKED, SIMULATED, packed_arithmetic
from seqloom.core.records import Records
from seqloom.core.stages import Footprint, Shape
from seqloom.plugins.common.resident_cuda import Volume, Workspace
from seqloom.plugins.common.resident_index_cuda import KIND, OnDevices

from .extend_viterbi_cpu import ViterbiFilterCpu
from .extend_viterbi_reference import ViterbiFilter
from .pairs_cuda import CODES, Begun, Work, blocks, over_works, working_bytes, works_of
from .viterbi_cpu import raw_scores, word_moves
from .viterbi_cuda import LANES, DeviceWords, score_targets, table_words

if TYPE_CHECKING:
    from numpy.typing import NDArray

WHAT = "the Viterbi filter on the device"


class ViterbiFilterCuda(OnDevices, ViterbiFilterCpu):
    __doc__ = ViterbiFilter.__doc__
    reads = (*ViterbiFilter.reads, KIND)

    def footprint(self, shape: Shape) -> Footprint:
        return Footprint(host=super().footprint(shape).host,
                         device=working_bytes(table_words(CODES, shape.longest_query)))

    def score(self, context: Context, records: Records, chosen: NDArray[np.int64],
              scores: NDArray[np.float32]) -> None:
        if packed_arithmetic() is not PACKED:
            super().score(context, records, chosen, scores)
            return
        lengths = context.targets.lengths
        works = works_of(context, records, chosen)
        least_move = int(word_moves(np.array([context.targets.longest])).min())
        words = {id(work.profile): DeviceWords(work.profile, least_move) for work in works}
        fitting = [work for work in works if words[id(work.profile)].fits]
        left = [work.rows for work in works if not words[id(work.profile)].fits]
        places = np.zeros(len(records), np.int64)
        bounds = np.zeros((len(records), 2), np.int64)
        for work in fitting:
            places[work.rows] = work.places
            bounds[work.rows] = words[id(work.profile)].floor, words[id(work.profile)].ceiling
        for rows, (best,) in over_works(context, fitting, lambda work: len(words[id(work.profile)].table),
                                        partial(_begin, words, lengths), WHAT):
            told = (best > bounds[rows, 0]) & (best < bounds[rows, 1])
            scores[rows[told]] = raw_scores(best[told], word_moves(lengths[places[rows[told]]]))
            left.append(rows[~told])
        again = np.sort(np.concatenate([np.empty(0, np.int64), *left]))
        context.count("by the host", len(again))
        super().score(context, records, again, scores)


def _begin(words: dict[int, DeviceWords], lengths: NDArray[np.int64], works: Sequence[Work], volume: Volume,
           space: Workspace, slot: int) -> Begun:
    """Queue the scoring of a group of works."""
    stream, order = space.streams[slot], volume.target_order
    models = [words[id(work.profile)] for work in works]
    starts = np.cumsum([0, *(len(model.table) for model in models)])
    firsts = np.cumsum([0, *(len(work.rows) for work in works)])
    rows, places = (np.concatenate(parts) for parts in zip(*((work.rows, work.places) for work in works), strict=True))
    tables = space.send(f"tables {slot}", np.concatenate([model.table for model in models]))
    places_there = space.send(f"places {slot}", places.astype(np.int32))
    moves = space.send(f"moves {slot}", word_moves(lengths[places]).astype(np.int32))
    best, counters = space.room(f"best {slot}", len(rows), np.int32), space.room(f"counters {slot}", len(works), np.int32)
    clear(counters, len(works), stream)
    for number, (work, model) in enumerate(zip(works, models, strict=True)):
        start, warps = int(starts[number]), 1 if SIMULATED else model.warps
        with launching:
            _kernel()[min(blocks(), -(-len(work.rows) // warps)), LANES * warps, stream, model.shared_bytes(warps)](
                tables, np.int64(start), np.int64(start + model.transitions), np.int32(model.slots), volume.residues,
                order.begins, order.ends, places_there, moves, np.int32(firsts[number]), np.int32(len(work.rows)),
                counters, np.int32(number), np.int32(model.floor), np.int32(model.ceiling), np.int32(model.shift), best)
    return Begun(rows, len(works), slot, (best,))


@cache
def _kernel() -> Any:
    return kept_kernel()(score_targets)
