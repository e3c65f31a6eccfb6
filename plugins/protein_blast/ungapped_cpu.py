"""``two-hit-ungapped`` on the CPU: the reference's rules, diagonal by diagonal, compiled."""

import numpy as np
from seqloom.core.context import Context
from seqloom.core.engine.threads import run_tasks
from seqloom.core.kernels.jit import kernel
from seqloom.core.records import Records, Seeds
from seqloom.plugins.common.grouping import group_parts, group_starts
from seqloom.plugins.common.order_cpu import FALLING, RISING, order_in_groups
from seqloom.plugins.protein_blast.scoring import read_as_query
from seqloom.plugins.protein_blast.ungapped_reference import TwoHitUngapped

QUERY, TARGET, SCORE, QUERY_START, TARGET_START, LENGTH = range(6)
"""Columns of a table of segments."""

_WORTH_A_PART = 512
"""Hits for which it pays to wake a thread."""


@kernel
def _left(matrix, query, target, query_pos, target_pos, x_drop, score):
    """Extend leftwards, these two residues first: best score, and how many residues it takes."""
    best, length = score, 0
    for taken in range(1, min(query_pos, target_pos) + 2):
        score += matrix[query[query_pos - taken + 1], target[target_pos - taken + 1]]
        if score > best:
            best, length = score, taken
        if best - score >= x_drop:
            break
    return best, length


@kernel
def _right(matrix, query, target, query_pos, target_pos, x_drop, score):
    """Extend rightwards: best score, how many residues it takes, target position where it stopped."""
    best, length = score, 0
    room = min(len(query) - query_pos, len(target) - target_pos)
    for taken in range(room):
        score += matrix[query[query_pos + taken], target[target_pos + taken]]
        if score > best:
            best, length = score, taken + 1
        if score <= 0 or best - score >= x_drop:
            return best, length, target_pos + taken
    return best, length, target_pos + room


@kernel
def _two_hit(matrix, query, target, query_pos, target_pos, size, first_end, x_drop):
    """Extension of the second of two hits: score, query start, target start, length, stop (−1: no right extension)."""
    best = total = ahead = 0
    for place in range(size):
        total += matrix[query[query_pos + place], target[target_pos + place]]
        if total > best:
            best, ahead = total, place + 1
    query_pos, target_pos = query_pos + ahead, target_pos + ahead
    score, left = _left(matrix, query, target, query_pos - 1, target_pos - 1, x_drop, 0)
    right, stop = 0, -1
    if left >= target_pos - first_end:
        score, right, stop = _right(matrix, query, target, query_pos, target_pos, x_drop, score)
    return score, query_pos - left, target_pos - left, left + right, stop


@kernel
def _one_hit(matrix, query, target, query_pos, target_pos, size, x_drop):
    """Extension of a single hit from the best segment inside its word, as ``_two_hit`` gives it."""
    best = total = begin = best_begin = 0
    end = size + 1
    for place in range(size):
        total += matrix[query[query_pos + place], target[target_pos + place]]
        if total > best:
            best, best_begin, end = total, begin, place + 1
        elif total <= 0:
            total, begin = 0, place + 1
    score, left = _left(matrix, query, target, query_pos + best_begin - 1, target_pos + best_begin - 1, x_drop, best)
    score, right, stop = _right(matrix, query, target, query_pos + end, target_pos + end, x_drop, score)
    start = best_begin - left
    return score, query_pos + start, target_pos + start, max(0, left + (end - begin) + right), stop


@kernel
def _extend(matrix, query_residues, query_offsets, residues, target_offsets, bounds, numbers, places, query_from,
            target_from, size, window, x_drops, cutoffs, found):
    """Extend sorted hits; returns the number of segments kept and of extensions made.

    matrix, residues: rows of scores by target residue, and the row of each query residue: one for all that are the
    same, or one for each position.
    bounds: i8[p + 1], where the hits of each pair begin; numbers, places: i8[p], its query and target. query_from,
    target_from: i4[n], positions of hits, sorted by pair, diagonal and target position. found: i8[n, 6]:
    ``QUERY`` and ``TARGET`` by place, ``SCORE`` and so on.
    """
    count = extensions = 0
    for pair in range(len(numbers)):
        number, place = numbers[pair], places[pair]
        query = query_residues[query_offsets[number] : query_offsets[number + 1]]
        target = residues[target_offsets[place] : target_offsets[place + 1]]
        x_drop, cutoff = x_drops[number], cutoffs[number]
        last, extended = np.int64(-window), False
        diagonal = np.int64(len(target))  # none
        for hit in range(bounds[pair], bounds[pair + 1]):
            query_pos, target_pos = np.int64(query_from[hit]), np.int64(target_from[hit])
            if target_pos - query_pos != diagonal:
                diagonal = target_pos - query_pos
                last, extended = np.int64(-window), False
            if window == 0:
                if target_pos < last:
                    continue
                segment = _one_hit(matrix, query, target, query_pos, target_pos, size, x_drop)
                last = segment[4] - (size - 1)
            else:
                if extended:
                    if target_pos >= last:
                        last, extended = target_pos, False
                    continue
                distance = target_pos - last
                if distance >= window:
                    last = target_pos
                    continue
                if distance < size:
                    continue
                segment = _two_hit(matrix, query, target, query_pos, target_pos, size, last + size, x_drop)
                extended = segment[4] >= 0
                last = segment[4] - (size - 1) if extended else target_pos
            extensions += 1
            if segment[0] >= cutoff:
                found[count, QUERY] = number
                found[count, TARGET] = place
                found[count, SCORE] = segment[0]
                found[count, QUERY_START] = segment[1]
                found[count, TARGET_START] = segment[2]
                found[count, LENGTH] = segment[3]
                count += 1
    return count, extensions


class TwoHitUngappedCpu(TwoHitUngapped):
    __doc__ = TwoHitUngapped.__doc__
    backend = "cpu"
    pssm_bytes = 128  # 28 numbers of four bytes, and the row's

    def run(self, context: Context, records: Records) -> Seeds:
        """Segments by query and target; within a pair score down, target start up, length down, query start up."""
        scoring, queries, targets = context.scoring, context.queries, context.targets
        cutoffs = np.minimum(scoring.trigger, scoring.cutoff)
        matrix, query_residues, window = scoring.matrix, read_as_query(queries.searched()), context.options.window()
        if self.by_position(queries.total_residues):
            matrix, query_residues = matrix[query_residues], np.arange(len(query_residues))
        bounds = group_starts(records.query, records.target)
        numbers, places = queries.locate(records.query[bounds[:-1]]), targets.locate(records.target[bounds[:-1]])

        def part(groups: tuple[int, int]) -> tuple[np.ndarray, int]:
            own = slice(*groups)
            starts = bounds[groups[0] : groups[1] + 1]
            found = np.empty((starts[-1] - starts[0], 6), np.int64)
            count, extensions = _extend(
                matrix, query_residues, queries.offsets, targets.residues, targets.offsets, starts, numbers[own],
                places[own], records.query_pos, records.target_pos, context.options.word_size, window,
                scoring.x_drop_ungapped, cutoffs, found)
            found = found[:count]
            context.advance(starts[-1] - starts[0], len(records))
            by = [(SCORE, FALLING), (TARGET_START, RISING), (LENGTH, FALLING), (QUERY_START, RISING)]
            return found[order_in_groups(found, group_starts(found[:, QUERY], found[:, TARGET]), by)], extensions

        parts = run_tasks(context.threads, part, group_parts(bounds, context.threads, len(records) / _WORTH_A_PART))
        context.count("extensions", sum(extensions for _, extensions in parts))
        found = np.concatenate([np.empty((0, 6), np.int64), *(rows for rows, _ in parts)])
        frame = np.ones(len(found), np.int8)
        return Seeds({
            "query": queries.ordinals[found[:, QUERY]], "target": targets.ordinals[found[:, TARGET]],
            "score": found[:, SCORE], "query_pos": found[:, QUERY_START], "target_pos": found[:, TARGET_START],
            "length": found[:, LENGTH], "query_frame": frame, "target_frame": frame,
        })
