"""Re-scoring of traced alignments over the true bases, and cutting of alignments that share an end.

The traceback of a greedy alignment counts differences; ambiguities and gap costs call for a second look that may
shorten or split it. The same is done with what is left of an alignment after its common part with a better one is cut
off.
"""

from __future__ import annotations

from dataclasses import field

from seqloom.core.classes import dataclass
from seqloom.plugins.common.culling import Hsp
from seqloom.plugins.nucleotide_blast.greedy import DELETE, INSERT, PAIR, Script


@dataclass
class TracedHsp(Hsp):
    """An alignment with its edit script, in strand coordinates."""

    script: Script = field(default_factory=list)


@dataclass(frozen=True)
class BaseCosts:
    """Scores for re-scoring, in units that make the cost of a gap base whole: ``factor`` of them per raw score."""

    matrix: list[list[int]]
    gap_open: int
    gap_extend: int
    reward: int
    factor: int

    @classmethod
    def of(cls, matrix: list[list[int]], reward: int, penalty: int, gap_open: int, gap_extend: int) -> BaseCosts:
        """Linear gaps (both costs 0) cost ``reward / 2 - penalty`` per base, so that an odd reward doubles all."""
        if gap_open or gap_extend:
            return cls(matrix, gap_open, gap_extend, reward, 1)
        factor = 2 if reward % 2 else 1
        scaled = [[score * factor for score in row] for row in matrix]
        return cls(scaled, 0, (reward - 2 * penalty) * factor // 2, reward, factor)


def best_part(hsp: TracedHsp, query: bytes, target: bytes, costs: BaseCosts, cutoff: int) -> TracedHsp | None:
    """The best-scoring part of an alignment, lengthened by equal bases at both ends; None if it scores below cutoff.

    query, target: whole strand and whole target, codes with ambiguities. A part ends where its running score falls
    below zero; a better later part replaces an earlier one, but only one that scored less than ``cutoff`` is given up
    for nothing.
    """
    i, j = hsp.query_start, hsp.target_start
    running = best = 0
    part_start = best_start = (0, 0, i, j)  # run, bases of the run passed, query, target
    best_end = (-1, 0, i, j)
    for place, (operation, length) in enumerate(hsp.script):
        passed = 0
        while passed < length:
            if operation == PAIR:
                running += costs.matrix[query[i]][target[j]]
                i, j, passed = i + 1, j + 1, passed + 1
            else:
                running -= costs.gap_open + costs.gap_extend * length
                i += length if operation == INSERT else 0
                j += length if operation == DELETE else 0
                passed = length
            if running < 0:
                # As in BLAST, what is compared with the cutoff here is not divided by the factor.
                running = 0
                part_start = (place, passed, i, j)
                if best < cutoff:
                    best, best_start, best_end = 0, part_start, (-1, 0, i, j)
            elif running > best:
                best, best_start, best_end = running, part_start, (place, passed, i, j)
    if best_end[0] < 0:
        return None
    script = _between(hsp.script, best_start[:2], best_end[:2])
    score = best // costs.factor
    part = TracedHsp(score, best_start[2], best_end[2], best_start[3], best_end[3], script=script)
    _lengthen(part, query, target, costs.reward)
    return part if part.score >= cutoff else None


def _between(script: Script, start: tuple[int, ...], end: tuple[int, ...]) -> Script:
    """The runs from ``start`` to ``end``, both (run, bases of it that lie before)."""
    part = [run[:] for run in script[start[0] : end[0] + 1]]
    part[-1][1] = end[1]
    part[0][1] -= start[1]
    return [run for run in part if run[1]]


def _lengthen(hsp: TracedHsp, query: bytes, target: bytes, reward: int) -> None:
    """Take in equal bases beyond both ends."""
    back = 0
    while back < min(hsp.query_start, hsp.target_start) and _same_base(
        query[hsp.query_start - back - 1], target[hsp.target_start - back - 1]
    ):
        back += 1
    ahead = 0
    while ahead < min(len(query) - hsp.query_end, len(target) - hsp.target_end) and _same_base(
        query[hsp.query_end + ahead], target[hsp.target_end + ahead]
    ):
        ahead += 1
    hsp.script[0][1] += back
    hsp.script[-1][1] += ahead
    hsp.query_start, hsp.target_start = hsp.query_start - back, hsp.target_start - back
    hsp.query_end, hsp.target_end = hsp.query_end + ahead, hsp.target_end + ahead
    hsp.score += (back + ahead) * reward


def _same_base(first: int, second: int) -> bool:
    return first == second and first < 4


def cut_head(hsp: TracedHsp, query_end: int, target_end: int) -> TracedHsp:
    """What is left behind the first point of the path at or beyond both ends; all of it if there is no such point."""
    point = _walk_to(hsp, query_end, target_end)
    if point is None:
        return hsp
    run, passed, i, j = point
    script = [[hsp.script[run][0], hsp.script[run][1] - passed], *hsp.script[run + 1 :]]
    return TracedHsp(0, i, hsp.query_end, j, hsp.target_end, script=[r for r in script if r[1]])


def cut_tail(hsp: TracedHsp, query_start: int, target_start: int) -> TracedHsp:
    """What is left before the first point of the path at or beyond both starts; all of it if there is none."""
    point = _walk_to(hsp, query_start, target_start)
    if point is None:
        return hsp
    run, passed, i, j = point
    script = [*hsp.script[:run], [hsp.script[run][0], passed]]
    return TracedHsp(0, hsp.query_start, i, hsp.target_start, j, script=script)


def _walk_to(hsp: TracedHsp, query: int, target: int) -> tuple[int, int, int, int] | None:
    """First point of the path with at least these coordinates: run, bases of it passed, query, target."""
    i, j = hsp.query_start, hsp.target_start
    for place, (operation, length) in enumerate(hsp.script):
        step = 1 if operation == PAIR else length
        for passed in range(step, length + 1, step):
            i += step if operation != DELETE else 0
            j += step if operation != INSERT else 0
            if i >= query and j >= target:
                return place, passed, i, j
    return None


def cut_common_ends(hsps: list[TracedHsp]) -> tuple[list[TracedHsp], list[TracedHsp]]:
    """One alignment per start point and per end point, and what is left of the others beyond the one that stays.

    Of those that share a start, the best by (score, query end, target end) stays; what another has beyond the end of it
    in the query is left over. Then the same for shared ends, with (score, query start, target start). Leftovers come in
    reverse: where two of them turn out equal, BLAST reports the path of the one that was cut later.
    """
    leftovers = []
    kept: list[TracedHsp] = []
    for hsp in sorted(hsps, key=lambda h: (h.query_start, h.target_start, -h.score, -h.query_end, -h.target_end)):
        if not kept or (kept[-1].query_start, kept[-1].target_start) != (hsp.query_start, hsp.target_start):
            kept.append(hsp)
        elif hsp.query_end > kept[-1].query_end:
            leftovers.append(cut_head(hsp, kept[-1].query_end, kept[-1].target_end))
    hsps, kept = kept, []
    for hsp in sorted(hsps, key=lambda h: (h.query_end, h.target_end, -h.score, -h.query_start, -h.target_start)):
        if not kept or (kept[-1].query_end, kept[-1].target_end) != (hsp.query_end, hsp.target_end):
            kept.append(hsp)
        elif hsp.query_start < kept[-1].query_start:
            leftovers.append(cut_tail(hsp, kept[-1].query_start, kept[-1].target_start))
    return kept, leftovers[::-1]
