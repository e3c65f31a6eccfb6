"""Alignments of preliminary HSPs made anew with scores adjusted to the composition of each pair (BLAST+ 2.12).

Scores, gap costs and X-drop are in units of 1/32 raw score. The target is masked by SEG first, unless the first HSP of
the pair shows that both are nearly identical there. HSPs are taken best first; one that lies inside an alignment made
before, and scores two bits less, is skipped. The others are extended from the point where the preliminary extension
started; of alignments that share an end the better one stays. Last, contained ones are dropped.

Where Smith & Waterman's algorithm is asked for, it takes the place of the extensions (`optimum`), with raw scores if
none are adjusted.

The scores that come out have fractions: E-values are those of the fractions, see `score_reference`. Paths, identities
and positives are those of the real residues.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from seqloom.core.alphabet import PROTEIN
from seqloom.core.classes import dataclass
from seqloom.core.context import Context
from seqloom.core.records import Alignments, Column, Records
from seqloom.core.stages import ExtendStage
from seqloom.plugins.common.culling import Hsp, encloses, score_order
from seqloom.plugins.common.karlin_altschul import LN2, effective_search_space, length_adjustment
from seqloom.plugins.common.seg import low_complexity
from seqloom.plugins.common.xdrop import two_sided_traceback
from seqloom.plugins.protein_blast.composition import NO_SCORES, SCALE, Adjuster, Composition
from seqloom.plugins.protein_blast.near_identity import nearly_identical
from seqloom.plugins.protein_blast.optimum import optimal_hsps
from seqloom.plugins.protein_blast.options import BlastpOptions
from seqloom.plugins.protein_blast.scoring import ProteinBlastScoring
from seqloom.plugins.protein_blast.traceback_reference import ADJUSTMENT, traced_pairs

TARGET_MASK = (10, 1.8, 2.1)
"""Window, locut and hicut of SEG for targets."""
CONTAINED_BITS = 2.0
IDENTICAL_BITS = 1.74
"""Bits per residue of a preliminary HSP from which on a pair may be nearly identical."""
LEAST_SPAN = 50

FINE_SCORE = Column("score", "f8", "raw score with fractions")
_C, _U, _X = (PROTEIN.letters.index(residue) for residue in "CUX")


@dataclass(frozen=True)
class FineCosts:
    """Costs and thresholds in units of 1/`scale` raw score."""

    scale: int
    gap_open: int
    gap_extend: int
    x_drop: int
    contained: float
    identical: float

    @classmethod
    def of(cls, scoring: ProteinBlastScoring, options: BlastpOptions) -> FineCosts:
        scale = SCALE if options.composition_mode() else 1
        lambda_ = scoring.gapped.karlin.lambda_ / scale
        x_drop = int(max(options.xdrop_gap_final * LN2 / lambda_, scoring.x_drop_final))
        return cls(scale, scale * scoring.gap_open, scale * scoring.gap_extend, x_drop, CONTAINED_BITS * LN2 / lambda_,
                   IDENTICAL_BITS * LN2 / lambda_)


def scored_residues(query: np.ndarray) -> np.ndarray:
    """u1[n]: query codes as alignments are made with them: U as C."""
    return np.where(query == _U, np.uint8(_C), query)


def masked_target(target: np.ndarray) -> np.ndarray:
    """u1[n]: codes with X for what SEG finds."""
    masked = target.copy()
    for begin, end in low_complexity(target, *TARGET_MASK):
        masked[begin:end] = _X
    return masked


def significant_scores(context: Context, scale: int) -> list[float]:
    """Of each query: what an optimal alignment must score more than, by plain E-values in its search space."""
    scoring, options = context.scoring, context.options
    gapped, karlin = scoring.gapped, scoring.gapped.karlin
    least = []
    for length in context.queries.lengths.tolist():
        space = options.searchsp
        if not space:
            size = length, scoring.database_residues, context.space.sequences
            ell = length_adjustment(karlin, gapped.alpha / karlin.lambda_, gapped.beta, *size)
            space = effective_search_space(ell, *size)
        significant = scale * (math.log(space / options.evalue) + math.log(karlin.k)) / karlin.lambda_
        least.append(max(0.0, significant))  # nothing aligned scores 0, however little the E-value asks for
    return least


def seems_identical(hsp: Hsp, query_length: int, costs: FineCosts) -> bool:
    """Whether a preliminary HSP is long and good enough for a pair to be looked at for identity."""
    if hsp.target_span + 1 < min(query_length, LEAST_SPAN):
        return False
    return costs.scale * hsp.score / min(hsp.query_span, hsp.target_span) >= costs.identical


def redone_hsps(preliminary: list[Hsp], query: np.ndarray, target: np.ndarray, adjuster: Adjuster,
                costs: FineCosts) -> list[Hsp]:
    """Alignments of a pair with scores in adjusted units and steps for paths, in `score_order`.

    Args:
        preliminary: HSPs in `score_order`, with anchors and raw scores.
        query: codes as searched.
        target: codes.
    """
    composition, scored = Composition.of(query), scored_residues(query).tobytes()
    first = preliminary[0]
    ends = first.query_start, first.query_end, first.target_start, first.target_end
    redone: list[Hsp] = []
    seen, rows, way = target, None, NO_SCORES
    may_be_biased, seemed, adjustments = True, None, 0
    for hsp in preliminary:
        if may_be_biased:
            seems = seems_identical(hsp, len(query), costs)
        if may_be_biased and seems != seemed:
            seen = target
            if not (seems and nearly_identical(scored, query.tobytes(), target.tobytes(), ends)):
                seen = masked_target(target)
                may_be_biased = not np.array_equal(seen, target)
        changed, seemed = seems != seemed, seems
        if any(_holds(other, hsp, costs) for other in redone):
            continue
        if changed:
            adjustments += 1
            matrix, way = adjuster.made(composition, Composition.of(seen))
            if matrix is None:
                rows = None
                continue
            rows = matrix.tolist()
        if rows is None:
            continue
        found = two_sided_traceback(scored, seen.tobytes(), hsp.anchor_query + 1, hsp.anchor_target + 1, rows,
                                    costs.gap_open, costs.gap_extend, costs.x_drop)
        if found.score < 1:
            continue
        alignment = Hsp(found.score, found.row_start, found.row_end, found.column_start, found.column_end,
                        hsp.anchor_query, hsp.anchor_target)
        alignment.path, alignment.adjustment = found.steps, way
        redone = _with_distinct_ends(alignment, redone, _shares_end if adjustments == 1 else _ends_on)
    return uncontained(redone)


def optimal_for_pair(preliminary: list[Hsp], query: np.ndarray, target: np.ndarray, adjuster: Adjuster | None,
                     matrix: np.ndarray | None, costs: FineCosts, least: float) -> list[Hsp]:
    """As `redone_hsps`, by Smith & Waterman's algorithm; with the given matrix where there is no `adjuster`."""
    seen, scored, first = target, scored_residues(query).tobytes(), preliminary[0]
    way = NO_SCORES
    if adjuster is not None:
        ends = first.query_start, first.query_end, first.target_start, first.target_end
        if not (seems_identical(first, len(query), costs)
                and nearly_identical(scored, query.tobytes(), target.tobytes(), ends)):
            seen = masked_target(target)
        matrix, way = adjuster.made(Composition.of(query), Composition.of(seen))
    if matrix is None:
        return []
    found = list(optimal_hsps(scored, seen.tobytes(), matrix.tolist(), costs.gap_open, costs.gap_extend, costs.x_drop,
                              least, len(preliminary) > 1))
    for hsp in found:
        hsp.adjustment = way
    return uncontained(found)


def uncontained(hsps: list[Hsp]) -> list[Hsp]:
    """Those that no better one encloses, in `score_order`."""
    kept: list[Hsp] = []
    for hsp in sorted(hsps, key=score_order):
        if not any(encloses(other, hsp) for other in kept):
            kept.append(hsp)
    return kept


def _holds(outer: Hsp, inner: Hsp, costs: FineCosts) -> bool:
    """Whether both ends of a preliminary HSP lie in the box of an alignment that scores two bits more."""
    return (outer.query_start <= inner.query_start and inner.query_end <= outer.query_end
            and outer.target_start <= inner.target_start and inner.target_end <= outer.target_end
            and costs.scale * inner.score + costs.contained <= outer.score)


def _with_distinct_ends(new: Hsp, others: list[Hsp], doubles: Callable[[Hsp, Hsp], bool]) -> list[Hsp]:
    """The new alignment before those that share no end with it; without it, if one that it doubles is as good."""
    if any(doubles(other, new) and new.score <= other.score for other in others):
        return others
    return [new, *(other for other in others if not _shares_end(other, new))]


def _shares_end(first: Hsp, second: Hsp) -> bool:
    return ((first.query_start, first.target_start) == (second.query_start, second.target_start)
            or (first.query_end, first.target_end) == (second.query_end, second.target_end))


def _ends_on(outer: Hsp, inner: Hsp) -> bool:
    """Whether an end of `inner` lies in the box of `outer` and on the diagonal of the same end of it.

    So doubles are told where a pair's alignments are by several matrices, with masked residues and without.
    """
    return any(outer.query_start <= row <= outer.query_end and outer.target_start <= column <= outer.target_end
               and row - column == of_row - of_column for row, column, of_row, of_column in (
                   (inner.query_start, inner.target_start, outer.query_start, outer.target_start),
                   (inner.query_end, inner.target_end, outer.query_end, outer.target_end)))


class AdjustedTraceback(ExtendStage):
    """Gapped extension with traceback of preliminary HSPs, with scores adjusted to the composition of each pair."""

    name = "adjusted-traceback"
    backend = "reference"
    takes = (Alignments,)
    gives = Alignments
    columns = (ADJUSTMENT,)
    takes_order = ("query", "target")
    gives_order = ("query", "target")
    scoring = ProteinBlastScoring
    uses = ("comp_based_stats", "use_sw_tback", "xdrop_gap_final")

    @classmethod
    def applies(cls, options: Any) -> bool:
        return options.redoes_alignments() and not options.winnows()

    def run(self, context: Context, records: Records) -> Alignments:
        """Alignments by query and target, within a pair in `score_order`; their scores have fractions."""
        scoring, mode = context.scoring, context.options.composition_mode()
        costs = FineCosts.of(scoring, context.options)
        adjuster = Adjuster.of(context.options.matrix, mode) if mode else None
        least = significant_scores(context, costs.scale) if context.options.use_sw_tback else []

        def trace(preliminary: list[Hsp], place: int, query: np.ndarray, target: np.ndarray) -> list[Hsp]:
            if adjuster is not None and not least:
                return redone_hsps(preliminary, query, target, adjuster, costs)
            return optimal_for_pair(preliminary, query, target, adjuster, scoring.matrix, costs, least[place])

        alignments = traced_pairs(context, records, trace)
        return alignments.replace([FINE_SCORE], score=alignments.score / costs.scale)
