"""Other orders of hits, and of the alignments of each, for people who read them: those of BLAST's format 0."""

from dataclasses import replace
from itertools import pairwise

import numpy as np

from ...core.ports import QueryReport
from .lines import Lines

EVALUE, SCORE = 0, 1
"""First orders of hits and of alignments alike."""
TOTAL_SCORE, IDENTITY, COVERAGE = 2, 3, 4
"""Further orders of hits; that by identity looks at the alignment with the highest score."""
QUERY_START, ALIGNMENT_IDENTITY, TARGET_START = 2, 3, 4
"""Further orders of alignments."""


class Facts:
    """What orders and tables look at: columns of the lines of one query, and each hit's lines.

    Attributes:
        bits, evalue, share: f8[n]; share is that of identical residues, 1 is all.
        covered: i8[n], residues of the query that the hit's alignments cover together.
        groups: lines of each hit, in order of report.
    """

    def __init__(self, lines: Lines) -> None:
        rows = lines.rows
        self.bits, self.evalue = rows["bit_score"], rows["evalue"]
        self.share = lines.identities / np.maximum(lines.lengths, 1)
        self.covered = lines.covered()
        self.query_start, self.target_start = rows["query_start"], rows["target_start"]
        bounds = np.flatnonzero(np.diff(lines.hit, prepend=-1, append=-1)).tolist()
        self.groups = [list(range(first, last)) for first, last in pairwise(bounds)]

    def best(self, group: list[int]) -> int:
        """The line with the highest score, the first of several."""
        return max(group, key=lambda row: self.bits[row])


def arranged(query: QueryReport, lines: Lines, hits: int, alignments: int) -> QueryReport:
    """A query with its hits and their alignments in these orders; ties stay as they were, as in BLAST.

    Args:
        lines: of this query alone.
        hits, alignments: the orders, as the constants above name them.
    """
    if not (hits or alignments) or not lines.located.all():
        return query
    facts = Facts(lines)
    groups = facts.groups
    if len(groups) > 1 and hits in (SCORE, IDENTITY):  # BLAST puts alignments in the same order when it compares hits
        groups = [_by(facts, group, SCORE if hits == SCORE else ALIGNMENT_IDENTITY) for group in groups]
    if hits == SCORE:
        groups = sorted(groups, key=lambda group: -facts.bits[group[0]])
    elif hits == TOTAL_SCORE:  # of equal ones the last is first, as in BLAST
        groups = sorted(groups, key=lambda group: sum(facts.bits[group].tolist()))[::-1]
    elif hits == IDENTITY:
        groups = sorted(groups, key=lambda group: (-facts.share[facts.best(group)], facts.evalue[min(group)]))
    elif hits == COVERAGE:
        groups = sorted(groups, key=lambda group: (-facts.covered[group[0]], facts.evalue[group[0]]))
    groups = [_by(facts, group, alignments) for group in groups]
    order = np.array([row for group in groups for row in group], np.int64)
    children = query.hits.alignments.take(order)
    kept = query.hits.take(np.array([lines.hit[group[0]] for group in groups], np.int64))
    return replace(query, hits=kept.with_alignments(children))


def _by(facts: Facts, group: list[int], order: int) -> list[int]:
    """Lines of a hit in an order."""
    if order == SCORE:
        return sorted(group, key=lambda row: -facts.bits[row])
    if order in (QUERY_START, TARGET_START):
        starts = facts.query_start if order == QUERY_START else facts.target_start
        return sorted(group, key=lambda row: (starts[row], facts.evalue[row]))
    if order == ALIGNMENT_IDENTITY:
        return sorted(group, key=lambda row: (-facts.share[row], facts.evalue[row]))
    return group
