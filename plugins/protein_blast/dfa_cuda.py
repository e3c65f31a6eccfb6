# ruff: noqa: F821, SIM102, SIM108  (names in capitals in the kernel templates are constants, which ``specialise`` fills in)
# mypy: disable-error-code="name-defined"
"""The automaton of words on CUDA devices, near to those who look words up (cuBLASTP sections 3.2 and 3.5).

``dfa-hits``: a warp takes a target, a thread a word of it; hits are counted, and then written where they belong, in the
order of the reference. ``binned-dfa-hits``: ``binned-hits`` with the automaton in the place of the table.

Hierarchical buffering, as in figure 10: where each state's row of words begins, and the rows themselves where there is
room, are in shared memory, once for all warps of a block; lists of positions are read through the cache of data that
are read only. ``buffering = off`` reads all of it from global memory as it comes.
"""

from functools import cache
from typing import Any, ClassVar

import numpy as np
from numba import cuda as _cuda
from numba import int32, int64
from seqloom.core.classes import NamedTuple, dataclass
from seqloom.core.context import Context
from seqloom.core.cuda.jit import kernel as kept_kernel
from seqloom.core.cuda.jit import shared_room
from seqloom.core.cuda.read_only import read_only
from seqloom.core.index import Index
from seqloom.core.kernels.packed16 import SIMULATED, from_lane
from seqloom.core.kernels.unroll import specialise
from seqloom.core.records import Records, Seeds
from seqloom.core.stages import Footprint, Shape
from seqloom.plugins.common.resident_cuda import Volume, device_memory
from seqloom.plugins.common.resident_index_cuda import brought_whole
from seqloom.plugins.protein_blast.dfa_cpu import DfaHitsCpu
from seqloom.plugins.protein_blast.dfa_reference import KIND, buffering_option
from seqloom.plugins.protein_blast.hits_cuda import BinnedHits, BinOptions, Detector, KeyLayout
from seqloom.plugins.protein_blast.seed_reference import seeds_of_words
from seqloom.plugins.protein_blast.words import RESIDUES, hits_footprint

cuda: Any = _cuda  # numba's types don't know what code on the device may do
WARPS = 1 if SIMULATED else 8
"""Of a block, which share what is in shared memory, at most."""
COUNTERS = 32 << 10
"""Bytes for the counters of bins of a block, if it isn't one warp's that take more."""
GROUP_HITS = 1 << 25
"""Hits that are on the device together, if they aren't those of one target."""
_WARPS_PER_PROCESSOR = 64
_BYTES_PER_HIT = 8

NONE, ROW_BEGINS, ROWS = range(3)
"""What of the automaton is in shared memory."""


@cuda.jit(device=True)
def read_plainly(array, place):
    """``array[place]``, as any other load."""
    return array[place]


@cuda.jit(device=True)
def read_constant(array, place):
    """``array[place]`` of what nobody writes to."""
    return read_only(array, place)


def fill_shared(shared, states, words):
    """Template: what of the automaton belongs in shared memory, brought there by all threads of a block."""
    if BUFFERED:
        for n in range(int64(cuda.threadIdx.x), int64(STATES), int64(cuda.blockDim.x)):
            shared[n] = states[2 * n]
    if BUFFERED == 2:
        for n in range(int64(cuda.threadIdx.x), int64(len(words)), int64(cuda.blockDim.x)):
            shared[STATES + n] = words[n]


def entry_at(shared, states, words, residues, place, size):
    """Template: what the automaton says of the word that begins at a place of the residues."""
    state = int64(0)
    for n in range(size - 1):
        state = state * RESIDUES + residues[place + n]
    if BUFFERED:
        row = int64(shared[state])
    else:
        row = int64(states[2 * state])
    row += int64(residues[place + size - 1])
    if BUFFERED == 2:
        return int64(shared[STATES + row])
    return int64(read(words, row))


def detect(residues, bounds, first, count, size, states, words, overflow, query, position, counters, longest,
           target_shift, query_shift, diagonal_shift, bins, capacity, tops):
    """Kernel template: hits of the words of ``count`` targets from ``first`` on, binned by diagonal (algorithm 2).

    Args:
        residues, bounds: u1 and i8 of the volume.
        states, words, overflow, query, position, size: i4, the automaton, and of its words.
        counters: where those of bins begin in shared memory.
        longest: added to diagonals, so that none is negative.
        target_shift, query_shift, diagonal_shift: of keys; targets are counted from ``first`` on.
        bins: i8[warps · NUM_BINS · capacity]; tops: i4[warps · NUM_BINS], hits of each, which may be more.
    """
    shared = cuda.shared.array(0, int32)
    lane = int32(cuda.threadIdx.x & int32(31))
    warp = int32(int32(cuda.blockIdx.x) * int32(cuda.blockDim.x // 32) + int32(cuda.threadIdx.x // 32))
    warps = int32(int32(cuda.gridDim.x) * int32(cuda.blockDim.x // 32))
    top = int64(counters + int64(cuda.threadIdx.x // 32) * NUM_BINS)
    bring(shared, states, words)
    for n in range(lane, int32(NUM_BINS), int32(32)):
        shared[top + n] = int32(0)
    cuda.syncthreads()
    for target in range(warp, count, warps):
        begin = int64(bounds[first + target])
        last = int32(bounds[first + target + 1] - begin - size + 1)
        for place in range(lane, last, int32(32)):
            entry = int64(look_up(shared, states, words, residues, begin + place, size))
            if entry != 0:
                amount = int64(1)
                if entry < 0:
                    amount = int64(read(overflow, -entry))
                for n in range(amount):
                    found = int64(entry - 1)
                    if entry < 0:
                        found = int64(read(overflow, n + 1 - entry))
                    diagonal = int32(int32(place) - int32(read(position, found)) + longest)
                    chosen = int32(diagonal % int32(NUM_BINS))
                    number = int32(cuda.atomic.add(shared, top + chosen, int32(1)))
                    if number < capacity:
                        bins[(int64(warp) * NUM_BINS + chosen) * capacity + number] = (
                            (int64(read(query, found)) << query_shift) | (int64(target) << target_shift)
                            | (int64(diagonal) << diagonal_shift) | int64(place))
    cuda.syncthreads()
    for n in range(lane, int32(NUM_BINS), int32(32)):
        tops[warp * int32(NUM_BINS) + n] = shared[top + n]


def count_or_write(residues, bounds, first, count, size, states, words, overflow, begins, base, residue_of, place_of):
    """Kernel template: hits of ``count`` targets from ``first`` on, counted, or (WRITES) written in their order.

    Args:
        begins: i8, by target: filled with the number of its hits; with WRITES, where they begin, from ``base`` on.
        residue_of, place_of: i4[hits], filled with residues of the batch of queries and positions in targets.
    """
    shared = cuda.shared.array(0, int32)
    lane = int32(cuda.threadIdx.x & int32(31))
    warp = int32(int32(cuda.blockIdx.x) * int32(cuda.blockDim.x // 32) + int32(cuda.threadIdx.x // 32))
    warps = int32(int32(cuda.gridDim.x) * int32(cuda.blockDim.x // 32))
    bring(shared, states, words)
    cuda.syncthreads()
    for target in range(warp, count, warps):
        begin = int64(bounds[first + target])
        last = int32(bounds[first + target + 1] - begin - size + 1)
        total = int64(0)
        if WRITES:
            total = int64(begins[first + target] - base)
        for start in range(int32(0), last, int32(32)):
            place = int32(start + lane)
            entry = int64(0)
            if place < last:
                entry = int64(look_up(shared, states, words, residues, begin + place, size))
            amount = int32(0)
            if entry > 0:
                amount = int32(1)
            if entry < 0:
                amount = int32(read(overflow, -entry))
            ahead = amount
            distance = int32(1)
            while distance < int32(32):
                other = from_lane(ahead, max(lane - distance, int32(0)))
                if lane >= distance:
                    ahead = int32(ahead + other)
                distance = int32(distance * int32(2))
            if WRITES:
                for n in range(amount):
                    found = int64(entry - 1)
                    if entry < 0:
                        found = int64(read(overflow, n + 1 - entry))
                    residue_of[total + ahead - amount + n] = int32(found)
                    place_of[total + ahead - amount + n] = place
            total += int64(from_lane(ahead, int32(31)))
        if not WRITES:
            if lane == int32(0):
                begins[first + target] = total


def parts_for(buffered: int, states: int) -> dict[str, Any]:
    """The device functions that kernels of the automaton are made with."""
    read = read_constant if buffered else read_plainly
    made = {name: specialise(template, {"read": read}, f"buffered {buffered}", BUFFERED=buffered, STATES=states)
            for name, template in (("bring", fill_shared), ("look_up", entry_at))}
    return {"read": read, **{name: cuda.jit(device=True)(function) for name, function in made.items()}}


@cache
def detect_kernel(bins: int, buffered: int, states: int) -> Any:
    return kept_kernel()(specialise(detect, parts_for(buffered, states), f"buffered {buffered}, {states} states",
                                    NUM_BINS=bins))


@cache
def hits_kernel(writes: bool, buffered: int, states: int) -> Any:
    return kept_kernel()(specialise(count_or_write, parts_for(buffered, states),
                                    f"buffered {buffered}, {states} states", WRITES=writes))


class Buffers(NamedTuple):
    """How a block uses shared memory.

    Attributes:
        level: ``NONE``, ``ROW_BEGINS`` or ``ROWS``.
        counters: words before the counters of bins.
        nbytes: in all.
        warps: of a block.
    """

    level: int
    counters: int
    nbytes: int
    warps: int

    @classmethod
    def of(cls, states: int, words: int, bins: int, buffering: bool) -> "Buffers":
        """For an automaton of so many states and words and so many bins of a warp: as much as there is room for."""
        room = shared_room()
        warps = max(1, min(WARPS, COUNTERS // (4 * max(1, bins))))
        for level, counters in ((ROWS, states + words), (ROW_BEGINS, states), (NONE, 0)):
            nbytes = 4 * (counters + warps * bins)
            if (buffering and nbytes <= room) or level == NONE:
                return cls(level, counters, nbytes, warps)
        raise AssertionError


class Automaton:
    """One on the device."""

    def __init__(self, index: Index, bins: int, buffering: bool) -> None:
        self.size, self.states = np.int64(index.parameters["word_size"]), len(index["states"])
        self.buffers = Buffers.of(self.states, len(index["words"]), bins, buffering)
        self.states_there, self.words, self.overflow, self.query, self.position = (
            cuda.to_device(_at_least_one(index[name]).reshape(-1)) for name in (
                "states", "words", "overflow", "query", "position"))

    @property
    def arrays(self) -> tuple[Any, ...]:
        """What kernels take of it."""
        return self.size, self.states_there, self.words, self.overflow


def _at_least_one(array: np.ndarray) -> np.ndarray:
    """The array, or zeros in its place where it is empty."""
    return np.ascontiguousarray(array) if array.size else np.zeros((1, *array.shape[1:]), array.dtype)


@dataclass(frozen=True)
class BinnedDfaOptions(BinOptions):
    """Options of ``binned-dfa-hits``; no result depends on them."""

    buffering: str = buffering_option()


class AutomatonDetector(Detector):
    """As ``Detector``, by the automaton."""

    def __init__(self, context: Context, volume: Volume, bins: int, blocks: int, buffering: bool = True) -> None:
        self.automaton = Automaton(context.index(KIND), bins, buffering)
        # As many warps as fill blocks.
        warps = self.automaton.buffers.warps
        self.start(context, volume, bins, max(1, blocks // warps) * warps)

    def launch(self, first: int, count: int, layout: KeyLayout, bins: Any, capacity: int, tops: Any) -> None:
        automaton, buffers = self.automaton, self.automaton.buffers
        made = detect_kernel(self.bins, buffers.level, automaton.states)
        made[self.blocks // buffers.warps, 32 * buffers.warps, 0, buffers.nbytes](
            self.volume.residues, self.volume.target_order.begins, np.int64(first), np.int32(count), *automaton.arrays,
            automaton.query, automaton.position, np.int64(buffers.counters), np.int32(layout.longest),
            np.int64(layout.target), np.int64(layout.query), np.int64(layout.diagonal), bins, np.int64(capacity), tops)


class BinnedDfaHits(BinnedHits):
    """As ``binned-hits``, words looked up in an automaton, which is near (cuBLASTP algorithm 2, section 3.5).

    For comparison: ``--stage index.words=neighbourhood-dfa --stage seed.words=binned-dfa-hits``.
    """

    name: ClassVar[str] = "binned-dfa-hits"
    reads = (KIND,)
    index_kind: ClassVar[str] = KIND
    Options: ClassVar[type] = BinnedDfaOptions
    options: BinnedDfaOptions

    def detector(self, context: Context, volume: Volume, blocks: int) -> Detector:
        return AutomatonDetector(context, volume, self.options.num_bins, blocks, self.options.buffering == "on")


class DfaHitsCuda(DfaHitsCpu):
    __doc__ = DfaHitsCpu.__doc__
    backend = "cuda"
    records_on = "host"

    def footprint(self, shape: Shape) -> Footprint:
        return Footprint(host=hits_footprint(shape).host, device=_BYTES_PER_HIT * GROUP_HITS + 8 * shape.targets
                         + 64 * 60 * shape.query_residues + 4 * RESIDUES**4 + brought_whole(shape))

    def run(self, context: Context, records: Records | None) -> Seeds:
        """On the device where all pairs are looked at; some pairs and diagonals are what the host is quick at."""
        if records is not None:
            return super().run(context, records)
        index, queries, targets = context.index(KIND), context.queries, context.targets
        size, memory, budget = index.parameters["word_size"], device_memory(), context.device_memory
        parts = []
        room = _BYTES_PER_HIT * GROUP_HITS + 8 * len(targets) + sum(array.nbytes for array in index.arrays.values())
        with (memory.volume(targets, budget) as volume,
              memory.working_space(room, budget, "word hits on the device")):
            volume.arrived([0])
            finder = Finder(Automaton(index, 0, self.options.buffering == "on"), volume, len(targets))
            for first, last in finder.groups():
                context.cancellation.check()
                residue, place = finder.hits(first, last)
                target = np.repeat(targets.ordinals[first:last], np.diff(finder.bounds[first : last + 1]))
                parts.append(seeds_of_words(size, queries.ordinals[index["query"][residue]], target,
                                            index["position"][residue], place))
                context.advance(last - first, len(targets))
        return Seeds.concat(parts) if parts else seeds_of_words(size, *(np.empty(0, np.int32) for _ in range(4)))


class Finder:
    """Hits of a volume in order: counted when it is made, written in groups of targets.

    Attributes:
        bounds: i8[targets + 1], where the hits of each target begin.
    """

    def __init__(self, automaton: Automaton, volume: Volume, targets: int) -> None:
        self._automaton, self._volume, self._targets = automaton, volume, targets
        self._none = cuda.device_array(1, np.int32)
        counts = cuda.device_array(targets + 1, np.int64)
        self._launch(False, 0, targets, counts, 0, self._none, self._none)
        self.bounds = np.zeros(targets + 1, np.int64)
        np.cumsum(counts.copy_to_host()[:targets], out=self.bounds[1:])
        self._begins = cuda.to_device(self.bounds)

    def groups(self) -> list[tuple[int, int]]:
        """Runs of targets with ``GROUP_HITS`` hits at most, or one target."""
        groups, first = [], 0
        while first < self._targets:
            most = self.bounds[first] + GROUP_HITS
            last = max(first + 1, int(np.searchsorted(self.bounds, most, "right")) - 1)
            groups.append((first, last))
            first = last
        return groups

    def hits(self, first: int, last: int) -> tuple[np.ndarray, np.ndarray]:
        """i4 each: residue of the batch of queries and position in the target, of each hit of these targets."""
        base, count = int(self.bounds[first]), int(self.bounds[last] - self.bounds[first])
        if not count:
            return np.empty(0, np.int32), np.empty(0, np.int32)
        residue, place = (cuda.device_array(count, np.int32) for _ in range(2))
        self._launch(True, first, last - first, self._begins, base, residue, place)
        return residue.copy_to_host(), place.copy_to_host()

    def _launch(self, writes: bool, first: int, count: int, begins: Any, base: int, residue: Any, place: Any) -> None:
        automaton, buffers = self._automaton, self._automaton.buffers
        blocks = 2 if SIMULATED else int(cuda.get_current_device().MULTIPROCESSOR_COUNT) * (
            _WARPS_PER_PROCESSOR // buffers.warps)
        made = hits_kernel(writes, buffers.level, automaton.states)
        made[max(1, min(blocks, -(-count // buffers.warps))), 32 * buffers.warps, 0, buffers.nbytes](
            self._volume.residues, self._volume.target_order.begins, np.int64(first), np.int32(count),
            *automaton.arrays, begins, np.int64(base), residue, place)
