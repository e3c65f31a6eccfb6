"""Over all volumes: E-values, and what is reported and included. Conditional E-values refer to the targets reported."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from seqloom.core.context import Context
from seqloom.core.records import Alignments, Hits, Records
from seqloom.core.stages import ScoreStage

from .columns import DOMAIN_REPORT_COLUMNS, REPORT_COLUMNS, by_query
from .scoring import HmmScoring, Threshold, Thresholds

if TYPE_CHECKING:
    from numpy.typing import NDArray

_SMALLEST = sys.float_info.min
_OVERFLOWS = 709.0


class DomainStatistics(ScoreStage):
    """E-values, thresholds and counts of the targets and domains of a query; drops what isn't reported."""

    name = "domain-statistics"
    takes = (Hits,)
    gives = Hits
    scopes = ("reduce",)
    columns = (*REPORT_COLUMNS, *DOMAIN_REPORT_COLUMNS)
    scoring = HmmScoring

    def run(self, context: Context, records: Records) -> Hits:
        assert isinstance(records, Hits)
        parts = [_report_query(context.scoring, query, records.take(rows)) for query, rows in by_query(records)]
        if not parts:
            return records.replace(REPORT_COLUMNS).with_alignments(records.alignments.replace(DOMAIN_REPORT_COLUMNS))
        return Hits.concat(parts)


def _report_query(scoring: HmmScoring, query: int, hits: Hits) -> Hits:
    """Reported targets of one query with their reported domains."""
    rules = scoring.thresholds[query]
    evalue = _expected(hits.log_p, scoring.n_targets)
    reported = _passing(rules.target, hits.bit_score, evalue)
    hits = hits.replace(evalue=evalue).take(reported)
    included = _passing(rules.included_target, hits.bit_score, hits.evalue)
    n_reported = float(len(hits)) if scoring.n_reported is None else scoring.n_reported

    domains = hits.alignments
    bounds = np.concatenate([[0], np.cumsum(hits.domains)])
    domains = domains.replace(
        DOMAIN_REPORT_COLUMNS,
        evalue=_expected(domains.log_p, scoring.n_targets),
        conditional_evalue=_expected(domains.log_p, n_reported),
        included=np.zeros(len(domains), bool),
    )
    shown = _passing(rules.domain, domains.bit_score, domains.conditional_evalue)
    significant = _significant_domains(rules, domains, np.repeat(included, hits.domains))
    for row in np.flatnonzero(hits.overlaps > 0).tolist():
        for place in _repeated(domains, range(bounds[row], bounds[row + 1])):
            shown[place] = significant[place] = False
    best = [int(b + np.argmax(domains.bit_score[b:e])) for b, e in pairwise(bounds.tolist())]
    hits = hits.replace(
        REPORT_COLUMNS,
        included=included,
        best_evalue=domains.evalue[best],
        best_bit_score=domains.bit_score[best],
        best_bias=domains.bias[best],
        reported_domains=_count(shown, bounds),
        included_domains=_count(significant, bounds),
    )
    return hits.with_alignments(domains.replace(included=significant).take(shown))


def _significant_domains(
    rules: Thresholds, domains: Alignments, target_included: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    passing = _passing(rules.included_domain, domains.bit_score, domains.conditional_evalue)
    return passing if rules.from_model else passing & target_included


def _repeated(domains: Alignments, places: Sequence[int]) -> set[int]:
    """Domains with the same aligned residues as a better one, or an earlier one of equal score, of the same target."""
    dropped = set()
    for n, one in enumerate(places):
        for other in places[n + 1 :]:
            same_start = domains.target_start[one] == domains.target_start[other]
            if same_start and domains.target_end[one] == domains.target_end[other]:
                dropped.add(other if domains.bit_score[one] >= domains.bit_score[other] else one)
    return dropped


def _expected(log_p: NDArray[np.float64], size: float) -> NDArray[np.float64]:
    """E-values among so many targets; 0 where a number is too small for all its digits, as HMMER has it."""
    found = []
    for value in log_p.tolist():
        p = math.exp(value) if value < _OVERFLOWS else math.inf
        expected = p * size if p >= _SMALLEST else 0.0
        found.append(expected if expected >= _SMALLEST else 0.0)
    return np.array(found, np.float64)


def _passing(rule: Threshold, scores: NDArray[np.float64], evalues: NDArray[np.float64]) -> NDArray[np.bool_]:
    return np.array([rule.passes(s, e) for s, e in zip(scores.tolist(), evalues.tolist(), strict=True)], bool)


def _count(flags: NDArray[np.bool_], bounds: NDArray[np.int64]) -> NDArray[np.int64]:
    sums = np.concatenate([[0], np.cumsum(flags)])
    return sums[bounds[1:]] - sums[bounds[:-1]]
