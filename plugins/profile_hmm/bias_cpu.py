"""The bias filter on the CPU: the same operations as in ``bias_reference.py``, in the same order, for several pairs
side by side, of which each residue waits for a division. Each lane has a model and a target of its own."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from seqloom.core.classes import NamedTuple
from seqloom.core.kernels.jit import kernel
from seqloom.core.kernels.simd import load, maximum, splat, store

from .bias_reference import START
from .exact_math import F32
from .hmmfile import ProfileHmm
from .logs_cpu import AT_ONCE, room_for_logs, rounded_logs

_START_BACKGROUND, _START_COMPOSITION = START
_ONE, _EIGHT, _ZERO = np.float32(1.0), np.float32(8.0), np.float32(0.0)
_LANES = 8
_ROWS = AT_ONCE // _LANES
"""Residues of each target whose scales are kept until their logarithms are taken."""


@kernel
def _add_logs(scales, rows, room, logs, lengths, done, sums):
    """Add to f4[8] ``sums`` the logs of f4[rows · 8] ``scales``, of targets of which ``done`` residues were before."""
    count = rows * _LANES
    for n in range(count):
        room[0][n] = scales[n]
    rounded_logs(room, count, logs)
    for lane in range(_LANES):
        total = sums[lane]
        for row in range(min(rows, lengths[lane] - done)):
            total = total + logs[row * _LANES + lane]
        sums[lane] = total


@kernel
def _completed(total, last, length):
    """Score of a target, f4 nats, from the sum of its scales' logs and that of its last states."""
    stay = np.float32(length) / np.float32(length + 1)
    score = total + np.float32(math.log(np.float64(last)))
    score = score + np.float32(length) * np.float32(math.log(stay))
    return score + np.float32(math.log(_ONE - stay))


@kernel
def _complete(sums, lasts, lengths, scores):
    """``_completed`` of every target; lengths: i8[n], the others f4[n]."""
    for n in range(len(sums)):
        scores[n] = _completed(sums[n], lasts[n], lengths[n])


def completed(sums: np.ndarray, lasts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Null scores, f4[n] nats, from sums of logs of scales f4[n], sums of last states f4[n], and lengths i8[n]."""
    scores = np.empty(len(sums), F32)
    _complete(sums, lasts, lengths, scores)
    return scores


@kernel
def _fill(odds, model_lengths, models, residues, begins, ends, order, room, scales, logs, scores):
    stays, leaves, of_background, of_composition, sums, lasts, returns, remains = np.empty((8, _LANES), np.float32)
    starts, lengths, own = np.empty((3, _LANES), np.int64)
    for group in range(0, len(order), _LANES):
        targets = alive = min(_LANES, len(order) - group)
        for lane in range(_LANES):
            target = order[group + min(lane, alive - 1)]
            starts[lane], lengths[lane], sums[lane] = begins[target], ends[target] - begins[target], _ZERO
            stays[lane] = np.float32(lengths[lane]) / np.float32(lengths[lane] + 1)
            leaves[lane] = _ONE - stays[lane]
            own[lane], code = models[target], residues[begins[target]]
            biased = np.float32(model_lengths[own[lane]]) / _EIGHT
            returns[lane], remains[lane] = _ONE / (biased + _ONE), biased / (biased + _ONE)
            of_background[lane], of_composition[lane] = odds[own[lane], code, 0], odds[own[lane], code, 1]
        stay, leave = load(stays, 0, _LANES), load(leaves, 0, _LANES)
        returning, staying = load(returns, 0, _LANES), load(remains, 0, _LANES)
        background = splat(_START_BACKGROUND, _LANES) * load(of_background, 0, _LANES)
        composition = splat(_START_COMPOSITION, _LANES) * load(of_composition, 0, _LANES)
        i = 0
        while True:
            scale = maximum(background, composition)
            background, composition = background / scale, composition / scale
            store(scales, i % _ROWS * _LANES, scale)
            i += 1
            if i == lengths[alive - 1]:
                store(of_background, 0, background)
                store(of_composition, 0, composition)
                while alive and i == lengths[alive - 1]:
                    alive -= 1
                    lasts[alive] = of_background[alive] + of_composition[alive]
            if alive == 0 or i % _ROWS == 0:
                rows = (i - 1) % _ROWS + 1
                _add_logs(scales, rows, room, logs, lengths, i - rows, sums)
                if alive == 0:
                    break
            for lane in range(alive):
                code = residues[starts[lane] + i]
                of_background[lane], of_composition[lane] = odds[own[lane], code, 0], odds[own[lane], code, 1]
            to_background = (background * stay + composition * returning) * load(of_background, 0, _LANES)
            composition = (background * leave + composition * staying) * load(of_composition, 0, _LANES)
            background = to_background
        for lane in range(targets):
            scores[order[group + lane]] = _completed(sums[lane], lasts[lane], lengths[lane])


@kernel
def _odds(background, compositions, n_members, members, odds):
    """Fill f4[models, codes, 2] as ``bias_reference.bias_odds`` of compositions f4[models, K]."""
    for model in range(len(odds)):
        for code in range(odds.shape[1]):
            of_background = of_composition = weight = _ZERO
            for n in range(n_members[code]):
                member = members[code, n]
                of_background = of_background + background[member]
                of_composition = of_composition + compositions[model, member]
                weight = weight + background[member]
            odds[model, code, 0] = of_background / weight if n_members[code] else _ONE
            odds[model, code, 1] = of_composition / weight if n_members[code] else _ONE


def bias_odds(models: Sequence[ProfileHmm]) -> np.ndarray:
    """f4[models, codes, 2], of each model as ``bias_reference.bias_odds``; the models are of the same residues."""
    residues = models[0].residues
    odds = np.empty((len(models), len(residues.members), 2), F32)
    _odds(residues.background, np.stack([model.composition for model in models]), *residues.arrays[1:], odds)
    return odds


class Mixtures(NamedTuple):
    """What the bias filter knows of some models: f4[models, codes, 2] ``odds``, and i8[models] positions."""

    odds: np.ndarray
    lengths: np.ndarray

    @classmethod
    def of(cls, models: Sequence[ProfileHmm]) -> Mixtures:
        """Of models of the same residues."""
        return cls(bias_odds(models), np.array([model.length for model in models]))


def bias_scores(mixtures: Mixtures, models: np.ndarray, residues: np.ndarray, begins: np.ndarray,
                ends: np.ndarray) -> np.ndarray:
    """Null scores, f4[n] nats, of targets ``residues[begins[n]:ends[n]]`` under background mixed with the composition
    of the model at ``models[n]``."""
    scores = np.empty(len(begins), F32)
    _fill(mixtures.odds, mixtures.lengths, models, residues, begins, ends, np.argsort(begins - ends, kind="stable"),
          room_for_logs(), np.empty(AT_ONCE, F32), np.empty(AT_ONCE, F32), scores)
    return scores
