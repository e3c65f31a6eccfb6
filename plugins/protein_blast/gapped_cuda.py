"""``preliminary-gapped`` on CUDA devices: both sides of all segments there, what becomes of them on the host.

Which segments of a pair count depends on those before it, but not what an extension of one would give. So a device
extends them all; the host then goes through each pair as ever, with the answers at hand, and extends itself what the
device had no room for and pairs that begin again in full.
"""

from __future__ import annotations

from collections import deque
from functools import cache
from itertools import cycle, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numba import cuda as _cuda
from numba import int32, int64
from seqloom.core.classes import NamedTuple
from seqloom.core.context import Context
from seqloom.core.cuda.jit import kernel as kept_kernel
from seqloom.core.cuda.transfer import clear
from seqloom.core.engine.threads import run_tasks, short_switch_interval
from seqloom.core.kernels.jit import kernel
from seqloom.core.stages import Footprint, Shape
from seqloom.plugins.common.chosen_cuda import chosen_volumes, footprint_of_chosen, needed_targets
from seqloom.plugins.common.culling_cpu import PAIR
from seqloom.plugins.common.grouping import group_parts
from seqloom.plugins.common.resident_cuda import Volume, devices_for, in_parts, on_devices
from seqloom.plugins.common.resident_index_cuda import OnDevices, shape_in_parts
from seqloom.plugins.common.workspace_cuda import WorkKind, WorkSize, Workspace
from seqloom.plugins.common.xdrop_cuda import ENDS, THREADS, blocks, has_room, score_table, sides_kernel

from .gapped_cpu import PreliminaryGappedCpu, anchor_shift, contained, note, save
from .gapped_reference import ANCHOR_WINDOW
from .scoring import read_as_query

if TYPE_CHECKING:
    from numpy.typing import NDArray

cuda: Any = _cuda  # numba's types don't know what code on the device may do
_GROUP, _GROUP_OF_PARTS = 1 << 16, 1 << 14
"""Segments that are on a device together, at most, where a volume is there whole or in parts; while some are extended,
the next are sent."""
_WORTH_A_PART = 1024
"""Segments for which it pays to wake a thread that judges them."""
SEGMENT = 6
"""Numbers of one that the device is sent: places of query and target, starts in both, length, whether restricted."""
_BYTES_PER_SEGMENT = 4 * (SEGMENT + 4 + 2 * ENDS)


def find_splits(columns, begins, rows, row_begins, table, segments, count, row_of, column_of, splits, restricted):
    """Kernel: what ``extend_sides`` wants to know of segments (i4[SEGMENT · count]); see ``anchor_shift``.

    row_of, column_of, splits, restricted: are filled.
    """
    segment = cuda.grid(1)
    if segment < count:
        own = segments[SEGMENT * segment : SEGMENT * segment + SEGMENT]
        row = int64(row_begins[own[0]]) + int64(own[2])
        column = int64(begins[own[1]]) + int64(own[3])
        length = int32(own[4])
        shift = int32(length // int32(2))
        if length > int32(ANCHOR_WINDOW):
            total = int32(0)
            for k in range(int32(ANCHOR_WINDOW)):
                total = int32(total + table[int32(rows[row + k]) * 32 + int32(columns[column + k])])
            best = total
            best_end = int32(ANCHOR_WINDOW)
            for end in range(int32(ANCHOR_WINDOW), length):
                behind = int32(end - int32(ANCHOR_WINDOW))
                total = int32(total + table[int32(rows[row + end]) * 32 + int32(columns[column + end])]
                              - table[int32(rows[row + behind]) * 32 + int32(columns[column + behind])])
                if total > best:
                    best = total
                    best_end = int32(end + int32(1))
            shift = int32(0)
            if best > int32(0):
                shift = int32(best_end - int32(1) - int32(ANCHOR_WINDOW // 2))
        row_of[segment] = own[0]
        column_of[segment] = own[1]
        splits[2 * segment] = int32(own[2] + shift + int32(1))
        splits[2 * segment + 1] = int32(own[3] + shift + int32(1))
        restricted[segment] = own[5]


@cache
def splits_kernel() -> Any:
    return kept_kernel()(find_splits)


@kernel
def _judge_pairs(query_residues, query_offsets, residues, target_offsets, matrix, pairs, bounds, segments, ends,
                 cutoffs, doubtfuls, may_restrict, saved, found, again):
    """What ``_extend_pairs`` does where extensions are known.

    query_residues, residues: u1, of queries and targets. ends: i4[s, 2, ENDS], of the right and the left side of each
    segment. found: i8[s, 8], filled with HSPs. again: i8[p], filled with pairs that have to be extended anew. Returns
    the numbers of both.
    """
    count = left = np.int64(0)
    for pair in range(len(pairs)):
        number, place = pairs[pair]
        first, kept, known = count, np.int64(0), True
        restricted = may_restrict and segments[bounds[pair], 0] < doubtfuls[number]
        for row in range(bounds[pair], bounds[pair + 1]):
            score, query_pos, target_pos, length = segments[row]
            if contained(saved, kept, score, query_pos, query_pos + length, target_pos, target_pos + length):
                continue
            right, before = ends[row, 0], ends[row, 1]
            score = np.int64(right[0]) + np.int64(before[0])
            if right[0] < 0 or before[0] < 0 or (restricted and doubtfuls[number] <= score < cutoffs[number]):
                known = False
                break
            if score >= cutoffs[number]:
                query_begin, target_begin = query_offsets[number], target_offsets[place]
                shift = anchor_shift(matrix, query_residues, residues, query_begin + query_pos,
                                     target_begin + target_pos, length)
                hsp = found[count]
                note(hsp, score, query_pos + shift + 1, target_pos + shift + 1,
                     query_offsets[number + 1] - query_begin, target_offsets[place + 1] - target_begin,
                     before[1], before[2], right[1], right[2])
                hsp[PAIR] = pair
                kept = save(saved, kept, hsp)
                count += 1
        if not known:
            again[left] = pair
            count, left = first, left + 1
    return count, left


class _Queries(NamedTuple):
    """Queries and scores on a device."""

    residues: Any
    begins: Any
    table: Any


def working_bytes(need: WorkSize, columns: int = 0) -> int:
    """Device memory that extensions take beside the volume."""
    return (need.query + 8 * (need.stretches + 1) + 2 * need.residues * _BYTES_PER_SEGMENT + (1 << 16)) // 16 * 17


def work_size(queries: int, query_residues: int, by_parts: bool) -> WorkSize:
    """Of so many queries, which are its stretches; its residues are segments of a group."""
    return WorkSize(queries, _GROUP_OF_PARTS if by_parts else _GROUP, 0, 2, query_residues).rounded()


_EXTENSIONS = WorkKind("gapped extension on the device", working_bytes, fills=False)


class PreliminaryGappedCuda(OnDevices, PreliminaryGappedCpu):
    __doc__ = PreliminaryGappedCpu.__doc__

    def footprint(self, shape: Shape) -> Footprint:
        need = work_size(shape.queries, shape.query_residues, shape_in_parts(shape))
        return footprint_of_chosen(shape, super().footprint(shape).host, _EXTENSIONS, need)

    def extended(self, context: Context, pairs: NDArray[np.int64], bounds: NDArray[np.int64],
                 segments: NDArray[np.int64]) -> NDArray[np.int64]:
        scoring, queries, targets = context.scoring, context.queries, context.targets
        costs = scoring.matrix, scoring.gap_open, scoring.gap_extend, scoring.x_drop
        if not len(pairs) or not has_room(*costs) or targets.searched() is not targets.residues:
            return super().extended(context, pairs, bounds, segments)
        doubtfuls = np.array([scoring.restricted_cutoff(place) for place in range(len(queries))], np.int64)
        ends = ends_on_devices(context, pairs, bounds, segments, doubtfuls)
        query_residues = read_as_query(queries.searched())

        def part(groups: tuple[int, int]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
            first, last = groups
            own = slice(bounds[first], bounds[last])
            starts = bounds[first : last + 1] - bounds[first]
            saved = np.empty((int(np.diff(starts).max()) + 1, 8), np.int64)
            found, again = np.empty((starts[-1], 8), np.int64), np.empty(last - first, np.int64)
            count, left = _judge_pairs(
                query_residues, queries.offsets, targets.residues, targets.offsets, scoring.matrix, pairs[first:last],
                starts, segments[own], ends[own], scoring.cutoff, doubtfuls, scoring.may_restrict, saved, found, again)
            found[:count, PAIR] += first
            return found[:count], again[:left] + first

        parts = run_tasks(context.threads, part, group_parts(bounds, context.threads, len(segments) / _WORTH_A_PART))
        again = np.concatenate([left for _, left in parts])
        context.count("pairs by the host", len(again))
        found = [rows for rows, _ in parts]
        if len(again):
            sizes = np.diff(bounds)[again]
            starts = np.concatenate([[0], np.cumsum(sizes)])
            rows = np.repeat(bounds[again] - starts[:-1], sizes) + np.arange(starts[-1])
            more = super().extended(context, pairs[again], starts, segments[rows])
            more[:, PAIR] = again[more[:, PAIR]]
            found.append(more)
        joined = np.concatenate(found)
        return joined[np.argsort(joined[:, PAIR], kind="stable")] if len(again) else joined


def ends_on_devices(context: Context, pairs: NDArray[np.int64], bounds: NDArray[np.int64], segments: NDArray[np.int64],
                    doubtfuls: NDArray[np.int64]) -> NDArray[np.int32]:
    """i4[s, 2, ENDS]: ``extend_sides`` of all segments, which devices share."""
    sent = np.empty((len(segments), SEGMENT), np.int32)
    sizes = np.diff(bounds)
    sent[:, :2] = np.repeat(pairs, sizes, axis=0)
    sent[:, 2:5] = segments[:, 1:]
    sent[:, 5] = np.repeat(segments[bounds[:-1], 0] < doubtfuls[pairs[:, 0]], sizes) & context.scoring.may_restrict
    ends = np.empty((len(segments), 2, ENDS), np.int32)
    numbers = devices_for(context)
    devices = len(numbers)
    cuts = [len(segments) * device // devices for device in range(devices + 1)]

    def on_one(part: tuple[int, int]) -> None:
        queries, own = context.queries, np.arange(*part)
        need = work_size(len(queries), queries.total_residues, in_parts(context))
        needed, of_needed = needed_targets(context, sent[slice(*part), 1])
        order = np.argsort(of_needed, kind="stable")
        starts = np.searchsorted(of_needed[order], np.arange(len(needed) + 1))
        with chosen_volumes(context, needed, _EXTENSIONS, need) as (space, cuts, volumes):
            residues, table = read_as_query(queries.searched()), score_table(context.scoring.matrix)
            there = _Queries(*map(space.send, _Queries._fields, (residues, queries.offsets, table)))
            waiting, slots = deque[tuple[Volume, np.ndarray, int, Any]](), cycle(range(len(space.streams)))
            for number, volume in enumerate(volumes):
                rows = own
                if cuts is not None:
                    first, last = cuts[number]
                    rows = own[order[starts[first] : starts[last]]]
                    sent[rows, 1] = of_needed[rows - part[0]] - first
                volume.arrived(space.streams)
                for begin in range(0, len(rows), need.residues):
                    context.cancellation.check()
                    group, slot = rows[begin : begin + need.residues], next(slots)
                    if len(waiting) == len(space.streams):
                        _fetch(context, space, ends, *waiting.popleft())
                    waiting.append((volume, group, slot, _begin(context, volume, space, there, sent[group], slot)))
                while waiting and waiting[0][0] is not volume:
                    _fetch(context, space, ends, *waiting.popleft())
            while waiting:
                _fetch(context, space, ends, *waiting.popleft())

    with short_switch_interval():
        on_devices(on_one, list(pairwise(cuts)), numbers)
    return ends


def _begin(context: Context, volume: Volume, space: Workspace, queries: _Queries, segments: NDArray[np.int32],
           slot: int) -> Any:
    """Queue the extension of some segments; where their ends will be."""
    scoring, order, stream, count = context.scoring, volume.target_order, space.streams[slot], len(segments)
    opening, most = scoring.gap_open + scoring.gap_extend, space.need.residues
    there = space.send(f"segments {slot}", segments.reshape(-1))
    row_of, column_of, splits, ends = (
        space.room(f"{name} {slot}", size * most, np.int32)
        for name, size in (("row_of", 1), ("column_of", 1), ("splits", 2), ("ends", 2 * ENDS)))
    restricted, taken = space.room(f"restricted {slot}", most, np.uint8), space.room(f"taken {slot}", 1, np.int32)
    clear(taken, 1, stream)
    splits_kernel()[-(-count // THREADS), THREADS, stream](
        volume.residues, order.begins, queries.residues, queries.begins, queries.table, there, np.int32(count),
        row_of, column_of, splits, restricted)
    sides_kernel()[min(blocks(), -(-2 * count // THREADS)), THREADS, stream](
        volume.residues, order.begins, order.ends, queries.residues, queries.begins, queries.table, row_of,
        column_of, splits, restricted, np.int32(opening), np.int32(scoring.gap_extend),
        np.int32(max(scoring.x_drop, opening)), taken, np.int32(2 * count), ends)
    return ends


def _fetch(context: Context, space: Workspace, ends: NDArray[np.int32], volume: Volume, rows: NDArray[np.int64],
           slot: int, there: Any) -> None:
    ends[rows] = space.fetch(there, 0, 2 * ENDS * len(rows), slot).reshape(-1, 2, ENDS)
    context.advance(len(rows), len(ends))
