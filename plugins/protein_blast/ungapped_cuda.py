# ruff: noqa: F821, SIM102  (names in capitals in the kernel templates are constants, and ``score_at`` and others are
# functions, which ``specialise`` fills in)
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

Scores are those of a matrix, by the residues of both, or of a position-specific one (section 3.5): that takes a load
less for each score, and 64 bytes for each residue of the queries, 48 KB for 768. Either is in shared memory as long as
that is quicker or, on request, as there is room for it, and else in global memory.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, ClassVar

import numpy as np
from numba import cuda as _cuda
from numba import int16, int32, int64
from seqloom.core.backends import with_capacity
from seqloom.core.classes import NamedTuple, dataclass
from seqloom.core.context import Context
from seqloom.core.cuda.jit import kernel as kept_kernel
from seqloom.core.cuda.jit import shared_room
from seqloom.core.kernels.packed16 import from_group
from seqloom.core.kernels.unroll import specialise
from seqloom.core.options import option
from seqloom.core.records import Records, Seeds
from seqloom.core.stages import Footprint, Shape
from seqloom.plugins.common.resident_cuda import device_memory
from seqloom.plugins.common.resident_index_cuda import brought_whole
from seqloom.plugins.protein_blast.scoring import read_as_query
from seqloom.plugins.protein_blast.ungapped_reference import TwoHitUngapped, UngappedOptions
from seqloom.plugins.protein_blast.words import hits_footprint

cuda: Any = _cuda  # numba's types don't know what code on the device may do
RESIDUES = 32
"""Columns of a table of scores."""
THREADS, BLOCKS = 128, 8
"""Of a block, usually, and blocks with that many for which a multiprocessor shall have room."""
MOST_THREADS = 256
"""Of a block: whatever registers a kernel takes, there are enough of them."""
RESERVED, SHARED_OF_PROCESSOR = 1 << 10, 228 << 10
"""Bytes of shared memory that a block takes beside its own, and of a multiprocessor (compute capability 9.0)."""
NEAR = 16 << 10
"""Bytes of a table that is quicker in shared memory, as measured on an H200: 127 residues, not 517, where fewer threads
run."""
POSITIONS = 1 << 11
"""Residues of queries up to which a position-specific matrix is quicker, as far as was measured, about."""
SEGMENT = 6
"""Numbers of a segment: query and target by place, score, starts in both, length."""
PARTS = 6
"""Numbers of a hit's extensions: residues of its word before the best place, score and length to the left, score,
length and stop to the right."""
BYTES_PER_HIT = 4 * (4 + 1 + PARTS + SEGMENT) + 8


@cuda.jit(device=True)
def by_residue(scores, rows, residues, query, target):
    """Score of places in queries and targets, from a table with a row for each residue."""
    return scores[int64(rows[query]) * RESIDUES + residues[target]]


@cuda.jit(device=True)
def by_position(scores, rows, residues, query, target):
    """As ``by_residue``, from a table with a row for each place in the queries, which need not be looked at."""
    return scores[query * RESIDUES + residues[target]]


@cuda.jit(device=True)
def bring(shared, table):
    """Copy a table to shared memory, by all threads of a block."""
    for n in range(int32(cuda.threadIdx.x), int32(len(table)), int32(cuda.blockDim.x)):
        shared[n] = table[n]
    cuda.syncthreads()


def left_alone(scores, rows, residues, query, target, room, x_drop, score, lane, first_lane):
    """Leftwards from places in queries and targets, over ``room`` residues at most: best score and its length."""
    best = score
    length = int32(0)
    for taken in range(room):
        score = int32(score + score_at(scores, rows, residues, query - taken, target - taken))
        if score > best:
            best = score
            length = int32(taken + 1)
        if best - score >= x_drop:
            break
    return best, length


def right_alone(scores, rows, residues, query, target, room, x_drop, score, lane, first_lane):
    """Rightwards: best score, its length, and how many residues on it stopped."""
    best = score
    length = int32(0)
    for taken in range(room):
        score = int32(score + score_at(scores, rows, residues, query + taken, target + taken))
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
            value = int32(score_at(scores, rows, residues, query + taken * step, target + taken * step))
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
        rows, table: as of ``Scores``.
        size, window: of words and of the stretch in which the second of two hits has to be.
        x_drops, cutoffs: i4 of each query.
        parts: i4[hits · PARTS], extensions of each hit (ALONE: filled; STORED: read).
        found, counts, room: i4[room · SEGMENT]; ``counts[1]`` segments are found, ``counts[2]`` extensions made.
    """
    thread = int32(cuda.threadIdx.x)
    if NEAR:
        scores = cuda.shared.array(0, int16)
        bring(scores, table)
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
                    total = int32(total + score_at(scores, rows, residues, query_begin + query + n,
                                                 target_begin + target + n))
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


class Scores(NamedTuple):
    """Scores of a batch of queries, and where kernels read them.

    Attributes:
        table: i2[rows · RESIDUES], by row and residue of the target; all matrices have scores of two bytes.
        rows: i4, row of each residue of the queries; one that isn't read where each place has a row.
        positions: whether each place has a row, in place of each residue.
        near: whether blocks have the table in shared memory.
    """

    table: np.ndarray
    rows: np.ndarray
    positions: bool
    near: bool

    @classmethod
    def of(cls, context: Context, stage: TwoHitUngapped) -> "Scores":
        """For the queries of a context, by the options of a stage; near where that is wanted and there is room."""
        residues, matrix = read_as_query(context.queries.searched()), context.scoring.matrix
        positions = stage.by_position(len(residues))
        room = {"auto": min(NEAR, shared_room()), "on": shared_room(), "off": 0}[stage.options.buffering]
        table = np.zeros((len(matrix), RESIDUES), np.int16)
        table[:, : matrix.shape[1]] = matrix
        rows = np.zeros(1 if positions else max(1, len(residues)), np.int32)
        if positions:
            table = table[residues] if len(residues) else table[:1]
        else:
            rows[: len(residues)] = residues
        return cls(table.reshape(-1), rows, positions, table.nbytes <= room)

    @property
    def nbytes(self) -> int:
        return self.table.nbytes + self.rows.nbytes

    @property
    def shared(self) -> int:
        """Bytes of shared memory of a block."""
        return self.table.nbytes * self.near

    def threads(self, least: int, blocks: int) -> int:
        """Threads of a block: ``least`` if so many blocks have room on a multiprocessor, or more that share a table."""
        while least < MOST_THREADS and (self.shared + RESERVED) * blocks > SHARED_OF_PROCESSOR:
            least, blocks = 2 * least, blocks // 2
        return least


def scores_footprint(stage: TwoHitUngapped, shape: Shape) -> int:
    """Bytes of the scores of a unit's queries, on the host as on the device."""
    each = 2 * RESIDUES if stage.by_position(shape.query_residues) else 4
    return each * shape.query_residues + 2 * RESIDUES**2


@cache
def score_functions(positions: bool, window: int = 1) -> dict[str, Any]:
    """The device functions that kernels of extensions by ``window`` threads are made with."""
    score_at, label = by_position if positions else by_residue, f"by position {positions}, window {window}"
    if window == 1:
        functions: dict[str, Any] = {"score_at": score_at}
        templates: tuple[Callable[..., Any], ...] = left_alone, right_alone
    else:
        functions = {"in_window": cuda.jit(device=True)(specialise(in_window, {"score_at": score_at}, label,
                                                                   WINDOW=window))}
        templates = left_in_window, right_in_window
    left, right = (cuda.jit(device=True)(specialise(template, functions, label)) for template in templates)
    return {"score_at": score_at, "extend_left": left, "extend_right": right}


@cache
def extend_kernel(near: bool, positions: bool, window: int = 1, alone: bool = False, stored: bool = False) -> Any:
    """The kernel in one of its forms; ``window`` threads a diagonal."""
    return kept_kernel()(specialise(extend, score_functions(positions, window),
                                    f"by position {positions}, window {window}", NEAR=near, WINDOW=window, ALONE=alone,
                                    STORED=stored))


class DiagonalUngapped(TwoHitUngapped):
    """Two-hit ungapped extension on the device, a thread a diagonal (cuBLASTP algorithm 3); as ``two-hit-ungapped``."""

    name: ClassVar[str] = "diagonal-ungapped"
    backend: ClassVar[str] = "cuda"
    pssm_up_to: ClassVar[int] = POSITIONS

    def footprint(self, shape: Shape) -> Footprint:
        hits, scores = hits_footprint(shape), scores_footprint(self, shape)
        return Footprint(host=hits.host + scores, device=hits.host + scores + (1 << 20) + brought_whole(shape))

    def launch(self, count: int, items: int, scores: Scores, arguments: list[Any], parts: Any) -> None:
        """Queue kernels for ``count`` hits on ``items`` diagonals."""
        self.start(items, scores, arguments, parts)

    def start(self, items: int, scores: Scores, arguments: list[Any], parts: Any, window: int = 1,
              **form: bool) -> None:
        """Start a kernel of a form with a window of threads for each item."""
        threads = max(window, scores.threads(THREADS, BLOCKS))
        made = extend_kernel(scores.near, scores.positions, window, **form)
        made[max(1, -(-items * window // threads)), threads, 0, scores.shared](
            arguments[0], np.int64(items), *arguments[1:16], parts, *arguments[16:])

    def run(self, context: Context, records: Records) -> Seeds:
        """Segments by query and target; within a pair score down, target start up, length down, query start up."""
        queries, targets, scoring = context.queries, context.targets, context.scoring
        count = len(records)
        if not count:
            return segments_of(context, np.empty((0, SEGMENT), np.int32))
        scores = Scores.of(context, self)
        memory, budget, what = device_memory(), context.device_memory, "ungapped extension on the device"
        with (memory.volume(targets, budget) as volume,
              memory.working_space(BYTES_PER_HIT * count + scores.nbytes + 24 * (len(queries) + len(targets)), budget,
                                   what)):
            volume.arrived([0])
            names = ("query", "target", "query_pos", "target_pos")
            hits = [records.data[name] if records.device == "cuda" else
                    cuda.to_device(np.ascontiguousarray(records.data[name])) for name in names]
            heads, counts = cuda.device_array(count, np.int32), cuda.to_device(np.zeros(3, np.int64))
            heads_kernel()[-(-count // THREADS), THREADS](*hits, heads, counts)
            diagonals = int(counts.copy_to_host()[0])
            ends = [cuda.to_device(np.ascontiguousarray(a)) for a in (
                queries.ordinals, queries.offsets, targets.ordinals, targets.offsets)]
            sent = [cuda.to_device(a) for a in (scores.rows, scores.table, scoring.x_drop_ungapped.astype(np.int32),
                                                np.minimum(scoring.trigger, scoring.cutoff).astype(np.int32))]
            parts = cuda.device_array(PARTS * (count if self.needs_parts else 1), np.int32)

            def attempt(room: int) -> tuple[int, tuple[np.ndarray, int]]:
                found, counts = cuda.device_array(SEGMENT * room, np.int32), cuda.to_device(np.zeros(3, np.int64))
                self.launch(count, diagonals, scores, [
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

    def launch(self, count: int, items: int, scores: Scores, arguments: list[Any], parts: Any) -> None:
        self.start(count, scores, arguments, parts, alone=True)
        self.start(items, scores, arguments, parts, stored=True)


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

    def launch(self, count: int, items: int, scores: Scores, arguments: list[Any], parts: Any) -> None:
        self.start(items, scores, arguments, parts, int(self.options.window_size))


def segments_of(context: Context, found: np.ndarray) -> Seeds:
    """Segments i4[n, SEGMENT] as seeds, in the order of ``two-hit-ungapped``."""
    query, target, score, query_start, target_start, length = found.T
    order = np.lexsort((query_start, -length, target_start, -score, target, query))
    frame = np.ones(len(found), np.int8)
    return Seeds({
        "query": context.queries.ordinals[query[order]], "target": context.targets.ordinals[target[order]],
        "score": score[order], "query_pos": query_start[order], "target_pos": target_start[order],
        "length": length[order], "query_frame": frame, "target_frame": frame})
