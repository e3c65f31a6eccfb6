"""Bases of a volume that alignments can reach, on CUDA devices.

They are those of the whole volume where it is there. Where devices have no room for it the host copies the stretches
around what is aligned, two bits a base, one behind the other, and alignments begin at another place: a device reads
nothing that is farther from them. The stretches of all alignments of a unit are a small part of a volume, unless the
queries are related to most of it, so that they find room beside a part of it in which words are looked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import cast

import numpy as np
from seqloom.core.classes import NamedTuple
from seqloom.core.context import Context
from seqloom.core.errors import BudgetError
from seqloom.core.kernels.jit import kernel
from seqloom.core.sequences import SequenceBatch, offsets_of
from seqloom.plugins.common.resident_cuda import Volume, device_memory
from seqloom.plugins.common.workspace_cuda import WorkSize, Workspace
from seqloom.plugins.nucleotide_blast.greedy_cuda import ALIGNING, TARGET_BEGIN
from seqloom.plugins.nucleotide_blast.packed_cpu import SPARE, stretches
from seqloom.plugins.nucleotide_blast.packed_cuda import (
    REACHED,
    PackedTargets,
    bases_in_parts,
    packed_size,
    packed_targets,
)

MOST_PARTS = 4
"""Into which the alignments of a unit are cut at most. Where they would be more each has few alignments for the bases
that it needs, and takes the device longer than the host takes to align them."""

Bounds = tuple[int, int]


@kernel
def _copy_bytes(bits, spans, firsts, copy):
    """Copy the bytes of i8[s, 2] stretches of bases, which begin with a byte, to i8[s + 1] places in u1 ``copy``; the
    last one may end behind all bytes."""
    for number in range(len(spans)):
        # Unsigned places, as none counts from the end of an array.
        begin, start, end = np.uint64(spans[number, 0] >> 2), np.uint64(firsts[number]), np.uint64(firsts[number + 1])
        for k in range(min(end - start, np.uint64(len(bits)) - begin)):
            copy[start + k] = bits[begin + k]


class Reached(NamedTuple):
    """Stretches of a volume, i8[s, 2], rising and apart from each other; and at which byte of a copy each begins,
    i8[s + 1]."""

    spans: np.ndarray
    firsts: np.ndarray

    @classmethod
    def of(cls, first: np.ndarray, last: np.ndarray) -> Reached:
        """Stretches that hold those of i8[n] places."""
        spans = stretches(first, last)
        return cls(spans, offsets_of(spans[:, 1] - spans[:, 0] >> 2))

    @property
    def nbytes(self) -> int:
        """Of the copy, on a device."""
        return packed_size(4 * int(self.firsts[-1])).nbytes

    def copy(self, targets: PackedTargets) -> PackedTargets:
        """The bases of the stretches."""
        bits = np.zeros(int(self.firsts[-1]) + SPARE, np.uint8)
        _copy_bytes(targets.bits, self.spans, self.firsts, bits)
        return PackedTargets(bits)

    def moved(self, places: np.ndarray) -> np.ndarray:
        """By how many bases the stretches that i8[n] places are in move to be where they are in the copy."""
        number = np.searchsorted(self.spans[:, 0], places, "right") - 1
        moved: np.ndarray = (4 * self.firsts[:-1] - self.spans[:, 0])[number]
        return moved


def parts_with_room(context: Context, bounds: np.ndarray, first: np.ndarray, last: np.ndarray,
                    need: Callable[[int], WorkSize], share: Bounds) -> list[Bounds]:
    """Groups first … last − 1 of parts of a share of all groups, each of which a device has room for beside others: one
    part where it has the volume.

    Args:
        bounds: i8[g + 1], of groups. first, last: i8[n], first and last base but one that alignments may look at.
        need: what so many alignments need.

    Raises:
        BudgetError: there would be more than ``MOST_PARTS``.
    """
    budget, waiting, parts = context.device_memory, [share], list[Bounds]()
    if budget is None or not bases_in_parts(context):
        return waiting
    room = int(REACHED * budget)
    while waiting:
        begin, end = waiting.pop()
        rows = slice(int(bounds[begin]), int(bounds[end]))
        size = _size(need(rows.stop - rows.start), Reached.of(first[rows], last[rows]))
        if size <= room or end - begin < 2:
            parts.append((begin, end))
            continue
        if len(parts) + len(waiting) + 2 > MOST_PARTS:
            raise BudgetError(ALIGNING.what, size, room, "raise --device-memory")
        middle = min(max(int(np.searchsorted(bounds, (rows.start + rows.stop) // 2)), begin + 1), end - 1)
        waiting += [(middle, end), (begin, middle)]
    return parts


def _size(need: WorkSize, reached: Reached) -> int:
    return ALIGNING.size(need, 0) + reached.nbytes


@contextmanager
def reached_bases(context: Context, first: np.ndarray, last: np.ndarray, about: np.ndarray, need: WorkSize
                  ) -> Iterator[tuple[Workspace, Volume, np.ndarray]]:
    """Working space on the current device, bases there, and alignments, i8[n, ABOUT], at places of these bases.

    Args:
        first, last: as of ``parts_with_room``. about: i8[n, ABOUT], at places of the volume.

    Raises:
        BudgetError: there is no room.
    """
    budget, targets, memory = context.device_memory, packed_targets(context), device_memory()
    if budget is None or not bases_in_parts(context):
        with (targets.on_device(budget) as volume,
              memory.workspace(ALIGNING, need, budget, context.count) as space):
            yield space, volume, about
        return
    reached = Reached.of(first, last)
    copy, about = reached.copy(targets), about.copy()  # while others have the device
    about[:, TARGET_BEGIN] += reached.moved(first)
    # All that is left for alignments, so that working space that was large enough for others suffices.
    size = max(_size(need, reached), int(REACHED * budget))
    with (memory.turn(size, budget, ALIGNING.fills, size),
          memory.volume(cast(SequenceBatch, copy), budget, size - ALIGNING.size(need, 0)) as volume,
          memory.workspace(ALIGNING, need, budget, context.count, size - volume.extent.nbytes) as space):
        yield space, volume, about
