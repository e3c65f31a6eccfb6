"""``final-traceback`` on the CPU: all pairs that a thread takes up in one kernel."""

import numpy as np
from seqloom.core.context import Context
from seqloom.core.jit import kernel
from seqloom.core.records import DELETE, INSERT, MATCH, MISMATCH, Alignments, Ragged, Records
from seqloom.core.stages import Footprint, Shape
from seqloom.core.threads import in_turn
from seqloom.plugins.common import xdrop_cpu
from seqloom.plugins.common.edit_path import PathCounts
from seqloom.plugins.common.grouping import group_parts, group_starts
from seqloom.plugins.common.xdrop_cpu import (
    BOTH,
    COLUMN_ONLY,
    PADDING,
    ROW_ONLY,
    TOP,
    TOP_COLUMN,
    TOP_ROW,
    extend,
    walk_back,
)
from seqloom.plugins.protein_blast import gapped_cpu
from seqloom.plugins.protein_blast.gapped_cpu import (
    ANCHOR_QUERY,
    ANCHOR_TARGET,
    LEFT,
    NONE,
    PAIR,
    QUERY_END,
    QUERY_START,
    RIGHT,
    SCORE,
    TARGET_END,
    TARGET_START,
    alignments_of_rows,
    contained,
    extension_footprint,
    in_report_order,
    packed,
    save,
    set_out,
)
from seqloom.plugins.protein_blast.scoring import read_as_query
from seqloom.plugins.protein_blast.traceback_reference import FinalTraceback, similarity

DONE, MORE_CHOICES, MORE_RUNS = range(3)
"""Results of the kernel: done, too little room for the choices of a pass, too little room for paths."""
FIRST_CHOICES, FIRST_RUNS = 1 << 20, 2
"""Room to begin with: sets of lanes of each pass, runs of paths per letter of the preliminary
alignments. Four times as much is tried next."""


@kernel
def _trimmed(steps, size):
    """Where ``steps[:size]`` begin and end without the single gap at either end."""
    begin, end = NONE, size
    while begin < end and steps[begin] == steps[0] != BOTH:
        begin += 1
    while end > begin and steps[end - 1] == steps[size - 1] != BOTH:
        end -= 1
    return begin, end


@kernel(helpers=(xdrop_cpu, gapped_cpu))
def _trace_pairs(matrix, tables, similar, query, real, query_offsets, target, target_offsets, pairs, bounds, hsps,
                 gap_open, gap_extend, x_drop, best, gaps, passes, codes, row_codes, outwards, steps, saved, found,
                 counts, path_offsets, paths):
    """Trace the HSPs of every pair; returns (DONE or what is missing, number of alignments).

    query, target: u1[2, …] of ``both_ways``; real: the queries' real letters, forwards. hsps: i8[n, 8] with anchors,
    best first within a pair (``bounds``). found: i8[n, 8]; counts: i4[n, 6]; path_offsets: i8[n + 1] into paths u4.
    """
    count = used = NONE
    highest = np.int64(matrix.max())
    path_offsets[0] = 0
    for pair in range(len(pairs)):
        number, place = pairs[pair]
        query_begin, query_after = query_offsets[number], query_offsets[number + 1]
        target_begin, target_after = target_offsets[place], target_offsets[place + 1]
        kept = NONE
        for row in range(bounds[pair], bounds[pair + 1]):
            hsp = hsps[row]
            if contained(saved, kept, hsp[SCORE], hsp[QUERY_START], hsp[QUERY_END], hsp[TARGET_START],
                         hsp[TARGET_END]):
                continue
            split_query, split_target = hsp[ANCHOR_QUERY] + 1, hsp[ANCHOR_TARGET] + 1
            set_out(passes, query, query_begin, split_query, query_after, target, target_begin, split_target,
                    target_after)
            if not extend(query, target, passes, matrix, tables, highest, gap_open, gap_extend, x_drop, False, best,
                          gaps, codes, row_codes):
                return MORE_CHOICES, count
            score = passes[LEFT, TOP] + passes[RIGHT, TOP]
            # Walking back gives the outermost step first: right for the left half, else the wrong way round.
            size = walk_back(passes, LEFT, codes, row_codes, steps)
            outer = walk_back(passes, RIGHT, codes, row_codes, outwards)
            for step in range(outer):
                steps[size + step] = outwards[outer - 1 - step]
            size += outer
            query_start, query_end = split_query - passes[LEFT, TOP_ROW], split_query + passes[RIGHT, TOP_ROW]
            target_start = split_target - passes[LEFT, TOP_COLUMN]
            target_end = split_target + passes[RIGHT, TOP_COLUMN]
            begin, end = _trimmed(steps, size)
            if begin == end:
                continue
            if begin > 0:
                score += gap_open + begin * gap_extend
                if steps[0] == ROW_ONLY:
                    query_start += begin
                else:
                    target_start += begin
            if end < size:
                score += gap_open + (size - end) * gap_extend
                if steps[size - 1] == ROW_ONLY:
                    query_end -= size - end
                else:
                    target_end -= size - end
            if used + end - begin > len(paths):
                return MORE_RUNS, count
            result = found[count]
            result[SCORE] = score
            result[QUERY_START], result[QUERY_END] = query_start, query_end
            result[TARGET_START], result[TARGET_END] = target_start, target_end
            result[ANCHOR_QUERY], result[ANCHOR_TARGET] = hsp[ANCHOR_QUERY], hsp[ANCHOR_TARGET]
            result[PAIR] = pair
            i, j = PADDING + query_begin + query_start, PADDING + target_begin + target_start
            identities = positives = mismatches = opens = gapped = 0
            operation = run = 0
            for step in range(begin, end):
                if steps[step] == BOTH:
                    equal = real[i] == target[0, j]
                    now = MATCH if equal else MISMATCH
                    identities += equal
                    mismatches += not equal
                    positives += equal or similar[real[i], target[0, j]] > 0
                    i += 1
                    j += 1
                else:
                    now = INSERT if steps[step] != COLUMN_ONLY else DELETE
                    gapped += 1
                    opens += now != operation
                    i += now == INSERT
                    j += now == DELETE
                if now != operation and run:
                    paths[used] = run << 4 | operation
                    used += 1
                    run = 0
                operation = now
                run += 1
            if run:
                paths[used] = run << 4 | operation
                used += 1
            tally = counts[count]
            tally[0], tally[1], tally[2] = end - begin, identities, positives
            tally[3], tally[4], tally[5] = mismatches, opens, gapped
            kept = save(saved, kept, result)
            count += 1
            path_offsets[count] = used
    return DONE, count


@kernel(helpers=(gapped_cpu,))
def _uncontained(found, order, saved):
    """bool[m]: of the rows of ``found`` in this order, grouped by pair, those that no earlier one encloses."""
    stays = np.zeros(len(order), np.bool_)
    count = NONE
    for row in range(len(order)):
        hsp = found[order[row]]
        if row == 0 or hsp[PAIR] != found[order[row - 1], PAIR]:
            count = NONE
        stays[row] = not contained(saved, count, hsp[SCORE], hsp[QUERY_START], hsp[QUERY_END], hsp[TARGET_START],
                                   hsp[TARGET_END])
        if stays[row]:
            count = save(saved, count, hsp)
    return stays


def _first_choices(height: int, width: int) -> int:
    """Room for choices to begin with: no more than the whole rectangle takes, four sets of 64 lanes a step."""
    return min(FIRST_CHOICES, (height + 1) * (width // 16 + 8))


class FinalTracebackCpu(FinalTraceback):
    __doc__ = FinalTraceback.__doc__
    backend = "cpu"

    def footprint(self, shape: Shape) -> Footprint:
        least = extension_footprint(shape).host
        choices = _first_choices(shape.longest_query, shape.longest_target)
        return Footprint(host=least + 2 * 8 * choices * shape.threads)

    def run(self, context: Context, records: Records) -> Alignments:
        """Alignments by query and target, within a pair in ``score_order``."""
        scoring, queries, targets = context.scoring, context.queries, context.targets
        bounds = group_starts(records.query, records.target)
        firsts = bounds[:-1]
        pairs = np.stack([queries.locate(records.query[firsts]), targets.locate(records.target[firsts])], axis=1)
        hsps = np.zeros((len(records), 8), np.int64)
        for column, name in ((SCORE, "score"), (QUERY_START, "query_start"), (QUERY_END, "query_end"),
                             (TARGET_START, "target_start"), (TARGET_END, "target_end"),
                             (ANCHOR_QUERY, "anchor_query"), (ANCHOR_TARGET, "anchor_target")):
            hsps[:, column] = records.data[name]
        height, width = int(queries.lengths.max(initial=0)), int(targets.lengths.max(initial=0))
        small = xdrop_cpu.fits_bytes(scoring.matrix, scoring.gap_open, scoring.gap_extend, scoring.x_drop_final)
        tables, similar = xdrop_cpu.score_tables(scoring.matrix), np.array(similarity(scoring.matrix), np.int32)
        asked, hit, packed_pairs = packed(pairs)
        query, query_offsets = xdrop_cpu.both_ways(read_as_query(queries.searched()), queries.offsets, asked)
        real, _ = xdrop_cpu.both_ways(queries.residues, queries.offsets, asked)
        target, target_offsets = xdrop_cpu.both_ways(targets.residues, targets.offsets, hit)

        def part(groups: tuple[int, int]) -> tuple[np.ndarray, np.ndarray, Ragged]:
            """HSPs that stay of some pairs, in order, their counts and paths."""
            context.cancellation.check()
            first, last = groups
            mine = hsps[bounds[first] : bounds[last]]
            starts = bounds[first : last + 1] - bounds[first]
            best, gaps, passes = xdrop_cpu.workspace(height, width, small)
            outwards, steps = np.empty((2, height + width + 1), np.uint8)
            row_codes = np.empty((2, height + 1), np.int64)
            saved = np.empty((int(np.diff(starts).max()) + 1, 8), np.int64)
            found, counts = np.empty((len(mine), 8), np.int64), np.empty((len(mine), len(PathCounts._fields)), np.int32)
            path_offsets = np.empty(len(mine) + 1, np.int64)
            choices = _first_choices(height, width)
            runs = FIRST_RUNS * int((mine[:, QUERY_END] - mine[:, QUERY_START]).sum())
            while True:
                codes, paths = np.empty((2, choices), np.uint64), np.empty(runs, np.uint32)
                state, count = _trace_pairs(
                    scoring.matrix, tables, similar, query, real[RIGHT], query_offsets, target, target_offsets,
                    packed_pairs[first:last], starts, mine, scoring.gap_open, scoring.gap_extend, scoring.x_drop_final,
                    best, gaps, passes, codes, row_codes, outwards, steps, saved, found, counts, path_offsets, paths)
                if state == DONE:
                    break
                choices, runs = (4 * choices, runs) if state == MORE_CHOICES else (choices, 4 * runs)
            kept = in_report_order(found[:count])
            kept = kept[_uncontained(found, kept, saved)]
            found[:count, PAIR] += first
            return found[kept], counts[kept], Ragged(path_offsets[: count + 1], paths).take(kept)

        parts = in_turn(context.threads, part, group_parts(bounds, context.threads))
        if not parts:
            return Alignments.empty()
        rows, counts, paths = zip(*parts, strict=True)
        counted = np.concatenate(counts)
        columns = {name: counted[:, place] for place, name in enumerate(PathCounts._fields)}
        return alignments_of_rows(context, np.concatenate(rows), pairs).replace(**columns, path=Ragged.concat(paths))
