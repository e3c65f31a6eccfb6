"""What one run has that another hasn't: their hits by names of query and target."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from .classes import NamedTuple
from .ports import Report

Pair = tuple[str, str]


class Found(NamedTuple):
    """A hit of a run; ``bits`` and ``evalue`` are NaN where it has none."""

    rank: int
    score: float
    bits: float
    evalue: float

    @property
    def order(self) -> float:
        """Less for better hits."""
        return self.evalue if self.evalue == self.evalue else -self.score

    def plain(self) -> dict[str, Any]:
        """As plain data; None for what there is none of."""
        return {name: value if value == value else None for name, value in self._asdict().items()}


class Line(NamedTuple):
    """A query and target with the hit of either run; None where it has none."""

    query: str
    target: str
    first: Found | None
    second: Found | None

    @property
    def best(self) -> Found:
        """The hit of the first run that has it."""
        found = self.first or self.second
        assert found is not None
        return found

    def plain(self) -> dict[str, Any]:
        """As plain data, without runs that don't have it."""
        hits = {"first": self.first, "second": self.second}
        return {"query": self.query, "target": self.target,
                **{name: found.plain() for name, found in hits.items() if found}}


class Comparison:
    """Two runs side by side, with all their hits.

    Attributes:
        first_alone, second_alone, both: lines, the best hits first.
    """

    def __init__(self, first: Report, second: Report) -> None:
        ours, theirs = hits_of(first), hits_of(second)
        self.first_alone = [Line(*pair, found, None) for pair, found in ours.items() if pair not in theirs]
        self.second_alone = [Line(*pair, None, found) for pair, found in theirs.items() if pair not in ours]
        self.both = [Line(*pair, found, theirs[pair]) for pair, found in ours.items() if pair in theirs]
        for lines in (self.first_alone, self.second_alone, self.both):
            lines.sort(key=lambda line: line.best.order)


def hits_of(report: Report) -> Mapping[Pair, Found]:
    """All hits of a run by names of query and target; of several for the same names the best."""
    found: dict[Pair, Found] = {}
    for block in report.blocks():
        hits, names = block.hits, dict(zip(block.targets.numbers.tolist(), block.targets.names))
        queries = dict(zip(block.numbers.tolist(), block.names))
        columns = [hits.data[n].tolist() for n in ("query", "target", "score", "bit_score", "evalue")]
        ranks = np.arange(len(hits)) - np.repeat(block.first_hits[:-1], np.diff(block.first_hits)) + 1
        for rank, query, target, score, bits, evalue in zip(ranks.tolist(), *columns):
            found.setdefault((queries[query], names[target]), Found(rank, score, bits, evalue))
    return found
