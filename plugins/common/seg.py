"""SEG: stretches of low compositional complexity in proteins (Wootton & Federhen 1993, 1996), as in BLAST+ 2.12.

A window whose letters have an entropy of at most `locut` bits triggers. It is extended in both directions over windows
of at most `hicut`, and the stretch that these cover is trimmed to its least probable part. Only the 20 amino acids
count; a window with more than two other letters (X, B, Z, U, J, O, *) has no entropy.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np
from seqloom.core.alphabet import PROTEIN
from seqloom.core.errors import OptionError
from seqloom.core.options import option
from seqloom.core.sequences import Intervals, SequenceBatch
from seqloom.core.stages import Masker

AMINO_ACIDS = "ACDEFGHIKLMNPQRSTVWY"
MOST_OTHERS = 2
MOST_TRIMMED = 50
_KINDS = len(AMINO_ACIDS)


def composition(codes: np.ndarray) -> np.ndarray:
    """i8[20, n + 1]: how often each amino acid occurs before each position of u8[n] codes."""
    sums = np.zeros((_KINDS, len(codes) + 1), np.int64)
    for kind, letter in enumerate(AMINO_ACIDS):
        np.cumsum(codes == PROTEIN.letters.index(letter), out=sums[kind, 1:])
    return sums


def window_entropies(sums: np.ndarray, window: int) -> np.ndarray:
    """f8[n − window + 1]: bits per counted letter of each window; NaN where too many letters don't count."""
    counts = sums[:, window:] - sums[:, :-window]
    counted = counts.sum(axis=0)
    share = counts / np.maximum(counted, 1)
    terms = np.where(counts > 0, -share * np.log2(np.where(counts > 0, share, 1.0)), 0.0)
    # Sorted, so that windows of equal counts get equal sums to the last bit.
    return np.where(window - counted > MOST_OTHERS, np.nan, np.sort(terms, axis=0).sum(axis=0))


def low_complexity(
    codes: np.ndarray, window: int = 12, locut: float = 2.2, hicut: float = 2.5
) -> list[tuple[int, int]]:
    """Half-open stretches of u8[n] `codes`, in order of discovery; they may overlap. Empty if n < `window`."""
    if len(codes) < window:
        return []
    sums = composition(codes)
    entropies = window_entropies(sums, window)
    triggers, extends = entropies <= locut, entropies <= hicut
    found: list[tuple[int, int]] = []
    lowest = start = 0  # windows by their first letter
    while start < len(entropies):
        if not triggers[start]:
            start += 1
            continue
        first = start
        while first > lowest and extends[first - 1]:
            first -= 1
        last = start
        while last + 1 < len(entropies) and extends[last + 1]:
            last += 1
        begin, end = trimmed(sums, first, last + window)
        if start + window <= begin:
            # The trigger was trimmed away: what lies before the trimmed stretch is searched by itself.
            left = low_complexity(codes[first:begin], window, locut, hicut)
            found += [(first + low, first + high) for low, high in left]
        found.append((begin, end))
        start = lowest = min(last, end - 1) + 1
    return found


def trimmed(sums: np.ndarray, begin: int, end: int) -> tuple[int, int]:
    """The least probable part of the stretch `begin`…`end` that is shorter by less than 50 letters.

    Probability: number of compositions and of orders that look like it, over all sequences of its length. Of equal ones
    the longest, then the leftmost wins; the whole stretch stays if nothing has a probability below e.
    """
    full = end - begin
    lengths = np.arange(full, max(full - MOST_TRIMMED, 1), -1)
    if not len(lengths):
        return begin, end
    sizes = np.repeat(lengths, full - lengths + 1)
    starts = begin + np.concatenate([np.arange(full - length + 1) for length in lengths])
    scores = log_probabilities(sums[:, starts + sizes] - sums[:, starts], sizes)
    best = int(np.argmin(scores))
    if scores[best] >= 1.0:
        return begin, end
    return int(starts[best]), int(starts[best] + sizes[best])


def log_probabilities(counts: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """f8[m]: ln of the probability of compositions i8[20, m] of stretches of `sizes` letters, equal letter odds."""
    factorials = _log_factorials(max(int(sizes.max()), _KINDS))
    compositions = np.full(len(sizes), factorials[_KINDS])
    for value in range(int(counts.max()), -1, -1):
        compositions -= factorials[(counts == value).sum(axis=0)]
    # A stretch without any amino acid keeps all 20! assignments, as in the peer.
    compositions[counts.sum(axis=0) == 0] = factorials[_KINDS]
    orders = factorials[sizes]
    for row in -np.sort(-counts, axis=0):
        orders = orders - factorials[row]
    return compositions + orders - sizes * math.log(_KINDS)


@cache
def _log_factorials(most: int) -> np.ndarray:
    """ln n! for n = 0…`most` to six decimals: as the peer's table, which settles ties of equally probable stretches."""
    return np.round(np.cumsum(np.log(np.maximum(np.arange(most + 1), 1))), 6)


@dataclass(frozen=True)
class SegOptions:
    """Options of SEG."""

    window: int = option(12, "letters of a window", minimum=1)
    locut: float = option(2.2, "entropy in bits at which a window triggers", minimum=0.0)
    hicut: float = option(2.5, "entropy in bits up to which a stretch is extended", minimum=0.0)

    def check(self) -> None:
        """The trigger must not be above the extension's limit; raises `OptionError`."""
        if self.locut > self.hicut:
            raise OptionError(f"SEG's locut ({self.locut}) must not exceed its hicut ({self.hicut})")


class Seg(Masker):
    """Low-complexity stretches of proteins by SEG."""

    name = "seg"
    alphabets = ("protein",)
    Options = SegOptions

    def intervals(self, batch: SequenceBatch) -> Intervals:
        chosen = self.options
        rows = []
        for place in range(len(batch)):
            stretches = low_complexity(batch[place], chosen.window, chosen.locut, chosen.hicut)
            rows += [(place, begin, end) for begin, end in stretches]
        return Intervals.of(rows)
