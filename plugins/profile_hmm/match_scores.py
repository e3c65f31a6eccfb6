"""Log-odds scores of match states, of which the search profile is made and by which residues are called likely."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .exact_math import F32, Array32, log_f32
from .residues import BACKGROUND, expected_score, table_by_code

if TYPE_CHECKING:
    from numpy.typing import NDArray


def match_scores(emissions: NDArray[np.float32]) -> Array32:
    """f32[28, M + 1] score in nats of each stored residue code at each match state; column 0 is −inf.

    Args:
        emissions: f32[M + 1, 20] as ``ProfileHmm.match``.
    """
    ratio = emissions[1:].astype(np.float64) / BACKGROUND.astype(np.float64)
    residues = np.full((20, len(emissions)), -np.inf, F32)
    residues[:, 1:] = log_f32(ratio).T
    return table_by_code(residues, expected_score, -np.inf)
