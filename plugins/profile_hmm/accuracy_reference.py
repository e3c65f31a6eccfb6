"""Optimal accuracy alignment of an envelope: the path with the greatest expected number of correctly aligned residues.

Posterior decoding gives each residue's probability in each state; the path maximises their sum (Holmes 1998; Eddy
2011).
"""

from __future__ import annotations

import numpy as np

from .domains import Path
from .exact_math import F32, Array32
from .forward_reference import DpMatrix
from .profile import LANES, FloatProfile, LengthModel, unstripe


def decode(lengths: LengthModel, forward: DpMatrix, backward: DpMatrix) -> DpMatrix | None:
    """Posterior probability of each state at each residue; None if scaling overflowed.

    ``match``, ``insert`` and the loops ``n``, ``j``, ``c`` are filled; the other states emit nothing.
    """
    residues = len(forward.n) - 1
    sp = F32(1.0) / backward.n[0]
    factors = np.full(residues + 1, sp, F32)
    if backward.own_scales:
        ratios = forward.scale[1:] / backward.scale[1:]
        factors[1:] = np.multiply.accumulate(np.concatenate([np.array([sp], F32), ratios]), dtype=F32)[:-1]
        if np.isinf(factors[-1] * ratios[-1]):
            return None
    elif np.isinf(sp):
        return None
    posterior = DpMatrix.empty(residues, forward.match.shape[1])
    with np.errstate(all="ignore"):
        row_factor = (factors * forward.scale)[1:, None, None]
        posterior.match[1:] = forward.match[1:] * backward.match[1:] * row_factor
        posterior.insert[1:] = forward.insert[1:] * backward.insert[1:] * row_factor
        for name in ("n", "j", "c"):
            f, b = getattr(forward, name), getattr(backward, name)
            getattr(posterior, name)[1:] = f[:-1] * b[1:] * lengths.loop * factors[1:]
    return posterior


class _Scores:
    """Optimal accuracy matrix in order of nodes: f32[L + 1, M + 1] for M, I, D (column 0 = −inf), else f32[L + 1]."""

    def __init__(self, profile: FloatProfile, lengths: LengthModel, posterior: DpMatrix) -> None:
        self.lengths = lengths
        rows, length = len(posterior.n), profile.length
        # allowed[name][k]: whether the transition from node k (B for "entry") into or out of the state exists.
        self.allowed = {
            name: np.concatenate([[False], unstripe(getattr(profile, name), length) > 0.0])
            for name in ("entry", "into_mm", "into_im", "into_dm", "mi", "ii", "md", "dd")
        }
        self.match, self.insert, self.delete = (np.full((rows, length + 1), -np.inf, F32) for _ in range(3))
        self.n, self.b, self.e, self.j, self.c = (np.full(rows, -np.inf, F32) for _ in range(5))
        self.posterior = posterior
        self.n[0] = self.b[0] = 0.0
        gain_match = unstripe(posterior.match, length)
        gain_insert = unstripe(posterior.insert, length)
        for i in range(1, rows):
            self._fill_row(i, gain_match[i], gain_insert[i])

    def _fill_row(self, i: int, gain_match: Array32, gain_insert: Array32) -> None:
        """A way that doesn't exist counts 0 here, as in HMMER, and −inf in the traceback."""
        allowed, above = self.allowed, i - 1

        def way(name: str, values: Array32 | np.float32) -> Array32:
            return np.where(allowed[name][1:], values, F32(0.0))

        best = np.maximum(way("entry", self.b[above]), way("into_mm", self.match[above, :-1]))
        best = np.maximum(best, way("into_im", self.insert[above, :-1]))
        best = np.maximum(best, way("into_dm", self.delete[above, :-1]))
        self.match[i, 1:] = best + gain_match
        best = np.maximum(way("mi", self.match[above, 1:]), way("ii", self.insert[above, 1:]))
        self.insert[i, 1:] = best + gain_insert
        self._fill_delete(i, way("md", self.match[i, 1:]))
        self.e[i] = max(self.match[i].max(), self.delete[i].max())
        self._fill_specials(i)

    def _fill_delete(self, i: int, opened: Array32) -> None:
        """D_{k+1} is the better of M_k and D_k; a node without D → D begins anew."""
        delete = self.delete[i]
        delete[2:] = opened[:-1]
        breaks = np.flatnonzero(~self.allowed["dd"][2:-1]) + 3
        for start, end in zip([2, *breaks], [*breaks, len(delete)], strict=True):
            np.maximum.accumulate(delete[start:end], out=delete[start:end])
        np.maximum(delete[3:], F32(0.0), out=delete[3:], where=~self.allowed["dd"][2:-1])

    def _fill_specials(self, i: int) -> None:
        zero, lengths, posterior = F32(0.0), self.lengths, self.posterior
        self.j[i] = max(
            self.j[i - 1] + posterior.j[i] if lengths.loop > 0 else zero, self.e[i] if lengths.end_loop > 0 else zero
        )
        self.c[i] = max(
            self.c[i - 1] + posterior.c[i] if lengths.loop > 0 else zero, self.e[i] if lengths.end_move > 0 else zero
        )
        self.n[i] = self.n[i - 1] + posterior.n[i] if lengths.loop > 0 else zero
        self.b[i] = max(self.n[i] if lengths.move > 0 else zero, self.j[i] if lengths.move > 0 else zero)


def optimal_path(profile: FloatProfile, lengths: LengthModel, posterior: DpMatrix) -> Path:
    """Optimal accuracy path of an envelope.

    Args:
        profile, lengths: of the query; unihit.
        posterior: from ``decode``.
    """
    scores = _Scores(profile, lengths, posterior)
    i = len(posterior.n) - 1
    while lengths.loop > 0 and scores.c[i - 1] + posterior.c[i] > scores.e[i]:
        i -= 1
    state, k = _best_exit(scores, profile.slots, i)
    states: list[str] = []
    ends: list[tuple[int, int]] = []
    while state != "B":
        states.append(state)
        if state == "M":
            ends.append((i, k))
            state = _best_into_match(scores, i, k)
            i, k = i - 1, k - 1
        elif state == "D":
            state = _better(scores, "md", scores.match[i, k - 1], "dd", scores.delete[i, k - 1], k - 1, "MD")
            k -= 1
        else:
            state = _better(scores, "mi", scores.match[i - 1, k], "ii", scores.insert[i - 1, k], k, "MI")
            i -= 1
    text = "".join(reversed(states)).strip("ID")
    (end, model_end), (start, model_start) = ends[0], ends[-1]
    return Path(text, start, end, model_start, model_end, scores.c[-1])


def _best_exit(scores: _Scores, slots: int, i: int) -> tuple[str, int]:
    """State and node before E: slot by slot; among equal match states the last one, delete states only if better."""
    best, chosen = F32(-np.inf), ("M", 0)
    length = scores.match.shape[1] - 1
    for slot in range(slots):
        nodes = [k for k in range(slot + 1, LANES * slots + 1, slots) if k <= length]
        for k in nodes:
            if scores.match[i, k] >= best:
                best, chosen = scores.match[i, k], ("M", k)
        for k in nodes:
            if scores.delete[i, k] > best:
                best, chosen = scores.delete[i, k], ("D", k)
    return chosen


def _best_into_match(scores: _Scores, i: int, k: int) -> str:
    ways = (
        ("M", "into_mm", scores.match[i - 1, k - 1]),
        ("I", "into_im", scores.insert[i - 1, k - 1]),
        ("D", "into_dm", scores.delete[i - 1, k - 1]),
        ("B", "entry", scores.b[i - 1]),
    )
    values = [value if scores.allowed[name][k] else -np.inf for _, name, value in ways]
    return ways[int(np.argmax(values))][0]


def _better(scores: _Scores, first: str, value: float, second: str, other: float, k: int, residues: str) -> str:
    """The first way unless the second is better."""
    value = value if scores.allowed[first][k] else -np.inf
    other = other if scores.allowed[second][k] else -np.inf
    return residues[0] if value >= other else residues[1]
