"""Exact ungapped scores against all segments of all diagonals."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from seqloom.core.alphabet import PROTEIN
from seqloom.core.sequences import SequenceBatch
from seqloom.plugins.common.matrices import protein_matrix
from seqloom.plugins.protein_blast.scan_reference import best_segments

MATRIX = protein_matrix("BLOSUM62")
protein = st.text(alphabet="ARNDCQEGHILKWXB*", max_size=12)


def slow_best(query: np.ndarray, target: np.ndarray) -> int:
    best = 0
    for i in range(len(query)):
        for j in range(len(target)):
            total = 0
            for k in range(min(len(query) - i, len(target) - j)):
                total += int(MATRIX[query[i + k], target[j + k]])
                best = max(best, total)
    return best


@settings(max_examples=50, deadline=None)
@given(protein, st.lists(protein, min_size=1, max_size=4))
def test_best_segments(query, texts):
    targets = SequenceBatch.of(PROTEIN, texts)
    codes = PROTEIN.encode(query)
    expected = [slow_best(codes, targets[place]) for place in range(len(targets))]
    assert best_segments(codes, targets, MATRIX).tolist() == expected
