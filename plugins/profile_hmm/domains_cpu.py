"""Domain definition on the CPU: the steps of ``domains_reference.py`` for many targets of a model, each by a kernel.

Whole targets, regions and envelopes are gone through side by side, those of about the same length together. What is
known of them stands in arrays, so that nothing but what decides the order of work is done one by one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from seqloom.core.classes import NamedTuple
from seqloom.core.kernels.jit import kernel
from seqloom.core.kernels.simd import WORKS_BY_HALVES
from seqloom.core.subnormals import flushed

from .accuracy_cpu import Aligned, aligned
from .clusters_cpu import envelopes
from .domains_reference import TRACES
from .exact_math import F32, Array32
from .forward_cpu import STREAM_ROWS, WIDE, WIDTHS, Matrices, Rooms, StripedOdds, longest_first, narrowest
from .profile import LANES
from .random_numbers import RandomNumbers
from .regions_cpu import regions_of
from .traces_cpu import sampled

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

TOGETHER_BYTES = (8 if WORKS_BY_HALVES else 16) << 20
"""Of the cells of envelopes that are gone through side by side; a longer one is gone through alone. What is kept in a
nearer cache outweighs narrower vectors where whole registers take twice as long as halves."""
ALONE_BYTES = 16 << 20
"""Of the cells of a longer envelope that are held at once."""


class Found(NamedTuple):
    """Domains of n targets, and of d domains in all, those of one target behind those of the other, from left to right.

    Attributes:
        scores: f4[n], Forward scores in nats.
        overflowed: bool[n], where f32 overflowed beyond repair: HMMER drops such a target as well.
        expected: f4[n], number of domains. regions, clustered, overlaps, envelopes: i8[n], as of ``Domains``.
        null2_sums: f4[n], of the null2 log odds over the target, compensated.
        owners: i8[d], the target of each domain; starts, ends: i8[d], of its envelope, 1-based in the target.
        domain_scores, corrections: f4[d], in nats, as of ``Domain``.
        places, accuracies, offsets, path, shown: of ``Aligned``.
    """

    scores: Array32
    overflowed: NDArray[np.bool_]
    expected: Array32
    regions: NDArray[np.int64]
    clustered: NDArray[np.int64]
    overlaps: NDArray[np.int64]
    envelopes: NDArray[np.int64]
    null2_sums: Array32
    owners: NDArray[np.int64]
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    domain_scores: Array32
    corrections: Array32
    places: NDArray[np.int64]
    accuracies: Array32
    offsets: NDArray[np.int64]
    path: NDArray[np.uint8]
    shown: NDArray[np.uint8]


class _Stretches(NamedTuple):
    """Parts of targets: i8[n], where they begin in the residues, their length, and that of the whole target."""

    begins: NDArray[np.int64]
    lengths: NDArray[np.int64]
    wholes: NDArray[np.int64]

    def take(self, index: NDArray[np.int64]) -> _Stretches:
        return _Stretches(*(values[index] for values in self))


class _Envelopes(NamedTuple):
    """Stretches to be scored by themselves: i8[n], the region of each, and first and last residue, 1-based."""

    regions: NDArray[np.int64]
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]


@kernel
def compensated_sum(values):
    """Kahan-compensated f32 sum, in order."""
    total = compensation = np.float32(0.0)
    for value in values:
        corrected = value - compensation
        larger = total + corrected
        compensation = (larger - total) - corrected
        total = larger
    return total


@kernel
def _correct(residues, begins, lengths, first_regions, regions, sampled_logs, first_logs, first_envelopes, starts, ends,
             fits, logs, null2, corrections, overlaps, sums):
    """Fill f4[e] ``corrections`` with the null2 log odds of each envelope, i8[n] ``overlaps`` with how many begin
    before the last one that fits in their region has ended, and f4[n] ``sums`` with all null2 log odds of a target.

    first_regions: i8[n + 1], of each target in i8[r, 3] ``regions``; first_envelopes: i8[r + 1], of each region.
    sampled_logs: f4, from i8[r] ``first_logs`` on the log odds of each residue of a region with sampled paths.
    logs: f4[e, codes], of the residues of envelopes of other regions. null2: f4[longest], working space.
    """
    for target in range(len(sums)):
        begin = begins[target]
        null2[: lengths[target]] = np.float32(0.0)
        overlaps[target] = 0
        for region in range(first_regions[target], first_regions[target + 1]):
            first, last_end = regions[region, 0] - 1, 0
            if regions[region, 2]:
                for place in range(first, regions[region, 1]):
                    null2[place] = sampled_logs[first_logs[region] + place - first]
            for one in range(first_envelopes[region], first_envelopes[region + 1]):
                overlaps[target] += starts[one] <= last_end
                if not fits[one]:
                    continue
                total = np.float32(0.0)
                for place in range(starts[one] - 1, ends[one]):
                    if not regions[region, 2]:
                        null2[place] = logs[one, residues[begin + place]]
                    total = null2[place] if place == starts[one] - 1 else total + null2[place]
                corrections[one], last_end = total, ends[one]
        sums[target] = compensated_sum(null2[: lengths[target]])


@flushed()
def define_domains(odds: StripedOdds, residues: NDArray[np.uint8], begins: NDArray[np.int64], ends: NDArray[np.int64],
                   seed: int, check: Callable[[], None], rooms: Rooms, known: Sequence[Array32 | None]) -> Found:
    """Forward scores and domains of targets ``residues[begins[n]:ends[n]]``.

    Args:
        odds: of the model.
        seed: of the random numbers, which start anew in each region; 0 for arbitrary ones.
        check: called now and then; it raises to stop.
        rooms: to work in, for this thread alone.
        known: of each target its states f4[L + 1, 6] around the model by multihit Forward, if they are known already.
    """
    finder, lengths = _Finder(odds, residues, check, rooms), ends - begins
    scores, expected, counts, regions = finder.parse(_Stretches(begins, lengths, lengths), known)
    first_regions = np.concatenate([[0], np.cumsum(np.maximum(counts, 0))])
    owners = np.repeat(np.arange(len(begins)), np.diff(first_regions))
    of_regions = _Stretches(begins[owners] + regions[:, 0] - 1, regions[:, 1] - regions[:, 0] + 1, lengths[owners])
    found, sampled_logs, first_logs = finder.resolve(of_regions, regions, seed)
    owners_of_envelopes = owners[found.regions]
    alone = regions[found.regions, 2] == 0
    of_envelopes = _Stretches(begins[owners_of_envelopes] + found.starts - 1, found.ends - found.starts + 1,
                              lengths[owners_of_envelopes])
    domain_scores, paths = finder.rescore(of_envelopes, alone)
    corrections = np.zeros(len(alone), F32)
    overlaps, null2_sums = np.empty(len(begins), np.int64), np.empty(len(begins), F32)
    assert paths.logs is not None
    _correct(residues, begins, lengths, first_regions, regions, sampled_logs, first_logs,
             np.searchsorted(found.regions, np.arange(len(regions) + 1)), found.starts, found.ends, paths.fits,
             paths.logs, np.empty(int(lengths.max()), F32), corrections, overlaps, null2_sums)
    kept = np.flatnonzero(paths.fits)
    return Found(
        scores=scores,
        overflowed=counts < 0,
        expected=expected,
        regions=np.diff(first_regions),
        clustered=np.bincount(owners[regions[:, 2] != 0], minlength=len(begins)),
        overlaps=overlaps,
        envelopes=np.bincount(owners_of_envelopes, minlength=len(begins)),
        null2_sums=null2_sums,
        owners=owners_of_envelopes[kept],
        starts=found.starts[kept],
        ends=found.ends[kept],
        domain_scores=domain_scores[kept],
        corrections=corrections[kept],
        places=paths.places[kept],
        accuracies=paths.accuracies[kept],
        offsets=np.concatenate([[0], paths.offsets[1:][kept]]),
        path=paths.path,
        shown=paths.shown,
    )


class _Finder:
    """Goes through stretches of targets."""

    def __init__(self, odds: StripedOdds, residues: NDArray[np.uint8], check: Callable[[], None],
                 rooms: Rooms) -> None:
        self._odds, self._residues, self._check, self._rooms = odds, residues, check, rooms
        self._matrices: dict[int, Matrices] = {}

    def _matrices_of(self, stretches: int) -> Matrices:
        """Those that are as wide as is needed, while no others hold anything."""
        lanes = narrowest(stretches)
        for other in self._matrices.values():
            other.clear()
        if lanes not in self._matrices:
            most = ALONE_BYTES if lanes == LANES else TOGETHER_BYTES
            self._matrices[lanes] = Matrices(self._odds, lanes, most, self._rooms)
        return self._matrices[lanes]

    def _groups(self, stretches: _Stretches, multihit: bool, whole: bool,
                known: Sequence[Array32] = ()) -> Iterator[tuple[Matrices, NDArray[np.int64]]]:
        """Forward of stretches, and which of them are in the matrices. known: of ``Matrices.run_forward``."""
        lengths = stretches.lengths
        if not len(lengths):
            return
        for lanes, some in self._dealt(lengths) if whole else [(WIDE, np.arange(len(lengths)))]:
            for group in longest_first(lengths[some], lanes // LANES, 0 if whole else STREAM_ROWS):
                self._check()
                chosen = some[group]
                matrices = self._matrices_of(len(chosen))
                matrices.run_forward(self._residues, *stretches.take(chosen), multihit, whole,
                                     [known[n] for n in chosen.tolist()] if known else ())
                yield matrices, chosen

    def _dealt(self, lengths: NDArray[np.int64]) -> Iterator[tuple[int, NDArray[np.int64]]]:
        """Places of stretches by the lanes of as many of them as may be gone through together."""
        bytes_of_lane = 3 * 4 * self._odds.slots * (lengths + 1)
        lanes = np.full(len(lengths), LANES)
        for more in WIDTHS[1:]:
            lanes[bytes_of_lane * more <= TOGETHER_BYTES] = more
        for each in reversed(WIDTHS):
            some = np.flatnonzero(lanes == each)
            if len(some):
                yield each, some

    def parse(self, targets: _Stretches, known: Sequence[Array32 | None]) -> tuple[
            Array32, Array32, NDArray[np.int64], NDArray[np.int64]]:
        """Scores f4[n] of whole targets, expected domains f4[n], how many regions there are in each i8[n], −1 where f32
        overflowed, and regions of ``regions_of``."""
        count = len(targets.begins)
        scores, expected, counts = np.empty(count, F32), np.zeros(count, F32), np.zeros(count, np.int64)
        regions: list[NDArray[np.int64]] = [np.empty((0, 3), np.int64)] * count
        there = np.array([states is not None for states in known], np.bool_)
        for some in (np.flatnonzero(there), np.flatnonzero(~there)):
            states = [one for n in some.tolist() if (one := known[n]) is not None]
            for matrices, group in self._groups(targets.take(some), True, whole=False, known=states):
                matrices.run_backward(whole=False)
                chosen = some[group]
                scores[chosen] = matrices.scores[: len(chosen)]
                expected[chosen], counts[chosen], found = regions_of(matrices, len(chosen))
                bounds = np.cumsum(np.maximum(counts[chosen], 0)).tolist()
                for place, begin, end in zip(chosen.tolist(), [0, *bounds], bounds, strict=False):
                    regions[place] = found[begin:end]
        return scores, expected, counts, np.concatenate(regions)

    def resolve(self, stretches: _Stretches, regions: NDArray[np.int64],
                seed: int) -> tuple[_Envelopes, Array32, NDArray[np.int64]]:
        """Envelopes of regions from left to right: the region, or where it may hold several domains, clusters of those
        of sampled paths; null2 log odds f4 of the residues of these regions, and where they begin for each, i8[r]."""
        several = np.flatnonzero(regions[:, 2])
        found = [[(start, end)] for start, end, _ in regions.tolist()]
        first_logs = np.cumsum(np.where(regions[:, 2] != 0, stretches.lengths, 0)) - stretches.lengths
        logs = np.empty(int(stretches.lengths[several].sum()), F32)
        for matrices, chosen in self._groups(stretches.take(several), True, whole=True):
            for number, region in enumerate(several[chosen].tolist()):
                first, length = int(regions[region, 0]), int(stretches.lengths[region])
                traces, segments, of_region = sampled(matrices, number, self._residues, int(stretches.begins[region]),
                                                      TRACES, RandomNumbers(seed).state)
                logs[first_logs[region] :][:length] = of_region
                kept = envelopes(traces, segments, TRACES, length, self._odds.length)
                found[region] = [(envelope.start + first - 1, envelope.end + first - 1) for envelope in kept]
        rows = np.array([(region, *ends) for region, some in enumerate(found) for ends in some], np.int64)
        return _Envelopes(*rows.reshape(-1, 3).T.copy()), logs, first_logs

    def rescore(self, stretches: _Stretches, alone: NDArray[np.bool_]) -> tuple[Array32, Aligned]:
        """Scores f4[n] of envelopes by themselves, and their paths. alone: whether null2 comes from each one itself."""
        count = len(alone)
        scores, places, accuracies = np.empty(count, F32), np.zeros((count, 4), np.int64), np.zeros(count, F32)
        fits, logs = np.zeros(count, np.bool_), np.zeros((count, self._odds.codes), F32)
        texts: list[tuple[NDArray[np.uint8], NDArray[np.uint8]]] = [(np.empty(0, np.uint8),) * 2] * count
        for matrices, chosen in self._groups(stretches, False, whole=True):
            matrices.run_backward(whole=True)
            found = aligned(matrices, len(chosen), bool(alone[chosen].any()))
            scores[chosen], fits[chosen] = matrices.scores[: len(chosen)], found.fits
            places[chosen], accuracies[chosen] = found.places, found.accuracies
            if found.logs is not None:
                logs[chosen] = found.logs[: len(chosen)]
            bounds = found.offsets.tolist()
            for place, begin, end in zip(chosen.tolist(), bounds, bounds[1:], strict=False):
                texts[place] = found.path[begin:end], found.shown[begin:end]
        offsets = np.cumsum([0, *(len(path) for path, _ in texts)])
        nothing = np.empty(0, np.uint8)
        path, shown = (np.concatenate([nothing, *parts]) for parts in zip(*texts, strict=True)) if texts else (
            nothing, nothing)
        return scores, Aligned(fits, places, accuracies, offsets, path, shown, logs)
