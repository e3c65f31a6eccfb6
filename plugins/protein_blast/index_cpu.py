"""``neighbourhood-words`` on the CPU: neighbours by bounded depth-first search, positions by counting sort."""

import numpy as np
from seqloom.core.context import Context
from seqloom.core.index import Index
from seqloom.core.jit import kernel
from seqloom.core.sequences import ModelBatch, SequenceBatch
from seqloom.plugins.protein_blast.index_reference import KIND, NeighbourhoodWords
from seqloom.plugins.protein_blast.scoring import read_as_query
from seqloom.plugins.protein_blast.words import LETTERS, word_starts


@kernel
def _neighbours(letters, begin, size, matrix, best_rest, threshold, words, limit):
    """Write the words that score at least ``threshold`` with the word at ``begin``, ascending; returns their number.

    best_rest: i4[size + 1], most that the letters from a place on can add. The word itself counts in any case.
    """
    count = 0
    own = np.int64(0)
    own_score = 0
    for place in range(size):
        letter = letters[begin + place]
        own = own * LETTERS + letter
        own_score += matrix[letter, letter]
    choice = np.full(size, -1, np.int64)
    score = np.zeros(size + 1, np.int64)
    prefix = np.zeros(size + 1, np.int64)
    depth = 0
    while depth >= 0:
        choice[depth] += 1
        if choice[depth] == LETTERS:
            choice[depth] = -1
            depth -= 1
            continue
        score[depth + 1] = score[depth] + matrix[letters[begin + depth], choice[depth]]
        prefix[depth + 1] = prefix[depth] * LETTERS + choice[depth]
        on_own = prefix[depth + 1] == own // LETTERS ** (size - 1 - depth)
        if score[depth + 1] + best_rest[depth + 1] < threshold and not (on_own and own_score < threshold):
            continue
        if depth == size - 1:
            if score[size] >= threshold or prefix[size] == own:
                if count < limit:
                    words[count] = prefix[size]
                count += 1
        else:
            depth += 1
    return count


@kernel
def _table(letters, places, query_of, offsets, size, matrix, threshold, starts, query, position, words):
    """Fill ``starts``, and ``query`` and ``position`` if they are large enough; returns the number of entries.

    Two passes over the places: count entries by word, then put them in their word's stretch in order of place.
    """
    row_best = np.empty(LETTERS, np.int64)
    for letter in range(LETTERS):
        row_best[letter] = matrix[letter].max()
    best_rest = np.zeros(size + 1, np.int64)
    starts[:] = 0
    for fill in range(2):
        for place in places:
            for back in range(size - 1, -1, -1):
                best_rest[back] = best_rest[back + 1] + row_best[letters[place + back]]
            count = _neighbours(letters, place, size, matrix, best_rest, threshold, words, len(words))
            for entry in range(count):
                word = words[entry]
                if fill:
                    slot = starts[word]
                    query[slot] = query_of[place]
                    position[slot] = place - offsets[query_of[place]]
                    starts[word] += 1
                else:
                    starts[word + 1] += 1
        if not fill:
            for word in range(len(starts) - 1):
                starts[word + 1] += starts[word]
            if starts[len(starts) - 1] > len(query):
                return starts[len(starts) - 1]
    for word in range(len(starts) - 1, 0, -1):
        starts[word] = starts[word - 1]
    starts[0] = 0
    return starts[len(starts) - 1]


class NeighbourhoodWordsCpu(NeighbourhoodWords):
    __doc__ = NeighbourhoodWords.__doc__
    backend = "cpu"

    def run(self, context: Context, batch: SequenceBatch | ModelBatch) -> Index:
        assert isinstance(batch, SequenceBatch)
        options, scoring = context.options, context.scoring
        size, threshold = options.word_size, options.neighbour_threshold()
        usable = batch.indexable() & np.repeat(scoring.valid, batch.lengths)
        places = word_starts(batch.offsets, size, usable)
        letters = read_as_query(batch.searched())
        query_of = np.repeat(np.arange(len(batch), dtype=np.int32), batch.lengths)
        starts = np.zeros(LETTERS**size + 1, np.int64)
        words = np.empty(LETTERS**size, np.int64)
        capacity = 64 * len(places)
        while True:
            query, position = np.empty(capacity, np.int32), np.empty(capacity, np.int32)
            count = _table(letters, places, query_of, batch.offsets, size, scoring.matrix, threshold, starts, query,
                           position, words)
            if count <= capacity:
                break
            capacity = int(count)
        arrays = {"starts": starts, "query": query[:count], "position": position[:count]}
        context.count("entries", int(count))
        return Index(KIND, "query", arrays, {"word_size": size, "threshold": threshold})
