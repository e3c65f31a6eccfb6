"""Query-side word index: for every word of the alphabet the query positions that it hits (cuBLASTP section 2.1).

A word hits a query position when it scores at least the threshold against the query's word there. A query word that
scores less than that with itself (it holds X, * or the like) is hit by itself all the same. Words over all 27 residues
count, not just the 20 amino acids. Masked query positions are in no word.
"""

from __future__ import annotations

import numpy as np
from seqloom.core.context import Context
from seqloom.core.index import Index
from seqloom.core.sequences import ModelBatch, SequenceBatch
from seqloom.core.stages import Footprint, IndexStage, Shape
from seqloom.plugins.protein_blast.scoring import ProteinBlastScoring, read_as_query
from seqloom.plugins.protein_blast.word_alphabet import WordAlphabet, word_alphabet
from seqloom.plugins.protein_blast.words import RESIDUES, spread, word_codes, word_starts

KIND = "neighbourhood-words"


def neighbours(word: np.ndarray, alphabet: WordAlphabet) -> np.ndarray:
    """i8[m]: ascending numbers of the words that score at least the threshold with `word` (codes), and its own."""
    best = alphabet.scores[word].max(axis=1)
    numbers, scores = np.zeros(1, np.int64), np.zeros(1, np.int64)
    for place, residue in enumerate(word):
        numbers = np.add.outer(numbers * alphabet.symbols, np.arange(alphabet.symbols)).reshape(-1)
        scores = np.add.outer(scores, alphabet.scores[residue]).reshape(-1)
        within_reach = scores + best[place + 1 :].sum() >= alphabet.threshold
        numbers, scores = numbers[within_reach], scores[within_reach]
    return np.union1d(numbers, word_codes(alphabet.codes[word], alphabet.size, alphabet.symbols))


def indexable_places(queries: SequenceBatch, valid: np.ndarray, alphabet: WordAlphabet) -> np.ndarray:
    """i8[m]: where words of queries (masked) begin that are looked for. `valid`: bool[k]; other queries have none."""
    known = alphabet.codes[read_as_query(queries.searched())] < alphabet.symbols
    usable = queries.indexable() & known & np.repeat(valid, queries.lengths)
    return word_starts(queries.offsets, alphabet.size, usable)


def neighbourhood_table(queries: SequenceBatch, valid: np.ndarray, alphabet: WordAlphabet) -> dict[str, np.ndarray]:
    """Positions by word: `query[starts[w]:starts[w + 1]]` and `position[…]` are the places that word `w` hits.

    Args:
        queries: masked query batch.
        valid: bool[k]; queries without statistics are left out.

    Returns:
        starts i8[words + 1]; query i4[m] (place in the batch) and position i4[m], ascending within a word; codes
        u1[28], of the alphabet.
    """
    places = indexable_places(queries, valid, alphabet)
    residues = read_as_query(queries.searched())
    found = np.lib.stride_tricks.sliding_window_view(residues, alphabet.size)[places] if len(places) else (
        np.empty((0, alphabet.size), np.uint8))
    distinct, which = np.unique(found, axis=0, return_inverse=True)
    which = which.reshape(-1)
    near = [neighbours(word, alphabet) for word in distinct]
    # Every position takes a copy of the neighbours of its word.
    sizes = np.array([len(codes) for codes in near], np.int64)
    firsts = np.cumsum(sizes) - sizes
    codes = np.concatenate(near)[spread(firsts[which], sizes[which])] if near else np.empty(0, np.int64)
    entries = np.repeat(places, sizes[which])
    order = np.argsort(codes, kind="stable")
    entries = entries[order]
    query = np.searchsorted(queries.offsets, entries, "right") - 1
    starts = np.zeros(alphabet.words + 1, np.int64)
    np.cumsum(np.bincount(codes, minlength=alphabet.words), out=starts[1:])
    return {
        "starts": starts,
        "query": query.astype(np.int32),
        "position": (entries - queries.offsets[query]).astype(np.int32),
        "codes": alphabet.codes,
    }


class NeighbourhoodWords(IndexStage):
    """Query positions by neighbourhood word, as a table over all words."""

    name = "neighbourhood-words"
    backend = "reference"
    side = "query"
    provides = KIND
    scoring = ProteinBlastScoring

    def footprint(self, shape: Shape) -> Footprint:
        return index_footprint(shape)

    def run(self, context: Context, batch: SequenceBatch | ModelBatch) -> Index:
        assert isinstance(batch, SequenceBatch)
        alphabet = word_alphabet(context.options)
        arrays = neighbourhood_table(batch, context.scoring.valid, alphabet)
        context.count("entries", len(arrays["query"]))
        return Index(KIND, "query", arrays, parameters_of(alphabet))


def parameters_of(alphabet: WordAlphabet) -> dict[str, int]:
    """What an index of words says of them."""
    return {"word_size": alphabet.size, "threshold": alphabet.threshold, "symbols": alphabet.symbols}


def index_footprint(shape: Shape) -> Footprint:
    """A place for every word, and the neighbours of the words of the queries: a hundred, but many of long words."""
    if shape.options is None:
        return Footprint(host=8 * RESIDUES**3 + 100 * BYTES_PER_NEIGHBOUR * shape.query_residues)
    alphabet = word_alphabet(shape.options)
    excess = max(0.0, shape.options.word_threshold() - USUAL_THRESHOLD)
    near = max(100, alphabet.words * NEAR * 0.5 ** (excess / HALVING) if alphabet.size > USUAL_SIZE else 0)
    return Footprint(host=int(8 * alphabet.words + near * BYTES_PER_NEIGHBOUR * shape.query_residues))


BYTES_PER_NEIGHBOUR = 40
USUAL_SIZE = 4
NEAR, USUAL_THRESHOLD, HALVING = 0.03, 11, 2
"""Share of all words longer than usual that are neighbours of one at a threshold, and by how much the threshold rises
for half of them."""
