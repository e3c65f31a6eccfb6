"""The second filter: a two-state model that tells biased composition from homology.

State 0 emits background, state 1 the model's mean composition; the Forward score of the target under both replaces the
null score in the filters (never in reported scores). CUDAMPF++ leaves this step to HMMER; see HMMER's user's guide,
"bias composition filter".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .exact_math import F32, Array32, log, log_f32, logf
from .hmmfile import ProfileHmm
from .profile import null_stay
from .residues import summed_odds

if TYPE_CHECKING:
    from numpy.typing import NDArray

START = np.array([0.999, 0.001], F32)


def bias_odds(model: ProfileHmm) -> Array32:
    """f32[codes, 2]: odds of each residue code in the background and in the composition state; 1 for gap and ``*``."""
    probabilities = np.stack([model.residues.background, model.composition], axis=1)
    rows = [summed_odds(probabilities, m) if m else np.ones(2, F32) for m in model.residues.members]
    return np.array(rows, F32)


def bias_score(odds: Array32, model_length: int, target: NDArray[np.uint8]) -> np.float32:
    """Null score in nats, f32, of a target under background mixed with the model's composition.

    Args:
        odds: from ``bias_odds``.
        model_length: M.
        target: u8 residue codes, not empty.
    """
    stay = null_stay(len(target))
    biased = F32(model_length) / F32(8.0)
    from_background = np.array([stay, F32(1.0) - stay], F32)
    from_composition = np.array([F32(1.0) / (biased + F32(1.0)), biased / (biased + F32(1.0))], F32)
    scales = np.empty(len(target), F32)
    row = START * odds[target[0]]
    scales[0] = row.max()
    row = row / scales[0]
    for i, emission in enumerate(odds[target[1:]], start=1):
        row = (row[0] * from_background + row[1] * from_composition) * emission
        scales[i] = row.max()
        row = row / scales[i]
    score = F32(0.0)
    for part in log_f32(scales):
        score = score + part
    score = score + F32(log(row[0] + row[1]))
    return score + F32(len(target)) * logf(stay) + logf(F32(1.0) - stay)
