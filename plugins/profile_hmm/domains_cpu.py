"""Domain definition on the CPU: the steps of ``domains_reference.py``, each by a kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .accuracy_cpu import correction, decode, null2_logs, optimal_path
from .clusters_cpu import envelopes
from .domains import Domain, Domains
from .domains_reference import TRACES
from .exact_math import F32
from .forward_cpu import Parser, StripedOdds, backward, forward
from .labels_cpu import labels
from .profile import LengthModel
from .random_numbers import RandomNumbers
from .regions_cpu import regions_of
from .regions_reference import Region
from .traces_cpu import sampled

if TYPE_CHECKING:
    from numpy.typing import NDArray


def define_domains(odds: StripedOdds, residues: NDArray[np.uint8], begin: int, end: int, parser: Parser, number: int,
                   seed: int) -> Domains | None:
    """Domains of the target ``residues[begin:end]``.

    Args:
        parser: of some targets; this one is the one of ``number``.
        seed: of the random numbers, which start anew in each region; 0 for arbitrary ones.

    Returns:
        None where f32 overflowed beyond repair (HMMER drops such a target as well).
    """
    whole = regions_of(LengthModel(end - begin, multihit=True), parser, number)
    if whole is None:
        return None
    expected, found = whole
    finder = _Finder(odds, residues, begin, end, seed)
    for region in found:
        if region.multiple:
            finder.resolve(region)
        else:
            finder.rescore(region.start, region.end, keep_null2=False)
    return Domains(
        domains=tuple(finder.domains),
        expected=expected,
        regions=len(found),
        clustered=sum(region.multiple for region in found),
        overlaps=finder.overlaps,
        envelopes=finder.envelopes,
        null2=finder.null2,
    )


class _Finder:
    """Collects the domains of one target."""

    def __init__(self, odds: StripedOdds, residues: NDArray[np.uint8], begin: int, end: int, seed: int) -> None:
        self._odds, self._residues, self._begin, self._seed = odds, residues, begin, seed
        self._multihit, self._unihit = (LengthModel(end - begin, multihit) for multihit in (True, False))
        self.domains: list[Domain] = []
        self.overlaps = 0
        self.envelopes = 0
        self.null2 = np.zeros(end - begin, F32)

    def resolve(self, region: Region) -> None:
        """Sample paths through a region, cluster their domains to envelopes and score these."""
        begin, end = self._begin + region.start - 1, self._begin + region.end
        _, states = forward(self._odds, self._multihit, self._residues, begin, end, whole=True)
        traces, segments, logs = sampled(self._odds, self._multihit, self._residues, begin, end, states, TRACES,
                                         RandomNumbers(self._seed).state)
        del states
        self.null2[region.start - 1 : region.end] = logs
        last_end = 0
        for envelope in envelopes(traces, segments, TRACES, end - begin, self._odds.length):
            first, last = envelope.start + region.start - 1, envelope.end + region.start - 1
            self.overlaps += first <= last_end
            if self.rescore(first, last, keep_null2=True):
                last_end = last

    def rescore(self, start: int, end: int, keep_null2: bool) -> bool:
        """Score an envelope by itself; False if f32 overflowed and it is dropped.

        ``keep_null2``: use the null2 odds of the region's sampled paths instead of the envelope's own.
        """
        self.envelopes += 1
        begin, behind = self._begin + start - 1, self._begin + end
        odds, unihit = self._odds, self._unihit
        score, states = forward(odds, unihit, self._residues, begin, behind, whole=True)
        own_scales, posterior = backward(odds, unihit, self._residues, begin, behind, states)
        if not decode(unihit, odds.slots, states, posterior, own_scales):
            return False
        logs = None if keep_null2 else null2_logs(odds, posterior)
        path = optimal_path(odds, unihit, posterior, states)
        corrected = correction(logs, self._residues, begin, behind, self.null2[start - 1 : end])
        self.domains.append(Domain(start, end, score, corrected, path, labels(posterior, path, odds.slots)))
        return True
