"""``nucleotide-segments`` on the CPU: the reference's rules, all segments in one kernel."""

from __future__ import annotations

import numpy as np
from seqloom.core.context import Context
from seqloom.core.kernels.jit import kernel
from seqloom.core.records import Alignments, Records
from seqloom.core.stages import Footprint, Shape
from seqloom.plugins.common.culling import Hsp
from seqloom.plugins.common.culling_cpu import PAIR as GROUP_OF
from seqloom.plugins.common.culling_cpu import QUERY_END, QUERY_START, SCORE, TARGET_END, TARGET_START
from seqloom.plugins.common.edit_path import PathCounts
from seqloom.plugins.common.grouping import group_starts
from seqloom.plugins.common.winnow import best_of_targets
from seqloom.plugins.nucleotide_blast.chunks import merge_chunks, overlaps
from seqloom.plugins.nucleotide_blast.gapped_cpu import strand_offsets
from seqloom.plugins.nucleotide_blast.greedy import PAIR
from seqloom.plugins.nucleotide_blast.packed_cpu import aligned_residues, stretches
from seqloom.plugins.nucleotide_blast.segments_reference import NucleotideSegments
from seqloom.plugins.nucleotide_blast.traceback_cpu import (
    BEGIN,
    CUTOFF,
    LOW,
    SIZE,
    TURNED,
    as_shown,
    final_records,
    paths_and_counts,
)
from seqloom.plugins.nucleotide_blast.ungapped_cpu import laid_out_strands


@kernel
def _best_stretches(matrix, strands, residues, groups, rows, stays):
    """``best_stretch`` of every row, in place; marks those that reach the cutoff of their group."""
    for at in range(len(rows)):
        row, group = rows[at], groups[rows[at, GROUP_OF]]
        query, target = group[BEGIN] + row[QUERY_START], group[LOW] + row[TARGET_START]
        running = best = np.int64(0)
        begin = first = last = 0
        for place in range(row[QUERY_END] - row[QUERY_START]):
            running += matrix[strands[query + place], residues[target + place]]
            if running < 0:
                running, begin = np.int64(0), place + 1
                if best < group[CUTOFF]:
                    best, first, last = np.int64(0), begin, begin
            elif running > best:
                best, first, last = running, begin, place + 1
        stays[at] = best >= group[CUTOFF]
        row[SCORE] = best
        row[QUERY_END], row[TARGET_END] = row[QUERY_START] + last, row[TARGET_START] + last
        row[QUERY_START] += first
        row[TARGET_START] += first


class NucleotideSegmentsCpu(NucleotideSegments):
    __doc__ = NucleotideSegments.__doc__
    backend = "cpu"
    reads_residues = False

    def footprint(self, shape: Shape) -> Footprint:
        return Footprint(host=shape.target_residues + 4 * shape.query_residues)

    def run(self, context: Context, records: Records) -> Alignments:
        if not len(records):
            return Alignments({})
        queries, targets, scoring, data = context.queries, context.targets, context.scoring, records.data
        order = np.lexsort((-data["query_frame"].astype(np.int64), records.target, records.query))
        query, target, frame, chunk = (data[name][order] for name in ("query", "target", "query_frame", "chunk"))
        bounds = group_starts(query, target, frame)
        firsts = bounds[:-1]
        query_of, at, minus = queries.locate(query[firsts]), targets.locate(target[firsts]), frame[firsts] < 0
        strands, begins = laid_out_strands(context)
        real = strands if not len(queries.hard) else laid_out_strands(context, queries.residues)[0]
        offsets = strand_offsets(begins)
        pieces = 4 * query_of + 2 * minus
        groups = np.zeros((len(firsts), 7), np.int64)
        groups[:, BEGIN], groups[:, SIZE] = offsets[pieces], offsets[pieces + 1] - offsets[pieces]
        groups[:, LOW], groups[:, TURNED] = targets.offsets[at], minus
        groups[:, CUTOFF] = scoring.of_queries(lambda of: (of.plus.ungapped_cutoff, of.minus.ungapped_cutoff))[
            query_of, minus.astype(np.int64)]

        rows = np.zeros((len(order), 8), np.int64)
        rows[:, GROUP_OF] = np.repeat(np.arange(len(groups)), np.diff(bounds))
        start, length = data["query_pos"][order].astype(np.int64), data["length"][order].astype(np.int64)
        rows[:, SCORE], rows[:, TARGET_START] = data["score"][order], data["target_pos"][order]
        rows[:, QUERY_START] = np.where(frame < 0, groups[rows[:, GROUP_OF], SIZE] - start - length, start)
        rows[:, QUERY_END], rows[:, TARGET_END] = rows[:, QUERY_START] + length, rows[:, TARGET_START] + length
        pairs, best = group_starts(query[firsts], target[firsts]), context.options.subject_besthit
        rows = _joined(rows, groups, pairs, chunk, best)
        if best:
            rows = rows[_in_no_better_one(rows, groups, pairs)]

        def evalues(rows: np.ndarray) -> np.ndarray:
            found: np.ndarray = scoring.evalues(rows[:, SCORE], query_of[rows[:, GROUP_OF]],
                                                frame[firsts][rows[:, GROUP_OF]])
            return found

        rows = rows[evalues(rows) <= context.options.evalue]
        low = groups[rows[:, GROUP_OF], LOW]
        around = aligned_residues(context, stretches(low + rows[:, TARGET_START], low + rows[:, TARGET_END]))
        residues = around.codes
        groups[:, LOW] -= around.begin
        stays = np.empty(len(rows), np.bool_)
        _best_stretches(scoring.matrix, strands, residues, groups, rows, stays)
        rows = rows[stays]
        spans = np.stack([np.arange(len(rows)), np.ones(len(rows), np.int64)], axis=1)
        runs = np.stack([np.full(len(rows), PAIR), rows[:, QUERY_END] - rows[:, QUERY_START]], axis=1).astype(np.int32)
        order = np.arange(len(rows))
        paths, counts = paths_and_counts(real, residues, groups, rows, spans, runs, order)
        equal, columns = (counts[:, PathCounts._fields.index(name)] for name in ("identities", "length"))
        similar = equal * 100.0 >= columns * context.options.perc_identity
        shown, of_shown = as_shown(context, around, groups, rows)
        if shown is not residues:
            paths = paths_and_counts(real, shown, of_shown, rows, spans, runs, order)[0]
        context.advance()
        found = final_records(context, rows, counts, paths, query_of, at, minus)
        return found.take(similar)


def _in_no_better_one(rows: np.ndarray, groups: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    """bool[n]: rows that lie in the range of no better one of the same query and target.

    rows: i64[n, 8], by group. pairs: i64[p + 1], where the groups of each query and target begin.
    """
    of = groups[rows[:, GROUP_OF]]
    turned = of[:, TURNED] != 0
    begin = np.where(turned, of[:, SIZE] - rows[:, QUERY_END], rows[:, QUERY_START])
    end = begin + rows[:, QUERY_END] - rows[:, QUERY_START]
    order = _best_first(rows, np.searchsorted(pairs, rows[:, GROUP_OF], "right"))
    kept = np.empty(len(rows), bool)
    kept[order] = best_of_targets(np.searchsorted(rows[:, GROUP_OF], pairs), begin[order], end[order], turned[order])
    return kept


def _joined(rows: np.ndarray, groups: np.ndarray, pairs: np.ndarray, chunks: np.ndarray, best: bool) -> np.ndarray:
    """Rows with the parts of neighbouring pieces of targets joined; by group, best first.

    Args:
        rows, pairs: as ``_in_no_better_one`` has them.
        chunks: i64[n], the pieces of rows.
        best: whether those in the range of a better one of the target go after every piece.
    """
    parts = []
    ends = np.searchsorted(rows[:, GROUP_OF], pairs)
    several = np.minimum.reduceat(chunks, ends[:-1]) != np.maximum.reduceat(chunks, ends[:-1])
    for first, low, high, many in zip(pairs.tolist(), ends.tolist(), ends[1:].tolist(), several.tolist()):
        own, pieces = rows[low:high], chunks[low:high]
        if many:
            group_of = {-1 if groups[group, TURNED] else 1: group for group in np.unique(own[:, GROUP_OF]).tolist()}
            found = []
            for chunk in np.unique(pieces).tolist():
                there = own[pieces == chunk]
                there[:, [TARGET_START, TARGET_END]] -= chunk
                found.append((chunk, {frame: [Hsp(*row[:5]) for row in there[there[:, GROUP_OF] == group].tolist()]
                                      for frame, group in group_of.items()}))
            merged = merge_chunks(found, overlaps, int(groups[first, SIZE]) if best else None)
            own = np.array([(hsp.score, hsp.query_start, hsp.query_end, hsp.target_start, hsp.target_end, 0, 0, 0)
                            for hsps in merged.values() for hsp in hsps], np.int64)
            own[:, GROUP_OF] = [group_of[frame] for frame, hsps in merged.items() for _ in hsps]
        parts.append(own)
    joined = np.concatenate(parts)
    return joined[_best_first(joined, joined[:, GROUP_OF])]


def _best_first(rows: np.ndarray, of: np.ndarray) -> np.ndarray:
    """i64[n]: the order of rows by what they are of, i64[n], and as ``score_order`` there."""
    return np.lexsort((-rows[:, QUERY_END], rows[:, QUERY_START], -rows[:, TARGET_END], rows[:, TARGET_START],
                       -rows[:, SCORE], of))
