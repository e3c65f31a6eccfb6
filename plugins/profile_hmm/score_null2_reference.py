"""Bit scores and P-values of targets and domains, corrected for biased composition by null2."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from seqloom.core.context import Context
from seqloom.core.records import Alignments, Column, Hits, Records, children_order
from seqloom.core.stages import ScoreStage

from .columns import SCORE_COLUMNS
from .exact_math import LOG2_E
from .index_reference import KIND, profile_of
from .scoring import HmmScoring, ProfileScoring
from .sequence_score import EnvelopeScore, TargetScore, score_target, score_target_uncorrected


class Null2Score(ScoreStage):
    """Bits, bias and P-value of hits and domains; without correction under --nonull2."""

    name = "null2"
    takes = (Hits,)
    gives = Hits
    reads = (KIND,)
    columns: ClassVar[tuple[Column, ...]] = SCORE_COLUMNS
    scoring: ClassVar[type[ProfileScoring]] = HmmScoring

    def run(self, context: Context, records: Records) -> Hits:
        assert isinstance(records, Hits)
        children = records.alignments.take(children_order(records, records.alignments))
        ends = np.cumsum(records.domains)
        scored = []
        for row, end in enumerate(ends.tolist()):
            envelopes = _envelopes(children, end - int(records.domains[row]), end)
            scored.append(_score(context, records, row, envelopes))
        domains = [domain for target in scored for domain in target.domains]
        children = children.replace(
            SCORE_COLUMNS,
            bit_score=_column(d.score for d in domains),
            bias=_column(float(d.bias) * LOG2_E for d in domains),
            log_p=_column(d.log_p for d in domains),
        )
        hits = records.replace(
            SCORE_COLUMNS,
            bit_score=_column(t.score for t in scored),
            bias=_column(t.bias for t in scored),
            log_p=_column(t.log_p for t in scored),
        )
        return hits.with_alignments(children)


def _envelopes(children: Alignments, start: int, end: int) -> list[EnvelopeScore]:
    return [
        EnvelopeScore(int(children.env_end[n] - children.env_start[n]), children.score[n], children.null2_correction[n])
        for n in range(start, end)
    ]


def _score(context: Context, hits: Hits, row: int, envelopes: list[EnvelopeScore]) -> TargetScore:
    model = profile_of(context, int(hits.query[row])).model
    length = len(context.target(int(hits.target[row])))
    if context.options.nonull2:
        return score_target_uncorrected(model, length, hits.score[row], envelopes)
    return score_target(model, length, hits.score[row], hits.null2_sum[row], envelopes)


def _column(values: Any) -> np.ndarray:
    return np.array([float(v) for v in values], np.float64)
