"""``neighbourhood-words`` on the CPU: neighbours by a search that stops early, positions by counting sort."""

import numpy as np
from seqloom.core.context import Context
from seqloom.core.index import Index
from seqloom.core.jit import kernel
from seqloom.core.sequences import ModelBatch, SequenceBatch
from seqloom.plugins.protein_blast.index_reference import KIND, NeighbourhoodWords
from seqloom.plugins.protein_blast.scoring import read_as_query
from seqloom.plugins.protein_blast.words import LETTERS, word_starts


@kernel
def _neighbours(letters, begin, size, sorted_letters, sorted_scores, self_scores, threshold, words):
    """Write the words that score at least ``threshold`` with the word at ``begin``, and that word; their number.

    sorted_letters, sorted_scores: i4[letters, letters], per letter the others by falling score: the first one that
    can't reach the threshold with the best of what follows ends its branch.
    """
    count = 0
    own, own_score = np.int64(0), 0
    rest = np.zeros(size + 1, np.int64)
    for place in range(size - 1, -1, -1):
        rest[place] = rest[place + 1] + sorted_scores[letters[begin + place], 0]
    for place in range(size):
        own = own * LETTERS + letters[begin + place]
        own_score += self_scores[letters[begin + place]]
    if own_score < threshold:
        words[0] = own
        count = 1
    choice = np.full(size, -1, np.int64)
    score = np.zeros(size + 1, np.int64)
    prefix = np.zeros(size + 1, np.int64)
    depth = 0
    while depth >= 0:
        choice[depth] += 1
        letter = letters[begin + depth]
        spent = choice[depth] == LETTERS
        if spent or score[depth] + sorted_scores[letter, choice[depth]] + rest[depth + 1] < threshold:
            choice[depth] = -1
            depth -= 1
            continue
        score[depth + 1] = score[depth] + sorted_scores[letter, choice[depth]]
        prefix[depth + 1] = prefix[depth] * LETTERS + sorted_letters[letter, choice[depth]]
        if depth == size - 1:
            words[count] = prefix[size]
            count += 1
        else:
            depth += 1
    return count


@kernel
def _table(letters, places, query_of, offsets, size, sorted_letters, sorted_scores, self_scores, threshold, starts,
           query, position, words):
    """Fill ``starts``, and ``query`` and ``position`` if they are large enough; returns the number of entries.

    Two passes over the places: count entries by word, then put them in their word's stretch in order of place.
    """
    starts[:] = 0
    for fill in range(2):
        for place in places:
            count = _neighbours(letters, place, size, sorted_letters, sorted_scores, self_scores, threshold, words)
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
        order = np.argsort(-scoring.matrix, axis=1, kind="stable").astype(np.int32)
        scores = np.take_along_axis(scoring.matrix, order, axis=1)
        starts = np.zeros(LETTERS**size + 1, np.int64)
        words = np.empty(LETTERS**size + 1, np.int64)
        capacity = 64 * len(places)
        while True:
            query, position = np.empty(capacity, np.int32), np.empty(capacity, np.int32)
            count = _table(letters, places, query_of, batch.offsets, size, order, scores,
                           np.ascontiguousarray(scoring.matrix.diagonal()), threshold, starts, query, position, words)
            if count <= capacity:
                break
            capacity = int(count)
        arrays = {"starts": starts, "query": query[:count], "position": position[:count]}
        context.count("entries", int(count))
        return Index(KIND, "query", arrays, {"word_size": size, "threshold": threshold})
