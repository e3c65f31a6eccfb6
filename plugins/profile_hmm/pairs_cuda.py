"""Pairs of models and targets as work for CUDA devices, group by group, in the volume that is there."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from functools import cache, partial
from itertools import cycle, pairwise
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numba import cuda as _cuda
from seqloom.core.classes import NamedTuple
from seqloom.core.context import Context
from seqloom.core.engine.threads import short_switch_interval
from seqloom.core.kernels.packed16 import SIMULATED
from seqloom.core.records import Records
from seqloom.core.stages import Footprint, Shape
from seqloom.plugins.common.chosen_cuda import chosen_volumes, footprint_of_chosen, needed_targets
from seqloom.plugins.common.resident_cuda import Volume, devices_for, in_parts, on_devices, rooms_for_parts
from seqloom.plugins.common.resident_index_cuda import shape_in_parts
from seqloom.plugins.common.workspace_cuda import WorkKind, WorkSize, Workspace

from .columns import by_query
from .index_reference import KIND, profile_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

cuda: Any = _cuda  # numba's types don't know what code on the device may do
CODES = 29
"""Residue codes of a model, at most."""
_BYTES_PER_PAIR = 36
MOST_PAIRS = 1 << 16
"""Of a group."""
_FACTS = 8
"""Words that a model takes beside its table, at most."""
_TABLES = 0.4
"""Of the room of a stage whose volume comes part by part: what tables take, at most."""


class DeviceModel(Protocol):
    """What a filter on devices has of a model.

    Attributes:
        words: of ``table``.
        table: of numbers of four bytes.
    """

    words: int

    @property
    def table(self) -> NDArray[Any]: ...

    def facts(self, begin: int) -> tuple[int, ...]:
        """Numbers of the model, whose table begins there among those of others; as many of every model."""


class GroupSize(NamedTuple):
    """What is on a device at a time, at most: pairs of a group, and words of models' tables, unless one has more."""

    pairs: int
    words: int

    def need(self, largest: int, total: int) -> WorkSize:
        """Size of the work where the largest set of models has so many words, and all of them: its stretches are pairs,
        and its query words that are on the device at a time."""
        words = self.words if total <= self.words else 2 * max(largest, self.words)
        return WorkSize(self.pairs, 0, 0, 2, words).rounded()


def group_size(words: int, budget: int | None) -> GroupSize:
    """For models that have about so many words in all, where volumes are on the device whole, or come part by part for
    want of a larger budget."""
    if budget is None:
        return GroupSize(MOST_PAIRS, 1 << 20)
    most = min(1 << 20, int(_TABLES * rooms_for_parts(budget, fills=False)[0]) // 4)
    return GroupSize(1 << 14, words if words <= most else most // 2)


class Filter(NamedTuple):
    """Filters whose working space is of one kind and size, so that one hands it on to another.

    Attributes:
        kind: of their work.
        position, model: words of a table for each position, and beside these, at most.
    """

    kind: WorkKind
    position: int
    model: int

    def words(self, positions: int, models: int) -> int:
        """Of the tables of models with so many positions in all, about."""
        return self.position * positions + (self.model + _FACTS) * models


class Work(NamedTuple):
    """Pairs of one query: what the filter has of its model (a ``DeviceModel``), their ``rows`` in the records and
    ``places`` of the targets in the volume, longest first."""

    model: Any
    rows: NDArray[np.int64]
    places: NDArray[np.int64]


class Tables(NamedTuple):
    """Models on the device.

    Attributes:
        words: of four bytes, tables one behind the other.
        facts: i4, of each model.
        numbers: of models, by identity.
    """

    words: Any
    facts: Any
    numbers: dict[int, int]


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
Begin = Callable[[Sequence[Work], Tables, Volume, Workspace, int], Begun]
"""Queues a group of works on the stream of a slot."""


def works_of(context: Context, records: Records, chosen: NDArray[np.int64],
             made: Callable[..., DeviceModel], *given: int) -> list[Work]:
    """The ``chosen`` rows of records as works of as many pairs as a group at most, with what is ``made`` of a profile
    and the numbers ``given``, once for all volumes."""
    works, most, index = [], MOST_PAIRS, context.index(KIND)
    for query, subset in by_query(records.take(chosen)):
        rows = chosen[subset]
        model = index.kept((made, query, given), partial(made, profile_of(context, query), *given))
        places = context.targets.locate(records.target[rows])
        order = np.argsort(-context.targets.lengths[places], kind="stable")
        for first in range(0, len(rows), most):
            part = order[first : first + most]
            works.append(Work(model, rows[part], places[part]))
    return works


class Layout(NamedTuple):
    """The pairs of a group of works in the order in which the device takes them.

    Attributes:
        rows: i8, of the pairs in the records.
        places, models: i4, place of the target and number of the model of each.
        firsts: i8[works + 1], where each work begins. It is filled up with pairs of row and place −1.
    """

    rows: NDArray[np.int64]
    places: NDArray[np.int32]
    models: NDArray[np.int32]
    firsts: NDArray[np.int64]

    @classmethod
    def of(cls, works: Sequence[Work], tables: Tables, together: int) -> Layout:
        """Works of whole multiples of ``together`` pairs."""
        counts = np.array([_filled(work, together) for work in works])
        firsts = np.concatenate([[0], np.cumsum(counts)])
        rows, places = np.full((2, firsts[-1]), -1, np.int64)
        for first, work in zip(firsts.tolist(), works, strict=False):
            rows[first : first + len(work.rows)] = work.rows
            places[first : first + len(work.rows)] = work.places
        models = np.array([tables.numbers[id(work.model)] for work in works], np.int32)
        return cls(rows, places.astype(np.int32), np.repeat(models, counts), firsts)


def _filled(work: Work, together: int) -> int:
    return -(-len(work.rows) // together) * together


def runs_of(classes: Sequence[int]) -> list[tuple[int, int]]:
    """First and last but one of each run of equal numbers."""
    cuts = [0, *(n for n in range(1, len(classes)) if classes[n] != classes[n - 1]), len(classes)]
    return list(pairwise(cuts)) if classes else []


def working_bytes(need: WorkSize, columns: int = 0) -> int:
    """Device memory that groups take beside the volume."""
    return (2 * need.stretches * _BYTES_PER_PAIR + 4 * need.query) // 16 * 17


PATHS = Filter(WorkKind("the filters of pairs on the device", working_bytes, fills=False), 37, 1216)
"""Of paths through a model: a table has scores or odds of each residue and transition, of whole slots."""


def device_footprint(shape: Shape, host: int, what: Filter) -> Footprint:
    """What a filter needs, and so much of the host."""
    words = what.words(shape.query_residues, shape.queries)
    size = group_size(words, shape.device_memory if shape_in_parts(shape) else None)
    need = size.need(what.words(shape.longest_query, 1), words)
    return footprint_of_chosen(shape, host + 4 * words, what.kind, need)


def _nothing() -> None:
    pass


def over_works(context: Context, what: Filter, works: Sequence[Work], begin: Begin, together: int = 1,
               meanwhile: Callable[[], None] = _nothing) -> Results:
    """Rows and results of all groups of works, which devices share.

    Args:
        what: of which the works are.
        begin: what the device is to do with a group.
        together: pairs that are taken together, all of one work.
        meanwhile: called once, when the first groups are at work.
    """
    numbers, pairs = devices_for(context), sum(len(work.rows) for work in works)
    devices = len(numbers)

    def on_one(given: tuple[Sequence[Work], Callable[[], None]]) -> Results:
        own, host_work = given
        if not own:
            host_work()
            return []
        return _OneDevice(context, what, own, begin, together, host_work, pairs).results()

    with short_switch_interval():
        parts = on_devices(on_one, [(works[d::devices], _nothing if d else meanwhile) for d in range(devices)], numbers)
    return [result for part in parts for result in part]


class _AtWork(NamedTuple):
    """A group: the number of the part of the volume that it is of, and how often tables had been sent."""

    part: int
    sent: int
    begun: Begun


class _OneDevice:
    """Works of the current device.

    Models whose tables find room together are a set. Those of one set are sent once, whatever parts the volume has; two
    rooms have those of several in turn.
    """

    def __init__(self, context: Context, what: Filter, works: Sequence[Work], begin: Begin, together: int,
                 host_work: Callable[[], None], pairs: int) -> None:
        self._context, self._kind, self._works, self._begin, self._together = context, what.kind, works, begin, together
        self._host_work, self._pairs = host_work, pairs
        words = what.words(context.queries.total_residues, len(context.queries))
        self._size = group_size(words, context.device_memory if in_parts(context) else None)
        self._sets = _sets(works, self._size.words)
        self._at_work, self._found = deque[_AtWork](), Results()
        self._tables: tuple[int, Tables] | None = None  # with the number of the set
        self._sent = 0

    def results(self) -> Results:
        """Of all groups, each of which is at work while the one before is fetched."""
        context, works, at_work = self._context, self._works, self._at_work
        needed, numbers = needed_targets(context, np.concatenate([work.places for work in works]))
        words = [sum(map(_words, _models(works[slice(*bounds)]))) for bounds in self._sets]
        need = self._size.need(max(words), sum(words))
        with chosen_volumes(context, needed, self._kind, need) as (space, cuts, volumes):
            rooms = min(2, len(self._sets))
            _prepare(space, [f"tables {room}" for room in range(rooms)], max(words))
            slots = cycle(range(len(space.streams)))
            by_number = _by_number(works, numbers, cuts) if cuts else []
            for part, volume in enumerate(volumes):
                volume.arrived(space.streams)
                for number, (first, last) in enumerate(self._sets):
                    own = [some for work in by_number[first:last] if (some := work.among(part))] if cuts else works[
                        first:last]
                    for group in _groups(own, self._together, self._size.pairs):
                        context.cancellation.check()
                        if len(at_work) == len(space.streams):
                            self._finish(space)
                        tables = self._tables_of(number, space)
                        begun = self._begin(group, tables, volume, space, next(slots))
                        at_work.append(_AtWork(part, self._sent, begun))
                while at_work and at_work[0].part < part:
                    self._finish(space)
            while at_work:
                self._finish(space)
        return self._found

    def _tables_of(self, number: int, space: Workspace) -> Tables:
        """Those of a set on the device, as they are there or sent now."""
        if self._tables is None or self._tables[0] != number:
            while self._at_work and self._at_work[0].sent < self._sent:  # it may read the room that is used again
                self._finish(space)
            models = _models(self._works[slice(*self._sets[number])])
            begins = np.cumsum([0, *(model.words for model in models)]).tolist()
            facts = [model.facts(begin) for model, begin in zip(models, begins, strict=False)]
            room = self._sent % 2
            self._tables = number, Tables(
                space.send(f"tables {room}", np.concatenate([model.table for model in models])),
                space.send(f"facts {room}", np.array(facts, np.int32).reshape(-1)),
                {id(model): n for n, model in enumerate(models)})
            self._sent += 1
        return self._tables[1]

    def _finish(self, space: Workspace) -> None:
        """Fetch what the first group gives that is at work; before that, the host does its own work."""
        self._host_work()
        self._host_work = _nothing
        begun = self._at_work.popleft().begun
        results = [space.fetch(array, 0, len(begun.rows), begun.slot) for array in begun.results]
        kept = begun.rows >= 0
        rows = begun.rows[kept]
        self._context.advance(len(rows), self._pairs)
        self._found.append((rows, [result[kept] for result in results]))


def _models(works: Sequence[Work]) -> list[DeviceModel]:
    """Of works, each once."""
    return list({id(work.model): work.model for work in works}.values())


def _words(model: DeviceModel) -> int:
    return model.words + _FACTS


def _sets(works: Sequence[Work], most: int) -> list[tuple[int, int]]:
    """First and last but one of works in a row whose models have so many words at most, unless one has more."""
    cuts, words = [0], 0
    for n, work in enumerate(works):
        if n and work.model is works[n - 1].model:
            continue
        words += _words(work.model)
        if n and words > most:
            cuts.append(n)
            words = _words(work.model)
    return list(pairwise([*cuts, len(works)]))


class _InParts:
    """A work whose pairs have numbers of their targets as places, i8, and are in order of them; and the first and last
    but one number of each part."""

    def __init__(self, work: Work, numbers: NDArray[np.int64], cuts: Sequence[tuple[int, int]]) -> None:
        order = np.argsort(numbers, kind="stable")
        self._work, self._firsts = Work(work.model, work.rows[order], numbers[order]), [first for first, _ in cuts]
        self._begins = np.searchsorted(self._work.places, [*self._firsts, cuts[-1][1]]).tolist()

    def among(self, part: int) -> Work | None:
        """What it has to do with targets of a part, whose places are counted from the first of them on."""
        begin, end = self._begins[part : part + 2]
        model, rows, places = self._work
        return Work(model, rows[begin:end], places[begin:end] - self._firsts[part]) if begin < end else None


def _by_number(works: Sequence[Work], numbers: NDArray[np.int64], cuts: Sequence[tuple[int, int]]) -> list[_InParts]:
    """Works with such numbers, i8, those of all of them in turn."""
    ends = np.cumsum([0, *(len(work.rows) for work in works)]).tolist()
    return [_InParts(work, numbers[slice(*own)], cuts) for work, own in zip(works, pairwise(ends), strict=True)]


def _prepare(space: Workspace, tables: Sequence[str], words: int) -> None:
    """Have all the room that groups may ask for, so that none is made, and none given back, in the midst of work."""
    for name in tables:
        space.prepare(name, words, np.int32)
    pairs = space.need.stretches
    for slot in range(len(space.streams)):
        for name in ("places", "models", "moves"):
            space.prepare(f"{name} {slot}", pairs, np.int32)
        for name in ("results", "lasts"):
            space.room(f"{name} {slot}", pairs, np.float32)
    space.prepare("fetched", pairs, np.float32)


def _groups(works: Sequence[Work], together: int, most: int) -> list[list[Work]]:
    """Works of so many pairs at most, filled up, unless one has more."""
    groups: list[list[Work]] = []
    pairs = 0
    for work in works:
        pairs += _filled(work, together)
        if not groups or pairs > most:
            groups.append([])
            pairs = _filled(work, together)
        groups[-1].append(work)
    return groups


@cache
def blocks() -> int:
    """Blocks that fill the device, or more; warps fetch their work, so the number changes no result."""
    return 1 if SIMULATED else int(cuda.get_current_device().MULTIPROCESSOR_COUNT) * 8
