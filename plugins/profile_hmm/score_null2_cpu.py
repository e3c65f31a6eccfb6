"""``null2`` on the CPU: scores of targets and domains as ``sequence_score.py`` computes them."""

from __future__ import annotations

import math

import numpy as np
from seqloom.core.context import Context
from seqloom.core.kernels.jit import kernel
from seqloom.core.records import Hits, Records, children_order

from .columns import SCORE_COLUMNS, by_query
from .exact_math import F32, LN2, LOG2_E, log_sum_table
from .index_reference import profile_of
from .score_null2_reference import Null2Score
from .sequence_score import LOG_OMEGA

_ZERO, _FARTHEST, _STEPS = F32(0.0), F32(15.7), F32(1000.0)


@kernel
def _bias(correction, table):
    """log(1 + ω · exp(correction)) by HMMER's table, f32 nats."""
    corrected = np.float32(LOG_OMEGA + np.float64(correction))
    larger, smaller = max(_ZERO, corrected), min(_ZERO, corrected)
    difference = larger - smaller
    if difference >= _FARTHEST:
        return larger
    return larger + table[np.int64(difference * _STEPS)]


@kernel
def _bits(score, null):
    """Bits, f32, of a score over the null model, both in nats."""
    return np.float32(np.float64(score - null) / LN2)


@kernel
def _with_outside(score, length, covered):
    """A score, f32 nats, with that of the residues of a target of ``length`` which no envelope has covered."""
    ratio = np.float32(length) / np.float32(length + 3)
    return np.float32(np.float64(score) + np.float64(length - covered) * math.log(np.float64(ratio)))


@kernel
def _log_p(score, tau, rate):
    """ln of the P-value of a score, f64: an exponential tail from ``tau`` on."""
    return 0.0 if np.float64(score) < tau else -rate * (np.float64(score) - tau)


@kernel
def _score(rows, lengths, forward, null2_sums, first_children, covered, envelopes, corrections, tau, rate, corrected,
           table, target, domain):
    """Fill f8[n, 3] ``target`` and ``domain`` at these rows and their children: bits, bias and ln P.

    covered, envelopes, corrections: of each domain its residues, and f4 score and null2 log odds in nats.
    """
    for row in rows:
        length = lengths[row]
        stay = np.float32(length) / np.float32(length + 1)
        null = np.float32(np.float64(length) * math.log(np.float64(stay)) + math.log(1.0 - np.float64(stay)))
        bias = _bias(null2_sums[row], table) if corrected else _ZERO
        uncorrected, score = _bits(forward[row], null), _bits(forward[row], null + bias)
        total = correction = _ZERO
        residues, better = 0, False
        for n in range(first_children[row], first_children[row + 1]):
            if (envelopes[n] - corrections[n] if corrected else envelopes[n]) > _ZERO:
                total, correction = total + envelopes[n], correction + corrections[n]
                residues += covered[n]
                better = True
            own = _bias(corrections[n], table) if corrected else _ZERO
            of_domain = _bits(_with_outside(envelopes[n], length, covered[n]), null + own)
            domain[n, 0], domain[n, 1] = of_domain, np.float64(own) * LOG2_E
            domain[n, 2] = _log_p(of_domain, tau, rate)
        if better:
            total = _with_outside(total, length, residues)
            summed = _bits(total, null + (_bias(correction, table) if corrected else _ZERO))
            if summed > score:
                uncorrected, score = _bits(total, null), summed
        target[row, 0], target[row, 1] = score, uncorrected - score
        target[row, 2] = _log_p(score, tau, rate)


class Null2ScoreCpu(Null2Score):
    __doc__ = Null2Score.__doc__
    backend = "cpu"

    def run(self, context: Context, records: Records) -> Hits:
        assert isinstance(records, Hits)
        children = records.alignments.take(children_order(records, records.alignments))
        first_children = np.concatenate([[0], np.cumsum(records.domains)])
        lengths = context.targets.lengths[context.targets.locate(records.target)]
        covered = (children.env_end - children.env_start).astype(np.int64)
        targets, domains = np.empty((len(records), 3)), np.empty((len(children), 3))
        for query, rows in by_query(records):
            model = profile_of(context, query).model
            _score(rows, lengths, records.score, records.null2_sum, first_children, covered, children.score,
                   children.null2_correction, model.forward_tau, model.forward_lambda, not context.options.nonull2,
                   log_sum_table(), targets, domains)
        children = children.replace(SCORE_COLUMNS, **_columns(domains))
        return records.replace(SCORE_COLUMNS, **_columns(targets)).with_alignments(children)


def _columns(found: np.ndarray) -> dict[str, np.ndarray]:
    return {"bit_score": found[:, 0].copy(), "bias": found[:, 1].copy(), "log_p": found[:, 2].copy()}
