"""``ungapped-scan`` on the CPU: the diagonals that the eight-bit scan finds, scored exactly; the best of each pair."""

import numpy as np
from seqloom.core.context import Context
from seqloom.core.records import Pairs, Records
from seqloom.core.stages import Footprint, Shape
from seqloom.core.threads import in_turn
from seqloom.plugins.common.lane_queues import KIND
from seqloom.plugins.protein_blast.diagonals_cpu import best_on_diagonals, promising_diagonals, scan_footprint
from seqloom.plugins.protein_blast.scan_reference import UngappedScan
from seqloom.plugins.protein_blast.scoring import read_as_query


class UngappedScanCpu(UngappedScan):
    __doc__ = UngappedScan.__doc__
    backend = "cpu"
    reads = (KIND,)

    def footprint(self, shape: Shape) -> Footprint:
        return scan_footprint(shape)

    def run(self, context: Context, records: Records | None) -> Pairs:
        scoring, queries, targets = context.scoring, context.queries, context.targets
        letters = read_as_query(queries.searched())
        everything = np.arange(len(targets))

        def of_query(place: int) -> Pairs:
            context.cancellation.check()
            query = letters[queries.offsets[place] : queries.offsets[place + 1]]
            cutoff = scoring.filter_cutoff(place)
            places, diagonals = promising_diagonals(context, query, everything, cutoff)
            scores = np.zeros(len(targets), np.int64)
            np.maximum.at(scores, places, best_on_diagonals(context, query, places, diagonals))
            kept = np.flatnonzero(scores >= cutoff)
            number = np.full(len(kept), queries.ordinals[place])
            return Pairs({"query": number, "target": targets.ordinals[kept], "score": scores[kept]})

        parts = in_turn(context.threads, of_query, np.flatnonzero(scoring.valid).tolist())
        context.count("pairs left out", len(parts) * len(targets) - sum(map(len, parts)))
        return Pairs.concat(parts)
