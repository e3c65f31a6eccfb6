"""Preliminary gapped extension on the CPU: the reference's rules, all strands and chunks in one kernel."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable
from itertools import groupby
from typing import Any

import numpy as np
from seqloom.core.context import Context
from seqloom.core.engine.threads import run_tasks
from seqloom.core.kernels.jit import kernel
from seqloom.core.records import Alignments, Records, Seeds
from seqloom.core.sequences import offsets_of
from seqloom.core.stages import Footprint, Shape
from seqloom.plugins.common import xdrop_cpu
from seqloom.plugins.common.culling import Hsp
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
from seqloom.plugins.common.grouping import group_starts
from seqloom.plugins.common.order_cpu import FALLING, RISING, order_in_groups
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
)
from seqloom.plugins.common.xdrop_cpu import extend as extend_by_scores
from seqloom.plugins.nucleotide_blast import greedy_cpu
from seqloom.plugins.nucleotide_blast.chunks import merge_chunks
from seqloom.plugins.nucleotide_blast.gapped_reference import (
    START_ROOM,
    START_SHIFT,
    GappedExtension,
    GreedyExtension,
    XDropExtension,
    reach,
    refuse_affine,
    refuse_linear,
)
from seqloom.plugins.nucleotide_blast.greedy_cpu import (
    DONE,
    MORE_CELLS,
    anchor,
    rows_room,
    write_ends,
)
from seqloom.plugins.nucleotide_blast.greedy_cpu import extend as extend_greedily
from seqloom.plugins.nucleotide_blast.packed_cpu import packed_bases, parts_by_target, stretches
from seqloom.plugins.nucleotide_blast.pieces import pieces_of
from seqloom.plugins.nucleotide_blast.saved_cpu import copy_row, forget, is_contained, save, saved_room
from seqloom.plugins.nucleotide_blast.ungapped_cpu import laid_out_strands
from seqloom.plugins.nucleotide_blast.ungapped_reference import GROUP

SEGMENT_QUERY, SEGMENT_TARGET, LENGTH, SEGMENT_SCORE, WORD_QUERY, WORD_TARGET = range(6)
"""Columns of a segment in the coordinates of its strand and chunk."""
STRAND, LOW, HIGH, CUTOFF, X_DROP = range(5)
"""Columns of a group: number of its strand, first and last base of its chunk, least score, X-drop."""
MORE_SAVED = 9
FIRST_CELLS, FIRST_ROWS = 1 << 16, 1 << 10
_AMBIGUOUS = 0xFE
"""Code that no target has."""


def strand_offsets(begins: np.ndarray) -> np.ndarray:
    """i8[4k + 1]: begins of strands and sentinels of ``laid_out_strands``; strand s of query q is piece 4q + 2s."""
    size = np.diff(begins) // 2 - 1
    pieces = np.stack([size, np.ones_like(size), size, np.ones_like(size)], axis=1)
    return offsets_of(pieces.reshape(-1))


@kernel
def _unambiguous(codes, ambiguous, bases):
    """Write codes with ``ambiguous`` in place of every ambiguity; returns all bits that are set in any of them."""
    bits = np.int64(0)
    for place in range(len(codes)):
        code = codes[place]
        bits |= code
        bases[place] = code if code < 4 else ambiguous
    return bits


def matchable_strands(strands: np.ndarray) -> greedy_cpu.Sequence:
    """u1 strands whose ambiguities are equal to nothing in any target, and so no ambiguity there to anything in them;
    the same array where they have none."""
    bases = np.empty(len(strands), np.uint8)
    has_ambiguities = _unambiguous(strands, np.uint8(_AMBIGUOUS), bases) > 3
    return greedy_cpu.sequence(bases if has_ambiguities else strands)


@kernel
def _align_greedily(query, offsets, target, group, segment, costs, rows, sides, hsp):
    """The alignment through the middle of a segment, written to ``hsp``; returns DONE or what is missing.

    costs: reward, penalty, and match, mismatch and X-drop in units that make half a match whole.
    """
    reward, penalty, match, mismatch, x_drop = costs
    begin, end = offsets[group[STRAND]], offsets[group[STRAND] + 1]
    middle = segment[LENGTH] // 2
    q, t = segment[SEGMENT_QUERY] + middle, segment[SEGMENT_TARGET] + middle
    left, right = sides[LEFT], sides[RIGHT]
    state = extend_greedily(query, begin + q, q, target, group[LOW] + t, t, True, match, mismatch, x_drop, True,
                            rows, left)
    if state != DONE:
        return state
    state = extend_greedily(query, begin + q, end - begin - q, target, group[LOW] + t, group[HIGH] - group[LOW] - t,
                            False, match, mismatch, x_drop, True, rows, right)
    if state != DONE:
        return state
    write_ends(q, t, left, right, reward, penalty, hsp)
    hsp[ANCHOR_QUERY], hsp[ANCHOR_TARGET] = anchor(q, t, left, right)
    return DONE


@kernel
def _greedy_groups(query, offsets, target, groups, bounds, segments, scores, separation, rows, sides, saved, found,
                   first, hsp):
    """Alignments of every group from ``first`` on; (DONE or what is missing, groups done, alignments, extensions).

    hsp: room for one.
    """
    count = extended = 0
    reward, penalty, factor = scores
    for number in range(first, len(groups)):
        group, begun = groups[number], count
        forget(saved)
        costs = (reward, penalty, reward * factor, -penalty * factor, group[X_DROP] * factor)
        for at in range(bounds[number], bounds[number + 1]):
            segment = segments[at]
            as_box(segment, hsp)
            if is_contained(saved, hsp, separation):
                continue
            extended += 1
            state = _align_greedily(query, offsets, target, group, segment, costs, rows, sides, hsp)
            if state == DONE and hsp[SCORE] >= group[CUTOFF]:
                hsp[PAIR] = number
                copy_row(hsp, found[count])
                count += 1
                if not save(saved, hsp):
                    state = MORE_SAVED
            if state != DONE:
                return state, number, begun, extended
    return DONE, len(groups), count, extended


@kernel
def as_box(segment, hsp):
    """A segment as an alignment."""
    hsp[SCORE] = segment[SEGMENT_SCORE]
    hsp[QUERY_START], hsp[QUERY_END] = segment[SEGMENT_QUERY], segment[SEGMENT_QUERY] + segment[LENGTH]
    hsp[TARGET_START], hsp[TARGET_END] = segment[SEGMENT_TARGET], segment[SEGMENT_TARGET] + segment[LENGTH]


@kernel
def most_columns(bases, reward, gap_extend, x_drop):
    """``reach`` of the reference."""
    return bases + (reward * bases + x_drop) // max(1, gap_extend) + 1


@kernel
def set_out(passes, rows, row_begin, row_split, before_rows, behind_rows, columns, column_begin, column_split,
            before_columns, behind_columns):
    """Where the passes of ``xdrop_cpu.extend`` to both sides of a split begin, and how many residues they may take."""
    left, right = passes[LEFT], passes[RIGHT]
    place = row_begin + row_split
    if len(rows) == 1:
        left[ROW_START], right[ROW_START] = place - 1, place
    else:
        left[ROW_START], right[ROW_START] = rows.shape[1] - PADDING - place, PADDING + place
    left[HEIGHT], right[HEIGHT] = before_rows, behind_rows
    left[COLUMN_START], left[WIDTH] = columns.shape[1] - PADDING - column_begin - column_split, before_columns
    right[COLUMN_START], right[WIDTH] = PADDING + column_begin + column_split, behind_columns


@kernel
def _align(query, target, group, segment, costs, reward, space, hsp):
    """The alignment around the word of a segment, written to ``hsp``."""
    begin, size = query.offsets[group[STRAND]], query.offsets[group[STRAND] + 1] - query.offsets[group[STRAND]]
    width = group[HIGH] - group[LOW]
    q, t = segment[WORD_QUERY], segment[WORD_TARGET]
    if segment[SEGMENT_TARGET] + segment[LENGTH] >= t + START_ROOM:
        q, t = q + START_SHIFT, t + START_SHIFT
    hsp[ANCHOR_QUERY], hsp[ANCHOR_TARGET] = q, t
    split = GROUP - t % GROUP
    if q + split > size or t + split > width:
        split -= GROUP
    q, t = max(0, q + split), max(0, t + split)
    matrix, tables, highest, gap_open, gap_extend, _ = costs
    x_drop = max(min(group[X_DROP], segment[SEGMENT_SCORE]), gap_open + gap_extend)
    set_out(space.passes, target, group[LOW], t, min(t, most_columns(q, reward, gap_extend, x_drop)),
            min(width - t, most_columns(size - q, reward, gap_extend, x_drop)), query.residues, begin, q, q, size - q)
    extend_by_scores(target, query.residues, (matrix, tables, highest, gap_open, gap_extend, x_drop), None,
                     space, False, None, None)
    left, right = space.passes[LEFT], space.passes[RIGHT]
    hsp[SCORE] = left[TOP] + right[TOP]
    hsp[QUERY_START], hsp[QUERY_END] = q - left[TOP_COLUMN], q + right[TOP_COLUMN]
    hsp[TARGET_START], hsp[TARGET_END] = t - left[TOP_ROW], t + right[TOP_ROW]


@kernel
def _xdrop_groups(query, target, groups, bounds, segments, costs, reward, separation, space, saved, found, first,
                  hsp):
    """As ``_greedy_groups``, by scores."""
    count = extended = 0
    for number in range(first, len(groups)):
        group, begun = groups[number], count
        forget(saved)
        for at in range(bounds[number], bounds[number + 1]):
            segment = segments[at]
            as_box(segment, hsp)
            if is_contained(saved, hsp, separation):
                continue
            extended += 1
            _align(query, target, group, segment, costs, reward, space, hsp)
            if hsp[SCORE] >= group[CUTOFF]:
                hsp[PAIR] = number
                copy_row(hsp, found[count])
                count += 1
                if not save(saved, hsp):
                    return MORE_SAVED, number, begun, extended
    return DONE, len(groups), count, extended


Extend = Callable[[np.ndarray, np.ndarray, np.ndarray, Any, np.ndarray, int], tuple[int, int, int, int]]
"""Kernels for groups, their bounds, segments, what saves, room for alignments and the first group."""
Extender = Callable[[slice], tuple[int, Extend, Callable[[int], None]]]


class GappedExtensionCpu(GappedExtension):
    """What both preliminary gapped extensions share on the CPU."""

    backend = "cpu"
    reads_residues = False

    def footprint(self, shape: Shape) -> Footprint:
        return Footprint(host=12 * shape.query_residues + 16 * shape.threads * shape.longest_query)

    @abstractmethod
    def extender(self, context: Context, strands: np.ndarray, offsets: np.ndarray, groups: np.ndarray,
                 bounds: np.ndarray, segments: np.ndarray, around: np.ndarray) -> Extender:
        """Makes, for some of the segments, the kernel and what gives it more room, and says where what it reads of the
        volume begins.

        Args:
            strands, offsets: u1 and i8[4k + 1], of ``laid_out_strands`` and ``strand_offsets``.
            groups: i8[g, 5]. bounds: i8[g + 1], the first row of ``segments``, i8[n, 6], of each.
            around: i8[n, 6], what ``within_reach`` wants to know of all segments.
        """

    def aligner(self, scoring: Any, x_drop: int, query: bytes, target: bytes) -> Any:
        raise NotImplementedError

    def run(self, context: Context, records: Records) -> Alignments:
        assert isinstance(records, Seeds)
        if not len(records):
            return Alignments({})
        scoring, queries, targets, data = context.scoring, context.queries, context.targets, records.data
        bounds = group_starts(records.query, records.target, data["chunk"])
        order = order_in_groups(np.stack([data["query_frame"]], axis=1).astype(np.int64), bounds, [(0, FALLING)])
        table = {name: data[name][order].astype(np.int64) for name in
                 ("query", "target", "chunk", "query_frame", "query_pos", "target_pos", "length", "score",
                  "word_query", "word_target")}
        bounds = group_starts(table["query"], table["target"], table["chunk"], table["query_frame"])
        places, minus = queries.locate(table["query"]), table["query_frame"] < 0
        length = queries.lengths[places]
        segments = np.stack([
            np.where(minus, length - table["query_pos"] - table["length"], table["query_pos"]),
            table["target_pos"] - table["chunk"], table["length"], table["score"],
            np.where(minus, length - table["word_query"], table["word_query"]),
            table["word_target"] - table["chunk"]], axis=1)
        segments = np.ascontiguousarray(segments[order_in_groups(segments, bounds, [
            (SEGMENT_SCORE, FALLING), (SEGMENT_TARGET, RISING), (LENGTH, FALLING), (SEGMENT_QUERY, RISING)])])
        firsts = bounds[:-1]
        query_of, frames = places[firsts], table["query_frame"][firsts]
        at = targets.locate(table["target"][firsts])
        low = targets.offsets[at] + table["chunk"][firsts]
        cutoffs = scoring.of_queries(lambda of: (of.plus.cutoff, of.minus.cutoff))[query_of, (frames < 0).astype(int)]
        x_drops = scoring.of_queries(lambda of: of.xdrop_gapped)[query_of]
        groups = np.stack([4 * query_of + 2 * (frames < 0), low, pieces_of(context).ends(low),
                           cutoffs, x_drops], axis=1).astype(np.int64)
        strands, begins = laid_out_strands(context)
        around = _around(groups, bounds, segments, length)
        begin = self.extender(context, strands, strand_offsets(begins), groups, bounds, segments, around)
        longest = int((groups[:, HIGH] - groups[:, LOW]).max())

        def part(span: tuple[int, int]) -> tuple[np.ndarray, int]:
            own, starts = groups[span[0] : span[1]].copy(), bounds[span[0] : span[1] + 1]
            place, extend, grow = begin(slice(starts[0], starts[-1]))
            own[:, LOW : HIGH + 1] -= place
            parts, first, extensions = [], 0, 0
            saved = saved_room(int(np.diff(starts).max()), longest)
            while first < len(own):
                found = np.empty((starts[-1] - starts[first], 8), np.int64)
                state, first, count, extended = extend(own, starts, segments, saved, found, first)
                parts.append(found[:count])
                extensions += extended
                if state == MORE_SAVED:
                    saved = saved.grown()
                elif state != DONE:
                    grow(state)
            context.advance(int(starts[-1] - starts[0]), len(records))
            rows = np.concatenate(parts)
            rows[:, PAIR] += span[0]
            return rows, extensions

        spans = parts_by_target(bounds, context.threads, groups[:, LOW], int(around[:, :2].sum()))
        parts = run_tasks(context.threads, part, spans)
        context.count("extended", sum(extended for _, extended in parts))
        found = np.concatenate([rows for rows, _ in parts])
        found = found[in_report_order(found)]
        return _records(context, self._merged(context, found, table, firsts), query_of, at, frames)

    def _merged(self, context: Context, found: np.ndarray, table: dict[str, np.ndarray], firsts: np.ndarray
                ) -> np.ndarray:
        """Rows in target coordinates, pieces of neighbouring chunks joined; by pair and frame, best first."""
        chunks = table["chunk"][firsts]
        found[:, [TARGET_START, TARGET_END, ANCHOR_TARGET]] += chunks[found[:, PAIR]][:, None]
        query, target = table["query"][firsts], table["target"][firsts]
        pairs = group_starts(query, target)
        many = np.repeat(chunks[pairs[:-1]] != chunks[pairs[1:] - 1], np.diff(pairs))
        if not many.any():
            return found
        parts, best = [], context.options.subject_besthit
        lengths = context.queries.lengths[context.queries.locate(query[pairs[:-1]])].tolist()
        pair_of = np.repeat(np.arange(len(pairs) - 1), np.diff(pairs))
        ends = np.searchsorted(pair_of[found[:, PAIR]], np.arange(len(pairs)))
        for pair in range(len(pairs) - 1):
            rows = found[ends[pair] : ends[pair + 1]]
            parts.append(_joined(rows, pairs[pair], pairs[pair + 1], chunks, table["query_frame"][firsts],
                                 lengths[pair] if best else None) if many[pairs[pair]] else rows)
        return np.concatenate(parts)


def _around(groups: np.ndarray, bounds: np.ndarray, segments: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """i8[n, 6]: what ``within_reach`` wants to know of segments. lengths: i8[n], of their queries."""
    low, high = np.repeat(groups[:, LOW : HIGH + 1], np.diff(bounds), axis=0).T
    query, target, word_query, word_target = (segments[:, column] for column in (
        SEGMENT_QUERY, SEGMENT_TARGET, WORD_QUERY, WORD_TARGET))
    size = segments[:, LENGTH]
    return np.stack([np.maximum(query + size, word_query), lengths - np.minimum(query, word_query),
                     low + np.minimum(target, word_target), low + np.maximum(target + size, word_target), low, high],
                    axis=1)


def within_reach(around: np.ndarray, reach: Callable[[np.ndarray], np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """First and last base of the volume that each extension may look at, but one.

    Args:
        around: i8[n, 6], of each how many bases of its strand are before it and behind it at most, its first and last
            base in the volume, and those of the chunk or target.
        reach: how many bases of the target an alignment with so many of the query can take in at most.
    """
    before, behind, first, last, low, high = around.T
    return np.maximum(first - reach(before), low), np.minimum(last + reach(behind), high)


def greedy_reach(scoring: Any, bases: np.ndarray, x_drop: int) -> np.ndarray:
    """As ``reach`` of i8[n] ``bases``, of greedy alignment: a base of a gap costs half a match and a mismatch."""
    return bases + ((scoring.reward * bases + x_drop) / (scoring.reward / 2 - scoring.penalty)).astype(np.int64) + 2


def _joined(rows: np.ndarray, first: int, last: int, chunks: np.ndarray, frames: np.ndarray, best_of: int | None
            ) -> np.ndarray:
    """Rows of a pair whose groups ``first`` … ``last`` − 1 are of several chunks, through ``merge_chunks``."""
    found = []
    group_of: dict[int, int] = {}
    for chunk, groups in groupby(range(first, last), key=lambda group: chunks[group]):
        by_frame = {}
        for group in groups:
            own = rows[rows[:, PAIR] == group]
            own[:, [TARGET_START, TARGET_END, ANCHOR_TARGET]] -= chunk
            by_frame[int(frames[group])] = [Hsp(*row[:7]) for row in own.tolist()]
            group_of.setdefault(int(frames[group]), group)
        found.append((int(chunk), by_frame))
    return np.array([row for frame, hsps in merge_chunks(found, best_of=best_of).items()
                     for row in _hsp_rows(hsps, group_of[frame])], np.int64).reshape(-1, 8)


def _hsp_rows(hsps: Iterable[Hsp], group: int) -> Iterable[tuple[int, ...]]:
    return ((hsp.score, hsp.query_start, hsp.query_end, hsp.target_start, hsp.target_end, hsp.anchor_query,
             hsp.anchor_target, group) for hsp in hsps)


def _records(context: Context, found: np.ndarray, query_of: np.ndarray, at: np.ndarray, frames: np.ndarray
             ) -> Alignments:
    """Alignments in forward coordinates, of those whose E-values are low enough."""
    group = found[:, PAIR]
    query, frame = query_of[group], frames[group]
    good = context.scoring.evalues(found[:, SCORE], query, frame) <= context.options.evalue
    found, group, query, frame = found[good], group[good], query[good], frame[good]
    length, minus = context.queries.lengths[query], frame < 0
    start, end = found[:, QUERY_START], found[:, QUERY_END]
    return Alignments({
        "query": context.queries.ordinals[query], "target": context.targets.ordinals[at[group]],
        "score": found[:, SCORE], "query_start": np.where(minus, length - end, start),
        "query_end": np.where(minus, length - start, end), "target_start": found[:, TARGET_START],
        "target_end": found[:, TARGET_END], "query_frame": frame, "target_frame": np.ones(len(found), np.int8),
        "anchor_query": np.where(minus, length - found[:, ANCHOR_QUERY], found[:, ANCHOR_QUERY]),
        "anchor_target": found[:, ANCHOR_TARGET],
    })


class XDropExtensionCpu(GappedExtensionCpu, XDropExtension):
    __doc__ = XDropExtension.__doc__
    backend = "cpu"

    def extender(self, context: Context, strands: np.ndarray, offsets: np.ndarray, groups: np.ndarray,
                 bounds: np.ndarray, segments: np.ndarray, around: np.ndarray) -> Extender:
        scoring = context.scoring
        refuse_linear(scoring)
        x_drop = max(int(groups[:, X_DROP].max()), scoring.gap_open + scoring.gap_extend)
        query = xdrop_cpu.both_ways(strands, offsets, np.arange(len(offsets) - 1))
        packed = packed_bases(context)
        bits = packed.bits.reshape(1, -1)
        costs = xdrop_cpu.Costs.of(scoring.matrix, scoring.gap_open, scoring.gap_extend, x_drop)
        cells = xdrop_cpu.cells(scoring.matrix, scoring.gap_open, scoring.gap_extend, x_drop)
        width = int(np.diff(offsets).max())
        height = min(int((groups[:, HIGH] - groups[:, LOW]).max()), reach(scoring, width, x_drop))

        def begin(some: slice) -> tuple[int, Extend, Callable[[int], None]]:
            space = xdrop_cpu.workspace(height, width, cells)
            separation = self.options.diagonal_separation

            def extend(own: np.ndarray, starts: np.ndarray, segments: np.ndarray, saved: Any, found: np.ndarray,
                       first: int) -> tuple[int, int, int, int]:
                return _xdrop_groups(query, bits, own, starts, segments, costs, scoring.reward, separation, space,
                                     saved, found, first, np.zeros(8, np.int64))

            return -packed.first, extend, lambda state: None

        return begin


class GreedyRoom:
    """Rows of greedy extensions, which grow as they have to."""

    def __init__(self) -> None:
        self.rows = rows_room(FIRST_CELLS, FIRST_ROWS)

    def grow(self, state: int) -> None:
        cells, rows = len(self.rows.cells), len(self.rows.rows)
        self.rows = rows_room(4 * cells, rows) if state == MORE_CELLS else rows_room(cells, 4 * rows)


class GreedyExtensionCpu(GappedExtensionCpu, GreedyExtension):
    __doc__ = GreedyExtension.__doc__
    backend = "cpu"

    def footprint(self, shape: Shape) -> Footprint:
        return Footprint(host=super().footprint(shape).host + shape.target_residues)

    def extender(self, context: Context, strands: np.ndarray, offsets: np.ndarray, groups: np.ndarray,
                 bounds: np.ndarray, segments: np.ndarray, around: np.ndarray) -> Extender:
        scoring, x_drop = context.scoring, int(groups[:, X_DROP].max())
        refuse_affine(scoring)
        query, packed = matchable_strands(strands), packed_bases(context)
        scores = scoring.reward, scoring.penalty, 2 if scoring.reward % 2 else 1
        first, last = within_reach(around, lambda bases: greedy_reach(scoring, bases, x_drop))

        def begin(some: slice) -> tuple[int, Extend, Callable[[int], None]]:
            bases = packed.around(stretches(first[some], last[some]))
            target = greedy_cpu.sequence(bases.codes)
            room, sides = GreedyRoom(), np.zeros((2, 7), np.int64)
            separation = self.options.diagonal_separation

            def extend(own: np.ndarray, starts: np.ndarray, segments: np.ndarray, saved: Any, found: np.ndarray,
                       first: int) -> tuple[int, int, int, int]:
                return _greedy_groups(query, offsets, target, own, starts, segments, scores, separation, room.rows,
                                      sides, saved, found, first, np.zeros(8, np.int64))

            return bases.begin, extend, room.grow

        return begin
