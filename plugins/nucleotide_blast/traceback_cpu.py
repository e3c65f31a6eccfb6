"""Tracebacks of nucleotide BLAST on the CPU: the reference's rules; what looks at bases is compiled.

A path is a script of runs, i4[n, 2] (operation, length), as in ``greedy``. Scripts of all alignments lie one behind the
other. What is done with whole alignments, a few of each pair, is the reference's own code.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
from seqloom.core.context import Context
from seqloom.core.engine.threads import run_tasks
from seqloom.core.kernels.jit import kernel
from seqloom.core.records import DELETE, INSERT, MATCH, MISMATCH, Alignments, Ragged, Records
from seqloom.core.stages import Footprint, Shape
from seqloom.plugins.common import xdrop_cpu
from seqloom.plugins.common.culling import purge_common_endpoints
from seqloom.plugins.common.culling_cpu import (
    ANCHOR_QUERY,
    ANCHOR_TARGET,
    QUERY_END,
    QUERY_START,
    SCORE,
    TARGET_END,
    TARGET_START,
)
from seqloom.plugins.common.edit_path import PathCounts
from seqloom.plugins.common.grouping import group_parts, group_starts
from seqloom.plugins.common.xdrop_cpu import BOTH, ROW_ONLY, TOP, TOP_COLUMN, TOP_ROW, walk_back
from seqloom.plugins.common.xdrop_cpu import extend as extend_by_scores
from seqloom.plugins.nucleotide_blast.gap_cleanup import clean_gaps
from seqloom.plugins.nucleotide_blast.gapped_cpu import (
    LEFT,
    RIGHT,
    GreedyRoom,
    matchable_strands,
    matchable_targets,
    most_columns,
    set_out,
    strand_offsets,
)
from seqloom.plugins.nucleotide_blast.gapped_reference import reach, refuse_affine
from seqloom.plugins.nucleotide_blast.greedy import PAIR as PAIRS
from seqloom.plugins.nucleotide_blast.greedy_cpu import DIFFERENCES, DONE, QUERY, TARGET, script_of
from seqloom.plugins.nucleotide_blast.greedy_cpu import extend as extend_greedily
from seqloom.plugins.nucleotide_blast.rescore import TracedHsp, cut_common_ends
from seqloom.plugins.nucleotide_blast.saved_cpu import is_contained, save, saved_room
from seqloom.plugins.nucleotide_blast.strands import MINUS
from seqloom.plugins.nucleotide_blast.traceback_reference import (
    GOOD_RUN,
    VERY_GOOD_RUN,
    GreedyTraceback,
    Traceback,
    XDropTraceback,
    base_costs,
)
from seqloom.plugins.nucleotide_blast.ungapped_cpu import laid_out_strands


@kernel
def start_point(hsp, query, begin, size, target, low, width):
    """Move the anchor of an alignment as ``start_point`` of the reference does.

    query, target: u1; the strand has ``size`` bases from ``begin`` on, the target ``width`` from ``low`` on.
    """
    q, t = hsp[ANCHOR_QUERY], hsp[ANCHOR_TARGET]
    run = -1
    i, j = q, t
    while i < hsp[QUERY_END] and _same(query, begin, size, i, target, low, width, j):
        run, i, j = run + 1, i + 1, j + 1
        if run > GOOD_RUN:
            return
    i, j = q, t
    while min(i, j) >= 0 and _same(query, begin, size, i, target, low, width, j):
        run, i, j = run + 1, i - 1, j - 1
        if run > GOOD_RUN:
            return
    back = min(q - hsp[QUERY_START], t - hsp[TARGET_START])
    first_q, first_t = q - back, t - back
    count = min(hsp[QUERY_END] - first_q, hsp[TARGET_END] - first_t)
    longest = run = 0
    middle = -1
    for place in range(count + 1):
        if place < count and query[begin + first_q + place] == target[low + first_t + place]:
            run += 1
            if run > VERY_GOOD_RUN:
                middle = place - VERY_GOOD_RUN // 2
                break
        else:
            if run > longest:
                longest, middle = run, place - run // 2
            run = 0
    if middle >= 0:
        hsp[ANCHOR_QUERY], hsp[ANCHOR_TARGET] = first_q + middle, first_t + middle


@kernel
def _same(query, begin, size, i, target, low, width, j):
    """Whether both have the same base there, or both have ended."""
    if i >= size or j >= width:
        return i >= size and j >= width
    return query[begin + i] == target[low + j]


@kernel
def _trace_greedily(query, begin, size, target, low, width, hsp, scores, x_drop, rows, sides, script):
    """Trace from an anchor; fills ``hsp`` and ``script``; (DONE or what is missing, runs)."""
    reward, penalty, factor = scores
    match, mismatch, x_drop = reward * factor, -penalty * factor, x_drop * factor
    q, t = hsp[ANCHOR_QUERY], hsp[ANCHOR_TARGET]
    left, right = sides[LEFT], sides[RIGHT]
    state = extend_greedily(query, begin + q, q, target, low + t, t, True, match, mismatch, x_drop, rows, left)
    if state != DONE:
        return state, 0
    # From the end back to the start is from left to right here.
    count = script_of(rows, left, script)
    state = extend_greedily(query, begin + q, size - q, target, low + t, width - t, False, match, mismatch, x_drop,
                            rows, right)
    if state != DONE:
        return state, 0
    own = script[count:]
    runs = script_of(rows, right, own)
    for k in range(runs // 2):
        other = runs - 1 - k
        operation, length = own[k, 0], own[k, 1]
        own[k, 0], own[k, 1] = own[other, 0], own[other, 1]
        own[other, 0], own[other, 1] = operation, length
    if count and runs and own[0, 0] == script[count - 1, 0]:
        own[0, 1] += script[count - 1, 1]
        for k in range(runs):
            script[count - 1 + k, 0], script[count - 1 + k, 1] = own[k, 0], own[k, 1]
        count -= 1
    bases = left[QUERY] + left[TARGET] + right[QUERY] + right[TARGET]
    hsp[SCORE] = bases * reward // 2 - (left[DIFFERENCES] + right[DIFFERENCES]) * (reward - penalty)
    hsp[QUERY_START], hsp[QUERY_END] = q - left[QUERY], q + right[QUERY]
    hsp[TARGET_START], hsp[TARGET_END] = t - left[TARGET], t + right[TARGET]
    return DONE, count + runs


@kernel
def _trace(query, begin, size, target, low, width, hsp, costs, reward, space, codes, row_codes, steps, outwards,
           script):
    """Trace from an anchor by scores; fills ``hsp`` and ``script``; number of runs, or −1: ``codes`` are too few.

    query, target: ``both_ways`` residues; the strand and the target begin at ``begin`` and ``low`` behind the padding.
    """
    gap_open, gap_extend, x_drop = costs.gap_open, costs.gap_extend, costs.x_drop
    q, t = hsp[ANCHOR_QUERY] + 1, hsp[ANCHOR_TARGET] + 1
    set_out(space.passes, query, begin, q, q, size - q, target, low, t,
            min(t, most_columns(q, reward, gap_extend, x_drop)),
            min(width - t, most_columns(size - q, reward, gap_extend, x_drop)))
    if not extend_by_scores(query, target, costs, None, space, False, codes, row_codes):
        return -1
    left, right = space.passes[LEFT], space.passes[RIGHT]
    count = walk_back(space.passes, LEFT, codes, row_codes, steps)
    outer = walk_back(space.passes, RIGHT, codes, row_codes, outwards)
    for step in range(outer):
        steps[count + step] = outwards[outer - 1 - step]
    count += outer
    score = left[TOP] + right[TOP]
    query_start, query_end = q - left[TOP_ROW], q + right[TOP_ROW]
    target_start, target_end = t - left[TOP_COLUMN], t + right[TOP_COLUMN]
    first, last = 0, count
    while first < last and steps[first] == steps[0] and steps[0] != BOTH:
        first += 1
    while last > first and steps[last - 1] == steps[count - 1] and steps[count - 1] != BOTH:
        last -= 1
    if first:
        score += gap_open + first * gap_extend
        if steps[0] == ROW_ONLY:
            query_start += first
        else:
            target_start += first
    if last < count:
        score += gap_open + (count - last) * gap_extend
        if steps[count - 1] == ROW_ONLY:
            query_end -= count - last
        else:
            target_end -= count - last
    hsp[SCORE], hsp[QUERY_START], hsp[QUERY_END] = score, query_start, query_end
    hsp[TARGET_START], hsp[TARGET_END] = target_start, target_end
    runs = 0
    for step in range(first, last):
        operation = PAIRS if steps[step] == BOTH else INSERT if steps[step] == ROW_ONLY else DELETE
        if runs and script[runs - 1, 0] == operation:
            script[runs - 1, 1] += 1
        else:
            script[runs, 0], script[runs, 1] = operation, 1
            runs += 1
    return runs


@kernel
def best_part(hsp, script, query, begin, size, target, low, width, matrix, gap_open, gap_extend, reward, factor,
              cutoff):
    """``rescore.best_part``: fills ``hsp`` and the script's lengths; (first run, runs) or (0, 0) for none."""
    i, j = hsp[QUERY_START], hsp[TARGET_START]
    running = best = 0
    part_run = best_run = 0
    part_passed = best_passed = end_passed = np.int64(0)
    part_i, part_j = i, j
    best_i, best_j, end_i, end_j = i, j, i, j
    end_run = -1
    for place in range(len(script)):
        operation, length = script[place, 0], np.int64(script[place, 1])
        passed = np.int64(0)
        while passed < length:
            if operation == PAIRS:
                running += matrix[query[begin + i], target[low + j]]
                i, j, passed = i + 1, j + 1, passed + 1
            else:
                running -= gap_open + gap_extend * length
                i += length if operation == INSERT else 0
                j += length if operation == DELETE else 0
                passed = length
            if running < 0:
                running = 0
                part_run, part_passed, part_i, part_j = place, passed, i, j
                if best < cutoff:
                    best, end_run = 0, -1
                    best_run, best_passed, best_i, best_j = part_run, part_passed, part_i, part_j
            elif running > best:
                best = running
                best_run, best_passed, best_i, best_j = part_run, part_passed, part_i, part_j
                end_run, end_passed, end_i, end_j = place, passed, i, j
    if end_run < 0:
        return 0, 0
    script[end_run, 1] = end_passed
    script[best_run, 1] -= best_passed
    first, last = best_run, end_run + 1
    while first < last and script[first, 1] == 0:
        first += 1
    while last > first and script[last - 1, 1] == 0:
        last -= 1
    back = ahead = 0
    while (back < min(best_i, best_j) and query[begin + best_i - back - 1] < 4
           and query[begin + best_i - back - 1] == target[low + best_j - back - 1]):
        back += 1
    while (ahead < min(size - end_i, width - end_j) and query[begin + end_i + ahead] < 4
           and query[begin + end_i + ahead] == target[low + end_j + ahead]):
        ahead += 1
    script[first, 1] += back
    script[last - 1, 1] += ahead
    hsp[SCORE] = best // factor + (back + ahead) * reward
    if hsp[SCORE] < cutoff:
        return 0, 0
    hsp[QUERY_START], hsp[TARGET_START] = best_i - back, best_j - back
    hsp[QUERY_END], hsp[TARGET_END] = end_i + ahead, end_j + ahead
    return first, last - first


@kernel
def _identities(script, query, i, target, j):
    """Equal bases along a script from i and j on, and columns."""
    equal = columns = 0
    for run in range(len(script)):
        operation, length = script[run, 0], script[run, 1]
        if operation == PAIRS:
            for k in range(length):
                equal += query[i + k] == target[j + k]
        columns += length
        i += length if operation != DELETE else 0
        j += length if operation != INSERT else 0
    return equal, columns


@kernel
def _edit_path(script, query, i, target, j, turned, path, counts):
    """Write the edit path of a script, backwards where it is ``turned``, and its counts; number of its runs."""
    count = 0
    counts[:] = 0
    for run in range(len(script)):
        operation, length = script[run, 0], script[run, 1]
        counts[0] += length
        if operation != PAIRS:
            path[count] = length << 4 | operation
            count += 1
            counts[4] += 1
            counts[5] += length
            i += length if operation != DELETE else 0
            j += length if operation != INSERT else 0
            continue
        done = 0
        while done < length:
            equal, start = query[i + done] == target[j + done], done
            while done < length and (query[i + done] == target[j + done]) == equal:
                done += 1
            path[count] = (done - start) << 4 | (MATCH if equal else MISMATCH)
            count += 1
            counts[1 if equal else 3] += done - start
        i, j = i + length, j + length
    counts[2] = counts[1]
    if turned:
        for k in range(count // 2):
            path[k], path[count - 1 - k] = path[count - 1 - k], path[k]
    return count


class _Strand:
    """A strand of a query against a target: where they begin, and their bases as they score and as they are."""

    def __init__(self, begin: int, size: int, low: int, width: int) -> None:
        self.begin, self.size, self.low, self.width = begin, size, low, width


Trace = Callable[[_Strand, np.ndarray, int], np.ndarray]
"""Traces an HSP (i8[8], which is changed) with an X-drop: its script, i4[n, 2]."""


class TracebackCpu(Traceback):
    """What both tracebacks share on the CPU."""

    backend = "cpu"

    def footprint(self, shape: Shape) -> Footprint:
        return Footprint(host=4 * shape.target_residues + 12 * shape.query_residues
                         + 64 * shape.threads * shape.longest_query)

    @abstractmethod
    def tracer(self, context: Context, strands: np.ndarray, offsets: np.ndarray) -> Callable[[], Trace]:
        """Makes the function that traces, for each thread."""

    def aligner(self, scoring: Any, x_drop: int, query: bytes, target: bytes) -> Any:
        raise NotImplementedError

    def run(self, context: Context, records: Records) -> Alignments:
        assert isinstance(records, Alignments)
        if not len(records):
            return Alignments({})
        queries, targets, scoring, options = context.queries, context.targets, context.scoring, context.options
        bounds = group_starts(records.query, records.target, records.query_frame)
        firsts = bounds[:-1]
        query_of, at = queries.locate(records.query[firsts]), targets.locate(records.target[firsts])
        frames = records.query_frame[firsts].astype(np.int64)
        hsps = _strand_rows(context, records)
        strands, begins = laid_out_strands(context)
        true = strands if not len(queries.hard) else laid_out_strands(context, queries.residues)[0]
        offsets = strand_offsets(begins)
        begin = self.tracer(context, strands, offsets)
        residues, separation = targets.residues, self.options.diagonal_separation
        costs = base_costs(scoring)
        matrix = np.array(costs.matrix, np.int64)
        most = int(np.diff(bounds).max())

        def part(span: tuple[int, int]) -> list[tuple[int, TracedHsp, np.ndarray, np.ndarray]]:
            trace = begin()
            result = []
            for group in range(*span):
                piece = 4 * int(query_of[group]) + 2 * (int(frames[group]) < 0)
                strand = _Strand(int(offsets[piece]), int(offsets[piece + 1] - offsets[piece]),
                                 int(targets.offsets[at[group]]), int(targets.lengths[at[group]]))
                of_query = scoring.query(int(query_of[group]))
                cutoff = of_query.strand(int(frames[group])).cutoff

                def similar(row: np.ndarray, script: np.ndarray, strand: _Strand = strand) -> bool:
                    if options.perc_identity <= 0:
                        return True
                    equal, columns = _identities(script, true, strand.begin + row[QUERY_START], residues,
                                                 strand.low + row[TARGET_START])
                    return equal * 100.0 >= columns * options.perc_identity

                saved = saved_room(min(most, int(bounds[group + 1] - bounds[group])), strand.width)
                traced = []
                for number in range(bounds[group], bounds[group + 1]):
                    row = hsps[number]
                    if is_contained(saved, row, separation):
                        continue
                    start_point(row, strands, strand.begin, strand.size, residues, strand.low, strand.width)
                    script = trace(strand, row, of_query.xdrop_final)
                    if len(script) and (self.rescores_all or similar(row, script)):
                        while not save(saved, row):
                            saved = saved._replace(entries=np.concatenate([saved.entries, saved.entries]))
                        traced.append(_traced(row, script))
                kept, rest = cut_common_ends(traced)
                if self.rescores_all:
                    kept, rest = [], kept + rest
                for hsp in rest:
                    row, script = _row(hsp), np.array(hsp.script, np.int32).reshape(-1, 2)
                    first, runs = best_part(row, script, strands, strand.begin, strand.size, residues, strand.low,
                                            strand.width, matrix, costs.gap_open, costs.gap_extend, costs.reward,
                                            costs.factor, cutoff)
                    script = script[first : first + runs]
                    script = script[script[:, 1] > 0]
                    if runs and similar(row, script):
                        kept.append(_traced(row, script))
                stay = saved_room(len(kept), strand.width)
                for hsp in purge_common_endpoints(kept):
                    row = _row(hsp)
                    if is_contained(stay, row, separation):
                        continue
                    while not save(stay, row):
                        stay = stay._replace(entries=np.concatenate([stay.entries, stay.entries]))
                    script = np.array(hsp.script, np.int32).reshape(-1, 2)
                    path = np.empty(len(script) + 2 * int(script[:, 1].sum()), np.uint32)
                    counts = np.empty(6, np.int64)
                    runs = _edit_path(script, true, strand.begin + hsp.query_start, residues,
                                      strand.low + hsp.target_start, bool(frames[group] == MINUS), path, counts)
                    result.append((group, hsp, counts, path[:runs].copy()))
            context.advance(int(bounds[span[1]] - bounds[span[0]]), len(records))
            return result

        found = [row for rows in run_tasks(context.threads, part, group_parts(bounds, context.threads)) for row in rows]
        if not found:
            return Alignments({})
        group = np.array([row[0] for row in found])
        minus, length = frames[group] < 0, queries.lengths[query_of[group]]
        start, end = (np.array([getattr(row[1], name) for row in found]) for name in ("query_start", "query_end"))
        counted = np.stack([row[2] for row in found])
        return Alignments({
            "query": queries.ordinals[query_of[group]], "target": targets.ordinals[at[group]],
            "score": np.array([row[1].score for row in found]),
            "query_start": np.where(minus, length - end, start), "query_end": np.where(minus, length - start, end),
            "target_start": np.array([row[1].target_start for row in found]),
            "target_end": np.array([row[1].target_end for row in found]),
            "query_frame": np.ones(len(found), np.int8), "target_frame": frames[group],
            **{name: counted[:, place] for place, name in enumerate(PathCounts._fields)},
            "path": Ragged.of([row[3] for row in found]),
        })


def _strand_rows(context: Context, records: Records) -> np.ndarray:
    """i8[n, 8]: preliminary alignments in the coordinates of their strands."""
    hsps = np.zeros((len(records), 8), np.int64)
    minus = records.query_frame < 0
    length = context.queries.lengths[context.queries.locate(records.query)]
    start, end, anchor = (records.data[name].astype(np.int64)
                          for name in ("query_start", "query_end", "anchor_query"))
    hsps[:, SCORE] = records.score
    hsps[:, QUERY_START] = np.where(minus, length - end, start)
    hsps[:, QUERY_END] = np.where(minus, length - start, end)
    hsps[:, TARGET_START], hsps[:, TARGET_END] = records.target_start, records.target_end
    hsps[:, ANCHOR_QUERY] = np.where(minus, length - anchor, anchor)
    hsps[:, ANCHOR_TARGET] = records.anchor_target
    return hsps


def _traced(row: np.ndarray, script: np.ndarray) -> TracedHsp:
    score, query_start, query_end, target_start, target_end = row[: TARGET_END + 1].tolist()
    return TracedHsp(score, query_start, query_end, target_start, target_end, script=script.tolist())


def _row(hsp: TracedHsp) -> np.ndarray:
    return np.array([hsp.score, hsp.query_start, hsp.query_end, hsp.target_start, hsp.target_end, 0, 0, 0], np.int64)


class XDropTracebackCpu(TracebackCpu, XDropTraceback):
    __doc__ = XDropTraceback.__doc__
    backend = "cpu"

    def tracer(self, context: Context, strands: np.ndarray, offsets: np.ndarray) -> Callable[[], Trace]:
        scoring, residues = context.scoring, context.targets.residues
        gap_open, gap_extend, matrix = scoring.gap_open, scoring.gap_extend, scoring.matrix
        highest = max([gap_open + gap_extend, *(of.xdrop_final for of in scoring.kinds)])
        query = xdrop_cpu.both_ways(strands, np.array([0, len(strands)]), np.arange(1)).residues
        target = xdrop_cpu.both_ways(residues, np.array([0, len(residues)]), np.arange(1)).residues
        cells = xdrop_cpu.cells(matrix, gap_open, gap_extend, highest)
        costs = xdrop_cpu.Costs.of(matrix, gap_open, gap_extend, highest)
        height = int(np.diff(offsets).max())
        width = min(context.targets.longest, reach(scoring, height, highest))

        def begin() -> Trace:
            space = xdrop_cpu.workspace(height, width, cells)
            row_codes = np.empty((2, height + 1), np.int64)
            steps, outwards, script = (np.empty(height + width + 1, np.uint8), np.empty(height + width + 1, np.uint8),
                                       np.empty((height + width + 1, 2), np.int32))
            codes = np.empty((2, min(1 << 20, (height + 1) * (width // 16 + 8))), np.uint64)

            def trace(strand: _Strand, row: np.ndarray, x_drop: int) -> np.ndarray:
                nonlocal codes
                own = costs._replace(x_drop=max(x_drop, gap_open + gap_extend))
                while True:
                    runs = _trace(query, strand.begin, strand.size, target, strand.low, strand.width, row, own,
                                  scoring.reward, space, codes, row_codes, steps, outwards, script)
                    if runs >= 0:
                        return script[:runs]
                    codes = np.empty((2, 4 * codes.shape[1]), np.uint64)

            return trace

        return begin


class GreedyTracebackCpu(TracebackCpu, GreedyTraceback):
    __doc__ = GreedyTraceback.__doc__
    backend = "cpu"

    def tracer(self, context: Context, strands: np.ndarray, offsets: np.ndarray) -> Callable[[], Trace]:
        scoring, residues = context.scoring, context.targets.residues
        refuse_affine(scoring)
        query, target = matchable_strands(strands), matchable_targets(residues)
        scores = scoring.reward, scoring.penalty, 2 if scoring.reward % 2 else 1

        def begin() -> Trace:
            room, sides = GreedyRoom(), np.zeros((2, 7), np.int64)
            script = np.empty((4 * len(room.rows.rows) + 8, 2), np.int32)

            def trace(strand: _Strand, row: np.ndarray, x_drop: int) -> np.ndarray:
                nonlocal script
                while True:
                    state, runs = _trace_greedily(query, strand.begin, strand.size, target, strand.low, strand.width,
                                                  row, scores, x_drop, room.rows, sides, script)
                    if state == DONE:
                        break
                    room.grow(state)
                    script = np.empty((4 * len(room.rows.rows) + 8, 2), np.int32)
                own = slice(strand.begin + row[QUERY_START], strand.begin + row[QUERY_END])
                opposite = slice(strand.low + row[TARGET_START], strand.low + row[TARGET_END])
                tidy = clean_gaps(script[:runs].tolist(), strands[own].tobytes(), residues[opposite].tobytes())
                return np.array(tidy, np.int32).reshape(-1, 2)

            return trace

        return begin
