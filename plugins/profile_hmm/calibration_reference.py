"""Calibration of a model: the scores of random sequences say how likely a score is by chance.

lambda is known from what the model's states say; mu of MSV and Viterbi (Gumbel) and tau of Forward (exponential) are
fitted to the scores of random sequences, which are the same for all models. Eddy 2008, PLoS Comput. Biol. 4:e1000069.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from seqloom.core.classes import NamedTuple

from .exact_math import F32, LN2, log
from .forward_reference import forward_parser
from .hmmfile import Statistics
from .msv_reference import msv_scores
from .profile import BYTE_BASE, BYTE_SCALE, WORD_BASE, WORD_SCALE, LengthModel, SearchProfile, null_score
from .random_numbers import RandomNumbers
from .residues import BACKGROUND, CODE_OF_RESIDUE
from .viterbi_reference import viterbi_score

if TYPE_CHECKING:
    from numpy.typing import NDArray

_LAWLESS_STEPS, _LAWLESS_NEAR = 100, 1e-5


class RandomSequences(NamedTuple):
    """u8 codes of the sequences that MSV, Viterbi and Forward are calibrated with, [number, length] each."""

    msv: NDArray[np.uint8]
    viterbi: NDArray[np.uint8]
    forward: NDArray[np.uint8]


def shares() -> list[float]:
    """Running sums of the background frequencies over all of them, f64."""
    frequencies = [float(f) for f in BACKGROUND]
    total = sum(frequencies)
    running, found = 0.0, []
    for frequency in frequencies:
        running += frequency
        found.append(running / total)
    return found


def sizes(options: Any) -> list[tuple[int, int]]:
    """Number and length of the sequences for MSV, Viterbi and Forward."""
    return [(options.EmN, options.EmL), (options.EvN, options.EvL), (options.EfN, options.EfL)]


def random_sequences(options: Any) -> RandomSequences:
    """Sequences of background composition, one stream of random numbers for all of them."""
    source, bounds = RandomNumbers(options.seed), shares()

    def residue() -> int:
        roll = source.next()
        return int(CODE_OF_RESIDUE[next((n for n, bound in enumerate(bounds) if roll < bound), 19)])

    return RandomSequences(*(np.array([[residue() for _ in range(length)] for _ in range(number)], np.uint8)
                             for number, length in sizes(options)))


def statistics(profile: SearchProfile, rate: float, sequences: RandomSequences, tail: float) -> Statistics:
    """Calibrate a search profile whose lambda is ``rate``; ``tail`` is the mass of the exponential tail."""
    rows = list(sequences.msv)
    msv = msv_scores(profile.bytes, rows)
    viterbi = np.array([viterbi_score(profile.words, row) for row in sequences.viterbi], F32)
    forward = []
    for row in sequences.forward:
        try:
            forward.append(forward_parser(profile.floats, LengthModel(len(row), True), row)[0])
        except FloatingPointError:
            forward.append(F32(np.nan))
    return fitted(rate, sequences, msv, viterbi, np.array(forward, F32), tail)


def fitted(rate: float, sequences: RandomSequences, msv: NDArray[np.float32],
           viterbi: NDArray[np.float32], forward: NDArray[np.float32], tail: float) -> Statistics:
    """Statistics from the raw scores of the random sequences, f4[n] nats.

    Raises:
        FloatingPointError: a sequence has no Forward score.
    """
    if np.isnan(forward).any():
        raise FloatingPointError("a random sequence has no Forward score")
    most_msv = F32((F32(255.0) - F32(BYTE_BASE)) / BYTE_SCALE)
    most_viterbi = F32((F32(32767.0) - F32(WORD_BASE)) / WORD_SCALE)
    null_msv, null_viterbi, null_forward = (null_score(part.shape[1]) for part in sequences)
    mu_msv = gumbel_place(bits_of(np.where(np.isposinf(msv), most_msv, msv), null_msv), rate)
    mu_viterbi = gumbel_place(bits_of(np.where(np.isposinf(viterbi), most_viterbi, viterbi), null_viterbi), rate)
    place, fitted_rate = gumbel_fit(bits_of(forward, null_forward))
    tau = place - math.log(-1.0 * math.log(1.0 - tail)) / fitted_rate + math.log(tail) / rate
    return Statistics(*(float(F32(x)) for x in (mu_msv, rate, mu_viterbi, rate, tau, rate)))


def bits_of(scores: NDArray[np.float32], null: np.float32) -> list[float]:
    """Bits over the null model, f64, of raw scores f32[n] in nats."""
    return [float(F32(score) - null) / LN2 for score in scores]


def gumbel_rate(information: NDArray[np.float32]) -> float:
    """lambda, f64 bits⁻¹, from the bits f32[M] that each match state says: ln 2, and more the less a model says."""
    total = 0.0
    for entropy in information.tolist():
        total += entropy
    length = float(len(information))
    said = length * (total / length)
    return LN2 + 1.44 / said if said else math.inf


def relative_entropy(row: NDArray[np.float32]) -> np.float32:
    """Bits that f32[20] emissions of a state say over the background."""
    total = F32(0.0)
    for emission, background in zip(row, BACKGROUND, strict=True):
        if emission > 0.0:
            total = F32(float(total) + float(emission) * math.log2(float(F32(emission / background))))
    return total


def _exp(x: float) -> float:
    """As C's: inf beyond the range of f64, which a model that says nothing leads to."""
    return math.exp(x) if x < 709.0 else math.inf


def gumbel_place(scores: Sequence[float], rate: float) -> float:
    """Maximum-likelihood mu of a Gumbel distribution whose lambda is known."""
    total = 0.0
    for score in scores:
        total += _exp(-rate * score)
    return -log(total / float(len(scores))) / rate


def gumbel_fit(scores: Sequence[float]) -> tuple[float, float]:
    """Maximum-likelihood mu and lambda of a Gumbel distribution (Lawless 1982, equation 4.1.6).

    Raises:
        ZeroDivisionError: the scores are all the same.
    """
    number = float(len(scores))
    total = squares = 0.0
    for score in scores:
        total += score
        squares += score * score
    variance = abs((squares - total * total / number) / (number - 1.0))
    rate = math.pi / math.sqrt(6.0 * variance)
    for _ in range(_LAWLESS_STEPS):
        value, slope = _lawless(scores, rate)
        if abs(value) < _LAWLESS_NEAR:
            break
        rate -= value / slope
        if rate <= 0.0:
            rate = 0.001
    return gumbel_place(scores, rate), rate


def _lawless(scores: Sequence[float], rate: float) -> tuple[float, float]:
    """The equation that lambda solves, and its derivative."""
    total = weights = weighted = squares = 0.0
    for score in scores:
        weight = _exp(-1.0 * rate * score)
        total += score
        weighted += score * weight
        squares += score * score * weight
        weights += weight
    mean = weighted / weights
    return 1.0 / rate - total / len(scores) + mean, mean * mean - squares / weights - 1.0 / (rate * rate)
