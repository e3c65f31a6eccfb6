"""Profile HMMs of nucleotides: the CPU's kernels and the reference agree, from both sides, in a database too."""

from dataclasses import replace

import numpy as np
import pytest
from seqloom.core.alphabet import NUCLEOTIDE, PROTEIN
from seqloom.core.errors import InputError
from seqloom.core.sequences import SequenceBatch
from seqloom.plugins.profile_hmm.hmmfile import ProfileHmm
from seqloom.plugins.profile_hmm.match_scores import match_scores
from seqloom.plugins.profile_hmm.packed_models import pack, unpack
from seqloom.plugins.profile_hmm.residues import NUCLEIC, residues_of
from seqloom.plugins.profile_hmm.turned import turned
from seqloom.testing import assert_same_hits, assert_same_records, check_pipeline, run_pipeline

from tests.plugins.profile_hmm.models import batch, random_model

EQUAL = {"Z": 10.0, "domZ": 10.0}


def model(length: int, seed: int) -> ProfileHmm:
    """A random model of nucleotides."""
    random = np.random.default_rng(seed)
    match = np.zeros((length + 1, 4), np.float32)
    match[1:] = random.dirichlet([0.2] * 4, length)
    consensus = "".join("ACGT"[n] for n in match[1:].argmax(axis=1))
    return replace(random_model(length, seed), match=match, composition=match[1:].mean(axis=0), consensus=consensus)


def targets(*models: ProfileHmm) -> SequenceBatch:
    """Random bases, with copies of the consensus of models, and odd bases."""
    random = np.random.default_rng(3)
    rows = []
    for copies in range(6):
        parts = ["".join(random.choice(list("ACGT"), 50)) for _ in range(copies + 1)]
        places = [models[n % len(models)].consensus for n in range(copies)]
        text = list("".join(x for pair in zip(parts, [*places, ""], strict=True) for x in pair))
        for place in random.integers(0, len(text), len(text) // 20):
            text[place] = str(random.choice(list("RYKMNBSW")))
        rows.append("".join(text))
    return SequenceBatch.of(NUCLEOTIDE, [*rows, "A", "N" * 60], [f"t{n}" for n in range(len(rows) + 2)])


@pytest.fixture(scope="module")
def both():
    models = model(30, 1), model(60, 2)
    return batch(*models), targets(*models)


def test_results_do_not_depend_on_back_ends_and_cuts(both):
    check_pipeline("hmmsearch-nucleotide", *both, least=4, backends=("reference", "cpu"))


def test_pairs_are_those_of_hmmsearch(both):
    models, sequences = both
    searched = run_pipeline("hmmsearch-nucleotide", models, sequences, EQUAL, backend="cpu")
    scanned = turned(run_pipeline("hmmscan-nucleotide", sequences, models, EQUAL, backend="cpu"))
    left, right = (hits.take(np.lexsort((hits.target, hits.query))) for hits in (searched, scanned))
    assert len(left) > 4 and np.array_equal(left.bit_score, right.bit_score)
    assert_same_records(left.alignments, right.alignments)


def test_stored_models(both):
    models, sequences = both

    def stored(one: ProfileHmm) -> ProfileHmm:
        head, body = pack(one)
        return unpack(head, lambda make: make(body))

    kept = batch(*map(stored, models.models))
    assert kept.alphabet is NUCLEOTIDE and kept[0].residues is NUCLEIC
    assert_same_hits(run_pipeline("hmmsearch-nucleotide", kept, sequences, backend="cpu"),
                     run_pipeline("hmmsearch-nucleotide", models, sequences, backend="cpu"))


def test_scores_of_ambiguous_bases_are_means():
    """R is A or G, each as likely in the background."""
    one = model(9, 5)
    scores = match_scores(one.match)
    assert scores.shape == (16, 10) and residues_of(16) is residues_of(4) is NUCLEIC
    a, g, r, gap = (NUCLEOTIDE.letters.index(letter) for letter in "AGR-")
    assert np.allclose(scores[r, 1:], (scores[a, 1:] + scores[g, 1:]) / 2, rtol=1e-5)
    assert np.isneginf(scores[gap]).all()


def test_the_other_kind_is_refused(both):
    models, sequences = both
    proteins = SequenceBatch.of(PROTEIN, ["MKV"], ["p"])
    for pipeline, queries, against in (("hmmsearch", models, proteins), ("hmmscan", proteins, models),
                                       ("hmmsearch-nucleotide", batch(random_model(5, 1)), sequences),
                                       ("hmmscan-nucleotide", sequences, batch(random_model(5, 1)))):
        with pytest.raises(InputError, match=r"compares models with .* sequences, these are models of"):
            run_pipeline(pipeline, queries, against)
