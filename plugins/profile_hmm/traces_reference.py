"""Sampling paths through the Forward matrix of a region, each with its posterior probability.

Choices are drawn in HMMER's order from HMMER's random numbers, so that the same paths come out.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from itertools import accumulate

import numpy as np
from seqloom.core.classes import dataclass

from .exact_math import F32, compensated_sum
from .forward_reference import DpMatrix
from .profile import LANES, FloatProfile, LengthModel
from .random_numbers import RandomNumbers


@dataclass(frozen=True)
class TracedDomain:
    """One passage through the model of a sampled path; coordinates 1-based inclusive, of match states only.

    Attributes:
        start, end: residues of the first and last match state, counted in the region.
        model_start, model_end: nodes of the first and last match state.
        nodes: node of each residue emitted inside, last residue first.
    """

    start: int
    end: int
    model_start: int
    model_end: int
    nodes: tuple[int, ...]


class TraceSampler:
    """Draws paths from one Forward matrix (multihit). Distributions are kept: many paths share their cells."""

    def __init__(self, profile: FloatProfile, lengths: LengthModel, matrix: DpMatrix, numbers: RandomNumbers) -> None:
        self._profile = profile
        self._lengths = lengths
        self._matrix = matrix
        self._numbers = numbers
        self._kept: dict[tuple[str, int, int], list[float]] = {}

    def sample(self) -> list[TracedDomain]:
        """Domains of one new path, from left to right."""
        domains = []
        i = len(self._matrix.n) - 1
        state = "C"
        while True:
            i, domain = self._walk_through_model(self._walk_back_to_end(i, state))
            domains.append(domain)
            if self._choose("B", i, 0, self._from_begin) == 0:
                return domains[::-1]
            state = "J"

    def _walk_back_to_end(self, i: int, state: str) -> int:
        """From C or J at residue i back to the residue of the E that it came from."""
        weights = self._into_c if state == "C" else self._into_j
        while self._choose(state, i, 0, weights) == 0:
            i -= 1
        return i

    def _walk_through_model(self, i: int) -> tuple[int, TracedDomain]:
        """From E at residue i back to B; returns the residue that B stands behind."""
        state, k = self._choose_exit(i)
        nodes: list[int] = []
        last = first = (0, 0)
        while state != "B":
            if state == "M":
                last = last if last[0] else (i, k)
                first = (i, k)
                nodes.append(k)
                state = "BMID"[self._choose("M", i, k, self._into_match)]
                i, k = i - 1, k - 1
            elif state == "D":
                state = "MD"[self._choose("D", i, k, self._into_delete)]
                k -= 1
            else:
                nodes.append(k)
                state = "MI"[self._choose("I", i, k, self._into_insert)]
                i -= 1
        return i, TracedDomain(first[0], last[0], first[1], last[1], tuple(nodes))

    def _choose(self, state: str, i: int, k: int, weights: Callable[[int, int], list[np.float32]]) -> int:
        """Draw one of the ways into a state; ``weights(i, k)`` gives their unnormalised probabilities."""
        sums = self._kept.get((state, i, k))
        if sums is None:
            sums = self._kept[state, i, k] = _cumulative(weights(i, k))
        return bisect_right(sums, self._numbers.next())

    def _into_c(self, i: int, _: int) -> list[np.float32]:
        matrix, lengths = self._matrix, self._lengths
        return [matrix.c[i - 1] * lengths.loop, matrix.e[i] * lengths.end_move * matrix.scale[i]]

    def _into_j(self, i: int, _: int) -> list[np.float32]:
        matrix, lengths = self._matrix, self._lengths
        return [matrix.j[i - 1] * lengths.loop, matrix.e[i] * lengths.end_loop * matrix.scale[i]]

    def _from_begin(self, i: int, _: int) -> list[np.float32]:
        move = self._lengths.move
        return [self._matrix.n[i] * move, self._matrix.j[i] * move]

    def _into_match(self, i: int, k: int) -> list[np.float32]:
        matrix, profile = self._matrix, self._profile
        here, left = self._cell(k), self._cell(k - 1)
        weights = [matrix.b[i - 1] * profile.entry[here]]
        if k == 1:
            return [*weights, F32(0.0), F32(0.0), F32(0.0)]
        return [
            *weights,
            matrix.match[i - 1][left] * profile.into_mm[here],
            matrix.insert[i - 1][left] * profile.into_im[here],
            matrix.delete[i - 1][left] * profile.into_dm[here],
        ]

    def _into_delete(self, i: int, k: int) -> list[np.float32]:
        left = self._cell(k - 1)
        return [
            self._matrix.match[i][left] * self._profile.md[left],
            self._matrix.delete[i][left] * self._profile.dd[left],
        ]

    def _into_insert(self, i: int, k: int) -> list[np.float32]:
        here = self._cell(k)
        return [
            self._matrix.match[i - 1][here] * self._profile.mi[here],
            self._matrix.insert[i - 1][here] * self._profile.ii[here],
        ]

    def _cell(self, k: int) -> tuple[int, int]:
        """Slot and lane of node k."""
        lane, slot = divmod(k - 1, self._profile.slots)
        return slot, lane

    def _choose_exit(self, i: int) -> tuple[str, int]:
        """Draw the state and node from which E was reached: slot by slot, four match then four delete states."""
        kept = self._kept.get(("E", i, 0))
        if kept is None:
            norm = F32(1.0) / self._matrix.e[i]
            cells = np.stack([self._matrix.match[i], self._matrix.delete[i]], axis=1) * norm
            # The walk starts over when rounding leaves a roll beyond its end.
            twice = np.concatenate([cells.ravel(), cells.ravel()]).astype(np.float64)
            kept = self._kept["E", i, 0] = np.add.accumulate(twice).tolist()
        chosen = bisect_right(kept, self._numbers.next()) % (2 * LANES * self._profile.slots)
        slot, rest = divmod(chosen, 2 * LANES)
        is_delete, lane = divmod(rest, LANES)
        return "MD"[is_delete], lane * self._profile.slots + slot + 1


def _cumulative(weights: list[np.float32]) -> list[float]:
    """Upper bounds, f64, of the share of each weight in [0, 1)."""
    total = compensated_sum(weights)
    equal = 1.0 / len(weights)
    shares = [float(weight / total) if total else equal for weight in weights]
    # Plain f64 additions; the built-in sum compensates from Python 3.12 on.
    sums = list(accumulate(shares))
    return [s / sums[-1] for s in sums]
