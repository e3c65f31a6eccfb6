"""Symmetric DUST: intervals of low complexity in a nucleotide sequence (Morgulis et al. 2006).

The sequence is read as overlapping triplets. An interval of ``t`` triplets scores the number of pairs of equal
triplets in it, divided by ``t - 1``. An interval is masked when its score exceeds the threshold and no interval
inside it scores higher ("perfect interval"); only intervals that fit into a window are looked at.

Here the definition is evaluated as it stands, for all starts at once and one interval length after the other.

Ambiguities follow dustmasker: a run of N is masked when it is longer than the window or touches an end of the
sequence; any other N is read as a random base, any other ambiguity as A. dustmasker sometimes draws more than one
random base for an N near an earlier low-complexity stretch; intervals that owe their score to random bases can
therefore differ from it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from seqloom.core.alphabet import NUCLEOTIDE
from seqloom.core.options import option
from seqloom.core.sequences import Intervals, SequenceBatch
from seqloom.core.stages import Masker
from seqloom.plugins.nucleotide_blast.random_bases import LaggedFibonacci

_N = NUCLEOTIDE.unknown_code


@dataclass(frozen=True)
class DustOptions:
    """Options of DUST."""

    level: int = option(20, "ten times the score from which on an interval is masked", minimum=0)
    window: int = option(64, "bases of the longest interval that is looked at", minimum=4)
    linker: int = option(1, "intervals at most so many bases apart are joined", minimum=1)


class Dust(Masker):
    """Low-complexity intervals by symmetric DUST, as dustmasker finds them."""

    name = "dust"
    alphabets = ("nucleotide",)
    Options = DustOptions

    def intervals(self, batch: SequenceBatch) -> Intervals:
        options = self.options
        rows = []
        for sequence in range(len(batch)):
            found = dust_intervals(batch[sequence], options.level, options.window, options.linker)
            rows += [(sequence, start, end) for start, end in found.tolist()]
        return Intervals.of(rows)


def dust_intervals(codes: np.ndarray, level: int = 20, window: int = 64, linker: int = 1) -> np.ndarray:
    """Low-complexity intervals of one sequence.

    codes: u8[n] in the order ``ACGTRYMKWSBDHVN-``. level: ten times the score that an interval must exceed.
    window: bases. linker: intervals at most this far apart are merged (BLAST's ``level window linker``).
    Returns i64[k, 2], half-open, sorted, disjoint.
    """
    unknown = _masked_runs_of_n(codes, window)
    triplets = _triplets(codes, unknown)
    marked = np.zeros(len(codes) + 1, dtype=np.int32)
    # Pairs of equal triplets in every interval of the present length, and of the two shorter ones.
    pairs = np.zeros(len(triplets), dtype=np.int32)
    shorter = np.zeros(len(triplets) + 1, dtype=np.int32)
    best_inside = np.zeros(len(triplets))
    for length in range(2, min(window - 2, len(triplets)) + 1):
        starts = len(triplets) - length + 1
        equal_ends = triplets[:starts] == triplets[length - 1 :]
        pairs, shorter = pairs[:-1] + pairs[1:] - shorter[1:-1] + equal_ends, pairs
        # Equal fractions give equal doubles, and unequal ones differ by far more than the rounding.
        score = pairs / (length - 1)
        best_inside = np.maximum(best_inside[:-1], best_inside[1:])
        perfect = np.flatnonzero((score >= best_inside) & (10 * pairs > level * (length - 1)))
        np.maximum(best_inside, score, out=best_inside)
        np.add.at(marked, perfect, 1)
        np.add.at(marked, perfect + length + 2, -1)
    return _merge((np.cumsum(marked[:-1]) > 0) | unknown, linker)


def _masked_runs_of_n(codes: np.ndarray, window: int) -> np.ndarray:
    """Flags, bool[n], of the letters in runs of N that are masked as they are."""
    flags = np.zeros(len(codes), dtype=bool)
    for start, end in _runs(codes == _N).tolist():
        if start == 0 or end == len(codes) or end - start > window:
            flags[start:end] = True
    return flags


def _triplets(codes: np.ndarray, unknown: np.ndarray) -> np.ndarray:
    """The 6-bit triplet at every position, i32[n - 2]; one that touches an unknown letter differs from all others."""
    if len(codes) < 3:
        return np.zeros(0, dtype=np.int32)
    bases = np.where(codes < 4, codes, 0).astype(np.int32)
    drawn = np.flatnonzero((codes == _N) & ~unknown)
    if drawn.size:
        generator = LaggedFibonacci.with_built_in_state()
        bases[drawn] = [generator.draw() & 3 for _ in range(len(drawn))]
    triplets = bases[:-2] << 4 | bases[1:-1] << 2 | bases[2:]
    touched = np.flatnonzero(unknown[:-2] | unknown[1:-1] | unknown[2:])
    triplets[touched] = -1 - np.arange(len(touched), dtype=np.int32)
    return triplets


def _runs(flags: np.ndarray) -> np.ndarray:
    """Half-open intervals of the stretches of True, i64[k, 2]."""
    return np.flatnonzero(np.diff(np.concatenate([[False], flags, [False]]))).reshape(-1, 2)


def _merge(masked: np.ndarray, linker: int) -> np.ndarray:
    intervals: list[list[int]] = []
    for start, end in _runs(masked).tolist():
        # The last masked base and the next first one may be ``linker`` apart: touching intervals are one apart.
        if intervals and start - (intervals[-1][1] - 1) <= linker:
            intervals[-1][1] = end
        else:
            intervals.append([start, end])
    return np.array(intervals, dtype=np.int64).reshape(-1, 2)
