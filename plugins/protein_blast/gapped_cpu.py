"""``preliminary-gapped`` on the CPU: all pairs in one kernel; ends are purged in Python, where a pair has several."""

from itertools import pairwise

import numpy as np
from seqloom.core.context import Context
from seqloom.core.jit import kernel
from seqloom.core.records import Alignments, Records
from seqloom.plugins.common import xdrop_cpu
from seqloom.plugins.common.culling import Hsp, purge_common_endpoints
from seqloom.plugins.common.grouping import group_starts
from seqloom.plugins.common.xdrop_cpu import extend_score, extend_score_restricted
from seqloom.plugins.protein_blast.gapped_reference import ANCHOR_WINDOW, PreliminaryGapped
from seqloom.plugins.protein_blast.scoring import read_as_query

SCORE, QUERY_START, QUERY_END, TARGET_START, TARGET_END, ANCHOR_QUERY, ANCHOR_TARGET, PAIR = range(8)


@kernel
def anchor_shift(matrix, query, target, query_pos, target_pos, length):
    """Middle of the first best window of 11 letters of a segment; see the reference."""
    if length <= ANCHOR_WINDOW:
        return length // 2
    total = 0
    for k in range(ANCHOR_WINDOW):
        total += matrix[query[query_pos + k], target[target_pos + k]]
    best, best_end = total, ANCHOR_WINDOW
    for end in range(ANCHOR_WINDOW, length):
        total += matrix[query[query_pos + end], target[target_pos + end]]
        behind = end - ANCHOR_WINDOW
        total -= matrix[query[query_pos + behind], target[target_pos + behind]]
        if total > best:
            best, best_end = total, end + 1
    return best_end - 1 - ANCHOR_WINDOW // 2 if best > 0 else 0


@kernel
def contained(saved, count, score, query_start, query_end, target_start, target_end):
    """Whether one of the first ``count`` rows of ``saved`` encloses this box and scores no less."""
    for row in range(count):
        if (score <= saved[row, SCORE] and saved[row, QUERY_START] <= query_start
                and query_end <= saved[row, QUERY_END] and saved[row, TARGET_START] <= target_start
                and target_end <= saved[row, TARGET_END]):
            return True
    return False


@kernel
def _better(left, right):
    """Whether ``left`` is preferred to ``right``, or as good: score down, query span up, target span up."""
    if left[SCORE] != right[SCORE]:
        return left[SCORE] > right[SCORE]
    spans = left[QUERY_END] - left[QUERY_START], right[QUERY_END] - right[QUERY_START]
    if spans[0] != spans[1]:
        return spans[0] < spans[1]
    return left[TARGET_END] - left[TARGET_START] <= right[TARGET_END] - right[TARGET_START]


@kernel
def save(saved, count, hsp):
    """Add ``hsp`` to the saved rows unless a better one shares an end with it; returns their number."""
    for query_end, target_end in ((QUERY_START, TARGET_START), (QUERY_END, TARGET_END)):
        row = 0
        while row < count:
            if saved[row, query_end] == hsp[query_end] and saved[row, target_end] == hsp[target_end]:
                if _better(saved[row], hsp):
                    return count
                for later in range(row, count - 1):
                    saved[later] = saved[later + 1]
                count -= 1
            else:
                row += 1
    saved[count] = hsp
    return count + 1


@kernel(helpers=(xdrop_cpu,))
def _extend_pair(matrix, query, target, segments, gap_open, gap_extend, x_drop, cutoff, doubtful, restricted, best,
                 column_gap, saved, found, first):
    """HSPs of one pair that reach the cutoff, written to ``found`` from row ``first`` on.

    Returns the number of rows then, or −1 in restricted mode as soon as a score is in doubt.
    """
    count, kept = first, 0
    for row in range(len(segments)):
        score, query_pos, target_pos, length = segments[row]
        if contained(saved, kept, score, query_pos, query_pos + length, target_pos, target_pos + length):
            continue
        shift = anchor_shift(matrix, query, target, query_pos, target_pos, length)
        split_query, split_target = query_pos + shift + 1, target_pos + shift + 1
        height, width = len(query) - split_query, len(target) - split_target
        if restricted:
            left = extend_score_restricted(query, split_query - 1, -1, split_query, target, split_target - 1, -1,
                                           split_target, matrix, gap_open, gap_extend, x_drop, best, column_gap)
            right = extend_score_restricted(query, split_query, 1, height, target, split_target, 1, width, matrix,
                                            gap_open, gap_extend, x_drop, best, column_gap)
        else:
            left = extend_score(query, split_query - 1, -1, split_query, target, split_target - 1, -1, split_target,
                                matrix, gap_open, gap_extend, x_drop, best, column_gap)
            right = extend_score(query, split_query, 1, height, target, split_target, 1, width, matrix, gap_open,
                                 gap_extend, x_drop, best, column_gap)
        score = left[0] + right[0]
        if score >= cutoff:
            hsp = found[count]
            hsp[SCORE] = score
            hsp[QUERY_START], hsp[QUERY_END] = split_query - left[1], split_query + right[1]
            hsp[TARGET_START], hsp[TARGET_END] = split_target - left[2], split_target + right[2]
            hsp[ANCHOR_QUERY], hsp[ANCHOR_TARGET] = split_query - 1, split_target - 1
            kept = save(saved, kept, hsp)
            count += 1
        elif restricted and score >= doubtful:
            return -1
    return count


@kernel(helpers=(xdrop_cpu,))
def _extend_pairs(matrix, letters, query_offsets, residues, target_offsets, pairs, bounds, segments, gap_open,
                  gap_extend, x_drop, cutoffs, doubtfuls, may_restrict, best, column_gap, saved, found):
    """``_extend_pair`` for every pair; returns the number of HSPs and of pairs that were begun again."""
    count = restarts = 0
    for pair in range(len(pairs)):
        number, place = pairs[pair]
        query = letters[query_offsets[number] : query_offsets[number + 1]]
        target = residues[target_offsets[place] : target_offsets[place + 1]]
        own = segments[bounds[pair] : bounds[pair + 1]]
        restricted = may_restrict and own[0, 0] < doubtfuls[number]
        after = _extend_pair(matrix, query, target, own, gap_open, gap_extend, x_drop, cutoffs[number],
                             doubtfuls[number], restricted, best, column_gap, saved, found, count)
        if after < 0:
            restarts += 1
            after = _extend_pair(matrix, query, target, own, gap_open, gap_extend, x_drop, cutoffs[number],
                                 doubtfuls[number], False, best, column_gap, saved, found, count)
        found[count:after, PAIR] = pair
        count = after
    return count, restarts


def in_report_order(found: np.ndarray) -> np.ndarray:
    """i8[m]: rows of ``found`` (grouped by pair) that stay when ends are purged, within a pair in ``score_order``."""
    bounds = group_starts(found[:, PAIR])
    kept = []
    for low, high in pairwise(bounds.tolist()):
        if high - low == 1:
            kept.append(low)
        else:
            hsps = [Hsp(*row[:PAIR]) for row in found[low:high].tolist()]
            rows = {id(hsp): low + n for n, hsp in enumerate(hsps)}
            kept += [rows[id(hsp)] for hsp in purge_common_endpoints(hsps)]
    return np.array(kept, np.int64)


class PreliminaryGappedCpu(PreliminaryGapped):
    __doc__ = PreliminaryGapped.__doc__
    backend = "cpu"

    def run(self, context: Context, records: Records) -> Alignments:
        """HSPs by query and target, within a pair in ``score_order``, without paths and statistics."""
        scoring, queries, targets = context.scoring, context.queries, context.targets
        bounds = group_starts(records.query, records.target)
        firsts = bounds[:-1]
        pairs = np.stack([queries.locate(records.query[firsts]), targets.locate(records.target[firsts])], axis=1)
        segments = np.stack([records.score, records.query_pos, records.target_pos, records.length],
                            axis=1).astype(np.int64)
        doubtfuls = np.array([scoring.restricted_cutoff(place) for place in range(len(queries))], np.int64)
        longest = int(targets.lengths.max(initial=0))
        best, column_gap = xdrop_cpu.workspace(longest)
        saved = np.empty((int(np.diff(bounds).max(initial=0)) + 1, 8), np.int64)
        found = np.empty((len(segments), 8), np.int64)
        count, restarts = _extend_pairs(
            scoring.matrix, read_as_query(queries.searched()), queries.offsets, targets.residues, targets.offsets,
            pairs, bounds, segments, scoring.gap_open, scoring.gap_extend, scoring.x_drop, scoring.cutoff, doubtfuls,
            scoring.may_restrict, best, column_gap, saved, found)
        context.count("begun again in full", restarts)
        found = found[:count][in_report_order(found[:count])]
        places = pairs[found[:, PAIR]]
        lengths = zip(found[:, SCORE].tolist(), queries.lengths[places[:, 0]].tolist(),
                      targets.lengths[places[:, 1]].tolist(), strict=True)
        found = found[np.array([scoring.evalue(*row) <= scoring.evalue_limit for row in lengths], bool)]
        return alignments_of_rows(context, found, pairs)


def alignments_of_rows(context: Context, found: np.ndarray, pairs: np.ndarray) -> Alignments:
    """HSP rows (i8[n, 8]) of pairs of places as ``Alignments`` on the plus strands."""
    places = pairs[found[:, PAIR]]
    frame = np.ones(len(found), np.int8)
    return Alignments({
        "query": context.queries.ordinals[places[:, 0]], "target": context.targets.ordinals[places[:, 1]],
        "score": found[:, SCORE], "query_start": found[:, QUERY_START], "query_end": found[:, QUERY_END],
        "target_start": found[:, TARGET_START], "target_end": found[:, TARGET_END],
        "anchor_query": found[:, ANCHOR_QUERY], "anchor_target": found[:, ANCHOR_TARGET],
        "query_frame": frame, "target_frame": frame,
    })
