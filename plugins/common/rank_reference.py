"""Ranking of a query's targets over the whole database as BLAST does it, and the cuts, which come last.

Targets: best E-value up (values below 1e-180 count as equal), best raw score down, later target first. Alignments of a
target: E-value up, then score down, target start up, target end down, query start up, query end down; where query and
target run in opposite directions, the last two are counted on the query's reverse strand. Which `max_hsps` of them stay
is decided by scores, with the fractions that adjusted ones had: E-values tell these apart. On both strands equal scores
have several E-values, so that these don't count there.

Differences from the peer: BLAST also cuts its list after the preliminary stage, to min(max(2N, 10), N + 50) targets
for N = `max_target_seqs`, by scores that the traceback may still change. Here all stay until the end, so the best N are
the best N. Results are the same wherever that limit doesn't bind.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from seqloom.core.context import Context
from seqloom.core.distinct import distinct, ranked
from seqloom.core.keys import byte_keys
from seqloom.core.records import Alignments, Hits, Records
from seqloom.core.stages import Footprint, Shape, SortStage
from seqloom.plugins.common.grouping import group_starts
from seqloom.plugins.common.winnow import best_of_targets

SMALLEST_EVALUE = 1e-180
RELATED = 250
"""Alignments of a query beside those that are expected by chance, on average."""
BYTES_PER_ALIGNMENT, BYTES_PER_RESIDUE, MOST_BYTES = 400, 2, 1400
"""Of an alignment before and after ranking; of its path, for each residue of a query; and of both at most."""
AT_ONCE, BYTES_PER_COPY = 1 << 16, 800
"""Alignments that are ranked at a time, of whole queries, and what the copies that this makes take of each."""


class RankTargets(SortStage):
    """Best targets per query, with their alignments in order; applies max_hsps, qcov_hsp_perc and max_target_seqs."""

    name = "rank-targets"
    backend = "reference"
    takes = (Alignments,)
    gives = Hits
    gives_order = ("query",)
    scopes = ("reduce",)
    uses = ("max_hsps", "qcov_hsp_perc", "max_target_seqs")

    def footprint(self, shape: Shape) -> Footprint:
        targets = max(shape.database_targets, shape.targets)  # of all volumes
        alignments = min(1.5 * targets, RELATED + getattr(shape.options, "evalue", 0.0))
        residues = shape.query_residues / max(1, shape.queries)
        of_each = min(BYTES_PER_ALIGNMENT + BYTES_PER_RESIDUE * residues, MOST_BYTES)
        most = shape.queries * alignments
        return Footprint(host=int(of_each * most + BYTES_PER_COPY * min(most, AT_ONCE + alignments)))

    def run(self, context: Context, records: Records) -> Hits:
        assert isinstance(records, Alignments)
        if len(records) <= AT_ONCE:
            return self._ranked(context, records)
        order = np.argsort(records.query, kind="stable")
        starts = group_starts(records.query[order])
        cuts = distinct(starts[np.searchsorted(starts, [*range(0, len(order), AT_ONCE), len(order)])])
        return Hits.concat([self._ranked(context, records.take(order[first:last]))
                            for first, last in pairwise(cuts.tolist())])

    def _ranked(self, context: Context, records: Alignments) -> Hits:
        """The best targets of some queries, whose records are all there."""
        options = context.options
        alignments = records.take(self._best_first(context, records, _flat(records.evalue)))
        bounds = group_starts(alignments.query, alignments.target)
        firsts, sizes = bounds[:-1], np.diff(bounds)
        # The raw score of the best alignment, not of the first: E-values below the limit tie.
        score = np.maximum.reduceat(alignments.score, firsts) if len(firsts) else alignments.score
        hits = Hits({"score": score, **{name: alignments.data[name][firsts]
                                        for name in ("query", "target", "bit_score", "evalue")}})
        kept = covering(context, alignments)
        if options.max_hsps is not None:
            by_score = self._best_first(context, alignments, _fine_order(context, alignments))
            kept[by_score] &= _first(sizes, options.max_hsps)
        if getattr(options, "subject_besthit", False):
            kept &= self._best_of_targets(context, alignments, kept)
        keys = byte_keys([hits.query, _flat(hits.evalue), hits.score, hits.target], [False, False, True, True])
        order = self.order(context, keys)
        order = order[np.add.reduceat(kept, bounds[:-1], dtype=np.int64)[order] > 0] if len(order) else order
        per_query = np.diff(group_starts(hits.query[order]))
        order = order[_first(per_query, options.max_target_seqs)]
        return hits.with_alignments(alignments.take(kept)).take(order)

    def _best_of_targets(self, context: Context, alignments: Alignments, kept: np.ndarray) -> np.ndarray:
        """bool[n]: of those kept so far, alignments outside the range of every better one with the same target."""
        rows = self._best_first(context, alignments, _fine_order(context, alignments))
        rows = rows[kept[rows]]
        ordered = alignments.take(rows)
        best = np.zeros(len(alignments), bool)
        best[rows] = best_of_targets(group_starts(ordered.query, ordered.target), ordered.query_start,
                                     ordered.query_end, ordered.query_frame * ordered.target_frame < 0)
        return best

    def _best_first(self, context: Context, records: Alignments, evalues: np.ndarray) -> np.ndarray:
        """i64[n]: the order in which alignments of each query and target are reported, with f64[n] ``evalues``."""
        lengths = _query_lengths(context, records)
        opposite = records.query_frame * records.target_frame < 0
        keys = byte_keys(
            [
                records.query,
                records.target,
                evalues,
                records.score,
                records.target_start,
                records.target_end,
                np.where(opposite, lengths - records.query_end, records.query_start),
                np.where(opposite, lengths - records.query_start, records.query_end),
            ],
            [False, False, False, True, False, True, False, True],
        )
        return self.order(context, keys)


def covering(context: Context, alignments: Alignments) -> np.ndarray:
    """bool[n]: alignments that cover enough of their query for the option ``qcov_hsp_perc``."""
    lengths = _query_lengths(context, alignments)
    coverage = (alignments.query_end - alignments.query_start) * 100.0 / lengths
    # The peer rounds up by half a percent, except near full coverage.
    return coverage + np.where(coverage < 99, 0.5, 0.0) >= context.options.qcov_hsp_perc


def _query_lengths(context: Context, records: Records) -> np.ndarray:
    return context.queries.lengths[context.queries.locate(records.query)]


def _fine_order(context: Context, alignments: Alignments) -> np.ndarray:
    """f8[n]: what puts alignments of a pair in the order of their scores, where these alone don't.

    As in the peer, they do behind culling or a choice of best hits, and for a query that has some on either strand.
    """
    options = context.options
    rounded = getattr(options, "culling_limit", None) or getattr(options, "best_hit", lambda: None)()
    if rounded or not len(alignments):
        return np.zeros(len(alignments))
    _, query = ranked(alignments.query)
    both_strands = np.bincount(query, alignments.query_frame * alignments.target_frame < 0) > 0
    return np.where(both_strands[query], 0.0, alignments.evalue)


def _flat(evalues: np.ndarray) -> np.ndarray:
    return np.where(evalues < SMALLEST_EVALUE, 0.0, evalues)


def _first(sizes: np.ndarray, most: int | None) -> np.ndarray:
    """bool[n]: the first `most` rows of each group of `sizes` rows; all when None."""
    place = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return np.ones(len(place), bool) if most is None else place < most
