"""Pairs of models and targets as work for CUDA devices, group by group, in the volume that is there."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from functools import cache
from itertools import cycle, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numba import cuda as _cuda
from seqloom.core.classes import NamedTuple
from seqloom.core.context import Context
from seqloom.core.engine.threads import short_switch_interval
from seqloom.core.kernels.packed16 import SIMULATED
from seqloom.core.records import Records
from seqloom.core.stages import Footprint, Shape
from seqloom.plugins.common.chosen_cuda import chosen_volumes, footprint_of_chosen, needed_targets
from seqloom.plugins.common.resident_cuda import Volume, devices_for, in_parts, on_devices
from seqloom.plugins.common.resident_index_cuda import shape_in_parts
from seqloom.plugins.common.workspace_cuda import WorkKind, WorkSize, Workspace

from .columns import by_query
from .index_reference import profile_of
from .profile import SearchProfile

if TYPE_CHECKING:
    from numpy.typing import NDArray

cuda: Any = _cuda  # numba's types don't know what code on the device may do
CODES = 29
"""Residue codes of a model, at most."""
_BYTES_PER_PAIR = 32


class GroupSize(NamedTuple):
    """What a group has at most: pairs, and words of the tables of its models, unless one has more."""

    pairs: int
    words: int

    def need(self, longest: int) -> WorkSize:
        """Size of the work where the largest model has tables of so many words: its stretches are pairs, and its query
        words."""
        return WorkSize(self.pairs, 0, 0, 2, max(self.words, longest)).rounded()


def group_size(by_parts: bool) -> GroupSize:
    """Of groups where volumes come part by part, or are on the device whole."""
    return GroupSize(1 << 14, 1 << 16) if by_parts else GroupSize(1 << 16, 1 << 20)


class Work(NamedTuple):
    """Pairs of one query: their ``rows`` in the records and ``places`` of the targets in the volume, longest first."""

    profile: SearchProfile
    rows: NDArray[np.int64]
    places: NDArray[np.int64]


class Begun(NamedTuple):
    """A group of works that is at work on the device.

    Attributes:
        rows: of its pairs in the records, in the order in which the device has them; −1 for what is no pair.
        results: arrays on the device, of which the first items are those of the rows.
    """

    rows: NDArray[np.int64]
    slot: int
    results: Sequence[Any]


Results = list[tuple["NDArray[np.int64]", list["NDArray[Any]"]]]
"""Rows of groups of pairs and what they gave."""
Begin = Callable[[Sequence[Work], Volume, Workspace, int], Begun]
"""Queues a group of works on the stream of a slot."""


def works_of(context: Context, records: Records, chosen: NDArray[np.int64]) -> list[Work]:
    """The ``chosen`` rows of records as works of as many pairs as a group at most."""
    works, most = [], group_size(False).pairs
    for query, subset in by_query(records.take(chosen)):
        rows = chosen[subset]
        places = context.targets.locate(records.target[rows])
        order = np.argsort(-context.targets.lengths[places], kind="stable")
        for first in range(0, len(rows), most):
            part = order[first : first + most]
            works.append(Work(profile_of(context, query), rows[part], places[part]))
    return works


class Layout(NamedTuple):
    """The pairs of a group of works in the order in which the device takes them.

    Attributes:
        rows: i8, of the pairs in the records.
        places, models: i4, place of the target and number of the work of each.
        firsts: i8[works + 1], where each work begins. It is filled up with pairs of row and place −1.
    """

    rows: NDArray[np.int64]
    places: NDArray[np.int32]
    models: NDArray[np.int32]
    firsts: NDArray[np.int64]

    @classmethod
    def of(cls, works: Sequence[Work], together: int) -> Layout:
        """Works of whole multiples of ``together`` pairs."""
        counts = np.array([_filled(work, together) for work in works])
        firsts = np.concatenate([[0], np.cumsum(counts)])
        rows, places = np.full((2, firsts[-1]), -1, np.int64)
        for first, work in zip(firsts.tolist(), works, strict=False):
            rows[first : first + len(work.rows)] = work.rows
            places[first : first + len(work.rows)] = work.places
        models = np.repeat(np.arange(len(works), dtype=np.int32), counts)
        return cls(rows, places.astype(np.int32), models, firsts)


def _filled(work: Work, together: int) -> int:
    return -(-len(work.rows) // together) * together


def runs_of(classes: Sequence[int]) -> list[tuple[int, int]]:
    """First and last but one of each run of equal numbers."""
    cuts = [0, *(n for n in range(1, len(classes)) if classes[n] != classes[n - 1]), len(classes)]
    return list(pairwise(cuts)) if classes else []


def working_bytes(need: WorkSize, columns: int = 0) -> int:
    """Device memory that groups take beside the volume."""
    return 2 * (need.stretches * _BYTES_PER_PAIR + 4 * 2 * need.query + 4 * need.stretches) // 16 * 17


_FILTERS = WorkKind("the filters of pairs on the device", working_bytes, fills=False)
"""They have one kind of working space, and a slot's groups use it in turns."""


def device_footprint(shape: Shape, host: int, words: int) -> Footprint:
    """What a filter needs whose models have tables of so many words at most, and so much of the host."""
    return footprint_of_chosen(shape, host, _FILTERS, group_size(shape_in_parts(shape)).need(words))


def _nothing() -> None:
    pass


def over_works(context: Context, works: Sequence[Work], words_of: Callable[[Work], int], begin: Begin,
               together: int = 1, meanwhile: Callable[[], None] = _nothing) -> Results:
    """Rows and results of all groups of works, which devices share.

    Args:
        words_of: of tables that a work brings with it.
        begin: what the device is to do with a group.
        together: pairs that are taken together, all of one work.
        meanwhile: called once, when the first groups are at work.
    """
    numbers = devices_for(context)
    devices = len(numbers)
    size, pairs = group_size(in_parts(context)), sum(len(work.rows) for work in works)
    words = [words_of(work) for work in works]
    if in_parts(context):
        size = size._replace(words=min(size.words, sum(words)))
    need = size.need(max(words, default=0))

    def on_one(given: tuple[Sequence[Work], Callable[[], None]]) -> Results:
        part, host_work = given
        found: Results = []
        waiting = deque[tuple[int, Begun]]()  # with the number of its part
        if not part or in_parts(context):  # others have the device meanwhile, whose turn it then is
            host_work()
            host_work = _nothing
        if not part:
            return found
        needed, numbers_of = needed_targets(context, np.concatenate([work.places for work in part]))
        by_place = _by_place(part, numbers_of) if in_parts(context) else []
        with chosen_volumes(context, needed, _FILTERS, need) as (space, volumes):
            for slot in range(len(space.streams)):
                _prepare(space, slot)
            slots = cycle(range(len(space.streams)))
            for turn, (volume, bounds) in enumerate(volumes):
                own = part if bounds is None else _among(by_place, bounds, volume.target_order.lengths, size.pairs)
                volume.arrived(space.streams)
                groups = _groups(own, words_of, together, size)
                for number, group in enumerate(groups, 1):
                    context.cancellation.check()
                    if len(waiting) == len(space.streams):
                        found.append(_finished(context, waiting.popleft()[1], space, pairs))
                    waiting.append((turn, begin(group, volume, space, next(slots))))
                    if number == min(len(space.streams), len(groups)) and host_work is not _nothing:
                        host_work()
                        host_work = _nothing
                while waiting and waiting[0][0] < turn:
                    found.append(_finished(context, waiting.popleft()[1], space, pairs))
            while waiting:
                found.append(_finished(context, waiting.popleft()[1], space, pairs))
        return found

    with short_switch_interval():
        parts = on_devices(on_one, [(works[d::devices], _nothing if d else meanwhile) for d in range(devices)], numbers)
    return [result for part in parts for result in part]


def _by_place(works: Sequence[Work], numbers: NDArray[np.int64]) -> list[Work]:
    """Works whose pairs are in order of their targets, with other numbers of these: i8, those of all works in turn."""
    found, first = [], 0
    for work in works:
        own = numbers[first : first + len(work.rows)]
        order = np.argsort(own, kind="stable")
        found.append(Work(work.profile, work.rows[order], own[order]))
        first += len(own)
    return found


def _among(works: Sequence[Work], bounds: tuple[int, int], lengths: NDArray[np.int64], most: int) -> list[Work]:
    """What works of ``_by_place`` have to do with targets first … last − 1, which have these lengths, counted from the
    first on: works of ``most`` pairs at most."""
    found = []
    for work in works:
        begin, end = np.searchsorted(work.places, bounds)
        rows, places = work.rows[begin:end], work.places[begin:end] - bounds[0]
        order = np.argsort(-lengths[places], kind="stable")
        for first in range(0, len(order), most):
            some = order[first : first + most]
            found.append(Work(work.profile, rows[some], places[some]))
    return found


def _prepare(space: Workspace, slot: int) -> None:
    """Have all the room that a group may ask for, so that none is made, and none given back, in the midst of work."""
    pairs = space.need.stretches
    space.prepare(f"tables {slot}", space.need.query, np.int32)
    for name in ("places", "models", "moves"):
        space.prepare(f"{name} {slot}", pairs, np.int32)
    for name in ("results", "lasts"):
        space.room(f"{name} {slot}", pairs, np.float32)
    space.prepare("fetched", pairs, np.float32)


def _groups(works: Sequence[Work], words_of: Callable[[Work], int], together: int, size: GroupSize
            ) -> list[list[Work]]:
    groups: list[list[Work]] = []
    pairs = words = 0
    for work in works:
        pairs, words = pairs + _filled(work, together), words + words_of(work)
        if not groups or pairs > size.pairs or words > size.words:
            groups.append([])
            pairs, words = _filled(work, together), words_of(work)
        groups[-1].append(work)
    return groups


def _finished(context: Context, begun: Begun, space: Workspace, pairs: int
              ) -> tuple[NDArray[np.int64], list[NDArray[Any]]]:
    results = [space.fetch(array, 0, len(begun.rows), begun.slot).copy() for array in begun.results]
    kept = begun.rows >= 0
    rows = begun.rows[kept]
    context.advance(len(rows), pairs)
    return rows, [result[kept] for result in results]


@cache
def blocks() -> int:
    """Blocks that fill the device, or more; warps fetch their work, so the number changes no result."""
    return 1 if SIMULATED else int(cuda.get_current_device().MULTIPROCESSOR_COUNT) * 8
