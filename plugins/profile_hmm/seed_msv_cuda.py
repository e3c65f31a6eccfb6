"""``msv`` on CUDA devices: SSV of all targets on the resident volume, then the CPU's ``msv`` of those that may pass.

The device finds, for each model, the targets of which some ungapped segment scores enough: a score is that of the
eight-bit profile, whole numbers, and enough is the least with which a target of any length in the volume can reach the
threshold or have a second segment that counts. So what is left is all that passes and little else, and the rows are the
CPU's.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from seqloom.core.context import Context
from seqloom.core.distinct import distinct
from seqloom.core.engine.threads import run_tasks, short_switch_interval
from seqloom.core.records import Pairs, Records
from seqloom.core.stages import Footprint, Shape
from seqloom.plugins.common.diagonal_scan_cuda import (
    Asked,
    can_scan,
    good_diagonals,
    room_for,
    scores_profile,
    working_bytes,
)
from seqloom.plugins.common.resident_cuda import WorkSize
from seqloom.plugins.common.resident_index_cuda import KIND, OnDevices

from .columns import PAIR_COLUMNS
from .index_reference import profile_of
from .msv_cpu import decided, scores_and_p_values
from .profile import SearchProfile
from .seed_msv_cpu import MsvFilterCpu, Targets, passing
from .seed_msv_reference import MsvFilter, candidates

_SCORES = 256
"""Of best segments, whose eight bits saturate at the last."""


class MsvFilterCuda(OnDevices, MsvFilterCpu):
    __doc__ = MsvFilter.__doc__
    reads = (*MsvFilter.reads, KIND)

    def footprint(self, shape: Shape) -> Footprint:
        need = WorkSize(shape.targets, shape.target_residues, shape.longest_target, shape.queries, shape.longest_query)
        room = room_for(shape.queries, shape.query_residues, shape.target_residues)
        return Footprint(host=super().footprint(shape).host, device=working_bytes(need.rounded(), room))

    def run(self, context: Context, records: Records | None) -> Pairs:
        if records is not None or not can_scan():
            return super().run(context, records)
        queries = [int(number) for number in context.queries.ordinals]
        numbers = candidates(context, 0, None)
        whole = Targets(context, numbers, ())
        found = _on_devices(context, queries, whole)

        def of_query(task: tuple[int, NDArray[np.int64]]) -> Pairs:
            query, chosen = task
            profile = profile_of(context, query)
            return passing(context, query, profile, Targets(context, chosen, [profile.length]), 1)

        parts = run_tasks(context.threads, of_query, list(zip(queries, found, strict=True)))
        pairs = Pairs.concat(parts) if parts else Pairs.empty(PAIR_COLUMNS)
        context.count("passed", len(pairs))
        return pairs


def _on_devices(context: Context, queries: list[int], targets: Targets) -> list[NDArray[np.int64]]:
    """Global numbers, ascending, of the targets that may pass, for each query."""
    asked, always = [], []
    longest = len(queries)
    for number, query in enumerate(queries):
        profile = profile_of(context, query)
        cutoff, without_segment = least_segment(profile, targets, context.options.largest_p("F1"))
        always.append(targets.numbers if cutoff <= 0 else targets.numbers[without_segment])
        if 0 < cutoff < _SCORES:
            scores = np.int16(profile.bytes.bias) - profile.bytes.cost.T.astype(np.int16)
            asked.append(Asked(number, scores_profile(scores), profile.length, cutoff))
    with short_switch_interval():
        numbers, places, _ = good_diagonals(asked, context.targets, context.device_memory, context.cancellation.check,
                                            lambda count: context.advance(count, longest))
    bounds = np.searchsorted(numbers, np.arange(len(queries) + 1))
    return [distinct(np.concatenate([others, context.targets.ordinals[places[bounds[n] : bounds[n + 1]]]]))
            for n, others in enumerate(always)]


def least_segment(profile: SearchProfile, targets: Targets, largest: float) -> tuple[int, NDArray[np.bool_]]:
    """The least score of a best segment with which MSV has to look at a target, or P is at most ``largest``.

    Returns:
        The score; ``_SCORES`` if no target can pass by its segment. bool[n]: targets that MSV looks at whatever their
        segments are, which the score isn't for.
    """
    always = decided(profile.bytes, np.zeros(len(targets.costs), np.uint8), targets.costs)[3]
    (costs, nulls), model = targets.kinds(~always), profile.model
    low, high = 0, _SCORES
    while low < high and len(costs):
        middle = (low + high) // 2
        best = np.full(len(costs), middle, np.uint8)
        _, ended, overflow, again = decided(profile.bytes, best, costs)
        _, p_values = scores_and_p_values(ended, overflow, costs, nulls, model.msv_mu, model.msv_lambda)
        if (again | (p_values <= largest)).any():
            high = middle
        else:
            low = middle + 1
    return (low if len(costs) else _SCORES), always

