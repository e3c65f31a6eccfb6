"""Residues as a profile HMM sees them: order, background, degenerate residues.

Emissions of a model of proteins are listed in the order ``ACDEFGHIKLMNPQRSTVWY``; sequences come in core's NCBIstdaa
codes (``-ABCDEFGHIKLMNPQRSTVWXYZU*OJ``). Those of a model of nucleotides are ``ACGT``, and sequences come in blastna
codes. Score tables of this family are indexed by the code, so a table has 28 rows, or 16; how many it has says which
residues they are of. A degenerate residue's value is some average over its members; gap and ``*`` are never scored by
a match state.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from seqloom.core.alphabet import NUCLEOTIDE, PROTEIN, Alphabet
from seqloom.core.classes import dataclass

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Table = NDArray[np.float32]

MODEL_RESIDUES = "ACDEFGHIKLMNPQRSTVWY"
STORED_RESIDUES = PROTEIN.letters
N_CODES = len(STORED_RESIDUES)

# Background frequencies of HMMER 3 (Swiss-Prot 50.8), in MODEL_RESIDUES order.
BACKGROUND = np.array(
    [
        0.0787945, 0.0151600, 0.0535222, 0.0668298, 0.0397062, 0.0695071, 0.0229198, 0.0590092, 0.0594422, 0.0963728,
        0.0237718, 0.0414386, 0.0482904, 0.0395639, 0.0540978, 0.0683364, 0.0540687, 0.0673417, 0.0114135, 0.0304133,
    ],
    dtype=np.float32,
)  # fmt: skip



@dataclass(frozen=True)
class ResidueSet:
    """The residues of the models and sequences of one alphabet.

    Attributes:
        alphabet: of the sequences.
        letters: the residues that models emit, in the order of their files.
        background: f32[K] frequency of each.
        members: for each stored code the model residues that it stands for, ascending; empty for gap and ``*``.
        code_of_residue: u8[K] stored code of each model residue.
        conserved: probability from which a consensus residue is shown in upper case.
        files: what ALPH says in files of such models, and the letters of their line HMM.
    """

    alphabet: Alphabet
    letters: str
    background: NDArray[np.float32]
    members: tuple[tuple[int, ...], ...]
    code_of_residue: NDArray[np.uint8]
    conserved: float
    files: Mapping[str, str]

    @classmethod
    def of(cls, alphabet: Alphabet, letters: str, background: NDArray[np.float32], degenerate: Mapping[str, str],
           conserved: float, files: Mapping[str, str]) -> ResidueSet:
        """``degenerate``: letters that stand for several or other residues, and these."""
        members = tuple(tuple(sorted(letters.index(m) for m in degenerate.get(residue, residue) if m in letters))
                        for residue in alphabet.letters)
        codes = np.array([alphabet.letters.index(letter) for letter in letters], np.uint8)
        return cls(alphabet, letters, background, members, codes, conserved, files)

    @cached_property
    def arrays(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """For kernels: ``code_of_residue``, how many members each code has, and i8[codes, K] which, padded by 0."""
        counts = np.array([len(members) for members in self.members])
        padded = [[*members, *[0] * (len(self.letters) - len(members))] for members in self.members]
        return self.code_of_residue.astype(np.int64), counts, np.array(padded)


AMINO = ResidueSet.of(PROTEIN, MODEL_RESIDUES, BACKGROUND,
                      {"B": "DN", "J": "IL", "Z": "EQ", "U": "C", "O": "K", "X": MODEL_RESIDUES}, 0.5,
                      {"amino": MODEL_RESIDUES})
NUCLEIC = ResidueSet.of(NUCLEOTIDE, "ACGT", np.full(4, 0.25, np.float32),
                        {"R": "AG", "Y": "CT", "M": "AC", "K": "GT", "S": "CG", "W": "AT", "H": "ACT", "B": "CGT",
                         "V": "ACG", "D": "AGT", "N": "ACGT"}, 0.9, {"dna": "ACGT", "rna": "ACGU"})
_SETS = {size: residues for residues in (AMINO, NUCLEIC) for size in (len(residues.letters), len(residues.members))}

MEMBERS, CODE_OF_RESIDUE = AMINO.members, AMINO.code_of_residue


def residues_of(size: int) -> ResidueSet:
    """The residues of a table with so many rows: one for each model residue, or one for each stored code."""
    return _SETS[size]


def table_by_code(rows: Table, combine: Callable[[Table, tuple[int, ...]], Table], nothing: float) -> Table:
    """Spread a table over the model residues to all stored codes.

    ``rows`` is f32[K, ...]; ``combine(rows, members)`` gives the row of a degenerate residue; codes without members
    (gap, ``*``) get ``nothing``. Returns f32[codes, ...].
    """
    residues = residues_of(len(rows))
    table = np.full((len(residues.members), *rows.shape[1:]), nothing, dtype=np.float32)
    for code, members in enumerate(residues.members):
        if residues.alphabet.letters[code] in residues.letters:
            table[code] = rows[members[0]]
        elif members:
            table[code] = combine(rows, members)
    return table


def expected_score(rows: Table, members: tuple[int, ...]) -> Table:
    """Mean score of the members weighted by background: f32 sums in ascending order (match scores)."""
    background = residues_of(len(rows)).background
    total = np.zeros_like(rows[0])
    weight = np.float32(0.0)
    for member in members:
        total = total + rows[member] * background[member]
        weight = weight + background[member]
    return total / weight


def mean_odds(rows: Table, members: tuple[int, ...]) -> Table:
    """Plain mean of the members: f32 sum in ascending order over their number (null2 odds)."""
    total = np.zeros_like(rows[0])
    for member in members:
        total = total + rows[member]
    return total / np.float32(len(members))


def summed_odds(rows: Table, members: tuple[int, ...]) -> Table:
    """Probability of the members over their background probability; ``rows`` are probabilities (bias filter)."""
    background = residues_of(len(rows)).background
    probability = np.zeros_like(rows[0])
    weight = np.float32(0.0)
    for member in members:
        probability = probability + rows[member]
        weight = weight + background[member]
    return probability / weight
