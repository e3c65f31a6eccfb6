"""Log-odds scores of match states, of which the search profile is made and by which residues are called likely."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .exact_math import F32, Array32, log_f32
from .residues import expected_score, residues_of, table_by_code

if TYPE_CHECKING:
    from numpy.typing import NDArray


def match_scores(emissions: NDArray[np.float32]) -> Array32:
    """f32[codes, M + 1] score in nats of each stored residue code at each match state; column 0 is −inf.

    Args:
        emissions: f32[M + 1, K] as ``ProfileHmm.match``.
    """
    count = emissions.shape[1]
    ratio = emissions[1:].astype(np.float64) / residues_of(count).background.astype(np.float64)
    residues = np.full((count, len(emissions)), -np.inf, F32)
    residues[:, 1:] = log_f32(ratio).T
    return table_by_code(residues, expected_score, -np.inf)
