"""``labels_reference`` on the CPU: tenths of posteriors, before scores of optimal paths take their place."""

import numpy as np
from seqloom.core.kernels.jit import kernel

from .forward_cpu import SCALE, SPECIALS
from .labels_reference import NONE, SURE

SKIPPED = 11
LETTERS = np.frombuffer(f"0123456789{SURE}{NONE}".encode(), np.uint8)
"""By tenths; behind them that of a skipped node."""


@kernel
def fill_tenths(cells, around, slots, lanes, first, last, tenths):
    """Fill u1[rows, 2, Q, lanes] with tenths, rounded, of the posteriors of M and I in rows ``first`` + 1 … ``last``.

    cells, around: what posteriors are made of; row ``first`` is the first one of ``cells``.
    """
    half = slots * lanes
    for i in range(first + 1, last + 1):
        factor = (i * SPECIALS + SCALE) * lanes
        for inserted in range(2):
            source, goal = (i - first) * 3 * half + 2 * half * inserted, (2 * (i - first) + inserted) * half
            for place in range(0, half, lanes):
                for lane in range(lanes):
                    raised = np.float64(cells[source + place + lane] * around[factor + lane]) + 0.05
                    tenths[goal + place + lane] = np.uint8(min(raised * 10.0, 10.0))
