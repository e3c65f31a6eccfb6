"""The amino-acid residues as a profile HMM sees them: order, background, degenerate residues.

Emissions of a model are listed in the order ``ACDEFGHIKLMNPQRSTVWY``; sequences come in core's NCBIstdaa codes
(``-ABCDEFGHIKLMNPQRSTVWXYZU*OJ``). Score tables of this family are indexed by NCBIstdaa code, so a table has 28 rows.
A degenerate residue's value is some average over its members; gap and ``*`` are never scored by a match state.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Table = NDArray[np.float32]

MODEL_RESIDUES = "ACDEFGHIKLMNPQRSTVWY"
STORED_RESIDUES = "-ABCDEFGHIKLMNPQRSTVWXYZU*OJ"
N_CODES = len(STORED_RESIDUES)

# Background frequencies of HMMER 3 (Swiss-Prot 50.8), in MODEL_RESIDUES order.
BACKGROUND = np.array(
    [
        0.0787945, 0.0151600, 0.0535222, 0.0668298, 0.0397062, 0.0695071, 0.0229198, 0.0590092, 0.0594422, 0.0963728,
        0.0237718, 0.0414386, 0.0482904, 0.0395639, 0.0540978, 0.0683364, 0.0540687, 0.0673417, 0.0114135, 0.0304133,
    ],
    dtype=np.float32,
)  # fmt: skip

_DEGENERATE = {"B": "DN", "J": "IL", "Z": "EQ", "U": "C", "O": "K", "X": MODEL_RESIDUES}

# For each stored code the model residues it stands for, ascending; empty for gap and '*'.
MEMBERS: tuple[tuple[int, ...], ...] = tuple(
    tuple(sorted(MODEL_RESIDUES.index(m) for m in _DEGENERATE.get(residue, residue) if m in MODEL_RESIDUES))
    for residue in STORED_RESIDUES
)
# NCBIstdaa code of each of the 20 model residues.
CODE_OF_RESIDUE = np.array([STORED_RESIDUES.index(residue) for residue in MODEL_RESIDUES], dtype=np.uint8)



def table_by_code(rows: Table, combine: Callable[[Table, tuple[int, ...]], Table], nothing: float) -> Table:
    """Spread a table over the 20 model residues to all 28 stored codes.

    ``rows`` is f32[20, ...]; ``combine(rows, members)`` gives the row of a degenerate residue; codes without members
    (gap, ``*``) get ``nothing``. Returns f32[28, ...].
    """
    table = np.full((N_CODES, *rows.shape[1:]), nothing, dtype=np.float32)
    for code, members in enumerate(MEMBERS):
        if STORED_RESIDUES[code] in MODEL_RESIDUES:
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
