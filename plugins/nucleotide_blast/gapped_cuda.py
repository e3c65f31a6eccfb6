"""``nucleotide-greedy`` on CUDA devices: all segments of a unit are extended there, a warp for each side.

Which of them count depends on those before, but not what an extension gives. So a device extends them all, and the host
goes through the pairs as ever, with the answers at hand; it extends what the device had no room for. Where volumes come
part by part devices have copies of the bases that extensions can reach.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from seqloom.core.context import Context
from seqloom.core.engine.threads import short_switch_interval
from seqloom.core.errors import BudgetError
from seqloom.core.kernels.jit import kernel
from seqloom.core.stages import Footprint, Shape
from seqloom.plugins.common.culling_cpu import (
    ANCHOR_QUERY,
    ANCHOR_TARGET,
    PAIR,
    SCORE,
)
from seqloom.plugins.common.grouping import group_parts
from seqloom.plugins.common.resident_cuda import VOLUME_RESIDUES, devices_for, on_devices
from seqloom.plugins.common.resident_index_cuda import OnDevices
from seqloom.plugins.common.workspace_cuda import WorkSize
from seqloom.plugins.nucleotide_blast.gapped_cpu import (
    CUTOFF,
    HIGH,
    LENGTH,
    LOW,
    MORE_SAVED,
    SEGMENT_QUERY,
    SEGMENT_TARGET,
    STRAND,
    X_DROP,
    Extend,
    Extender,
    GreedyExtensionCpu,
    as_box,
    greedy_reach,
    within_reach,
)
from seqloom.plugins.nucleotide_blast.gapped_reference import refuse_affine
from seqloom.plugins.nucleotide_blast.greedy_cpu import DIFFERENCES, DONE, anchor, write_ends
from seqloom.plugins.nucleotide_blast.greedy_cuda import (
    ABOUT,
    ENDS,
    FARTHEST,
    TARGET_BEGIN,
    Costs,
    Sides,
)
from seqloom.plugins.nucleotide_blast.reached_cuda import parts_with_room, reached_bases
from seqloom.plugins.nucleotide_blast.saved_cpu import copy_row, forget, is_contained, save


@kernel
def _judge_groups(groups, bounds, segments, ends, reward, penalty, separation, saved, found, first, hsp):
    """What ``gapped_cpu._greedy_groups`` does where extensions are known. ends: i4[n, 2, ENDS]."""
    count = extended = 0
    for number in range(first, len(groups)):
        group, begun = groups[number], count
        forget(saved)
        for at in range(bounds[number], bounds[number + 1]):
            segment = segments[at]
            as_box(segment, hsp)
            if is_contained(saved, hsp, separation):
                continue
            extended += 1
            left, right, middle = ends[at, 0], ends[at, 1], segment[LENGTH] // 2
            q, t = segment[SEGMENT_QUERY] + middle, segment[SEGMENT_TARGET] + middle
            write_ends(q, t, left, right, reward, penalty, hsp)
            if hsp[SCORE] < group[CUTOFF]:
                continue
            hsp[ANCHOR_QUERY], hsp[ANCHOR_TARGET] = anchor(q, t, left, right)
            hsp[PAIR] = number
            copy_row(hsp, found[count])
            count += 1
            if not save(saved, hsp):
                return MORE_SAVED, number, begun, extended
    return DONE, len(groups), count, extended


class GreedyExtensionCuda(OnDevices, GreedyExtensionCpu):
    __doc__ = GreedyExtensionCpu.__doc__
    volume_residues = 4 * VOLUME_RESIDUES

    def footprint(self, shape: Shape) -> Footprint:
        return Footprint(host=super().footprint(shape).host)

    def extender(self, context: Context, strands: np.ndarray, offsets: np.ndarray, groups: np.ndarray,
                 bounds: np.ndarray, segments: np.ndarray, around: np.ndarray) -> Extender:
        refuse_affine(context.scoring)

        @cache
        def by_host() -> Extender:
            return super(GreedyExtensionCuda, self).extender(context, strands, offsets, groups, bounds, segments,
                                                             around)

        about, x_drop = _about(context, groups, bounds, segments, offsets), int(groups[:, X_DROP].max())
        if (not Costs.of(context.scoring).fit(x_drop)
                or int((about[:, 1] + about[:, 3]).max()) >= FARTHEST):
            return by_host()
        try:
            with short_switch_interval():
                ends = _ends_on_devices(context, strands, about, bounds, *within_reach(
                    around, lambda bases: greedy_reach(context.scoring, bases, x_drop)))
        except BudgetError:
            context.count("units without room on a device", 1)
            return by_host()
        scoring, separation = context.scoring, self.options.diagonal_separation

        def begin(some: slice) -> tuple[int, Extend, Callable[[int], None]]:
            if (ends[some, :, DIFFERENCES] < 0).any():
                return by_host()(some)

            def extend(own: np.ndarray, starts: np.ndarray, segments: np.ndarray, saved: Any, found: np.ndarray,
                       first: int) -> tuple[int, int, int, int]:
                result: tuple[int, int, int, int] = _judge_groups(
                    own, starts, segments, ends, scoring.reward, scoring.penalty, separation, saved, found, first,
                    np.zeros(8, np.int64))
                return result

            def grow(state: int) -> None:
                raise AssertionError

            return 0, extend, grow

        return begin


def _about(context: Context, groups: np.ndarray, bounds: np.ndarray, segments: np.ndarray, offsets: np.ndarray
           ) -> np.ndarray:
    """i8[n, ABOUT], of ``align_sides``: targets are chunks of them, and what stands for an ambiguity is a base."""
    groups = np.repeat(groups, np.diff(bounds), axis=0)
    about = np.zeros((len(segments), ABOUT), np.int64)
    middle = segments[:, LENGTH] // 2
    about[:, 0] = offsets[groups[:, STRAND]]
    about[:, 1] = offsets[groups[:, STRAND] + 1] - about[:, 0]
    about[:, TARGET_BEGIN], about[:, 3] = groups[:, LOW], groups[:, HIGH] - groups[:, LOW]
    about[:, 4], about[:, 5] = segments[:, SEGMENT_QUERY] + middle, segments[:, SEGMENT_TARGET] + middle
    about[:, 6] = Costs.of(context.scoring).factor * groups[:, X_DROP]
    about[:, 11], about[:, 12] = -FARTHEST, 2 * FARTHEST
    return about


def _ends_on_devices(context: Context, strands: np.ndarray, about: np.ndarray, bounds: np.ndarray, first: np.ndarray,
                     last: np.ndarray) -> np.ndarray:
    """i4[n, 2, ENDS] of all segments, which devices share. first, last: as of ``parts_with_room``."""
    ends, devices = np.empty((len(about), 2, ENDS), np.int32), devices_for(context)

    def need(rows: int) -> WorkSize:
        return WorkSize(rows, 1, 0, 1, len(strands)).rounded()

    def on_one(share: tuple[int, int]) -> None:
        for begin, end in parts_with_room(context, bounds, first, last, need, share):
            some = slice(int(bounds[begin]), int(bounds[end]))
            with reached_bases(context, first[some], last[some], about[some], need(some.stop - some.start)) as there:
                space, volume, own = there
                ends[some] = Sides(context, space, volume, strands, own).align(runs=True)

    on_devices(on_one, group_parts(bounds, len(devices)), devices)
    return ends
