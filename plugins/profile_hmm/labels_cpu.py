"""``labels_reference`` on the CPU: tenths of all cells, before optimal paths take their place; then those of a path."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from seqloom.core.kernels.jit import kernel

from .domains import Path
from .forward_cpu import SCALE, SPECIALS, Matrices
from .labels_reference import NONE, SURE
from .profile import LANES

if TYPE_CHECKING:
    from numpy.typing import NDArray

_I, _D = b"ID"
_NONE = 11
_LETTERS = np.frombuffer(f"0123456789{SURE}{NONE}".encode(), np.uint8)


@kernel
def _tenths(cells, factors, slots, lanes, rows, tenths):
    """Fill u1[rows, 2, Q, lanes] with tenths of the posteriors of M and I, rounded, 10 for sure ones."""
    half = slots * lanes
    for i in range(1, rows):
        factor = (i * SPECIALS + SCALE) * lanes
        for inserted in range(2):
            source, goal = i * 3 * half + 2 * half * inserted, (2 * i + inserted) * half
            for place in range(0, half, lanes):
                for lane in range(lanes):
                    raised = np.float64(cells[source + place + lane] * factors[factor + lane]) + 0.05
                    tenths[goal + place + lane] = np.uint8(min(raised * 10.0, 10.0))


@kernel
def _of_path(states, i, k, slots, lanes, tenths, found):
    """Fill u1 ``found`` with the tenths of a path that begins at residue ``i`` and node ``k``.

    tenths: those of the envelope in the first four of ``lanes`` lanes.
    """
    half = slots * lanes
    for n in range(len(states)):
        if states[n] == _D:
            found[n] = _NONE
        else:
            # An inserted residue stands behind node k - 1, where k is the next one to be used.
            inserted = states[n] == _I
            node = k - 2 if inserted else k - 1
            found[n] = tenths[(2 * i + inserted) * half + node % slots * lanes + node // slots]
        i += states[n] != _D
        k += states[n] != _I


def tenths_of(matrices: Matrices, room: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Tenths of all posteriors, in ``room`` if that is large enough."""
    slots, lanes, rows = matrices.odds.slots, matrices.lanes, int(matrices.lengths.max()) + 1
    if len(room) < rows * 2 * slots * lanes:
        room = np.empty(rows * 2 * slots * lanes, np.uint8)
    _tenths(matrices.cells, matrices.backward, slots, lanes, rows, room)
    return room


def label(matrices: Matrices, number: int, tenths: NDArray[np.uint8], path: Path) -> str:
    """Posterior probability of each state of the path of an envelope as a character."""
    states, found = np.frombuffer(path.states.encode(), np.uint8), np.empty(len(path.states), np.uint8)
    _of_path(states, path.start, path.model_start, matrices.odds.slots, matrices.lanes, tenths[LANES * number :],
             found)
    return _LETTERS[found].tobytes().decode()
