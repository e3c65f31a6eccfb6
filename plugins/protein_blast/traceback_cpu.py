"""``final-traceback`` on the CPU: all pairs in one kernel; culling in Python, where a pair has several alignments."""

from itertools import pairwise

import numpy as np
from seqloom.core.context import Context
from seqloom.core.jit import kernel
from seqloom.core.records import DELETE, INSERT, MATCH, MISMATCH, Alignments, Ragged, Records
from seqloom.plugins.common import xdrop_cpu
from seqloom.plugins.common.culling import Hsp, drop_contained, purge_common_endpoints
from seqloom.plugins.common.edit_path import PathCounts
from seqloom.plugins.common.grouping import group_starts
from seqloom.plugins.common.xdrop_cpu import BOTH, COLUMN_ONLY, ROW_ONLY, extend_traceback
from seqloom.plugins.protein_blast import gapped_cpu
from seqloom.plugins.protein_blast.gapped_cpu import (
    ANCHOR_QUERY,
    ANCHOR_TARGET,
    PAIR,
    QUERY_END,
    QUERY_START,
    SCORE,
    TARGET_END,
    TARGET_START,
    alignments_of_rows,
    contained,
    save,
)
from seqloom.plugins.protein_blast.scoring import read_as_query
from seqloom.plugins.protein_blast.traceback_reference import FinalTraceback, similarity

ROOM = 3
"""Results of the kernel: done, too little room for the choices of cells, too little room for paths."""
DONE, MORE_CELLS, MORE_PATHS = range(ROOM)


@kernel
def _gap_length(steps, begin, end, direction):
    """Length of the single gap at one end of ``steps[begin:end]``."""
    place = begin if direction > 0 else end - 1
    length = 0
    while begin <= place < end and steps[place] != BOTH and steps[place] == steps[begin if direction > 0 else end - 1]:
        length += 1
        place += direction
    return length


@kernel(helpers=(xdrop_cpu, gapped_cpu))
def _trace_pairs(matrix, similar, letters, real, query_offsets, residues, target_offsets, pairs, bounds, hsps, gap_open,
                 gap_extend, x_drop, best, column_gap, codes, row_first, row_codes, left_steps, steps, saved, found,
                 counts, path_offsets, paths):
    """Trace the HSPs of every pair; returns (DONE or what is missing, number of alignments).

    hsps: i8[n, 8] with anchors, best first within a pair (``bounds``). found: i8[n, 8]; counts: i4[n, 6];
    path_offsets: i8[n + 1] into paths u4.
    """
    count = used = 0
    path_offsets[0] = 0
    for pair in range(len(pairs)):
        number, place = pairs[pair]
        query = letters[query_offsets[number] : query_offsets[number + 1]]
        shown = real[query_offsets[number] : query_offsets[number + 1]]
        target = residues[target_offsets[place] : target_offsets[place + 1]]
        kept = 0
        for row in range(bounds[pair], bounds[pair + 1]):
            hsp = hsps[row]
            if contained(saved, kept, hsp[SCORE], hsp[QUERY_START], hsp[QUERY_END], hsp[TARGET_START],
                         hsp[TARGET_END]):
                continue
            split_query, split_target = hsp[ANCHOR_QUERY] + 1, hsp[ANCHOR_TARGET] + 1
            left = extend_traceback(query, split_query - 1, -1, split_query, target, split_target - 1, -1, split_target,
                                    matrix, gap_open, gap_extend, x_drop, best, column_gap, codes, row_first, row_codes,
                                    left_steps)
            if left[0] < 0:
                return MORE_CELLS, count
            size = left[3]
            steps[:size] = left_steps[:size]
            right = extend_traceback(query, split_query, 1, len(query) - split_query, target, split_target, 1,
                                     len(target) - split_target, matrix, gap_open, gap_extend, x_drop, best, column_gap,
                                     codes, row_first, row_codes, left_steps)
            if right[0] < 0:
                return MORE_CELLS, count
            # Walking back gives the outermost step first: right for the left half, the wrong way round for the right.
            for step in range(right[3]):
                steps[size + step] = left_steps[right[3] - 1 - step]
            size += right[3]
            score = left[0] + right[0]
            query_start, query_end = split_query - left[1], split_query + right[1]
            target_start, target_end = split_target - left[2], split_target + right[2]
            begin, end = 0, size
            leading = _gap_length(steps, begin, end, 1)
            if leading:
                score += gap_open + leading * gap_extend
                if steps[0] == ROW_ONLY:
                    query_start += leading
                else:
                    target_start += leading
                begin = leading
            trailing = _gap_length(steps, begin, end, -1)
            if trailing:
                score += gap_open + trailing * gap_extend
                if steps[end - 1] == ROW_ONLY:
                    query_end -= trailing
                else:
                    target_end -= trailing
                end -= trailing
            if used + end - begin > len(paths):
                return MORE_PATHS, count
            result = found[count]
            result[SCORE] = score
            result[QUERY_START], result[QUERY_END] = query_start, query_end
            result[TARGET_START], result[TARGET_END] = target_start, target_end
            result[ANCHOR_QUERY], result[ANCHOR_TARGET] = hsp[ANCHOR_QUERY], hsp[ANCHOR_TARGET]
            result[PAIR] = pair
            i, j = query_start, target_start
            identities = positives = mismatches = opens = gaps = 0
            operation = run = 0
            for step in range(begin, end):
                if steps[step] == BOTH:
                    equal = shown[i] == target[j]
                    now = MATCH if equal else MISMATCH
                    identities += equal
                    mismatches += not equal
                    positives += equal or similar[shown[i], target[j]] > 0
                    i += 1
                    j += 1
                else:
                    now = INSERT if steps[step] != COLUMN_ONLY else DELETE
                    gaps += 1
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
            tally[3], tally[4], tally[5] = mismatches, opens, gaps
            kept = save(saved, kept, result)
            count += 1
            path_offsets[count] = used
    return DONE, count


class FinalTracebackCpu(FinalTraceback):
    __doc__ = FinalTraceback.__doc__
    backend = "cpu"

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
        best, column_gap = xdrop_cpu.workspace(width)
        steps = np.empty((2, height + width + 1), np.uint8)
        rows = np.empty((2, height + 2), np.int64)
        saved = np.empty((int(np.diff(bounds).max(initial=0)) + 1, 8), np.int64)
        found, counts = np.empty((len(hsps), 8), np.int64), np.empty((len(hsps), len(PathCounts._fields)), np.int32)
        path_offsets = np.empty(len(hsps) + 1, np.int64)
        cells, room = 1 << 20, 64 * len(hsps) + height + width
        while True:
            codes, paths = np.empty(cells, np.uint8), np.empty(room, np.uint32)
            state, count = _trace_pairs(
                scoring.matrix, np.array(similarity(scoring.matrix), np.int32), read_as_query(queries.searched()),
                queries.residues, queries.offsets, targets.residues, targets.offsets, pairs, bounds, hsps,
                scoring.gap_open, scoring.gap_extend, scoring.x_drop_final, best, column_gap, codes, rows[0], rows[1],
                steps[0], steps[1], saved, found, counts, path_offsets, paths)
            if state == DONE:
                break
            cells, room = (4 * cells, room) if state == MORE_CELLS else (cells, 4 * room)
        kept = _culled(found[:count])
        columns = {name: counts[kept, place] for place, name in enumerate(PathCounts._fields)}
        path = Ragged(path_offsets[: count + 1], paths).take(kept)
        return alignments_of_rows(context, found[kept], pairs).replace(**columns, path=path)


def _culled(found: np.ndarray) -> np.ndarray:
    """i8[m]: rows of ``found`` (grouped by pair) that stay when ends and contained ones are purged, in report order."""
    kept = []
    for low, high in pairwise(group_starts(found[:, PAIR]).tolist()):
        if high - low == 1:
            kept.append(low)
        else:
            hsps = [Hsp(*row[:PAIR]) for row in found[low:high].tolist()]
            rows = {id(hsp): low + n for n, hsp in enumerate(hsps)}
            kept += [rows[id(hsp)] for hsp in drop_contained(purge_common_endpoints(hsps))]
    return np.array(kept, np.int64)
