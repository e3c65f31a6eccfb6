"""Where in a target domains are likely to lie: posterior probabilities per residue, and regions cut from them.

Eddy 2011 and HMMER's user's guide, "domain definition": a region is a stretch that is probably inside the model, and
it is resolved further when it seems to hold more than one domain.
"""

from __future__ import annotations

import numpy as np
from seqloom.core.classes import dataclass

from .exact_math import F32, Array32, running_sum
from .forward_reference import DpMatrix
from .profile import LengthModel

TRIGGER = F32(0.25)
EXTEND = F32(0.10)
MULTIPLE = F32(0.20)


@dataclass(frozen=True)
class Occupancy:
    """Posterior expectations along a target, f32[L + 1] each, index 0 before the first residue.

    Attributes:
        begins, ends: expected number of domains that begin or end up to and including a residue.
        inside: probability that a residue is emitted by the model rather than by N, J or C.
    """

    begins: Array32
    ends: Array32
    inside: Array32

    @property
    def expected_domains(self) -> np.float32:
        return self.begins[-1]


@dataclass(frozen=True)
class Region:
    """A stretch of a target, 1-based inclusive; ``multiple`` if it may hold more than one domain."""

    start: int
    end: int
    multiple: bool


def occupancy(lengths: LengthModel, forward: DpMatrix, backward: DpMatrix) -> Occupancy | None:
    """Posterior expectations from the matrices of a whole target; None if scaling overflowed."""
    rows = len(forward.n)
    before, after = inverse_scale_products(forward, backward)
    if np.isinf(after[-1]):
        return None
    zero = np.zeros(1, F32)
    with np.errstate(all="ignore"):
        begins = forward.b[:-1] * backward.b[:-1] * forward.scale[:-1] * before
        ends = forward.e[1:] * backward.e[1:] * forward.scale[1:] * after
        outside = np.zeros(rows - 1, F32)
        for f, b in ((forward.n, backward.n), (forward.j, backward.j), (forward.c, backward.c)):
            outside = outside + f[:-1] * b[1:] * lengths.loop * after
    return Occupancy(
        begins=running_sum(np.concatenate([zero, begins])),
        ends=running_sum(np.concatenate([zero, ends])),
        inside=np.concatenate([zero, F32(1.0) - outside]),
    )


def inverse_scale_products(forward: DpMatrix, backward: DpMatrix) -> tuple[Array32, Array32]:
    """1 / N₀ of Backward, corrected where Backward left Forward's scales.

    Returns:
        f32[L] before and after the correction at rows 0…L−1; row i belongs to residue i + 1.
    """
    start = F32(1.0) / backward.n[0]
    rows = len(forward.n) - 1
    if not backward.own_scales:
        constant = np.full(rows, start, F32)
        return constant, constant
    ratios = forward.scale[:-1] / backward.scale[:-1]
    products = np.multiply.accumulate(np.concatenate([np.array([start], F32), ratios]), dtype=F32)
    return products[:-1], products[1:]


def regions(occupancy: Occupancy) -> list[Region]:
    """Regions of a target from left to right. One that is still open at the last residue is dropped."""
    begins, ends, inside = occupancy.begins, occupancy.ends, occupancy.inside
    before_begin = inside[1:] - (begins[1:] - begins[:-1])
    after_end = inside[1:] - (ends[1:] - ends[:-1])
    found = []
    start = 0
    triggered = False
    for j in range(1, len(inside)):
        if not triggered:
            if before_begin[j - 1] < EXTEND or start == 0:
                start = j
            triggered = bool(inside[j] >= TRIGGER)
        elif after_end[j - 1] < EXTEND:
            found.append(Region(start, j, _may_be_multiple(occupancy, start, j)))
            start, triggered = 0, False
    return found


def _may_be_multiple(occupancy: Occupancy, start: int, end: int) -> bool:
    """Whether at some residue a domain has probably ended before it and another one begins behind it."""
    ended = occupancy.ends[start : end + 1] - occupancy.ends[start - 1]
    to_begin = occupancy.begins[end] - occupancy.begins[start - 1 : end]
    return bool(np.minimum(ended, to_begin).max() >= MULTIPLE)
