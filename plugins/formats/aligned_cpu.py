"""Letters of many alignments at once, from their edit paths."""

from itertools import pairwise

import numpy as np
from seqloom.core.jit import kernel
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
def _fill(query, residues, bounds, frames, path, path_offsets, letters, complement, offsets, upper, lower):
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
                    upper[out] = letters[query[above]]
                    above += 1
                if kind != INSERT:
                    lower[out] = letters[complement[residues[end]]] if turned else letters[residues[below]]
                    below += 1
                    end -= 1
                out += 1


@kernel
def _operations(upper, lower, offsets, text, ends):
    """Write BLAST's traceback operations of all alignments, and where the text of each ends; gives its length."""
    place = 0
    for row in range(len(offsets) - 1):
        equal = 0
        for n in range(offsets[row], offsets[row + 1] + 1):
            last = n == offsets[row + 1]
            if not last and upper[n] == lower[n]:
                equal += 1
                continue
            if equal:
                scale = 1
                while scale * 10 <= equal:
                    scale *= 10
                while scale:
                    text[place] = 48 + equal // scale % 10
                    place += 1
                    scale //= 10
                equal = 0
            if not last:
                text[place], text[place + 1] = upper[n], lower[n]
                place += 2
        ends[row] = place
    return place


def letter_rows(query: np.ndarray, residues: np.ndarray, bounds: np.ndarray, frames: np.ndarray, path: Ragged,
                letters: np.ndarray, complement: np.ndarray) -> tuple[Ragged, Ragged]:
    """Letters of both sequences of each alignment with gaps, along the forward strand of the query.

    Args:
        query: u1 codes of the whole query.
        residues: u1 codes of the targets.
        bounds: i8[n, 4] query_start, query_end, and where the target's part begins and ends among ``residues``.
        frames: i8[n, 2] query_frame, target_frame.
        path: u4 edit operations of each, in the direction of its query_frame.
        letters, complement: u1[…] letter and complement of each code.
    """
    offsets = np.empty(len(path) + 1, np.int64)
    _columns(path.values, path.offsets, offsets)
    upper, lower = np.empty(offsets[-1], np.uint8), np.empty(offsets[-1], np.uint8)
    _fill(query, residues, bounds, frames, path.values, path.offsets, letters, complement, offsets, upper, lower)
    return Ragged(offsets, upper), Ragged(offsets, lower)


def btops(upper: Ragged, lower: Ragged) -> list[str]:
    """BLAST's traceback operations of each alignment: numbers of equal letters, and the pairs of unequal ones.

    The query's letter comes first in a pair.
    """
    text, ends = np.empty(2 * len(upper.values), np.uint8), np.empty(len(upper), np.int64)
    size = _operations(upper.values, lower.values, upper.offsets, text, ends)
    whole = text[:size].tobytes().decode("ascii")
    return [whole[first:last] for first, last in pairwise([0, *ends.tolist()])]
