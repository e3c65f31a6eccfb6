"""Targets that a stage works on whose records tell which ones it needs: the volume that is on the device, or parts that
have them alone, where devices have little memory."""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
from seqloom.core.context import Context
from seqloom.core.sequences import offsets_of
from seqloom.core.stages import Footprint, Shape

from .chosen_cpu import chosen_sequences
from .resident_cuda import PartSize, Volume, device_memory, in_parts, part_size, rooms_for_parts
from .resident_index_cuda import shape_in_parts
from .workspace_cuda import WorkKind, WorkSize, Workspace

Bounds = tuple[int, int]


def footprint_of_chosen(shape: Shape, host: int, kind: WorkKind, need: WorkSize) -> Footprint:
    """What such a stage needs that takes so many bytes of the host, and of a device, beside the targets, what work of a
    kind and size takes."""
    working = kind.size(need, 0)
    if not shape_in_parts(shape) or shape.device_memory is None:
        return Footprint(host=host, device=working)
    part = part_size(shape.target_residues, shape.targets, shape.longest_target,
                     rooms_for_parts(shape.device_memory, kind.fills), lambda part: working)
    return Footprint(host=host + part.nbytes, device=part.nbytes + working, in_turn=True)


def needed_targets(context: Context, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """For ``chosen_volumes``: i8[k], the different ones of i8[n] ``places``; and the number of each place among them.

    Long targets come first: so those of a part take about as long, where a device waits for the longest of them. There
    are none where all targets are on the device anyway.
    """
    if not in_parts(context):
        return np.arange(0), np.arange(0)
    numbers = np.zeros(len(context.targets), np.int64)
    numbers[places] = 1
    chosen = np.flatnonzero(numbers)
    chosen = chosen[np.argsort(-context.targets.lengths[chosen], kind="stable")]
    numbers[chosen] = np.arange(len(chosen))
    return chosen, numbers[places]


@contextmanager
def chosen_volumes(context: Context, places: np.ndarray, kind: WorkKind, need: WorkSize
                   ) -> Iterator[tuple[Workspace, list[Bounds] | None, Iterator[Volume]]]:
    """Working space, and volumes on the current device that have the targets at ``places``, i8[n], in this order.

    Before them come the first and last but one of the places that each has, by which its targets are numbered; or None
    where a single one has all targets. What is queued for one has to be done when the one behind the next is asked for.

    Raises:
        BudgetError: there is no room.
    """
    memory, budget, targets = device_memory(), context.device_memory, context.targets
    if budget is None or not in_parts(context):
        with memory.volume(targets, budget) as volume, memory.workspace(kind, need, budget, context.count) as space:
            yield space, None, iter([volume])
        return
    lengths, working = targets.lengths[places], kind.size(need, 0)
    offsets = offsets_of(lengths)

    def parts(rooms: Sequence[float]) -> PartSize:
        return part_size(int(offsets[-1]), len(places), int(lengths.max(initial=0)), rooms, lambda part: working)

    least, most = (parts(rooms).nbytes + working for rooms in (rooms_for_parts(budget, kind.fills), (math.inf,)))
    with memory.turn(least, budget, kind.fills, most) as room:
        size = parts((room,))
        cuts, searched = size.cut(offsets), targets.searched()
        batches = (chosen_sequences(targets, searched, places[slice(*cut)]) for cut in cuts)
        with memory.parts(batches, size, kind, need, budget, context.count) as (space, volumes):
            yield space, cuts, (next(volumes) for _ in cuts)  # which it has until work on them is done
