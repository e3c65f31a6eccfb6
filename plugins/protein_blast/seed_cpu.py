"""``word-hits`` on the CPU: look up every word of the volume, or walk along given diagonals only."""

import numpy as np
from seqloom.core.context import Context
from seqloom.core.jit import kernel
from seqloom.core.records import Pairs, Records, Seeds
from seqloom.plugins.protein_blast.index_reference import KIND
from seqloom.plugins.protein_blast.seed_reference import WordHits, seeds_of, wanted_pairs
from seqloom.plugins.protein_blast.words import LETTERS


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
def _split_by_query(starts, query, position, sizes, own_starts, own_position):
    """The table cut into one table per query.

    own_starts: i4[queries, words + 1], places in ``own_position``; own_position: i4[entries], query after query.
    sizes: i8[queries], number of entries of each.
    """
    queries = len(sizes)
    fill = np.zeros(queries, np.int64)
    for number in range(1, queries):
        fill[number] = fill[number - 1] + sizes[number - 1]
    for word in range(len(starts) - 1):
        for number in range(queries):
            own_starts[number, word] = fill[number]
        for entry in range(starts[word], starts[word + 1]):
            number = query[entry]
            own_position[fill[number]] = position[entry]
            fill[number] += 1
    for number in range(queries):
        own_starts[number, len(starts) - 1] = fill[number]


@kernel
def _along_diagonals(residues, offsets, diagonals, size, own_starts, own_position, found):
    """Hits on whole diagonals, as ``_look_up`` gives them.

    diagonals: i8[n, 5]: query place, target place, query and target position of the start, length.
    """
    count = 0
    span = LETTERS ** (size - 1)
    for row in range(len(diagonals)):
        number, target, query_pos, target_pos, length = diagonals[row]
        begin = offsets[target] + target_pos
        word = np.int64(0)
        for step in range(length):
            word = word % span * LETTERS + residues[begin + step]
            if step < size - 1:
                continue
            wanted = query_pos + step - size + 1
            for entry in range(own_starts[number, word], own_starts[number, word + 1]):
                if own_position[entry] == wanted:
                    if count < len(found):
                        found[count, 0] = number
                        found[count, 1] = wanted
                        found[count, 2] = target
                        found[count, 3] = target_pos + step - size + 1
                    count += 1
                    break
    return count


class WordHitsCpu(WordHits):
    __doc__ = WordHits.__doc__
    backend = "cpu"

    def run(self, context: Context, records: Records | None) -> Seeds:
        index, targets, queries = context.index(KIND), context.targets, context.queries
        size = index.parameters["word_size"]
        if isinstance(records, Seeds):
            sizes = np.bincount(index["query"], minlength=len(queries))
            own_starts = np.empty((len(queries), len(index["starts"])), np.int32)
            own_position = np.empty(len(index["query"]), np.int32)
            _split_by_query(index["starts"], index["query"], index["position"], sizes, own_starts, own_position)
            diagonals = np.stack([queries.locate(records.query), targets.locate(records.target), records.query_pos,
                                  records.target_pos, records.length], axis=1).astype(np.int64)
            found = _filled(4 * len(records) + 1024, _along_diagonals, targets.residues, targets.offsets, diagonals,
                            size, own_starts, own_position)
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
