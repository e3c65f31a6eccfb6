"""``word-hits`` on the CPU: look up every word of the volume, or walk along given diagonals only."""

import numpy as np
from seqloom.core.context import Context
from seqloom.core.distinct import distinct
from seqloom.core.jit import kernel
from seqloom.core.records import Pairs, Records, Seeds
from seqloom.core.simd import (
    BYTE_LANES,
    LOOKUP_ENTRIES,
    LOOKUP_STRIDE,
    choose_greater,
    greater_lanes,
    load,
    lookup,
    lookup_tables,
    lowest_bit,
    splat,
    store,
)
from seqloom.core.threads import in_turn
from seqloom.plugins.common.grouping import even_parts
from seqloom.plugins.protein_blast.index_reference import KIND
from seqloom.plugins.protein_blast.scoring import read_as_query
from seqloom.plugins.protein_blast.seed_reference import WordHits, seeds_of, seeds_of_words, wanted_pairs
from seqloom.plugins.protein_blast.words import LETTERS, word_starts

LANES, STRIDE = BYTE_LANES, LOOKUP_STRIDE
LOWEST = -32
"""Scores count as no less: a word with one can't reach a threshold in either case, and sums of four fit eight bits."""
END = LOOKUP_ENTRIES - 1
"""A letter greater than all."""


@kernel
def _look_up(residues, offsets, chosen, size, starts, query, position, query_of, query_pos, target_of, target_pos):
    """All hits of the chosen targets; their number.

    query_of, query_pos, target_of, target_pos: i4[capacity], places and positions of hits; hits beyond the capacity are
    counted and not written.
    """
    count = 0
    span = LETTERS ** (size - 1)
    for target in chosen:
        begin, end = offsets[target], offsets[target + 1]
        word = np.int64(0)
        for place in range(begin, end):
            word = word % span * LETTERS + residues[place]
            if place - begin < size - 1:
                continue
            for entry in range(starts[word], starts[word + 1]):
                if count < len(query_of):
                    query_of[count] = query[entry]
                    query_pos[count] = position[entry]
                    target_of[count] = target
                    target_pos[count] = place - begin - size + 1
                count += 1
    return count


@kernel
def _along_diagonals(tables, used, letters, starting, poor, next_poor, residues, tail, query_begins, target_begins,
                     lengths, size, threshold, scores, row_of, step_of):
    """Hits on whole diagonals by scoring the words that lie opposite each other; their number.

    A word of the table scores at least ``threshold`` with the query's word, or is the query's word itself. On a
    diagonal that is one pair of words a place, and adding up their letters is quicker than a look-up.

    tables: look-up tables of the scores of every letter. used: the letters of queries, rising. letters: u1, queries,
    with ``LANES`` more behind them. starting: bool, by place in ``letters``, whether a word that is looked for begins
    there. poor: i8, where words begin that don't reach the threshold with themselves, rising, and a place behind all;
    next_poor: i4, by place, the first of them from there on. residues: u1, targets. tail: u1, the last ``LANES`` of
    them, or all, with ``LANES`` more behind them.
    query_begins, target_begins, lengths: i8[n], where diagonals begin in letters and residues, and their lengths.
    scores: i1[longest + 2 · LANES], working space.
    row_of, step_of: i4[capacity], diagonal of a hit and its distance from the diagonal's begin; hits beyond the
    capacity are counted and not written.
    """
    count = 0
    least = splat(np.int8(threshold - 1), LANES)
    in_tail = len(residues) - (len(tail) - LANES)
    for row in range(len(lengths)):
        query, target = query_begins[row], target_begins[row]
        for step in range(0, lengths[row], LANES):
            ours, there = load(letters, query + step, LANES), target + step
            theirs = (load(residues, there, LANES) if there + LANES <= len(residues)
                      else load(tail, there - in_tail, LANES))
            found = lookup(tables, used[0] * STRIDE, theirs)
            for rank in range(1, len(used)):  # the last letter that isn't greater than ours is ours
                below = splat(np.uint8(used[rank] - 1), LANES)
                found = choose_greater(ours, below, lookup(tables, used[rank] * STRIDE, theirs), found)
            store(scores, step, found)
        words = lengths[row] - size + 1
        for step in range(0, words, LANES):
            total = load(scores, step, LANES)
            for letter in range(1, size):
                total = total + load(scores, step + letter, LANES)
            above = greater_lanes(total, least)
            later = next_poor[query + step]
            while poor[later] < query + min(step + LANES, words):
                place, equal = poor[later] - query, 0
                while equal < size and letters[query + place + equal] == residues[target + place + equal]:
                    equal += 1
                if equal == size:
                    above |= np.uint64(1) << np.uint64(place - step)
                later += 1
            while above:
                place = step + np.int64(lowest_bit(above))
                above &= above - np.uint64(1)
                if place < words and starting[query + place]:
                    if count < len(row_of):
                        row_of[count], step_of[count] = row, place
                    count += 1
    return count


@kernel
def _fill(row_of, step_of, queries, targets, query_starts, target_starts, query, target, query_pos, target_pos):
    """Columns of the hits at these steps of these rows of diagonals."""
    for hit in range(len(row_of)):
        row, step = row_of[hit], step_of[hit]
        query[hit], target[hit] = queries[row], targets[row]
        query_pos[hit], target_pos[hit] = query_starts[row] + step, target_starts[row] + step


class WordHitsCpu(WordHits):
    __doc__ = WordHits.__doc__
    backend = "cpu"

    def run(self, context: Context, records: Records | None) -> Seeds:
        if isinstance(records, Seeds):
            return self._on_diagonals(context, records)
        index, targets = context.index(KIND), context.targets
        size = index.parameters["word_size"]
        wanted = wanted_pairs(context, records)
        chosen = np.arange(len(targets)) if wanted is None else np.flatnonzero(wanted.any(axis=0))
        expected = 2 * len(index["query"]) * int(targets.lengths[chosen].sum()) // len(index["starts"]) + 1024
        found = _filled(4, expected, _look_up, targets.residues, targets.offsets, chosen, size, index["starts"],
                        index["query"], index["position"])
        query, query_pos, target, target_pos = found
        return seeds_of(context, size, query, query_pos, target, target_pos,
                        wanted if isinstance(records, Pairs) else None)

    def _on_diagonals(self, context: Context, records: Seeds) -> Seeds:
        """Hits by scoring words that lie opposite each other, which needs no index."""
        queries, targets, matrix = context.queries, context.targets, context.scoring.matrix
        size, threshold = context.options.word_size, min(context.options.neighbour_threshold(), 127)
        letters, padding = read_as_query(queries.searched()), np.zeros(LANES, np.uint8)
        usable = queries.indexable() & np.repeat(context.scoring.valid, queries.lengths)
        places = word_starts(queries.offsets, size, usable)
        starting = np.zeros(queries.letters, np.bool_)
        starting[places] = True
        alone = sum(matrix.diagonal()[letters[places + letter]] for letter in range(size))
        poor = places[alone < threshold]
        next_poor = np.cumsum(np.bincount(poor + 1, minlength=len(letters) + 1), dtype=np.int32)
        poor = np.append(poor, np.iinfo(np.int64).max)
        number, place = queries.locate(records.query), targets.locate(records.target)
        diagonals = (queries.offsets[number] + records.query_pos, targets.offsets[place] + records.target_pos,
                     records.length.astype(np.int64))
        scores = np.zeros((LOOKUP_ENTRIES, LOOKUP_ENTRIES), np.int8)
        scores[:LETTERS, :LETTERS] = np.clip(matrix[:LETTERS, :LETTERS], LOWEST, 127)
        tables, used = lookup_tables(scores), np.append(distinct(letters), END).astype(np.int64)
        padded, tail = (np.concatenate([part, padding]) for part in (letters, targets.residues[-LANES:]))

        def find(rows: slice) -> list[np.ndarray]:
            """Rows of diagonals, counted from the first of these, and steps of the hits on some of them."""
            context.cancellation.check()
            mine = [column[rows] for column in diagonals]
            room = np.empty(int(mine[2].max(initial=0)) + 2 * LANES, np.int8)
            return _filled(2, 8 * len(mine[0]) + 1024, _along_diagonals, tables, used, padded, starting, poor,
                           next_poor, targets.residues, tail, *mine, size, threshold, room)

        parts = [slice(*part) for part in even_parts(len(records), context.threads)]
        found = in_turn(context.threads, find, parts)
        ends = np.cumsum([len(row) for row, _ in found], dtype=np.int64).tolist()
        hits = {name: np.empty(ends[-1] if ends else 0, np.int64 if name == "target" else np.int32)
                for name in ("query", "target", "query_pos", "target_pos")}

        def fill(part: tuple[slice, list[np.ndarray], int]) -> None:
            rows, (row, step), end = part
            _fill(row, step, *(records.data[name][rows] for name in hits),
                  *(column[end - len(row) : end] for column in hits.values()))

        in_turn(context.threads, fill, list(zip(parts, found, ends)))
        return seeds_of_words(size, **hits)


def _filled(columns, capacity, produce, *arguments):
    """i4[n] each: what ``produce(*arguments, *columns)`` writes, with a second attempt where it needs more room."""
    while True:
        found = [np.empty(capacity, np.int32) for _ in range(columns)]
        count = produce(*arguments, *found)
        if count <= capacity:
            return [column[:count] for column in found]
        capacity = count
