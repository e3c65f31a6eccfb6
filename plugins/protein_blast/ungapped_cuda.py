# ruff: noqa: F821, SIM102  (names in capitals in the kernel template are constants, which ``specialise`` fills in)
# mypy: disable-error-code="name-defined"
"""Ungapped extension of two hits on CUDA devices, by three divisions of the work (cuBLASTP section 3.4).

``diagonal-ungapped`` (algorithm 3): a thread walks along a diagonal and extends what has to be extended.
``hit-ungapped`` (algorithm 4): a thread extends each hit both ways as if it stood alone; then a thread walks along each
diagonal and keeps the extensions that count, which is the paper's removal of duplicates.
``window-ungapped`` (algorithm 5): a window of threads walks along a diagonal and extends a hit together: prefix sums of
scores, the best so far, and where it has dropped too far.

The rules are BLAST's, as in ``ungapped_reference``: they say which of two hits is the first, and that the second is
extended to the right only if it has reached the first. So whether an extension counts depends on those before it on the
diagonal, but not what it would give: left and right extensions of a hit are the same whatever its first hit is.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, ClassVar

import numpy as np
from numba import cuda as _cuda
from numba import int32, int64
from seqloom.core.backends import with_capacity
from seqloom.core.classes import dataclass
from seqloom.core.context import Context
from seqloom.core.cuda.jit import kernel as kept_kernel
from seqloom.core.cuda.jit import launching
from seqloom.core.kernels.packed16 import from_group
from seqloom.core.kernels.unroll import specialise
from seqloom.core.options import option
from seqloom.core.records import Records, Seeds
from seqloom.core.stages import Footprint, Shape
from seqloom.plugins.common.resident_cuda import device_memory
from seqloom.plugins.common.resident_index_cuda import brought_whole
from seqloom.plugins.protein_blast.scoring import read_as_query
from seqloom.plugins.protein_blast.ungapped_reference import PSSM_BYTES, TwoHitUngapped, UngappedOptions
from seqloom.plugins.protein_blast.words import hits_footprint

cuda: Any = _cuda  # numba's types don't know what code on the device may do
RESIDUES = 32
"""Columns of a table of scores."""
THREADS = 128
SEGMENT = 6
"""Numbers of a segment: query and target by place, score, starts in both, length."""
PARTS = 6
"""Numbers of a hit's extensions: residues of its word before the best place, score and length to the left, score,
length and stop to the right."""
BYTES_PER_HIT = 4 * (4 + 1 + PARTS + SEGMENT) + 8


@cuda.jit(device=True)
def left_alone(scores, rows, residues, query, target, room, x_drop, score, lane, first_lane):
    """Leftwards from places in queries and targets, over ``room`` residues at most: best score and its length."""
    best = score
    length = int32(0)
    for taken in range(room):
        score = int32(score + scores[rows[query - taken] * RESIDUES + residues[target - taken]])
        if score > best:
            best = score
            length = int32(taken + 1)
        if best - score >= x_drop:
            break
    return best, length


@cuda.jit(device=True)
def right_alone(scores, rows, residues, query, target, room, x_drop, score, lane, first_lane):
    """Rightwards: best score, its length, and how many residues on it stopped."""
    best = score
    length = int32(0)
    for taken in range(room):
        score = int32(score + scores[rows[query + taken] * RESIDUES + residues[target + taken]])
        if score > best:
            best = score
            length = int32(taken + 1)
        if score <= 0 or best - score >= x_drop:
            return best, length, int32(taken)
    return best, length, int32(room)


def in_window(scores, rows, residues, query, target, step, room, x_drop, score, stops_at_zero, lane, first_lane):
    """Extension by WINDOW threads, ``lane`` of them the caller: best score, its length, and where it stopped.

    step: 1 to the right, −1 to the left.
    """
    best = int32(score)
    total = int32(score)
    length = int32(0)
    done = int32(0)
    while done < room:
        taken = int32(done + lane)
        value = int32(0)
        if taken < room:
            value = int32(scores[rows[query + taken * step] * RESIDUES + residues[target + taken * step]])
        distance = int32(1)
        while distance < int32(WINDOW):
            other = from_group(value, first_lane + max(lane - distance, int32(0)), WINDOW)
            if lane >= distance:
                value = int32(value + other)
            distance = int32(distance * int32(2))
        value = int32(value + total)
        highest = int32(max(value, best))
        distance = int32(1)
        while distance < int32(WINDOW):
            other = from_group(highest, first_lane + max(lane - distance, int32(0)), WINDOW)
            highest = int32(max(highest, other))
            distance = int32(distance * int32(2))
        dropped = int32(WINDOW)
        if taken < room and (highest - value >= x_drop or (stops_at_zero and value <= int32(0))):
            dropped = lane
        distance = int32(WINDOW // 2)
        while distance > int32(0):
            dropped = int32(min(dropped, from_group(dropped, first_lane + (lane ^ distance), WINDOW)))
            distance = int32(distance // int32(2))
        last = int32(min(dropped, min(int32(WINDOW - 1), int32(room - done - int32(1)))))
        reached = from_group(highest, first_lane + last, WINDOW)
        if reached > best:
            place = int32(WINDOW)
            if value == reached and lane <= last:
                place = lane
            distance = int32(WINDOW // 2)
            while distance > int32(0):
                place = int32(min(place, from_group(place, first_lane + (lane ^ distance), WINDOW)))
                distance = int32(distance // int32(2))
            best = int32(reached)
            length = int32(done + place + int32(1))
        if dropped < int32(WINDOW):
            return best, length, int32(done + dropped)
        total = from_group(value, first_lane + int32(WINDOW - 1), WINDOW)
        done = int32(done + int32(WINDOW))
    return best, length, int32(room)


def left_in_window(scores, rows, residues, query, target, room, x_drop, score, lane, first_lane):
    """As ``left_alone``."""
    best, length, _ = in_window(scores, rows, residues, query, target, int32(-1), room, x_drop, score, False, lane,
                                   first_lane)
    return best, length


def right_in_window(scores, rows, residues, query, target, room, x_drop, score, lane, first_lane):
    """As ``right_alone``."""
    return in_window(scores, rows, residues, query, target, int32(1), room, x_drop, score, True, lane, first_lane)


@cuda.jit(device=True)
def place_in(ordinals, number):
    """Place of a global number among rising ones."""
    low = int64(0)
    high = int64(len(ordinals))
    while low < high:
        middle = (low + high) // 2
        if ordinals[middle] < number:
            low = middle + 1
        else:
            high = middle
    return low


@cuda.jit(device=True)
def on_one_diagonal(query_of, target_of, query_from, target_from, one, other):
    """Whether two hits lie on the same diagonal."""
    return (query_of[one] == query_of[other] and target_of[one] == target_of[other]
            and target_from[one] - query_from[one] == target_from[other] - query_from[other])


def find_heads(query_of, target_of, query_from, target_from, heads, counts):
    """Kernel: the first hit of each diagonal, in any order; their number goes to ``counts[0]``."""
    hit = cuda.grid(1)
    if hit < len(query_of):
        if hit == 0 or not on_one_diagonal(query_of, target_of, query_from, target_from, hit - 1, hit):
            heads[cuda.atomic.add(counts, 0, int64(1))] = hit


def extend(heads, items, query_of, target_of, query_from, target_from, queries, query_bounds, targets, target_bounds,
           residues, rows, table, size, window, x_drops, cutoffs, parts, found, counts, room):
    """Kernel template: extensions of sorted hits, a diagonal or hit to each thread or window of threads.

    Args:
        heads: i4, first hits of diagonals; ``items`` of them are to be done, or (ALONE) all hits, each for itself.
        query_of, target_of, query_from, target_from: hits, by global numbers of queries and targets.
        queries, query_bounds, targets, target_bounds: global numbers in the batch and volume, and where each begins.
        residues: u1, those of the volume.
        rows: u1 or i4, row of ``table`` of each residue of the queries.
        table: i4[rows · RESIDUES], scores.
        size, window: of words and of the stretch in which the second of two hits has to be.
        x_drops, cutoffs: i4 of each query.
        parts: i4[hits · PARTS], extensions of each hit (ALONE: filled; STORED: read).
        found, counts, room: i4[room · SEGMENT]; ``counts[1]`` segments are found, ``counts[2]`` extensions made.
    """
    thread = int32(cuda.threadIdx.x)
    if SHARED:
        scores = cuda.shared.array(SHARED, int32)
        for n in range(thread, int32(SHARED), int32(cuda.blockDim.x)):
            scores[n] = table[n]
        cuda.syncthreads()
    else:
        scores = table
    lane = int32(thread & int32(WINDOW - 1))
    first_lane = int32(int32(thread & int32(31)) - lane)
    item = int64(cuda.blockIdx.x) * int64(cuda.blockDim.x // WINDOW) + int64(thread // int32(WINDOW))
    if item < items:
        hit = int64(item)
        if not ALONE:
            hit = int64(heads[item])
        head = int64(hit)
        query_place = place_in(queries, query_of[hit])
        target_place = place_in(targets, target_of[hit])
        query_begin = int64(query_bounds[query_place])
        query_end = int64(query_bounds[query_place + 1])
        target_begin = int64(target_bounds[target_place])
        target_end = int64(target_bounds[target_place + 1])
        x_drop = int32(x_drops[query_place])
        last = int64(-window)
        extended = False
        extensions = int64(0)
        going = True
        if ALONE:
            # Only the first of two hits has nobody before it that it could be the second of.
            if window != 0:
                going = hit > 0
                if going:
                    going = on_one_diagonal(query_of, target_of, query_from, target_from, hit - 1, hit)
                if going:
                    going = target_from[hit] - target_from[hit - 1] < window
        while going:
            query = int64(query_from[hit])
            target = int64(target_from[hit])
            wanted = True
            if not ALONE:
                if window == 0:
                    wanted = target >= last
                elif extended:
                    wanted = False
                    if target >= last:
                        last = target
                        extended = False
                else:
                    distance = target - last
                    wanted = distance < window and distance >= size
                    if distance >= window:
                        last = target
            if wanted:
                best = int32(0)
                total = int32(0)
                ahead = int32(0)
                begin = int32(0)
                best_begin = int32(0)
                end = int32(size + 1)
                for n in range(size):
                    total = int32(total + scores[rows[query_begin + query + n] * RESIDUES
                                                 + residues[target_begin + target + n]])
                    if total > best:
                        best = total
                        ahead = int32(n + 1)
                        best_begin = begin
                        end = ahead
                    elif window == 0 and total <= int32(0):
                        total = int32(0)
                        begin = int32(n + 1)
                # To the left from before this residue of the word, to the right from the other one on.
                from_left = int64(ahead)
                from_right = int64(ahead)
                score = int32(0)
                if window == 0:
                    from_left = int64(best_begin)
                    from_right = int64(end)
                    score = best
                if STORED:
                    score = parts[hit * PARTS + 1]
                    left = parts[hit * PARTS + 2]
                else:
                    score, left = extend_left(
                        scores, rows, residues, query_begin + query + from_left - 1,
                        target_begin + target + from_left - 1, int32(min(query, target) + from_left), x_drop, score,
                        lane, first_lane)
                right = int32(0)
                stop = int64(-1)
                goes = window == 0 or ALONE or int64(left) >= target + from_left - (last + size)
                if ALONE:
                    parts[hit * PARTS + 1] = score
                    parts[hit * PARTS + 2] = left
                if goes:
                    if STORED:
                        score = parts[hit * PARTS + 3]
                        right = parts[hit * PARTS + 4]
                        stop = target + from_right + int64(parts[hit * PARTS + 5])
                    else:
                        most = int32(max(min(query_end - query_begin - query - from_right,
                                             target_end - target_begin - target - from_right), int64(0)))
                        score, right, stopped = extend_right(
                            scores, rows, residues, query_begin + query + from_right,
                            target_begin + target + from_right, most, x_drop, score, lane, first_lane)
                        stop = target + from_right + int64(stopped)
                        if window == 0 and most == int32(0):
                            # Behind the end: as far as there was room, which may be less than none.
                            stop = target + from_right + min(query_end - query_begin - query - from_right,
                                                             target_end - target_begin - target - from_right)
                        if ALONE:
                            parts[hit * PARTS + 3] = score
                            parts[hit * PARTS + 4] = right
                            parts[hit * PARTS + 5] = int32(stop - target - from_right)
                if not ALONE:
                    extensions += 1
                    length = int32(left + right)
                    if window == 0:
                        length = int32(max(int32(0), int32(left + (end - begin) + right)))
                        last = stop - (size - 1)
                    else:
                        extended = bool(stop >= 0)
                        last = target
                        if extended:
                            last = stop - (size - 1)
                    if score >= cutoffs[query_place] and lane == int32(0):
                        number = cuda.atomic.add(counts, 1, int64(1))
                        if number < room:
                            found[number * SEGMENT] = int32(query_place)
                            found[number * SEGMENT + 1] = int32(target_place)
                            found[number * SEGMENT + 2] = score
                            found[number * SEGMENT + 3] = int32(query + from_left - int64(left))
                            found[number * SEGMENT + 4] = int32(target + from_left - int64(left))
                            found[number * SEGMENT + 5] = length
            if ALONE:
                going = False
            else:
                hit += 1
                going = hit < len(query_of)
                if going:
                    going = on_one_diagonal(query_of, target_of, query_from, target_from, head, hit)
        if not ALONE and lane == int32(0):
            cuda.atomic.add(counts, 2, extensions)


@cache
def heads_kernel() -> Any:
    return kept_kernel()(find_heads)


@cache
def extend_kernel(shared: int, window: int = 1, alone: bool = False, stored: bool = False) -> Any:
    """The kernel in one of its forms; ``window`` threads a diagonal."""
    functions: dict[str, Callable[..., Any]] = {"extend_left": left_alone, "extend_right": right_alone}
    if window > 1:
        inner = cuda.jit(device=True)(specialise(in_window, WINDOW=window))
        functions = {"extend_left": cuda.jit(device=True)(specialise(left_in_window, {"in_window": inner},
                                                                     f"window {window}")),
                     "extend_right": cuda.jit(device=True)(specialise(right_in_window, {"in_window": inner},
                                                                      f"window {window}"))}
    special = specialise(extend, functions, f"window {window}", SHARED=shared, WINDOW=window, ALONE=alone,
                         STORED=stored)
    return kept_kernel()(special)


def table_of(context: Context, pssm: bool) -> tuple[np.ndarray, np.ndarray]:
    """i4 scores by row and residue, and the row of each residue of the queries: its own, or one for each position."""
    scoring, residues = context.scoring, read_as_query(context.queries.searched())
    chosen = scoring.matrix[residues] if pssm else scoring.matrix
    table = np.zeros((max(1, len(chosen)), RESIDUES), np.int32)
    table[: len(chosen), : chosen.shape[1]] = chosen
    return table.reshape(-1), np.arange(len(residues), dtype=np.int32) if pssm else residues.astype(np.int32)


class DiagonalUngapped(TwoHitUngapped):
    """Two-hit ungapped extension on the device, a thread a diagonal (cuBLASTP algorithm 3); as ``two-hit-ungapped``."""

    name: ClassVar[str] = "diagonal-ungapped"
    backend: ClassVar[str] = "cuda"

    def footprint(self, shape: Shape) -> Footprint:
        hits = hits_footprint(shape)
        return Footprint(host=hits.host,
                         device=hits.host + PSSM_BYTES * shape.query_residues + (1 << 20) + brought_whole(shape))

    def launch(self, count: int, items: int, shared: int, arguments: list[Any], parts: Any) -> None:
        """Queue kernels for ``count`` hits on ``items`` diagonals."""
        self.start(extend_kernel(shared), items, 1, arguments, parts)

    def start(self, made: Any, items: int, window: int, arguments: list[Any], parts: Any) -> None:
        """Start a kernel with a window of threads for each item."""
        threads = max(window, THREADS)
        with launching:
            made[max(1, -(-items * window // threads)), threads](
                arguments[0], np.int64(items), *arguments[1:16], parts, *arguments[16:])

    def run(self, context: Context, records: Records) -> Seeds:
        """Segments by query and target; within a pair score down, target start up, length down, query start up."""
        queries, targets, scoring = context.queries, context.targets, context.scoring
        count = len(records)
        if not count:
            return segments_of(context, np.empty((0, SEGMENT), np.int32))
        pssm = self.options.scores == "pssm"
        table, rows = table_of(context, pssm)
        memory, budget, what = device_memory(), context.device_memory, "ungapped extension on the device"
        with (memory.volume(targets, budget) as volume,
              memory.working_space(BYTES_PER_HIT * count + table.nbytes + 24 * (len(queries) + len(targets)), budget,
                                   what)):
            volume.arrived([0])
            names = ("query", "target", "query_pos", "target_pos")
            hits = [records.data[name] if records.device == "cuda" else
                    cuda.to_device(np.ascontiguousarray(records.data[name])) for name in names]
            heads, counts = cuda.device_array(count, np.int32), cuda.to_device(np.zeros(3, np.int64))
            with launching:
                heads_kernel()[-(-count // THREADS), THREADS](*hits, heads, counts)
            diagonals = int(counts.copy_to_host()[0])
            ends = [cuda.to_device(np.ascontiguousarray(a)) for a in (
                queries.ordinals, queries.offsets, targets.ordinals, targets.offsets)]
            sent = [cuda.to_device(a) for a in (rows, table, scoring.x_drop_ungapped.astype(np.int32),
                                                np.minimum(scoring.trigger, scoring.cutoff).astype(np.int32))]
            parts = cuda.device_array(PARTS * (count if self.needs_parts else 1), np.int32)

            def attempt(room: int) -> tuple[int, tuple[np.ndarray, int]]:
                found, counts = cuda.device_array(SEGMENT * room, np.int32), cuda.to_device(np.zeros(3, np.int64))
                self.launch(count, diagonals, 0 if pssm else len(table), [
                    heads, *hits, *ends, volume.residues, *sent[:2], np.int64(context.options.word_size),
                    np.int64(context.options.window()), *sent[2:], found, counts, np.int64(room)], parts)
                _, kept, extensions = counts.copy_to_host().tolist()
                rows_ = found[: SEGMENT * min(kept, room)].copy_to_host() if kept else np.empty(0, np.int32)
                return kept, (rows_.reshape(-1, SEGMENT), extensions)

            segments, extensions = with_capacity(attempt, max(4, count // 8))
        context.count("extensions", extensions)
        context.advance()
        return segments_of(context, segments)

    needs_parts: ClassVar[bool] = False


class HitUngapped(DiagonalUngapped):
    """Two-hit ungapped extension on the device, a thread a hit (cuBLASTP algorithm 4); as ``two-hit-ungapped``."""

    name: ClassVar[str] = "hit-ungapped"
    needs_parts: ClassVar[bool] = True

    def launch(self, count: int, items: int, shared: int, arguments: list[Any], parts: Any) -> None:
        self.start(extend_kernel(shared, alone=True), count, 1, arguments, parts)
        self.start(extend_kernel(shared, stored=True), items, 1, arguments, parts)


@dataclass(frozen=True)
class WindowOptions(UngappedOptions):
    """Options of ``window-ungapped``."""

    window_size: str = option("8", "threads of a window", choices=("2", "4", "8", "16", "32"))


class WindowUngapped(DiagonalUngapped):
    """Two-hit ungapped extension on the device, a window a diagonal (cuBLASTP algorithm 5); as ``two-hit-ungapped``.

    With ``--set extend.ungapped.window_size=16`` a window has 16 threads.
    """

    name: ClassVar[str] = "window-ungapped"
    Options: ClassVar[type[UngappedOptions]] = WindowOptions
    options: WindowOptions

    def launch(self, count: int, items: int, shared: int, arguments: list[Any], parts: Any) -> None:
        window = int(self.options.window_size)
        self.start(extend_kernel(shared, window), items, window, arguments, parts)


def segments_of(context: Context, found: np.ndarray) -> Seeds:
    """Segments i4[n, SEGMENT] as seeds, in the order of ``two-hit-ungapped``."""
    query, target, score, query_start, target_start, length = found.T
    order = np.lexsort((query_start, -length, target_start, -score, target, query))
    frame = np.ones(len(found), np.int8)
    return Seeds({
        "query": context.queries.ordinals[query[order]], "target": context.targets.ordinals[target[order]],
        "score": score[order], "query_pos": query_start[order], "target_pos": target_start[order],
        "length": length[order], "query_frame": frame, "target_frame": frame})
