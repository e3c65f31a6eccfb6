"""A protein sequence made into a profile HMM, as phmmer does: a match state for each residue, and uniform gaps.

A match state emits what a substitution matrix lets stand in place of the query's residue. Inserts open and extend with
the same probabilities everywhere.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from seqloom.plugins.common.matrix_file import file_of

from .calibration_reference import gumbel_rate, relative_entropy
from .exact_math import F32, Array32, compensated_sum, running_sum
from .hmmfile import DD, DM, II, IM, MD, MI, MM, ProfileHmm, Statistics
from .residues import BACKGROUND, STORED_RESIDUES
from .substitution import conditional_probabilities, named_scores, scores_of_text

if TYPE_CHECKING:
    from numpy.typing import NDArray

UNCALIBRATED: dict[str, Any] = Statistics(0.0, 1.0, 0.0, 1.0, 0.0, 1.0)._asdict()
_CONSERVED = F32(0.5)
_PLACE = {residue: place for place, residue in enumerate("ACDEFGHIKLMNPQRSTVWY-BJZOUX*")}
"""Place of each residue in HMMER's alphabet."""


class QueryModels:
    """Makes models of queries under the options of a search.

    Args:
        options: ``PhmmerOptions``.

    Raises:
        OptionError: there is no scale that makes probabilities of the matrix.
    """

    def __init__(self, options: Any) -> None:
        self.popen, self.pextend = float(options.popen), float(options.pextend)
        if options.mxfile:
            self.emissions = conditional_probabilities(scores_of_text(options.mxfile), file_of(options.mxfile))
        else:
            self.emissions = _named_emissions(options.mx)
        self.information = np.array([relative_entropy(row) for row in self.emissions], F32)
        self.step = transitions(self.popen, self.pextend)
        self._occupancy = _occupancies(float(self.step[MM]), float(self.step[MI]), float(self.step[DM]))

    def model(self, codes: NDArray[np.uint8], name: str = "", description: str = "",
              statistics: dict[str, Any] | None = None) -> ProfileHmm:
        """The profile HMM of a query of u8 residue ``codes``; ``statistics`` are its mu, tau and lambda."""
        length = len(codes)
        match = np.zeros((length + 1, 20), F32)
        match[1:] = self.emissions[codes]
        steps = np.tile(self.step, (length + 1, 1))
        steps[length, [MM, MD, DM, DD]] = F32(1.0 - self.popen), F32(0.0), F32(1.0), F32(0.0)
        return ProfileHmm(
            name=name, accession="", description=description, length=length, match=match, transitions=steps,
            composition=self.composition(match), gathering=None, trusted=None, noise=None,
            consensus=consensus(codes, match), **(statistics or UNCALIBRATED))

    def rate(self, codes: NDArray[np.uint8]) -> float:
        """lambda of a query's model, f64."""
        return gumbel_rate(self.information[codes])

    def composition(self, match: Array32) -> Array32:
        """f32[20], mean composition of what a model emits, from f32[M + 1, 20] match emissions."""
        length = len(match) - 1
        occupancy = self.occupancies(length)
        inserted = F32(self.step[MI] / self.step[IM])
        weights = np.empty((2 * length + 1, 1), F32)
        weights[0], weights[1::2, 0] = inserted, occupancy
        weights[2::2, 0] = occupancy * self.step[MI] / self.step[IM]
        emitted = np.empty((2 * length + 1, 20), F32)
        emitted[0::2], emitted[1::2] = BACKGROUND, match[1:]
        total = running_sum(emitted * weights)[-1]
        return total / compensated_sum(total)

    def occupancies(self, length: int) -> Array32:
        """f32[length]: probability that each match state is used."""
        known, period = self._occupancy
        return np.append(known, np.resize(known[-period:], max(0, length - len(known))))[:length]


@cache
def _named_emissions(name: str) -> Array32:
    return conditional_probabilities(named_scores(name), f"--mx {name}")


def transitions(popen: float, pextend: float) -> Array32:
    """f32[7], from every node but the last to the next."""
    step = np.empty(7, F32)
    step[[MM, MI, MD]] = 1.0 - 2.0 * popen, popen, popen
    step[[IM, II, DM, DD]] = 1.0 - pextend, pextend, 1.0 - pextend, pextend
    return step


def _occupancies(mm: float, mi: float, dm: float) -> tuple[Array32, int]:
    """Occupancies of the first match states, and how many of the last ones are repeated for ever."""
    stay = F32(mm) + F32(mi)
    places: dict[float, int] = {}
    found: list[np.float32] = []
    value = F32(mi) + F32(mm)
    while float(value) not in places:
        places[float(value)] = len(found)
        found.append(value)
        staying = value * stay
        value = F32(float(staying) + (1.0 - float(value)) * dm)
    return np.array(found, F32), len(found) - places[float(value)]


def consensus(codes: NDArray[np.uint8], match: Array32) -> str:
    """The query's letters, upper case where they are likely themselves, from f32[M + 1, 20] match emissions.

    HMMER looks a degenerate residue up behind the 20 emissions of its state, which is where those of the next one are.
    """
    flat = match.reshape(-1)
    places = _PLACES[codes] + 20 * np.arange(1, len(codes) + 1)
    own = np.where(places < len(flat), flat[np.minimum(places, len(flat) - 1)], F32(0.0))
    letters = _LETTERS[codes]
    return np.where(own >= _CONSERVED, letters, _LOWER[codes]).astype(np.uint8).tobytes().decode()


_LETTERS = np.frombuffer(STORED_RESIDUES.encode(), np.uint8)
_LOWER = np.frombuffer(STORED_RESIDUES.lower().encode(), np.uint8)
_PLACES = np.array([_PLACE[residue] for residue in STORED_RESIDUES])
