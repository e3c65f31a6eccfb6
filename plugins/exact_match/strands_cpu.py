"""Strands of queries on the CPU: the function of this name of the reference, in one pass."""

import numpy as np
from seqloom.core.kernels.jit import kernel
from seqloom.core.sequences import SequenceBatch

from .seed_reference import Strand, empty_strand, strand_table


@kernel
def _fill(residues, offsets, table, backward, symbols):
    """Write the symbols of each query behind a free place; ``table`` gives them by residue."""
    free = np.uint64(1)
    for query in range(len(offsets) - 1):
        first, last = np.uint64(offsets[query]), np.uint64(offsets[query + 1])
        if backward:
            behind = first + last + free - np.uint64(1)
            for place in range(first + free, last + free):
                symbols[place] = table[residues[behind - place]]
        else:
            for place in range(first, last):
                symbols[place + free] = table[residues[place]]
        free += np.uint64(1)


def strand_of(queries: SequenceBatch, frame: int, acgt_only: bool) -> Strand:
    """One strand of the queries in symbols."""
    strand = empty_strand(queries, frame)
    _fill(queries.residues, queries.offsets, strand_table(queries, frame, acgt_only), frame < 0, strand.symbols)
    return strand
