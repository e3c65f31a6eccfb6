"""``two-hit-diagonals`` on the CPU: the reference's numpy is quick enough for the hits that the filters leave."""

from seqloom.plugins.protein_blast.sort_diagonal_reference import TwoHitDiagonals


class TwoHitDiagonalsCpu(TwoHitDiagonals):
    __doc__ = TwoHitDiagonals.__doc__
    backend = "cpu"
