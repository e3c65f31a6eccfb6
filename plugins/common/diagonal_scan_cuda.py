"""All diagonals of queries with a volume's targets on which some segment scores well, on a CUDA device.

Queries are scanned for tile by tile (``diagonal_tiles_cuda.py``), or sieved first by the tensor cores
(``diagonal_sieve_cuda.py``), whichever takes less time. Short queries have a lane or two for a target. Long targets are
taken in overlapping pieces, unless a query has several tiles: they would keep some warps at work when all others are
done.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field
from functools import cache, cached_property, lru_cache, reduce
from itertools import cycle
from typing import Any

import numpy as np
from numba import cuda as _cuda
from seqloom.core.backends import device_count
from seqloom.core.classes import NamedTuple, dataclass
from seqloom.core.cuda.one_hot import CODES
from seqloom.core.cuda.transfer import clear, to_host
from seqloom.core.distinct import distinct
from seqloom.core.kernels.packed16 import EXACT_HALVES, SIMULATED, packed_arithmetic, pair
from seqloom.core.sequences import SequenceBatch
from seqloom.core.stages import Footprint, Shape

from .diagonal_sieve_cuda import (
    GAP,
    MOST_PIECES,
    MOST_POSITIONS,
    SIEVE_WORDS,
    Keys,
    Ranked,
    Ring,
    Room,
    Sieve,
    TargetWindows,
    can_sieve,
    fills,
    noted_words,
    queue,
    rings_of,
    sieve_for,
    windows_of,
)
from .diagonal_tiles_cuda import LEAST_SPREAD, LOWEST_SCORE, PAD, RESIDUES, scan_kernel, tile_profile, tiling
from .grouping import group_starts
from .resident_cuda import PartSize, Volume, device_memory, on_devices, part_size, rooms_for_parts
from .resident_index_cuda import shape_in_parts
from .workspace_cuda import Count, WorkKind, WorkSize, Workspace

cuda: Any = _cuda  # numba's types don't know what code on the device may do

CEILING = EXACT_HALVES // 2
"""Largest cutoff that is told from larger ones."""
_GROUP_QUERIES, _GROUP_WORDS = 64, 1 << 20
"""Queries that are on the device together, and words of their profiles, at most."""
_POSITION_WORDS, _QUERY_WORDS = RESIDUES * LEAST_SPREAD // 4, RESIDUES * LEAST_SPREAD * 8
"""Of profiles, at most: for each residue of a query (twice what the smallest lanes take), and for each query."""
_GROUP_CELLS = 1 << 40
"""Pairs of residues of them, at most: 50 ms of a device, which finds few enough diagonals then."""
ROOM = 1 << 20
"""Diagonals of a group of queries that there is room for at most: one in 2 · 10⁶ pairs, as of real proteins."""
LEAST_FOUND = 1 << 14
"""Diagonals that there is room for at least."""
_FETCHED = 1 << 12
"""Of them, those that are fetched with their number."""
_CLASSES = 128
"""Of targets, at most: so many costs of lengths there are."""
_SAMPLED = 1 << 15
"""Targets whose classes say, about, what share of the residues each has."""
_MOST_SCORE = 4 * EXACT_HALVES
"""Of a cell, as it is kept."""
WHAT = "the ungapped scan on the device"
Done = Callable[[float], None]
"""Called with the number of queries that are through."""


@dataclass(eq=False)
class QueryScores:
    """Scores of a query's positions with all residues, in the forms that kernels read.

    Attributes:
        scores: i2[m, CODES], whole numbers; those of residues that there are none of are very low.
    """

    scores: np.ndarray
    _sieves: dict[bytes, Sieve | None] = field(default_factory=dict, init=False)

    @cached_property
    def words(self) -> np.ndarray:
        """i4, ``tile_profile`` of all tiles one behind the other."""
        shape = tiling(len(self.scores))
        table = np.full((shape.tiles * shape.positions, RESIDUES), LOWEST_SCORE, np.float16)
        table[: len(self.scores), :PAD] = np.clip(self.scores[:, :PAD], LOWEST_SCORE, CEILING)
        tiles = table.reshape(shape.tiles, shape.positions, RESIDUES)
        return np.concatenate([np.empty(0, np.int32),
                               *(tile_profile(tile, shape.lanes, shape.rows) for tile in tiles)])

    def sieve(self, cutoffs: np.ndarray, shares: np.ndarray) -> Sieve | None:
        """How to sieve with these cutoffs, i8[c], of classes with these shares of all residues; None where that is no
        gain."""
        key = cutoffs.tobytes() + shares.tobytes()
        if key not in self._sieves:
            self._sieves[key] = sieve_for(self.scores, cutoffs, shares)
        return self._sieves[key]


def query_profile(query: np.ndarray, matrix: np.ndarray) -> QueryScores:
    """Scores of u1[m] ``query`` by i4[residues, residues] ``matrix``, which every volume asks for."""
    return _query_profile(query.tobytes(), np.ascontiguousarray(matrix, np.int32).tobytes(), len(matrix))


@lru_cache(256)
def _query_profile(query: bytes, matrix: bytes, size: int) -> QueryScores:
    return scores_profile(np.frombuffer(matrix, np.int32).reshape(size, size)[np.frombuffer(query, np.uint8)])


def scores_profile(scores: np.ndarray) -> QueryScores:
    """Of whole numbers[m, residues] by position and residue; very high and very low ones count as less."""
    table, known = np.full((len(scores), CODES), -_MOST_SCORE, np.int16), min(scores.shape[1], PAD)
    table[:, :known] = np.clip(scores[:, :known], -_MOST_SCORE, _MOST_SCORE)
    return QueryScores(table)


class Asked(NamedTuple):
    """A query by its number in the result, its scores, its length, and the score from which on a diagonal is good, at
    least 1; i8[c] with targets of each class, where there are classes of them."""

    number: int
    profile: QueryScores
    length: int
    cutoff: int | np.ndarray

    @property
    def cutoffs(self) -> np.ndarray:
        """i8[c], of each class."""
        return np.atleast_1d(np.asarray(self.cutoff, np.int64))


class _Member(NamedTuple):
    """A query, how it is sieved with, where it is, and whether it is scanned for again."""

    query: Asked
    sieve: Sieve | None
    again: bool = False

    @property
    def words(self) -> int:
        """Of four bytes, that it takes on the device."""
        return len(self.query.profile.words) if self.sieve is None else self.sieve.words


@dataclass
class _Group:
    """Queries that are on the device together."""

    members: list[_Member] = field(default_factory=list)
    words: int = 0

    @property
    def scanned(self) -> list[Asked]:
        """Those that aren't sieved."""
        return [member.query for member in self.members if member.sieve is None]

    @property
    def sieved(self) -> list[tuple[int, Sieve]]:
        """The others, by number."""
        return [(member.query.number, member.sieve) for member in self.members if member.sieve is not None]


def _groups(members: Iterable[_Member], target_residues: int) -> Iterator[_Group]:
    group, cells = _Group(), 0
    for member in members:
        more = member.query.length * target_residues
        if group.members and (len(group.members) == _GROUP_QUERIES or group.words + member.words > _GROUP_WORDS
                              or cells + more > _GROUP_CELLS):
            yield group
            group, cells = _Group(), 0
        group.members.append(member)
        group.words += member.words
        cells += more
    if group.members:
        yield group


@dataclass
class _Pass:
    """What the scans of a volume, or of all its parts, have in common.

    Attributes:
        keys: of the whole volume.
        share: of the targets, which other devices have the others of: the first one, and how many there are from one to
            the next.
        reach: residues of a target that what is looked for takes at most.
        need: what there is room for in ``space``.
        in_parts: these and ``space`` take all the budget.
        check: raises if the work is to end.
        classes: u1[targets] on the device, of each, where cutoffs differ by class.
        sent: what is on the device of groups of queries, by slot.
        many: numbers of the queries with which the sieve notes more than there is room for.
    """

    keys: Keys
    share: tuple[int, int]
    reach: int
    need: WorkSize
    space: Workspace
    in_parts: bool
    budget: int | None
    check: Callable[[], None]
    classes: Any
    sent: dict[int, "_Sent"] = field(default_factory=dict)
    many: set[int] = field(default_factory=set)


class DeviceScan:
    """A volume on the current device, or a part of one, and room to scan it.

    Keys of what is found, i8, are (number · targets + place) · span + diagonal + longest query, each once; those of an
    array are sorted.

    Args:
        first: target of the volume that is the first one here.
        number: of the part, counted from whichever one on.
    """

    def __init__(self, common: _Pass, volume: Volume, first: int, number: int) -> None:
        self._common, self._volume, self._before, self._number = common, volume, first * common.keys.span, number
        lengths = volume.target_order.lengths
        self._targets = len(lengths)
        self._classes = None if common.classes is None else common.classes[first : first + self._targets]
        self._residues = volume.residues.view(np.int32)
        self._arithmetic = packed_arithmetic()
        self._arrived = False

    def works(self, share: tuple[int, int]) -> int:
        """Targets of a share."""
        return len(range(share[0], self._targets, share[1]))

    def _send(self, group: _Group, slot: int) -> "_Sent":
        """A group of queries on the device; as it was, if it is there."""
        sent, space = self._common.sent, self._common.space
        if slot in sent and sent[slot].group is group:
            return sent[slot]
        scanned, rings = group.scanned, rings_of(tuple(group.sieved))
        tables = [query.profile.words for query in scanned] + [ring.table for ring in rings]
        limits = [_halves(query.cutoff) for query in scanned] + [ring.limits for ring in rings]
        words = max(self._common.need.query, sum(map(len, tables)))
        space.room(f"table {slot}", words, np.int32)  # at once for all groups to come
        sent[slot] = _Sent(group, scanned, rings, space.send(f"table {slot}", np.concatenate(tables)),
                           space.send(f"cutoffs {slot}", np.concatenate(limits)), _starts(tables), _starts(limits))
        return sent[slot]

    def begin(self, group: _Group, slot: int, share: tuple[int, int] | None = None, more: Any = None) -> "_Begun":
        """Queue the scan of a group of queries; notes go to ``more`` if there is any."""
        common, targets, share = self._common, self._targets, share or self._common.share
        space, stream = common.space, common.space.streams[slot]
        _, scanned, rings, table, cutoffs, begins, first_cutoffs = self._send(group, slot)
        tilings = [tiling(query.length) for query in scanned]
        launches = sum(shape.tiles for shape in tilings)
        counters = space.room(f"counters {slot}", launches, np.int32)
        found = space.room(f"found {slot}", found_room(targets) + 1, np.int64) if more is None else more
        clear(counters, launches, stream)
        clear(found, 1, stream)
        crossing = noted = found
        if max((shape.tiles for shape in tilings), default=0) > 1:
            crossing = space.room(f"crossing {slot}", crossing_words(targets, int(
                self._volume.target_order.lengths.sum())), np.int64)
        if rings:
            noted = space.room(f"noted {slot}", noted_words(targets, common.need.positions), np.int64)
        if not self._arrived:
            self._volume.arrived(space.streams)
            self._arrived = True
        room = Room(table, cutoffs, noted, found, self._classes)
        ranked, counter = self._ranked(share), 0
        for part, (begin, first_cutoff) in enumerate(zip(begins, first_cutoffs, strict=True)):
            common.check()
            if part < len(scanned):
                counting = counters, counter, crossing
                counter = self._scan(scanned[part], begin, first_cutoff, room, counting, ranked, stream)
            else:
                queue(rings[part - len(scanned)], begin, first_cutoff, ranked, common.keys, room, stream,
                      space.patient[slot])
        return _Begun(slot, share, found)

    @cached_property
    def _pieces(self) -> tuple[TargetWindows, Any]:
        """Of long targets; and these on the device."""
        order, space = self._volume.target_order, self._common.space
        pieces, there = windows_of(order, self._common.reach), order.begins
        if len(pieces.begins):
            name = f"pieces {self._number % 2}"
            space.prepare(name, 2 * MOST_PIECES, np.int64)
            there = space.send(name, np.concatenate([pieces.begins, pieces.owners]))
        return pieces, there

    def _ranked(self, share: tuple[int, int]) -> Ranked:
        """What is looked at, of a share of the targets."""
        return Ranked(self._volume.residues, self._volume.target_order, *self._pieces, *share)

    def _scan(self, query: Asked, begin: int, first_cutoff: int, room: Room, counting: tuple[Any, int, Any],
              ranked: Ranked, stream: Any) -> int:
        """Queue the kernels of all tiles of a query; gives the next counter.

        counting: counters, the first of them for this query, and the scores that cross between tiles.
        """
        shape, order, (counters, counter, crossing) = tiling(query.length), self._volume.target_order, counting
        classed, keys = self._classes is not None, self._common.keys
        least = 1 if classed else int(_halves(query.cutoff)[0])
        if shape.tiles > 1:
            ranked = ranked.whole()
        pieces = ranked.pieces
        for tile in range(shape.tiles):
            made, threads = scan_kernel(shape, classed, self._arithmetic)
            made[_blocks(), threads, stream](
                room.table, np.int32(begin + tile * shape.words), self._residues, order.ranked_there, order.begins,
                order.ends, ranked.pieces_there, np.int32(len(pieces.begins)), np.int32(pieces.cut),
                np.int32(pieces.length), np.int32(ranked.first), np.int32(ranked.step), np.int32(ranked.works),
                counters, np.int32(counter), crossing, np.int32(pair(least - 1)), np.int32(least),
                self._classes if classed else self._volume.residues, room.limits, np.int32(first_cutoff),
                np.int32(tile * shape.positions), np.int64(query.number * keys.targets), np.int64(keys.span),
                np.int32(keys.shift), room.found, np.int64(len(room.found) - 1))
            counter += 1
        return counter

    def finished(self, group: _Group, begun: "_Begun") -> list[np.ndarray]:
        """Keys of what is found."""
        slot, _, found = begun
        few, space = min(_FETCHED, len(found) - 1), self._common.space
        noted = space.fetch(found, 0, 1 + few, slot)
        total = int(noted[0])
        if total > len(found) - 1:
            return self._again(group, begun, total)
        if total > few:
            noted = to_host(found, 1 + total, np.int64, 1, space.streams[slot])
        keys = noted[1 : 1 + total].copy()
        keys.sort()
        return [keys[group_starts(keys)[:-1]] + self._before]

    def _again(self, group: _Group, begun: "_Begun", total: int) -> list[np.ndarray]:
        """More was noted than there is room for: the halves of the group; or one query with as much room as it takes,
        or share by share of the targets where there is no more room.

        The other groups' rooms are kept meanwhile.
        """
        (slot, (first, step), found), (leader, *others) = begun, group.members
        self._common.space.wait(slot)
        if others:
            half = len(group.members) // 2
            parts = [next(_groups(members, 0)) for members in (group.members[:half], group.members[half:])]
            return [keys for part in parts for keys in self.finished(part, self.begin(part, slot, begun.share))]
        if leader.sieve is not None:
            self._common.many.add(leader.query.number)
            return []
        if self._common.in_parts and (works := self._ranked(begun.share).works) > 1:
            shares = min(works, 2 * total // (len(found) - 1))
            return [keys for share in range(shares) for keys in self.finished(
                group, self.begin(group, slot, (first + share * step, shares * step)))]
        with device_memory().working_space(8 * (total + 1), self._common.budget, WHAT):
            more = cuda.device_array(total + 1, np.int64)
            return self.finished(group, self.begin(group, slot, begun.share, more))


def _starts(arrays: Sequence[np.ndarray]) -> list[int]:
    """Where each begins if they are put one behind the other."""
    return np.cumsum([0, *map(len, arrays)])[:-1].tolist()


def _halves(cutoff: int | np.ndarray) -> np.ndarray:
    """i4, bits of cutoffs as halves; those beyond what is told apart are taken for the ceiling."""
    return np.minimum(np.atleast_1d(cutoff), CEILING).astype(np.float16).view(np.uint16).astype(np.int32)


class _Sent(NamedTuple):
    """A group of queries on a device: what isn't sieved, rings of the others, tables and limits of all, and where those
    of each begin."""

    group: _Group
    scanned: list[Asked]
    rings: list[Ring]
    table: Any
    cutoffs: Any
    begins: list[int]
    first_cutoffs: list[int]


class _Begun(NamedTuple):
    """A group that is scanned for: on which stream, in which share of the targets, and where what is found stands."""

    slot: int
    share: tuple[int, int]
    found: Any


def crossing_words(targets: int, residues: int) -> int:
    """Of eight bytes, for scores that cross the border between tiles: targets begin in words of their own."""
    return residues // 4 + targets + 2


def found_room(targets: int) -> int:
    """Diagonals of a group of queries that there is room for."""
    return min(ROOM, max(LEAST_FOUND, 8 * targets))


class _Size(NamedTuple):
    """Of queries: their number, their residues, and those of the longest; and whether they are sieved."""

    queries: int
    residues: int
    longest: int
    sieved: bool

    @classmethod
    def of(cls, asked: Sequence[Asked], sieved: bool) -> "_Size":
        lengths = [query.length for query in asked]
        return cls(len(asked), sum(lengths), max(lengths, default=0), sieved)

    def need(self, targets: int, residues: int, longest: int) -> WorkSize:
        """Working space for them and so many targets; the same for all queries that need as much, so that it can be
        handed on.

        Its ``query`` are words that a group has on the device; its ``residues`` are 0 where no query has several tiles,
        and its ``positions`` where none is sieved.
        """
        queries = min(self.queries, _GROUP_QUERIES)
        if self.sieved:
            positions = self.residues + GAP * self.queries
            return WorkSize(targets, 0, longest, queries, min(_GROUP_WORDS, SIEVE_WORDS * positions),
                            positions).rounded()
        shape = tiling(max(1, self.longest))
        words = max(shape.words * shape.tiles,
                    min(_GROUP_WORDS, _POSITION_WORDS * self.residues + _QUERY_WORDS * self.queries))
        return WorkSize(targets, residues if shape.tiles > 1 else 0, longest, queries, words).rounded()

    def part_need(self, part: PartSize, longest: int) -> WorkSize:
        """The same for a part of a volume with that longest target: parts are larger as notes have less room."""
        need = self.need(part.targets, part.residues, longest)
        return need._replace(positions=min(need.positions, MOST_POSITIONS) * 3 // 8)

    def part(self, targets: int, residues: int, longest: int, rooms: Sequence[float]) -> PartSize:
        """The largest parts of a volume for which there is room beside what they need."""
        return part_size(residues, targets, longest, rooms, lambda part: working_bytes(self.part_need(part, longest)))


def _need_of_all(sizes: Iterable[_Size], targets: int, residues: int, longest: int) -> WorkSize:
    """Working space for the queries of all sizes, which are on the device together."""
    needs = [size.need(targets, residues, longest) for size in sizes]
    joined, queries, words = reduce(WorkSize.joined, needs), sum(n.queries for n in needs), sum(n.query for n in needs)
    return joined._replace(queries=queries, query=max(joined.query, min(_GROUP_WORDS, words)))


def working_bytes(need: WorkSize) -> int:
    """Device memory that a scan of that size takes at most, beside the volume."""
    crossing = 8 * crossing_words(need.stretches, need.residues) if need.residues else 0
    noted = 8 * noted_words(need.stretches, need.positions) if need.positions else 0
    launches = 4 * (_GROUP_QUERIES * (1 + 2 * _CLASSES) + need.query // 1024)
    each = crossing + noted + 4 * need.query + launches + 8 * (found_room(need.stretches) + 1)
    return (need.groups * each + 32 * MOST_PIECES + need.stretches + (1 << 16)) // 16 * 17


_SCAN, _SIEVE = (WorkKind(WHAT, lambda need, columns: working_bytes(need)) for _ in range(2))
"""Two kinds, since working space for one has no room for the other's arrays."""


def device_footprint(shape: Shape, host: int) -> Footprint:
    """What a stage needs that asks ``good_diagonals``, and so much of the host."""
    volume = shape.targets, shape.target_residues, shape.longest_target
    sizes = [_Size(shape.queries, shape.query_residues, shape.longest_query, sieved) for sieved in (False, True)]
    if shape_in_parts(shape) and shape.device_memory is not None:
        device = 0
        for size in sizes:
            part = size.part(*volume, rooms_for_parts(shape.device_memory, fills=True))
            device = max(device, part.nbytes + working_bytes(size.part_need(part, shape.longest_target)))
        return Footprint(host=host, device=device + shape.targets, in_turn=True)
    return Footprint(host=host, device=working_bytes(_need_of_all(sizes, *volume)))


@dataclass(frozen=True)
class _OneDevice:
    """What ``good_diagonals`` is asked for, but the queries and the share of the targets of each device.

    Attributes:
        longest: residues of the longest query.
    """

    targets: SequenceBatch
    classes: np.ndarray | None
    in_parts: bool
    budget: int | None
    check: Callable[[], None]
    done: Done
    count: Count
    longest: int

    @property
    def keys(self) -> Keys:
        return Keys(len(self.targets), self.longest + self.targets.longest + 1, self.longest)

    def found(self, part: tuple[Sequence[Asked], tuple[int, int]]) -> list[np.ndarray]:
        """Keys that a device finds for some queries in its share of the targets.

        Where the device has little room, those that are sieved and the others have it in turn; and those with which a
        sieve notes too much are scanned for afterwards.
        """
        asked, share = [query for query in part[0] if query.length], part[1]  # those without residues find nothing
        sieved = self._sieved(asked, share)
        numbers = {member.query.number for member in sieved}
        scanned = [_Member(query, None) for query in asked if query.number not in numbers]
        found, again = list[np.ndarray](), list[_Member]()
        for members in (scanned, sieved) if self.in_parts else (scanned + sieved,):
            keys, many = self._keys(members, share)
            found.append(keys)
            again += [_Member(query, None, again=True) for query, _, _ in members if query.number in many]
        return [*found, self._keys(again, share)[0]]

    def _sieved(self, asked: Sequence[Asked], share: tuple[int, int]) -> list[_Member]:
        """Queries that it is a gain to sieve."""
        if not asked or not can_sieve():
            return []
        size, targets = _Size.of(asked, True), self.targets
        parts = len(self._plan([size]).parts)
        if not fills(size.residues + GAP * len(asked), -(-len(targets) // (parts * share[1]))):
            return []
        shares = np.ones(1) if self.classes is None else self._shares(self.classes)
        members = [_Member(query, query.profile.sieve(query.cutoffs, shares[: len(query.cutoffs)])) for query in asked]
        # Alike go on a ring together.
        return sorted((m for m in members if m.sieve), key=lambda member: member.sieve.limit if member.sieve else 0)

    def _shares(self, classes: np.ndarray) -> np.ndarray:
        """f8[_CLASSES], of all residues, those of targets of each class: of some of the targets."""
        step = max(1, len(classes) // _SAMPLED)
        weights = np.bincount(classes[::step], self.targets.lengths[::step], _CLASSES)
        return weights / max(1, weights.sum())

    def _plan(self, sizes: Sequence[_Size], room: float | None = None) -> "_Plan":
        """room: bytes for parts, and for work on them; what is left for it beside others, when left out."""
        targets = self.targets
        volume = len(targets), targets.total_residues, targets.longest
        if not self.in_parts or self.budget is None:
            return _Plan(_need_of_all(sizes, *volume), None, [(0, len(targets))])
        size, = sizes
        part = size.part(*volume, rooms_for_parts(self.budget, fills=True) if room is None else (room,))
        return _Plan(size.part_need(part, targets.longest), part, part.cut(targets.offsets))

    @contextmanager
    def _volumes(self, sizes: Sequence[_Size], kind: WorkKind
                 ) -> Iterator[tuple["_Plan", Workspace, Iterator[tuple[int, Volume]]]]:
        """How the volume is gone through, working space, and volumes with the number of the first target of each."""
        memory, targets, plan = device_memory(), self.targets, self._plan(sizes)
        if plan.part is None or self.budget is None:
            with (memory.volume(targets, self.budget) as volume,
                  memory.workspace(kind, plan.need, self.budget, self.count) as space):
                yield plan, space, iter([(0, volume)])
            return
        with memory.turn(plan.part.nbytes + working_bytes(plan.need), self.budget, kind.fills) as room:
            plan = self._plan(sizes, room)
            assert plan.part is not None
            batches = (targets.take(*part) for part in plan.parts)
            with memory.parts(batches, plan.part, kind, plan.need, self.budget, self.count) as (space, volumes):
                yield plan, space, ((first, next(volumes)) for first, _ in plan.parts)

    def _keys(self, members: Sequence[_Member], share: tuple[int, int]) -> tuple[np.ndarray, set[int]]:
        """Keys of what is found of queries, and the numbers of those with which a sieve notes too much: of them there
        are none."""
        if not members:
            return np.empty(0, np.int64), set()
        sizes = [_Size.of(asked, sieved) for sieved in (True, False)
                 if (asked := [member.query for member in members if (member.sieve is not None) == sieved])]
        with self._volumes(sizes, _SIEVE if sizes[0].sieved else _SCAN) as (plan, space, volumes):
            classes = None if self.classes is None else space.send("classes", self.classes)
            common = _Pass(self.keys, share, sizes[0].longest, plan.need, space, plan.part is not None, self.budget,
                           self.check, classes)
            found = list(self._found(members, common, volumes, len(plan.parts)))
        keys = np.concatenate([np.empty(0, np.int64), *found])
        if common.many:
            keys = keys[~np.isin(keys // (self.keys.span * self.keys.targets), list(common.many))]
        return keys, common.many

    def _found(self, members: Sequence[_Member], common: _Pass, volumes: Iterator[tuple[int, Volume]], parts: int
               ) -> Iterator[np.ndarray]:
        """Keys of what is found in volumes, while the device is at work on the next group, or the next volume."""
        waiting, slots = deque[tuple[int, DeviceScan, _Group, _Begun]](), cycle(range(len(common.space.streams)))
        residues, groups, left = -(-self.targets.total_residues // parts), list[_Group](), -1

        def finish() -> list[np.ndarray]:
            _, scan, group, begun = waiting.popleft()
            found = scan.finished(group, begun)
            self.done(sum(not member.again for member in group.members) / parts)
            return found

        for number, (first, volume) in enumerate(volumes):
            if left != len(common.many):
                left = len(common.many)
                groups = list(_groups((m for m in members if m.query.number not in common.many), residues))
            scan = DeviceScan(common, volume, first, number)
            for group in groups if scan.works(common.share) else ():
                if len(waiting) == len(common.space.streams):
                    yield from finish()
                waiting.append((first, scan, group, scan.begin(group, next(slots))))
            while waiting and waiting[0][0] < first:
                yield from finish()
        while waiting:
            yield from finish()


class _Plan(NamedTuple):
    """How a volume is gone through: what work on it, or on a part, needs, how large parts are where there are any, and
    first and last but one target of each."""

    need: WorkSize
    part: PartSize | None
    parts: list[tuple[int, int]]


def good_diagonals(asked: Sequence[Asked], targets: SequenceBatch, budget: int | None = None,
                   check: Callable[[], None] = lambda: None, done: Done = lambda count: None,
                   classes: np.ndarray | None = None, count: Count = lambda what, number: None,
                   on: Sequence[int] | None = None, by_parts: bool = False
                   ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Diagonals on which some segment scores a query's cutoff or more; at cutoffs beyond ``CEILING``, at least that.

    Several devices share the work: many queries by query, few by target.

    Args:
        asked: with rising numbers.
        budget: bytes of each device.
        check: raises if the work is to end.
        done: called with the number of queries that are through; part of a number, where they are through with a part
            of the targets.
        classes: u1[targets], of each, where cutoffs differ by class.
        count: as of ``DeviceMemory.workspace``.
        on: numbers of the devices; all, when left out.
        by_parts: of the targets, as large as the budget has room for; else all of them are on a device.

    Returns:
        Number i8[n] of the query, place i8[n] of the target and diagonal i8[n] (target minus query position), sorted,
        each once.
    """
    numbers_of_devices = range(device_count()) if on is None else on
    devices = len(numbers_of_devices)
    longest = max((query.length for query in asked), default=0)
    by_query = len(asked) >= 2 * devices
    parts = [(asked[d::devices], (0, 1)) if by_query else (asked, (d, devices)) for d in range(devices)]
    one = _OneDevice(targets, classes, by_parts, budget, check, done, count, longest)
    found = [keys for part in on_devices(one.found, parts, numbers_of_devices) for keys in part]
    keys = np.concatenate([np.empty(0, np.int64), *found])
    if (keys[1:] <= keys[:-1]).any():
        keys = distinct(keys)  # pieces of a target may be of several shares
    pairs, diagonals = np.divmod(keys, one.keys.span)
    numbers, places = np.divmod(pairs, max(1, len(targets)))
    return numbers, places, diagonals - longest


def can_scan() -> bool:
    """Whether the current device has the instructions: of compute capability 8.0."""
    if SIMULATED:
        return True
    device_count()  # the driver is open then, whoever opens it
    return bool(cuda.get_current_device().compute_capability >= (8, 0))


@cache
def _blocks() -> int:
    """Blocks that fill the device, or more; warps fetch their work, so the number changes no result."""
    return 1 if SIMULATED else int(cuda.get_current_device().MULTIPROCESSOR_COUNT) * 8
