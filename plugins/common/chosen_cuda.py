"""Targets that a stage works on whose records tell which ones it needs: the volume that is on the device, or parts that
have them alone, where devices have little memory."""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain, islice

import numpy as np
from seqloom.core.context import Context
from seqloom.core.stages import Footprint, Shape

from .chosen_cpu import chosen_sequences
from .resident_cuda import PARTS_HELD, Volume, device_memory, in_parts, part_size, rooms_for_parts
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
    """For ``chosen_volumes``: rising places, i8[k], of which each of ``places``, i8[n], is one, and the number of it.

    They are all targets where most are needed, since these needn't be copied; none where all are on the device anyway.
    """
    if not in_parts(context):
        return np.arange(0), np.arange(0)
    targets = context.targets
    needed = np.zeros(len(targets), np.bool_)
    needed[places] = True
    chosen = np.flatnonzero(needed)
    if 2 * int(targets.lengths[chosen].sum()) > targets.total_residues:
        return np.arange(len(targets)), places
    return chosen, (np.cumsum(needed) - 1)[places]


@contextmanager
def chosen_volumes(context: Context, places: np.ndarray, kind: WorkKind, need: WorkSize
                   ) -> Iterator[tuple[Workspace, Iterator[tuple[Volume, Bounds | None]]]]:
    """Working space, and volumes on the current device that have the targets at rising ``places``, i8[n].

    Each volume comes with the first and last but one of the places that it has, by which its targets are numbered, or
    None where it has all targets. What is queued for one has to be done when the one behind the next is asked for.

    Raises:
        BudgetError: there is no room.
    """
    memory, budget, targets = device_memory(), context.device_memory, context.targets
    if budget is None or not in_parts(context):
        with memory.volume(targets, budget) as volume, memory.workspace(kind, need, budget, context.count) as space:
            yield space, iter([(volume, None)])
        return
    lengths, working = targets.lengths[places], kind.size(need, 0)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    size = part_size(int(offsets[-1]), len(places), int(lengths.max(initial=0)), rooms_for_parts(budget, kind.fills),
                     lambda part: working)
    parts, searched = size.cut(offsets), targets.searched()
    batches = (chosen_sequences(targets, searched, places[slice(*part)]) for part in parts)
    ready = list(islice(batches, PARTS_HELD))  # while others have the device
    with (memory.turn(size.nbytes + working, budget, kind.fills),
          memory.parts(chain(ready, batches), size, kind, need, budget, context.count) as (space, volumes)):
        yield space, ((next(volumes), part) for part in parts)
