"""``forward-filter`` on CUDA devices; the CPU ends each sum, and scores what the device leaves to it
(``forward_cuda.py``). States around the model aren't kept: the few targets that pass are gone through again."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from seqloom.core.context import Context
from seqloom.core.cuda.jit import kernel as kept_kernel
from seqloom.core.cuda.transfer import clear
from seqloom.core.records import Records
from seqloom.core.stages import Footprint, Shape
from seqloom.plugins.common.resident_cuda import Volume
from seqloom.plugins.common.resident_index_cuda import KIND, OnDevices
from seqloom.plugins.common.workspace_cuda import Workspace

from .extend_forward_cpu import ForwardFilterCpu
from .extend_forward_reference import ForwardFilter
from .forward_cpu import completed
from .forward_cuda import MOST_TARGETS, WARP, DeviceOdds, shared_bytes, sum_paths
from .pairs_cuda import PATHS, Begun, Layout, Tables, Work, blocks, device_footprint, over_works, runs_of, works_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

_WORTH = 128
"""Pairs that a thread of the host goes through while four lanes of a device are busy with one like them."""


class ForwardFilterCuda(OnDevices, ForwardFilterCpu):
    __doc__ = ForwardFilter.__doc__
    reads = (*ForwardFilter.reads, KIND)

    def footprint(self, shape: Shape) -> Footprint:
        return device_footprint(shape, super().footprint(shape).host, PATHS)

    def score(self, context: Context, records: Records, chosen: NDArray[np.int64],
              scores: NDArray[np.float32]) -> None:
        lengths = context.targets.lengths[context.targets.locate(records.target)]
        sizes = context.queries.lengths[np.searchsorted(context.queries.ordinals, records.query)]
        alone = longest_pairs(lengths[chosen] * sizes[chosen], _WORTH)
        works = works_of(context, records, chosen[~alone], DeviceOdds)
        # Of about as many slots together: so many targets of each find room in equal blocks.
        fitting = sorted((work for work in works if work.model.fits), key=lambda work: work.model.slots)
        own = np.sort(np.concatenate([chosen[alone], *(work.rows for work in works if not work.model.fits)]))
        on_host, left = super().score, [np.empty(0, np.int64)]
        for rows, (totals, lasts) in over_works(context, PATHS, fitting, _begin, MOST_TARGETS,
                                                lambda: on_host(context, records, own, scores)):
            scores[rows] = completed(totals, lasts, lengths[rows])
            left.append(rows[np.isnan(scores[rows])])
        again = np.sort(np.concatenate(left))
        context.count("by the host", len(own) + len(again))
        on_host(context, records, again, scores)


def longest_pairs(cells: NDArray[np.int64], worth: int) -> NDArray[np.bool_]:
    """Pairs for the host, of pairs of so many cells: it is done with them when the device is with the longest other.

    The device has all its pairs at work at a time, each of them slowly.

    Args:
        worth: cells that a thread of the host goes through while the device goes through one of a pair.
    """
    order = np.argsort(-cells, kind="stable")
    falling = cells[order]
    longer = np.cumsum(falling) > worth * falling
    chosen = np.zeros(len(cells), np.bool_)
    chosen[order[: int(np.argmax(longer)) if longer.any() else len(cells)]] = True
    return chosen


def _begin(works: Sequence[Work], tables: Tables, volume: Volume, space: Workspace, slot: int) -> Begun:
    """Queue the scoring of a group of works."""
    stream, order, layout = space.streams[slot], volume.target_order, Layout.of(works, tables, MOST_TARGETS)
    places, models = space.send(f"places {slot}", layout.places), space.send(f"models {slot}", layout.models)
    launches = runs_of([work.model.slots.bit_length() for work in works])
    counters = space.room(f"counters {slot}", len(launches), np.int32)
    totals, lasts = (space.room(f"{name} {slot}", len(layout.rows), np.float32) for name in ("results", "lasts"))
    clear(counters, len(launches), stream)
    for number, (begin, end) in enumerate(launches):
        longest, first = works[end - 1].model, int(layout.firsts[begin])
        count = int(layout.firsts[end]) - first
        _kernel()[min(4 * blocks(), count // longest.targets), WARP, stream,
                  shared_bytes(longest.slots, longest.targets)](
            tables.words, tables.facts, models, np.int32(longest.targets), volume.residues, order.begins,
            order.ends, places, np.int32(first), np.int32(count), counters, np.int32(number), totals, lasts)
    return Begun(layout.rows, slot, (totals, lasts))


@cache
def _kernel() -> Any:
    return kept_kernel()(sum_paths)
