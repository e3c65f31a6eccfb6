"""How far alignments of a query reach on a target, and what their stretches take in memory.

An alignment of m query residues scores at most m times the best residue score, so that its gaps take a bounded number
of target residues.
"""

from collections.abc import Sequence

from seqloom.core.context import Scoring
from seqloom.core.kernels.simd import BYTE_LANES
from seqloom.core.stages import Shape
from seqloom.plugins.common.stretches_cpu import LEAST_PIECE

_USUAL_REACH = 18  # target residues per query residue; with BLOSUM62 and 11/1 it's 12, with PAM30 and 9/1 18


def usual_piece(shape: Shape) -> int:
    """Residues of the longest stretch of a unit under usual scores and gap costs."""
    return min(shape.longest_target, max(LEAST_PIECE, 4 * _USUAL_REACH * shape.longest_query)
               + _USUAL_REACH * shape.longest_query)


def interleaved_bytes(shape: Shape) -> int:
    """Memory of all stretches of a unit side by side, overlaps and padding included."""
    return shape.target_residues * 3 // 2 + usual_piece(shape) * BYTE_LANES


def reach_of(scoring: Scoring, query_lengths: Sequence[int]) -> int | None:
    """Most target residues of an alignment of the longest query that scores above 0; None without a bound."""
    assert scoring.matrix is not None
    if not scoring.gap_extend:
        return None
    longest = max(query_lengths, default=0)
    return longest + longest * max(0, int(scoring.matrix.max())) // scoring.gap_extend
