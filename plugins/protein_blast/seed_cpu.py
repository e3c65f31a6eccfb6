"""``word-hits`` on the CPU: look up every word of the volume, or walk along given diagonals only."""

import numpy as np
from seqloom.core.context import Context
from seqloom.core.jit import kernel
from seqloom.core.records import Pairs, Records, Seeds
from seqloom.plugins.protein_blast.index_reference import KIND
from seqloom.plugins.protein_blast.scoring import read_as_query
from seqloom.plugins.protein_blast.seed_reference import WordHits, seeds_of, wanted_pairs
from seqloom.plugins.protein_blast.words import LETTERS, word_starts

LETTER_BITS = 5
"""Bits of a letter in a number made of two."""
SAME_BITS = 16
SAME = 1 << SAME_BITS
"""Added to the score of a pair of equal letters, so that one sum tells score and equal letters of a word."""


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
def _along_diagonals(scores, letters, seeding, query_begins, residues, target_begins, lengths, size, threshold, pairs,
                     sums, row_of, step_of):
    """Hits on whole diagonals by scoring the words that lie opposite each other; their number.

    A word of the table scores at least ``threshold`` with the query's word, or is the query's word itself. On a
    diagonal that is one pair of words a place, and adding up their letters is quicker than a look-up.

    scores: i4[letters << LETTER_BITS], by query letter and target letter, ``SAME`` more for equal letters. letters:
    u8, the queries as searched. seeding: bool of the same length, whether words that start there are in the table.
    query_begins, target_begins, lengths: i8[n], where diagonals begin in ``letters`` and ``residues``, and their
    lengths. pairs, sums: i4[longest],
    working space. row_of, step_of: i4[capacity], diagonal of a hit and its distance from the diagonal's begin; hits
    beyond the capacity are counted and not written.
    """
    count = 0
    for row in range(len(lengths)):
        length = lengths[row]
        query = letters[query_begins[row] : query_begins[row] + length]
        target = residues[target_begins[row] : target_begins[row] + length]
        for step in range(length):
            pairs[step] = scores[np.uint64(query[step]) << np.uint64(LETTER_BITS) | np.uint64(target[step])]
        places = length - size + 1
        sums[:places] = 0
        for letter in range(size):
            for step in range(places):
                sums[step] += pairs[letter + step]
        for step in range(places):
            equal = (sums[step] + SAME // 2) >> SAME_BITS
            if ((sums[step] - (equal << SAME_BITS) >= threshold or equal == size)
                    and seeding[query_begins[row] + step]):
                if count < len(row_of):
                    row_of[count] = row
                    step_of[count] = step
                count += 1
    return count


class WordHitsCpu(WordHits):
    __doc__ = WordHits.__doc__
    backend = "cpu"

    def run(self, context: Context, records: Records | None) -> Seeds:
        index, targets, queries = context.index(KIND), context.targets, context.queries
        size = index.parameters["word_size"]
        if isinstance(records, Seeds):
            scoring = context.scoring
            usable = queries.indexable() & np.repeat(scoring.valid, queries.lengths)
            seeding = np.zeros(queries.letters, bool)
            seeding[word_starts(queries.offsets, size, usable)] = True
            number, place = queries.locate(records.query), targets.locate(records.target)
            lengths = records.length
            flat = np.zeros((1 << LETTER_BITS, 1 << LETTER_BITS), np.int32)
            flat[:LETTERS, :LETTERS] = np.maximum(scoring.matrix[:LETTERS, :LETTERS], -SAME // 16)
            flat[np.diag_indices(LETTERS)] += SAME
            pairs, sums = np.empty((2, int(lengths.max(initial=0))), np.int32)
            row, step = _filled(
                2, 8 * len(records) + 1024, _along_diagonals, flat.reshape(-1), read_as_query(queries.searched()),
                seeding, queries.offsets[number] + records.query_pos, targets.residues,
                targets.offsets[place] + records.target_pos, lengths.astype(np.int64), size,
                index.parameters["threshold"], pairs, sums)
            return seeds_of(context, index, number[row], records.query_pos[row] + step, place[row],
                            records.target_pos[row] + step, None)
        wanted = wanted_pairs(context, records)
        chosen = np.arange(len(targets)) if wanted is None else np.flatnonzero(wanted.any(axis=0))
        expected = 2 * len(index["query"]) * int(targets.lengths[chosen].sum()) // len(index["starts"]) + 1024
        found = _filled(4, expected, _look_up, targets.residues, targets.offsets, chosen, size, index["starts"],
                        index["query"], index["position"])
        return seeds_of(context, index, *found, wanted if isinstance(records, Pairs) else None)


def _filled(columns, capacity, produce, *arguments):
    """i4[n] each: what ``produce(*arguments, *columns)`` writes, with a second attempt where it needs more room."""
    while True:
        found = [np.empty(capacity, np.int32) for _ in range(columns)]
        count = produce(*arguments, *found)
        if count <= capacity:
            return [column[:count] for column in found]
        capacity = count
