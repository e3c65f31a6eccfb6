"""Which HSPs of one query stay beside those with other targets, as BLAST+ 2.12 has it.

Two ways, of which a search takes one. *Culling* (after Berman et al. 2000) leaves out an HSP whose query range lies
under those of so many better ones, for a mix of score and length. *Best hits* leave out an HSP whose range lies in that
of another which isn't worse and scores more per residue. Both take HSPs one after the other, and the order matters:
what has gone counts no more.

Culling keeps HSPs in a tree over the query, whose nodes are halved when they have many. An HSP that spans a whole node
counts against all of it, better ones included; so the tree is part of the answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field
from itertools import chain, pairwise

import numpy as np
from seqloom.core.classes import dataclass

FORK = 20
"""HSPs of a node from which on it is halved."""


@dataclass(eq=False)
class Entry:
    """An HSP on its way: half-open range on the query, score, target, where it starts in that, and E-value."""

    row: int
    begin: int
    end: int
    score: int
    target: int
    target_start: int
    evalue: float = 0.0
    merit: int = 0

    @property
    def length(self) -> int:
        return self.end - self.begin


def dominates(one: Entry, other: Entry) -> bool:
    """Whether an HSP covers half of another, and is better by score and, with half the weight, by length."""
    if 2 * (min(one.end, other.end) - max(one.begin, other.begin)) < other.length:
        return False
    lead = (4 * one.score * one.length + 2 * one.score * other.length
            - 2 * other.score * one.length - 4 * other.score * other.length)
    alike = one.score == other.score and one.begin == other.begin and one.length == other.length
    if not alike and lead != 0:
        return lead > 0
    if one.score != other.score:
        return one.score > other.score
    if one.target != other.target:
        return one.target < other.target
    return one.target_start <= other.target_start


@dataclass(eq=False)
class _Node:
    begin: int
    end: int
    entries: list[Entry] = field(default_factory=list)
    """Newest first."""
    left: _Node | None = None
    right: _Node | None = None

    @property
    def middle(self) -> int:
        return (self.begin + self.end) // 2

    @property
    def is_leaf(self) -> bool:
        return self.left is None and self.right is None

    @property
    def is_empty(self) -> bool:
        return self.is_leaf and not self.entries

    def fork(self) -> None:
        """Move what lies in a half to a child there."""
        staying = []
        for entry in self.entries:
            if entry.end < self.middle:
                self.left = self.left or _Node(self.begin, self.middle)
                self.left.entries.insert(0, entry)
            elif entry.begin > self.middle:
                self.right = self.right or _Node(self.middle, self.end)
                self.right.entries.insert(0, entry)
            else:
                staying.append(entry)
        self.entries = staying


def culled(entries: Iterable[Entry], query_length: int, limit: int) -> list[Entry]:
    """The HSPs of a query that stay, of those that come in this order, if `limit` better ones push one out."""
    root = _Node(0, query_length)
    for entry in entries:
        entry.merit = limit
        _insert(root, entry)
    return _all(root)


def _insert(root: _Node, new: Entry) -> None:
    node: _Node | None = root
    last = root
    while node is not None:
        for there in node.entries:
            if dominates(there, new):
                new.merit -= 1
                if new.merit <= 0:
                    return
        last = node
        if new.end < node.middle:
            node = node.left
        elif new.begin > node.middle:
            node = node.right
        else:
            break
    last.entries.insert(0, new)
    _push(last, new)
    if last.is_leaf:
        if len(last.entries) >= FORK:
            last.fork()
        return
    last.left, last.right = _pushed(last.left, new), _pushed(last.right, new)


def _push(node: _Node, new: Entry) -> None:
    """Count `new` against those of the node that it dominates."""
    for there in node.entries:
        there.merit -= there is not new and dominates(new, there)
    node.entries = [there for there in node.entries if there.merit > 0]


def _pushed(node: _Node | None, new: Entry) -> _Node | None:
    """The same for a node and what lies below; None where nothing is left."""
    if node is None:
        return None
    if new.begin <= node.begin and node.end <= new.end:
        return _marked_down(node)
    if node.is_leaf:
        _push(node, new)
    elif new.end < node.middle:
        node.left = _pushed(node.left, new)
        return node
    elif new.begin > node.middle:
        node.right = _pushed(node.right, new)
        return node
    else:
        node.left, node.right = _pushed(node.left, new), _pushed(node.right, new)
        _push(node, new)
    return None if node.is_empty else node


def _marked_down(node: _Node | None) -> _Node | None:
    """The node with one less for everything in and below it."""
    if node is None:
        return None
    node.left, node.right = _marked_down(node.left), _marked_down(node.right)
    for there in node.entries:
        there.merit -= 1
    node.entries = [there for there in node.entries if there.merit > 0]
    return None if node.is_empty else node


def _all(node: _Node | None) -> list[Entry]:
    return [] if node is None else [*node.entries, *_all(node.left), *_all(node.right)]


@dataclass(eq=False)
class _Best:
    """A best hit with its range and what may hang over."""

    entry: Entry
    begin: int
    end: int

    @property
    def overhang(self) -> int:
        return (self.end - self.begin - self.entry.length) // 2

    @property
    def density(self) -> float:
        return 1.0 * self.entry.score / self.entry.length


def best_hits(entries: Iterable[Entry], overhang: float, edge: float, most: int) -> list[Entry]:
    """The HSPs of a query that are best hits, of those that come in this order.

    Args:
        overhang: share of its length by which an HSP may reach beyond one that leaves it out.
        edge: share by which its score per residue must be less.
        most: HSPs. When there are more, nothing may hang over those that are there any longer, and twice as many as
            there are then are the most.
    """
    best: list[_Best] = []  # by begin
    for entry in entries:
        density, begin, end = 1.0 * entry.score / entry.length, entry.begin, entry.end
        least = density / (1.0 - edge)
        first = next((place for place, there in enumerate(best) if there.end >= end), len(best))
        if _is_bad(best, first, entry, least):
            continue
        reach = int(2.0 * entry.length * overhang / (1.0 - 2.0 * overhang))
        nearest, farthest = begin - reach, end + reach
        more = int(entry.length * overhang)
        begin, end, worst = begin - more, end + more, density * (1.0 - edge)
        best = [there for there in best if not (
            nearest <= there.begin < farthest and there.begin + there.overhang >= begin
            and there.end - there.overhang <= end and there.entry.evalue >= entry.evalue and there.density < worst)]
        _insert_by_begin(best, _Best(entry, begin, end))
        if len(best) > most:
            best, most = _without_overhang(best), 2 * len(best)
    return [there.entry for there in best]


def _insert_by_begin(best: list[_Best], new: _Best) -> None:
    best.insert(next((place for place, there in enumerate(best) if there.begin >= new.begin), len(best)), new)


def _without_overhang(best: Iterable[_Best]) -> list[_Best]:
    """The same best hits, target by target, with their own ranges."""
    of_targets: dict[int, list[Entry]] = {}
    for there in best:
        of_targets.setdefault(there.entry.target, []).append(there.entry)
    bare: list[_Best] = []
    for entry in chain.from_iterable(of_targets.values()):
        _insert_by_begin(bare, _Best(entry, entry.begin, entry.end))
    return bare


def _is_bad(best: list[_Best], first: int, entry: Entry, least: float) -> bool:
    """Whether one of the best hits from `first` on leaves the new one out."""
    for there in best[first:]:
        if there.begin > entry.begin:
            return False
        if there.end >= entry.end and there.entry.evalue <= entry.evalue and there.density > least:
            return True
    return False


NEAR = 3
"""Residues by which an HSP may reach beyond a better one with the same target that leaves it out."""


def best_of_target(ranges: Sequence[tuple[int, int]], turned: Sequence[bool]) -> list[bool]:
    """Which HSPs with one target, best first, lie in no better one's range on the query, or 3 residues beyond.

    Those on one strand are compared first, then what is left of both; ``turned`` tells them apart.
    """
    kept = [True] * len(ranges)
    for opposite in (False, True):
        for place, (begin, end) in enumerate(ranges):
            if kept[place]:
                for other in range(place + 1, len(ranges)):
                    inside = ranges[other][0] >= begin - NEAR and ranges[other][1] <= end + NEAR
                    if inside and (turned[other] != turned[place]) == opposite:
                        kept[other] = False
    return kept


def best_of_targets(bounds: np.ndarray, begins: np.ndarray, ends: np.ndarray, turned: np.ndarray) -> np.ndarray:
    """bool[n]: ``best_of_target`` of each query and target.

    Args:
        bounds: i64[p + 1], where the HSPs of each query and target begin; those of one are best first.
        begins, ends: i64[n], half-open ranges on the query, as it was given.
        turned: bool[n], whether strands differ.
    """
    kept = np.empty(len(begins), bool)
    for low, high in pairwise(bounds.tolist()):
        ranges = list(zip(begins[low:high].tolist(), ends[low:high].tolist(), strict=True))
        kept[low:high] = best_of_target(ranges, turned[low:high].tolist())
    return kept
