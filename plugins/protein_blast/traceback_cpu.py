"""``final-traceback`` on the CPU: all pairs that a thread takes up in one kernel."""

from collections.abc import Callable

import numpy as np
from seqloom.core.classes import NamedTuple
from seqloom.core.context import Context
from seqloom.core.engine.threads import run_tasks
from seqloom.core.kernels.jit import kernel
from seqloom.core.records import DELETE, INSERT, MATCH, MISMATCH, Alignments, Ragged, Records
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
from seqloom.plugins.common.edit_path import PathCounts
from seqloom.plugins.common.grouping import group_parts, group_starts
from seqloom.plugins.common.xdrop_cpu import (
    BOTH,
    COLUMN_ONLY,
    HEIGHT,
    LEFT,
    PADDING,
    RIGHT,
    WIDTH,
    extend,
    joined_path,
)
from seqloom.plugins.protein_blast.gapped_cpu import (
    NONE,
    alignments_of_rows,
    contained,
    extension_footprint,
    packed,
    save,
    set_out,
)
from seqloom.plugins.protein_blast.scoring import read_as_query
from seqloom.plugins.protein_blast.traceback_reference import ADJUSTMENT, FinalTraceback, similarity

DONE, NOTHING, MORE_CHOICES, MORE_RUNS = range(4)
"""Results of the kernels: done, no alignment, too little room for the choices of a pass, too little room for paths."""
_WORTH_A_PART = 2
"""Preliminary alignments for which it pays to wake a thread."""
FIRST_CHOICES, FIRST_RUNS = 1 << 20, 2
"""Room to begin with: sets of lanes of each pass, runs of paths per residue of the preliminary
alignments. Four times as much is tried next."""


class Choices(NamedTuple):
    """Choices of two passes, to either side of the anchor, as ``xdrop_cpu.walk_back`` reads them; and steps.

    Attributes:
        codes: u8[2, n]. row_codes: i8[2, rows + 1], where those of each row begin.
        outwards, steps: u1[rows + columns + 1], room for the steps of either half of an alignment.
    """

    codes: np.ndarray
    row_codes: np.ndarray
    outwards: np.ndarray
    steps: np.ndarray


class Made(NamedTuple):
    """Room for alignments.

    Attributes:
        found: i8[n, 8], HSPs. counts: i4[n, columns of ``PathCounts``].
        path_offsets: i8[n + 1], where those of each begin among ``paths``, u4, runs.
        dropped: bool[n], those that don't stay. ways: i1[n], how their scores were adjusted.
    """

    found: np.ndarray
    counts: np.ndarray
    path_offsets: np.ndarray
    paths: np.ndarray
    dropped: np.ndarray
    ways: np.ndarray


@kernel
def trace(query, real, seen, target, number, place, hsp, height, width, costs, uppers, similar, space, choices, made,
          count, used):
    """The alignment that is extended from the anchor of an HSP, written to row ``count`` of what is made.

    To both sides, without gaps at its ends; or where ``height`` is above 0 to the right alone, over so many residues of
    the query and ``width`` of the target, with the gap that it may begin with.

    query, target: ``BothWays``, of which the pair are sequences ``number`` and ``place``. real: the queries' real
    residues, forwards. seen: the targets' residues as they score, both ways. hsp: i8[8]. choices: ``Choices``. made:
    ``Made``, of which ``used`` runs of paths are in use. Returns (DONE, NOTHING or what is missing, runs in use then).
    """
    codes, row_codes, outwards, steps = choices
    found, counts, path_offsets, paths, _, _ = made
    passes = space.passes
    split_query, split_target = hsp[ANCHOR_QUERY] + 1, hsp[ANCHOR_TARGET] + 1
    set_out(passes, query, number, split_query, target, place, split_target)
    if height:
        passes[LEFT, HEIGHT] = passes[LEFT, WIDTH] = 0
        passes[RIGHT, HEIGHT], passes[RIGHT, WIDTH] = height, width
    if not extend(query.residues, seen, costs, uppers, space, False, codes, row_codes):
        return MORE_CHOICES, used
    result = found[count]
    begin, end = joined_path(passes, split_query, split_target, not height, costs.gap_open, costs.gap_extend, codes,
                             row_codes, outwards, steps, result)
    if begin == end:
        return NOTHING, used
    if used + end - begin > len(paths):
        return MORE_RUNS, used
    result[ANCHOR_QUERY], result[ANCHOR_TARGET] = hsp[ANCHOR_QUERY], hsp[ANCHOR_TARGET]
    i = PADDING + query.offsets[number] + result[QUERY_START]
    j = PADDING + target.offsets[place] + result[TARGET_START]
    identities = positives = mismatches = opens = gapped = 0
    operation = run = 0
    for step in range(begin, end):
        if steps[step] == BOTH:
            equal = real[i] == target.residues[0, j]
            now = MATCH if equal else MISMATCH
            identities += equal
            mismatches += not equal
            positives += equal or similar[real[i], target.residues[0, j]] > 0
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
    path_offsets[count + 1] = used
    return DONE, used


@kernel
def _trace_pairs(query, real, target, pairs, bounds, hsps, costs, similar, space, choices, saved, made):
    """Trace the HSPs of every pair; returns (DONE or what is missing, number of alignments).

    hsps: i8[n, 8] with anchors, best first within a pair (``bounds``). The others are as for ``trace``.
    """
    count = used = NONE
    made.path_offsets[0] = 0
    for pair in range(len(pairs)):
        number, place = pairs[pair]
        kept = NONE
        for row in range(bounds[pair], bounds[pair + 1]):
            hsp = hsps[row]
            if contained(saved, kept, hsp[SCORE], hsp[QUERY_START], hsp[QUERY_END], hsp[TARGET_START],
                         hsp[TARGET_END]):
                continue
            state, used = trace(query, real, target.residues, target, number, place, hsp, 0, 0, costs, None,
                                similar, space, choices, made, count, used)
            if state == NOTHING:
                continue
            if state != DONE:
                return state, count
            result = made.found[count]
            result[PAIR] = pair
            kept = save(saved, kept, result)
            count += 1
    return DONE, count


@kernel
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


def first_choices(height: int, width: int) -> int:
    """Room for choices to begin with: no more than the whole rectangle takes, four sets of 64 lanes a step."""
    return min(FIRST_CHOICES, (height + 1) * (width // 16 + 8))


def hsps_of_records(records: Records) -> np.ndarray:
    """i8[n, 8]: rows of preliminary alignments as kernels take them."""
    hsps = np.zeros((len(records), 8), np.int64)
    for column, name in ((SCORE, "score"), (QUERY_START, "query_start"), (QUERY_END, "query_end"),
                         (TARGET_START, "target_start"), (TARGET_END, "target_end"),
                         (ANCHOR_QUERY, "anchor_query"), (ANCHOR_TARGET, "anchor_target")):
        hsps[:, column] = records.data[name]
    return hsps


Attempt = Callable[[Choices, Made], tuple[int, int]]
"""Kernels for a stretch of pairs: of room, (``DONE`` or what is missing, alignments made)."""


def traced_pairs(context: Context, records: Records, bounds: np.ndarray, places: np.ndarray,
                 begin: Callable[[int, int, np.ndarray, np.ndarray], Attempt],
                 stay: Callable[[Made, int], np.ndarray]) -> Alignments:
    """What kernels make of the preliminary HSPs of all pairs, by threads; in more room where it was too little.

    Args:
        bounds: i8[p + 1], where pairs begin in ``records``.
        places: i8[p, 2], places of query and target in their batches.
        begin: of the first pair of a stretch, that behind its last, their HSPs (``hsps_of_records``) and bounds.
        stay: of what was made and how many, the numbers of those that stay, by pair, best first.
    """
    hsps = hsps_of_records(records)
    height, width = (int(batch.lengths.max(initial=0)) for batch in (context.queries, context.targets))

    def part(groups: tuple[int, int]) -> tuple[np.ndarray, np.ndarray, np.ndarray, Ragged]:
        """HSPs that stay of some pairs, in order, their counts, how they were adjusted, and paths."""
        first, last = groups
        mine = hsps[bounds[first] : bounds[last]]
        attempt = begin(first, last, mine, bounds[first : last + 1] - bounds[first])
        outwards, steps = np.empty((2, height + width + 1), np.uint8)
        row_codes = np.empty((2, height + 1), np.int64)
        room, most = first_choices(height, width), len(mine)
        runs = FIRST_RUNS * int((mine[:, QUERY_END] - mine[:, QUERY_START]).sum())
        while True:
            made = Made(np.empty((most, 8), np.int64), np.empty((most, len(PathCounts._fields)), np.int32),
                        np.empty(most + 1, np.int64), np.empty(runs, np.uint32), np.zeros(most, np.bool_),
                        np.zeros(most, np.int8))
            state, count = attempt(Choices(np.empty((2, room), np.uint64), row_codes, outwards, steps), made)
            if state == DONE:
                break
            if state == MORE_CHOICES:
                room *= 4
            else:
                runs, most = 4 * runs, 4 * most
        kept = stay(made, count)
        made.found[:count, PAIR] += first
        context.advance(len(mine), len(records))
        paths = Ragged(made.path_offsets[: count + 1], made.paths).take(kept)
        return made.found[kept], made.counts[kept], made.ways[kept], paths

    parts = run_tasks(context.threads, part, group_parts(bounds, context.threads, len(records) / _WORTH_A_PART))
    if not parts:
        return Alignments.empty([ADJUSTMENT])
    rows, counts, ways, paths = (list(column) for column in zip(*parts, strict=True))
    counted = np.concatenate(counts)
    columns = {name: counted[:, place] for place, name in enumerate(PathCounts._fields)}
    return alignments_of_rows(context, np.concatenate(rows), places).replace(
        [ADJUSTMENT], **columns, path=Ragged.concat(paths), adjustment=np.concatenate(ways))


def places_of_pairs(context: Context, records: Records) -> tuple[np.ndarray, np.ndarray]:
    """Where pairs begin in ``records`` (i8[p + 1]), and places of their query and target (i8[p, 2])."""
    bounds = group_starts(records.query, records.target)
    firsts = bounds[:-1]
    return bounds, np.stack([context.queries.locate(records.query[firsts]),
                             context.targets.locate(records.target[firsts])], axis=1)


class FinalTracebackCpu(FinalTraceback):
    __doc__ = FinalTraceback.__doc__
    backend = "cpu"

    def footprint(self, shape: Shape) -> Footprint:
        least = extension_footprint(shape).host
        choices = first_choices(shape.longest_query, shape.longest_target)
        return Footprint(host=least + 2 * 8 * choices * shape.threads)

    def run(self, context: Context, records: Records) -> Alignments:
        """Alignments by query and target, within a pair in ``score_order``."""
        scoring, queries, targets = context.scoring, context.queries, context.targets
        bounds, places = places_of_pairs(context, records)
        height, width = (int(batch.lengths.max(initial=0)) for batch in (queries, targets))
        cells = xdrop_cpu.cells(scoring.matrix, scoring.gap_open, scoring.gap_extend, scoring.x_drop_final)
        costs = xdrop_cpu.Costs.of(scoring.matrix, scoring.gap_open, scoring.gap_extend, scoring.x_drop_final)
        similar = np.array(similarity(scoring.matrix), np.int32)
        asked, hit, pairs = packed(places)
        query = xdrop_cpu.both_ways(read_as_query(queries.searched()), queries.offsets, asked)
        real = xdrop_cpu.both_ways(queries.residues, queries.offsets, asked).residues[RIGHT]
        target = xdrop_cpu.both_ways(targets.residues, targets.offsets, hit)

        def begin(first: int, last: int, mine: np.ndarray, starts: np.ndarray) -> Attempt:
            space = xdrop_cpu.workspace(height, width, cells)
            saved = np.empty((int(np.diff(starts).max()) + 1, 8), np.int64)
            return lambda choices, made: _trace_pairs(query, real, target, pairs[first:last], starts, mine, costs,
                                                      similar, space, choices, saved, made)

        def stay(made: Made, count: int) -> np.ndarray:
            kept = in_report_order(made.found[:count])
            most = int(np.bincount(made.found[:count, PAIR]).max(initial=0))
            return kept[_uncontained(made.found, kept, np.empty((most + 1, 8), np.int64))]

        return traced_pairs(context, records, bounds, places, begin, stay)
