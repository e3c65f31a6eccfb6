"""Word hits in the order of their diagonals, without those that can't take part in a pair (cuBLASTP section 3.3).

Sort and filter are those of the paper, with one difference. The paper drops a hit with no neighbour on its *left* on
the diagonal; here a hit goes only if it has no neighbour within the window on *either* side, because the first of two
hits is still needed to judge the second. Dropping such a lone hit is sound. It can't be the second of a pair. And where
the extension stage would remember it as a first hit, the next hit on the diagonal is a window or more away and takes
its place with or without it; the state after that hit is the same. So lone hits may as well stay, and do where they are
so few that moving all others takes longer than extending past them.
"""

from __future__ import annotations

import numpy as np
from seqloom.core.context import Context
from seqloom.core.keys import byte_keys
from seqloom.core.records import Records, Seeds
from seqloom.core.stages import Footprint, Shape, SortStage
from seqloom.plugins.protein_blast.scoring import ProteinBlastScoring
from seqloom.plugins.protein_blast.words import hits_footprint

ORDER = ("query", "target", "diagonal", "target_pos")


def packed_keys(seeds: Seeds) -> list[np.ndarray]:
    """Key columns for the order (query, target, diagonal, target position).

    One u8 number per hit where the four fit into 64 bits, as in the paper (figure 7), else the four columns.
    """
    columns = [
        seeds.query.astype(np.int64),
        seeds.target,
        seeds.target_pos.astype(np.int64) - seeds.query_pos,
        seeds.target_pos.astype(np.int64),
    ]
    columns = [column - column.min(initial=0) for column in columns]
    widths = [int(column.max(initial=0)).bit_length() for column in columns]
    if sum(widths) > 64:
        return columns
    packed = np.zeros(len(seeds), np.uint64)
    for column, width in zip(columns, widths, strict=True):
        packed = packed << np.uint64(width) | column.astype(np.uint64)
    return [packed]


def near_another(seeds: Seeds, window: int) -> np.ndarray:
    """bool[n]: whether a sorted hit has a neighbour on its diagonal less than `window` residues away."""
    if len(seeds) == 0:
        return np.zeros(0, bool)
    diagonal = seeds.target_pos - seeds.query_pos
    same = (np.diff(seeds.query) == 0) & (np.diff(seeds.target) == 0) & (np.diff(diagonal) == 0)
    near = same & (np.diff(seeds.target_pos) < window)
    return np.r_[near, False] | np.r_[False, near]


FEW = 0.25
"""Share of lone hits up to which they stay."""


def without_lone(context: Context, seeds: Seeds, near: np.ndarray) -> Seeds:
    """The sorted hits that are ``near`` (bool[n]) another, or all of them where that is nearly all."""
    lone = len(seeds) - int(np.count_nonzero(near))
    few = lone <= FEW * len(seeds)
    context.count("lone hits dropped", 0 if few else lone)
    return seeds if few else seeds.take(near)


class TwoHitDiagonals(SortStage):
    """Sorts word hits by query, target, diagonal and position; drops those without a partner in the window, if many."""

    name = "two-hit-diagonals"
    backend = "reference"
    takes = (Seeds,)
    gives = Seeds
    gives_order = ORDER
    scoring = ProteinBlastScoring

    def footprint(self, shape: Shape) -> Footprint:
        return hits_footprint(shape)

    def run(self, context: Context, records: Records) -> Seeds:
        assert isinstance(records, Seeds)
        seeds = records.take(self.order(context, byte_keys(packed_keys(records))))
        window = context.options.window()
        if window == 0:
            return seeds
        return without_lone(context, seeds, near_another(seeds, window))
