"""``ungapped-scan`` on the CPU: the diagonals that the eight-bit scan finds, scored exactly; the best of each pair."""

import numpy as np
from seqloom.core.context import Context
from seqloom.core.engine.threads import run_tasks
from seqloom.core.records import Pairs, Records
from seqloom.core.stages import Footprint, Shape
from seqloom.plugins.protein_blast.diagonals_cpu import (
    Task,
    best_on_diagonals,
    promising_diagonals,
    scan_footprint,
    scanned_together,
)
from seqloom.plugins.protein_blast.scan_reference import UngappedScan
from seqloom.plugins.protein_blast.scoring import read_as_query


class UngappedScanCpu(UngappedScan):
    __doc__ = UngappedScan.__doc__
    backend = "cpu"
    cells_per_second = 2e11

    def footprint(self, shape: Shape) -> Footprint:
        return scan_footprint(shape)

    def run(self, context: Context, records: Records | None) -> Pairs:
        scoring, queries, targets = context.scoring, context.queries, context.targets
        residues = read_as_query(queries.searched())
        everything = np.arange(len(targets))

        def of_group(group: list[Task]) -> list[Pairs]:
            parts = []
            for (place, _), found in zip(group, promising_diagonals(context, residues, group), strict=True):
                places, diagonals = found
                query = residues[queries.offsets[place] : queries.offsets[place + 1]]
                scores = np.zeros(len(targets), np.int64)
                np.maximum.at(scores, places, best_on_diagonals(context, query, places, diagonals))
                kept = np.flatnonzero(scores >= scoring.filter_cutoff(place))
                number = np.full(len(kept), queries.ordinals[place])
                parts.append(Pairs({"query": number, "target": targets.ordinals[kept], "score": scores[kept]}))
            context.advance(len(group), valid)
            return parts

        valid = int(np.count_nonzero(scoring.valid))
        tasks = ((place, everything) for place in np.flatnonzero(scoring.valid).tolist())
        groups = run_tasks(context.threads, of_group, scanned_together(context, tasks))
        parts = [pairs for group in groups for pairs in group]
        context.count("pairs left out", len(parts) * len(targets) - sum(map(len, parts)))
        return Pairs.concat(parts)
