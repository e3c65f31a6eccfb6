"""Strands of queries on the CPU: the function of this name of the reference, in one pass."""

import numpy as np
from seqloom.core.kernels.jit import kernel
from seqloom.core.sequences import SequenceBatch

from .seed_reference import Strand, strand_in, strand_size, strand_table
from .symbols import NEVER


@kernel
def _fill(residues, offsets, table, backward, symbols):
    """Write the symbols of each query behind a place without one; ``table`` gives them by residue."""
    free = np.uint64(1)
    for query in range(len(offsets) - 1):
        first, last = np.uint64(offsets[query]), np.uint64(offsets[query + 1])
        symbols[first + free - np.uint64(1)] = np.uint8(NEVER)
        if backward:
            behind = first + last + free - np.uint64(1)
            for place in range(first + free, last + free):
                symbols[place] = table[residues[behind - place]]
        else:
            for place in range(first, last):
                symbols[place + free] = table[residues[place]]
        free += np.uint64(1)
    symbols[np.uint64(offsets[-1]) + free - np.uint64(1) :] = np.uint8(NEVER)


def strand_of(queries: SequenceBatch, frame: int, acgt_only: bool) -> Strand:
    """One strand of the queries in symbols."""
    strand = strand_in(np.empty(strand_size(queries), np.uint8), queries, frame)
    _fill(queries.residues, queries.offsets, strand_table(queries, frame, acgt_only), frame < 0, strand.symbols)
    return strand
