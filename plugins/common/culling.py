"""Which HSPs of one query and target stay: sort orders, shared endpoints and containment, as BLAST+ 2.12 has them.

All functions work on the HSPs of one query and one target (and one strand: the caller keeps frames apart). These lists
are short, so the set of saved HSPs is a plain list and not the interval tree of the peer.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field
from typing import TypeVar

from seqloom.core.classes import dataclass


@dataclass
class Hsp:
    """An alignment on its way: half-open coordinates, raw score, and the point that it was extended from."""

    score: int
    query_start: int
    query_end: int
    target_start: int
    target_end: int
    anchor_query: int = -1
    anchor_target: int = -1
    evalue: float = 0.0
    path: list[int] = field(default_factory=list)
    """Edit operations, `length << 4 | operation`."""
    adjustment: int = 0
    """How scores were adjusted to the compositions of both sequences, by a number of the family; 0: they weren't."""

    @property
    def query_span(self) -> int:
        return self.query_end - self.query_start

    @property
    def target_span(self) -> int:
        return self.target_end - self.target_start


H = TypeVar("H", bound=Hsp)


def score_order(hsp: Hsp) -> tuple[int, int, int, int, int]:
    """Sort key: score down, target start up, target end down, query start up, query end down."""
    return (-hsp.score, hsp.target_start, -hsp.target_end, hsp.query_start, -hsp.query_end)


def _start_order(hsp: Hsp) -> tuple[int, int, int, int, int]:
    return (hsp.query_start, hsp.target_start, -hsp.score, -hsp.query_end, -hsp.target_end)


def _end_order(hsp: Hsp) -> tuple[int, int, int, int, int]:
    return (hsp.query_end, hsp.target_end, -hsp.score, -hsp.query_start, -hsp.target_start)


def purge_common_endpoints(hsps: Iterable[H]) -> list[H]:
    """One HSP per (query start, target start) and per (query end, target end), sorted by score.

    Of those that share a start the best by (score, query end, target end) stays, then the same at the ends with
    (score, query start, target start), all descending. The order of the result is `score_order`.
    """
    for order in (_start_order, _end_order):
        kept: dict[tuple[int, int], H] = {}
        for hsp in sorted(hsps, key=order):
            kept.setdefault(order(hsp)[:2], hsp)
        hsps = list(kept.values())
    return sorted(hsps, key=score_order)


def encloses(outer: Hsp, inner: Hsp, diagonal_separation: int | None = None) -> bool:
    """Whether both ends of `inner` lie in the closed box of `outer` and it scores no more.

    "Closed" includes both corner points of the half-open coordinates. With `diagonal_separation` the two must also be
    less than so many diagonals apart at their starts or at their ends.
    """
    if not (
        inner.score <= outer.score
        and outer.query_start <= inner.query_start
        and inner.query_end <= outer.query_end
        and outer.target_start <= inner.target_start
        and inner.target_end <= outer.target_end
    ):
        return False
    if diagonal_separation is None:
        return True
    starts = (outer.query_start - outer.target_start) - (inner.query_start - inner.target_start)
    ends = (outer.query_end - outer.target_end) - (inner.query_end - inner.target_end)
    return abs(starts) < diagonal_separation or abs(ends) < diagonal_separation


class SavedHsps:
    """The HSPs against which later ones are tested for containment."""

    def __init__(self, diagonal_separation: int | None = None) -> None:
        self._saved: list[Hsp] = []
        self._separation = diagonal_separation

    def contains(self, hsp: Hsp) -> bool:
        """Whether some saved HSP encloses `hsp`."""
        return any(encloses(saved, hsp, self._separation) for saved in self._saved)

    def add(self, hsp: Hsp) -> None:
        """Save `hsp`, unless a saved one that shares its start point or its end point is better.

        Better means higher score, then shorter query span, then shorter target span, then older. Those that `hsp` beats
        leave the set.
        """
        for point in (_start_point, _end_point):
            rivals = [saved for saved in self._saved if point(saved) == point(hsp)]
            for rival in rivals:
                if _preference(rival) <= _preference(hsp):
                    return
                self._saved.remove(rival)
        self._saved.append(hsp)


def _start_point(hsp: Hsp) -> tuple[int, int]:
    return (hsp.query_start, hsp.target_start)


def _end_point(hsp: Hsp) -> tuple[int, int]:
    return (hsp.query_end, hsp.target_end)


def _preference(hsp: Hsp) -> tuple[int, int, int]:
    return (-hsp.score, hsp.query_span, hsp.target_span)


def drop_contained(hsps: Iterable[H], diagonal_separation: int | None = None) -> list[H]:
    """Those of `hsps` (in the order given) that no earlier one encloses."""
    saved = SavedHsps(diagonal_separation)
    kept = []
    for hsp in hsps:
        if not saved.contains(hsp):
            saved.add(hsp)
            kept.append(hsp)
    return kept
