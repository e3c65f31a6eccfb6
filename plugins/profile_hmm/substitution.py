"""Substitution matrices as probabilities: what stands in place of a query's residue, and how often.

Scores S and background frequencies f are those of joint probabilities p(a,b) = f(a) f(b) exp(λ S(a,b)), with the one
λ > 0 that makes them sum to 1 (Altschul 1991). Degenerate residues stand for all of their members.
"""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from seqloom.core.alphabet import PROTEIN
from seqloom.core.errors import OptionError
from seqloom.plugins.common import matrix_file, matrix_tables

from . import hmmer_matrices
from .exact_math import F32, Array32
from .residues import BACKGROUND, MEMBERS, MODEL_RESIDUES, N_CODES

if TYPE_CHECKING:
    from numpy.typing import NDArray

_LARGEST_RATE = 50.0
_STEPS = 100
_NEAR = 1e-15


@cache
def named_scores(name: str) -> NDArray[np.int64]:
    """i8[20, 20] of one of ``matrix_names.NAMES``, in ``MODEL_RESIDUES`` order."""
    tables = hmmer_matrices if name in hmmer_matrices.TRIANGLES else matrix_tables
    lines = [line.split() for line in tables.TRIANGLES[name].strip().split("\n")]
    rows = [row for row in lines if row[0] in MODEL_RESIDUES]
    order = [row[0] for row in rows]
    scores = np.zeros((20, 20), np.int64)
    for a, row in enumerate(lines):
        for b, score in enumerate(row[1:]):
            if {lines[a][0], lines[b][0]} <= set(order):
                i, j = MODEL_RESIDUES.index(lines[a][0]), MODEL_RESIDUES.index(lines[b][0])
                scores[i, j] = scores[j, i] = int(score)
    return scores


def scores_of_text(text: str) -> NDArray[np.int64]:
    """i8[20, 20] in ``MODEL_RESIDUES`` order of a text of ``matrix_file.matrix_text``."""
    residues, scores = matrix_file.scores_of_text(text, PROTEIN)
    places = [residues.index(residue) for residue in MODEL_RESIDUES]
    return scores[np.ix_(places, places)]


def rate(scores: NDArray[np.int64], what: str) -> float:
    """λ, f64, of a matrix i8[20, 20] under the background; raises ``OptionError`` for a matrix that has none."""
    frequencies = [float(f) for f in BACKGROUND]
    pairs = [(fa * fb, float(s)) for fa, row in zip(frequencies, scores.tolist(), strict=True)
             for fb, s in zip(frequencies, row, strict=True)]

    def excess(x: float) -> tuple[float, float]:
        total = slope = 0.0
        for weight, score in pairs:
            term = weight * math.exp(x * score) if x * score < 700.0 else math.inf
            total += term
            slope += term * score
        return total - 1.0, slope

    refused = OptionError(f"{what}: no scale makes its scores probabilities; its scores must be below 0 on average and "
                          "some above 0")
    largest = int(scores.max())
    if largest <= 0 or sum(weight * score for weight, score in pairs) >= 0.0:
        raise refused
    x = 1.0 / largest
    while x < _LARGEST_RATE and excess(x)[0] <= 0.0:
        x *= 2.0
    if x >= _LARGEST_RATE:
        raise refused
    for _ in range(_STEPS):
        value, slope = excess(x)
        if value == 0.0 or slope == 0.0 or not math.isfinite(value):
            break
        before, x = x, x - value / slope
        if abs(x - before) < _NEAR + _NEAR * x:
            break
    if not (math.isfinite(x) and x > 1e-9):
        raise refused
    return x


def conditional_probabilities(scores: NDArray[np.int64], what: str) -> Array32:
    """f32[28, 20]: probability of each model residue where a query has the residue of a stored code; 0 for gap and
    ``*``, which stand for nothing.

    Raises:
        OptionError: there is no scale that makes probabilities of the scores of ``what``.
    """
    x = rate(scores, what)
    frequencies = [float(f) for f in BACKGROUND]
    joint = np.array([[frequencies[a] * frequencies[b] * math.exp(x * float(s)) for b, s in enumerate(row)]
                      for a, row in enumerate(scores.tolist())])
    conditional = np.zeros((N_CODES, 20), F32)
    for code, members in enumerate(MEMBERS):
        if members:
            row = np.zeros(20)
            for member in members:
                row = row + joint[member]
            total = 0.0
            for value in row.tolist():
                total += value
            conditional[code] = row / total
    return conditional
