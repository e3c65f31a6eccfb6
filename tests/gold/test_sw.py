"""Scores of ``sw`` against those of parasail and ssearch36 on real proteins."""

from collections.abc import Callable

import numpy as np
import pytest
from seqloom.core.alphabet import PROTEIN
from seqloom.core.context import Scoring
from seqloom.core.sequences import SequenceBatch
from seqloom.plugins.smith_waterman.matrices import printed_matrix
from seqloom.plugins.smith_waterman.recurrence_reference import packed_chunks
from seqloom.plugins.smith_waterman.seed_reference import best_scores

from tests.plugins.smith_waterman.kernels import cpu_scores
from tests.shared import needs_shared, read_fasta, read_text

pytestmark = needs_shared
QUERIES = ("q127", "q514", "q1042")


def reference_scores(query: np.ndarray, targets: list[np.ndarray], scoring: Scoring) -> list[int]:
    return np.concatenate([best_scores(query, packed) for _, packed in packed_chunks(targets, scoring, 1 << 16)]
                          ).tolist()


def scores_in_lanes(query: np.ndarray, targets: list[np.ndarray], scoring: Scoring) -> list[int]:
    return cpu_scores(query, SequenceBatch.of(PROTEIN, targets), scoring)


def compare(step: int, scores: Callable[..., list[int]]) -> int:
    """Number of pairs with every ``step``-th protein that were compared; fails on the first query that differs."""
    wanted: dict[str, list[int]] = {}
    for line in read_text("gold/sw_scores.small.tsv.gz").splitlines()[1:]:
        query, _, _, score, other = line.split("\t")
        assert score == other
        wanted.setdefault(query, []).append(int(score))
    _, proteins = read_fasta("data/proteins/small.fasta")
    targets = [PROTEIN.encode(p) for p in proteins[::step]]
    scoring = Scoring(printed_matrix("BLOSUM62"), 11, 1)
    compared = 0
    for name in QUERIES:
        (header,), (residues,) = read_fasta(f"data/proteins/{name}.fasta")
        found = scores(PROTEIN.encode(residues), targets, scoring)
        assert found == wanted[header][::step]
        compared += len(found)
    return compared


def test_a_sample_of_the_pairs():
    assert compare(20, reference_scores) == 300


def test_all_pairs_on_the_cpu():
    assert compare(1, scores_in_lanes) == 6000


@pytest.mark.gold
def test_all_pairs():
    assert compare(1, reference_scores) == 6000
