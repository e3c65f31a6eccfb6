"""Calibration on the CPU: ``calibration_reference.py`` with the kernels of the search.

The random sequences, and how they lie in lanes, are made once for all queries of a search.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from seqloom.core.index import Index
from seqloom.core.kernels.jit import kernel
from seqloom.core.kernels.simd import BYTE_LANES
from seqloom.plugins.common.lanes import interleaved_stretches

from .calibration_reference import RandomSequences, Statistics, fitted, shares, sizes
from .forward_cpu import Rooms, StripedOdds, forward_scores
from .msv_cpu import decided, length_costs, look_up_scores, scores_and_p_values, segment_scores
from .msv_striped_cpu import by_rows
from .profile import SearchProfile
from .random_numbers import RandomNumbers
from .residues import CODE_OF_RESIDUE
from .ssv_striped_cpu import LEAST_LENGTH, StripedScores
from .ssv_striped_cpu import segment_scores as striped_scores
from .viterbi_cpu import viterbi_scores

if TYPE_CHECKING:
    from numpy.typing import NDArray


@kernel
def _draw(state, bounds, codes, drawn):
    """Fill u1 ``drawn`` with codes by the running shares ``bounds``, from a state of the random numbers."""
    for n in range(len(drawn)):
        state = (np.uint64(69069) * state + np.uint64(1)) & np.uint64(0xFFFFFFFF)
        roll, residue = np.float64(state) / 4294967296.0, 0
        while residue < len(bounds) - 1 and roll >= bounds[residue]:
            residue += 1
        drawn[n] = codes[residue]


def random_sequences(options: Any) -> RandomSequences:
    """``calibration_reference.random_sequences``."""
    wanted = sizes(options)
    drawn = np.empty(sum(number * length for number, length in wanted), np.uint8)
    _draw(np.uint64(RandomNumbers(options.seed).state), np.array(shares()), CODE_OF_RESIDUE, drawn)
    parts = np.split(drawn, np.cumsum([number * length for number, length in wanted])[:-1])
    return RandomSequences(*(part.reshape(size) for part, size in zip(parts, wanted, strict=True)))


class RandomTargets:
    """Random sequences as targets of the kernels.

    Attributes:
        sequences: u1 codes, those of MSV interleaved in ``lanes``.
        costs, nulls: of each sequence of MSV, see ``msv_cpu.length_costs``.
    """

    def __init__(self, sequences: RandomSequences) -> None:
        self.sequences = sequences
        self.msv, self.viterbi, self.forward = (_placed(part) for part in sequences)
        self.costs, self.nulls = length_costs(np.full(len(sequences.msv), sequences.msv.shape[1]))

    @cached_property
    def lanes(self) -> Index:
        return interleaved_stretches(*self.msv, np.arange(len(self.costs)))


def _placed(codes: NDArray[np.uint8]) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64]]:
    """Residues, begins and ends of [number, length] codes."""
    number, length = codes.shape
    begins = np.arange(number, dtype=np.int64) * length
    return np.ascontiguousarray(codes).reshape(-1), begins, begins + length


def statistics(profile: SearchProfile, rate: float, targets: RandomTargets, tail: float) -> Statistics:
    """Calibrate a search profile whose lambda is ``rate``; ``tail`` is the mass of the exponential tail."""
    return fitted(rate, targets.sequences, _msv_scores(profile, targets),
                  viterbi_scores(profile, *targets.viterbi),
                  forward_scores(StripedOdds(profile.floats), *targets.forward, Rooms()), tail)


def _msv_scores(profile: SearchProfile, targets: RandomTargets) -> NDArray[np.float32]:
    """Raw MSV scores, nats: of a single segment, and of several where a second one could count."""
    best = np.empty(len(targets.costs), np.int8)
    if profile.length < LEAST_LENGTH:
        lanes, groups = targets.lanes, len(targets.lanes["starts"]) - 1
        of_lanes = np.empty(groups * BYTE_LANES, np.int8)
        segment_scores(look_up_scores(profile.bytes), profile.length, lanes, 0, groups, of_lanes)
        best[lanes["order"]] = of_lanes[: len(best)]
    else:
        striped_scores(StripedScores(profile.bytes), *targets.msv, best)
    found = decided([profile.bytes], (best.view(np.uint8) ^ np.uint8(128))[None], targets.costs)
    models, chosen = np.nonzero(found.again)
    if len(chosen):
        residues, begins, ends = targets.msv
        again = by_rows([profile.bytes], models, residues, begins[chosen], ends[chosen], targets.costs[chosen],
                       found.begin_j[0, chosen])
        found.ended_j[0, chosen], found.overflow[0, chosen] = again
    scores, _ = scores_and_p_values(found.ended_j, found.overflow, targets.costs, targets.nulls, np.zeros(1),
                                    np.ones(1))
    return scores[0]
