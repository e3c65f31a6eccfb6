"""Word index, automaton and word hits against searches of all words and all places."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from seqloom.core.alphabet import PROTEIN
from seqloom.core.index import Index
from seqloom.core.sequences import Intervals, SequenceBatch
from seqloom.plugins.common.matrices import protein_matrix
from seqloom.plugins.protein_blast.dfa_reference import automaton, following, walk
from seqloom.plugins.protein_blast.index_reference import KIND, neighbourhood_table, neighbours, parameters_of
from seqloom.plugins.protein_blast.options import BlastpOptions
from seqloom.plugins.protein_blast.seed_reference import word_hits
from seqloom.plugins.protein_blast.word_alphabet import WordAlphabet, word_alphabet
from seqloom.plugins.protein_blast.words import word_codes, word_starts

MATRIX = protein_matrix("BLOSUM62")
protein = st.text(alphabet=PROTEIN.letters[1:], max_size=25)
proteins = st.lists(protein, min_size=1, max_size=4)


def words_of(word_size: int, threshold: float) -> WordAlphabet:
    return word_alphabet(BlastpOptions(word_size=word_size, threshold=threshold))


def index_of(queries: SequenceBatch, alphabet: WordAlphabet) -> Index:
    arrays = neighbourhood_table(queries, np.ones(len(queries), bool), alphabet)
    return Index(KIND, "query", arrays, parameters_of(alphabet))


def automaton_of(queries: SequenceBatch, alphabet: WordAlphabet) -> Index:
    arrays = automaton(index_of(queries, alphabet).arrays, queries.offsets, alphabet.size)
    return Index("neighbourhood-dfa", "query", arrays, parameters_of(alphabet))


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(1, 27), min_size=2, max_size=2), st.integers(1, 20))
def test_neighbours_are_the_words_that_score_enough(word, threshold):
    expected = [
        first * 28 + second
        for first in range(28)
        for second in range(28)
        if MATRIX[word[0], first] + MATRIX[word[1], second] >= threshold or [first, second] == word
    ]
    assert neighbours(np.array(word), words_of(2, threshold)).tolist() == expected


def test_a_word_that_scores_too_little_hits_itself_only():
    word = PROTEIN.encode("XXX")
    assert neighbours(word, words_of(3, 11)).tolist() == word_codes(word, 3).tolist()


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
    index = index_of(queries, words_of(word_size, threshold))
    found = list(zip(*(column.tolist() for column in word_hits(index, targets)), strict=True))
    assert len(found) == len(set(found)) and set(found) == expected
    assert [hit[2:] for hit in found] == sorted(hit[2:] for hit in found)
    states = automaton_of(queries, words_of(word_size, threshold))
    walked = [
        (query, query_pos, place, target_pos)
        for place in range(len(targets))
        for query, query_pos, target_pos in walk(states, targets[place].tobytes())
    ]
    assert walked == found


def test_the_automaton_keeps_what_differs_once():
    """The paper's figure 2 with exact words: BABBC read by CBABB; no list and no row is there twice."""
    index = automaton_of(SequenceBatch.of(PROTEIN, ["KCKKWKCK"]), words_of(3, 1000))
    assert walk(index, PROTEIN.encode("WKCKK").tobytes()) == [(0, 4, 0), (0, 0, 1), (0, 5, 1), (0, 1, 2)]
    states, words, overflow = index["states"], index["words"].reshape(-1, 28), index["overflow"].tolist()
    assert overflow == [0, 2, 0, 5]  # KCK alone has two positions
    assert len(words) == len(np.unique(words, axis=0)) == 6  # behind CK, KC, KK, KW, WK, and behind all others
    assert states[:, 0].max() == 28 * 5 and np.array_equal(states[:, 1], following(3))
    place = {letter: PROTEIN.letters.index(letter) for letter in "CKW"}
    assert following(3)[28 * place["W"] + place["K"]] == 28 * place["K"]
    repeated = automaton_of(SequenceBatch.of(PROTEIN, ["WWWWW"]), words_of(3, 20))
    assert np.count_nonzero(repeated["words"]) > 10 and repeated["overflow"].tolist() == [0, 3, 0, 1, 2]


def test_words_keep_out_of_masked_stretches_and_of_neighbours():
    batch = SequenceBatch.of(PROTEIN, ["ACDEFGHI", "AC", "", "KLMNP"])
    assert word_starts(batch.offsets, 3).tolist() == [0, 1, 2, 3, 4, 5, 10, 11, 12]
    masked = SequenceBatch(
        batch.alphabet, batch.residues, batch.offsets, batch.ordinals, hard=Intervals.of([(0, 3, 4)])
    )
    assert word_starts(batch.offsets, 3, masked.indexable()).tolist() == [0, 4, 5, 10, 11, 12]


CLASSES = {"A": "A", "S": "ST", "T": "ST", "I": "IJV", "V": "IJV", "K": "KR", "R": "KR", "W": "W", "X": "", "*": ""}


@settings(max_examples=40, deadline=None)
@given(st.text(alphabet="".join(CLASSES), max_size=14), st.text(alphabet="".join(CLASSES), max_size=14),
       st.sampled_from([5, 12, 21, 30, 60]))
def test_long_words_hit_by_the_classes_of_their_residues(query: str, target: str, threshold: int):
    """A place is hit by words of the same classes, and by those whose classes score enough; X and * are in none."""
    alphabet = words_of(6, threshold)
    expected = set()
    for i in range(len(query) - 5):
        for j in range(len(target) - 5):
            ours, theirs = query[i : i + 6], target[j : j + 6]
            if not all(CLASSES[letter] for letter in ours + theirs):
                continue
            equal = all(CLASSES[a] == CLASSES[b] for a, b in zip(ours, theirs, strict=True))
            scores = [alphabet.pair_scores[PROTEIN.letters.index(a), PROTEIN.letters.index(b)]
                      for a, b in zip(ours, theirs, strict=True)]
            if equal or sum(scores) >= 100 * threshold:
                expected.add((i, j))
    queries, targets = (SequenceBatch.of(PROTEIN, [text]) for text in (query, target))
    _, query_pos, _, target_pos = word_hits(index_of(queries, alphabet), targets)
    assert sorted(zip(query_pos.tolist(), target_pos.tolist(), strict=True)) == sorted(expected)


def test_scores_of_classes_lie_between_those_of_their_residues():
    scores = words_of(7, 21).pair_scores
    place = {letter: PROTEIN.letters.index(letter) for letter in "ILVMWKX"}
    assert scores[place["I"], place["L"]] == scores[place["I"], place["V"]]
    assert 100 * MATRIX[place["I"], place["M"]] < scores[place["I"], place["L"]] < 100 * MATRIX[place["I"], place["I"]]
    assert scores[place["W"], place["W"]] > 1000 and scores[place["W"], place["X"]] < -10**6
