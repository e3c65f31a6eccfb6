"""Tracebacks of nucleotide BLAST on the CPU: the reference's rules, all strands of a batch in a few kernels.

A group is a strand of a query with a target. A path is a script of runs, i4[n, 2] (operation, length), as in
``greedy``; scripts of all alignments lie one behind the other.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from seqloom.core.classes import NamedTuple
from seqloom.core.context import Context
from seqloom.core.engine.threads import run_tasks
from seqloom.core.kernels.jit import kernel
from seqloom.core.records import DELETE, INSERT, Alignments, Ragged, Records
from seqloom.core.sequences import offsets_of
from seqloom.core.stages import Footprint, Shape
from seqloom.plugins.common import xdrop_cpu
from seqloom.plugins.common.culling_cpu import (
    ANCHOR_QUERY,
    ANCHOR_TARGET,
    BY_ENDS,
    END_SIGNS,
    QUERY_END,
    QUERY_START,
    SCORE,
    TARGET_END,
    TARGET_START,
    put_in_report_order,
    sort_pairs,
)
from seqloom.plugins.common.culling_cpu import PAIR as GROUP_OF
from seqloom.plugins.common.edit_path import PathCounts
from seqloom.plugins.common.grouping import cut_at, even_parts, group_starts
from seqloom.plugins.common.order_cpu import RISING, sort_groups
from seqloom.plugins.common.xdrop_cpu import BOTH, LEFT, RIGHT, ROW_ONLY, joined_path
from seqloom.plugins.common.xdrop_cpu import extend as extend_by_scores
from seqloom.plugins.nucleotide_blast.gapped_cpu import (
    MORE_SAVED,
    GreedyRoom,
    greedy_reach,
    matchable_strands,
    most_columns,
    set_out,
    strand_offsets,
    within_reach,
)
from seqloom.plugins.nucleotide_blast.gapped_reference import reach, refuse_affine
from seqloom.plugins.nucleotide_blast.greedy import PAIR as PAIRS
from seqloom.plugins.nucleotide_blast.greedy_cpu import DONE, script_of, sequence, write_ends
from seqloom.plugins.nucleotide_blast.greedy_cpu import extend as extend_greedily
from seqloom.plugins.nucleotide_blast.packed_cpu import (
    Around,
    aligned_residues,
    parts_by_target,
    real_residues,
    stretches,
)
from seqloom.plugins.nucleotide_blast.saved_cpu import (
    STRETCH,
    Saved,
    copy_row,
    forget,
    has_room,
    is_contained,
    save,
    saved_room,
)
from seqloom.plugins.nucleotide_blast.scripts_cpu import (
    WHOLE,
    best_part,
    clean_gaps,
    cut_shared,
    edit_path,
    is_similar,
)
from seqloom.plugins.nucleotide_blast.strands import MINUS, PLUS
from seqloom.plugins.nucleotide_blast.traceback_reference import (
    GOOD_RUN,
    VERY_GOOD_RUN,
    GreedyTraceback,
    Traceback,
    XDropTraceback,
    base_costs,
)
from seqloom.plugins.nucleotide_blast.ungapped_cpu import laid_out_strands

BEGIN, SIZE, LOW, WIDTH, TURNED, CUTOFF, X_DROP = range(7)
"""Columns of a group: first base and length of its strand and of its target, whether it is the reverse strand, least
score, X-drop."""
GROUP, ROW, COUNT, USED, EVERY = range(5)
"""How far a kernel has come: group, preliminary alignment, and alignments and runs that were made; and whether it makes
one of every preliminary alignment, with no runs where there is none."""
AHEAD, MORE_RUNS, MORE_CODES = 10, 11, 12
_BY_GROUP, _BY_GROUP_SIGNS = np.array([GROUP_OF]), np.array([RISING])
FIRST_RUNS = 16
FIRST_STEPS = 32
"""Room for runs, and for steps of edit paths, to begin with, for each alignment."""


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
    state = extend_greedily(query, begin + q, q, target, low + t, t, True, match, mismatch, x_drop, False,
                            rows, left)
    if state != DONE:
        return state, 0
    # From the end back to the start is from left to right here.
    count = script_of(rows, left, script)
    state = extend_greedily(query, begin + q, size - q, target, low + t, width - t, False, match, mismatch, x_drop,
                            False, rows, right)
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
    write_ends(q, t, left, right, reward, penalty, hsp)
    return DONE, count + runs


@kernel
def _trace(query, begin, size, target, low, width, hsp, costs, x_drop, reward, space, codes, row_codes, steps, outwards,
           script):
    """Trace from an anchor by scores; fills ``hsp`` and ``script``; number of runs, or −1: ``codes`` are too few.

    query, target: ``both_ways`` residues; the strand and the target begin at ``begin`` and ``low`` behind the padding.
    """
    matrix, tables, highest, gap_open, gap_extend, _ = costs
    q, t = hsp[ANCHOR_QUERY] + 1, hsp[ANCHOR_TARGET] + 1
    set_out(space.passes, query, begin, q, q, size - q, target, low, t,
            min(t, most_columns(q, reward, gap_extend, x_drop)),
            min(width - t, most_columns(size - q, reward, gap_extend, x_drop)))
    if not extend_by_scores(query, target, (matrix, tables, highest, gap_open, gap_extend, x_drop), None, space, False,
                            codes, row_codes):
        return -1
    first, last = joined_path(space.passes, q, t, True, gap_open, gap_extend, codes, row_codes, outwards, steps, hsp)
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
def _settled(saved, row, script, runs, rows, spans, progress, wanted):
    """Keep a traced alignment with its script, if it is ``wanted``, and go on to the next; False: ``runs`` are too few.
    """
    count, used, size = progress[COUNT], progress[USED], len(script) if wanted else 0
    if used + size > len(runs):
        return False
    if wanted and not progress[EVERY]:
        save(saved, row)
    if wanted or progress[EVERY]:
        copy_row(row, rows[count])
        rows[count, GROUP_OF] = progress[GROUP]
        spans[count, 0], spans[count, 1] = used, size
        for run in range(size):
            runs[used + run, 0], runs[used + run, 1] = script[run, 0], script[run, 1]
        progress[COUNT], progress[USED] = count + 1, used + size
    progress[ROW] += 1
    return True


@kernel
def _next(groups, bounds, hsps, separation, saved, progress, row):
    """Copy the next alignment to trace to ``row``: DONE (at the end of all), AHEAD or MORE_SAVED."""
    while progress[GROUP] < len(groups):
        if progress[ROW] == bounds[progress[GROUP] + 1]:
            progress[GROUP] += 1
            forget(saved)
            continue
        group = groups[progress[GROUP]]
        copy_row(hsps[progress[ROW]], row)
        if progress[EVERY]:
            return AHEAD
        if not has_room(saved, group[WIDTH]):
            return MORE_SAVED
        if not is_contained(saved, row, separation):
            return AHEAD
        progress[ROW] += 1
    return DONE


@kernel
def take_in_turn(hsps, rows, sizes, groups, bounds, separation, saved, kept, progress):
    """Write to ``kept`` the numbers of those alignments of all ``hsps`` that ``_trace_all`` would make.

    sizes: i8[n], 0 where there is no alignment. kept: i8[n], ``progress[COUNT]`` are written. Returns DONE or what is
    missing; goes on from ``progress``.
    """
    while progress[GROUP] < len(groups):
        at = progress[ROW]
        if at == bounds[progress[GROUP] + 1]:
            progress[GROUP] += 1
            forget(saved)
            continue
        if not has_room(saved, groups[progress[GROUP], WIDTH]):
            return MORE_SAVED
        if sizes[at] > 0 and not is_contained(saved, hsps[at], separation):
            save(saved, rows[at])
            kept[progress[COUNT]] = at
            progress[COUNT] += 1
        progress[ROW] += 1
    return DONE


@kernel
def _trace_all_greedily(query, residues, matchable, matchable_residues, groups, bounds, hsps, separation, scores,
                        distances, sides, script, saved, runs, rows, spans, progress, row):
    """Trace the alignments of all groups, from ``progress`` on; returns DONE or what is missing.

    query, residues: u1, as they score. rows, spans, runs: what is made. row: room for one.
    """
    while True:
        state = _next(groups, bounds, hsps, separation, saved, progress, row)
        if state != AHEAD:
            return state
        group = groups[progress[GROUP]]
        begin, size, low, width = group[BEGIN], group[SIZE], group[LOW], group[WIDTH]
        start_point(row, query, begin, size, residues, low, width)
        state, count = _trace_greedily(matchable, begin, size, matchable_residues, low, width, row, scores,
                                       group[X_DROP], distances, sides, script)
        if state != DONE:
            return state
        i, j = row[QUERY_START], row[TARGET_START]
        count = clean_gaps(script, count, query, begin + i, row[QUERY_END] - i, residues, low + j, row[TARGET_END] - j)
        if not _settled(saved, row, script[:count], runs, rows, spans, progress, count > 0):
            return MORE_RUNS


@kernel
def _trace_all(query, real, residues, padded, padded_residues, groups, bounds, hsps, separation, percent, costs, reward,
               space, codes, row_codes, steps, outwards, script, saved, runs, rows, spans, progress, row):
    """As ``_trace_all_greedily``, by scores. real: the queries' real bases. padded, padded_residues: ``both_ways``."""
    least_drop = costs.gap_open + costs.gap_extend
    while True:
        state = _next(groups, bounds, hsps, separation, saved, progress, row)
        if state != AHEAD:
            return state
        group = groups[progress[GROUP]]
        begin, size, low, width = group[BEGIN], group[SIZE], group[LOW], group[WIDTH]
        start_point(row, query, begin, size, residues, low, width)
        count = _trace(padded, begin, size, padded_residues, low, width, row, costs, max(group[X_DROP], least_drop),
                       reward, space, codes, row_codes, steps, outwards, script)
        if count < 0:
            return MORE_CODES
        wanted = count > 0 and is_similar(script[:count], real, begin + row[QUERY_START], residues,
                                          low + row[TARGET_START], percent)
        if not _settled(saved, row, script[:count], runs, rows, spans, progress, wanted):
            return MORE_RUNS


@kernel
def _in_sequence(rows, spans, runs, order, fates, room):
    """``rescore.cut_common_ends`` of all groups: rows that stay, then those that were cut, in reverse.

    Changes rows, spans and runs, and writes the rows to the first places of ``order``; returns how many.

    Args:
        fates: i8[n], above ``WHOLE`` for those that were cut.
        room: i8[3, n + 1].
    """
    count, cuts, cut = len(rows), 0, room[2]
    for row in range(count):
        order[row], fates[row] = row, WHOLE
    for side in range(2):
        sort_pairs(rows, order[:count], BY_ENDS[side], END_SIGNS, room)
        cuts = cut_shared(rows, spans, runs, order[:count], side == 0, fates, cuts)
        whole = 0
        for at in range(count):
            if fates[order[at]] == WHOLE:
                order[whole] = order[at]
                whole += 1
        count = whole
    for row in range(len(rows)):
        if fates[row] > WHOLE:
            cut[fates[row] - 1] = row
    for number in range(cuts - 1, -1, -1):
        order[count] = cut[number]
        count += 1
    bounds = room[0]
    bounds[0], bounds[1] = 0, count
    sort_groups(rows, bounds[:2], _BY_GROUP, _BY_GROUP_SIGNS, order[:count], room[1])
    return count


@kernel
def _rescore(query, real, residues, groups, rows, spans, runs, order, fates, every, matrix, costs, percent):
    """Re-score ``every`` row, or those that were cut, in this order; returns how many are left, the first ones of it.

    query, residues: ``greedy_cpu.sequence``. real: the queries' real bases.
    """
    gap_open, gap_extend, reward, factor = costs
    left = 0
    for at in range(len(order)):
        row = order[at]
        order[left] = row
        if not every and fates[row] == WHOLE:
            left += 1
            continue
        group, hsp = groups[rows[row, GROUP_OF]], rows[row]
        first, count = spans[row, 0], spans[row, 1]
        skipped, count = best_part(hsp, runs[first : first + count], query, group[BEGIN], group[SIZE], residues,
                                   group[LOW], group[WIDTH], matrix, gap_open, gap_extend, reward, factor,
                                   group[CUTOFF])
        first += skipped
        spans[row, 0], spans[row, 1] = first, count
        left += count > 0 and is_similar(
            runs[first : first + count], real, group[BEGIN] + hsp[QUERY_START], residues.bases,
            group[LOW] + hsp[TARGET_START], percent)
    return left


@kernel
def _choose(query, real, residues, groups, rows, spans, runs, every, matrix, costs, percent, order, fates, room):
    """Cut and re-score rows, and write those that are left to the first places of ``order``, by group, best first.

    Returns how many, and how many stretches of targets these are in (``saved_cpu.STRETCH``).
    """
    count = _in_sequence(rows, spans, runs, order, fates, room)
    count = _rescore(query, real, residues, groups, rows, spans, runs, order[:count], fates, every, matrix, costs,
                     percent)
    count, stretches = put_in_report_order(rows, order[:count], room), 0
    for at in range(count):
        row = rows[order[at]]
        stretches += row[TARGET_END] // STRETCH - row[TARGET_START] // STRETCH + 1
    return count, stretches


@kernel
def _drop_contained(rows, order, separation, saved):
    """Keep the rows, in this order, that no earlier one of their group encloses; returns how many, the first of it."""
    forget(saved)
    left, group = 0, np.int64(-1)
    for at in range(len(order)):
        row = rows[order[at]]
        if row[GROUP_OF] != group:
            forget(saved)
        group = row[GROUP_OF]
        if not is_contained(saved, row, separation):
            save(saved, row)
            order[left] = order[at]
            left += 1
    return left


@kernel
def _edit_paths(real, residues, groups, rows, spans, runs, order, offsets, paths, counts, first):
    """Write the edit paths of rows, in this order, and their counts, from number ``first`` on.

    Returns the number of the first one that ``paths`` has no room for; what it needs is told by its offsets.

    real, residues: ``greedy_cpu.sequence``.
    """
    for at in range(first, len(order)):
        row, span = rows[order[at]], spans[order[at]]
        group = groups[row[GROUP_OF]]
        offsets[at + 1] = offsets[at] + edit_path(
            runs[span[0] : span[0] + span[1]], real, group[BEGIN] + row[QUERY_START], residues,
            group[LOW] + row[TARGET_START], group[TURNED] != 0, paths[offsets[at] :], counts[at])
        if offsets[at + 1] > len(paths):
            return at
    return len(order)


class Made(NamedTuple):
    """Traced alignments.

    Attributes:
        rows: i8[n, 8], with the group of each. spans: i8[n, 2], first run of each, and how many it has.
        runs: i4[m, 2], operation and length.
    """

    rows: np.ndarray
    spans: np.ndarray
    runs: np.ndarray

    @staticmethod
    def joined(parts: Sequence[Made]) -> Made:
        """One behind the other."""
        rows, spans, runs = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
        firsts = offsets_of(np.array([len(made.runs) for made in parts]))[:-1]
        spans[:, 0] += np.repeat(firsts, [len(made.rows) for made in parts])
        return Made(rows, spans, runs)


class TracebackInput(NamedTuple):
    """What is to be traced.

    Attributes:
        strands, real: u1, ``laid_out_strands`` as they are searched, and of real residues.
        offsets: i8[4k + 1], ``strand_offsets`` of them.
        groups: i8[g, 7], columns ``BEGIN`` … ``X_DROP``. bounds: i8[g + 1], the first row of ``hsps`` of each.
        hsps: i8[n, 8], preliminary alignments.
    """

    strands: np.ndarray
    real: np.ndarray
    offsets: np.ndarray
    groups: np.ndarray
    bounds: np.ndarray
    hsps: np.ndarray


def joined(parts: Iterable[tuple[np.ndarray, np.ndarray, Ragged]]) -> tuple[np.ndarray, np.ndarray, Ragged]:
    """Rows, counts and paths one behind the other."""
    rows, counts, paths = (list(column) for column in zip(*parts, strict=True))
    return np.concatenate(rows), np.concatenate(counts), Ragged.concat(paths)


Trace = Callable[[np.ndarray, np.ndarray, np.ndarray, Saved, Made, np.ndarray], int]
"""Kernels for groups, their bounds, preliminary alignments, what saves, what is made, and how far they have come."""

Tracer = Callable[[Around], tuple[Trace, Callable[[int], None]]]

BYTES_PER_ROW = 600
"""Choices that are kept of a row of an alignment, of which the longest is about as long as a sequence."""
WORTH_A_PIECE = 1 << 20
"""Bases of a query that alignments of a group may take in, from which on another piece is made of the group."""


def parts_of_groups(bounds: np.ndarray, bases: np.ndarray, threads: int) -> dict[int, list[tuple[int, int]]]:
    """Rows first … last − 1 of pieces of those groups that would keep one thread busy while others have no work left.

    Args:
        bounds: i8[g + 1], of groups. bases: i8[n], that the alignment of each row may take in of its query.
    """
    if threads < 2 or len(bounds) < 2:
        return {}
    of_groups = np.add.reduceat(bases, bounds[:-1])
    least = max(4 * WORTH_A_PIECE, int(of_groups.sum()) // threads)
    return {group: even_parts(int(bounds[group + 1] - bounds[group]), threads, int(of_groups[group]) / WORTH_A_PIECE)
            for group in np.flatnonzero(of_groups > least).tolist()}


def first_codes(height: int, width: int) -> int:
    """Codes of choices that a thread begins with on either side."""
    return min(1 << 20, (height + 1) * (width // 16 + 8))


class TracebackCpu(Traceback):
    """What both tracebacks share on the CPU."""

    backend = "cpu"
    reads_residues = False

    def footprint(self, shape: Shape) -> Footprint:
        of_queries = 12 * shape.query_residues + 64 * shape.threads * shape.longest_query
        return Footprint(host=shape.target_residues + of_queries)

    @abstractmethod
    def reach(self, scoring: Any, bases: np.ndarray) -> np.ndarray:
        """i8[n]: how many bases of a target an alignment with i8[n] ``bases`` of a query can take in at most."""

    @abstractmethod
    def tracer(self, context: Context, strands: np.ndarray, real: np.ndarray, offsets: np.ndarray) -> Tracer:
        """Makes the kernel and what gives it more room, for what it reads of the volume."""

    def aligner(self, scoring: Any, x_drop: int, query: bytes, target: bytes) -> Any:
        raise NotImplementedError

    def run(self, context: Context, records: Records) -> Alignments:
        assert isinstance(records, Alignments)
        if not len(records):
            return Alignments({})
        queries, targets, scoring = context.queries, context.targets, context.scoring
        bounds = group_starts(records.query, records.target, records.query_frame)
        firsts = bounds[:-1]
        query_of, at = queries.locate(records.query[firsts]), targets.locate(records.target[firsts])
        minus = records.query_frame[firsts] < 0
        hsps = _strand_rows(context, records)
        strands, begins = laid_out_strands(context)
        real = strands if not len(queries.hard) else laid_out_strands(context, queries.residues)[0]
        offsets = strand_offsets(begins)
        places = 4 * query_of + 2 * minus
        cutoffs = scoring.of_queries(lambda of: (of.plus.cutoff, of.minus.cutoff))[query_of, minus.astype(np.int64)]
        groups = np.stack([offsets[places], offsets[places + 1] - offsets[places], targets.offsets[at],
                           targets.lengths[at], minus, cutoffs,
                           scoring.of_queries(lambda of: of.xdrop_final)[query_of]], axis=1).astype(np.int64)
        rows, counts, paths = self.aligned(context, TracebackInput(strands, real, offsets, groups, bounds, hsps))
        return final_records(context, rows, counts, paths, query_of, at, minus)

    def aligned(self, context: Context, given: TracebackInput) -> tuple[np.ndarray, np.ndarray, Ragged]:
        """Final alignments, by group, best first: rows, counts and paths."""
        groups, bounds, hsps = given.groups, given.bounds, given.hsps
        begin = self.tracer(context, given.strands, given.real, given.offsets)
        around = around_of_rows(groups, bounds, hsps)
        low, high = self.within_reach(context, around)

        def around_of(some: slice, own: np.ndarray) -> Around:
            residues = aligned_residues(context, stretches(low[some], high[some]))
            own[:, LOW] -= residues.begin
            return residues

        pieces = parts_of_groups(bounds, around[:, :2].sum(axis=1), context.threads)

        def piece(task: tuple[int, int, int]) -> Made:
            group, *rows = task
            own, starts = groups[group : group + 1].copy(), bounds[group] + np.array(rows)
            residues = around_of(slice(*starts), own)
            return self.traced(own, starts, hsps, *begin(residues), every=True)

        ahead: dict[int, list[Made]] = {group: [] for group in pieces}
        tasks = [(group, *rows) for group, some in pieces.items() for rows in some]
        for (group, *_), traced in zip(tasks, run_tasks(context.threads, piece, tasks), strict=True):
            ahead[group].append(traced)

        def part(span: tuple[int, int]) -> tuple[np.ndarray, np.ndarray, Ragged]:
            own, starts = groups[slice(*span)].copy(), bounds[span[0] : span[1] + 1]
            some = slice(starts[0], starts[-1])
            residues = around_of(some, own)
            if span[0] in ahead:
                made = self._taken_in_turn(ahead.pop(span[0]), own, hsps[some])
            else:
                made = self.traced(own, starts, hsps, *begin(residues))
            rows, counts, paths = self.chosen(context, given, residues, own, made)
            rows[:, GROUP_OF] += span[0]
            context.advance(int(starts[-1] - starts[0]), len(hsps))
            return rows, counts, paths

        parts = cut_at(parts_by_target(bounds, context.threads, groups[:, LOW], int(around[:, :2].sum())), pieces)
        return joined(run_tasks(context.threads, part, parts))

    def within_reach(self, context: Context, around: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """First and last base but one of the volume that alignments may look at. around: see ``around_of_rows``."""
        return within_reach(around, lambda bases: self.reach(context.scoring, bases))

    def traced(self, groups: np.ndarray, bounds: np.ndarray, hsps: np.ndarray, trace: Trace,
                grow: Callable[[int], None], every: bool = False) -> Made:
        """All preliminary alignments of some groups, traced, in more room where it was too little.

        every: as of ``EVERY``.
        """
        most = int(bounds[-1] - bounds[0])
        saved = saved_room(0 if every else int(np.diff(bounds).max()), int(groups[:, WIDTH].max()))
        made = Made(np.empty((most, 8), np.int64), np.empty((most, 2), np.int64),
                    np.empty((FIRST_RUNS * most, 2), np.int32))
        progress = np.array([0, bounds[0], 0, 0, every])
        while (state := trace(groups, bounds, hsps, saved, made, progress)) != DONE:
            if state == MORE_SAVED:
                saved = saved.grown()
            elif state == MORE_RUNS:
                made = made._replace(runs=np.concatenate([made.runs, np.empty((3 * len(made.runs), 2), np.int32)]))
            else:
                grow(state)
        return Made(made.rows[: progress[COUNT]], made.spans[: progress[COUNT]], made.runs)

    def _taken_in_turn(self, parts: list[Made], groups: np.ndarray, hsps: np.ndarray) -> Made:
        """What ``traced`` makes of a group, of what it made of every row of pieces of it."""
        rows, spans, runs = Made.joined(parts)
        kept = self.in_turn(groups, np.array([0, len(rows)]), hsps, rows, spans[:, 1])
        return Made(rows[kept], spans[kept], runs)

    def in_turn(self, groups: np.ndarray, bounds: np.ndarray, hsps: np.ndarray, rows: np.ndarray, sizes: np.ndarray
                ) -> np.ndarray:
        """Numbers of the rows that stay, of alignments that were made of all ``hsps``; see ``take_in_turn``."""
        saved = saved_room(int(np.diff(bounds).max(initial=0)), int(groups[:, WIDTH].max(initial=0)))
        kept, progress = np.empty(len(rows), np.int64), np.zeros(EVERY, np.int64)
        while take_in_turn(hsps, rows, sizes, groups, bounds, self.options.diagonal_separation, saved, kept,
                           progress) != DONE:
            saved = saved.grown()
        return kept[: progress[COUNT]]

    def chosen(self, context: Context, given: TracebackInput, around: Around, groups: np.ndarray, made: Made
               ) -> tuple[np.ndarray, np.ndarray, Ragged]:
        """Alignments that stay, by group, best first: rows, counts and paths. around: of ``aligned_residues``."""
        strands, real, (rows, spans, runs), residues = given.strands, given.real, made, around.codes
        costs, room = base_costs(context.scoring), np.empty((5, len(rows) + 1), np.int64)
        order = room[3]
        count, entries = _choose(
            sequence(strands), real, sequence(residues), groups, rows, spans, runs, self.rescores_all,
            np.array(costs.matrix, np.int64), (costs.gap_open, costs.gap_extend, costs.reward, costs.factor),
            context.options.perc_identity, order, room[4], room[:3])
        saved = saved_room(count, int(groups[:, WIDTH].max()), entries)
        left = order[: _drop_contained(rows, order[:count], self.options.diagonal_separation, saved)]
        paths, counts = paths_and_counts(real, residues, groups, rows, spans, runs, left)
        shown, groups = as_shown(context, around, groups, rows[left])
        if shown is not residues:
            paths = paths_and_counts(real, shown, groups, rows, spans, runs, left)[0]
        return rows[left], counts, paths


def as_shown(context: Context, around: Around, groups: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Residues of the targets that alignments show: those that hard masks hide, too. And the groups, with ``LOW`` in
    these.

    Args:
        around: what was aligned, of ``aligned_residues``.
        groups, rows: of alignments.
    """
    if not len(context.targets.hard) or not len(rows):
        return around.codes, groups
    low = around.begin + groups[rows[:, GROUP_OF], LOW]
    shown = real_residues(context, stretches(low + rows[:, TARGET_START], low + rows[:, TARGET_END]))
    groups = groups.copy()
    groups[:, LOW] += around.begin - shown.begin
    return shown.codes, groups


def around_of_rows(groups: np.ndarray, bounds: np.ndarray, hsps: np.ndarray) -> np.ndarray:
    """What ``within_reach`` wants to know of alignments."""
    size, low, width = np.repeat(groups[:, [SIZE, LOW, WIDTH]], np.diff(bounds), axis=0).T
    return np.stack([hsps[:, QUERY_END], size - hsps[:, QUERY_START], low + hsps[:, TARGET_START],
                     low + hsps[:, TARGET_END], low, low + width], axis=1)


def paths_and_counts(real: np.ndarray, residues: np.ndarray, groups: np.ndarray, rows: np.ndarray, spans: np.ndarray,
                     runs: np.ndarray, order: np.ndarray) -> tuple[Ragged, np.ndarray]:
    """Edit paths of rows in some order, and i8[n, columns of `PathCounts`].

    Args:
        real: strands as ``laid_out_strands`` has them; ``residues``: those of the targets.
        groups, rows, spans, runs: see ``Made``.
    """
    offsets, counts = np.zeros(len(order) + 1, np.int64), np.empty((len(order), len(PathCounts._fields)), np.int64)
    paths, bases, opposite, done = np.empty(FIRST_STEPS * len(order), np.uint32), sequence(real), sequence(residues), 0
    while (done := _edit_paths(bases, opposite, groups, rows, spans, runs, order, offsets, paths, counts,
                               done)) < len(order):
        longer = np.empty(max(2 * len(paths), int(offsets[done + 1])), np.uint32)
        longer[: offsets[done]] = paths[: offsets[done]]
        paths = longer
    return Ragged(offsets, paths[: offsets[-1]].copy()), counts


def final_records(context: Context, rows: np.ndarray, counts: np.ndarray, paths: Ragged, query_of: np.ndarray,
             at: np.ndarray, minus: np.ndarray) -> Alignments:
    """Alignments in forward coordinates.

    Args:
        rows, counts, paths: of ``paths_and_counts``, i8[n, 8] and i8[n, columns of ``PathCounts``].
        query_of, at, minus: i8[g], i8[g] and bool[g], places of the query and of the target of each group, and
            whether it is of the minus strand.
    """
    group = rows[:, GROUP_OF]
    length, turned = context.queries.lengths[query_of[group]], minus[group]
    start, end = rows[:, QUERY_START], rows[:, QUERY_END]
    return Alignments({
        "query": context.queries.ordinals[query_of[group]], "target": context.targets.ordinals[at[group]],
        "score": rows[:, SCORE], "query_start": np.where(turned, length - end, start),
        "query_end": np.where(turned, length - start, end), "target_start": rows[:, TARGET_START],
        "target_end": rows[:, TARGET_END], "query_frame": np.ones(len(rows), np.int8),
        "target_frame": np.where(turned, MINUS, PLUS),
        **{name: counts[:, place] for place, name in enumerate(PathCounts._fields)}, "path": paths,
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


def _highest_drop(scoring: Any) -> int:
    """The largest X-drop of any query, which a gap of one base doesn't exceed."""
    return max([scoring.gap_open + scoring.gap_extend, *(of.xdrop_final for of in scoring.kinds)])


class XDropTracebackCpu(TracebackCpu, XDropTraceback):
    __doc__ = XDropTraceback.__doc__
    backend = "cpu"

    def footprint(self, shape: Shape) -> Footprint:
        least = super().footprint(shape).host + 2 * shape.target_residues
        of_threads = 16 * shape.threads * first_codes(shape.longest_query, shape.longest_target)
        return Footprint(host=least + of_threads + BYTES_PER_ROW * min(shape.longest_query, shape.longest_target))

    def reach(self, scoring: Any, bases: np.ndarray) -> np.ndarray:
        found: np.ndarray = reach(scoring, bases, _highest_drop(scoring))
        return found

    def tracer(self, context: Context, strands: np.ndarray, real: np.ndarray, offsets: np.ndarray) -> Tracer:
        scoring, percent = context.scoring, float(context.options.perc_identity)
        gap_open, gap_extend, matrix, highest = (scoring.gap_open, scoring.gap_extend, scoring.matrix,
                                                 _highest_drop(scoring))
        query = xdrop_cpu.both_ways(strands, np.array([0, len(strands)]), np.arange(1)).residues
        cells = xdrop_cpu.cells(matrix, gap_open, gap_extend, highest)
        costs = xdrop_cpu.Costs.of(matrix, gap_open, gap_extend, highest)
        height = int(np.diff(offsets).max())
        width = min(context.targets.longest, reach(scoring, height, highest))
        separation = self.options.diagonal_separation

        def begin(around: Around) -> tuple[Trace, Callable[[int], None]]:
            residues, target = around.codes, around.both_ways()
            space = xdrop_cpu.workspace(height, width, cells)
            row_codes = np.empty((2, height + 1), np.int64)
            steps, outwards = np.empty((2, height + width + 1), np.uint8)
            script = np.empty((height + width + 1, 2), np.int32)
            codes = np.empty((2, first_codes(height, width)), np.uint64)

            def trace(groups: np.ndarray, bounds: np.ndarray, hsps: np.ndarray, saved: Saved, made: Made,
                      progress: np.ndarray) -> int:
                state: int = _trace_all(strands, real, residues, query, target, groups, bounds, hsps, separation,
                                        percent, costs, scoring.reward, space, codes, row_codes, steps, outwards,
                                        script, saved, made.runs, made.rows, made.spans, progress,
                                        np.empty(8, np.int64))
                return state

            def grow(state: int) -> None:
                nonlocal codes
                codes = np.empty((2, 4 * codes.shape[1]), np.uint64)

            return trace, grow

        return begin


class GreedyTracebackCpu(TracebackCpu, GreedyTraceback):
    __doc__ = GreedyTraceback.__doc__
    backend = "cpu"

    def reach(self, scoring: Any, bases: np.ndarray) -> np.ndarray:
        return greedy_reach(scoring, bases, max(of.xdrop_final for of in scoring.kinds))

    def tracer(self, context: Context, strands: np.ndarray, real: np.ndarray, offsets: np.ndarray) -> Tracer:
        scoring = context.scoring
        refuse_affine(scoring)
        query = matchable_strands(strands)
        scores = scoring.reward, scoring.penalty, 2 if scoring.reward % 2 else 1
        separation = self.options.diagonal_separation

        def begin(around: Around) -> tuple[Trace, Callable[[int], None]]:
            residues, target = around.codes, sequence(around.codes)
            room, sides = GreedyRoom(), np.zeros((2, 7), np.int64)

            def trace(groups: np.ndarray, bounds: np.ndarray, hsps: np.ndarray, saved: Saved, made: Made,
                      progress: np.ndarray) -> int:
                script = np.empty((4 * len(room.rows.rows) + 8, 2), np.int32)
                state: int = _trace_all_greedily(strands, residues, query, target, groups, bounds, hsps, separation,
                                                 scores, room.rows, sides, script, saved, made.runs, made.rows,
                                                 made.spans, progress, np.empty(8, np.int64))
                return state

            return trace, room.grow

        return begin
