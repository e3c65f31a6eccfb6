"""What domain definition finds in a target: envelopes, scores, alignments. Coordinates are 1-based inclusive."""

from __future__ import annotations

import numpy as np
from seqloom.core.classes import dataclass

from .exact_math import F32, Array32


@dataclass(frozen=True)
class Path:
    """One passage through the model, from its first to its last match state.

    Attributes:
        states: residues M, I, D from left to right.
        start, end: residues of the first and last match state, 1-based in the envelope.
        model_start, model_end: nodes of the first and last match state.
        accuracy: expected number of correctly assigned residues of the envelope, f32.
    """

    states: str
    start: int
    end: int
    model_start: int
    model_end: int
    accuracy: np.float32


@dataclass(frozen=True)
class Domain:
    """One envelope that was scored; coordinates 1-based inclusive on the target.

    Attributes:
        start, end: of the envelope.
        score: f32 Forward score of the envelope alone, nats.
        correction: f32 sum of the null2 log odds over the envelope, nats.
        path: optimal accuracy alignment, counted in the envelope.
        labels: posterior probability of each state of the path as a character, see ``labels_reference``.
    """

    start: int
    end: int
    score: np.float32
    correction: np.float32
    path: Path
    labels: str

    @property
    def alignment(self) -> tuple[int, int]:
        """First and last aligned residue on the target, 1-based inclusive."""
        return self.start + self.path.start - 1, self.start + self.path.end - 1

    @property
    def accuracy(self) -> np.float32:
        """Mean posterior probability of the alignment over the envelope."""
        return self.path.accuracy / F32(1 + self.end - self.start)


@dataclass(frozen=True)
class Domains:
    """What domain definition found in one target.

    Attributes:
        domains: in order of discovery.
        expected: f32, expected number of domains.
        regions, clustered, overlaps, envelopes: counts that HMMER's tables print as reg, clu, ov, env.
        null2: f32[L] log odds of each residue under null2, 0 outside envelopes.
    """

    domains: tuple[Domain, ...]
    expected: np.float32
    regions: int
    clustered: int
    overlaps: int
    envelopes: int
    null2: Array32
