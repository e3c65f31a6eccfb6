"""Some sequences of a batch, put one behind the other."""

from typing import Any

import numpy as np
from seqloom.core.kernels.jit import kernel
from seqloom.core.sequences import SequenceBatch, offsets_of


@kernel
def copy_chosen(residues, offsets, places, starts, chosen):
    """Copy u1 ``residues`` of the sequences at i8[n] ``places``, to i8[n + 1] ``starts`` in ``chosen``."""
    for number in range(len(places)):
        # Unsigned places, as none counts from the end of an array.
        begin, start, end = np.uint64(offsets[places[number]]), np.uint64(starts[number]), np.uint64(starts[number + 1])
        for k in range(end - start):
            chosen[start + k] = residues[begin + k]


def chosen_sequences(batch: SequenceBatch, searched: np.ndarray, places: np.ndarray) -> SequenceBatch:
    """The sequences at i8[n] ``places``, residues as ``searched``: views of neighbours, or copies without names."""
    if len(places) and (places[1:] == places[:-1] + 1).all():
        return batch.take(int(places[0]), int(places[-1]) + 1)
    starts = offsets_of(batch.lengths[places])
    residues: Any = np.empty(starts[-1], np.uint8)
    copy_chosen(searched, batch.offsets, places, starts, residues)
    return SequenceBatch(batch.alphabet, residues, starts, batch.ordinals[places])
