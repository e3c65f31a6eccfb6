"""Nodes of a model file as numbers, by a kernel that goes through their text once.

It knows the text as HMMER writes it: words between blanks, numbers with a point and no sign, 15 digits at most, so that
digits and a power of ten are exact in double precision and their quotient is what ``float`` gives. Where it finds
anything else it says so, and ``hmmfile.py`` reads these nodes word by word.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from seqloom.core.kernels.jit import inline, kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

_BLANK, _TAB, _LINE_END, _STAR, _POINT, _ZERO, _NINE, _NONE = (ord(c) for c in " \t\n*.09-")
_MOST_DIGITS = 15
_POWERS = 10.0 ** np.arange(_MOST_DIGITS + 1)


@inline
def _word(text, at):
    """Where the next word of this line begins; at its end if there is none."""
    while text[at] == _BLANK or text[at] == _TAB:
        at += 1
    return at


@inline
def _ends(letter):
    return letter in (_BLANK, _TAB, _LINE_END)


@kernel
def _numbers(text, at, found):
    """Fill f8 ``found`` with the next numbers of a line; where the last one ends, −1 if one is unusual."""
    for n in range(len(found)):
        at = _word(text, at)
        if text[at] == _STAR:
            found[n] = np.inf
            at += 1
        else:
            digits, behind, value = 0, 0, 0
            while _ZERO <= text[at] <= _NINE and digits < _MOST_DIGITS:
                value = value * 10 + int(text[at]) - _ZERO
                digits, at = digits + 1, at + 1
            if digits and text[at] == _POINT:
                at += 1
                while _ZERO <= text[at] <= _NINE and digits < _MOST_DIGITS:
                    value = value * 10 + int(text[at]) - _ZERO
                    digits, behind, at = digits + 1, behind + 1, at + 1
            if not digits:
                return -1
            found[n] = np.float64(value) / _POWERS[behind]
        if not _ends(text[at]):
            return -1
    return at


@kernel
def _nodes(text, first, places, match, inserts, transitions, annotation):
    """Fill f8[n, K], f8[K], f8[n, 7] and u1[n, 3] from the lines of n nodes; whether all was usual. ``text`` ends
    with a line."""
    at = 0
    for n in range(len(annotation)):
        at, node = _word(text, at), 0
        if text[at] == _ZERO:
            return False
        while _ZERO <= text[at] <= _NINE and node < 1 << 40:
            node, at = node * 10 + int(text[at]) - _ZERO, at + 1
        if node != first + n or not _ends(text[at]):
            return False
        at = _numbers(text, at, match[n])
        if at < 0:
            return False
        annotation[n] = _NONE
        words = 1 + match.shape[1]
        while True:
            at = _word(text, at)
            if text[at] == _LINE_END:
                break
            for column in range(len(places)):
                if words == places[column]:
                    annotation[n, column] = text[at]
                    if not _ends(text[at + 1]):
                        return False
            while not _ends(text[at]):
                if not _BLANK < text[at] < 127:
                    return False
                at += 1
            words += 1
        at = _numbers(text, at + 1, inserts)
        if at < 0:
            return False
        at = _word(text, at)
        if text[at] != _LINE_END:
            return False
        at = _numbers(text, at + 1, transitions[n])
        if at < 0:
            return False
        at = _word(text, at)
        if text[at] != _LINE_END:
            return False
        at += 1
    return at == len(text)


@kernel
def _exponentials(values, found):
    for n in range(len(values)):
        found[n] = math.exp(values[n])


def annotation_places(version: str, count: int) -> tuple[int, int, int]:
    """Words of a match line with consensus, RF and CS, by version of the format; 0 where it has none.

    They stand behind the number of the node, ``count`` numbers and MAP: consensus from 3/e on, RF, MM from 3/f on, CS.
    """
    first = count + 2
    return ((first, first + 1, first + 3) if version >= "f" else (first, first + 1, first + 2) if version >= "e" else
            (0, first, first + 1))


def nodes(lines: list[str], first: int,
          places: tuple[int, int, int], residues: int) -> tuple[NDArray[np.float64], NDArray[np.float64], str] | None:
    """Numbers of nodes from their lines, three a node.

    Args:
        lines: with their ends, of which each has one at most.
        first: number of the first node.
        places: of ``annotation_places``.
        residues: K, that the model emits.

    Returns:
        Match emissions f8[n, K] and transitions f8[n, 7] as in the file, and the letters at the three places of
        each node, "-" where there is none. None if something is missing, wrong or written
        in an unusual way.
    """
    count, rest = divmod(len(lines), 3)
    joined = "".join(lines)
    if rest or not count or joined.count("\n") != len(lines):
        return None
    text = np.frombuffer(joined.encode("utf-8", "replace"), np.uint8)
    match, transitions, annotation = np.empty((count, residues)), np.empty((count, 7)), np.empty((count, 3), np.uint8)
    if not _nodes(text, first, np.array(places), match, np.empty(residues), transitions, annotation):
        return None
    return match, transitions, annotation.tobytes().decode("ascii")


def expf(values: NDArray[np.float64]) -> NDArray[np.float32]:
    """``exact_math.expf`` with libm's function called by a kernel."""
    with np.errstate(over="ignore"):
        single = np.ascontiguousarray(values, np.float32)
    found = np.empty_like(single)
    _exponentials(single.reshape(-1), found.reshape(-1))
    return found
