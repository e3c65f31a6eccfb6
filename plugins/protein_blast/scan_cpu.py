"""``ungapped-scan`` on the CPU: eight-bit lanes over interleaved targets; the few scores beyond them again, exactly."""

import numpy as np
from seqloom.core.context import Context
from seqloom.core.jit import kernel
from seqloom.core.records import Pairs, Records
from seqloom.core.stages import Footprint, Shape
from seqloom.plugins.common.lanes import KIND
from seqloom.plugins.common.scan import CEILING, LANES, best_scores, profile_tables
from seqloom.plugins.protein_blast.scan_reference import UngappedScan
from seqloom.plugins.protein_blast.scoring import read_as_query


@kernel
def _best_segment(matrix, query, target, ending):
    """Best segment score of one pair in full precision; ``ending`` is i4[len(query)] working space."""
    best = 0
    ending[:] = 0
    for letter in target:
        diagonal = 0
        for k in range(len(query)):
            score = max(0, diagonal + matrix[query[k], letter])
            diagonal = ending[k]
            ending[k] = score
            best = max(best, score)
    return best


class UngappedScanCpu(UngappedScan):
    __doc__ = UngappedScan.__doc__
    backend = "cpu"

    def footprint(self, shape: Shape) -> Footprint:
        return Footprint(host=(LANES + 64) * shape.longest_query + 8 * shape.targets)

    def run(self, context: Context, records: Records | None) -> Pairs:
        scoring, queries, targets = context.scoring, context.queries, context.targets
        lanes = context.index(KIND)
        letters = read_as_query(queries.searched())
        parts = []
        for place in np.flatnonzero(scoring.valid).tolist():
            context.cancellation.check()
            query = letters[queries.offsets[place] : queries.offsets[place + 1]]
            scores = best_scores(profile_tables(scoring.matrix[query]), len(query), lanes)
            ending = np.empty(len(query), np.int32)
            for position in np.flatnonzero(scores >= CEILING).tolist():
                scores[position] = _best_segment(scoring.matrix, query, targets[position], ending)
            kept = np.flatnonzero(scores >= scoring.filter_cutoff(place))
            context.count("pairs left out", len(targets) - len(kept))
            number = np.full(len(kept), queries.ordinals[place])
            parts.append(Pairs({"query": number, "target": targets.ordinals[kept], "score": scores[kept]}))
        return Pairs.concat(parts)
