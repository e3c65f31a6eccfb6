"""Targets on a CUDA device, and what is asked of them: scores of all, ends and beginnings of some.

Stretches of targets are taken longest first, two to a register. Queries go to the device in groups, two groups at a
time, so that it needn't wait for the host between two queries, nor for its own last warps. Scores stay there, where
those that may count are picked out; what overflows sixteen bits is scored again in thirty-two. Beyond that the host
takes over.

A kernel is brought to a device before anything is queued, since the device finishes all its work before it takes one.
All that a unit of work needs but its residues is made ready while these are on their way.
"""

import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import cache, lru_cache
from typing import Any

import numpy as np
from numba import cuda as _cuda
from numba import int32, int64
from seqloom.core.backends import current_device
from seqloom.core.classes import NamedTuple, dataclass
from seqloom.core.context import Scoring
from seqloom.core.cuda.jit import kernel as kept_kernel
from seqloom.core.cuda.transfer import clear, make_wait
from seqloom.core.kernels.packed16 import SIMULATED, Arithmetic, has_packed_maxima, packed_arithmetic
from seqloom.core.sequences import SequenceBatch
from seqloom.plugins.common.resident_cuda import Volume, device_memory
from seqloom.plugins.common.stretches_cpu import Stretches
from seqloom.plugins.common.target_order_cuda import BYTES_PER_COLUMN, Borders, SplitTargets, TargetOrder
from seqloom.plugins.common.workspace_cuda import WorkKind, WorkSize, Workspace

from .recurrence_cuda import (
    BEST,
    FIRST,
    LAST,
    LAST_PLACE,
    RESIDUES,
    SINGLE,
    TABLE_WORDS,
    WARPS,
    Place,
    ScoreFormat,
    Tiling,
    kernel,
    numbers,
    place_of,
    query_profiles,
    tiling,
)

cuda: Any = _cuda
_GROUP_QUERIES = 16
"""Queries that are sent to the device together, at most."""
_GROUP_SCORES = 1 << 22
"""Scores of all of them, at most, if there is more than one query."""
_GROUP_WORDS = 1 << 19
"""Words of their profiles likewise."""
_KEPT = 1 << 16
"""Scores that are picked out of a group without a second attempt."""
_FETCHED = 1 << 10
"""Of them, those that are fetched with their number."""
_FEW_COLUMNS = 1 << 18
"""Columns whose borders are kept where queries of several tiles are rare: those that are scored again."""
_LEAST_COLUMNS = 1 << 22
"""Columns whose borders are kept otherwise, where memory is short: with fewer the device would often wait for the last
of them."""
_SELECTING = 256


def select(scores, stride, count, queries, table, limits, capacity):
    """Kernel: scores of at least the limit of their query, with their places, in any order.

    Args:
        scores: i4[queries · stride], of which ``count`` of each query are compared.
        table: i8; from ``limits`` on one of each query, behind them the number of scores found, which is 0 before, and
            behind that the first ``capacity`` of them: place · 2^32 + score.
    """
    place = int32(cuda.grid(1))
    if place < queries * stride:
        query = int32(place // stride)
        score = scores[place]
        if place - query * stride < count and score >= table[limits + query]:
            total = limits + queries
            number = cuda.atomic.add(table, total, int64(1))
            if number < capacity:
                table[total + 1 + number] = (int64(place) << int64(32)) | int64(score)


def join(pieces, few, cut, ranked, bounds, count, all_ranked, begins, ends):
    """Kernel: pieces of targets before the targets that aren't cut.

    Args:
        pieces: i8[2 · few], where they begin and end.
        ranked, bounds: i4 and i8, of ``count`` targets, as of ``TargetOrder``; pieces are of the first ``cut`` of the
        ranks. all_ranked, begins, ends: filled, as of ``TargetOrder`` with ``SplitTargets``.
    """
    n = int32(cuda.grid(1))
    if n < count:
        begins[n] = bounds[n]
        ends[n] = bounds[n + 1]
    elif n < count + few:
        begins[n] = pieces[n - count]
        ends[n] = pieces[n - count + few]
    if n < few:
        all_ranked[n] = count + n
    elif n <= count + few - cut:
        all_ranked[n] = ranked[n - few + cut]


@cache
def _compiled(simple: Callable[..., None]) -> Any:
    return kept_kernel()(simple)


class ScoredTargets(NamedTuple):
    """Numbers of stretches i8[k], ascending, and their scores i8[k]."""

    numbers: np.ndarray
    scores: np.ndarray


_NOTHING = np.empty(0, np.uint8)


class _Variant(NamedTuple):
    """A kernel for best scores."""

    device: int
    rows: int
    lanes: int
    way: ScoreFormat
    bordered: bool
    continued: bool


_brought: set[_Variant] = set()
"""Kernels that are on a device. Those of other gap costs are brought there when they are first needed."""


def _variants(length: int, way: ScoreFormat) -> list[_Variant]:
    """Kernels that a query residue sequence of that length takes on the current device."""
    if not length:
        return []
    device = current_device()
    shape = tiling(length, way.arithmetic.numbers)
    last = len(shape.rows) - 1
    return [_Variant(device, rows, shape.lanes, way._replace(ceiling=0), tile > 0, tile < last)
            for tile, rows in enumerate(shape.rows)]


class ScoreRequest(NamedTuple):
    """What is asked of a query: stretches whose best score with any of its strands, u8[m], is ``least`` or more."""

    strands: Sequence[np.ndarray]
    least: int


class _Tiles(NamedTuple):
    """A query residue sequence as kernels take it: its shape, and where each tile's profile begins in what is sent."""

    shape: Tiling
    words: list[int]


@dataclass
class _Group:
    """Queries that are on the device together.

    Attributes:
        members: of each its place among all that are asked, what is asked, and its ways of computing.
        profiles: of all tiles of all strands, side by side.
        tiles: of each strand of each query.
        slot: which of the two rooms the group takes.
        words: of all profiles.
    """

    members: list[tuple[int, ScoreRequest, list[ScoreFormat]]]
    profiles: list[np.ndarray]
    tiles: list[list[_Tiles]]
    slot: int
    words: int = 0


class DeviceTargets:
    """The stretches of a volume that one device works on, and its working space. Use ``on_device_targets``.

    Args:
        volume: what ``stretches`` are cut from.
        chosen: i8[k], ascending numbers of the stretches that are asked for.
        residues: of all of them, those of pieces for those of the targets that these stand for.
        pieces: of the longest ones, where all targets are asked for.
    """

    def __init__(self, volume: Volume, stretches: Stretches, chosen: np.ndarray, residues: int, space: Workspace,
                 check: Callable[[], None], pieces: SplitTargets | None = None) -> None:
        self._residues, self._stretches, self._space, self._check = volume.residues, stretches, space, check
        self._volume, self._arrived = volume, False
        self._residues_asked_for = residues
        self._packed = packed_arithmetic() if has_packed_maxima() else SINGLE
        # Borders are in the working space, since they depend on how many columns it has room for.
        if not (stretches.whole and len(chosen) == len(stretches)):
            self._works = self._sorted("all", chosen, stretches.begins[chosen], stretches.lengths[chosen])
        elif pieces is None:
            self._works = replace(volume.target_order, send=self._sender("all"))
        else:
            count, few = len(stretches), len(pieces.begins)
            self._works = replace(
                volume.target_order, send=self._sender("all"), pieces=pieces,
                ranked_there=space.room("all ranked", count + few - pieces.cut + 1, np.int32),
                begins=space.room("all begins", count + few, np.int64),
                ends=space.room("all ends", count + few, np.int64))
            self._ends_of_pieces = space.send("all pieces", np.concatenate(
                [pieces.begins, pieces.begins + pieces.lengths]))
        self.cells = 0
        self.beyond = 0

    def _sorted(self, name: str, chosen: np.ndarray, first_residues: np.ndarray, lengths: np.ndarray) -> TargetOrder:
        return TargetOrder.of(np.asarray(chosen, np.int64), first_residues, lengths, self._sender(name))

    def _bounds(self, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """i8[k]: first residues and lengths of stretches and pieces."""
        begins, lengths = self._stretches.begins, self._stretches.lengths
        pieces, count = self._works.pieces, len(begins)
        if not pieces:
            return begins[numbers], lengths[numbers]
        a_piece, whole = numbers >= count, np.minimum(numbers, count - 1)
        piece = np.maximum(numbers - count, 0)
        return (np.where(a_piece, pieces.begins[piece], begins[whole]),
                np.where(a_piece, pieces.lengths[piece], lengths[whole]))

    def _put_together(self, found: ScoredTargets) -> ScoredTargets:
        """The best of the pieces of each target, in place of all of them."""
        pieces, count = self._works.pieces, len(self._stretches)
        if not pieces:
            return found
        owners = np.where(found.numbers < count, found.numbers, pieces.owners[np.maximum(found.numbers - count, 0)])
        order = np.argsort(owners, kind="stable")
        owners, scores = owners[order], found.scores[order]
        firsts = np.flatnonzero(np.diff(owners, prepend=-1))
        return ScoredTargets(owners[firsts], np.maximum.reduceat(scores, firsts) if len(firsts) else scores)

    def _sender(self, name: str) -> Callable[[str, np.ndarray], Any]:
        return lambda what, array: self._space.send(f"{name} {what}", array)

    def _launch(self, simple: Callable[..., None], size: int, stream: Any, *arguments: Any) -> None:
        """Start a kernel that has a thread for each of ``size`` numbers."""
        _compiled(simple)[-(-size // _SELECTING), _SELECTING, stream](*arguments)

    def _cleared(self, name: str, size: int, dtype: Any, counters: str, few: int, stream: Any) -> tuple[Any, Any]:
        """Rooms of two names, with zeros: ``size`` of a type, and ``few`` counters."""
        arrays = self._space.room(name, size, dtype), self._space.room(counters, few, np.int32)
        clear(arrays[0], size, stream)
        clear(arrays[1], few, stream)
        return arrays

    def _ways(self, query: np.ndarray, scoring: Scoring, goal: int) -> list[ScoreFormat]:
        assert scoring.matrix is not None
        seen = scoring.matrix[np.unique(query)]
        if max(len(query), self._works.longest) > LAST_PLACE and goal != BEST:
            return []
        # A gap residue can't be in a sequence: its score doesn't count.
        return numbers(scoring, int(seen[:, 1:].min(initial=0)), int(seen.max(initial=0)), goal, self._packed,
                       len(query))

    def _run(self, target_order: TargetOrder, tiles: _Tiles, scoring: Scoring, way: ScoreFormat, goal: int,
             profiles: Any, counters: Any,
             counter: int, found: Any, found_first: int, slot: int, backwards: bool = False) -> int:
        """Queue kernels for the best of every work with all rows of a query; gives the next counter.

        ``found`` is on the device, in the order of the works; counters are 0.
        """
        together = way.arithmetic.numbers
        parts = [(0, -(-len(target_order) // together))]
        crossing = places = profiles  # of which one tile uses none
        last_tile = len(tiles.shape.rows) - 1
        if last_tile:
            parts, places, most = self._borders(target_order, way)
            crossing = self._space.room(f"crossing {slot}", most + 1, np.int64)
        self._arrive()
        for begin, end in parts:
            for tile, (rows, first) in enumerate(zip(tiles.shape.rows, tiles.shape.firsts, strict=True)):
                self._check()
                made = kernel(rows, tiles.shape.lanes, way, scoring, goal, tile > 0, tile < last_tile, backwards)
                made[_blocks(), 32 * WARPS, self._space.streams[slot]](
                    profiles, tiles.words[tile], self._residues, target_order.ranked_there, target_order.begins,
                    target_order.ends,
                    places, np.int32(begin), np.int32(end - begin), counters, np.int32(counter), crossing,
                    np.int32(1), np.int32(1 << 16), np.int32(first), found, found_first)
                counter += 1
        return counter

    def _arrive(self) -> None:
        """Have what will be queued wait for the residues: all that comes before needn't."""
        if not self._arrived:
            self._volume.arrived(self._space.streams)
            self._arrived = True
            if pieces := self._works.pieces:
                self._join(pieces)

    def _join(self, pieces: SplitTargets) -> None:
        """Queue what puts pieces before targets."""
        target_order, all_, (first, *others) = self._volume.target_order, self._works, self._space.streams
        count, few = np.int32(len(self._stretches)), np.int32(len(pieces.begins))
        self._launch(join, int(count) + int(few), first, self._ends_of_pieces, few, np.int32(pieces.cut),
                     target_order.ranked_there, target_order.begins, count, all_.ranked_there, all_.begins, all_.ends)
        make_wait(first, others)

    def _borders(self, target_order: TargetOrder, way: ScoreFormat) -> Borders:
        return target_order.borders(way.arithmetic.numbers, self._space.columns)

    def _launches(self, target_order: TargetOrder, tiles: _Tiles, way: ScoreFormat) -> int:
        """Kernels that are launched for one strand of a query."""
        count = len(tiles.words)
        return count * len(self._borders(target_order, way).parts) if count > 1 else 1

    def scores(self, asked: Sequence[ScoreRequest], scoring: Scoring) -> list[ScoredTargets]:
        """What is asked of each of some queries."""
        found = [ScoredTargets(np.empty(0, np.int64), np.empty(0, np.int64))] * len(asked)
        ways = [self._ways(max(query.strands, key=len, default=_NOTHING), scoring, BEST) for query in asked]
        self._bring({variant for query, way in zip(asked, ways, strict=True) if way and len(self._works)
                     for strand in query.strands for variant in _variants(len(strand), way[0])}, scoring)
        waiting: deque[tuple[_Group, Any]] = deque()
        for group in self._groups(asked, ways, scoring, found):
            waiting.append((group, self._begin(group, scoring)))
            if len(waiting) == 2:
                self._finish(*waiting.popleft(), scoring, found)
        while waiting:
            self._finish(*waiting.popleft(), scoring, found)
        return [self._put_together(of_query) for of_query in found]

    def _bring(self, variants: "set[_Variant]", scoring: Scoring) -> None:
        """Have these kernels on the device, by starting them with nothing to do."""
        missing = sorted(variants - _brought, key=str)
        if not missing:
            return
        space, nothing = self._space, np.int32(0)
        profiles = space.room("table 0", RESIDUES * TABLE_WORDS, np.int64)
        found, counters = self._cleared("scores 0", 1, np.int32, "counters 0", 1, space.streams[0])
        for variant in missing:
            self._check()
            made = kernel(variant.rows, variant.lanes, variant.way, scoring, BEST, variant.bordered,
                          variant.continued)
            made[1, 32 * WARPS, space.streams[0]](
                profiles, 0, self._residues, self._works.ranked_there, self._works.begins, self._works.ends,
                profiles, nothing, nothing, counters, nothing, profiles, np.int32(1), np.int32(1 << 16), nothing,
                found, 0)
            _brought.add(variant)

    def _groups(self, asked: Sequence[ScoreRequest], all_ways: Sequence[list[ScoreFormat]], scoring: Scoring,
                found: list[ScoredTargets]) -> Iterator[_Group]:
        """Queries for the device, in groups; what it can't do is put into ``found``."""
        count = len(self._works)
        assert scoring.matrix is not None
        group = _Group([], [], [], 0)
        for number, (query, ways) in enumerate(zip(asked, all_ways, strict=True)):
            if not count or not any(map(len, query.strands)):
                if query.least <= 0:
                    found[number] = ScoredTargets(np.sort(self._works.order), np.zeros(count, np.int64))
                continue
            if not ways:
                found[number] = self._on_the_host(self._works.order, query, scoring)
                continue
            made = [_profiles(strand.tobytes(), scoring.matrix.tobytes(), len(scoring.matrix), ways[0].arithmetic)
                    for strand in query.strands]
            words = sum(len(profile) for strand in made for profile in strand)
            if group.members and (len(group.members) == _GROUP_QUERIES or group.words + words > _GROUP_WORDS
                                  or (len(group.members) + 1) * (count + 1) > _GROUP_SCORES):
                yield group
                group = _Group([], [], [], 1 - group.slot)
            group.members.append((number, query, ways))
            tiles = []
            for strand, parts in zip(query.strands, made, strict=True):
                begins = group.words + np.cumsum([0, *map(len, parts)])
                tiles.append(_Tiles(tiling(len(strand), ways[0].arithmetic.numbers), begins[:-1].tolist()))
                group.profiles += parts
                group.words = int(begins[-1])
            group.tiles.append(tiles)
        if group.members:
            yield group

    def _begin(self, group: _Group, scoring: Scoring) -> Any:
        """Queue all work on a group; gives the table of its profiles, limits and what is picked out of its scores."""
        slot, stream = group.slot, self._space.streams[group.slot]
        stride = len(self._works) + 1
        table = self._space.send(f"table {slot}", np.concatenate([*group.profiles, self._limits(group)]), _KEPT)
        launches = sum(self._launches(self._works, strand, ways[0])
                       for (_, _, ways), tiles in zip(group.members, group.tiles, strict=True) for strand in tiles)
        scores, counters = self._cleared(f"scores {slot}", stride * len(group.members), np.int32, f"counters {slot}",
                                         launches, stream)
        counter = 0
        for n, ((_, _, ways), tiles) in enumerate(zip(group.members, group.tiles, strict=True)):
            for strand in tiles:
                counter = self._run(self._works, strand, scoring, ways[0], BEST, table, counters, counter, scores,
                                    n * stride, slot)
        self._select(group, table, group.words, _KEPT)
        return table

    def _limits(self, group: _Group) -> list[int]:
        """From which score on each query asks for stretches, and the number of those that are found before."""
        # What is at a ceiling may be anything above it.
        return [*(min(query.least, ways[0].ceiling) for _, query, ways in group.members), 0]

    def _select(self, group: _Group, table: Any, limits: int, capacity: int) -> None:
        """Queue the choice of scores into a table that has the limits from a place on."""
        slot, count, queries = group.slot, len(self._works), len(group.members)
        scores = self._space.room(f"scores {slot}", queries * (count + 1), np.int32)
        self._launch(select, queries * (count + 1), self._space.streams[slot], scores, np.int32(count + 1),
                     np.int32(count), np.int32(queries), table, np.int32(limits), np.int32(capacity))

    def _picked(self, group: _Group, table: Any) -> np.ndarray:
        """i8: the scores chosen from a group, with their places, in order; waits for the group."""
        first = group.words + len(group.members)
        picked = self._space.fetch(table, first, first + 1 + min(_FETCHED, _KEPT), group.slot)
        total = int(picked[0])
        if total > _KEPT:
            limits = np.array(self._limits(group), np.int64)
            table, first = self._space.send(f"table {group.slot}", limits, total), len(group.members)
            self._select(group, table, 0, total)
        if total > min(_FETCHED, _KEPT):
            picked = self._space.fetch(table, first, first + 1 + total, group.slot)
        return np.sort(picked[1 : 1 + total])

    def _finish(self, group: _Group, table: Any, scoring: Scoring, found: list[ScoredTargets]) -> None:
        """Wait for a group and put what it gave into ``found``."""
        picked = self._picked(group, table)
        places, scores = picked >> 32, picked & 0xFFFFFFFF
        stride = len(self._works) + 1
        bounds = np.searchsorted(places, np.arange(len(group.members) + 1) * stride)
        for n, (number, query, ways) in enumerate(group.members):
            mine = slice(bounds[n], bounds[n + 1])
            part = ScoredTargets(self._works.at(places[mine] - n * stride), scores[mine])
            again = part.scores >= ways[0].ceiling
            if again.any():
                self.beyond += int(again.sum())
                wide = self._again(part.numbers[again], query, scoring, ways[1:], group.slot)
                sure = (column[~again] for column in part)
                part = ScoredTargets(*(np.concatenate(both) for both in zip(sure, wide, strict=True)))
            order = np.argsort(part.numbers, kind="stable")
            found[number] = ScoredTargets(part.numbers[order], part.scores[order])
            self.cells += sum(map(len, query.strands)) * self._residues_asked_for

    def _alone(self, query: np.ndarray, scoring: Scoring, way: ScoreFormat, slot: int) -> tuple[_Tiles, Any]:
        """One query on the device."""
        assert scoring.matrix is not None
        shape = tiling(len(query), way.arithmetic.numbers)
        made = query_profiles(query, scoring.matrix, shape, way.arithmetic)
        begins = np.cumsum([0, *map(len, made)])[:-1].tolist()
        return _Tiles(shape, begins), self._space.send(f"table {slot}", np.concatenate(made))

    def _best(self, name: str, target_order: TargetOrder, query: np.ndarray, scoring: Scoring, way: ScoreFormat,
              goal: int, slot: int, backwards: bool = False, before: Any = None) -> Any:
        """Best of every work for one query, done or not yet, kept where larger than ``before``."""
        dtype = np.int32 if goal == BEST else np.int64
        work = len(query) and len(target_order)
        tiles, profiles = self._alone(query, scoring, way, slot) if work else (None, None)
        found, counters = self._cleared(name, len(target_order) + 1 if before is None else 0, dtype, f"counters {slot}",
                                        self._launches(target_order, tiles, way) if tiles else 1,
                                        self._space.streams[slot])
        if tiles:
            self._run(target_order, tiles, scoring, way, goal, profiles, counters, 0, found, 0, slot, backwards)
        self._space.wait(slot)
        return found

    def _again(self, chosen: np.ndarray, query: ScoreRequest, scoring: Scoring, ways: list[ScoreFormat],
               slot: int) -> ScoredTargets:
        """As ``scores``, of some stretches, in wider numbers."""
        if not ways:
            return self._on_the_host(chosen, query, scoring)
        target_order = self._sorted("again", chosen, *self._bounds(chosen))
        found: Any = None
        for strand in query.strands:
            found = self._best("again", target_order, strand, scoring, ways[0], BEST, slot, before=found)
        scores = self._space.fetch(found, 0, len(chosen), slot).astype(np.int64)
        high = np.flatnonzero(scores >= query.least)
        return ScoredTargets(target_order.at(high), scores[high])

    def _on_the_host(self, chosen: np.ndarray, query: ScoreRequest, scoring: Scoring) -> ScoredTargets:
        """Scores that 32 bits may not hold."""
        from seqloom.plugins.smith_waterman.recurrence_cpu import Profile
        from seqloom.plugins.smith_waterman.wavefront_cpu import scalar_score

        profiles = [Profile(strand, scoring, np.arange(RESIDUES - 4)[: scoring.matrix.shape[1]])  # type: ignore[union-attr]
                    for strand in query.strands]
        scores = np.zeros(len(chosen), np.int64)
        for n, (begin, length) in enumerate(zip(*(bounds.tolist() for bounds in self._bounds(chosen)), strict=True)):
            self._check()
            target = self._stretches.residues[begin : begin + length]
            scores[n] = max(scalar_score(p.rows, p.places, target, scoring.gap_open, scoring.gap_extend)
                            for p in profiles)
        high = scores >= query.least
        numbers_, scores = chosen[high], scores[high]
        order = np.argsort(numbers_, kind="stable")
        return ScoredTargets(numbers_[order], scores[order])

    def best_cells(self, query: np.ndarray, scoring: Scoring) -> Any:
        """What kernels note of the first best cell of every stretch, on the device, in the order of the works."""
        way = self._ways(query, scoring, FIRST)[0]
        return self._best("places", self._works, query, scoring, way, FIRST, 0)

    def ends(self, query: np.ndarray, scoring: Scoring, chosen: np.ndarray) -> Place | None:
        """The first best cell of each chosen stretch: smallest row of u8[m] ``query``, then smallest column.

        None where scores or lengths are beyond what the device takes.
        """
        return self._places(query, scoring, chosen, self._stretches.begins, self._stretches.lengths, FIRST)

    def reaches(self, query: np.ndarray, scoring: Scoring, chosen: np.ndarray, ends: Place) -> np.ndarray | None:
        """i8[k]: how many residues before its end (that residue counted) any best alignment that ends there can begin.

        ``query`` is the one that ``ends`` are of; its rows beyond an end can only add to the number.
        """
        lengths = np.zeros(len(self._stretches), np.int64)
        lengths[chosen] = ends.column + 1
        last = self._stretches.begins + lengths - 1
        found = self._places(query[::-1], scoring, chosen, last, lengths, LAST)
        return None if found is None else found.column + 1

    def _places(self, query: np.ndarray, scoring: Scoring, chosen: np.ndarray, first_residues: np.ndarray,
                lengths: np.ndarray, goal: int) -> Place | None:
        """Places of the chosen stretches in their order."""
        ways = self._ways(query, scoring, goal)
        chosen = np.asarray(chosen, np.int64)
        result = np.zeros(len(self._stretches), np.int64)
        left = chosen
        for way in ways:
            target_order = self._sorted("some", left, first_residues[left], lengths[left])
            found = self._best("places", target_order, query, scoring, way, goal, 0, backwards=goal == LAST)
            self.cells += len(query) * int(target_order.lengths.sum())
            places = self._space.fetch(found, 0, len(left))
            result[target_order.order] = places
            left = np.sort(target_order.at(np.flatnonzero(place_of(places, goal).score >= way.ceiling)))
            if not len(left):
                return place_of(result[chosen], goal)
        return None


@lru_cache(8)
def _profiles(query: bytes, matrix: bytes, size: int, arithmetic: Arithmetic) -> list[np.ndarray]:
    """Profiles of all tiles of a query, which every volume asks for."""
    scores = np.frombuffer(matrix, np.int32).reshape(size, size)
    shape = tiling(len(query), arithmetic.numbers)
    return query_profiles(np.frombuffer(query, np.uint8), scores, shape, arithmetic)


_EXACT = WorkKind("exact Smith–Waterman on the device", lambda need, columns: working_bytes(need, columns),
                  lambda need: border_columns(need))
_alone: Any = threading.RLock() if SIMULATED else nullcontext()
"""The simulator runs one kernel at a time."""


@contextmanager
def on_device_targets(batch: SequenceBatch, stretches: Stretches, chosen: np.ndarray, queries: int, longest_query: int,
                      budget: int | None, check: Callable[[], None], reach: int | None = None
                      ) -> Iterator[DeviceTargets]:
    """Stretches of a volume with their residues on the current device, for so many queries at a time.

    Args:
        reach: residues that an alignment can take. Where all targets are asked for, those that are much longer are then
            scored in pieces; ends and beginnings aren't asked for.

    Raises:
        BudgetError: residues and working space don't fit ``budget`` bytes.
    """
    memory = device_memory()
    with _alone, memory.volume(batch, budget) as volume:
        pieces, count = None, len(chosen)
        if stretches.whole and count == len(stretches):
            residues, longest = batch.total_residues, batch.longest
            if pieces := volume.target_order.split_longest(batch.offsets[:-1], reach):
                replaced = batch.lengths[volume.target_order.ranked[: pieces.cut]]
                residues += int(pieces.lengths.sum()) - int(replaced.sum())
                count, longest = count + len(pieces.begins) - pieces.cut, int(pieces.lengths[0])
        else:
            lengths = stretches.lengths[chosen]
            residues, longest = int(lengths.sum()), int(lengths.max(initial=0))
        need = WorkSize(count, residues, longest, queries, longest_query).rounded()
        with memory.workspace(_EXACT, need, budget) as space:
            yield DeviceTargets(volume, stretches, chosen, residues, space, check, pieces)


def border_columns(need: WorkSize) -> tuple[int, int]:
    """Columns whose border between two tiles of a query is kept at a time: at least, and at most.

    Those of every second stretch, with which a register's other one shares them; few where queries have one tile.
    """
    few = len(tiling(need.query, 2).rows) == 1
    most = max(need.longest, min(need.residues, _FEW_COLUMNS) if few else -(-(need.residues + need.longest) // 2))
    return min(most, max(need.longest, _LEAST_COLUMNS)), most


def working_bytes(need: WorkSize, columns: int | None = None) -> int:
    """Device memory that work of that size takes at most, beside the residues of targets: bounds, scores, borders.

    columns: whose borders there is room for; the least, if not given.
    """
    need = need.rounded()
    count, together = need.stretches + 2, min(need.queries, _GROUP_QUERIES)
    scores = max(count, min(together * count, _GROUP_SCORES))
    one = 2 * 8 * RESIDUES * TABLE_WORDS * len(tiling(need.query, 1).rows)  # two strands
    profiles = max(one, min(together * one, 8 * _GROUP_WORDS))
    borders = BYTES_PER_COLUMN * (border_columns(need)[0] if columns is None else columns)
    # Beside what groups take, bounds of works three times; rooms may be a sixteenth larger than asked for.
    group = 4 * scores + 8 * max(_KEPT, scores) + profiles + borders
    return (need.groups * group + 88 * count + (2 << 20)) // 16 * 17


@cache
def _blocks() -> int:
    """Blocks that fill the device, or more; warps fetch their work, so the number changes no result."""
    if SIMULATED:
        return 1
    return int(cuda.get_current_device().MULTIPROCESSOR_COUNT) * 8


__all__ = ["DeviceTargets", "ScoreRequest", "ScoredTargets", "on_device_targets", "working_bytes"]
