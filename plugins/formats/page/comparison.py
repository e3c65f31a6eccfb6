"""What one run has that another hasn't: their hits by names of query and target."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ...common.numbers import bit_score_text, evalue_text, score_text
from .runs import RunView

LISTED = 500
"""Hits that are listed of those that one run alone has, and of those that both have."""

Pair = tuple[str, str]


class Found(NamedTuple):
    """A hit as the tables of the comparison show it."""

    rank: int
    score: str
    evalue: str
    order: float


class Line(NamedTuple):
    """A query and target with the hit of either run; None where it has none."""

    query: str
    target: str
    first: Found | None
    second: Found | None


class Comparison:
    """Two runs side by side; the hits of both are complete, whatever the page lists of each.

    Attributes:
        first_alone, second_alone, both: lines, the best hits first.
    """

    def __init__(self, first: RunView, second: RunView) -> None:
        self.first, self.second = first, second
        ours, theirs = hits_of(first), hits_of(second)
        self.first_alone = [Line(*pair, found, None) for pair, found in ours.items() if pair not in theirs]
        self.second_alone = [Line(*pair, None, found) for pair, found in theirs.items() if pair not in ours]
        self.both = [Line(*pair, found, theirs[pair]) for pair, found in ours.items() if pair in theirs]
        for lines in (self.first_alone, self.second_alone, self.both):
            lines.sort(key=lambda line: (line.first or line.second).order)  # type: ignore[union-attr]

    @property
    def parts(self) -> Sequence[tuple[str, str, Sequence[Line]]]:
        """Key, title and lines of each table."""
        first, second = (f"{run.name} ({run.run.get('pipeline', '')})" for run in (self.first, self.second))
        return (("first", f"Only in {first}", self.first_alone), ("second", f"Only in {second}", self.second_alone),
                ("both", "In both", self.both))

    def otherwise(self) -> int:
        """Hits of both runs that differ in what is shown of their score or E-value."""
        return sum(line.first[1:3] != line.second[1:3] for line in self.both if line.first and line.second)


def hits_of(view: RunView) -> dict[Pair, Found]:
    """All hits of a run by names; of several for the same names the best."""
    found: dict[Pair, Found] = {}
    for block in view.report.blocks():
        hits, names = block.hits, dict(zip(block.targets.numbers.tolist(), block.targets.names))
        queries = dict(zip(block.numbers.tolist(), block.names))
        columns = [hits.data[n].tolist() for n in ("query", "target", "score", "bit_score", "evalue")]
        ranks = np.arange(len(hits)) - np.repeat(block.first_hits[:-1], np.diff(block.first_hits)) + 1
        for rank, query, target, score, bits, evalue in zip(ranks.tolist(), *columns):
            shown = bit_score_text(bits).strip() if bits == bits else score_text(score)
            order = evalue if evalue == evalue else -score
            found.setdefault((queries[query], names[target]),
                             Found(rank, shown, evalue_text(evalue).replace("*", ""), order))
    return found
