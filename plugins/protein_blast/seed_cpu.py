"""``word-hits`` on the CPU: look up every word of the volume, or walk along given diagonals only."""

import numpy as np
from seqloom.core.context import Context
from seqloom.core.jit import kernel
from seqloom.core.records import Pairs, Records, Seeds
from seqloom.plugins.protein_blast.index_reference import KIND
from seqloom.plugins.protein_blast.scoring import read_as_query
from seqloom.plugins.protein_blast.seed_reference import WordHits, seeds_of, wanted_pairs
from seqloom.plugins.protein_blast.words import LETTERS, word_starts


@kernel
def _look_up(residues, offsets, chosen, size, starts, query, position, found):
    """All hits of the chosen targets as (query place, query position, target place, target position); their number.

    found: i4[capacity, 4]; hits beyond the capacity are counted and not written.
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
                if count < len(found):
                    found[count, 0] = query[entry]
                    found[count, 1] = position[entry]
                    found[count, 2] = target
                    found[count, 3] = place - begin - size + 1
                count += 1
    return count


@kernel
def _along_diagonals(matrix, letters, seeding, query_offsets, residues, target_offsets, diagonals, size, threshold,
                     found):
    """Hits on whole diagonals, as ``_look_up`` gives them, by scoring the words that lie opposite each other.

    A word of the table scores at least ``threshold`` with the query's word, or is the query's word itself. On a
    diagonal that is one pair of words a place, and adding up their letters is quicker than a look-up.

    letters: u8, the queries as searched. seeding: bool of the same length, whether words that start there are in the
    table.
    diagonals: i8[n, 5]: query place, target place, query and target position of the start, length.
    """
    count = 0
    for row in range(len(diagonals)):
        number, place, query_pos, target_pos, length = diagonals[row]
        query = query_offsets[number] + query_pos
        target = target_offsets[place] + target_pos
        score = equal = 0
        for step in range(length):
            ours, theirs = letters[query + step], residues[target + step]
            score += matrix[ours, theirs]
            equal = equal + 1 if ours == theirs else 0
            if step >= size:
                score -= matrix[letters[query + step - size], residues[target + step - size]]
            if step >= size - 1 and (score >= threshold or equal >= size) and seeding[query + step - size + 1]:
                if count < len(found):
                    found[count, 0] = number
                    found[count, 1] = query_pos + step - size + 1
                    found[count, 2] = place
                    found[count, 3] = target_pos + step - size + 1
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
            diagonals = np.stack([queries.locate(records.query), targets.locate(records.target), records.query_pos,
                                  records.target_pos, records.length], axis=1).astype(np.int64)
            letters = read_as_query(queries.searched())
            found = _filled(8 * len(records) + 1024, _along_diagonals, scoring.matrix, letters, seeding,
                            queries.offsets, targets.residues, targets.offsets, diagonals, size,
                            index.parameters["threshold"])
            return seeds_of(context, index, *_columns(found), None)
        wanted = wanted_pairs(context, records)
        chosen = np.arange(len(targets)) if wanted is None else np.flatnonzero(wanted.any(axis=0))
        expected = 2 * len(index["query"]) * int(targets.lengths[chosen].sum()) // len(index["starts"]) + 1024
        found = _filled(expected, _look_up, targets.residues, targets.offsets, chosen, size, index["starts"],
                        index["query"], index["position"])
        return seeds_of(context, index, *_columns(found), wanted if isinstance(records, Pairs) else None)


def _filled(capacity, produce, *arguments):
    """i4[n, 4]: what ``produce(*arguments, found)`` writes, with a second attempt where it needs more room."""
    found = np.empty((capacity, 4), np.int32)
    count = produce(*arguments, found)
    if count > capacity:
        found = np.empty((count, 4), np.int32)
        produce(*arguments, found)
    return found[:count]


def _columns(found: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    return found[:, 0], found[:, 1], found[:, 2], found[:, 3]
