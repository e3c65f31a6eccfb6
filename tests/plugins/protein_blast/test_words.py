"""Word index, automaton and word hits against searches of all words and all places."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from seqloom.core.alphabet import PROTEIN
from seqloom.core.index import Index
from seqloom.core.sequences import Intervals, SequenceBatch
from seqloom.plugins.common.matrices import protein_matrix
from seqloom.plugins.protein_blast.dfa_reference import transitions, walk
from seqloom.plugins.protein_blast.index_reference import KIND, neighbourhood_table, neighbours
from seqloom.plugins.protein_blast.seed_reference import word_hits
from seqloom.plugins.protein_blast.words import word_codes, word_starts

MATRIX = protein_matrix("BLOSUM62")
protein = st.text(alphabet=PROTEIN.letters[1:], max_size=25)
proteins = st.lists(protein, min_size=1, max_size=4)


def index_of(queries: SequenceBatch, word_size: int, threshold: int) -> Index:
    valid = np.ones(len(queries), bool)
    arrays = neighbourhood_table(queries, valid, MATRIX, word_size, threshold)
    arrays["transitions"] = transitions(word_size)
    return Index(KIND, "query", arrays, {"word_size": word_size, "threshold": threshold})


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(1, 27), min_size=2, max_size=2), st.integers(1, 20))
def test_neighbours_are_the_words_that_score_enough(word, threshold):
    number = word[0] * 28 + word[1]
    expected = [
        first * 28 + second
        for first in range(28)
        for second in range(28)
        if MATRIX[word[0], first] + MATRIX[word[1], second] >= threshold or [first, second] == word
    ]
    assert neighbours(number, 2, MATRIX, threshold).tolist() == expected


def test_a_word_that_scores_too_little_hits_itself_only():
    word = int(word_codes(PROTEIN.encode("XXX"), 3)[0])
    assert neighbours(word, 3, MATRIX, 11).tolist() == [word]


@settings(max_examples=40, deadline=None)
@given(proteins, proteins, st.integers(2, 3), st.integers(8, 13))
def test_hits_are_all_pairs_of_words_that_score_enough(query_texts, target_texts, word_size, threshold):
    queries = SequenceBatch.of(PROTEIN, [text.replace("O", "X") for text in query_texts])
    targets = SequenceBatch.of(PROTEIN, target_texts)
    expected = set()
    for query in range(len(queries)):
        for target in range(len(targets)):
            first, second = queries[query], targets[target]
            for i in range(len(first) - word_size + 1):
                for j in range(len(second) - word_size + 1):
                    ours, theirs = first[i : i + word_size], second[j : j + word_size]
                    if MATRIX[ours, theirs].sum() >= threshold or (ours == theirs).all():
                        expected.add((query, i, target, j))
    index = index_of(queries, word_size, threshold)
    found = list(zip(*(column.tolist() for column in word_hits(index, targets)), strict=True))
    assert len(found) == len(set(found)) and set(found) == expected
    assert [hit[2:] for hit in found] == sorted(hit[2:] for hit in found)
    walked = [
        (query, query_pos, place, target_pos)
        for place in range(len(targets))
        for query, query_pos, target_pos in walk(index, targets[place].tobytes())
    ]
    assert walked == found


def test_words_keep_out_of_masked_stretches_and_of_neighbours():
    batch = SequenceBatch.of(PROTEIN, ["ACDEFGHI", "AC", "", "KLMNP"])
    assert word_starts(batch.offsets, 3).tolist() == [0, 1, 2, 3, 4, 5, 10, 11, 12]
    masked = SequenceBatch(
        batch.alphabet, batch.residues, batch.offsets, batch.ordinals, hard=Intervals.of([(0, 3, 4)])
    )
    assert word_starts(batch.offsets, 3, masked.indexable()).tolist() == [0, 4, 5, 10, 11, 12]
