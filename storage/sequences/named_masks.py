"""Masks that a database carries under names: how they come into it, and what says that they are as they were."""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from seqloom.core.classes import NamedTuple

from ...core.errors import InputError
from ...core.sequences import Intervals
from ..duck.literals import literal
from .chunk_tables import LOWER

LOWER_CASE = "lower-case"
"""Source of a mask that has these stretches."""
_NAME = re.compile(r"[A-Za-z0-9_.-]+")


class GivenMask(NamedTuple):
    """A mask that sequences come with.

    Attributes:
        name: that searches give.
        source: what its stretches were read from.
        names: of sequences that have stretches; None where the sequences are told by their numbers.
        sequence: i8[m], of each stretch the position in ``names``, or the number of the sequence among those that come.
        start, end: i8[m], half-open. Stretches are in any order, and may touch or overlap.
    """

    name: str
    source: str
    names: Sequence[str] | None
    sequence: np.ndarray
    start: np.ndarray
    end: np.ndarray

    @classmethod
    def of_lower_case(cls, name: str) -> "GivenMask":
        """The stretches in lower case."""
        return cls(name, LOWER_CASE, None, *np.empty((3, 0), np.int64))


def check_names(names: Sequence[str]) -> None:
    """Refuse names that masks can't have, or that are there twice; raises ``InputError``."""
    for number, name in enumerate(names):
        if not _NAME.fullmatch(name) or name == LOWER:
            raise InputError(f"'{name}' can't be the name of a mask: give letters, digits, _, . or -, and not "
                             f"'{LOWER}'")
        if name in names[:number]:
            raise InputError(f"mask '{name}' is given twice; give each its own name")


def placed(mask: GivenMask, ordinals: dict[str, int], lengths: np.ndarray, first: int) -> Intervals:
    """Stretches by ordinal, none of which touch.

    Args:
        ordinals: of those of its names that are there.
        lengths: i8[k] of the sequences with the ordinals from ``first`` on, which alone may have stretches.

    Raises:
        InputError: a sequence isn't among these, or is shorter.
    """
    if mask.names is None:
        number = mask.sequence
        outside = number[(number < 0) | (number >= len(lengths))].tolist()
        where = [f"sequence {one + 1:,}" for one in outside]
    else:
        where = [f"sequence '{name}'" for name in mask.names if ordinals.get(name, -1) < first]
    if where:
        raise InputError(f"{mask.source}: {where[0]} isn't among those that are added; give a mask that was made of "
                         "these files")
    if mask.names is not None:
        number = np.array([ordinals[name] for name in mask.names], np.int64)[mask.sequence] - first
    wrong = np.flatnonzero((mask.start < 0) | (mask.start >= mask.end) | (mask.end > lengths[number]))
    if len(wrong):
        at = wrong[0]
        raise InputError(f"{mask.source}: residues {mask.start[at]:,} to {mask.end[at] - 1:,}, from 0 on, aren't there "
                         f"in sequence {number[at] + first + 1:,}, which has {lengths[number[at]]:,}; give a mask that "
                         "was made of these files")
    order = np.lexsort((mask.start, number))
    united = Intervals((number + first)[order], mask.start[order], mask.end[order]).united()
    return united


def digest_of(run: Any, name: str) -> bytes:
    """SHA-256 of a mask's stretches, in their order. run: carries out SQL."""
    import hashlib

    rows = run(f'SELECT sequence, start, "end" FROM masks WHERE kind = {literal(name)} ORDER BY sequence, start')
    return hashlib.sha256(np.array(rows, "<i8").data).digest()
