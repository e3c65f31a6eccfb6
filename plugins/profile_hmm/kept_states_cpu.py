"""States around the model that the Forward filter leaves to the stage which defines domains and needs them again."""

from __future__ import annotations

import threading

import numpy as np
from seqloom.core.context import Context
from seqloom.core.kernels.jit import kernel

from .exact_math import F32, Array32
from .index_reference import KIND

KEPT_BYTES = 16 << 20
"""Of all states that are kept for the queries of a batch; those beyond are computed again."""
SPECIALS = 6
"""States around the model of a row: N, B, E, J, C and its scale."""
_LANES = 4


@kernel
def _gather(forward, lanes, states):
    for i in range(states.shape[0]):
        for state in range(states.shape[1]):
            states[i, state] = forward[(i * states.shape[1] + state) * lanes]


@kernel
def spread_states(states, lanes, forward):
    """Put f4[L + 1, 6] ``states`` of a target into the first four of ``lanes`` lanes of flat f4 ``forward``."""
    for i in range(states.shape[0]):
        for state in range(states.shape[1]):
            place = (i * states.shape[1] + state) * lanes
            for lane in range(_LANES):
                forward[place + lane] = states[i, state]


class KeptStates:
    """States f4[L + 1, 6] by pairs of query and target. Any thread may keep and take some."""

    def __init__(self) -> None:
        self._states: dict[tuple[int, int], Array32] = {}
        self._free, self._lock = KEPT_BYTES, threading.Lock()

    def keep(self, query: int, target: int, length: int, forward: Array32, lanes: int) -> None:
        """Keep those of a target of ``length`` residues in the first of ``lanes`` lanes, if there is room for them."""
        size = 4 * SPECIALS * (length + 1)
        with self._lock:
            if size > self._free or (query, target) in self._states:
                return
            self._free -= size
            states = self._states[query, target] = np.empty((length + 1, SPECIALS), F32)
        _gather(forward, lanes, states)

    def take(self, query: int, target: int) -> Array32 | None:
        """Those of a pair, which are forgotten; None if they weren't kept."""
        with self._lock:
            states = self._states.pop((query, target), None)
            self._free += 0 if states is None else states.nbytes
        return states


def kept_states(context: Context) -> KeptStates:
    """Of the queries' profiles; nothing is kept with those of another back end."""
    return context.index(KIND).objects.get("states") or KeptStates()
