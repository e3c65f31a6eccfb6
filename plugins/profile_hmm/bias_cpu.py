"""The bias filter on the CPU: the same operations as in ``bias_reference.py``, in the same order, for several targets
side by side, of which each residue waits for a division."""

import math

import numpy as np
from seqloom.core.kernels.jit import kernel
from seqloom.core.kernels.simd import load, maximum, splat, store

from .bias_reference import START

_START_BACKGROUND, _START_COMPOSITION = START
_ONE, _EIGHT, _ZERO = np.float32(1.0), np.float32(8.0), np.float32(0.0)
_LANES = 8


@kernel
def _fill(odds, model_length, residues, begins, ends, order, scores):
    biased = np.float32(model_length) / _EIGHT
    returning, staying = splat(_ONE / (biased + _ONE), _LANES), splat(biased / (biased + _ONE), _LANES)
    stays, leaves, of_background, of_composition, scales, sums = np.empty((6, _LANES), np.float32)
    starts, lasts = np.empty((2, _LANES), np.int64)
    for group in range(0, len(order), _LANES):
        alive = min(_LANES, len(order) - group)
        for lane in range(_LANES):
            target = order[group + min(lane, alive - 1)]
            length = ends[target] - begins[target]
            starts[lane], lasts[lane], sums[lane] = begins[target], length - 1, _ZERO
            stays[lane] = np.float32(length) / np.float32(length + 1)
            leaves[lane] = _ONE - stays[lane]
            code = residues[begins[target]]
            of_background[lane], of_composition[lane] = odds[code, 0], odds[code, 1]
        stay, leave = load(stays, 0, _LANES), load(leaves, 0, _LANES)
        background = splat(_START_BACKGROUND, _LANES) * load(of_background, 0, _LANES)
        composition = splat(_START_COMPOSITION, _LANES) * load(of_composition, 0, _LANES)
        i = 0
        while True:
            scale = maximum(background, composition)
            background, composition = background / scale, composition / scale
            store(scales, 0, scale)
            for lane in range(alive):
                sums[lane] = sums[lane] + np.float32(math.log(np.float64(scales[lane])))
            if i == lasts[alive - 1]:
                store(of_background, 0, background)
                store(of_composition, 0, composition)
                while alive and i == lasts[alive - 1]:
                    alive -= 1
                    ended = np.float32(math.log(np.float64(of_background[alive] + of_composition[alive])))
                    sums[alive] = sums[alive] + ended
                if alive == 0:
                    break
            i += 1
            for lane in range(alive):
                code = residues[starts[lane] + i]
                of_background[lane], of_composition[lane] = odds[code, 0], odds[code, 1]
            to_background = (background * stay + composition * returning) * load(of_background, 0, _LANES)
            composition = (background * leave + composition * staying) * load(of_composition, 0, _LANES)
            background = to_background
        for lane in range(min(_LANES, len(order) - group)):
            length, stay_in = np.float32(lasts[lane] + 1), stays[lane]
            left = sums[lane] + length * np.float32(math.log(stay_in))
            scores[order[group + lane]] = left + np.float32(math.log(_ONE - stay_in))


def bias_scores(odds: np.ndarray, model_length: int, residues: np.ndarray, begins: np.ndarray,
                ends: np.ndarray) -> np.ndarray:
    """Null scores, f4[n] nats, of targets ``residues[begins[n]:ends[n]]`` under background mixed with the model's
    composition; ``odds`` f4[28, 2] from ``bias_odds``."""
    scores = np.empty(len(begins), np.float32)
    _fill(odds, model_length, residues, begins, ends, np.argsort(begins - ends, kind="stable"), scores)
    return scores
