"""``msv`` and ``ssv`` on CUDA devices: SSV of all targets on the resident volume, the CPU's of those that may pass.

The device finds, for each model, the targets of which some ungapped segment scores enough: a score is that of the
eight-bit profile, whole numbers, and enough is the least with which a target whose length costs as much can reach the
threshold or have a second segment that counts. So what is left is all that passes and little else, and the rows are the
CPU's.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from seqloom.core.classes import NamedTuple
from seqloom.core.context import Context
from seqloom.core.distinct import distinct, ranked
from seqloom.core.engine.threads import run_tasks, short_switch_interval
from seqloom.core.records import Pairs, Records
from seqloom.core.stages import Footprint, Shape
from seqloom.plugins.common.diagonal_scan_cuda import (
    Asked,
    can_scan,
    device_footprint,
    good_diagonals,
    scores_profile,
)
from seqloom.plugins.common.resident_cuda import devices_for, in_parts
from seqloom.plugins.common.resident_index_cuda import KIND, OnDevices

from .columns import PAIR_COLUMNS
from .index_reference import profile_of
from .msv_cpu import least_segments as least_of_kinds
from .msv_cpu import length_costs
from .profile import SearchProfile
from .seed_msv_cpu import MsvFilterCpu, Targets, passing
from .seed_msv_reference import MsvFilter, SsvFilter, candidates

_SCORES, _NEVER = 256, 1024
"""Of best segments, whose eight bits saturate at the last; more than any has."""


class Lengths(NamedTuple):
    """What the lengths of a volume's targets cost, the same for all models.

    Attributes:
        numbers: i8[n], global numbers of the targets that aren't empty. costs: i2[n], of each.
        kinds: costs i2[k] and null scores f4[k] of one target of each length.
        classes: u1 of all targets, costs of those that aren't empty.
    """

    numbers: NDArray[np.int64]
    costs: NDArray[np.int16]
    kinds: tuple[NDArray[np.int16], NDArray[np.float32]]
    classes: NDArray[np.uint8]

    @classmethod
    def of(cls, context: Context) -> Lengths:
        """Of the volume; kept with what is on the device of it, where something is."""
        index = context.indexes.get(KIND)
        return index.kept("costs of lengths", lambda: cls._made(context)) if index else cls._made(context)

    @classmethod
    def _made(cls, context: Context) -> Lengths:
        numbers, classes = candidates(context, 0, None), np.zeros(len(context.targets), np.uint8)
        places = context.targets.locate(numbers)
        lengths, kind = ranked(context.targets.lengths[places])
        kinds = length_costs(lengths)
        costs = kinds[0][kind]
        classes[places] = costs
        return cls(numbers, costs, kinds, classes)


class MsvFilterCuda(OnDevices, MsvFilterCpu):
    __doc__ = MsvFilter.__doc__
    reads = (*MsvFilter.reads, KIND)
    cells_per_second = 1e11  # of one thread of many that share a device
    own_device = True

    def footprint(self, shape: Shape) -> Footprint:
        return device_footprint(shape, super().footprint(shape).host)

    def run(self, context: Context, records: Records | None) -> Pairs:
        if records is not None or not can_scan():
            return super().run(context, records)
        queries = [int(number) for number in context.queries.ordinals]
        found = _on_devices(context, queries, Lengths.of(context), self.multihit)

        def of_query(task: tuple[int, NDArray[np.int64]]) -> Pairs:
            query, chosen = task
            profile = profile_of(context, query)
            return passing(context, [query], Targets(context, chosen, [profile.length]), 1,
                           sieved=True, multihit=self.multihit)

        parts = run_tasks(context.threads, of_query, list(zip(queries, found, strict=True)))
        pairs = Pairs.concat(parts) if parts else Pairs.empty(PAIR_COLUMNS)
        context.count("passed", len(pairs))
        return pairs


class SsvFilterCuda(SsvFilter, MsvFilterCuda):
    __doc__ = SsvFilter.__doc__


def _on_devices(context: Context, queries: list[int], targets: Lengths, multihit: bool) -> list[NDArray[np.int64]]:
    """Global numbers, ascending, of the targets that may pass, for each query."""
    asked, always, total = [], [], len(queries)
    for number, query in enumerate(queries):
        profile = profile_of(context, query)
        cutoffs, without_segment = least_segments(profile, targets, context.options.largest_p("F1"), multihit)
        always.append(targets.numbers[without_segment])
        if (cutoffs < _SCORES).any():
            scores = np.int16(profile.bytes.bias) - profile.bytes.cost.T.astype(np.int16)
            asked.append(Asked(number, scores_profile(scores), profile.length, cutoffs))
    with short_switch_interval():
        numbers, places, _ = good_diagonals(asked, context.targets, context.device_memory, context.cancellation.check,
                                            lambda count: context.advance(count, total), targets.classes,
                                            context.count, devices_for(context), in_parts(context))
    bounds = np.searchsorted(numbers, np.arange(len(queries) + 1))
    return [distinct(np.concatenate([others, context.targets.ordinals[places[bounds[n] : bounds[n + 1]]]]))
            for n, others in enumerate(always)]


def least_segments(profile: SearchProfile, targets: Lengths, largest: float,
                   multihit: bool = True) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The least score of a best segment with which MSV (``multihit``) or SSV alone has to look at a target, or P is at
    most ``largest``.

    Returns:
        i8[c] for targets whose length costs 0, 1, … third-bits, at least 1; beyond ``_SCORES`` where no segment is
        needed or none is enough. bool[n]: targets that may pass whatever their segments are.
    """
    costs, model = targets.kinds[0], profile.model
    low = np.full(int(costs.max(initial=0)) + 1, _SCORES)
    of_kinds = least_of_kinds(profile.bytes, *targets.kinds, model.msv_mu, model.msv_lambda, largest,
                             multihit)
    np.minimum.at(low, costs, of_kinds)
    return np.where(low > 0, low, _NEVER), low[targets.costs] == 0
