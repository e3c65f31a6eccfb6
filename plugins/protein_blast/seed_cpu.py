"""``word-hits`` on the CPU: look up every word of the volume, or walk along given diagonals only."""

from collections.abc import Callable

import numpy as np
from seqloom.core.context import Context
from seqloom.core.distinct import distinct
from seqloom.core.engine.threads import run_tasks
from seqloom.core.kernels.jit import kernel
from seqloom.core.kernels.simd import (
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
from seqloom.core.records import Pairs, Records, Seeds
from seqloom.plugins.common.grouping import even_parts
from seqloom.plugins.protein_blast.index_reference import KIND, indexable_places
from seqloom.plugins.protein_blast.scoring import read_as_query
from seqloom.plugins.protein_blast.seed_reference import WordHits, seeds_of, seeds_of_words, wanted_pairs
from seqloom.plugins.protein_blast.word_alphabet import WordAlphabet, word_alphabet
from seqloom.plugins.protein_blast.words import RESIDUES

LANES, STRIDE = BYTE_LANES, LOOKUP_STRIDE
_WORTH_A_PART = 128
"""Diagonals for which it pays to wake a thread, which takes some 50 µs."""
MOST = 127
"""Largest sum of scores that is told from others, and with the sign turned the smallest."""
END = LOOKUP_ENTRIES - 1
"""A residue greater than all."""


@kernel
def _look_up(residues, offsets, chosen, size, codes, symbols, starts, query, position, query_of, query_pos, target_of,
             target_pos):
    """All hits of the chosen targets; their number.

    codes: u1[residues], symbols of residues, ``symbols`` where there is none.
    query_of, query_pos, target_of, target_pos: i4[capacity], places and positions of hits; hits beyond the capacity are
    counted and not written.
    """
    count = 0
    span = symbols ** (size - 1)
    for target in chosen:
        begin, end = offsets[target], offsets[target + 1]
        word, known = np.int64(0), 0
        for place in range(begin, end):
            symbol = codes[residues[place]]
            if symbol == symbols:
                word, known = np.int64(0), 0
                continue
            word, known = word % span * symbols + symbol, known + 1
            if known < size:
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
def _classes_along_diagonals(pair_scores, codes, query_residues, starting, poor, residues, query_begins, target_begins,
                             lengths, size, threshold, row_of, step_of):
    """As ``_along_diagonals``, of words of classes of residues, one place after the other.

    pair_scores: i4[residues, residues], of a query's residue with the class of a target's. codes: u1[residues],
    classes. poor: bool, by place in ``query_residues``, whether a word that doesn't reach the threshold with itself
    begins there.
    """
    count = 0
    for row in range(len(lengths)):
        query, target, total = query_begins[row], target_begins[row], 0
        for step in range(lengths[row]):
            total += pair_scores[query_residues[query + step], residues[target + step]]
            begin = step - size + 1
            if begin > 0:
                total -= pair_scores[query_residues[query + begin - 1], residues[target + begin - 1]]
            if begin < 0 or not starting[query + begin]:
                continue
            hit = total >= threshold
            if not hit and poor[query + begin]:
                equal = 0
                while (equal < size and codes[query_residues[query + begin + equal]]
                       == codes[residues[target + begin + equal]]):
                    equal += 1
                hit = equal == size
            if hit:
                if count < len(row_of):
                    row_of[count], step_of[count] = row, begin
                count += 1
    return count


@kernel
def _along_diagonals(tables, used, query_residues, starting, poor, next_poor, residues, tail, query_begins,
                     target_begins, lengths, size, threshold, scores, row_of, step_of):
    """Hits on whole diagonals by scoring the words that lie opposite each other; their number.

    A word of the table scores at least ``threshold`` with the query's word, or is the query's word itself. On a
    diagonal that is one pair of words a place, and adding up their residues is quicker than a look-up.

    tables: look-up tables of the scores of every residue. used: the residues of queries, rising. residues: u1, queries,
    with ``LANES`` more behind them. starting: bool, by place in ``query_residues``,
    whether a word that is looked for begins
    there. poor: i8, where words begin that don't reach the threshold with themselves, rising, and a place behind all;
    next_poor: i4, by place, the first of them from there on. residues: u1, targets. tail: u1, the last ``LANES`` of
    them, or all, with ``LANES`` more behind them.
    query_begins, target_begins, lengths: i8[n], where diagonals begin in residues and residues, and their lengths.
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
            ours, there = load(query_residues, query + step, LANES), target + step
            theirs = (load(residues, there, LANES) if there + LANES <= len(residues)
                      else load(tail, there - in_tail, LANES))
            found = lookup(tables, used[0] * STRIDE, theirs)
            for rank in range(1, len(used)):  # the last residue that isn't greater than ours is ours
                below = splat(np.uint8(used[rank] - 1), LANES)
                found = choose_greater(ours, below, lookup(tables, used[rank] * STRIDE, theirs), found)
            store(scores, step, found)
        words = lengths[row] - size + 1
        for step in range(0, words, LANES):
            total = load(scores, step, LANES)
            for residue in range(1, size):
                total = total + load(scores, step + residue, LANES)
            above = greater_lanes(total, least)
            later = next_poor[query + step]
            while poor[later] < query + min(step + LANES, words):
                place, equal = poor[later] - query, 0
                while equal < size and query_residues[query + place + equal] == residues[target + place + equal]:
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

    def looks_up(self, given: type[Records] | None) -> tuple[str, ...]:
        return () if given is Seeds else self.reads

    def run(self, context: Context, records: Records | None) -> Seeds:
        if isinstance(records, Seeds):
            return self._on_diagonals(context, records)
        index, targets = context.index(KIND), context.targets
        size, symbols = index.parameters["word_size"], index.parameters["symbols"]
        wanted = wanted_pairs(context, records)
        chosen = np.arange(len(targets)) if wanted is None else np.flatnonzero(wanted.any(axis=0))
        expected = 2 * len(index["query"]) * int(targets.lengths[chosen].sum()) // len(index["starts"]) + 1024
        found = _filled(4, expected, _look_up, targets.residues, targets.offsets, chosen, size, index["codes"], symbols,
                        index["starts"], index["query"], index["position"])
        query, query_pos, target, target_pos = found
        return seeds_of(context, size, query, query_pos, target, target_pos,
                        wanted if isinstance(records, Pairs) else None)

    def _on_diagonals(self, context: Context, records: Seeds) -> Seeds:
        """Hits by scoring words that lie opposite each other, which needs no index."""
        queries, targets, alphabet = context.queries, context.targets, word_alphabet(context.options)
        query_residues = read_as_query(queries.searched())
        places = indexable_places(queries, context.scoring.valid, alphabet)
        starting = np.zeros(queries.total_residues, np.bool_)
        starting[places] = True
        alone = sum(alphabet.own_scores[query_residues[places + residue]] for residue in range(alphabet.size))
        poor = places[alone < alphabet.threshold]
        number, place = queries.locate(records.query), targets.locate(records.target)
        diagonals = (queries.offsets[number] + records.query_pos, targets.offsets[place] + records.target_pos,
                     records.length.astype(np.int64))
        find_on = _finder(alphabet, query_residues, targets.residues, starting, poor)

        def find(rows: slice) -> list[np.ndarray]:
            """Rows of diagonals, counted from the first of these, and steps of the hits on some of them."""
            context.cancellation.check()
            mine = [column[rows] for column in diagonals]
            return find_on(8 * len(mine[0]) + 1024, mine)

        parts = [slice(*part) for part in even_parts(len(records), context.threads, len(records) / _WORTH_A_PART)]
        found = run_tasks(context.threads, find, parts)
        ends = np.cumsum([len(row) for row, _ in found], dtype=np.int64).tolist()
        hits = {name: np.empty(ends[-1] if ends else 0, np.int64 if name == "target" else np.int32)
                for name in ("query", "target", "query_pos", "target_pos")}

        def fill(part: tuple[slice, list[np.ndarray], int]) -> None:
            rows, (row, step), end = part
            _fill(row, step, *(records.data[name][rows] for name in hits),
                  *(column[end - len(row) : end] for column in hits.values()))

        run_tasks(context.threads, fill, list(zip(parts, found, ends)))
        return seeds_of_words(alphabet.size, **hits)


def _finder(alphabet: WordAlphabet, query_residues: np.ndarray, residues: np.ndarray, starting: np.ndarray,
            poor: np.ndarray) -> Callable[[int, list[np.ndarray]], list[np.ndarray]]:
    """The function that finds hits on diagonals, with room for some, by the words' kind.

    Args:
        query_residues, residues: u1, of queries and targets.
        starting: bool, by place in ``query_residues``, whether a word that is looked for begins there.
        poor: i8, rising, where words begin that don't reach the threshold with themselves.
    """
    size, threshold = alphabet.size, alphabet.threshold
    if alphabet.symbols < RESIDUES:
        is_poor = np.zeros(len(query_residues), np.bool_)
        is_poor[poor] = True
        pair_scores = alphabet.pair_scores
        return lambda room, diagonals: _filled(2, room, _classes_along_diagonals, pair_scores, alphabet.codes,
                                               query_residues, starting, is_poor, residues, *diagonals, size, threshold)
    next_poor = np.cumsum(np.bincount(poor + 1, minlength=len(query_residues) + 1), dtype=np.int32)
    poor = np.append(poor, np.iinfo(np.int64).max)
    scores = np.zeros((LOOKUP_ENTRIES, LOOKUP_ENTRIES), np.int8)
    # A word with a score that is cut off here can't reach a threshold in either case.
    scores[:RESIDUES, :RESIDUES] = np.clip(alphabet.scores, -(MOST // size), MOST)
    tables, used = lookup_tables(scores), np.append(distinct(query_residues), END).astype(np.int64)
    padding = np.zeros(LANES, np.uint8)
    padded, tail = (np.concatenate([part, padding]) for part in (query_residues, residues[-LANES:]))

    def find(room: int, diagonals: list[np.ndarray]) -> list[np.ndarray]:
        space = np.empty(int(diagonals[2].max(initial=0)) + 2 * LANES, np.int8)
        return _filled(2, room, _along_diagonals, tables, used, padded, starting, poor, next_poor, residues, tail,
                       *diagonals, size, min(threshold, MOST), space)

    return find


def _filled(columns, capacity, produce, *arguments):
    """i4[n] each: what ``produce(*arguments, *columns)`` writes, with a second attempt where it needs more room."""
    while True:
        found = [np.empty(capacity, np.int32) for _ in range(columns)]
        count = produce(*arguments, *found)
        if count <= capacity:
            return [column[:count] for column in found]
        capacity = count
