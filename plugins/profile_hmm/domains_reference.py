"""Domain definition: which parts of a target match the model, each with its score, alignment and bias.

For a target that passed all filters: posterior decoding of the whole target, regions, sampling and clustering of
regions that may hold several domains, and rescoring of each envelope on its own (Eddy 2011; HMMER's user's guide).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from seqloom.core.subnormals import flushed

from .accuracy_reference import decode, optimal_path
from .clusters import Envelope, envelopes
from .domains import Domain, Domains
from .exact_math import F32, logf
from .forward_reference import DpMatrix, backward, backward_parser, forward
from .labels_reference import labels
from .null2_reference import null2_of_posterior, null2_of_trace
from .profile import FloatProfile, LengthModel
from .random_numbers import RandomNumbers
from .regions_reference import Region, occupancy, regions
from .traces_reference import TraceSampler

if TYPE_CHECKING:
    from numpy.typing import NDArray

TRACES = 200
"""Paths sampled from each region that may hold several domains."""


@flushed()
def define_domains(profile: FloatProfile, target: NDArray[np.uint8], matrix: DpMatrix, seed: int) -> Domains | None:
    """Domains of a target.

    Args:
        profile: odds of the query.
        target: u8 residue codes.
        matrix: multihit Forward matrix of the whole target, of which the states around the model suffice.
        seed: of the random numbers, which start anew in each region; 0 for arbitrary ones.

    Returns:
        None where f32 overflowed beyond repair (HMMER drops such a target as well).
    """
    multihit = LengthModel(len(target), multihit=True)
    whole = occupancy(multihit, matrix, backward_parser(profile, multihit, target, matrix.scale))
    if whole is None:
        return None
    finder = _Finder(profile, target, seed)
    found = regions(whole)
    for region in found:
        if region.multiple:
            finder.resolve(region)
        else:
            finder.rescore(region.start, region.end, keep_null2=False)
    clustered = sum(region.multiple for region in found)
    return Domains(
        domains=tuple(finder.domains),
        expected=whole.expected_domains,
        regions=len(found),
        clustered=clustered,
        overlaps=finder.overlaps,
        envelopes=finder.envelopes,
        null2=finder.null2,
    )


class _Finder:
    """Collects the domains of one target."""

    def __init__(self, profile: FloatProfile, target: NDArray[np.uint8], seed: int) -> None:
        self._profile = profile
        self._target = target
        self._seed = seed
        self.domains: list[Domain] = []
        self.overlaps = 0
        self.envelopes = 0
        self.null2 = np.zeros(len(target), F32)

    def resolve(self, region: Region) -> None:
        """Sample paths through a region, cluster their domains to envelopes and score these."""
        last_end = 0
        for envelope in self._sampled_envelopes(region):
            self.overlaps += envelope.start <= last_end
            if self.rescore(envelope.start, envelope.end, keep_null2=True):
                last_end = envelope.end

    def _sampled_envelopes(self, region: Region) -> list[Envelope]:
        residues = self._target[region.start - 1 : region.end]
        lengths = LengthModel(len(self._target), multihit=True)
        _, matrix = forward(self._profile, lengths, residues)
        sampler = TraceSampler(self._profile, lengths, matrix, RandomNumbers(self._seed))
        odds = np.zeros(len(residues), F32)
        traces, segments = [], []
        for trace in range(TRACES):
            position = 0
            for domain in sampler.sample():
                null2 = null2_of_trace(self._profile, domain)
                # As in HMMER, the first residue of a domain counts as outside.
                odds[position : domain.start] += F32(1.0)
                odds[domain.start : domain.end] += null2[residues[domain.start : domain.end]]
                position = domain.end
                first = region.start - 1
                traces.append(trace)
                segments.append((domain.start + first, domain.end + first, domain.model_start, domain.model_end))
            odds[position:] += F32(1.0)
        self.null2[region.start - 1 : region.end] = [logf(o / F32(TRACES)) for o in odds]
        return envelopes(traces, np.array(segments, np.int64), TRACES)

    def rescore(self, start: int, end: int, keep_null2: bool) -> bool:
        """Score an envelope by itself; False if f32 overflowed and it is dropped.

        ``keep_null2``: use the null2 odds of the region's sampled paths instead of the envelope's own.
        """
        self.envelopes += 1
        residues = self._target[start - 1 : end]
        lengths = LengthModel(len(self._target), multihit=False)
        score, matrix = forward(self._profile, lengths, residues)
        posterior = decode(lengths, matrix, backward(self._profile, lengths, residues, matrix.scale))
        if posterior is None:
            return False
        path = optimal_path(self._profile, lengths, posterior)
        if not keep_null2:
            logs = np.array([logf(o) for o in null2_of_posterior(self._profile, posterior)], F32)
            self.null2[start - 1 : end] = logs[residues]
        correction = np.add.accumulate(self.null2[start - 1 : end], dtype=F32)[-1]
        text = labels(posterior, path, self._profile.length)
        self.domains.append(Domain(start, end, score, correction, path, text))
        return True
