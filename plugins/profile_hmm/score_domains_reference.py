"""Over all volumes: E-values, and what is reported and included. Conditional E-values refer to the targets reported."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from seqloom.core.context import Context
from seqloom.core.records import Alignments, Hits, Records
from seqloom.core.stages import ScoreStage

from .columns import DOMAIN_REPORT_COLUMNS, REPORT_COLUMNS, by_query
from .scoring import HmmScoring, ProfileScoring, Thresholds

if TYPE_CHECKING:
    from numpy.typing import NDArray

_SMALLEST = sys.float_info.min
_OVERFLOWS = 709.0


class DomainStatistics(ScoreStage):
    """E-values, thresholds and counts of the targets and domains of a query; drops what isn't reported.

    Class attributes:
        sequence: which side of the records is the sequence, and not the model: "query" or "target".
    """

    sequence: ClassVar[str] = "target"
    name = "domain-statistics"
    takes = (Hits,)
    gives = Hits
    scopes = ("reduce",)
    columns = (*REPORT_COLUMNS, *DOMAIN_REPORT_COLUMNS)
    scoring: ClassVar[type[ProfileScoring]] = HmmScoring

    def rules(self, context: Context, query: int, hits: Hits) -> Thresholds:
        """Thresholds of the ``hits`` of a query; those of single rows in the order of these."""
        rules: Thresholds = context.scoring.thresholds[query]
        return rules

    def run(self, context: Context, records: Records) -> Hits:
        assert isinstance(records, Hits)
        parts = []
        for query, rows in by_query(records):
            hits = records.take(rows)
            parts.append(_report_query(context.scoring, self.rules(context, query, hits), hits, self.sequence))
        if not parts:
            return records.replace(REPORT_COLUMNS).with_alignments(records.alignments.replace(DOMAIN_REPORT_COLUMNS))
        return Hits.concat(parts)


def _report_query(scoring: ProfileScoring, rules: Thresholds, hits: Hits, sequence: str) -> Hits:
    """Reported targets of one query with their reported domains."""
    evalue = _expected(hits.log_p, scoring.n_targets)
    reported = np.flatnonzero(rules.target.passing(hits.bit_score, evalue))
    hits = hits.replace(evalue=evalue).take(reported)
    included = rules.included_target.chosen(reported).passing(hits.bit_score, hits.evalue)
    n_reported = float(len(hits)) if scoring.n_reported is None else scoring.n_reported

    domains = hits.alignments
    bounds = np.concatenate([[0], np.cumsum(hits.domains)])
    domains = domains.replace(
        DOMAIN_REPORT_COLUMNS,
        evalue=_expected(domains.log_p, scoring.n_targets),
        conditional_evalue=_expected(domains.log_p, n_reported),
        included=np.zeros(len(domains), bool),
    )
    owners = np.repeat(reported, hits.domains)
    shown = rules.domain.chosen(owners).passing(domains.bit_score, domains.conditional_evalue)
    significant = rules.included_domain.chosen(owners).passing(domains.bit_score, domains.conditional_evalue)
    if not rules.from_model:
        significant &= np.repeat(included, hits.domains)
    for row in np.flatnonzero(hits.overlaps > 0).tolist():
        for place in _repeated(domains, sequence, range(bounds[row], bounds[row + 1])):
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


def _repeated(domains: Alignments, sequence: str, places: Sequence[int]) -> set[int]:
    """Domains with the same aligned residues of the sequence as a better one, or an earlier one of equal score."""
    starts, ends = domains.data[f"{sequence}_start"], domains.data[f"{sequence}_end"]
    dropped = set()
    for n, one in enumerate(places):
        for other in places[n + 1 :]:
            if starts[one] == starts[other] and ends[one] == ends[other]:
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


def _count(flags: NDArray[np.bool_], bounds: NDArray[np.int64]) -> NDArray[np.int64]:
    sums = np.concatenate([[0], np.cumsum(flags)])
    return sums[bounds[1:]] - sums[bounds[:-1]]
