"""Residues of many alignments at once, from their edit paths."""

import numpy as np
from seqloom.core.kernels.jit import inline, kernel
from seqloom.core.kernels.simd import CACHE_LINE, prefetch
from seqloom.core.records import DELETE, INSERT, Ragged

_GAP = np.uint8(ord("-"))
_AHEAD = 1024
"""Residues of the next target that are asked for while an alignment is written: more follow by themselves."""
_NONE, _ONE, _DIGIT, _BACK = np.uint64(0), np.uint64(1), np.uint64(9), np.uint64(2**64 - 1)


@kernel
def _columns(path, path_offsets, offsets):
    """Fill i8[n + 1] ``offsets`` of the columns of each alignment."""
    total = 0
    for row in range(len(path_offsets) - 1):
        offsets[row] = total
        for n in range(path_offsets[row], path_offsets[row + 1]):
            total += path[n] >> 4
    offsets[len(path_offsets) - 1] = total


@kernel
def _fill(query, residues, bounds, frames, path, path_offsets, characters, offsets, upper, lower):
    """Write the residues of both sequences, along the forward strand of the query; see ``aligned_rows``."""
    for row in range(len(path_offsets) - 1):
        first, last = path_offsets[row], path_offsets[row + 1]
        above, below, end = bounds[row, 0], bounds[row, 2], bounds[row, 3] - 1
        turned = frames[row, 0] * frames[row, 1] < 0
        out = offsets[row]
        for n in range(last - first):
            step = path[last - 1 - n if frames[row, 0] < 0 else first + n]
            kind = step & 15
            for _ in range(step >> 4):
                upper[out] = lower[out] = _GAP
                if kind != DELETE:
                    upper[out] = characters[0, query[above]]
                    above += 1
                if kind != INSERT:
                    lower[out] = characters[1, residues[end]] if turned else characters[0, residues[below]]
                    below += 1
                    end -= 1
                out += 1


@kernel
def _operations(query, residues, bounds, frames, path, path_offsets, characters, text, ends):
    """Write BLAST's traceback operations of all alignments, and where the text of each ends; see ``btops``."""
    place = _NONE  # places are unsigned: of a signed one it would be looked whether it is below 0
    for row in range(len(path_offsets) - 1):
        if row + 1 < len(bounds):
            first = bounds[row + 1, 2]
            for ahead in range(first, min(bounds[row + 1, 3], first + _AHEAD), CACHE_LINE):
                prefetch(residues, ahead)
        run, left, further = np.uint64(path_offsets[row]), path_offsets[row + 1] - path_offsets[row], _ONE
        if frames[row, 0] < 0:
            run, further = np.uint64(path_offsets[row + 1] - 1), _BACK
        above, below, onwards = np.uint64(bounds[row, 0]), np.uint64(bounds[row, 2]), _ONE
        upper, lower = characters[0], characters[0]
        if frames[row, 0] * frames[row, 1] < 0:
            below, onwards, lower = np.uint64(bounds[row, 3] - 1), _BACK, characters[1]
        equal = _NONE
        while left:
            kind, length = path[run] & 15, np.uint64(path[run] >> 4)
            run += further
            left -= 1
            if kind == INSERT:
                stop = above + length
                while above < stop:
                    place, equal = _column(text, place, equal, upper[query[above]], _GAP)
                    above += _ONE
            elif kind == DELETE:
                while length:
                    place, equal = _column(text, place, equal, _GAP, lower[residues[below]])
                    below += onwards
                    length -= _ONE
            else:
                while left and path[run] & 15 != INSERT and path[run] & 15 != DELETE:
                    length += np.uint64(path[run] >> 4)
                    run += further
                    left -= 1
                stop = above + length
                while above < stop:
                    place, equal = _column(text, place, equal, upper[query[above]], lower[residues[below]])
                    above += _ONE
                    below += onwards
        place = _number(text, place, equal)
        ends[row] = place
    return place


@inline
def _column(text, place, equal, upper, lower):
    """Add a column behind ``equal`` ones of equal residues; gives where the text ends now, and how many are equal now.

    A pair, and before it a number of one digit, are written always, and stay if they are wanted: columns of one kind
    are few in a row, so that to jump would be guessed wrong at every other.
    """
    unequal = np.uint64(upper != lower)
    if unequal & np.uint64(equal > _DIGIT):
        place, equal = _number(text, place, equal), _NONE
    text[place] = np.uint64(48) + equal
    place += unequal & np.uint64(equal > _NONE)
    text[place], text[place + _ONE] = upper, lower
    return place + unequal + unequal, (equal + _ONE) & (unequal - _ONE)


@inline
def _number(text, place, number):
    """Write a number that isn't 0; gives where it ends."""
    number, scale = np.int64(number), 1
    while scale * 10 <= number:
        scale *= 10
    while scale and number:
        text[place] = 48 + number // scale % 10
        place += _ONE
        scale //= 10
    return place


def aligned_rows(query: np.ndarray, residues: np.ndarray, bounds: np.ndarray, frames: np.ndarray, path: Ragged,
                characters: np.ndarray) -> tuple[Ragged, Ragged]:
    """Residues of both sequences of each alignment with gaps, along the forward strand of the query.

    Args:
        query: u1 codes of whole queries.
        residues: u1 codes of the targets.
        bounds: i8[n, 4] where the alignment begins and ends in ``query``, and in ``residues``.
        frames: i8[n, 2] query_frame, target_frame.
        path: u4 edit operations of each, in the direction of its query_frame.
        residues: u1[2, 256] residue of each code, and of its complement.
    """
    offsets = np.empty(len(path) + 1, np.int64)
    _columns(path.values, path.offsets, offsets)
    upper, lower = np.empty(offsets[-1], np.uint8), np.empty(offsets[-1], np.uint8)
    _fill(query, residues, bounds, frames, path.values, path.offsets, characters, offsets, upper, lower)
    return Ragged(offsets, upper), Ragged(offsets, lower)


def btops(query: np.ndarray, residues: np.ndarray, bounds: np.ndarray, frames: np.ndarray, path: Ragged,
          characters: np.ndarray) -> Ragged:
    """BLAST's traceback operations of each alignment, u1: numbers of equal residues, and the pairs of unequal ones.

    The query's residue comes first in a pair. Residues are compared, whatever the path says of them. See
    ``aligned_rows``.
    """
    columns = int(path.values.sum(dtype=np.int64)) >> 4  # or fewer
    text, offsets = np.empty(2 * columns + 3, np.uint8), np.zeros(len(path) + 1, np.int64)
    size = _operations(query, residues, bounds, frames, path.values, path.offsets, characters, text, offsets[1:])
    return Ragged(offsets, text[:size])
