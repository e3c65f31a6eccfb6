"""Sums over random walks, compiled: the series for K takes some dozens of convolutions for every query."""

import numpy as np
from seqloom.core.kernels.jit import kernel


@kernel
def _add(into, walk, probability):  # a function of its own, so that it becomes vectors
    for place in range(len(walk)):
        into[place] += probability * walk[place]


@kernel
def walk_series(probabilities, decay, low, terms, smallest):
    """Σ over n of (1 / n) Σ over sums s of n steps of p(s) · weight(s), up to the first term not above ``smallest``.

    The weight of a sum below 0 is decay^(−s), of others 1. The order of all additions is part of the result.

    Args:
        probabilities: f8[k], of the steps ``low``, ``low`` + 1, …; low < 0.
        terms: at most.
    """
    steps = len(probabilities)
    walk, longer = np.zeros(terms * (steps - 1) + 1), np.empty(terms * (steps - 1) + 1)
    walk[0] = 1.0
    count, total = 1, 0.0
    for taken in range(1, terms + 1):
        longer[: count + steps - 1] = 0.0
        for step in range(steps):
            _add(longer[step:], walk[:count], probabilities[step])
        walk, longer, count = longer, walk, count + steps - 1
        term = 0.0
        for place in range(-low * taken):
            term = walk[place] + term * decay
        term *= decay
        for place in range(-low * taken, count):
            term += walk[place]
        term /= taken
        total += term
        if term <= smallest:
            break
    return total
