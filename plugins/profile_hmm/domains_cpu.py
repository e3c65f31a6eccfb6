"""Domain definition on the CPU: the steps of ``domains_reference.py`` for many targets of a model, each by a kernel.

Whole targets, regions and envelopes are gone through side by side, those of about the same length together.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from seqloom.core.subnormals import flushed

from .accuracy_cpu import Alignments, correction
from .clusters_cpu import envelopes
from .domains import Domain, Domains, Path
from .domains_reference import TRACES
from .exact_math import F32, Array32
from .forward_cpu import STREAM_ROWS, WIDE, WIDTHS, Matrices, Rooms, StripedOdds, longest_first, narrowest
from .profile import LANES
from .random_numbers import RandomNumbers
from .regions_cpu import regions_of
from .regions_reference import Region
from .traces_cpu import sampled

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

TOGETHER_BYTES = 16 << 20
"""Of the cells of envelopes that are gone through side by side; a longer one is gone through alone."""
ALONE_BYTES = 16 << 20
"""Of the cells of a longer envelope that are held at once."""


class _Scored(NamedTuple):
    """What is known of an envelope by itself; ``logs`` f32[28], null2 log odds if they were wanted; ``labels`` of its
    path."""

    score: np.float32
    path: Path
    labels: str
    logs: Array32 | None


class _Target:
    """What is found in one target: its regions and envelopes, from left to right.

    Attributes:
        begin: of the target in the residues. length: its residues.
        score: Forward score in nats, f32.
        expected: number of domains. regions: None where f32 overflowed.
        states: f4[L + 1, 6], Forward's around the model, where they are known already.
        found: of each region the envelopes, first and last residue, 1-based in the target, and the null2 log odds of
            its residues if they come from sampled paths.
    """

    def __init__(self, begin: int, length: int, states: Array32 | None) -> None:
        self.begin, self.length, self.states = begin, length, states
        self.score, self.expected = F32(np.nan), F32(0.0)
        self.regions: list[Region] | None = None
        self.found: list[tuple[list[tuple[int, int]], Array32 | None]] = []

    def domains(self, residues: NDArray[np.uint8], scored: dict[tuple[int, int], _Scored]) -> Domains | None:
        """``scored``: envelopes by ``begin`` of the target and their first residue; those that overflowed are missing.
        """
        if self.regions is None:
            return None
        null2, domains, overlaps, count = np.zeros(self.length, F32), [], 0, 0
        for region, (ends, logs) in zip(self.regions, self.found, strict=True):
            if logs is not None:
                null2[region.start - 1 : region.end] = logs
            last_end = 0
            for start, end in ends:
                overlaps += start <= last_end
                count += 1
                one = scored.get((start, end))
                if one is None:
                    continue
                corrected = correction(one.logs if logs is None else None, residues, self.begin + start - 1,
                                       self.begin + end, null2[start - 1 : end])
                domains.append(Domain(start, end, one.score, corrected, one.path, one.labels))
                last_end = end
        return Domains(
            domains=tuple(domains),
            expected=self.expected,
            regions=len(self.regions),
            clustered=sum(region.multiple for region in self.regions),
            overlaps=overlaps,
            envelopes=count,
            null2=null2,
        )


@flushed()
def define_domains(odds: StripedOdds, residues: NDArray[np.uint8], begins: NDArray[np.int64], ends: NDArray[np.int64],
                   seed: int, check: Callable[[], None], rooms: Rooms,
                   known: Sequence[Array32 | None]) -> list[tuple[np.float32, Domains | None]]:
    """Forward scores and domains of targets ``residues[begins[n]:ends[n]]``.

    Args:
        odds: of the model.
        seed: of the random numbers, which start anew in each region; 0 for arbitrary ones.
        check: called now and then; it raises to stop.
        rooms: to work in, for this thread alone.
        known: of each target its states f4[L + 1, 6] around the model by multihit Forward, if they are known already.

    Returns:
        For each target its score in nats and its domains, None where f32 overflowed beyond repair (HMMER drops such a
        target as well).
    """
    finder = _Finder(odds, residues, check, rooms)
    targets = [_Target(begin, end - begin, states)
               for begin, end, states in zip(begins.tolist(), ends.tolist(), known, strict=True)]
    finder.parse(targets)
    finder.resolve(targets, seed)
    scored = finder.rescore(targets)
    return [(target.score, target.domains(residues, known)) for target, known in zip(targets, scored, strict=True)]


class _Finder:
    """Goes through stretches of targets."""

    def __init__(self, odds: StripedOdds, residues: NDArray[np.uint8], check: Callable[[], None],
                 rooms: Rooms) -> None:
        self._odds, self._residues, self._check = odds, residues, check
        self._matrices = {lanes: Matrices(odds, lanes, ALONE_BYTES if lanes == LANES else TOGETHER_BYTES, rooms)
                          for lanes in WIDTHS}
        self._alignments = {lanes: Alignments(matrices) for lanes, matrices in self._matrices.items()}

    def _groups(self, stretches: list[tuple[_Target, int, int]], multihit: bool,
                whole: bool) -> Iterator[tuple[Matrices, list[int]]]:
        """Forward of stretches (target, first and last residue), and which of them are in the matrices."""
        firsts = np.array([target.begin + first - 1 for target, first, _ in stretches], np.int64)
        lengths = np.array([last - first + 1 for _, first, last in stretches], np.int64)
        wholes = np.array([target.length for target, _, _ in stretches], np.int64)
        for lanes, some in self._dealt(lengths) if whole else [(WIDE, np.arange(len(lengths)))]:
            for group in longest_first(lengths[some], lanes // LANES, 0 if whole else STREAM_ROWS):
                self._check()
                chosen = some[group]
                matrices = self._matrices[narrowest(len(chosen))]
                for other in self._matrices.values():
                    other.clear()
                known = [] if whole else [states for n in chosen if (states := stretches[n][0].states) is not None]
                matrices.run_forward(self._residues, firsts[chosen], lengths[chosen], wholes[chosen], multihit, whole,
                                     known)
                yield matrices, chosen.tolist()

    def _dealt(self, lengths: NDArray[np.int64]) -> Iterator[tuple[int, NDArray[np.int64]]]:
        """Places of stretches by the lanes of as many of them as may be gone through together."""
        bytes_of_lane = 3 * 4 * self._odds.slots * (lengths + 1)
        lanes = np.full(len(lengths), LANES)
        for more in WIDTHS[1:]:
            lanes[bytes_of_lane * more <= TOGETHER_BYTES] = more
        for each in reversed(WIDTHS):
            yield each, np.flatnonzero(lanes == each)

    def parse(self, targets: list[_Target]) -> None:
        """Find the regions of each target, and the envelopes of those that hold one domain."""
        for some in ([t for t in targets if t.states is not None], [t for t in targets if t.states is None]):
            for matrices, chosen in self._groups([(t, 1, t.length) for t in some], True, whole=False):
                matrices.run_backward(whole=False)
                for number, place in enumerate(chosen):
                    target = some[place]
                    target.score, target.states = matrices.scores[number], None
                    found = regions_of(matrices, number)
                    if found is not None:
                        target.expected, target.regions = found
                        target.found = [([] if r.multiple else [(r.start, r.end)], None) for r in target.regions]

    def resolve(self, targets: list[_Target], seed: int) -> None:
        """Sample paths through regions that may hold several domains, and cluster these to envelopes."""
        regions = [(target, n, region) for target in targets for n, region in enumerate(target.regions or ())
                   if region.multiple]
        stretches = [(target, region.start, region.end) for target, _, region in regions]
        for matrices, chosen in self._groups(stretches, True, whole=True):
            for number, place in enumerate(chosen):
                target, first, last = stretches[place]
                traces, segments, logs = sampled(matrices, number, self._residues, target.begin + first - 1, TRACES,
                                                 RandomNumbers(seed).state)
                kept = envelopes(traces, segments, TRACES, last - first + 1, self._odds.length)
                ends = [(envelope.start + first - 1, envelope.end + first - 1) for envelope in kept]
                target.found[regions[place][1]] = ends, logs

    def rescore(self, targets: list[_Target]) -> list[dict[tuple[int, int], _Scored]]:
        """Score every envelope by itself; those where f32 overflows are left out."""
        scored: list[dict[tuple[int, int], _Scored]] = [{} for _ in targets]
        envelopes_ = [(n, *ends, logs is None) for n, target in enumerate(targets)
                      for ends_, logs in target.found for ends in ends_]
        stretches = [(targets[n], start, end) for n, start, end, _ in envelopes_]
        for matrices, chosen in self._groups(stretches, False, whole=True):
            matrices.run_backward(whole=True)
            wanted = any(envelopes_[place][3] for place in chosen)
            for number, (path, labels, logs) in self._alignments[matrices.lanes].run(len(chosen), wanted).items():
                n, start, end, _ = envelopes_[chosen[number]]
                scored[n][start, end] = _Scored(matrices.scores[number], path, labels, logs)
        return scored
