"""Which matches are unique, decided once all volumes are done, and their order.

A match is unique in the reference when its residues occur there once. Any other occurrence of them extends to a maximal
match of the same query and strand that covers the query interval of the first; conversely, another maximal match that
covers the interval shows a further occurrence, because two maximal matches never overlap on one diagonal. So uniqueness
follows from the query intervals alone, whichever volumes the matches come from.
"""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from seqloom.core.context import Context, Scoring
from seqloom.core.keys import byte_keys, stable_order
from seqloom.core.records import Alignments, Hits, Records
from seqloom.core.stages import Scope, SortStage

from .options import MatchScoring

_FEW = 1 << 16  # rows that numpy sorts in the time in which a sorter's kernels are loaded


class UniqueMatches(SortStage):
    """Keeps the matches that the mode asks for: all, those unique in the reference, or those unique in both.

    ``maxmatch`` keeps all. ``mumreference`` keeps a match if no other match of the same query and strand covers its
    query interval. ``mum`` drops, of these, a match whose reference interval lies within that of another one of the
    same query, strand and target. Of matches with equal intervals none is kept; nor is, as in MUMmer, a match of one
    residue with the very first residue of all targets.

    Source: the MUMmer 3 manual; uniqueness in the query is per query sequence and strand.
    """

    name: ClassVar[str] = "unique-matches"
    takes: ClassVar[tuple[type[Records] | None, ...]] = (Alignments,)
    gives: ClassVar[type[Records]] = Alignments
    gives_order: ClassVar[tuple[str, ...] | None] = None
    scopes: ClassVar[tuple[Scope, ...]] = ("reduce",)
    scoring: ClassVar[type[Scoring]] = MatchScoring
    uses: ClassVar[tuple[str, ...]] = ("mode",)

    def run(self, context: Context, records: Records) -> Alignments:
        assert isinstance(records, Alignments)
        mode = context.options.mode()
        if mode != "maxmatch":
            covered = self._covered(context, [records.query, records.query_frame],
                                    records.query_start, records.query_end)
            context.count("repeated_in_reference", int(covered.sum()))
            records = records.take(~covered)
        if mode == "mum":
            covered = self._covered(context, [records.query, records.query_frame, records.target],
                                    records.target_start, records.target_end)
            first_residue = (records.target == 0) & (records.target_end == 1)
            context.count("repeated_in_query", int(covered.sum()))
            records = records.take(~covered & ~first_residue)
        return records

    def _covered(self, context: Context, group: list[np.ndarray], start: np.ndarray, end: np.ndarray) -> np.ndarray:
        """bool[n]: whether another interval of the same group contains each interval, or equals it."""
        covered = np.zeros(len(start), bool)
        if not len(start):
            return covered
        order = _order(self, context, [*group, start, end], [False] * (len(group) + 1) + [True])
        order = np.arange(len(start)) if order is None else order
        begins = np.zeros(len(order), bool)
        begins[0] = True
        for key in group:
            begins[1:] |= key[order][1:] != key[order][:-1]
        # Ends lifted group by group: a running maximum of them never looks back across a group's first interval.
        number = np.cumsum(begins)
        lifted = end[order] + number * (int(end.max()) + 1)
        longest = np.maximum.accumulate(lifted)
        inside = np.zeros(len(order), bool)
        inside[1:] = (lifted[1:] <= longest[:-1]) & ~begins[1:]
        equal = ~begins[1:] & (start[order][1:] == start[order][:-1]) & (end[order][1:] == end[order][:-1])
        inside[:-1] |= equal
        covered[order] = inside
        return covered


class MatchRank(SortStage):
    """Groups matches into hits; a hit's score is its longest match, ties in order of the database.

    Matches of a hit come by strand (plus first), start on the strand searched, and start in the target.
    """

    name: ClassVar[str] = "match-rank"
    takes: ClassVar[tuple[type[Records] | None, ...]] = (Alignments,)
    gives: ClassVar[type[Records]] = Hits
    gives_order: ClassVar[tuple[str, ...] | None] = ("query",)
    scopes: ClassVar[tuple[Scope, ...]] = ("reduce",)
    scoring: ClassVar[type[Scoring]] = MatchScoring

    def run(self, context: Context, records: Records) -> Hits:
        assert isinstance(records, Alignments)
        lengths = context.queries.lengths[context.queries.locate(records.query)]
        begin = np.where(records.query_frame > 0, records.query_start, lengths - records.query_end)
        order = _order(self, context, [records.query, records.target, records.query_frame, begin, records.target_start],
                       [False, False, True, False, False])
        children = records if order is None else records.take(order)
        if not len(children):
            return Hits.empty().with_alignments(children)
        changes = (children.query[1:] != children.query[:-1]) | (children.target[1:] != children.target[:-1])
        first = np.flatnonzero(np.concatenate([[True], changes]))
        hits = Hits({"query": children.query[first], "target": children.target[first],
                     "score": np.maximum.reduceat(children.score, first)}, alignments=children)
        order = _order(self, context, [hits.query, hits.score, hits.target], [False, True, False])
        return hits if order is None else hits.take(order)


def _order(stage: SortStage, context: Context, columns: Sequence[np.ndarray],
           descending: Sequence[bool]) -> np.ndarray | None:
    """i8[n]: the stable order of rows by integer columns, by the stage's sorter; few rows by numpy.

    None where they stand in it, as they mostly do.
    """
    signed = [~column if down else column for column, down in zip(columns, descending, strict=True)]
    if _in_order(signed):
        return None
    if len(columns[0]) > _FEW:
        return stage.order(context, byte_keys(columns, descending))
    return stable_order(signed)


def _in_order(columns: Sequence[np.ndarray]) -> bool:
    """Whether rows ascend by the first column, of equal ones by the next, and so on."""
    same = np.ones(max(0, len(columns[0]) - 1), bool)
    for column in columns:
        if (same & (column[:-1] > column[1:])).any():
            return False
        same &= column[:-1] == column[1:]
    return True
