"""Alignments against which later ones are tested for containment, on the CPU: the rules of ``culling.SavedHsps``.

Saved alignments are kept in lists by stretch of the target: one that encloses another lies in the list of the
stretch where that begins.
"""

from __future__ import annotations

import numpy as np
from seqloom.core.classes import NamedTuple
from seqloom.core.kernels.jit import inline, kernel
from seqloom.plugins.common.culling_cpu import QUERY_END, QUERY_START, SCORE, TARGET_END, TARGET_START

STRETCH = 2048
COUNT, USED = range(2)
NOBODY = -1


class Saved(NamedTuple):
    """Alignments that were saved, and lists of them.

    Attributes:
        rows: i8[n, 8], alignments. alive: bool[n], whether they are still saved.
        heads: i4, the first entry of each stretch. entries: i4[m, 2], alignment and next entry.
        state: i8[2], alignments and entries in use.
    """

    rows: np.ndarray
    alive: np.ndarray
    heads: np.ndarray
    entries: np.ndarray
    state: np.ndarray

    def grown(self) -> Saved:
        """The same with twice the entries."""
        return self._replace(entries=np.concatenate([self.entries, self.entries]))


def saved_room(most: int, target: int, entries: int | None = None) -> Saved:
    """For ``most`` alignments with targets of so many bases; entries: in so many stretches, where that is known."""
    stretches = target // STRETCH + 2
    if entries is None:
        entries = 3 * most + min(most, 64) * stretches
    return Saved(np.empty((most, 8), np.int64), np.empty(most, np.bool_), np.full(stretches, NOBODY, np.int32),
                 np.empty((entries, 2), np.int32), np.zeros(2, np.int64))


@inline
def copy_row(row, to):
    """One by one: an assigned slice may be copied to a new array first, and no kernel that makes one is quick."""
    for column in range(len(row)):
        to[column] = row[column]


@kernel
def forget(saved):
    """Begin anew."""
    for row in range(saved.state[COUNT]):
        for stretch in range(saved.rows[row, TARGET_START] // STRETCH, saved.rows[row, TARGET_END] // STRETCH + 1):
            saved.heads[stretch] = NOBODY
    saved.state[COUNT] = saved.state[USED] = 0


@kernel
def has_room(saved, target):
    """Whether any alignment with a target of so many bases can be saved."""
    return saved.state[USED] + target // STRETCH + 1 <= len(saved.entries)


@kernel
def encloses(outer, inner, separation):
    """``culling.encloses``."""
    if not (inner[SCORE] <= outer[SCORE] and outer[QUERY_START] <= inner[QUERY_START]
            and inner[QUERY_END] <= outer[QUERY_END] and outer[TARGET_START] <= inner[TARGET_START]
            and inner[TARGET_END] <= outer[TARGET_END]):
        return False
    starts = (outer[QUERY_START] - outer[TARGET_START]) - (inner[QUERY_START] - inner[TARGET_START])
    ends = (outer[QUERY_END] - outer[TARGET_END]) - (inner[QUERY_END] - inner[TARGET_END])
    return abs(starts) < separation or abs(ends) < separation


@kernel
def is_contained(saved, hsp, separation):
    """Whether a saved alignment encloses ``hsp``."""
    entry = saved.heads[hsp[TARGET_START] // STRETCH]
    while entry != NOBODY:
        row = saved.entries[entry, 0]
        if saved.alive[row] and encloses(saved.rows[row], hsp, separation):
            return True
        entry = saved.entries[entry, 1]
    return False


@kernel
def _preferred(one, other):
    """Whether ``one`` is preferred to ``other``, or as good: score down, query span up, target span up."""
    if one[SCORE] != other[SCORE]:
        return one[SCORE] > other[SCORE]
    longer = (one[QUERY_END] - one[QUERY_START]) - (other[QUERY_END] - other[QUERY_START])
    if longer != 0:
        return longer < 0
    return one[TARGET_END] - one[TARGET_START] <= other[TARGET_END] - other[TARGET_START]


@kernel
def save(saved, hsp):
    """Add ``hsp`` unless a better one shares an end with it; False where there is no room."""
    for query, target in ((QUERY_START, TARGET_START), (QUERY_END, TARGET_END)):
        entry = saved.heads[hsp[target] // STRETCH]
        while entry != NOBODY:
            row = saved.entries[entry, 0]
            rival = saved.rows[row]
            if saved.alive[row] and rival[query] == hsp[query] and rival[target] == hsp[target]:
                if _preferred(rival, hsp):
                    return True
                saved.alive[row] = False
            entry = saved.entries[entry, 1]
    first, last = hsp[TARGET_START] // STRETCH, hsp[TARGET_END] // STRETCH
    row, used = saved.state[COUNT], saved.state[USED]
    if used + last - first + 1 > len(saved.entries):
        return False
    copy_row(hsp, saved.rows[row])
    saved.alive[row] = True
    for stretch in range(first, last + 1):
        saved.entries[used, 0], saved.entries[used, 1] = row, saved.heads[stretch]
        saved.heads[stretch] = used
        used += 1
    saved.state[COUNT], saved.state[USED] = row + 1, used
    return True
