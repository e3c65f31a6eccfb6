"""The diagonals of a pair on which a reportable segment lies, as a filter before seeding that changes no result.

An ungapped extension stays on its diagonal, and nothing on one diagonal depends on another. So words need to be looked
up only on diagonals whose best segment reaches the query's cutoff C (see ``scan_reference``).
"""

from collections.abc import Iterator

import numpy as np
from seqloom.core.context import Context
from seqloom.core.records import Pairs, Records, Seeds
from seqloom.core.stages import Footprint, SeedStage, Shape
from seqloom.plugins.protein_blast.scoring import ProteinBlastScoring, read_as_query


def best_on_diagonals(query: np.ndarray, target: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    """i4[m + n − 1]: best segment score on each diagonal, diagonal d (target minus query position) at d + m − 1."""
    size = len(query)
    best = np.zeros(max(0, size + len(target) - 1), np.int32)
    ending = np.zeros_like(best)
    for place, residue in enumerate(target.tolist()):
        # Query position k meets this residue on diagonal place − k.
        window = slice(place, place + size)
        ending[window] = np.maximum(ending[window] + matrix[query[::-1], residue], 0)
        np.maximum(best[window], ending[window], out=best[window])
    return best


def diagonal_rows(query: "int | np.ndarray", target: "int | np.ndarray", sizes: tuple,
                  diagonals: np.ndarray) -> dict[str, np.ndarray]:
    """Columns of the seeds that stand for whole i8[n] ``diagonals`` of a pair with ``sizes`` residues."""
    query_pos, target_pos = np.maximum(-diagonals, 0), np.maximum(diagonals, 0)
    count = len(diagonals)
    return {
        "query": np.full(count, query), "target": np.full(count, target),
        "query_pos": query_pos, "target_pos": target_pos,
        "length": np.minimum(sizes[0] - query_pos, sizes[1] - target_pos),
        "query_frame": np.ones(count, np.int8), "target_frame": np.ones(count, np.int8),
    }


def pairs_to_search(context: Context, records: Records | None) -> Iterator[tuple[int, np.ndarray]]:
    """Position in the batch of each valid query, and the positions in the volume of the targets to look at."""
    queries, targets = context.queries, context.targets
    if records is None:
        everything = np.arange(len(targets))
        yield from ((place, everything) for place in np.flatnonzero(context.scoring.valid).tolist())
        return
    order = np.lexsort((records.target, records.query))
    numbers, targets_of = records.query[order], targets.locate(records.target[order])
    bounds = np.searchsorted(numbers, np.append(queries.ordinals, queries.ordinals[-1:] + 1))
    for place in np.flatnonzero(context.scoring.valid).tolist():
        if bounds[place] < bounds[place + 1]:
            yield place, targets_of[bounds[place] : bounds[place + 1]]


class SegmentDiagonals(SeedStage):
    """Whole diagonals whose best ungapped segment reaches the query's cutoff; only these can lead to a hit."""

    name = "segment-diagonals"
    backend = "reference"
    takes = (None, Pairs)
    gives = Seeds
    gives_order = ("query", "target", "diagonal")
    narrows = True
    leaves = 0.002  # a quarter of a thousandth of real proteins' diagonals, on which hits are far denser
    scoring = ProteinBlastScoring

    def footprint(self, shape: Shape) -> Footprint:
        return Footprint(host=40 * shape.target_residues)

    def run(self, context: Context, records: Records | None) -> Seeds:
        scoring, queries, targets = context.scoring, context.queries, context.targets
        residues = read_as_query(queries.searched())
        parts = []
        for place, chosen in pairs_to_search(context, records):
            context.cancellation.check()
            query = residues[queries.offsets[place] : queries.offsets[place + 1]]
            cutoff = scoring.filter_cutoff(place)
            for position in chosen.tolist():
                best = best_on_diagonals(query, targets[position], scoring.matrix)
                found = np.flatnonzero(best >= cutoff)
                sizes = len(query), len(targets[position])
                context.count("pairs left out", not len(found))
                parts.append(Seeds(diagonal_rows(queries.ordinals[place], targets.ordinals[position], sizes,
                                                 found - len(query) + 1)))
        return Seeds.concat(parts)
