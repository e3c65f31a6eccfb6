"""Words of residues as numbers, and how much there is of word hits and of what comes of them: what stages share."""

from __future__ import annotations

import numpy as np
from seqloom.core.alphabet import PROTEIN
from seqloom.core.stages import Footprint, Shape

RESIDUES = len(PROTEIN)
HITS_PER_CELL = 0.0025
"""Word hits per pair of residues with the default words; real proteins show 0.0017 to 0.0022."""
BYTES_PER_HIT = 140
"""Most that a stage between seeding and ungapped extension holds per word hit, its input included."""
TRIGGER_SPACE = 1 << 22
"""Pairs of residues among which one segment by chance has the 22 bits that gapped extension takes at E-value limits
that don't ask for less."""


def segment_excess(shape: Shape) -> float:
    """How many times as many segments pass as do at usual E-value limits, at which 22 bits decide; at least 1."""
    options = shape.options
    if options is None:
        return 1.0
    length = shape.query_residues / max(1, shape.queries)
    space = options.searchsp or length * (options.dbsize or max(shape.database_residues, shape.target_residues))
    return max(1.0, options.evalue * TRIGGER_SPACE / max(1.0, space))


def hits_footprint(shape: Shape) -> Footprint:
    """Memory for the word hits of a unit, from average proteins; shorter words make more hits.

    Behind the scan their number rises more slowly than that of segments, which share diagonals.
    """
    share = min(1.0, shape.share * segment_excess(shape) ** 0.75)
    return Footprint(host=int(HITS_PER_CELL * BYTES_PER_HIT * share * shape.query_residues * shape.target_residues))


def word_codes(symbols: np.ndarray, word_size: int, base: int = RESIDUES) -> np.ndarray:
    """i8[n − word_size + 1]: number of the word that starts at each position, first symbol most significant."""
    count = max(len(symbols) - word_size + 1, 0)
    numbers = np.zeros(count, np.int64)
    for place in range(word_size):
        numbers *= base
        numbers += symbols[place : place + count]
    return numbers


def word_starts(offsets: np.ndarray, word_size: int, usable: np.ndarray | None = None) -> np.ndarray:
    """i8[m]: positions in a packed batch where a word starts that doesn't leave its sequence.

    Args:
        offsets: i8[k+1] of the batch.
        usable: bool[n]; words that touch an unusable position are left out.
    """
    residues = int(offsets[-1])
    bad = np.zeros(residues + 1, bool)
    for back in range(1, word_size):
        ends = offsets[1:] - back
        bad[ends[ends >= offsets[:-1]]] = True
    starts = ~bad[: max(residues - word_size + 1, 0)]
    if usable is not None:
        for place in range(word_size):
            starts &= usable[place : place + len(starts)]
    return np.flatnonzero(starts)


def spread(starts: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """i8[m]: indices `starts[i], starts[i] + 1, …` (`counts[i]` of them) for every i, one behind the other; both are
    i8[n]."""
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    return np.repeat(starts - (ends - counts), counts) + np.arange(total)
