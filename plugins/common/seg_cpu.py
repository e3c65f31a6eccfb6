"""SEG in kernels: what ``seg`` finds, as stretches, or as residues masked in place.

The counts of a window matter, not whose they are: how many amino acids occur how often takes the place of a sort for
each window, and is looked at only where few enough occur. Sums are added up in the order of ``seg``, so that they are
equal.
"""

import math
from functools import cache

import numpy as np
from seqloom.core.alphabet import PROTEIN
from seqloom.core.kernels.jit import inline, kernel
from seqloom.plugins.common.seg import AMINO_ACIDS, MOST_OTHERS, MOST_TRIMMED, entropy_terms, log_factorials

_KINDS = _OTHER = len(AMINO_ACIDS)
_KIND_OF = np.full(256, _OTHER)
_KIND_OF[[PROTEIN.letters.index(residue) for residue in AMINO_ACIDS]] = np.arange(_KINDS)
_LOG_KINDS = math.log(_KINDS)
_NEARLY = 1e-3
"""More than sums of logarithms differ by the order of their terms."""
_ROWS = 1 << 14
"""Stretches for which there is room at a time, in any case."""


@kernel
def _entropies(codes, window, terms, most_kinds, counts, occurring, entropies):
    """Bits per counted residue of each window, NaN where too many don't count or more than ``most_kinds`` occur."""
    counts[:] = 0
    kinds = 0  # of all that occur, the others as one of them
    for end in range(len(codes)):
        kind = _KIND_OF[codes[end]]
        kinds += counts[kind] == 0
        counts[kind] += 1
        begin = end - window + 1
        if begin < 0:
            continue
        others = counts[_OTHER]
        if others > MOST_OTHERS or kinds - (others > 0) > most_kinds:
            entropies[begin] = np.nan
        else:
            occurring[: window + 1] = 0
            for amino_acid in range(_KINDS):
                occurring[counts[amino_acid]] += 1
            bits = 0.0
            for often in range(window, 0, -1):
                for _ in range(occurring[often]):
                    bits += terms[often, MOST_OTHERS - others]
            entropies[begin] = abs(bits / max(window - others, 1))
        kind = _KIND_OF[codes[begin]]
        counts[kind] -= 1
        kinds -= counts[kind] == 0


@inline
def _counted(residue, change, counts, occurring, factorials):
    """Count a residue in (``change`` 1) or out (−1); returns what `_score` gains by it."""
    kind = _KIND_OF[residue]
    if kind == _OTHER:
        counts[kind] += change
        return 0.0
    before = counts[kind]
    after = before + change
    gain = factorials[before] - factorials[after] + factorials[occurring[before]] + factorials[occurring[after]]
    occurring[before] -= 1
    occurring[after] += 1
    counts[kind] = after
    return gain - factorials[occurring[before]] - factorials[occurring[after]]


@kernel
def _score(size, others, occurring, factorials):
    """How probable a stretch is in which amino acids occur as often as that: the logarithm."""
    compositions, orders = factorials[_KINDS], factorials[size]
    if others < size:
        most = size
        while occurring[most] == 0:
            most -= 1
        for often in range(most, -1, -1):
            compositions -= factorials[occurring[often]]
            for _ in range(occurring[often] if often > 1 else 0):
                orders -= factorials[often]
    return compositions + orders - size * _LOG_KINDS


@kernel
def _trimmed(codes, begin, end, factorials, counts, occurring):
    """The least probable part of a stretch that is shorter by less than ``MOST_TRIMMED``.

    What is gained and lost with each residue tells nearly how probable a part is, and so which ones to look at.
    """
    full = end - begin
    least = 1.0
    best_begin, best_end = begin, end
    for size in range(full, max(full - MOST_TRIMMED, 1), -1):
        counts[:], occurring[: size + 1] = 0, 0
        occurring[0] = _KINDS
        near = factorials[size] - size * _LOG_KINDS - _NEARLY
        for place in range(begin, begin + size):
            near += _counted(codes[place], 1, counts, occurring, factorials)
        for start in range(begin, end - size + 1):
            if near < least:
                score = _score(size, counts[_OTHER], occurring, factorials)
                if score < least:
                    least, best_begin, best_end = score, start, start + size
            if start + size < end:
                near += _counted(codes[start], -1, counts, occurring, factorials)
                near += _counted(codes[start + size], 1, counts, occurring, factorials)
    return best_begin, best_end


@kernel
def _next(codes, start, lowest, windows, window, hicut, entropies, factorials, counts, occurring):
    """First window and stretch of the segment that a window triggers, and where to go on."""
    first = last = start
    while first > lowest and entropies[first - 1] <= hicut:
        first -= 1
    while last + 1 < windows and entropies[last + 1] <= hicut:
        last += 1
    begin, end = _trimmed(codes, first, last + window, factorials, counts, occurring)
    return first, begin, end, min(last, end - 1) + 1


@kernel
def _find(codes, window, locut, hicut, terms, most_kinds, factorials, entropies, counts, occurring, found):
    """Stretches of low complexity, into i8[2 n, 2] ``found`` for n codes; how many there are."""
    windows = len(codes) - window + 1
    if windows < 1:
        return 0
    _entropies(codes, window, terms, most_kinds, counts, occurring, entropies)
    count = start = lowest = 0
    while start < windows:
        if not entropies[start] <= locut:
            start += 1
            continue
        first, begin, end, after = _next(codes, start, lowest, windows, window, hicut, entropies, factorials, counts,
                                         occurring)
        found[count, 0], found[count, 1] = begin, end
        count += 1
        if start + window <= begin:
            # The trigger was trimmed away: the last segment of what lies before counts, too.
            left = left_lowest = first
            left_begin = left_end = first
            while left < begin - window + 1:
                if not entropies[left] <= locut:
                    left += 1
                    continue
                _, left_begin, left_end, left = _next(codes, left, left_lowest, begin - window + 1, window, hicut,
                                                      entropies, factorials, counts, occurring)
                left_lowest = left
            if left_begin < left_end:
                found[count, 0], found[count, 1] = left_begin, left_end
                count += 1
        start = lowest = after
    return count


@kernel
def _mask_all(residues, offsets, first, last, window, locut, hicut, terms, most_kinds, factorials, unknown, entropies,
              counts, occurring, found, masked, biased):
    for sequence in range(first, last):
        begin, end = offsets[sequence], offsets[sequence + 1]
        count = _find(residues[begin:end], window, locut, hicut, terms, most_kinds, factorials, entropies, counts,
                      occurring, found)
        for row in range(count):
            masked[begin + found[row, 0] : begin + found[row, 1]] = unknown
        biased[sequence] = count > 0


@kernel
def _find_all(residues, offsets, first, window, locut, hicut, terms, most_kinds, factorials, entropies, counts,
              occurring, found, rows):
    """Rows of sequence, begin and end from sequence ``first`` on while there is room; how many, and where to go on."""
    kept = 0
    for sequence in range(first, len(offsets) - 1):
        begin, end = offsets[sequence], offsets[sequence + 1]
        if kept + 2 * (end - begin) > len(rows):
            return kept, sequence
        count = _find(residues[begin:end], window, locut, hicut, terms, most_kinds, factorials, entropies, counts,
                      occurring, found)
        for row in range(count):
            rows[kept, 0], rows[kept, 1], rows[kept, 2] = sequence, found[row, 0], found[row, 1]
            kept += 1
    return kept, len(offsets) - 1


def find_low_complexity(residues: np.ndarray, offsets: np.ndarray, window: int, locut: float,
                        hicut: float) -> np.ndarray:
    """The stretches of all sequences: i8[m, 3] of sequence, begin and end, half-open, by sequence.

    Args:
        residues, offsets: u1[n], i8[k + 1]: sequence i is ``residues[offsets[i]:offsets[i + 1]]``.
        window, locut, hicut: see ``SegOptions``.
    """
    longest = int(np.diff(offsets).max(initial=window))
    rows, parts, first = np.empty((max(_ROWS, 2 * longest), 3), np.int64), [], 0
    tables, room = _tables(longest, window, hicut), _room(longest)
    while first < len(offsets) - 1:
        count, first = _find_all(residues, offsets, first, window, locut, hicut, *tables, *room, rows)
        parts.append(rows[:count].copy())
    return np.concatenate(parts) if parts else rows[:0]


def mask_low_complexity(residues: np.ndarray, offsets: np.ndarray, first: int, last: int, parameters: tuple,
                        masked: np.ndarray, biased: np.ndarray) -> None:
    """Mask sequences ``first`` … ``last`` − 1.

    Args:
        residues, offsets: u1[n], i8[k + 1]: sequence i is ``residues[offsets[i]:offsets[i + 1]]``.
        parameters: window, locut and hicut.
        masked: u1[n], where residues of low complexity are set to X; the others stay as they are.
        biased: bool[k], where it is kept which sequences have any.
    """
    window, locut, hicut = parameters
    longest = int(np.diff(offsets[first : last + 1]).max(initial=window))
    _mask_all(residues, offsets, first, last, window, locut, hicut, *_tables(longest, window, hicut),
              np.uint8(PROTEIN.unknown_code), *_room(longest), masked, biased)


def _tables(longest: int, window: int, hicut: float) -> tuple[np.ndarray, int, np.ndarray]:
    """Terms of entropies, the most kinds of a window, and factorials."""
    return entropy_terms(window), _most_kinds(window, hicut), log_factorials(max(longest, _KINDS))


def _room(longest: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """For entropies, counts by kind, kinds by count, and stretches of a sequence."""
    return (np.empty(longest), np.empty(_KINDS + 1, np.int64), np.empty(longest + 1, np.int64),
            np.empty((2 * longest, 2), np.int64))


@cache
def _most_kinds(window: int, hicut: float) -> int:
    """So many amino acids at most occur in a window with an entropy of up to ``hicut``: one of them often, others once.
    """
    terms = entropy_terms(window)
    for kinds in range(_KINDS, 0, -1):
        for column in range(MOST_OTHERS + 1):
            counted = window - MOST_OTHERS + column
            often = counted - kinds + 1
            if often > 0 and abs(terms[often, column] + (kinds - 1) * terms[1, column]) / counted <= hicut + 1e-6:
                return kinds
    return 1
