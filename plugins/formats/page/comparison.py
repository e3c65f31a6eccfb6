"""How a page shows what one run has that another hasn't."""

from collections.abc import Sequence

from seqloom.core.classes import NamedTuple

from ....core.comparison import Comparison, Found, Line
from ...common.numbers import bit_score_text, evalue_text, score_text
from .runs import RunView

LISTED = 500
"""Hits that are listed of those that one run alone has, and of those that both have."""


class Shown(NamedTuple):
    """A hit as the tables of the comparison have it."""

    rank: int
    score: str
    evalue: str


class Part(NamedTuple):
    """A table: its key and title, how many hits it has, and the best of them as (query, target, hits of either run)."""

    key: str
    title: str
    whole: int
    lines: Sequence[tuple[str, str, Sequence[Shown]]]


class ComparisonView:
    """Two runs side by side; the hits of both are complete, whatever the page lists of each."""

    def __init__(self, first: RunView, second: RunView) -> None:
        found = Comparison(first.report, second.report)
        names = [f"{run.name} ({run.run.get('pipeline', '')})" for run in (first, second)]
        self.both = len(found.both)
        self.otherwise = sum(shown(line.first)[1:] != shown(line.second)[1:]
                             for line in found.both if line.first and line.second)
        self.parts = [Part(key, title, len(lines), [_row(line) for line in lines[:LISTED]]) for key, title, lines in (
            ("first", f"Only in {names[0]}", found.first_alone), ("second", f"Only in {names[1]}", found.second_alone),
            ("both", "In both", found.both))]


def _row(line: Line) -> tuple[str, str, Sequence[Shown]]:
    return line.query, line.target, [shown(found) for found in (line.first, line.second) if found]


def shown(found: Found) -> Shown:
    """The score is that in bits where there is one."""
    score = bit_score_text(found.bits).strip() if found.bits == found.bits else score_text(found.score)
    return Shown(found.rank, score, evalue_text(found.evalue).replace("*", ""))
