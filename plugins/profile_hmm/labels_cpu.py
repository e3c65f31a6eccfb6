"""``labels_reference`` on the CPU."""

from __future__ import annotations

import numpy as np
from seqloom.core.kernels.jit import kernel

from .domains import Path
from .forward_cpu import States
from .labels_reference import NONE, SURE

_I, _D = b"ID"
_SURE, _NONE, _ZERO = (ord(character) for character in f"{SURE}{NONE}0")


@kernel
def _label(states, i, k, slots, cells, text):
    """Fill u8 ``text`` from posteriors f4[L + 1, 3, Q, 4] of M, D and I; ``i`` and ``k`` are the first of the path."""
    row, inserts = 3 * slots * 4, 2 * slots * 4
    for n in range(len(states)):
        if states[n] == _D:
            text[n] = _NONE
        else:
            node = k - 2 if states[n] == _I else k - 1
            cell = i * row + (node % slots) * 4 + node // slots
            raised = np.float64(cells[cell + inserts] if states[n] == _I else cells[cell]) + 0.05
            text[n] = _SURE if raised >= 1.0 else _ZERO + int(raised * 10.0)
        i += states[n] != _D
        k += states[n] != _I


def labels(posterior: States, path: Path, slots: int) -> str:
    """Posterior probability of each state of ``path`` as a character; ``posterior`` is of the envelope."""
    states = np.frombuffer(path.states.encode(), np.uint8)
    text = np.empty(len(states), np.uint8)
    _label(states, path.start, path.model_start, slots, posterior.cells, text)
    return text.tobytes().decode()
