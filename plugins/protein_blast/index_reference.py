"""Query-side word index: for every word of the alphabet the query positions that it hits (cuBLASTP section 2.1).

A word hits a query position when it scores at least the threshold against the query's word there. A query word that
scores less than that with itself (it holds X, * or the like) is hit by itself all the same. Words over all 27 letters
count, not just the 20 amino acids. Masked query positions are in no word.
"""

from __future__ import annotations

import numpy as np
from seqloom.core.context import Context
from seqloom.core.index import Index
from seqloom.core.sequences import ModelBatch, SequenceBatch
from seqloom.core.stages import Footprint, IndexStage, Shape
from seqloom.plugins.protein_blast.scoring import ProteinBlastScoring, read_as_query
from seqloom.plugins.protein_blast.words import LETTERS, spread, word_codes, word_starts

KIND = "neighbourhood-words"


def neighbours(word: int, word_size: int, matrix: np.ndarray, threshold: int) -> np.ndarray:
    """i8[m]: ascending numbers of the words that score at least `threshold` with `word`, and `word` itself."""
    scores = np.zeros(1, np.int64)
    for place in reversed(range(word_size)):
        letter = word // LETTERS**place % LETTERS
        scores = np.add.outer(scores, matrix[letter]).reshape(-1)
    scores[word] = max(scores[word], threshold)
    return np.flatnonzero(scores >= threshold)


def neighbourhood_table(
    queries: SequenceBatch, valid: np.ndarray, matrix: np.ndarray, word_size: int, threshold: int
) -> dict[str, np.ndarray]:
    """Positions by word: `query[starts[w]:starts[w + 1]]` and `position[…]` are the places that word `w` hits.

    Args:
        queries: masked query batch.
        valid: bool[k]; queries without statistics are left out.

    Returns:
        starts i8[28^w + 1]; query i4[m] (place in the batch) and position i4[m], ascending within a word.
    """
    usable = queries.indexable() & np.repeat(valid, queries.lengths)
    places = word_starts(queries.offsets, word_size, usable)
    words = word_codes(read_as_query(queries.searched()), word_size)[places]
    distinct, which = np.unique(words, return_inverse=True)
    near = [neighbours(int(word), word_size, matrix, threshold) for word in distinct]
    # Every position takes a copy of the neighbours of its word.
    sizes = np.array([len(codes) for codes in near], np.int64)
    firsts = np.cumsum(sizes) - sizes
    codes = np.concatenate(near)[spread(firsts[which], sizes[which])] if near else np.empty(0, np.int64)
    entries = np.repeat(places, sizes[which])
    order = np.argsort(codes, kind="stable")
    entries = entries[order]
    query = np.searchsorted(queries.offsets, entries, "right") - 1
    starts = np.zeros(LETTERS**word_size + 1, np.int64)
    np.cumsum(np.bincount(codes, minlength=LETTERS**word_size), out=starts[1:])
    return {
        "starts": starts,
        "query": query.astype(np.int32),
        "position": (entries - queries.offsets[query]).astype(np.int32),
    }


class NeighbourhoodWords(IndexStage):
    """Query positions by neighbourhood word, as a table over all words."""

    name = "neighbourhood-words"
    backend = "reference"
    side = "query"
    provides = KIND
    scoring = ProteinBlastScoring

    def footprint(self, shape: Shape) -> Footprint:
        return Footprint(host=LETTERS**3 * 8 + 100 * 40 * shape.query_letters)

    def run(self, context: Context, batch: SequenceBatch | ModelBatch) -> Index:
        assert isinstance(batch, SequenceBatch)
        options, scoring = context.options, context.scoring
        threshold = options.neighbour_threshold()
        arrays = neighbourhood_table(batch, scoring.valid, scoring.matrix, options.word_size, threshold)
        context.count("entries", len(arrays["query"]))
        return Index(KIND, "query", arrays, {"word_size": options.word_size, "threshold": threshold})
