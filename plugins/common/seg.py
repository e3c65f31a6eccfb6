"""SEG: stretches of low compositional complexity in proteins (Wootton & Federhen 1993, 1996), as in BLAST+ 2.12.

A window whose residues have an entropy of at most `locut` bits triggers. It is extended in both directions over windows
of at most `hicut`, and the stretch that these cover is trimmed to its least probable part. Only the 20 amino acids
count; a window with more than two other residues (X, B, Z, U, J, O, *) has no entropy.
"""

import math
from functools import cache

import numpy as np
from seqloom.core.alphabet import PROTEIN

AMINO_ACIDS = "ACDEFGHIKLMNPQRSTVWY"
MOST_OTHERS = 2
MOST_TRIMMED = 50
_KINDS = len(AMINO_ACIDS)
_LOGARITHMS_OF_TENTHS = (
    0.0, -2.30258509, -1.60943791, -1.203982804, -0.91629073, -0.6931478, -0.510825623, -0.356674944, -0.22314355,
    -0.105360515, 0.0,
)  # fmt: skip
"""ln (i / 10) as the peer has it for ten counted residues: i = 5 is off in the seventh decimal."""


def composition(codes: np.ndarray) -> np.ndarray:
    """i8[20, n + 1]: how often each amino acid occurs before each position of u8[n] codes."""
    sums = np.zeros((_KINDS, len(codes) + 1), np.int64)
    for kind, residue in enumerate(AMINO_ACIDS):
        np.cumsum(codes == PROTEIN.letters.index(residue), out=sums[kind, 1:])
    return sums


def window_entropies(sums: np.ndarray, window: int) -> np.ndarray:
    """f8[n − window + 1]: bits per counted residue of each window; NaN where too many residues don't count."""
    counts = sums[:, window:] - sums[:, :-window]
    counted = counts.sum(axis=0)
    bits = np.zeros(counts.shape[1])
    # Added as the peer adds, the most frequent residue first: an entropy may meet a cut-off exactly.
    for row in -np.sort(-counts, axis=0):
        bits += entropy_terms(window)[row, np.maximum(counted - window + MOST_OTHERS, 0)]
    return np.where(window - counted > MOST_OTHERS, np.nan, np.abs(bits / np.maximum(counted, 1)))


@cache
def entropy_terms(window: int) -> np.ndarray:
    """f8[window + 1, 3]: c · log2(c / t) for c of t = window − 2, window − 1 and window counted residues."""
    terms = np.zeros((window + 1, MOST_OTHERS + 1))
    for column in range(MOST_OTHERS + 1):
        counted = window - MOST_OTHERS + column
        for count in range(1, counted + 1):
            share = _LOGARITHMS_OF_TENTHS[count] if counted == 10 else math.log(count / counted)
            terms[count, column] = count * share / math.log(2.0)
    return terms


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
    lowest = start = 0  # windows by their first residue
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
            # Of what is found there the peer keeps the last stretch only.
            left = low_complexity(codes[first:begin], window, locut, hicut)
            found += [(first + low, first + high) for low, high in left[-1:]]
        found.append((begin, end))
        start = lowest = min(last, end - 1) + 1
    return found


def trimmed(sums: np.ndarray, begin: int, end: int) -> tuple[int, int]:
    """The least probable part of the stretch `begin`…`end` that is shorter by less than 50 residues.

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
    """f8[m]: ln of the probability of compositions i8[20, m] of stretches of `sizes` residues, equal residue odds."""
    factorials = log_factorials(max(int(sizes.max()), _KINDS))
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
def log_factorials(most: int) -> np.ndarray:
    """f8[`most` + 1]: ln n! for n = 0…`most` to six decimals: as the peer's table, which settles ties of equally
    probable stretches."""
    return np.round(np.cumsum(np.log(np.maximum(np.arange(most + 1), 1))), 6)
