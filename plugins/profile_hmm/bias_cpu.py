"""The bias filter on the CPU: the same operations as in ``bias_reference.py``, in the same order."""

import math

import numpy as np
from seqloom.core.kernels.jit import kernel

from .bias_reference import START

_START_BACKGROUND, _START_COMPOSITION = START
_ONE, _EIGHT, _ZERO = np.float32(1.0), np.float32(8.0), np.float32(0.0)


@kernel
def bias_scores(odds, model_length, residues, begins, ends, scores):
    """Null scores, f4[n] nats, of targets ``residues[begins[n]:ends[n]]`` under background mixed with the model's
    composition; ``odds`` f4[28, 2] from ``bias_odds``."""
    biased = np.float32(model_length) / _EIGHT
    returning, staying = _ONE / (biased + _ONE), biased / (biased + _ONE)
    for n in range(len(begins)):
        target = residues[begins[n] : ends[n]]
        length = np.float32(len(target))
        stay = length / np.float32(len(target) + 1)
        leave = _ONE - stay
        background, composition = _START_BACKGROUND * odds[target[0], 0], _START_COMPOSITION * odds[target[0], 1]
        scale = max(background, composition)
        background, composition = background / scale, composition / scale
        score = _ZERO + np.float32(math.log(np.float64(scale)))
        for i in range(1, len(target)):
            code = target[i]
            to_background = (background * stay + composition * returning) * odds[code, 0]
            to_composition = (background * leave + composition * staying) * odds[code, 1]
            scale = max(to_background, to_composition)
            background, composition = to_background / scale, to_composition / scale
            score = score + np.float32(math.log(np.float64(scale)))
        score = score + np.float32(math.log(np.float64(background + composition)))
        scores[n] = score + length * np.float32(math.log(stay)) + np.float32(math.log(_ONE - stay))
