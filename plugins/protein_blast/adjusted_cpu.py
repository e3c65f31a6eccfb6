"""``adjusted-traceback`` on the CPU: targets masked first, then all pairs that a thread takes up in one kernel."""


import numpy as np
from seqloom.core.classes import NamedTuple
from seqloom.core.context import Context
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
)
from seqloom.plugins.common.grouping import group_parts, group_starts
from seqloom.plugins.common.order_cpu import FALLING, RISING, order_in_groups
from seqloom.plugins.common.seg_cpu import mask_low_complexity
from seqloom.plugins.common.xdrop_cpu import PADDING, RIGHT, Costs, set_fine_tables
from seqloom.plugins.protein_blast.adjusted_reference import (
    FINE_SCORE,
    LEAST_SPAN,
    TARGET_MASK,
    AdjustedTraceback,
    FineCosts,
    scored_residues,
    significant_scores,
)
from seqloom.plugins.protein_blast.composition import NO_SCORES, SCALE, Adjuster, Composition
from seqloom.plugins.protein_blast.composition_cpu import CODES, Room, Rules, adjusted, composition
from seqloom.plugins.protein_blast.frequencies_cpu import SIZE
from seqloom.plugins.protein_blast.gapped_cpu import (
    NONE,
    extension_footprint,
    packed,
)
from seqloom.plugins.protein_blast.near_identity_cpu import nearly_identical
from seqloom.plugins.protein_blast.optimum import MOST_TRIES
from seqloom.plugins.protein_blast.optimum_cpu import NEVER, best_cell
from seqloom.plugins.protein_blast.scoring import read_as_query
from seqloom.plugins.protein_blast.traceback_cpu import (
    DONE,
    MORE_RUNS,
    NOTHING,
    Attempt,
    Choices,
    Made,
    first_choices,
    places_of_pairs,
    trace,
    traced_pairs,
)
from seqloom.plugins.protein_blast.traceback_reference import similarity

AT_ONCE = 64
"""Pairs whose matrices are made together."""


class Pairs(NamedTuple):
    """What the pairs of a unit are made of.

    Attributes:
        query, target: ``BothWays``, residues as they score; of targets as they are.
        words, real: the queries' residues as searched and as they are, forwards.
        masked: the targets' residues without low complexity, both ways.
        biased: bool[t], whether that makes a difference.
        shares, counted: f8[q, 20], i8[q], compositions of the queries.
    """

    query: xdrop_cpu.BothWays
    target: xdrop_cpu.BothWays
    words: np.ndarray
    real: np.ndarray
    masked: np.ndarray
    biased: np.ndarray
    shares: np.ndarray
    counted: np.ndarray


class Adjusting(NamedTuple):
    """Rules, and pairs to which they are applied together: room for ``AT_ONCE`` of them, and one more.

    Attributes:
        shares, counted, lengths, matrices, ways: of pairs, see ``adjusted``.
        alike: bool[n], whether pairs are nearly identical along their first HSPs.
        lowers, uppers: tables of one matrix: the lowest eight bits and those above.
    """

    rules: Rules
    room: Room
    shares: np.ndarray
    counted: np.ndarray
    lengths: np.ndarray
    matrices: np.ndarray
    ways: np.ndarray
    alike: np.ndarray
    lowers: np.ndarray
    uppers: np.ndarray

    @classmethod
    def of(cls, rules: Rules, lowers: np.ndarray, uppers: np.ndarray) -> "Adjusting":
        size = AT_ONCE + 1
        return cls(rules, Room.of(rules, AT_ONCE), np.empty((size, 2, SIZE)), np.empty((size, 2), np.int64),
                   np.empty((size, 2), np.int64), np.empty((size, CODES, CODES), np.int32), np.empty(size, np.int64),
                   np.empty(size, np.bool_), lowers, uppers)


class Limits(NamedTuple):
    """See ``FineCosts``."""

    contained: float
    identical: float


@kernel
def _seems_identical(hsp, query_length, limits):
    query_span, target_span = hsp[QUERY_END] - hsp[QUERY_START], hsp[TARGET_END] - hsp[TARGET_START]
    if target_span + 1 < min(query_length, LEAST_SPAN):
        return False
    return SCALE * hsp[SCORE] / min(query_span, target_span) >= limits.identical


@kernel
def _is_identical(pairs, number, place, hsp):
    """Whether a pair is nearly identical along its first HSP."""
    first, last = PADDING + pairs.query.offsets[number] + hsp[QUERY_START], PADDING + pairs.query.offsets[number]
    last += hsp[QUERY_END]
    begin = PADDING + pairs.target.offsets[place]
    return nearly_identical(pairs.query.residues[RIGHT, first:last], pairs.words[first:last],
                            pairs.target.residues[RIGHT, begin + hsp[TARGET_START] : begin + hsp[TARGET_END]])


@kernel
def _compose(pairs, number, place, seen, adjusting, slot):
    """Make the compositions of a pair known."""
    shares, counted, lengths = adjusting.shares, adjusting.counted, adjusting.lengths
    begin, end = pairs.target.offsets[place], pairs.target.offsets[place + 1]
    shares[slot, 0, :] = pairs.shares[number]
    counted[slot, 0], counted[slot, 1] = pairs.counted[number], composition(
        seen[RIGHT], PADDING + begin, PADDING + end, shares[slot, 1])
    lengths[slot, 0], lengths[slot, 1] = pairs.query.offsets[number + 1] - pairs.query.offsets[number], end - begin


@kernel
def _adjust(adjusting, first, last):
    """Make the matrices of pairs that are known, and how they are made."""
    adjusted(adjusting.rules, adjusting.room, adjusting.shares[first:last], adjusting.counted[first:last],
             adjusting.lengths[first:last], adjusting.matrices[first:last], adjusting.ways[first:last])


@kernel
def _adjust_by_first(pairs, places, bounds, hsps, limits, adjusting, first):
    """As `_adjust`, of up to ``AT_ONCE`` pairs from the pair ``first`` on, as their first HSPs have the targets seen.
    """
    count = min(len(places) - first, AT_ONCE)
    for slot in range(count):
        number, place = places[first + slot]
        hsp = hsps[bounds[first + slot]]
        query_length = pairs.query.offsets[number + 1] - pairs.query.offsets[number]
        alike = _seems_identical(hsp, query_length, limits) and _is_identical(pairs, number, place, hsp)
        adjusting.alike[slot] = alike
        _compose(pairs, number, place, pairs.target.residues if alike else pairs.masked, adjusting, slot)
    _adjust(adjusting, 0, count)


@kernel
def _held(found, first, count, hsp, dropped, limits):
    """Whether both ends of a preliminary HSP lie in the box of an alignment that scores two bits more."""
    least = SCALE * hsp[SCORE] + limits.contained
    for row in range(first, count):
        other = found[row]
        if (not dropped[row] and other[QUERY_START] <= hsp[QUERY_START] and hsp[QUERY_END] <= other[QUERY_END]
                and other[TARGET_START] <= hsp[TARGET_START] and hsp[TARGET_END] <= other[TARGET_END]
                and least <= other[SCORE]):
            return True
    return False


@kernel
def _shares_end(one, other):
    return ((one[QUERY_START] == other[QUERY_START] and one[TARGET_START] == other[TARGET_START])
            or (one[QUERY_END] == other[QUERY_END] and one[TARGET_END] == other[TARGET_END]))


@kernel
def _ends_on(outer, inner):
    row, column = inner[QUERY_START], inner[TARGET_START]
    for of_row, of_column in ((outer[QUERY_START], outer[TARGET_START]), (outer[QUERY_END], outer[TARGET_END])):
        if (outer[QUERY_START] <= row <= outer[QUERY_END] and outer[TARGET_START] <= column <= outer[TARGET_END]
                and row - column == of_row - of_column):
            return True
        row, column = inner[QUERY_END], inner[TARGET_END]
    return False


@kernel
def _keep_ends_distinct(found, first, new, dropped, one_matrix):
    """Drop row ``new`` if an earlier one that it doubles is as good, else those that have an end in common.

    See the reference for what is a double where not ``one_matrix`` made the alignments of a pair.
    """
    dropped[new] = False
    for row in range(first, new):
        if dropped[row] or found[new, SCORE] > found[row, SCORE]:
            continue
        if _shares_end(found[row], found[new]) if one_matrix else _ends_on(found[row], found[new]):
            dropped[new] = True
            return
    for row in range(first, new):
        dropped[row] |= _shares_end(found[row], found[new])


@kernel
def _redo_pairs(pairs, places, bounds, hsps, costs, limits, adjusting, similar, space, choices, made):
    """Make the alignments of every pair anew; returns (DONE or what is missing, number of alignments).

    places: i8[p, 2], numbers of query and target. hsps: i8[n, 8] with anchors, best first within a pair (``bounds``).
    """
    count = used = NONE
    made.path_offsets[0] = 0
    for pair in range(len(places)):
        number, place = places[pair]
        query_length = pairs.query.offsets[number + 1] - pairs.query.offsets[number]
        first, best, slot = count, hsps[bounds[pair]], pair % AT_ONCE
        if slot == 0:
            _adjust_by_first(pairs, places, bounds, hsps, limits, adjusting, pair)
        seen = pairs.target.residues
        may_be_biased, seems, seemed, way, adjustments = True, 0, -1, np.int64(NO_SCORES), 0
        for row in range(bounds[pair], bounds[pair + 1]):
            hsp = hsps[row]
            if may_be_biased:
                seems = 1 if _seems_identical(hsp, query_length, limits) else 0
                if seems != seemed:
                    seen = pairs.target.residues
                    if not (adjusting.alike[slot] if row == bounds[pair]
                            else seems and _is_identical(pairs, number, place, best)):
                        may_be_biased = pairs.biased[place]
                        if may_be_biased:
                            seen = pairs.masked
            changed, seemed = seems != seemed, seems
            if _held(made.found, first, count, hsp, made.dropped, limits):
                continue
            if changed:
                adjustments += 1
                if row > bounds[pair]:
                    slot = AT_ONCE
                    _compose(pairs, number, place, seen, adjusting, slot)
                    _adjust(adjusting, slot, slot + 1)
                way = adjusting.ways[slot]
                if way != NO_SCORES:
                    set_fine_tables(adjusting.matrices[slot], adjusting.lowers, adjusting.uppers)
            if way == NO_SCORES:
                continue
            state, used = trace(pairs.query, pairs.real, seen, pairs.target, number, place, hsp, 0, 0,
                                costs, adjusting.uppers, similar, space, choices, made, count, used)
            if state != DONE and state != NOTHING:
                return state, count
            if state == DONE and made.found[count, SCORE] > 0:
                made.found[count, PAIR], made.ways[count] = pair, way
                _keep_ends_distinct(made.found, first, count, made.dropped, adjustments == 1)
                count += 1
    return DONE, count


@kernel
def _optimal_for_pairs(pairs, places, bounds, hsps, costs, limits, adjusts, least, adjusting, similar, space, choices,
                       made, boxes, turned, cells, shut):
    """As ``_redo_pairs``, by Smith & Waterman's algorithm; by the matrix that is there where none is to be adjusted.

    least: f8[q], see ``optimal_hsps``. boxes, turned: room, i8[n, 4] each. cells, shut: room, see ``best_cell``.
    """
    count = used = NONE
    made.path_offsets[0] = 0
    matrix, gap_open, gap_extend = adjusting.matrices[0], np.int64(costs.gap_open), np.int64(costs.gap_extend)
    hsp = np.zeros(8, np.int64)
    for pair in range(len(places)):
        number, place = places[pair]
        query_length = pairs.query.offsets[number + 1] - pairs.query.offsets[number]
        target_length = pairs.target.offsets[place + 1] - pairs.target.offsets[place]
        seen, way = pairs.target.residues, np.int64(NO_SCORES)
        if adjusts:
            slot = pair % AT_ONCE
            if slot == 0:
                _adjust_by_first(pairs, places, bounds, hsps, limits, adjusting, pair)
            if not adjusting.alike[slot]:
                seen = pairs.masked
            matrix, way = adjusting.matrices[slot], adjusting.ways[slot]
            if way == NO_SCORES:
                continue
            set_fine_tables(matrix, adjusting.lowers, adjusting.uppers)
        rows, columns = pairs.query.residues[RIGHT], seen[RIGHT]
        row, column = PADDING + pairs.query.offsets[number], PADDING + pairs.target.offsets[place]
        shut_boxes = NONE
        while True:
            score, query_last, target_last = best_cell(rows, row, 1, query_length, columns, column, 1, target_length,
                                                       matrix, gap_open, gap_extend, boxes, shut_boxes, NEVER, cells,
                                                       shut)
            if score <= least[number]:
                break
            if count == len(made.found):
                return MORE_RUNS, count
            for box in range(shut_boxes):
                turned[box, 0], turned[box, 1] = query_last + 1 - boxes[box, 1], query_last + 1 - boxes[box, 0]
                turned[box, 2], turned[box, 3] = target_last - boxes[box, 3], target_last - boxes[box, 2]
            _, above, before = best_cell(rows, row + query_last, -1, query_last + 1, columns, column + target_last, -1,
                                         target_last + 1, matrix, gap_open, gap_extend, turned, shut_boxes, score,
                                         cells, shut)
            hsp[ANCHOR_QUERY], hsp[ANCHOR_TARGET] = query_last - above - 1, target_last - before - 1
            after = used
            for turn in range(MOST_TRIES):
                tried = Costs(costs.matrix, costs.tables, costs.highest, costs.gap_open, costs.gap_extend,
                              costs.x_drop << turn)
                state, after = trace(pairs.query, pairs.real, seen, pairs.target, number, place, hsp, above + 1,
                                     before + 1, tried, adjusting.uppers, similar, space, choices, made, count, used)
                if state != DONE:
                    return state, count
                if made.found[count, SCORE] >= score:
                    break
            used, result = after, made.found[count]
            result[PAIR], made.ways[count] = pair, way
            count += 1
            if bounds[pair + 1] - bounds[pair] < 2:
                break
            boxes[shut_boxes, 0], boxes[shut_boxes, 1] = result[QUERY_START], result[QUERY_END]
            boxes[shut_boxes, 2], boxes[shut_boxes, 3] = result[TARGET_START], result[TARGET_END]
            shut_boxes += 1
    return DONE, count


@kernel
def _uncontained(found, order):
    """bool[m]: of the rows of ``found`` in this order, grouped by pair, those that none before that stays encloses."""
    stays = np.ones(len(order), np.bool_)
    first = 0
    for row in range(len(order)):
        hsp = found[order[row]]
        if row and hsp[PAIR] != found[order[row - 1], PAIR]:
            first = row
        for earlier in range(first, row):
            other = found[order[earlier]]
            if (stays[earlier] and hsp[SCORE] <= other[SCORE] and other[QUERY_START] <= hsp[QUERY_START]
                    and hsp[QUERY_END] <= other[QUERY_END] and other[TARGET_START] <= hsp[TARGET_START]
                    and hsp[TARGET_END] <= other[TARGET_END]):
                stays[row] = False
                break
    return stays


class AdjustedTracebackCpu(AdjustedTraceback):
    __doc__ = AdjustedTraceback.__doc__
    backend = "cpu"

    def footprint(self, shape: Shape) -> Footprint:
        least = extension_footprint(shape).host
        choices = first_choices(shape.longest_query, shape.longest_target)
        packed_again = 4 * (shape.query_residues + shape.target_residues)
        cells = 16 * shape.threads * (shape.longest_query + 2 * shape.longest_target)
        return Footprint(host=least + packed_again + cells + 2 * 8 * choices * shape.threads)

    def run(self, context: Context, records: Records) -> Alignments:
        """Alignments by query and target, within a pair in ``score_order``; their scores have fractions."""
        scoring, options = context.scoring, context.options
        bounds, places = places_of_pairs(context, records)
        if not len(places):
            return Alignments.empty([FINE_SCORE, *self.columns])
        height, width = (int(batch.lengths.max(initial=0)) for batch in (context.queries, context.targets))
        mode, optimal = options.composition_mode(), options.use_sw_tback
        rules = Rules.of(Adjuster.of(options.matrix, mode))
        fine = FineCosts.of(scoring, options)
        limits = Limits(fine.contained, fine.identical)
        farthest = fine.x_drop << (MOST_TRIES - 1 if optimal else 0)
        small = xdrop_cpu.fits_words(xdrop_cpu.FINE_HIGHEST, fine.gap_open, fine.gap_extend, farthest)
        similar = np.array(similarity(scoring.matrix), np.int32)
        asked, hit, packed_places = packed(places)
        pairs = self._pairs(context, asked, hit)
        least = np.array(significant_scores(context, fine.scale))[asked] if optimal else np.empty(0)

        def begin(first: int, last: int, mine: np.ndarray, starts: np.ndarray) -> Attempt:
            space = xdrop_cpu.workspace(height, width, np.int16 if small else np.int32)
            costs, uppers = xdrop_cpu.fine_costs(fine.gap_open, fine.gap_extend, fine.x_drop)
            adjusting = Adjusting.of(rules, costs.tables, uppers)
            what = pairs, packed_places[first:last], starts, mine, costs, limits
            if not optimal:
                return lambda choices, made: _redo_pairs(*what, adjusting, similar, space, choices, made)
            if not mode:
                adjusting.matrices[0] = scoring.matrix
                set_fine_tables(adjusting.matrices[0], adjusting.lowers, adjusting.uppers)
            cells, shut = np.empty((2, width), np.int64), np.empty(width, np.bool_)

            def attempt(choices: Choices, made: Made) -> tuple[int, int]:
                boxes = np.empty((2, len(made.found), 4), np.int64)
                return _optimal_for_pairs(*what, mode > 0, least, adjusting, similar, space, choices, made, boxes[0],
                                          boxes[1], cells, shut)

            return attempt

        def stay(made: Made, count: int) -> np.ndarray:
            kept = np.flatnonzero(~made.dropped[:count])
            rows = made.found[kept]
            kept = kept[order_in_groups(rows, group_starts(rows[:, PAIR]), [
                (SCORE, FALLING), (TARGET_START, RISING), (TARGET_END, FALLING), (QUERY_START, RISING),
                (QUERY_END, FALLING)])]
            return kept[_uncontained(made.found, kept)]

        alignments = traced_pairs(context, records, bounds, places, begin, stay)
        return alignments.replace([FINE_SCORE], score=alignments.score / fine.scale)

    def _pairs(self, context: Context, asked: np.ndarray, hit: np.ndarray) -> Pairs:
        """The sequences that take part, packed; low complexity of the targets masked."""
        queries, targets = context.queries, context.targets
        searched = read_as_query(queries.searched())
        compositions = [Composition.of(searched[queries.offsets[place] : queries.offsets[place + 1]])
                        for place in asked.tolist()]
        target = xdrop_cpu.both_ways(targets.residues, targets.offsets, hit)
        plain = target.residues[RIGHT, PADDING:-PADDING]
        masked, biased = plain.copy(), np.empty(len(hit), np.bool_)

        def mask(part: tuple[int, int]) -> None:
            mask_low_complexity(plain, target.offsets, *part, TARGET_MASK, masked, biased)

        run_tasks(context.threads, mask, group_parts(target.offsets, context.threads))
        return Pairs(
            xdrop_cpu.both_ways(scored_residues(searched), queries.offsets, asked), target,
            xdrop_cpu.both_ways(searched, queries.offsets, asked).residues[RIGHT],
            xdrop_cpu.both_ways(queries.residues, queries.offsets, asked).residues[RIGHT],
            xdrop_cpu.both_ways(masked, target.offsets, np.arange(len(hit))).residues, biased,
            np.array([one.frequencies for one in compositions]), np.array([one.counted for one in compositions]))
