"""Protein matrices against values that blastp was seen to use, and against the public tables."""

import numpy as np
import pytest
from seqloom.core.alphabet import PROTEIN
from seqloom.core.errors import UnknownNameError
from seqloom.plugins.common.matrices import FORBIDDEN, MATRIX_NAMES, protein_matrix

RESIDUES = PROTEIN.letters


def score(name: str, first: str, second: str) -> int:
    return int(protein_matrix(name)[RESIDUES.index(first), RESIDUES.index(second)])


@pytest.mark.parametrize("name", MATRIX_NAMES)
def test_shape_symmetry_and_copies(name):
    matrix = protein_matrix(name)
    assert matrix.shape == (28, 28) and matrix.dtype == np.int32
    assert (matrix == matrix.T).all()
    assert (matrix[0] == FORBIDDEN).all()
    for residue, read_as in (("U", "C"), ("O", "X")):
        assert (matrix[RESIDUES.index(residue)] == matrix[RESIDUES.index(read_as)]).all()
    assert score(name, "X", "A") == score(name, "X", "X") == (-5 if name == "IDENTITY" else -1)
    assert score(name, "*", "*") == (9 if name == "IDENTITY" else 1)
    with pytest.raises(ValueError):
        matrix[1, 1] = 0


@pytest.mark.parametrize(
    "pair, expected", [("JI", 3), ("JJ", 3), ("UI", -1), ("UU", 9), ("OX", -1), ("BI", -3), ("ZI", -3), ("*I", -4)]
)
def test_single_substitutions_of_blosum62(pair, expected):
    assert score("BLOSUM62", *pair) == expected


@pytest.mark.parametrize("name", [name for name in MATRIX_NAMES if name not in ("BLOSUM80", "IDENTITY")])
def test_amino_acids_against_biopython(name):
    """BLOSUM80 is left out: Biopython has it in other units than BLAST+; it has no IDENTITY."""
    table = pytest.importorskip("Bio.Align.substitution_matrices").load(name)
    for first in "ARNDCQEGHILKMFPSTWYV":
        for second in "ARNDCQEGHILKMFPSTWYV":
            assert score(name, first, second) == table[first][second]


def test_unknown_matrix():
    with pytest.raises(UnknownNameError, match="BLOSUM62"):
        protein_matrix("BLOSUM61")
