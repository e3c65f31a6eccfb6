"""Letters of many alignments at once, from their edit paths."""

import numpy as np
from seqloom.core.jit import inline, kernel
from seqloom.core.records import DELETE, INSERT, Ragged

_GAP = ord("-")


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
def _fill(query, residues, bounds, frames, path, path_offsets, letters, offsets, upper, lower):
    """Write the letters of both sequences, along the forward strand of the query; see ``letter_rows``."""
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
                    upper[out] = letters[0, query[above]]
                    above += 1
                if kind != INSERT:
                    lower[out] = letters[1, residues[end]] if turned else letters[0, residues[below]]
                    below += 1
                    end -= 1
                out += 1


@kernel
def _operations(query, residues, bounds, frames, path, path_offsets, letters, text, ends):
    """Write BLAST's traceback operations of all alignments, and where the text of each ends; see ``btops``."""
    place = 0
    for row in range(len(path_offsets) - 1):
        first, last = path_offsets[row], path_offsets[row + 1]
        backwards = frames[row, 0] < 0
        turned = np.int64(frames[row, 0] * frames[row, 1] < 0)
        above, below, onwards = bounds[row, 0], bounds[row, 2], np.int64(1)
        if turned:
            below, onwards = bounds[row, 3] - 1, np.int64(-1)
        equal = np.int64(0)
        n = first
        while n < last:
            step = path[last - 1 - (n - first) if backwards else n]
            kind, length = step & 15, np.int64(step >> 4)
            n += 1
            if kind == INSERT:
                for k in range(length):
                    place, equal = _column(text, place, equal, letters[0, query[above + k]], _GAP)
                above += length
            elif kind == DELETE:
                for k in range(length):
                    place, equal = _column(text, place, equal, _GAP, letters[turned, residues[below + k * onwards]])
                below += length * onwards
            else:
                while n < last:
                    step = path[last - 1 - (n - first) if backwards else n]
                    if step & 15 == INSERT or step & 15 == DELETE:
                        break
                    length += step >> 4
                    n += 1
                for k in range(length):
                    place, equal = _column(text, place, equal, letters[0, query[above + k]],
                                           letters[turned, residues[below + k * onwards]])
                above += length
                below += length * onwards
        place = _number(text, place, equal)
        ends[row] = place
    return place


@inline
def _column(text, place, equal, upper, lower):
    """Add a column behind ``equal`` ones of equal letters; gives where the text ends now, and how many are equal now.

    A pair, and before it a number of one digit, are written always, and stay if they are wanted: columns of one kind
    are few in a row, so that to jump would be guessed wrong at every other.
    """
    unequal = np.int64(upper != lower)
    if unequal & (equal > 9):
        place, equal = _number(text, place, equal), np.int64(0)
    text[place] = 48 + equal
    place += unequal & (equal > 0)
    text[place], text[place + 1] = upper, lower
    return place + 2 * unequal, (equal + 1) * (1 - unequal)


@inline
def _number(text, place, number):
    """Write a number that isn't 0; gives where it ends."""
    scale = np.int64(1)
    while scale * 10 <= number:
        scale *= 10
    while scale and number:
        text[place] = 48 + number // scale % 10
        place += 1
        scale //= 10
    return place


def letter_rows(query: np.ndarray, residues: np.ndarray, bounds: np.ndarray, frames: np.ndarray, path: Ragged,
                letters: np.ndarray) -> tuple[Ragged, Ragged]:
    """Letters of both sequences of each alignment with gaps, along the forward strand of the query.

    Args:
        query: u1 codes of whole queries.
        residues: u1 codes of the targets.
        bounds: i8[n, 4] where the alignment begins and ends in ``query``, and in ``residues``.
        frames: i8[n, 2] query_frame, target_frame.
        path: u4 edit operations of each, in the direction of its query_frame.
        letters: u1[2, 256] letter of each code, and of its complement.
    """
    offsets = np.empty(len(path) + 1, np.int64)
    _columns(path.values, path.offsets, offsets)
    upper, lower = np.empty(offsets[-1], np.uint8), np.empty(offsets[-1], np.uint8)
    _fill(query, residues, bounds, frames, path.values, path.offsets, letters, offsets, upper, lower)
    return Ragged(offsets, upper), Ragged(offsets, lower)


def btops(query: np.ndarray, residues: np.ndarray, bounds: np.ndarray, frames: np.ndarray, path: Ragged,
          letters: np.ndarray) -> Ragged:
    """BLAST's traceback operations of each alignment, u1: numbers of equal letters, and the pairs of unequal ones.

    The query's letter comes first in a pair. Letters are compared, whatever the path says of them. See ``letter_rows``.
    """
    columns = int((path.values >> 4).sum())
    text, offsets = np.empty(2 * columns + 3, np.uint8), np.zeros(len(path) + 1, np.int64)
    size = _operations(query, residues, bounds, frames, path.values, path.offsets, letters, text, offsets[1:])
    return Ragged(offsets, text[:size])
