"""``forward-filter`` on CUDA devices; the CPU ends each sum, and scores what the device leaves to it
(``forward_cuda.py``). States around the model aren't kept: the few targets that pass are gone through again."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from seqloom.core.context import Context
from seqloom.core.cuda.jit import kernel as kept_kernel
from seqloom.core.cuda.jit import launching
from seqloom.core.cuda.transfer import clear
from seqloom.core.records import Records
from seqloom.core.stages import Footprint, Shape
from seqloom.plugins.common.resident_cuda import Volume, Workspace
from seqloom.plugins.common.resident_index_cuda import KIND, OnDevices

from .extend_forward_cpu import ForwardFilterCpu
from .extend_forward_reference import ForwardFilter
from .forward_cpu import completed
from .forward_cuda import WARP, DeviceOdds, sum_paths, table_words
from .pairs_cuda import CODES, Begun, Work, blocks, over_works, working_bytes, works_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

WHAT = "the Forward filter on the device"


class ForwardFilterCuda(OnDevices, ForwardFilterCpu):
    __doc__ = ForwardFilter.__doc__
    reads = (*ForwardFilter.reads, KIND)

    def footprint(self, shape: Shape) -> Footprint:
        return Footprint(host=super().footprint(shape).host,
                         device=working_bytes(table_words(CODES, shape.longest_query)))

    def score(self, context: Context, records: Records, chosen: NDArray[np.int64],
              scores: NDArray[np.float32]) -> None:
        lengths = context.targets.lengths[context.targets.locate(records.target)]
        works = works_of(context, records, chosen)
        odds = {id(work.profile): DeviceOdds(work.profile) for work in works}
        fitting = [work for work in works if odds[id(work.profile)].fits]
        left = [np.empty(0, np.int64), *(work.rows for work in works if not odds[id(work.profile)].fits)]
        for rows, (totals, lasts) in over_works(context, fitting, lambda work: len(odds[id(work.profile)].table),
                                                partial(_begin, odds), WHAT):
            scores[rows] = completed(totals, lasts, lengths[rows])
            left.append(rows[np.isnan(scores[rows])])
        again = np.sort(np.concatenate(left))
        context.count("by the host", len(again))
        super().score(context, records, again, scores)


def _begin(odds: dict[int, DeviceOdds], works: Sequence[Work], volume: Volume, space: Workspace, slot: int) -> Begun:
    """Queue the scoring of a group of works."""
    stream, order = space.streams[slot], volume.target_order
    models = [odds[id(work.profile)] for work in works]
    starts = np.cumsum([0, *(len(model.table) for model in models)])
    firsts = np.cumsum([0, *(len(work.rows) for work in works)])
    rows = np.concatenate([work.rows for work in works])
    tables = space.send(f"tables {slot}", np.concatenate([model.table for model in models]))
    places = space.send(f"places {slot}", np.concatenate([work.places for work in works]).astype(np.int32))
    totals, lasts = (space.room(f"{name} {slot}", len(rows), np.float32) for name in ("totals", "lasts"))
    counters = space.room(f"counters {slot}", len(works), np.int32)
    clear(counters, len(works), stream)
    for number, (work, model) in enumerate(zip(works, models, strict=True)):
        start = int(starts[number])
        with launching:
            _kernel()[min(blocks(), -(-len(work.rows) // model.targets)), WARP, stream, model.shared_bytes](
                tables, np.int64(start), np.int64(start + model.transitions), np.int32(model.slots),
                np.int32(model.targets), np.bool_(model.stops), volume.residues, order.begins, order.ends, places,
                np.int32(firsts[number]), np.int32(len(work.rows)), counters, np.int32(number), totals, lasts)
    return Begun(rows, len(works), slot, (totals, lasts))


@cache
def _kernel() -> Any:
    return kept_kernel()(sum_paths)
