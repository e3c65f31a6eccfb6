"""``nucleotide-ungapped`` on the CPU: the reference's rules, diagonal by diagonal, compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from seqloom.core.alphabet import NUCLEOTIDE
from seqloom.core.classes import NamedTuple
from seqloom.core.context import Context
from seqloom.core.engine.threads import run_tasks
from seqloom.core.kernels.jit import kernel
from seqloom.core.records import Records, Seeds
from seqloom.core.sequences import SequenceBatch
from seqloom.core.stages import Footprint, Shape
from seqloom.plugins.common.grouping import group_parts, group_starts
from seqloom.plugins.common.nucleotide_statistics import SENTINEL
from seqloom.plugins.common.order_cpu import RISING, order_in_groups, sort_groups
from seqloom.plugins.nucleotide_blast.greedy_cpu import sequence
from seqloom.plugins.nucleotide_blast.index_reference import WIDEST_SMALL, WORDS
from seqloom.plugins.nucleotide_blast.packed_cpu import base_at, eights, packed_bases
from seqloom.plugins.nucleotide_blast.pieces import TargetPieces, pieces_of
from seqloom.plugins.nucleotide_blast.sort_cpu import SortedSeeds
from seqloom.plugins.nucleotide_blast.strands_cpu import lay_out
from seqloom.plugins.nucleotide_blast.ungapped_reference import (
    UngappedExtension,
    first_template,
    group_scores,
    pair_reach,
)
from seqloom.plugins.nucleotide_blast.ungapped_scanned_cpu import (
    AT_ONCE,
    DIAGONAL_OF,
    PLACE_OF,
    cells_of_diagonals,
    extend_scanned,
)
from seqloom.plugins.nucleotide_blast.ungapped_segment_cpu import (
    COLUMNS,
    CUTOFF,
    group_bytes,
    groups_of,
    segment,
    write_segment,
)

DIAGONAL, TARGET, QUERY, LENGTH, SHIFT, MINUS_STRAND, ORIGIN, BEHIND = range(8)
"""Columns of a hit on its way: places count in both strands of the query and in the chunk. The last two are those of
``ungapped_reference.Pairing.around``."""
EXPLORED, SAVED, WAITING = range(3)
"""What is known of a diagonal: see ``ungapped_reference.Diagonal``."""


@kernel
def _precedes(hits, one, other):
    """Whether a hit comes before another by diagonal and place."""
    if hits[one, DIAGONAL] != hits[other, DIAGONAL]:
        return hits[one, DIAGONAL] < hits[other, DIAGONAL]
    return hits[one, TARGET] < hits[other, TARGET]


@kernel
def _settled(hits, first, last, order):
    """Sort hits that nearly are in order; those that are equal stay as they are."""
    for row in range(first, last):
        place = row
        while place > first and _precedes(hits, row, order[place - 1]):
            order[place] = order[place - 1]
            place -= 1
        order[place] = row


@kernel
def _on_diagonals(hits, order, merged):
    """Order of hits by diagonal and place over both strands, whose own hits nearly are in that order."""
    count = len(hits)
    middle = 0
    while middle < count and not hits[middle, MINUS_STRAND]:
        middle += 1
    _settled(hits, 0, middle, order)
    _settled(hits, middle, count, order)
    left, right = 0, middle
    for at in range(count):
        if right == count or (left < middle and not _precedes(hits, order[right], order[left])):
            merged[at] = order[left]
            left += 1
        else:
            merged[at] = order[right]
            right += 1


@kernel
def _goes_on(indexed, table_width, strands, bits, low, hit):
    """``TableWords.goes_on``; nothing where words have no width."""
    if table_width == 0 or table_width >= hit[LENGTH]:
        return np.int64(0), False
    size = (len(strands) - 2) // 2
    query, target = hit[QUERY] + hit[LENGTH], hit[TARGET] + hit[LENGTH]
    room = min((size if hit[QUERY] < size else 2 * size + 1) - query, hit[BEHIND] - target)
    most, count = min(room, hit[LENGTH]), np.int64(0)
    while count + table_width <= most and _has_word(indexed, table_width, strands, bits, query + count,
                                                    low + target + count):
        count += table_width
    while count < most:
        back = count - table_width + 1
        if not _has_word(indexed, table_width, strands, bits, query + back, low + target + back):
            return count, False
        count += 1
    return count, room >= hit[LENGTH]


@kernel
def _has_word(indexed, width, strands, bits, query, target):
    """Whether a table word of the query begins there and is that of the target."""
    same = 0
    while same < width and strands[query + same] == base_at(bits, target + same):
        same += 1
    return indexed[query] and same == width


@kernel
def _extend_group(rules, query, groups, bits, low, width, hits, order, limits, window, indexed, table_width, numbers,
                  table, count):
    """Segments of one query and chunk, written to i4 ``table`` from row ``count`` on; returns the number of rows.

    limits: i8[2, 3] by strand: X-drop, reduced cutoff and cutoff. indexed, table_width: of the query's table words.
    """
    size = (len(query) - 2) // 2
    diagonal, explored, saved, first = np.int64(0), np.int64(0), False, True
    for at in range(len(order)):
        hit = hits[order[at]]
        if first or hit[DIAGONAL] != diagonal:
            diagonal, explored, saved, first = hit[DIAGONAL], np.int64(-window), False, False
        start = hit[TARGET] - hit[SHIFT]
        if start < explored:
            continue
        end = hit[TARGET] + hit[LENGTH]
        if window and (saved or start + hit[LENGTH] > explored + window):
            more, double = _goes_on(indexed, table_width, query, bits, low, hit)
            end += more
            if not double:
                explored, saved = end, False
                continue
        limit = limits[hit[MINUS_STRAND]]
        found = segment(rules, query, groups, bits, low, width, hit[QUERY], hit[TARGET], hit[LENGTH], end, limit)
        saved = found[3] >= limit[CUTOFF]
        explored = found[1] + found[2] if saved else end
        if saved:
            write_segment(table[count], size, numbers, hit[MINUS_STRAND] != 0, found, hit[QUERY], hit[TARGET])
            count += 1
    return count


@kernel
def _has_company(hits, order, firsts, states, hit, own, end, window, reach):
    """Whether a hit that waits on a diagonal nearby pairs with this one, of diagonal ``own``, which ends at ``end``."""
    first, last = hit[TARGET] - hit[SHIFT] + hit[LENGTH] - window, end - 2 * hit[LENGTH]
    for step in (1, -1):
        other = own + step
        while 0 <= other < len(firsts):
            apart = hits[order[firsts[other]], DIAGONAL] - hit[DIAGONAL]
            if abs(apart) > reach:
                break
            explored, waiting = states[other, EXPLORED], states[other, WAITING]
            if waiting and explored - max(apart, 0) >= first and explored - waiting - min(apart, 0) <= last:
                return True
            other += step
    return False


@kernel
def _extend_nearby(rules, query, groups, bits, low, width, hits, order, limits, window, reach, template, indexed,
                   table_width, numbers, table, count):
    """As ``_extend_group``, where the first of two hits may lie up to ``reach`` diagonals away: in the scan's order.

    template: of ``first_template``.
    """
    size, most = (len(query) - 2) // 2, len(order)
    own_of, firsts, diagonals = np.empty(most, np.int64), np.empty(most, np.int64), 0
    for at in range(most):
        if at == 0 or hits[order[at], DIAGONAL] != hits[order[at - 1], DIAGONAL]:
            firsts[diagonals] = at
            diagonals += 1
        own_of[at] = diagonals - 1
    firsts = firsts[:diagonals]
    states = np.zeros((diagonals, 3), np.int64)
    states[:, EXPLORED] = -window
    scanned = np.empty((most, 2), np.int64)
    stride = hits[0, LENGTH] - table_width + 1 if 0 < table_width < hits[0, LENGTH] else np.int64(1)
    rising = 0 < table_width <= WIDEST_SMALL
    for at in range(most):
        hit = hits[order[at]]
        start = hit[TARGET] - hit[SHIFT]
        place = start + (hit[ORIGIN] - start) % stride
        opposite, second = place - hit[DIAGONAL], np.int64(0)
        for counts in template:
            if query[hit[QUERY] + counts] != base_at(bits, low + hit[TARGET] + counts):
                second = np.int64(1)
        scanned[at, 0], scanned[at, 1] = 2 * place + second, opposite if rising else -opposite
    in_turn, spare, keys, signs = np.arange(most), np.empty(most, np.int64), np.arange(2), np.ones(2, np.int64)
    sort_groups(scanned, np.arange(0, most + 1, most), keys, signs, in_turn, spare)
    segments, kept = np.empty((most, 4), np.int64), np.zeros(most, np.bool_)
    for turn in range(most):
        at = in_turn[turn]
        hit, own = hits[order[at]], own_of[at]
        state = states[own]
        start, end = hit[TARGET] - hit[SHIFT], hit[TARGET] + hit[LENGTH]
        if start < state[EXPLORED]:
            continue
        alone = nearby = False
        if state[SAVED] or start + hit[LENGTH] > state[EXPLORED] + window:
            more, double = _goes_on(indexed, table_width, query, bits, low, hit)
            end += more
            nearby = not double and _has_company(hits, order, firsts, states, hit, own, end, window, reach)
            alone = not double and not nearby
        if not alone:
            limit = limits[hit[MINUS_STRAND]]
            found = segment(rules, query, groups, bits, low, width, hit[QUERY], hit[TARGET], hit[LENGTH], end, limit)
            if nearby or found[3] >= limit[CUTOFF]:
                kept[at] = True
                for part in range(4):
                    segments[at, part] = found[part]
                end = found[1] + found[2]
        state[EXPLORED], state[SAVED], state[WAITING] = end, kept[at], 0 if kept[at] else end - start
    for at in range(most):
        if kept[at]:
            hit = hits[order[at]]
            write_segment(table[count], size, numbers, hit[MINUS_STRAND] != 0, segments[at], hit[QUERY], hit[TARGET])
            count += 1
    return count


@kernel
def _as_hits(frame, query_pos, target_pos, length, shift, size, chunk, span, opens, hits):
    """Fill i8[n, 8] ``hits`` of one query and chunk from columns of records. span: the chunk's; opens: see
    ``_extend_groups``."""
    for row in range(len(frame)):
        minus = frame[row] < 0
        query = size - query_pos[row] - length[row] + size + 1 if minus else np.int64(query_pos[row])
        hits[row, QUERY], hits[row, TARGET] = query, target_pos[row] - chunk
        hits[row, DIAGONAL] = target_pos[row] - chunk - query
        hits[row, LENGTH], hits[row, SHIFT], hits[row, MINUS_STRAND] = length[row], shift[row], minus
        hits[row, ORIGIN], hits[row, BEHIND] = 0, span[1] - span[0]
        if len(opens):
            own = np.searchsorted(opens[:, 1], span[0] + hits[row, TARGET], "right")
            hits[row, ORIGIN], hits[row, BEHIND] = opens[own, 0] - span[0] - 1, opens[own, 1] - span[0]


@kernel
def _in_order(group, bounds, size, chunk, span, opens, frame, query_pos, target_pos, length, shift, room, order,
              merged):
    """Hits of a group of records, and their order by diagonal."""
    own, rows = slice(bounds[group], bounds[group + 1]), bounds[group + 1] - bounds[group]
    hits = room[:rows]
    _as_hits(frame[own], query_pos[own], target_pos[own], length[own], shift[own], size, chunk, span, opens, hits)
    _on_diagonals(hits, order[:rows], merged[:rows])
    return hits, merged[:rows]


@kernel
def _extend_groups(rules, strands, groups, offsets, bits, spans, opens, bounds, places, numbers, limits, window, _, __,
                   indexed, index_offsets, widths, frame, query_pos, target_pos, length, shift, table, room, order,
                   merged):
    """``_extend_group`` of every query and chunk; returns the number of segments.

    spans: i8[g, 2], first and last base of each chunk. opens: i8[s, 2], stretches of the volume in which words may lie;
    none where that is everywhere. places, numbers: i8[g] place of the query in the batch, i8[g, 3]
    its number, that of the target and the begin of the chunk. indexed, index_offsets, widths: see ``table_words``.
    room, order, merged: for the hits of any group.
    """
    count = 0
    for group in range(len(places)):
        place, low = places[group], spans[group, 0]
        strand = slice(offsets[place], offsets[place + 1])
        query, of_query = strands[strand], groups_of(groups, offsets, place)
        hits, in_order = _in_order(group, bounds, (len(query) - 2) // 2, numbers[group, 2], spans[group], opens, frame,
                                   query_pos, target_pos, length, shift, room, order, merged)
        count = _extend_group(rules, query, of_query, bits, low, spans[group, 1] - low, hits, in_order,
                              limits[place], window, indexed[index_offsets[place] : index_offsets[place + 1]],
                              np.int64(widths[place]), numbers[group], table, count)
    return count


@kernel
def _extend_groups_nearby(rules, strands, groups, offsets, bits, spans, opens, bounds, places, numbers, limits, window,
                          reach, template, indexed, index_offsets, widths, frame, query_pos, target_pos, length, shift,
                          table, room, order, merged):
    """``_extend_nearby`` of every query and chunk; otherwise as ``_extend_groups``."""
    count = 0
    for group in range(len(places)):
        place, low = places[group], spans[group, 0]
        strand = slice(offsets[place], offsets[place + 1])
        query, of_query = strands[strand], groups_of(groups, offsets, place)
        hits, in_order = _in_order(group, bounds, (len(query) - 2) // 2, numbers[group, 2], spans[group], opens, frame,
                                   query_pos, target_pos, length, shift, room, order, merged)
        count = _extend_nearby(rules, query, of_query, bits, low, spans[group, 1] - low, hits, in_order,
                               limits[place], window, reach, template,
                               indexed[index_offsets[place] : index_offsets[place + 1]], np.int64(widths[place]),
                               numbers[group], table, count)
    return count


def laid_out_strands(context: Context, residues: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Both strands of every query, each with a sentinel behind, and where they begin: u1[m], i8[k + 1].

    Not to be written to: all stages of a batch have the same, as long as there is an index of it.

    residues: of the queries; as they are searched by default.
    """
    queries = context.queries
    if residues is not None:
        return _strands_of(residues, queries.offsets)
    made: tuple[np.ndarray, np.ndarray] = kept_with_queries(
        context, "strands", lambda: _strands_of(queries.searched(), queries.offsets))
    return made


def kept_with_queries(context: Context, name: str, make: Callable[[], Any]) -> Any:
    """What ``make`` gives: made once for all units of a batch of queries, as long as there is an index of these."""
    for index in context.indexes.values():
        if index.side == "query":
            return index.kept(name, make)
    return make()


def _strands_of(residues: np.ndarray, offsets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    begins = 2 * offsets + 2 * np.arange(len(offsets))
    strands = np.full(begins[-1], SENTINEL, np.uint8)
    _lay_out(sequence(residues), offsets, NUCLEOTIDE.complement, begins, strands, sequence(strands).words)
    return strands, begins


@kernel
def _lay_out(codes, offsets, complement, begins, strands, words):
    for query in range(len(offsets) - 1):
        lay_out(codes, offsets[query], offsets[query + 1] - offsets[query], complement, begins[query], strands, words)


def grouped(context: Context) -> np.ndarray:
    """``group_bytes`` of the batch; the same for all its stages, as ``laid_out_strands``."""
    strands = laid_out_strands(context)
    for index in context.indexes.values():
        if index.side == "query":
            made: np.ndarray = index.kept("groups", lambda: group_bytes(*strands))
            return made
    return group_bytes(*strands)


def scores_of_groups(scoring: Any) -> np.ndarray:
    """i8[256]: ``group_scores``."""
    return np.array(group_scores(scoring.reward, scoring.penalty), np.int64)


def strand_limits(context: Context) -> np.ndarray:
    """i8[k, 2, 3]: X-drop, reduced cutoff and cutoff of both strands of every query."""
    limits: np.ndarray = context.scoring.of_queries(lambda of: [
        (strand.xdrop_ungapped, strand.reduced_cutoff, strand.ungapped_cutoff) for strand in (of.plus, of.minus)])
    return limits


def table_words(context: Context) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Where table words begin in both strands of all queries, bool; where each query begins, i8[k + 1]; their widths,
    i4[k]: 0 where a hit can't count as two."""
    index = context.indexes.get(WORDS) if context.options.window_size else None
    if index is None:
        count = len(context.queries)
        return np.empty(0, np.bool_), np.zeros(count + 1, np.int64), np.zeros(count, np.int32)
    return index["indexed"], index["strand_offsets"], index["width"]


class Extension(NamedTuple):
    """What all extensions of a unit share.

    Attributes:
        rules: i4[16, 16] and i8[256], scores of a pair of bases, and of a group of four (``scores_of_groups``).
        strands, begins: u1[m] and i8[k + 1], of ``laid_out_strands``. groups: u8, ``eights`` of ``grouped``.
        bits: u1, packed targets. first: the base of these at which the volume begins.
        limits: i8[k, 2, 3], of ``strand_limits``.
    """

    rules: tuple[np.ndarray, np.ndarray]
    strands: np.ndarray
    groups: np.ndarray
    begins: np.ndarray
    bits: np.ndarray
    first: int
    limits: np.ndarray
    targets: SequenceBatch
    pieces: TargetPieces

    def spans(self, numbers: np.ndarray) -> np.ndarray:
        """i8[g, 2]: first and last base of chunks in ``bits``.

        numbers: i8[g, 3], of query and target, and where the chunk begins.
        """
        at = self.targets.locate(numbers[:, 1])
        low = self.targets.offsets[at] + numbers[:, 2]
        return self.first + np.stack([low, self.pieces.ends(low)], axis=1)

    @property
    def opens(self) -> np.ndarray:
        """i8[s, 2]: stretches of ``bits`` in which words may lie; none where that is everywhere."""
        return self.first + self.pieces.opens if self.pieces.masked else np.empty((0, 2), np.int64)


_WORTH_A_PART = 1 << 15
"""Hits from which on another part is made of them."""
BYTES_PER_BASE = 8
"""Of the queries: the seeds of a sequence that is searched in one like it, at the strides of megablast."""


def _parts(bounds: np.ndarray, threads: int) -> list[tuple[int, int]]:
    """Groups of hits for each task."""
    return group_parts(bounds, threads, int(bounds[-1]) / _WORTH_A_PART)


def _shared_parts(bounds: np.ndarray, threads: int) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Groups of hits for each task, and its share of their diagonals (``extend_scanned``): where there are few large
    groups, one task has some of the diagonals of one of them."""
    parts, shared = _parts(bounds, threads), []
    bits = (-(-threads // max(1, len(parts))) - 1).bit_length()
    for first, last in parts:
        worth_it = last - first == 1 and bounds[last] - bounds[first] > _WORTH_A_PART << bits
        of_diagonals = bits if worth_it else 0
        shared += [((first, last), (own, of_diagonals)) for own in range(1 << of_diagonals)]
    return shared


class UngappedExtensionCpu(UngappedExtension):
    __doc__ = UngappedExtension.__doc__
    backend = "cpu"
    reads_residues = False

    def footprint(self, shape: Shape) -> Footprint:
        return Footprint(host=BYTES_PER_BASE * shape.query_residues)

    def run(self, context: Context, records: Records) -> Seeds:
        assert isinstance(records, Seeds)
        table = self._of_scanned(context, records)
        if table is None:
            table = self._of_sorted(context, records)
        context.count("hits", len(records))
        columns = {name: np.ascontiguousarray(table[:, place]) for place, name in enumerate(COLUMNS)}
        columns["query_frame"] = columns["query_frame"].astype(np.int8)
        columns["target_frame"] = np.ones(len(table), np.int8)
        return Seeds(columns, self.columns)

    def _of_scanned(self, context: Context, records: Seeds) -> np.ndarray | None:
        """Segments of hits as a scan found them, without a sort; None if they came another way, or are too few."""
        make, window = records.unmade, context.options.window_size
        if not isinstance(make, SortedSeeds) or not make.unsorted.follow or not len(records):
            return None
        if window and (table_words(context)[2].any()
                       or pair_reach(window, context.options.off_diagonal_range, make.unsorted.length)):
            return None
        hits, bounds, groups, chunks = make.unsorted.found if window else make.unsorted.kept
        if not len(hits):
            return np.empty((0, len(COLUMNS)), np.int32)
        places = groups[:, 0]
        sizes = cells_of_diagonals(2 * context.queries.lengths[places] + 1 + window, np.diff(bounds))
        extension = self._extension(context)
        numbers = np.column_stack([context.queries.ordinals[places], chunks[groups[:, 1]]]).astype(np.int64)
        spans, words = extension.spans(numbers), eights(extension.bits)

        def part(some: tuple[tuple[int, int], tuple[int, int]]) -> np.ndarray:
            (first, last), share = some
            own, starts = slice(first, last), bounds[first : last + 1]
            table = np.empty((int(starts[-1] - starts[0]), PLACE_OF + 1), np.int32)
            explored, keys = (np.empty(most, np.int32) for most in sizes[own].max(axis=0).tolist())
            count = extend_scanned(
                extension.rules, extension.strands, extension.groups, extension.begins, extension.bits, words,
                spans[own], hits, starts, places[own], numbers[own], extension.limits, window,
                make.unsorted.length, share, sizes[own], explored, keys, np.empty(AT_ONCE, np.int64), table)
            if not share[0]:
                context.advance(int(starts[-1] - starts[0]), len(hits))
            return table[:count].copy()

        table = np.concatenate(run_tasks(context.threads, part, _shared_parts(bounds, context.threads)))
        own = group_starts(table[:, 0], table[:, 1], table[:, 2])
        return table[order_in_groups(table, own, [(DIAGONAL_OF, RISING), (PLACE_OF, RISING)])]

    def _of_sorted(self, context: Context, records: Seeds) -> np.ndarray:
        data = records.data
        bounds = group_starts(records.query, records.target, data["chunk"])
        firsts = bounds[:-1]
        numbers = np.stack([records.query[firsts], records.target[firsts], data["chunk"][firsts]], axis=1)
        numbers = numbers.astype(np.int64)
        extension = self._extension(context)
        places, spans, opens = context.queries.locate(numbers[:, 0]), extension.spans(numbers), extension.opens
        words, window = table_words(context), context.options.window_size
        reach = pair_reach(window, context.options.off_diagonal_range, int(data["length"][0])) if len(records) else 0
        extend, template = _extend_groups_nearby if reach else _extend_groups, first_template(context.options)

        def part(groups: tuple[int, int]) -> np.ndarray:
            own = slice(*groups)
            starts = bounds[groups[0] : groups[1] + 1]
            table, most = np.empty((int(starts[-1] - starts[0]), len(COLUMNS)), np.int32), int(np.diff(starts).max())
            count = extend(
                extension.rules, extension.strands, extension.groups, extension.begins, extension.bits, spans[own],
                opens, starts, places[own], numbers[own], extension.limits, window, reach, template, *words,
                data["query_frame"], data["query_pos"], data["target_pos"], data["length"], data["shift"], table,
                np.empty((most, 8), np.int64), *np.empty((2, most), np.int64))
            context.advance(int(starts[-1] - starts[0]), len(records))
            return table[:count].copy()

        parts = run_tasks(context.threads, part, _parts(bounds, context.threads)) if len(records) else []
        return np.concatenate([np.empty((0, len(COLUMNS)), np.int32), *parts])

    def _extension(self, context: Context) -> Extension:
        scoring, bases = context.scoring, packed_bases(context)
        strands, begins = laid_out_strands(context)
        return Extension((scoring.matrix, scores_of_groups(scoring)), strands, eights(grouped(context)), begins,
                         bases.bits, bases.first, strand_limits(context), context.targets, pieces_of(context))
