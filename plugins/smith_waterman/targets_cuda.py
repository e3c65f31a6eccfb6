"""Targets on a CUDA device, and what is asked of them: scores of all, ends and beginnings of some.

Stretches of targets are taken longest first, two to a register. Scores stay on the device, where those that may count
are picked out; what overflows sixteen bits is scored again there in thirty-two. Beyond that the host takes over.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numba import cuda as _cuda
from numba import int32
from seqloom.core.context import Scoring
from seqloom.core.packed16 import SIMULATED, has_packed_maxima, packed_arithmetic
from seqloom.core.sequences import SequenceBatch
from seqloom.plugins.smith_waterman.recurrence_cuda import (
    BEST,
    FIRST,
    LAST,
    LAST_PLACE,
    LETTERS,
    SINGLE,
    WARPS,
    Numbers,
    Place,
    kernel,
    numbers,
    place_of,
    query_profiles,
    tiling,
)
from seqloom.plugins.smith_waterman.resident_cuda import Volume, Works, device_memory
from seqloom.plugins.smith_waterman.stretches_cpu import Stretches

cuda: Any = _cuda
_BORDER_COLUMNS = 1 << 28
"""Columns whose border between two tiles of a query is kept at most, 8 bytes each; longer work is taken in parts."""
_SELECTING = 256


def select(scores, count, least, ceiling, kept, beyond, totals):
    """Kernel: numbers of targets that reach ``ceiling`` to ``beyond``, of others that reach ``least`` to ``kept``."""
    number = int32(cuda.grid(1))
    if number < count:
        score = scores[number]
        if score >= ceiling:
            beyond[cuda.atomic.add(totals, 1, int32(1))] = number
        elif score >= least:
            kept[cuda.atomic.add(totals, 0, int32(1))] = number


@cache
def _select() -> Any:
    return cuda.jit(select, cache=not SIMULATED)


def clear(array, count):
    """Kernel: zeros."""
    n = int32(cuda.grid(1))
    if n < count:
        array[n] = 0


@cache
def _clear() -> Any:
    return cuda.jit(clear, cache=not SIMULATED)


def gather(values, numbers, count, taken):
    """Kernel: ``taken[n] = values[numbers[n]]``."""
    n = int32(cuda.grid(1))
    if n < count:
        taken[n] = values[numbers[n]]


@cache
def _gather() -> Any:
    return cuda.jit(gather, cache=not SIMULATED)


class Found(NamedTuple):
    """Numbers of stretches i8[k], ascending, and their scores i8[k]."""

    numbers: np.ndarray
    scores: np.ndarray


class DeviceTargets:
    """The stretches of a volume that one device works on, and its working space. Use ``on_device_targets``.

    Args:
        volume: what ``stretches`` are cut from.
        chosen: i8[k], ascending numbers of the stretches that are asked for.
    """

    def __init__(self, volume: Volume, stretches: Stretches, chosen: np.ndarray, stream: Any,
                 check: Callable[[], None]) -> None:
        self._letters, self._stretches, self._stream, self._check = volume.letters, stretches, stream, check
        self._packed = packed_arithmetic() if has_packed_maxima() else SINGLE
        everything = np.arange(len(volume.works.order))
        whole = np.array_equal(stretches.owners, everything) and np.array_equal(chosen, everything)
        self._works = volume.works if whole else self._sorted(chosen, stretches.begins, stretches.lengths)
        self._scratch: dict[str, Any] = {}
        self._known_borders: dict[int, Any] = {}
        self._letters_asked_for = int(stretches.lengths[chosen].sum())
        self.cells = 0
        self.beyond = 0

    def _sorted(self, chosen: np.ndarray, first_letters: np.ndarray, lengths: np.ndarray) -> Works:
        return Works.of(chosen, first_letters, lengths, self._stream)

    def _sent(self, array: np.ndarray) -> Any:
        return cuda.to_device(np.ascontiguousarray(array), stream=self._stream)

    def _launch(self, kernel_: Any, size: int, *arguments: Any) -> None:
        """Start a kernel that has a thread for each of ``size`` numbers."""
        with _launching:
            kernel_[-(-size // _SELECTING), _SELECTING, self._stream](*arguments)

    def _room(self, name: str, size: int, dtype: Any) -> Any:
        """Working space that is kept between queries."""
        array = self._scratch.get(name)
        if array is None or len(array) < size:
            array = self._scratch[name] = cuda.device_array(max(1, size), dtype, stream=self._stream)
        return array

    def _ways(self, query: np.ndarray, scoring: Scoring, goal: int) -> list[Numbers]:
        assert scoring.matrix is not None
        seen = scoring.matrix[np.unique(query)]
        if max(len(query), int(self._works.lengths[0])) > LAST_PLACE and goal != BEST:
            return []
        # A gap letter can't be in a sequence: its score doesn't count.
        return numbers(scoring, int(seen[:, 1:].min(initial=0)), int(seen.max(initial=0)), goal, self._packed,
                       len(query))

    def _run(self, works: Works, query: np.ndarray, scoring: Scoring, way: Numbers, goal: int, found: Any,
             backwards: bool = False) -> None:
        """Best of every work for all rows of the query; ``found`` is on the device, in the order of the works."""
        assert scoring.matrix is not None
        together = way.arithmetic.numbers
        count = len(works.order)
        if not count or not len(query):
            return
        shape = tiling(len(query), together)
        profiles = query_profiles(query, scoring.matrix, shape, way.arithmetic)
        size = len(profiles[0])
        sent = self._sent(np.concatenate(profiles))
        parts = [(0, -(-count // together))]
        borders = crossing = self._room("no border", 1, np.int64)
        if shape.tiles > 1:
            parts, borders, most = self._borders(works, together)
            crossing = self._room("crossing", most + 1, np.int64)
        counters = self._sent(np.zeros(len(parts) * shape.tiles, np.int32))
        launch = 0
        for begin, end in parts:
            first, last = begin * together, end * together
            for tile in range(shape.tiles):
                self._check()
                made = kernel(shape, way, scoring, goal, tile > 0, tile < shape.tiles - 1, backwards)
                arguments = (
                    sent[tile * size : (tile + 1) * size], self._letters, works.starts[first:], works.counts[first:],
                    borders[begin:end] if shape.tiles > 1 else borders, np.int32(end - begin),
                    counters[launch : launch + 1], crossing, np.int32(1), np.int32(1 << 16),
                    np.int32(tile * shape.rows * shape.lanes), found[first:last])
                with _launching:
                    made[_blocks(), 32 * WARPS, self._stream](*arguments)
                launch += 1

    def _borders(self, works: Works, together: int) -> tuple[list[tuple[int, int]], Any, int]:
        """Parts of the works that are done at a time, where the border of each work begins, and the most columns."""
        known = self._known_borders.get(together) if works is self._works else None
        if known is None:
            columns = works.lengths[::together].astype(np.int64)[: -(-len(works.order) // together)]
            places = np.cumsum(columns) - columns
            parts = _parts(columns, _BORDER_COLUMNS)
            sent = self._sent(places - np.repeat([places[a] for a, _ in parts], [b - a for a, b in parts]))
            known = parts, sent, max(int(columns[a:b].sum()) for a, b in parts)
            if works is self._works:
                self._known_borders[together] = known
        return known

    def _filled(self, name: str, size: int, dtype: Any) -> Any:
        array = self._room(name, size, dtype)
        self._launch(_clear(), size, array, np.int32(size))
        return array[:size]

    def scores(self, strands: Sequence[np.ndarray], scoring: Scoring, least: int) -> Found:
        """Of all stretches whose best score with any of the strands of a query is ``least`` or more."""
        works, count = self._works, len(self._works.order)
        longest = max(strands, key=len, default=np.empty(0, np.uint8))
        ways = self._ways(longest, scoring, BEST)
        if not count or not len(longest):
            numbers_ = np.sort(works.order) if least <= 0 else np.empty(0, np.int64)
            return Found(numbers_, np.zeros(len(numbers_), np.int64))
        if not ways:
            return self._on_the_host(works.order, strands, scoring, least)
        found = self._filled("scores", count + 1, np.int32)
        for strand in strands:
            self._run(works, strand, scoring, ways[0], BEST, found)
        self.cells += sum(map(len, strands)) * self._letters_asked_for
        kept, beyond = self._room("kept", count, np.int32), self._room("beyond", count, np.int32)
        totals = self._filled("totals", 2, np.int32)
        self._launch(_select(), count, found, np.int32(count), np.int32(min(least, 1 << 30)),
                     np.int32(ways[0].ceiling), kept, beyond, totals)
        high, over = self._fetched(totals).tolist()
        places = self._fetched(kept[:high]) if high else np.empty(0, np.int32)
        scores = np.empty(0, np.int32)
        if high:
            taken = self._room("taken", high, np.int32)
            self._launch(_gather(), high, found, kept, np.int32(high), taken)
            scores = self._fetched(taken[:high])
        parts = [Found(works.order[places], scores.astype(np.int64))]
        if over:
            again = works.order[self._fetched(beyond[:over])]
            self.beyond += over
            parts.append(self._again(again, strands, scoring, ways[1:], least))
        joined = Found(*(np.concatenate(column) for column in zip(*parts, strict=True)))
        order = np.argsort(joined.numbers, kind="stable")
        return Found(joined.numbers[order], joined.scores[order])

    def _fetched(self, array: Any) -> np.ndarray:
        if not len(array):
            return np.empty(0, array.dtype)
        host = array.copy_to_host(stream=self._stream)
        if not SIMULATED:
            self._stream.synchronize()
        return host

    def _again(self, chosen: np.ndarray, strands: Sequence[np.ndarray], scoring: Scoring, ways: list[Numbers],
               least: int) -> Found:
        """As ``scores``, of some stretches, in wider numbers."""
        if not ways:
            return self._on_the_host(chosen, strands, scoring, least)
        works = self._sorted(chosen, self._stretches.begins, self._stretches.lengths)
        found = self._filled("again", len(chosen) + 1, np.int32)
        for strand in strands:
            self._run(works, strand, scoring, ways[0], BEST, found)
        scores = self._fetched(found[: len(chosen)]).astype(np.int64)
        high = np.flatnonzero(scores >= least)
        return Found(works.order[high], scores[high])

    def _on_the_host(self, chosen: np.ndarray, strands: Sequence[np.ndarray], scoring: Scoring, least: int) -> Found:
        """Scores that 32 bits may not hold."""
        from seqloom.plugins.smith_waterman.recurrence_cpu import Profile
        from seqloom.plugins.smith_waterman.scalar_cpu import scalar_score

        profiles = [Profile(strand, scoring, np.arange(LETTERS - 4)[: scoring.matrix.shape[1]])  # type: ignore[union-attr]
                    for strand in strands]
        scores = np.zeros(len(chosen), np.int64)
        for n, number in enumerate(chosen.tolist()):
            self._check()
            target = self._stretches[number]
            scores[n] = max(scalar_score(p.rows, p.places, target, scoring.gap_open, scoring.gap_extend)
                            for p in profiles)
        high = scores >= least
        return Found(chosen[high], scores[high])

    def ends(self, query: np.ndarray, scoring: Scoring, chosen: np.ndarray) -> Place | None:
        """The first best cell of each chosen stretch: smallest row of u8[m] ``query``, then smallest column.

        None where scores or lengths are beyond what the device takes.
        """
        return self._places(query, scoring, chosen, self._stretches.begins, self._stretches.lengths, FIRST)

    def reaches(self, query: np.ndarray, scoring: Scoring, chosen: np.ndarray, ends: Place) -> np.ndarray | None:
        """i8[k]: how many letters before its end (that letter counted) any best alignment that ends there can begin.

        ``query`` is the one that ``ends`` are of; its rows beyond an end can only add to the number.
        """
        lengths = np.zeros(len(self._stretches), np.int64)
        lengths[chosen] = ends.column + 1
        last = self._stretches.begins + lengths - 1
        found = self._places(query[::-1], scoring, chosen, last, lengths, LAST)
        return None if found is None else found.column + 1

    def _places(self, query: np.ndarray, scoring: Scoring, chosen: np.ndarray, first_letters: np.ndarray,
                lengths: np.ndarray, goal: int) -> Place | None:
        """Places of the chosen stretches in their order."""
        ways = self._ways(query, scoring, goal)
        chosen = np.asarray(chosen, np.int64)
        result = np.zeros(len(self._stretches), np.int64)
        left = chosen
        for way in ways:
            works = self._sorted(left, first_letters, lengths)
            found = self._filled("places", len(left) + 1, np.int64)
            self._run(works, query, scoring, way, goal, found, backwards=goal == LAST)
            self.cells += len(query) * int(works.lengths.sum(dtype=np.int64))
            places = self._fetched(found[: len(left)])
            result[works.order] = places
            left = works.order[place_of(places, goal).score >= way.ceiling]
            if not len(left):
                return place_of(result[chosen], goal)
        return None


_launching = threading.Lock()
"""Modules aren't loaded by two threads at a time."""
_alone: Any = threading.RLock() if SIMULATED else nullcontext()
"""The simulator runs one kernel at a time."""


@contextmanager
def on_device_targets(batch: SequenceBatch, stretches: Stretches, chosen: np.ndarray, budget: int | None,
                      check: Callable[[], None]) -> Iterator[DeviceTargets]:
    """Stretches of a volume with their letters on the current device.

    Raises:
        BudgetError: letters and working space don't fit ``budget`` bytes.
    """
    memory = device_memory()
    letters = int(stretches.lengths[chosen].sum())
    stream = 0 if SIMULATED else cuda.stream()
    with (_alone, memory.volume(batch, budget) as volume,
          memory.working_space(working_bytes(len(chosen), letters), budget, "exact Smith–Waterman on the device")):
        targets = DeviceTargets(volume, stretches, chosen, stream, check)
        try:
            yield targets
        finally:
            targets._scratch.clear()


def working_bytes(stretches: int, letters: int) -> int:
    """Device memory that work on so many stretches takes at most, beside their letters: bounds, scores, borders."""
    return 48 * (stretches + 2) + 8 * min(letters, _BORDER_COLUMNS) + (4 << 20)


def _parts(columns: np.ndarray, most: int) -> list[tuple[int, int]]:
    """Runs of works of at most ``most`` columns together, one work at least."""
    ends = np.cumsum(columns)
    parts, first = [], 0
    while first < len(columns):
        before = int(ends[first - 1]) if first else 0
        last = max(first + 1, int(np.searchsorted(ends, before + most, "right")))
        parts.append((first, last))
        first = last
    return parts


@cache
def _blocks() -> int:
    """Blocks that fill the device, or more; warps fetch their work, so the number changes no result."""
    if SIMULATED:
        return 1
    return int(cuda.get_current_device().MULTIPROCESSOR_COUNT) * 8


__all__ = ["DeviceTargets", "Found", "on_device_targets", "working_bytes"]
