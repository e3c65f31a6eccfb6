"""``preliminary-gapped`` on the CPU: all pairs in one kernel, then ends and E-values of all."""

import numpy as np
from seqloom.core.context import Context
from seqloom.core.distinct import ranked
from seqloom.core.engine.threads import run_tasks
from seqloom.core.kernels.jit import kernel
from seqloom.core.records import Alignments, Records
from seqloom.core.stages import Footprint, Shape
from seqloom.plugins.common import xdrop_cpu
from seqloom.plugins.common.culling_cpu import (
    ANCHOR_QUERY,
    ANCHOR_TARGET,
    PAIR,
    QUERY_END,
    QUERY_START,
    SCORE,
    TARGET_END,
    TARGET_START,
    in_report_order,
)
from seqloom.plugins.common.grouping import group_parts, group_starts
from seqloom.plugins.common.xdrop_cpu import (
    COLUMN_START,
    HEIGHT,
    LEFT,
    PADDING,
    RIGHT,
    ROW_START,
    TOP,
    TOP_COLUMN,
    TOP_ROW,
    WIDTH,
    extend,
)
from seqloom.plugins.protein_blast.gapped_reference import ANCHOR_WINDOW, PreliminaryGapped
from seqloom.plugins.protein_blast.score_cpu import evalues
from seqloom.plugins.protein_blast.scoring import read_as_query
from seqloom.plugins.protein_blast.words import HITS_PER_CELL, segment_excess

NONE = np.int64(0)
"""Where counts start: a literal 0 would have functions compiled for that, too."""

_WORTH_A_PART = 16
"""Segments for which it pays to wake a thread."""
SEGMENTS_PER_CELL = 4e-7
"""Ungapped segments per pair of residues that are extended with gaps, of real proteins with default options."""
HITS_PER_SEGMENT = 4
"""Word hits to a segment, at least, if every segment passes: eight where an E-value of 100,000 does."""
BYTES_PER_SEGMENT = 700


@kernel
def set_out(passes, query, number, split_query, target, place, split_target):
    """Where the passes of ``extend`` to both sides of a split begin, and how many residues they may take.

    query, target: ``BothWays``, of which the pair are sequences ``number`` and ``place``; splits count from their
    begins.
    """
    query_begin, query_end = query.offsets[number], query.offsets[number + 1]
    target_begin, target_end = target.offsets[place], target.offsets[place + 1]
    left, right = passes[LEFT], passes[RIGHT]
    left[ROW_START], left[HEIGHT] = query.residues.shape[1] - PADDING - query_begin - split_query, split_query
    left[COLUMN_START], left[WIDTH] = target.residues.shape[1] - PADDING - target_begin - split_target, split_target
    right[ROW_START], right[HEIGHT] = PADDING + query_begin + split_query, query_end - query_begin - split_query
    right[COLUMN_START], right[WIDTH] = PADDING + target_begin + split_target, target_end - target_begin - split_target


@kernel
def anchor_shift(matrix, query, target, query_pos, target_pos, length):
    """Middle of the first best window of 11 residues of a segment; see the reference."""
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
def _better(saved, row, hsp):
    """Whether a saved row is preferred to ``hsp``, or as good: score down, query span up, target span up."""
    if saved[row, SCORE] != hsp[SCORE]:
        return saved[row, SCORE] > hsp[SCORE]
    longer = (saved[row, QUERY_END] - saved[row, QUERY_START]) - (hsp[QUERY_END] - hsp[QUERY_START])
    if longer != 0:
        return longer < 0
    return saved[row, TARGET_END] - saved[row, TARGET_START] <= hsp[TARGET_END] - hsp[TARGET_START]


@kernel
def save(saved, count, hsp):
    """Add ``hsp`` to the saved rows unless a better one shares an end with it; returns their number."""
    for query_end, target_end in ((QUERY_START, TARGET_START), (QUERY_END, TARGET_END)):
        row = 0
        while row < count:
            if saved[row, query_end] != hsp[query_end] or saved[row, target_end] != hsp[target_end]:
                row += 1
                continue
            if _better(saved, row, hsp):
                return count
            count -= 1
            for later in range(row, count):
                for column in range(saved.shape[1]):
                    saved[later, column] = saved[later + 1, column]
    for column in range(saved.shape[1]):
        saved[count, column] = hsp[column]
    return count + 1


@kernel
def note(hsp, score, split_query, split_target, query_size, target_size, before_query, before_target, after_query,
         after_target):
    """Write down what an extension from a split found: its score, and how many residues it took in on either side."""
    # See the reference for an anchor at the end.
    nothing_right = split_query == query_size or split_target == target_size
    hsp[SCORE] = score
    hsp[QUERY_START], hsp[QUERY_END] = split_query - before_query, split_query + after_query - nothing_right
    hsp[TARGET_START], hsp[TARGET_END] = split_target - before_target, split_target + after_target - nothing_right
    hsp[ANCHOR_QUERY], hsp[ANCHOR_TARGET] = split_query - 1, split_target - 1


@kernel
def _extend_pair(query, number, target, place, segments, costs, space, cutoff, doubtful, restricted, saved, found,
                 first):
    """HSPs of one pair that reach the cutoff, written to ``found`` from row ``first`` on.

    query, target: ``BothWays``, of which the pair are sequences ``number`` and ``place``. Returns the number of rows
    then, or −1 in restricted mode as soon as a score is in doubt.
    """
    passes = space.passes
    query_begin, query_end = query.offsets[number], query.offsets[number + 1]
    target_begin, target_end = target.offsets[place], target.offsets[place + 1]
    count, kept = first, NONE
    for row in range(len(segments)):
        score, query_pos, target_pos, length = segments[row]
        if contained(saved, kept, score, query_pos, query_pos + length, target_pos, target_pos + length):
            continue
        shift = anchor_shift(costs.matrix, query.residues[RIGHT], target.residues[RIGHT],
                             PADDING + query_begin + query_pos, PADDING + target_begin + target_pos, length)
        split_query, split_target = query_pos + shift + 1, target_pos + shift + 1
        set_out(passes, query, number, split_query, target, place, split_target)
        extend(query.residues, target.residues, costs, None, space, restricted, None, None)
        score = passes[LEFT, TOP] + passes[RIGHT, TOP]
        if score >= cutoff:
            hsp = found[count]
            note(hsp, score, split_query, split_target, query_end - query_begin, target_end - target_begin,
                 passes[LEFT, TOP_ROW], passes[LEFT, TOP_COLUMN], passes[RIGHT, TOP_ROW], passes[RIGHT, TOP_COLUMN])
            kept = save(saved, kept, hsp)
            count += 1
        elif restricted and score >= doubtful:
            return -1
    return count


@kernel
def _extend_pairs(query, target, pairs, bounds, segments, costs, cutoffs, doubtfuls, may_restrict, space, saved, found):
    """``_extend_pair`` for every pair; returns the number of HSPs and of pairs that were begun again."""
    count = restarts = NONE
    for pair in range(len(pairs)):
        number, place = pairs[pair]
        own = segments[bounds[pair] : bounds[pair + 1]]
        restricted = may_restrict and own[0, 0] < doubtfuls[number]
        while True:
            after = _extend_pair(query, number, target, place, own, costs, space, cutoffs[number], doubtfuls[number],
                                 restricted, saved, found, count)
            if after >= 0:
                break
            restarts += 1
            restricted = False
        found[count:after, PAIR] = pair
        count = after
    return count, restarts


def packed(pairs: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Places of the queries and of the targets that take part in i8[n, 2] pairs of places; and i8[n, 2], the pairs as
    places in those."""
    asked, queries = ranked(pairs[:, 0])
    hit, targets = ranked(pairs[:, 1])
    return asked, hit, np.stack([queries.reshape(-1), targets.reshape(-1)], axis=1)


def extension_footprint(shape: Shape) -> Footprint:
    """Residues packed for both directions, two rows of cells of each thread, and what is held per segment."""
    residues = shape.query_residues + shape.target_residues
    per_cell = min(SEGMENTS_PER_CELL * segment_excess(shape) ** 0.75, HITS_PER_CELL / HITS_PER_SEGMENT)
    segments = per_cell * shape.query_residues * shape.target_residues
    return Footprint(host=3 * residues + 8 * shape.threads * (shape.longest_query + shape.longest_target)
                     + int(BYTES_PER_SEGMENT * segments))


class PreliminaryGappedCpu(PreliminaryGapped):
    __doc__ = PreliminaryGapped.__doc__
    backend = "cpu"

    def footprint(self, shape: Shape) -> Footprint:
        return extension_footprint(shape)

    def run(self, context: Context, records: Records) -> Alignments:
        """HSPs by query and target, within a pair in ``score_order``, without paths and statistics."""
        scoring, queries, targets = context.scoring, context.queries, context.targets
        bounds = group_starts(records.query, records.target)
        firsts = bounds[:-1]
        pairs = np.stack([queries.locate(records.query[firsts]), targets.locate(records.target[firsts])], axis=1)
        segments = np.stack([records.score, records.query_pos, records.target_pos, records.length],
                            axis=1).astype(np.int64)
        found = self.extended(context, pairs, bounds, segments)
        found = found[in_report_order(found)]
        places = pairs[found[:, PAIR]]
        expected = evalues(scoring, found[:, SCORE], queries.lengths[places[:, 0]], targets.lengths[places[:, 1]])
        found = found[expected <= scoring.preliminary_limit]
        return alignments_of_rows(context, found, pairs)

    def extended(self, context: Context, pairs: np.ndarray, bounds: np.ndarray, segments: np.ndarray) -> np.ndarray:
        """HSPs that reach the score cutoff, i8[n, 8], by pair.

        Args:
            pairs: i8[p, 2], places of query and target.
            bounds: i8[p + 1], where the segments of each pair begin.
            segments: i8[s, 4], score, starts in query and target, and length.
        """
        scoring, queries, targets = context.scoring, context.queries, context.targets
        asked, hit, packed_pairs = packed(pairs)
        doubtfuls = np.array([scoring.restricted_cutoff(place) for place in asked.tolist()], np.int64)
        cells = xdrop_cpu.cells(scoring.matrix, scoring.gap_open, scoring.gap_extend, scoring.x_drop)
        height, width = int(queries.lengths.max(initial=0)), int(targets.lengths.max(initial=0))
        query = xdrop_cpu.both_ways(read_as_query(queries.searched()), queries.offsets, asked)
        target = xdrop_cpu.both_ways(targets.residues, targets.offsets, hit)
        costs = xdrop_cpu.Costs.of(scoring.matrix, scoring.gap_open, scoring.gap_extend, scoring.x_drop)
        cutoffs = scoring.cutoff[asked]

        def part(groups: tuple[int, int]) -> tuple[np.ndarray, int]:
            first, last = groups
            starts = bounds[first : last + 1]
            saved = np.empty((int(np.diff(starts).max()) + 1, 8), np.int64)
            found = np.empty((starts[-1] - starts[0], 8), np.int64)
            count, restarts = _extend_pairs(
                query, target, packed_pairs[first:last], starts, segments, costs, cutoffs, doubtfuls,
                scoring.may_restrict, xdrop_cpu.workspace(height, width, cells), saved, found)
            found[:count, PAIR] += first
            context.advance(starts[-1] - starts[0], len(segments))
            return found[:count], restarts

        parts = run_tasks(context.threads, part, group_parts(bounds, context.threads, len(segments) / _WORTH_A_PART))
        context.count("begun again in full", sum(restarts for _, restarts in parts))
        return np.concatenate([np.empty((0, 8), np.int64), *(rows for rows, _ in parts)])


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
