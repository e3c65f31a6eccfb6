"""Scores of a target and of its domains in bits, corrected for biased composition.

A target's score is that of its whole Forward score, or the sum over its domains where that is better. The correction
weighs null2 against the null model at 1 : 255 (HMMER's user's guide, "biased composition").
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from seqloom.core.classes import NamedTuple, dataclass

from .exact_math import F32, log, log_sum
from .hmmfile import ProfileHmm
from .p_values import bits, exponential_log_survival
from .profile import null_score

LOG_OMEGA = log(1.0 / 256.0)


class EnvelopeScore(NamedTuple):
    """Of one envelope: residues, f32 Forward score and f32 null2 correction in nats."""

    residues: int
    score: np.float32
    correction: np.float32


@dataclass(frozen=True)
class DomainScore:
    """Of one domain: bits and ln P (f64); bias in nats."""

    score: np.float32
    bias: np.float32
    log_p: float


@dataclass(frozen=True)
class TargetScore:
    """Of one target: bits with and without bias correction, ln P (f64), and its domains in their order."""

    score: np.float32
    uncorrected: np.float32
    log_p: float
    domains: tuple[DomainScore, ...]

    @property
    def bias(self) -> np.float32:
        return self.uncorrected - self.score

    @property
    def best_domain(self) -> int:
        """Position of the domain with most bits, the first of equals."""
        return int(np.argmax([d.score for d in self.domains]))


def score_target(
    model: ProfileHmm, length: int, forward: np.float32, null2_sum: np.float32, envelopes: Sequence[EnvelopeScore]
) -> TargetScore:
    """Scores of a target with at least one domain, corrected for biased composition.

    Args:
        model: the query, for its Forward statistics.
        length: residues of the target.
        forward: raw Forward score in nats.
        null2_sum: sum of the null2 log odds over the whole target.
        envelopes: of its domains.
    """
    null = null_score(length)
    bias = _bias(null2_sum)
    uncorrected, score = bits(forward, null), bits(forward, null + bias)
    by_domains = _sum_of_domains(length, null, [e for e in envelopes if e.score - e.correction > 0.0], _bias)
    if by_domains is not None and by_domains[1] > score:
        uncorrected, score = by_domains
    domains = tuple(_score_domain(model, length, null, e, _bias(e.correction)) for e in envelopes)
    return TargetScore(score, uncorrected, _log_p(model, score), domains)


def score_target_uncorrected(
    model: ProfileHmm, length: int, forward: np.float32, envelopes: Sequence[EnvelopeScore]
) -> TargetScore:
    """``score_target`` with all bias corrections left out."""
    null = null_score(length)
    score = bits(forward, null)
    by_domains = _sum_of_domains(length, null, [e for e in envelopes if e.score > 0.0], lambda _: F32(0.0))
    if by_domains is not None and by_domains[1] > score:
        score = by_domains[1]
    domains = tuple(_score_domain(model, length, null, e, F32(0.0)) for e in envelopes)
    return TargetScore(score, score, _log_p(model, score), domains)


def _sum_of_domains(
    length: int, null: np.float32, envelopes: list[EnvelopeScore], bias_of: Callable[[np.float32], np.float32]
) -> tuple[np.float32, np.float32] | None:
    """Bits without and with correction of several envelopes together; None without any."""
    if not envelopes:
        return None
    total, correction = F32(0.0), F32(0.0)
    for envelope in envelopes:
        total = total + envelope.score
        correction = correction + envelope.correction
    total = _with_outside(total, length, sum(e.residues for e in envelopes))
    return bits(total, null), bits(total, null + bias_of(correction))


def _score_domain(
    model: ProfileHmm, length: int, null: np.float32, envelope: EnvelopeScore, bias: np.float32
) -> DomainScore:
    raw = _with_outside(envelope.score, length, envelope.residues)
    score = bits(raw, null + bias)
    return DomainScore(score, bias, _log_p(model, score))


def _with_outside(score: np.float32, length: int, covered: int) -> np.float32:
    """Add the cost of emitting the residues outside ``covered`` by N, J or C."""
    return F32(float(score) + (length - covered) * log(F32(length) / F32(length + 3)))


def _bias(correction: np.float32) -> np.float32:
    return log_sum(F32(0.0), F32(LOG_OMEGA + float(correction)))


def _log_p(model: ProfileHmm, score: np.float32) -> float:
    return exponential_log_survival(float(score), model.forward_tau, model.forward_lambda)
