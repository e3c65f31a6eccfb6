"""Protein scoring matrices in the program's letter codes: `protein_matrix("BLOSUM62")[query_code, target_code]`."""

from __future__ import annotations

from functools import cache

import numpy as np
from seqloom.core.errors import UnknownNameError
from seqloom.plugins.common.matrix_tables import LETTERS, TRIANGLES

PROTEIN_CODES = "-ABCDEFGHIKLMNPQRSTVWXYZU*OJ"
FORBIDDEN = -32768
"""Score of code 0 against everything: no alignment crosses it."""

_READ_AS = {"U": "C", "O": "X"}


@cache
def protein_matrix(name: str) -> np.ndarray:
    """Matrix `name` (see `MATRIX_NAMES`) as read-only i4[28, 28] in NCBIstdaa order, raw score units.

    U scores as C and O as X; code 0 scores `FORBIDDEN`. An unknown name raises `UnknownNameError`.
    """
    if name not in TRIANGLES:
        raise UnknownNameError("protein matrix", name, MATRIX_NAMES)
    printed = np.zeros((len(LETTERS), len(LETTERS)), dtype=np.int32)
    for row, line in enumerate(TRIANGLES[name].split("\n")[1:-1]):
        printed[row, : row + 1] = [int(score) for score in line.split()[1:]]
    printed += np.tril(printed, -1).T
    places = [LETTERS.index(_READ_AS.get(letter, letter)) for letter in PROTEIN_CODES[1:]]
    matrix = np.full((len(PROTEIN_CODES), len(PROTEIN_CODES)), FORBIDDEN, dtype=np.int32)
    matrix[1:, 1:] = printed[np.ix_(places, places)]
    matrix.flags.writeable = False
    return matrix


MATRIX_NAMES = tuple(TRIANGLES)
