"""The amino-acid letters as a profile HMM sees them: order, background, degenerate letters.

Emissions of a model are listed in the order ``ACDEFGHIKLMNPQRSTVWY``; sequences come in core's NCBIstdaa codes
(``-ABCDEFGHIKLMNPQRSTVWXYZU*OJ``). Score tables of this family are indexed by NCBIstdaa code, so a table has 28 rows.
A degenerate letter's value is some average over its members; gap and ``*`` are never scored by a match state.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

MODEL_LETTERS = "ACDEFGHIKLMNPQRSTVWY"
STORED_LETTERS = "-ABCDEFGHIKLMNPQRSTVWXYZU*OJ"
N_CODES = len(STORED_LETTERS)

# Background frequencies of HMMER 3 (Swiss-Prot 50.8), in MODEL_LETTERS order.
BACKGROUND = np.array(
    [
        0.0787945, 0.0151600, 0.0535222, 0.0668298, 0.0397062, 0.0695071, 0.0229198, 0.0590092, 0.0594422, 0.0963728,
        0.0237718, 0.0414386, 0.0482904, 0.0395639, 0.0540978, 0.0683364, 0.0540687, 0.0673417, 0.0114135, 0.0304133,
    ],
    dtype=np.float32,
)  # fmt: skip

_DEGENERATE = {"B": "DN", "J": "IL", "Z": "EQ", "U": "C", "O": "K", "X": MODEL_LETTERS}

# For each stored code the model letters it stands for, ascending; empty for gap and '*'.
MEMBERS: tuple[tuple[int, ...], ...] = tuple(
    tuple(sorted(MODEL_LETTERS.index(m) for m in _DEGENERATE.get(letter, letter) if m in MODEL_LETTERS))
    for letter in STORED_LETTERS
)
# NCBIstdaa code of each of the 20 model letters.
CODE_OF_LETTER = np.array([STORED_LETTERS.index(letter) for letter in MODEL_LETTERS], dtype=np.uint8)

Table = NDArray[np.float32]


def table_by_code(rows: Table, combine: Callable[[Table, tuple[int, ...]], Table], nothing: float) -> Table:
    """Spread a table over the 20 model letters to all 28 stored codes.

    ``rows`` is f32[20, ...]; ``combine(rows, members)`` gives the row of a degenerate letter; codes without members
    (gap, ``*``) get ``nothing``. Returns f32[28, ...].
    """
    table = np.full((N_CODES, *rows.shape[1:]), nothing, dtype=np.float32)
    for code, members in enumerate(MEMBERS):
        if STORED_LETTERS[code] in MODEL_LETTERS:
            table[code] = rows[members[0]]
        elif members:
            table[code] = combine(rows, members)
    return table


def expected_score(rows: Table, members: tuple[int, ...]) -> Table:
    """Mean score of the members weighted by background: f32 sums in ascending order (match scores)."""
    total = np.zeros_like(rows[0])
    weight = np.float32(0.0)
    for m in members:
        total = total + rows[m] * BACKGROUND[m]
        weight = weight + BACKGROUND[m]
    return total / weight


def mean_odds(rows: Table, members: tuple[int, ...]) -> Table:
    """Plain mean of the members: f32 sum in ascending order over their number (null2 odds)."""
    total = np.zeros_like(rows[0])
    for m in members:
        total = total + rows[m]
    return total / np.float32(len(members))


def summed_odds(rows: Table, members: tuple[int, ...]) -> Table:
    """Probability of the members over their background probability; ``rows`` are probabilities (bias filter)."""
    probability = np.zeros_like(rows[0])
    weight = np.float32(0.0)
    for m in members:
        probability = probability + rows[m]
        weight = weight + BACKGROUND[m]
    return probability / weight
