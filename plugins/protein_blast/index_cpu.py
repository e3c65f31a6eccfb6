"""``neighbourhood-words`` on the CPU: neighbours by a search that stops early, positions by counting sort."""

import numpy as np
from seqloom.core.context import Context
from seqloom.core.index import Index
from seqloom.core.kernels.jit import kernel
from seqloom.core.sequences import ModelBatch, SequenceBatch
from seqloom.plugins.protein_blast.index_reference import (
    KIND,
    NeighbourhoodWords,
    indexable_places,
    parameters_of,
)
from seqloom.plugins.protein_blast.scoring import read_as_query
from seqloom.plugins.protein_blast.word_alphabet import WordAlphabet, word_alphabet


@kernel
def _neighbours(residues, begin, size, codes, sorted_symbols, sorted_scores, own_scores, threshold, words):
    """Write the words that score at least ``threshold`` with the word at ``begin``, and that word; their number.

    codes: u1[residues], symbols of residues. sorted_symbols, sorted_scores: i4[residues, symbols], per residue the
    symbols by falling score: the first one that can't reach the threshold with the best of what follows ends its
    branch. own_scores: i4[residues], with their own symbols.
    """
    count = 0
    symbols = sorted_symbols.shape[1]
    own, own_score = np.int64(0), 0
    rest = np.zeros(size + 1, np.int64)
    for place in range(size - 1, -1, -1):
        rest[place] = rest[place + 1] + sorted_scores[residues[begin + place], 0]
    for place in range(size):
        own = own * symbols + codes[residues[begin + place]]
        own_score += own_scores[residues[begin + place]]
    if own_score < threshold:
        words[0] = own
        count = 1
    choice = np.full(size, -1, np.int64)
    score = np.zeros(size + 1, np.int64)
    prefix = np.zeros(size + 1, np.int64)
    depth = 0
    while depth >= 0:
        choice[depth] += 1
        residue = residues[begin + depth]
        spent = choice[depth] == symbols
        if spent or score[depth] + sorted_scores[residue, choice[depth]] + rest[depth + 1] < threshold:
            choice[depth] = -1
            depth -= 1
            continue
        score[depth + 1] = score[depth] + sorted_scores[residue, choice[depth]]
        prefix[depth + 1] = prefix[depth] * symbols + sorted_symbols[residue, choice[depth]]
        if depth == size - 1:
            words[count] = prefix[size]
            count += 1
        else:
            depth += 1
    return count


@kernel
def _table(residues, places, query_of, offsets, size, codes, sorted_symbols, sorted_scores, own_scores, threshold,
           starts, query, position, words):
    """Fill ``starts``, and ``query`` and ``position`` if they are large enough; returns the number of entries.

    Two passes over the places: count entries by word, then put them in their word's stretch in order of place.
    """
    starts[:] = 0
    for fill in range(2):
        for place in places:
            count = _neighbours(residues, place, size, codes, sorted_symbols, sorted_scores, own_scores, threshold,
                                words)
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


def word_table(context: Context, batch: SequenceBatch, alphabet: WordAlphabet) -> dict[str, np.ndarray]:
    """As ``neighbourhood_table``, of the valid ones of these queries."""
    places = indexable_places(batch, context.scoring.valid, alphabet)
    residues = read_as_query(batch.searched())
    query_of = np.repeat(np.arange(len(batch), dtype=np.int32), batch.lengths)
    order = np.argsort(-alphabet.scores, axis=1, kind="stable").astype(np.int32)
    scores = np.take_along_axis(alphabet.scores, order, axis=1)
    starts = np.zeros(alphabet.words + 1, np.int64)
    words = np.empty(alphabet.words + 1, np.int64)
    capacity = 64 * len(places)
    while True:
        query, position = np.empty(capacity, np.int32), np.empty(capacity, np.int32)
        count = int(_table(residues, places, query_of, batch.offsets, alphabet.size, alphabet.codes, order, scores,
                           alphabet.own_scores, alphabet.threshold, starts, query, position, words))
        if count <= capacity:
            return {"starts": starts, "query": query[:count], "position": position[:count], "codes": alphabet.codes}
        capacity = count


class NeighbourhoodWordsCpu(NeighbourhoodWords):
    __doc__ = NeighbourhoodWords.__doc__
    backend = "cpu"

    def run(self, context: Context, batch: SequenceBatch | ModelBatch) -> Index:
        assert isinstance(batch, SequenceBatch)
        alphabet = word_alphabet(context.options)
        arrays = word_table(context, batch, alphabet)
        context.count("entries", len(arrays["query"]))
        return Index(KIND, "query", arrays, parameters_of(alphabet))
