"""``nucleotide-greedy-traceback`` on CUDA devices: all alignments of a unit are traced there, a warp for each side.

Which of them count depends on those before, but not where one ends. So a device finds the ends of all; the host tells
which stay, and of these alone the device keeps choices and makes scripts. Alignments by ambiguities of targets, and
those that a device has no room for, are the host's. Where volumes come part by part devices have copies of the bases
that alignments can reach.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
from numba import cuda as _cuda
from numba import int32, int64
from seqloom.core.context import Context
from seqloom.core.cuda.jit import kernel as kept_kernel
from seqloom.core.engine.threads import run_tasks, short_switch_interval
from seqloom.core.errors import BudgetError
from seqloom.core.kernels.jit import kernel
from seqloom.core.kernels.packed16 import SIMULATED
from seqloom.core.records import Ragged
from seqloom.core.sequences import offsets_of
from seqloom.core.stages import Footprint, Shape
from seqloom.plugins.common.culling_cpu import (
    ANCHOR_QUERY,
    ANCHOR_TARGET,
    QUERY_END,
    QUERY_START,
    TARGET_END,
    TARGET_START,
)
from seqloom.plugins.common.culling_cpu import PAIR as GROUP_OF
from seqloom.plugins.common.grouping import group_parts
from seqloom.plugins.common.resident_cuda import VOLUME_RESIDUES, Volume, devices_for, on_devices
from seqloom.plugins.common.resident_index_cuda import OnDevices
from seqloom.plugins.common.workspace_cuda import WorkSize, Workspace
from seqloom.plugins.nucleotide_blast.gapped_reference import refuse_affine
from seqloom.plugins.nucleotide_blast.greedy_cpu import DIFFERENCES, write_ends
from seqloom.plugins.nucleotide_blast.greedy_cuda import (
    CHOICES,
    ENDS,
    FARTHEST,
    LANES,
    PLACES,
    Costs,
    Sides,
    align_kernel,
)
from seqloom.plugins.nucleotide_blast.index_reference import BASES
from seqloom.plugins.nucleotide_blast.packed_cpu import (
    PackedIndex,
    aligned_residues,
    parts_by_target,
    runs_of_codes,
    stretches,
)
from seqloom.plugins.nucleotide_blast.pieces import hard_runs
from seqloom.plugins.nucleotide_blast.reached_cuda import parts_with_room, reached_bases
from seqloom.plugins.nucleotide_blast.scripts_cpu import clean_gaps
from seqloom.plugins.nucleotide_blast.traceback_cpu import (
    BEGIN,
    LOW,
    SIZE,
    WIDTH,
    X_DROP,
    GreedyTracebackCpu,
    Made,
    TracebackInput,
    around_of_rows,
    joined,
)

cuda: Any = _cuda  # numba's types don't know what code on the device may do
THREADS = 4 if SIMULATED else 128
ROOM = 1 << (12 if SIMULATED else 23)
"""Numbers of choices and rows that are on a device at a time, at most."""
WORTH_A_PART = 1 << 12
"""Alignments for which it pays to wake a thread that tells which stay."""
BYTES_FOR_A_NUMBER = 100
"""Of the memory that may be used: one of ``ROOM`` for so many."""
NEAR = 16
"""Bases beside an alignment that are looked at to choose where it is traced from."""


def move_runs(rows, places, sizes, firsts, sides, out):
    """Kernel: the runs of all sides, from the end to the anchor, one behind the other.

    Args:
        rows, places: as of ``align_sides``. sizes: i4[sides]. firsts: i8[sides], where those of each go to in ``out``.
    """
    side = cuda.grid(1)
    if side < sides:
        size = int64(sizes[side])
        last = int64(places[int64(side) * int64(PLACES) + 1]) + size - int64(1)
        to = int64(firsts[side])
        for run in range(size):
            out[to + run] = int32(rows[last - run])


@cache
def move_kernel() -> Any:
    return kept_kernel()(move_runs)


@kernel
def _note_ends(numbers, group_of, ends, anchors, reward, penalty, room, rows, sizes):
    """Write traced alignments, i8[n, 8], as far as they are known without their scripts.

    Args:
        numbers, group_of: i8[k], of the rows that are written, and of their groups.
        ends, anchors: i4[k, 2, ENDS], i4[k, 2].
        room: numbers that there is room for, of choices and rows of one (see ``_TracedSides.scripts``).
        sizes: i8[n], filled with the bases of each, or −1 where the device has no room.
    """
    for at in range(len(numbers)):
        left, right, row = ends[at, 0], ends[at, 1], rows[numbers[at]]
        q, t = np.int64(anchors[at, 0]), np.int64(anchors[at, 1])
        write_ends(q, t, left, right, reward, penalty, row)
        row[ANCHOR_QUERY], row[ANCHOR_TARGET], row[GROUP_OF] = q, t, group_of[at]
        differences = np.int64(left[DIFFERENCES]) + right[DIFFERENCES]
        fits = (min(left[DIFFERENCES], right[DIFFERENCES]) >= 0
                and np.int64(left[CHOICES]) + right[CHOICES] + 2 * differences + 2 <= room)
        bases = row[QUERY_END] - row[QUERY_START] + row[TARGET_END] - row[TARGET_START]
        sizes[numbers[at]] = bases if fits else -1


@kernel
def _put_scripts(of_host, sizes, sides, spans, runs, out):
    """Runs of alignments of the device and of the host to i4 ``out``; see ``_joined_scripts``."""
    to = first = host = 0
    for row in range(len(of_host)):
        if of_host[row]:
            for run in range(spans[host, 0], spans[host, 0] + spans[host, 1]):
                out[to] = runs[run, 1] << 2 | runs[run, 0]
                to += 1
            host += 1
            continue
        for _ in range(sizes[row, 0] + sizes[row, 1]):
            out[to] = sides[first]
            to, first = to + 1, first + 1


@kernel
def _write_scripts(query, residues, groups, rows, tidied, firsts, sides, script, runs, spans):
    """Scripts of alignments, tidied, from those of their sides; returns how many runs there are.

    Args:
        query, residues: u1, as they score.
        tidied: bool[n], which are.
        firsts, sides: i8[2n + 1], i4: runs of both sides of each alignment, from the end to the anchor.
        script: i4[m, 2], room for the longest. runs, spans: as of ``Made``.
    """
    used = 0
    for at in range(len(rows)):
        row, count = rows[at], 0
        group = groups[row[GROUP_OF]]
        begin, middle, end = firsts[2 * at], firsts[2 * at + 1], firsts[2 * at + 2]
        for k in range(begin, end):
            packed = sides[k] if k < middle else sides[end - 1 - (k - middle)]
            operation, length = packed & 3, packed >> 2
            if count and script[count - 1, 0] == operation:
                script[count - 1, 1] += length
            else:
                script[count, 0], script[count, 1] = operation, length
                count += 1
        if not tidied[at]:
            count = clean_gaps(script, count, query, group[BEGIN] + row[QUERY_START],
                               row[QUERY_END] - row[QUERY_START], residues, group[LOW] + row[TARGET_START],
                               row[TARGET_END] - row[TARGET_START])
        spans[at, 0], spans[at, 1] = used, count
        for run in range(count):
            runs[used + run, 0], runs[used + run, 1] = script[run, 0], script[run, 1]
        used += count
    return used


@kernel
def _clear_stretches(runs, places, low, high, clear):
    """Write to i8[n, 2] where the stretch without ambiguities around each place begins and ends.

    runs: i8[m, 3], rising; those below ``low`` or from ``high`` on are those of other targets. A place in a run has a
    stretch that is empty, and one without a run on a side another that is ``FARTHEST`` away.
    """
    for row in range(len(places)):
        first, last = 0, len(runs)
        while first < last:
            middle = (first + last) // 2
            if runs[middle, 1] <= places[row]:
                first = middle + 1
            else:
                last = middle
        clear[row, 0], clear[row, 1] = low[row] - FARTHEST, high[row] + FARTHEST
        if first and runs[first - 1, 1] > low[row]:
            clear[row, 0] = runs[first - 1, 1]
        if first < len(runs) and runs[first, 0] < high[row]:
            clear[row, 1] = runs[first, 0]


class GreedyTracebackCuda(OnDevices, GreedyTracebackCpu):
    __doc__ = GreedyTracebackCpu.__doc__
    volume_residues = 4 * VOLUME_RESIDUES

    def footprint(self, shape: Shape) -> Footprint:
        return Footprint(host=super().footprint(shape).host)

    def aligned(self, context: Context, given: TracebackInput) -> tuple[np.ndarray, np.ndarray, Ragged]:
        refuse_affine(context.scoring)
        if Costs.of(context.scoring).fit(int(given.groups[:, X_DROP].max())):
            try:
                with short_switch_interval():
                    return self._by_devices(context, given)
            except BudgetError:
                context.count("units without room on a device", 1)
        return super().aligned(context, given)

    def _by_devices(self, context: Context, given: TracebackInput) -> tuple[np.ndarray, np.ndarray, Ragged]:
        about = _about(context, given)
        of_host = (about[:, 1] + about[:, 3] >= FARTHEST) | (about[:, 9] - NEAR < about[:, 11]) | (
            about[:, 10] + NEAR > about[:, 12])
        reach = self.within_reach(context, around_of_rows(given.groups, given.bounds, given.hsps))
        devices, budget = devices_for(context), context.device_memory
        room = ROOM if budget is None else min(ROOM, budget // BYTES_FOR_A_NUMBER)

        def need(rows: int) -> WorkSize:
            return WorkSize(rows, room, 0, 1, len(given.strands)).rounded()

        def on_one(share: tuple[int, int]) -> list[tuple[np.ndarray, ...]]:
            return [self._part(context, given, about, of_host, reach, need, room, part)
                    for part in parts_with_room(context, given.bounds, *reach, need, share)]

        shares = group_parts(given.bounds, len(devices))
        found = [part for parts in on_devices(on_one, shares, devices) for part in parts]
        return self._finished(context, given, *(np.concatenate(column) for column in zip(*found, strict=True)))

    def _part(self, context: Context, given: TracebackInput, about: np.ndarray, of_host: np.ndarray,
              reach: tuple[np.ndarray, np.ndarray], need: Callable[[int], WorkSize], room: int, part: tuple[int, int]
              ) -> tuple[np.ndarray, ...]:
        """Groups first … last − 1, traced on the current device.

        Args:
            about: i8[n, ABOUT]. of_host: bool[n], alignments that are the host's.
            reach, need: as of ``parts_with_room``. room: as of ``_TracedSides``. part: first and last.

        Returns:
            The alignments that stay: i8[k, 8]; bool[k], whether scripts are tidied; i8[2k], i4, how many runs each of
            their sides has, and these.
        """
        first, last = part
        rows_of = slice(given.bounds[first], given.bounds[last])
        own = given._replace(groups=given.groups[first:last], hsps=given.hsps[rows_of],
                             bounds=given.bounds[first : last + 1] - rows_of.start)
        of_host, count = of_host[rows_of].copy(), len(own.hsps)
        rows, sizes = np.empty((count, 8), np.int64), np.empty(count, np.int64)
        first_base, last_base = (places[rows_of] for places in reach)
        with reached_bases(context, first_base, last_base, about[rows_of], need(count)) as (space, volume, placed):
            numbers = np.flatnonzero(~of_host)
            there = _TracedSides(context, space, volume, own, numbers, placed[numbers], room)
            there.note_ends(rows, sizes)
            of_host[sizes < 0] = True
            by_host = self._by_host(context, own, of_host)
            rows[of_host], sizes[of_host] = by_host.rows, by_host.spans[:, 1]
            kept = self._kept(context, own, rows, sizes)
            scripts = there.scripts(kept[~of_host[kept]])
        tidied, rows = of_host[kept], rows[kept]
        rows[:, GROUP_OF] += first
        if tidied.any():
            scripts = _joined_scripts(scripts, by_host, (np.cumsum(of_host) - 1)[kept[tidied]], tidied)
        return rows, tidied, *scripts

    def _by_host(self, context: Context, given: TracebackInput, which: np.ndarray) -> Made:
        """All of some alignments, traced by the host. which: bool[n]."""
        context.count("alignments by the host", int(which.sum()))
        counts = np.concatenate([[0], np.cumsum(which)])[given.bounds]
        own, hsps = given.groups, given.hsps[which]
        around = around_of_rows(own, counts, hsps)
        low, high = self.within_reach(context, around)
        begin = self.tracer(context, given.strands, given.real, given.offsets)

        def part(span: tuple[int, int]) -> Made:
            starts = counts[span[0] : span[1] + 1]
            groups, some = own[slice(*span)].copy(), slice(starts[0], starts[-1])
            residues = aligned_residues(context, stretches(low[some], high[some]))
            groups[:, LOW] -= residues.begin
            made = self.traced(groups, starts, hsps, *begin(residues), every=True)
            made.rows[:, GROUP_OF] += span[0]
            return made

        if not len(hsps):
            return Made(np.empty((0, 8), np.int64), np.empty((0, 2), np.int64), np.empty((0, 2), np.int32))
        return Made.joined(run_tasks(context.threads, part, parts_by_target(
            counts, context.threads, own[:, LOW], int(around[:, :2].sum()))))

    def _kept(self, context: Context, given: TracebackInput, rows: np.ndarray, sizes: np.ndarray) -> np.ndarray:
        """Numbers of the rows that stay."""

        def part(span: tuple[int, int]) -> np.ndarray:
            starts = given.bounds[span[0] : span[1] + 1]
            some = slice(starts[0], starts[-1])
            return starts[0] + self.in_turn(given.groups[slice(*span)], starts - starts[0], given.hsps[some],
                                            rows[some], sizes[some])

        parts = group_parts(given.bounds, context.threads, len(rows) / WORTH_A_PART)
        return np.concatenate(run_tasks(context.threads, part, parts))

    def _finished(self, context: Context, given: TracebackInput, rows: np.ndarray, tidied: np.ndarray,
                  sizes: np.ndarray, sides: np.ndarray) -> tuple[np.ndarray, np.ndarray, Ragged]:
        """Final alignments of traced ones: see ``_part``."""
        bounds = np.searchsorted(rows[:, GROUP_OF], np.arange(len(given.groups) + 1))
        around, firsts = around_of_rows(given.groups, bounds, rows), offsets_of(sizes)
        low, high = self.within_reach(context, around)

        def part(span: tuple[int, int]) -> tuple[np.ndarray, np.ndarray, Ragged]:
            own, some = given.groups[slice(*span)].copy(), slice(bounds[span[0]], bounds[span[1]])
            residues = aligned_residues(context, stretches(low[some], high[some]))
            own[:, LOW] -= residues.begin
            mine, starts = rows[some].copy(), firsts[2 * some.start : 2 * some.stop + 1]
            mine[:, GROUP_OF] -= span[0]
            most = int((starts[2::2] - starts[:-2:2]).max(initial=0))
            runs, spans = np.empty((starts[-1] - starts[0], 2), np.int32), np.empty((len(mine), 2), np.int64)
            used = _write_scripts(given.strands, residues.codes, own, mine, tidied[some], starts, sides,
                                  np.empty((most, 2), np.int32), runs, spans)
            found, counts, paths = self.chosen(context, given, residues, own, Made(mine, spans, runs[:used]))
            found[:, GROUP_OF] += span[0]
            context.advance(some.stop - some.start, len(rows))
            return found, counts, paths

        return joined(run_tasks(context.threads, part, parts_by_target(
            bounds, context.threads, given.groups[:, LOW], int(around[:, :2].sum()))))


class _TracedSides(Sides):
    """Alignments on the current device that are traced there.

    Args:
        given, numbers: what is traced, and which of its alignments are.
        room: for so many numbers of choices and rows.
    """

    def __init__(self, context: Context, space: Workspace, volume: Volume, given: TracebackInput, numbers: np.ndarray,
                 about: np.ndarray, room: int) -> None:
        super().__init__(context, space, volume, given.strands, about)
        self._room = room
        self._scoring, self._numbers = context.scoring, numbers
        self._group_of = np.repeat(np.arange(len(given.groups)), np.diff(given.bounds))[numbers]
        self._found = np.empty((0, 2, ENDS), np.int32)

    def note_ends(self, rows: np.ndarray, sizes: np.ndarray) -> None:
        """Write what is known of alignments without their scripts: see ``_note_ends``."""
        if not self.count:
            return
        self._found = self.align(runs=False)
        anchors = self.space.fetch(self.anchors, 0, 2 * self.count).reshape(-1, 2)
        _note_ends(self._numbers, self._group_of, self._found, anchors, self._scoring.reward, self._scoring.penalty,
                   self._room, rows, sizes)

    def scripts(self, kept: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """i8[2k], i4: how many runs the sides of some alignments have, and these. kept: their rising numbers."""
        kept = np.searchsorted(self._numbers, kept)
        of_side = self._found[kept].reshape(-1, ENDS).astype(np.int64)
        numbers = np.stack([of_side[:, CHOICES], 2 * of_side[:, DIFFERENCES] + 1], axis=1)
        taken = offsets_of((numbers[::2] + numbers[1::2]).sum(axis=1))
        cuts = [0]
        while cuts[-1] < len(kept):
            cuts.append(int(np.searchsorted(taken, taken[cuts[-1]] + self._room, "right")) - 1)
        parts = [self._scripts(kept[first:last], numbers[2 * first : 2 * last]) for first, last in pairwise(cuts)]
        sizes, runs = zip(*parts, strict=True) if parts else ([np.empty(0, np.int32)], [np.empty(0, np.int32)])
        return np.concatenate(sizes).astype(np.int64), np.concatenate(runs)

    def _scripts(self, kept: np.ndarray, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        space, sides = self.space, 2 * len(kept)
        offsets = np.zeros((sides + 1, PLACES), np.int64)
        np.cumsum(numbers, axis=0, out=offsets[1:])
        places = space.send("places", offsets[:-1].reshape(-1))
        chosen = space.send("chosen", kept.astype(np.int32))
        choices, rows = (space.room(name, int(size), np.int32) for name, size in zip(
            ("choices", "rows"), offsets[-1], strict=True))
        sizes = space.room("sizes", sides, np.int32)
        align_kernel(True)[sides, LANES, space.streams[0]](
            *self.bases, self.about, chosen, *self.costs, self.anchors, self.ends, places, choices, rows,
            sizes)
        on_host = space.fetch(sizes, 0, sides)
        firsts = offsets_of(on_host)
        out = space.room("choices", int(firsts[-1]), np.int32)  # nobody wants those any more
        move_kernel()[-(-sides // THREADS), THREADS, space.streams[0]](
            rows, places, sizes, space.send("firsts", firsts[:-1]), np.int64(sides), out)
        return on_host, space.fetch(out, 0, int(firsts[-1]))


def _about(context: Context, given: TracebackInput) -> np.ndarray:
    """i8[n, ABOUT], of ``align_sides``."""
    groups, hsps = np.repeat(given.groups, np.diff(given.bounds), axis=0), given.hsps
    low, clear = groups[:, LOW], np.empty((len(hsps), 2), np.int64)
    _clear_stretches(_ambiguities(context), low + hsps[:, ANCHOR_TARGET], low, low + groups[:, WIDTH], clear)
    return np.concatenate([groups[:, [BEGIN, SIZE, LOW, WIDTH]], hsps[:, [ANCHOR_QUERY, ANCHOR_TARGET]],
                           Costs.of(context.scoring).factor * groups[:, [X_DROP]],
                           hsps[:, [QUERY_START, QUERY_END, TARGET_START, TARGET_END]], clear - low[:, None]], axis=1)


def _joined_scripts(scripts: tuple[np.ndarray, np.ndarray], made: Made, rows: np.ndarray, of_host: np.ndarray
                    ) -> tuple[np.ndarray, np.ndarray]:
    """As ``_TracedSides.scripts``, of alignments of both: those of the host are as if they had one side.

    Args:
        scripts: of the device. made, rows: those of the host, and numbers of these.
        of_host: bool[k], whose each alignment is.
    """
    sizes, sides = np.zeros((len(of_host), 2), np.int64), np.empty(0, np.int32)
    sizes[~of_host], sizes[of_host, 0] = scripts[0].reshape(-1, 2), made.spans[rows, 1]
    sides = np.empty(int(sizes.sum()), np.int32)
    _put_scripts(of_host, sizes, scripts[1], made.spans[rows], made.runs, sides)
    return sizes.reshape(-1), sides


def _ambiguities(context: Context) -> np.ndarray:
    """i8[m, 3], runs of ambiguities of the volume, and of hard-masked bases, which are aligned as such. They rise, and
    so do their ends."""
    index: Any = context.index(BASES)
    runs = index.packed.runs if isinstance(index, PackedIndex) else runs_of_codes(context.targets.residues)
    if not len(context.targets.hard):
        return runs
    runs = np.concatenate([runs, hard_runs(context.targets)])
    runs = runs[np.argsort(runs[:, 0], kind="stable")]
    runs[:, 1] = np.maximum.accumulate(runs[:, 1])
    return runs
