"""Exact ungapped scores of all pairs, as a filter before seeding that changes no result.

Every alignment that is reported descends from an ungapped segment with a score of at least the query's cutoff
C = min(gap trigger, S), and that segment lies on one diagonal. So a pair whose best ungapped segment scores less than C
can't have a hit, and its words need not be looked up. Pairs at exactly C do have hits: nothing sharper is sound. (One
exception halves C: see ``ProteinBlastScoring.filter_cutoff``.)
The scores are those that the search uses: hard-masked residues as X, softly masked ones as they are.
"""

from __future__ import annotations

import numpy as np
from seqloom.core.context import Context
from seqloom.core.records import Pairs, Records
from seqloom.core.sequences import SequenceBatch
from seqloom.core.stages import Footprint, SeedStage, Shape
from seqloom.plugins.protein_blast.scoring import ProteinBlastScoring, read_as_query


def best_segments(query: np.ndarray, targets: SequenceBatch, matrix: np.ndarray) -> np.ndarray:
    """i4[k]: score of the best ungapped segment of a query (u8 codes) with each target, at least 0.

    Column by column of the query, for all target positions at once: a segment that ends here is the one that ended one
    residue before on the diagonal, or a new one, plus the pair's score.
    """
    best = np.zeros(targets.total_residues, np.int32)
    # One cell more at the front, so that the diagonal step is a shift; targets begin with an empty segment.
    ending = np.zeros(targets.total_residues + 1, np.int32)
    starts = targets.offsets[:-1]
    for residue in query.tolist():
        ending[starts] = 0
        ending[1:] = np.maximum(ending[:-1] + matrix[residue][targets.residues], 0)
        np.maximum(best, ending[1:], out=best)
    scores = np.zeros(len(targets), np.int32)
    filled = np.flatnonzero(targets.lengths)
    if len(filled):
        scores[filled] = np.maximum.reduceat(best, starts[filled])
    return scores


class UngappedScan(SeedStage):
    """Pairs whose best ungapped segment reaches the query's cutoff; leaves out only pairs that can't have hits."""

    name = "ungapped-scan"
    backend = "reference"
    takes = (None,)
    gives = Pairs
    gives_order = ("query", "target")
    narrows = True
    scoring = ProteinBlastScoring

    def footprint(self, shape: Shape) -> Footprint:
        return Footprint(host=20 * shape.target_residues)

    def run(self, context: Context, records: Records | None) -> Pairs:
        scoring, queries, targets = context.scoring, context.queries, context.targets
        residues = read_as_query(queries.searched())
        parts = []
        for place in np.flatnonzero(scoring.valid).tolist():
            scores = best_segments(
                residues[queries.offsets[place] : queries.offsets[place + 1]], targets, scoring.matrix
            )
            kept = np.flatnonzero(scores >= scoring.filter_cutoff(place))
            context.count("pairs left out", len(targets) - len(kept))
            query = np.full(len(kept), queries.ordinals[place])
            parts.append(Pairs({"query": query, "target": targets.ordinals[kept], "score": scores[kept]}))
            context.advance(1, int(np.count_nonzero(scoring.valid)))
        return Pairs.concat(parts)
