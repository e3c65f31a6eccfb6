"""Strands of queries on the CPU: the function of this name of the reference, in one pass."""

from seqloom.core.kernels.jit import kernel
from seqloom.core.sequences import SequenceBatch

from .seed_reference import Strand, empty_strand, strand_table


@kernel
def _fill(residues, offsets, table, backward, symbols):
    """Write the symbols of each query behind a free place; ``table`` gives them by residue."""
    for query in range(len(offsets) - 1):
        first, last = offsets[query], offsets[query + 1]
        begin = first + 1 + query
        if backward:
            for n in range(last - first):
                symbols[begin + n] = table[residues[last - 1 - n]]
        else:
            for n in range(last - first):
                symbols[begin + n] = table[residues[first + n]]


def strand_of(queries: SequenceBatch, frame: int, acgt_only: bool) -> Strand:
    """One strand of the queries in symbols."""
    strand = empty_strand(queries, frame)
    _fill(queries.residues, queries.offsets, strand_table(queries, frame, acgt_only), frame < 0, strand.symbols)
    return strand
