"""``two-hit-diagonals`` on the CPU: hits that come in order already stay as they are; neighbours compiled."""

import numpy as np
from seqloom.core.context import Context
from seqloom.core.kernels.jit import kernel
from seqloom.core.keys import byte_keys
from seqloom.core.records import Records, Seeds
from seqloom.plugins.protein_blast.sort_diagonal_reference import TwoHitDiagonals, packed_keys, without_lone


@kernel
def _in_order(query, target, query_pos, target_pos):
    """Whether rows rise by query, target, diagonal and target position."""
    for row in range(1, len(query)):
        if query[row] != query[row - 1]:
            if query[row] < query[row - 1]:
                return False
        elif target[row] != target[row - 1]:
            if target[row] < target[row - 1]:
                return False
        else:
            move, step = target_pos[row] - target_pos[row - 1], query_pos[row] - query_pos[row - 1]
            if move < step or (move == step and move < 0):
                return False
    return True


@kernel
def _near_another(query, target, query_pos, target_pos, window, near):
    """Mark the sorted hits that have a neighbour on their diagonal less than ``window`` residues away."""
    for row in range(1, len(query)):
        move = target_pos[row] - target_pos[row - 1]
        if (query[row] == query[row - 1] and target[row] == target[row - 1]
                and query_pos[row] - query_pos[row - 1] == move and move < window):
            near[row - 1] = near[row] = True


class TwoHitDiagonalsCpu(TwoHitDiagonals):
    __doc__ = TwoHitDiagonals.__doc__
    backend = "cpu"

    def run(self, context: Context, records: Records) -> Seeds:
        assert isinstance(records, Seeds)
        seeds = records
        if not _in_order(seeds.query, seeds.target, seeds.query_pos, seeds.target_pos):
            seeds = seeds.take(self.order(context, byte_keys(packed_keys(seeds))))
        window = context.options.window()
        if window == 0:
            return seeds
        near = np.zeros(len(seeds), np.bool_)
        _near_another(seeds.query, seeds.target, seeds.query_pos, seeds.target_pos, window, near)
        return without_lone(context, seeds, near)
