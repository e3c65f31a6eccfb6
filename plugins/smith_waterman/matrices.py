"""Residue scores of exact Smith–Waterman: the protein matrices as they are printed, and match/mismatch for nucleotides.

The printed files (NCBI's, as ssearch36 and parasail read them) differ from what blastp uses in the residues B, Z and X
only; X, for one, scores 0 against A and −2 against C in BLOSUM62, where blastp has −1 throughout. U scores as C, O and
J as X. BLOSUM80's printed file is in another unit than its published statistics; here it is blastp's matrix.
"""

from functools import cache

import numpy as np
from seqloom.core.alphabet import NUCLEOTIDE, PROTEIN
from seqloom.plugins.common.matrices import protein_matrix
from seqloom.plugins.common.matrix_file import BASES, MEMBERS

PRINTED_RESIDUES = "ARNDCQEGHILKMFPSTWYVBZX*"
PRINTED_ROWS = {
    "BLOSUM45": """
        B -1 -1 4 5 -2 0 1 -1 0 -3 -3 0 -2 -3 -2 0 0 -4 -2 -3 4 2 -1 -5
        Z -1 0 0 1 -3 4 4 -2 0 -3 -2 1 -1 -3 -1 0 -1 -2 -2 -3 2 4 -1 -5
        X 0 -1 -1 -1 -2 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 0 0 -2 -1 -1 -1 -1 -1 -5
    """,
    "BLOSUM50": """
        B -2 -1 4 5 -3 0 1 -1 0 -4 -4 0 -3 -4 -2 0 0 -5 -3 -4 5 2 -1 -5
        Z -1 0 0 1 -3 4 5 -2 0 -3 -3 1 -1 -4 -1 0 -1 -2 -2 -3 2 5 -1 -5
        X -1 -1 -1 -1 -2 -1 -1 -2 -1 -1 -1 -1 -1 -2 -2 -1 0 -3 -1 -1 -1 -1 -1 -5
    """,
    "BLOSUM62": """
        B -2 -1 3 4 -3 0 1 -1 0 -3 -4 0 -3 -3 -2 0 -1 -4 -3 -3 4 1 -1 -4
        Z -1 0 0 1 -3 3 4 -2 0 -3 -3 1 -1 -3 -1 0 -1 -3 -2 -2 1 4 -1 -4
        X 0 -1 -1 -1 -2 -1 -1 -1 -1 -1 -1 -1 -1 -1 -2 0 0 -2 -1 -1 -1 -1 -1 -4
    """,
    "BLOSUM90": """
        B -2 -2 4 4 -4 -1 0 -2 -1 -5 -5 -1 -4 -4 -3 0 -1 -6 -4 -4 4 0 -2 -6
        Z -1 0 -1 0 -5 4 4 -3 0 -4 -4 1 -2 -4 -2 -1 -1 -4 -3 -3 0 4 -1 -6
        X -1 -2 -2 -2 -3 -1 -2 -2 -2 -2 -2 -1 -1 -2 -2 -1 -1 -3 -2 -2 -2 -1 -2 -6
    """,
    "PAM30": """
        B -3 -7 6 6 -12 -3 1 -3 -1 -6 -9 -2 -10 -10 -7 -1 -3 -10 -6 -8 6 0 -5 -17
        Z -3 -4 -3 1 -14 6 6 -5 -1 -6 -7 -4 -5 -13 -4 -5 -6 -14 -9 -6 0 6 -5 -17
        X -3 -6 -3 -5 -9 -5 -5 -5 -5 -5 -6 -5 -5 -8 -5 -3 -4 -11 -7 -5 -5 -5 -5 -17
    """,
    "PAM70": """
        B -1 -4 5 5 -8 -1 2 -1 0 -4 -6 -1 -6 -7 -4 0 -1 -7 -4 -5 5 1 -2 -11
        Z -1 -2 -1 2 -9 5 5 -3 1 -4 -4 -2 -3 -9 -2 -2 -3 -10 -7 -4 1 5 -3 -11
        X -2 -3 -2 -3 -6 -2 -3 -3 -3 -3 -4 -3 -3 -5 -3 -1 -2 -7 -5 -2 -2 -3 -3 -11
    """,
    "PAM250": """
        B 0 -1 2 3 -4 1 3 0 1 -2 -3 1 -2 -4 -1 0 0 -5 -3 -2 3 2 -1 -8
        Z 0 0 1 3 -5 3 3 0 2 -2 -3 0 -2 -5 0 0 -1 -6 -4 -2 2 3 -1 -8
        X 0 -1 0 -1 -3 -1 -1 -1 -1 -1 -1 -1 -1 -2 -1 0 0 -4 -2 -1 -1 -1 -1 -8
    """,
}
"""Rows B, Z and X of the printed matrices, columns in the order of ``PRINTED_RESIDUES``."""

_READ_AS = {"U": "C", "O": "X", "J": "X"}
_BASES = {base: base for base in BASES} | dict(MEMBERS["nucleotide"])


@cache
def printed_matrix(name: str) -> np.ndarray:
    """Printed matrix ``name`` as read-only i4[28, 28] over protein codes, rows query residues, in raw score units.

    Code 0 (gap) keeps a score that no alignment crosses. Raises ``UnknownNameError`` for an unknown name.
    """
    matrix = protein_matrix(name).copy()
    for line in PRINTED_ROWS.get(name, "").split("\n")[1:-1]:
        residue, *scores = line.split()
        for other, score in zip(PRINTED_RESIDUES, scores, strict=True):
            row, column = PROTEIN.letters.index(residue), PROTEIN.letters.index(other)
            matrix[row, column] = matrix[column, row] = int(score)
    codes = np.arange(len(PROTEIN))
    for residue, other in _READ_AS.items():
        codes[PROTEIN.letters.index(residue)] = PROTEIN.letters.index(other)
    matrix = matrix[np.ix_(codes, codes)]
    matrix.setflags(write=False)
    return matrix


@cache
def nucleotide_matrix(match: int, mismatch: int) -> np.ndarray:
    """i4[16, 16] over nucleotide codes: ``match`` for equal bases, ``mismatch`` for unequal ones.

    A residue that stands for several bases scores the mean over all pairs of bases that it may mean, rounded down. The
    gap code scores as far below zero as in the protein matrices.
    """
    matrix = np.full((len(NUCLEOTIDE), len(NUCLEOTIDE)), protein_matrix("BLOSUM62")[0, 0], np.int32)
    for row, a in enumerate(NUCLEOTIDE.letters[:-1]):
        for column, b in enumerate(NUCLEOTIDE.letters[:-1]):
            pairs = [match if x == y else mismatch for x in _BASES[a] for y in _BASES[b]]
            matrix[row, column] = sum(pairs) // len(pairs)
    matrix.setflags(write=False)
    return matrix
