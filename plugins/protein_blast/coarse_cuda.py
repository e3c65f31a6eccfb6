# ruff: noqa: F821, SIM108  (names in capitals in the kernel template are constants, which ``specialise`` fills in)
# mypy: disable-error-code="name-defined"
"""``coarse-ungapped``: hits and ungapped extensions of a target by one thread, in one kernel (cuBLASTP algorithm 1).

What cuBLASTP is compared with: CUDA-BLASTP and GPU-BLASTP as its sections 3.1 and 5 describe them. A thread walks the
automaton along a target; for each hit it asks what happened last on the hit's diagonal (the paper's lasthit_arr), and
extends at once if that was near enough. Targets are taken longest first: by the next thread that has nothing to do (the
work queue of GPU-BLASTP), or dealt out before (CUDA-BLASTP). Segments go to a buffer of the thread's own, and from
there, some at a time, to that of all (GPU-BLASTP's two levels).

What differs from the papers: diagonals far apart share a place, as in BLAST. There are as many places as the query has
residues, and the window's more; when a diagonal gets to a place, the one before has ended a window ago. Positions go on
counting from target to target, so that nothing has to be cleared between two.
"""

from functools import cache
from typing import Any, ClassVar

import numpy as np
from numba import cuda as _cuda
from numba import int16, int32, int64
from seqloom.core.backends import with_capacity
from seqloom.core.classes import NamedTuple, dataclass
from seqloom.core.context import Context
from seqloom.core.cuda.jit import kernel as kept_kernel
from seqloom.core.cuda.transfer import clear
from seqloom.core.kernels.packed16 import SIMULATED
from seqloom.core.kernels.unroll import specialise
from seqloom.core.options import option
from seqloom.core.records import Records, Seeds
from seqloom.core.stages import Footprint, Shape
from seqloom.plugins.common.resident_cuda import Volume, device_memory
from seqloom.plugins.common.resident_index_cuda import brought_whole
from seqloom.plugins.protein_blast.dfa_cuda import Automaton
from seqloom.plugins.protein_blast.dfa_reference import KIND
from seqloom.plugins.protein_blast.ungapped_cuda import (
    POSITIONS,
    RESIDUES,
    SEGMENT,
    Scores,
    bring,
    score_functions,
    scores_footprint,
    segments_of,
)
from seqloom.plugins.protein_blast.ungapped_reference import TwoHitUngapped, UngappedOptions

cuda: Any = _cuda  # numba's types don't know what code on the device may do
THREADS, BLOCKS = 1 if SIMULATED else 64, 16
"""As of ``ungapped_cuda``."""
THREADS_PER_PROCESSOR = 2 if SIMULATED else 1024
DIAGONALS = 1 << 28
"""Places of diagonals of all threads, usually."""
OWN_SEGMENTS = 4
"""That a thread keeps to itself before it hands them over."""
ROOM = 4 if SIMULATED else 1 << 18
"""Segments that there is room for at first."""
MOST_COUNTED = 1 << 29
"""Up to which positions go on counting from target to target."""


def extend_one(scores, rows, residues, query_begin, query_end, target_begin, target_end, query, target, size, window,
               reached, x_drop):
    """Template: the extension of a hit, by the rules of ``ungapped_reference``: score, starts in both, length, stop.

    query, target: positions of the hit. reached: position behind the word of the first of two hits.
    """
    best = int32(0)
    total = int32(0)
    ahead = int32(0)
    begin = int32(0)
    best_begin = int32(0)
    end = int32(size + 1)
    for n in range(size):
        total = int32(total + score_at(scores, rows, residues, query_begin + query + n, target_begin + target + n))
        if total > best:
            best = total
            ahead = int32(n + 1)
            best_begin = begin
            end = ahead
        elif window == 0 and total <= int32(0):
            total = int32(0)
            begin = int32(n + 1)
    from_left = int64(ahead)
    from_right = int64(ahead)
    score = int32(0)
    if window == 0:
        from_left = int64(best_begin)
        from_right = int64(end)
        score = best
    score, left = extend_left(scores, rows, residues, query_begin + query + from_left - 1,
                              target_begin + target + from_left - 1, int32(min(query, target) + from_left), x_drop,
                              score, int32(0), int32(0))
    right = int32(0)
    stop = int64(-1)
    if window == 0 or int64(left) >= target + from_left - reached:
        most = min(query_end - query_begin - query - from_right, target_end - target_begin - target - from_right)
        score, right, stopped = extend_right(scores, rows, residues, query_begin + query + from_right,
                                             target_begin + target + from_right, int32(max(most, int64(0))), x_drop,
                                             score, int32(0), int32(0))
        stop = target + from_right + int64(stopped)
        if window == 0 and most <= 0:
            stop = target + from_right + most  # behind the end, which may be less than none
    length = int32(left + right)
    if window == 0:
        length = int32(max(int32(0), int32(left + (end - begin) + right)))
    return score, int32(query + from_left - int64(left)), int32(target + from_left - int64(left)), length, stop


@cuda.jit(device=True)
def hand_over(own, kept, found, counts, room):
    """A thread's segments into the buffer of all, as far as there is room."""
    first = int64(cuda.atomic.add(counts, 1, int64(kept)))
    for n in range(kept):
        if first + n < room:
            for k in range(SEGMENT):
                found[(first + n) * SEGMENT + k] = own[n * SEGMENT + k]


def extend_targets(residues, bounds, ranked, count, size, states, words, overflow, query_of, position_of, query_bounds,
                   rows, table, window, x_drops, cutoffs, diagonal_begins, diagonals, lasts, found, counts, room):
    """Kernel template: all segments of ``count`` targets, a target to a thread.

    Args:
        residues, bounds, ranked: u1, i8 and i4 of the volume; targets are taken in the order of ``ranked``.
        size, states, words, overflow, query_of, position_of: of the automaton.
        query_bounds: i8, where each query begins.
        rows, table: as of ``Scores``.
        window, x_drops, cutoffs: of two hits; i4, of each query.
        diagonal_begins: i4[queries + 1], where places of diagonals of each query begin among those of a thread, a power
            of two of each, ``diagonals`` of all queries.
        lasts: i4[threads · diagonals], zeros; twice the position of what was last on a diagonal, and 1 if that was an
            extension.
        found: i4[room · SEGMENT]; counts: i8[3], zeros: targets taken, segments found, extensions made.
    """
    if NEAR:
        scores = cuda.shared.array(0, int16)
        bring(scores, table)
    else:
        scores = table
    own = cuda.local.array(NUMBERS, int32)
    kept = int32(0)
    extensions = int64(0)
    thread = int64(cuda.grid(1))
    threads = int64(cuda.gridsize(1))
    mine = thread * diagonals
    counted = int64(window)
    if QUEUE:
        number = int64(cuda.atomic.add(counts, 0, int64(1)))
    else:
        number = int64(thread)
    while number < count:
        place = int32(ranked[number])
        target_begin = int64(bounds[place])
        target_end = int64(bounds[place + 1])
        length = int64(target_end - target_begin)
        if counted + length > MOST:
            for n in range(diagonals):
                lasts[mine + n] = int32(0)
            counted = int64(window)
        state = int64(0)
        for ahead in range(length):
            residue = int64(residues[target_begin + ahead])
            entry = int64(0)
            if ahead >= size - 1:
                entry = int64(words[states[2 * state] + residue])
            state = int64(states[2 * state + 1]) + residue
            amount = int64(0)
            if entry > 0:
                amount = int64(1)
            if entry < 0:
                amount = int64(overflow[-entry])
            target = int64(ahead - size + 1)
            for n in range(amount):
                hit = int64(entry - 1)
                if entry < 0:
                    hit = int64(overflow[n + 1 - entry])
                asked = int64(query_of[hit])
                query = int64(position_of[hit])
                query_begin = int64(query_bounds[asked])
                query_end = int64(query_bounds[asked + 1])
                around = int64(diagonal_begins[asked + 1] - diagonal_begins[asked])
                diagonal = mine + diagonal_begins[asked] + ((target - query + query_end - query_begin) & (around - 1))
                noted = int64(lasts[diagonal])
                last = int64((noted >> 1) - counted)
                extended = (noted & 1) == 1
                wanted = True
                if window == 0:
                    wanted = target >= last
                elif extended:
                    wanted = False
                    if target >= last:
                        lasts[diagonal] = int32((target + counted) << 1)
                else:
                    distance = target - last
                    wanted = distance < window and distance >= size
                    if distance >= window:
                        lasts[diagonal] = int32((target + counted) << 1)
                if wanted:
                    score, query_start, target_start, taken, stop = extend_one(
                        scores, rows, residues, query_begin, query_end, target_begin, target_end, query, target, size,
                        window, last + size, x_drops[asked])
                    extensions += 1
                    if stop >= 0:
                        lasts[diagonal] = int32(((stop - (size - 1) + counted) << 1) | 1)
                    else:
                        lasts[diagonal] = int32((target + counted) << 1)
                    if score >= cutoffs[asked]:
                        own[kept * SEGMENT] = int32(asked)
                        own[kept * SEGMENT + 1] = place
                        own[kept * SEGMENT + 2] = score
                        own[kept * SEGMENT + 3] = query_start
                        own[kept * SEGMENT + 4] = target_start
                        own[kept * SEGMENT + 5] = taken
                        kept = int32(kept + 1)
                        if kept == OWN:
                            hand_over(own, kept, found, counts, room)
                            kept = int32(0)
        counted += length + window
        if QUEUE:
            number = int64(cuda.atomic.add(counts, 0, int64(1)))
        else:
            number += threads
    hand_over(own, kept, found, counts, room)
    cuda.atomic.add(counts, 2, extensions)


@cache
def targets_kernel(near: bool, positions: bool, queue: bool, most: int) -> Any:
    label = f"by position {positions}"
    extension = cuda.jit(device=True)(specialise(extend_one, score_functions(positions), label))
    return kept_kernel()(specialise(extend_targets, {"extend_one": extension}, label, NEAR=near, QUEUE=queue,
                                    OWN=OWN_SEGMENTS, NUMBERS=OWN_SEGMENTS * SEGMENT, MOST=most))


@dataclass(frozen=True)
class CoarseOptions(UngappedOptions):
    """Options of ``coarse-ungapped``; no result depends on them."""

    shares: str = option("queue", "the next target goes to the next thread that has nothing to do, or each thread has "
                         "its own (dealt)", choices=("queue", "dealt"))


class Places(NamedTuple):
    """Places of diagonals of a thread.

    Attributes:
        begins: i4[queries + 1], where those of each query begin.
        threads: how many threads have some, in blocks of ``block``.
    """

    begins: np.ndarray
    threads: int
    block: int

    @classmethod
    def of(cls, lengths: np.ndarray, window: int, size: int, targets: int, block: int) -> "Places":
        """For queries of these lengths, and so many targets at most."""
        begins = np.zeros(len(lengths) + 1, np.int32)
        np.cumsum([1 << int(length + window + 2 * size).bit_length() for length in lengths.tolist()], out=begins[1:])
        processors = 1 if SIMULATED else int(cuda.get_current_device().MULTIPROCESSOR_COUNT)
        threads = min(processors * THREADS_PER_PROCESSOR, DIAGONALS // max(1, int(begins[-1])), targets)
        return cls(begins, max(block, threads // block * block), block)

    @property
    def diagonals(self) -> int:
        return max(1, int(self.begins[-1]))


class CoarseUngapped(TwoHitUngapped):
    """Hits and ungapped extensions on the device, a thread a target (cuBLASTP algorithm 1); as ``two-hit-ungapped``.

    For comparison, in the place of three slots: ``--stage index.words=neighbourhood-dfa --stage
    extend.ungapped=coarse-ungapped --set seed.words.enabled=no --set sort.diagonal.enabled=no``.
    """

    name: ClassVar[str] = "coarse-ungapped"
    backend: ClassVar[str] = "cuda"
    records_on: ClassVar[str] = "host"
    pssm_up_to: ClassVar[int] = POSITIONS
    takes = (None,)  # type: ignore[assignment]
    takes_order = ()  # type: ignore[assignment]
    reads = (KIND,)
    Options: ClassVar[type[UngappedOptions]] = CoarseOptions
    options: CoarseOptions

    def footprint(self, shape: Shape) -> Footprint:
        # Larger blocks are those of few residues, whose places are within the first of these two.
        places = max(DIAGONALS, THREADS * (4 * shape.query_residues + 256 * shape.queries))
        scores = scores_footprint(self, shape)
        return Footprint(host=scores, device=4 * places + scores + 64 * 60 * shape.query_residues + 4 * RESIDUES**4
                         + brought_whole(shape))

    def run(self, context: Context, records: Records | None) -> Seeds:
        """Segments by query and target; within a pair score down, target start up, length down, query start up."""
        queries, targets, scoring, index = context.queries, context.targets, context.scoring, context.index(KIND)
        size, window = index.parameters["word_size"], context.options.window()
        scores = Scores.of(context, self)
        places = Places.of(queries.lengths, window, size, len(targets), scores.threads(THREADS, BLOCKS))
        memory, budget = device_memory(), context.device_memory
        room = (4 * places.diagonals * places.threads + scores.nbytes
                + sum(array.nbytes for array in index.arrays.values()))
        with (memory.volume(targets, budget) as volume,
              memory.working_space(room, budget, "hits and extensions on the device")):
            volume.arrived([0])
            automaton = Automaton(index, 0, False)
            sent = [cuda.to_device(array) for array in (
                queries.offsets, scores.rows, scores.table, scoring.x_drop_ungapped.astype(np.int32),
                np.minimum(scoring.trigger, scoring.cutoff).astype(np.int32), places.begins)]
            lasts = cuda.device_array(places.diagonals * places.threads, np.int32)

            def attempt(room: int) -> tuple[int, tuple[np.ndarray, int]]:
                found, counts = cuda.device_array(SEGMENT * room, np.int32), cuda.to_device(np.zeros(3, np.int64))
                clear(lasts, len(lasts), 0)
                self.launch(volume, len(targets), automaton, sent, window, scores, places, lasts,
                            found, counts, room)
                _, kept, extensions = counts.copy_to_host().tolist()
                rows_ = found[: SEGMENT * min(kept, room)].copy_to_host() if kept else np.empty(0, np.int32)
                return kept, (rows_.reshape(-1, SEGMENT), extensions)

            segments, extensions = with_capacity(attempt, ROOM)
        context.count("extensions", extensions)
        context.advance()
        return segments_of(context, segments)

    def launch(self, volume: Volume, targets: int, automaton: Automaton, sent: list[Any], window: int, scores: Scores,
               places: Places, lasts: Any, found: Any, counts: Any, room: int) -> None:
        """Queue the kernel."""
        made = targets_kernel(scores.near, scores.positions, self.options.shares == "queue", MOST_COUNTED)
        order = volume.target_order
        made[places.threads // places.block, places.block, 0, scores.shared](
            volume.residues, order.begins, order.ranked_there, np.int64(targets), *automaton.arrays,
            automaton.query, automaton.position, *sent[:3], np.int64(window), *sent[3:], np.int64(places.diagonals),
            lasts, found, counts, np.int64(room))
