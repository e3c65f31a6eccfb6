"""Protein scoring matrices in the program's residue codes: `protein_matrix("BLOSUM62")[query_code, target_code]`."""

from __future__ import annotations

from functools import cache

import numpy as np
from seqloom.core.errors import UnknownNameError
from seqloom.plugins.common.joint_tables import RESIDUES as JOINT_RESIDUES
from seqloom.plugins.common.joint_tables import STOP_RATIOS
from seqloom.plugins.common.joint_tables import TRIANGLES as JOINT_TRIANGLES
from seqloom.plugins.common.matrix_tables import RESIDUES, TRIANGLES

PROTEIN_CODES = "-ABCDEFGHIKLMNPQRSTVWXYZU*OJ"
FORBIDDEN = -32768
"""Score of code 0 against everything: no alignment crosses it."""

AMBIGUOUS = {"B": "DN", "Z": "EQ", "J": "IL"}
"""Residues that each ambiguous one stands for."""
UNKNOWN_RATIO, STOP_WITH_STOP = 0.75, 1.333
"""Frequency ratios of X with anything, and of two stops."""

_READ_AS = {"U": "C", "O": "X"}


@cache
def protein_matrix(name: str) -> np.ndarray:
    """Matrix `name` (see `MATRIX_NAMES`) as read-only i4[28, 28] in NCBIstdaa order, raw score units.

    U scores as C and O as X; code 0 scores `FORBIDDEN`. An unknown name raises `UnknownNameError`.
    """
    if name not in TRIANGLES:
        raise UnknownNameError("protein matrix", name, MATRIX_NAMES)
    printed = np.zeros((len(RESIDUES), len(RESIDUES)), dtype=np.int32)
    for row, line in enumerate(TRIANGLES[name].split("\n")[1:-1]):
        printed[row, : row + 1] = [int(score) for score in line.split()[1:]]
    printed += np.tril(printed, -1).T
    places = [RESIDUES.index(_READ_AS.get(residue, residue)) for residue in PROTEIN_CODES[1:]]
    matrix = np.full((len(PROTEIN_CODES), len(PROTEIN_CODES)), FORBIDDEN, dtype=np.int32)
    matrix[1:, 1:] = printed[np.ix_(places, places)]
    matrix.flags.writeable = False
    return matrix


MATRIX_NAMES = tuple(TRIANGLES)
ADJUSTABLE = tuple(JOINT_TRIANGLES)
"""Matrices that frequencies of aligned residues are known of, so that scores can be made for other compositions."""


@cache
def joint_probabilities(name: str) -> np.ndarray:
    """Joint probabilities of aligned residues behind matrix `name`: read-only f8[20, 20] over `joint_tables.RESIDUES`,
    with the sum 1."""
    size = len(JOINT_RESIDUES)
    joint = np.zeros((size, size))
    words = [word for word in JOINT_TRIANGLES[name].split() if not word.isalpha()]
    joint[np.tril_indices(size)] = [float(word) for word in words]
    joint += np.tril(joint, -1).T
    joint.flags.writeable = False
    return joint


@cache
def frequency_ratios(name: str) -> np.ndarray:
    """How much more often residues are aligned than by chance: read-only f8[28, 28] in NCBIstdaa order.

    The logarithms of these are matrix `name` before rounding. B, Z and J take what their two residues have together; U
    and O are read as X. Nine digits, as in the peer. Code 0 has 0.
    """
    joint = joint_probabilities(name)
    letters = [*JOINT_RESIDUES, *AMBIGUOUS]
    members = np.zeros((len(letters), len(JOINT_RESIDUES)))
    for row, letter in enumerate(letters):
        members[row, [JOINT_RESIDUES.index(residue) for residue in AMBIGUOUS.get(letter, letter)]] = 1
    by_chance = members @ joint.sum(axis=1)
    together = members @ joint @ members.T / np.outer(by_chance, by_chance)
    ratios = np.full((len(PROTEIN_CODES), len(PROTEIN_CODES)), UNKNOWN_RATIO)
    places = [PROTEIN_CODES.index(letter) for letter in letters]
    ratios[np.ix_(places, places)] = [[float(f"{value:.8e}") for value in row] for row in together]
    stop = PROTEIN_CODES.index("*")
    ratios[stop, :] = ratios[:, stop] = STOP_RATIOS[name]
    ratios[stop, stop] = STOP_WITH_STOP
    ratios[0, :] = ratios[:, 0] = 0
    ratios.flags.writeable = False
    return ratios
