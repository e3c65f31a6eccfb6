"""Final alignments where some go for the sake of others: culling, best hits, best of a target (BLAST+ 2.12).

Preliminary alignments of all targets are winnowed first, then those that are left are made final, and those of the best
targets winnowed again. So this is done behind the last volume; the targets that are needed are read again.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from seqloom.core.context import Context
from seqloom.core.distinct import distinct
from seqloom.core.records import Alignments, Records
from seqloom.core.stages import ExtendStage
from seqloom.plugins.common.grouping import group_starts
from seqloom.plugins.common.rank_reference import SMALLEST_EVALUE, covering
from seqloom.plugins.common.winnow import Entry, best_hits, best_of_targets, culled

LENIENT = 3
"""How many more better ones a preliminary alignment may have than a final one, if this may have several."""
WITHOUT: dict[str, Any] = {"culling_limit": None, "best_hit_overhang": None, "best_hit_score_edge": None,
                           "subject_besthit": False}
"""Options of a search in which nothing goes for the sake of others."""


class WinnowedAlignments(ExtendStage):
    """Final alignments of what is left when preliminary ones go for the sake of better ones, and of these once more."""

    takes = (Alignments,)
    gives = Alignments
    gives_order = ("query", "target")
    scopes = ("reduce",)
    uses: ClassVar[tuple[str, ...]] = ("culling_limit", "best_hit_overhang", "best_hit_score_edge", "subject_besthit")

    @classmethod
    def applies(cls, options: Any) -> bool:
        return options.winnows()

    @abstractmethod
    def expected(self, context: Context, records: Alignments) -> Alignments:
        """Preliminary alignments with E-values."""

    @abstractmethod
    def final(self, context: Context, records: Alignments) -> Alignments:
        """Final alignments, with statistics, of preliminary ones."""

    def has_final(self, options: Any) -> bool:
        """Whether alignments aren't final as they come."""
        return True

    def of_targets(self, context: Context, records: Alignments) -> Alignments:
        """Alignments that are final as they come, without those in the range of a better one, if that is asked for."""
        return in_no_better_one(context, records)

    def run(self, context: Context, records: Records) -> Alignments:
        assert isinstance(records, Alignments)
        records = records.take(in_order(context, records))
        options, limit = context.options, context.options.culling_limit or 0
        lenient = limit + LENIENT if limit > 1 else limit
        if not self.has_final(options):
            records = self.of_targets(context, records)
            records = winnowed(context, records.take(covering(context, records)), lenient, 0.0)
        elif len(records):
            assert context.catalog is not None
            context = replace(context, targets=context.catalog.fetch(distinct(records.target)))
            records = self.expected(context, in_no_better_one(context, records))
            records = self.final(context, winnowed(context, records, lenient, 0.0))
        return winnowed(context, records, limit, (options.best_hit() or (0.0, 0.0))[0], options.max_target_seqs)


def in_order(context: Context, records: Alignments) -> np.ndarray:
    """i64[n]: order by query and target, and of a pair best first, by coordinates on the strand of the query."""
    return np.lexsort(_keys(context, records))


def _keys(context: Context, records: Alignments) -> list[np.ndarray]:
    """i64[n] each: what ``in_order`` orders by, the last first."""
    starts, ends = strand_ranges(context, records)
    return [-ends, starts, -records.target_end.astype(np.int64), records.target_start,
            -records.score.astype(np.int64), records.target, records.query]


def first_alike(context: Context, records: Alignments) -> np.ndarray:
    """i64[n]: for each row the first that is as good at the same place, which that on the other strand can be."""
    keys = _keys(context, records)
    order = np.lexsort(keys)
    begins = np.ones(len(order), bool)
    begins[1:] = np.any([key[order][1:] != key[order][:-1] for key in keys], axis=0)
    alike = np.empty(len(order), np.int64)
    alike[order] = order[np.maximum.accumulate(np.where(begins, np.arange(len(order)), 0))]
    return alike


def strand_ranges(context: Context, records: Alignments) -> tuple[np.ndarray, np.ndarray]:
    """i64[n] each: starts and ends of alignments on the strand of the query that is aligned."""
    lengths = context.queries.lengths[context.queries.locate(records.query)]
    opposite = records.query_frame * records.target_frame < 0
    return (np.where(opposite, lengths - records.query_end, records.query_start),
            np.where(opposite, lengths - records.query_start, records.query_end))


def in_no_better_one(context: Context, records: Alignments) -> Alignments:
    """Alignments, best first, without those in the range of a better one with the same target, if that is asked for."""
    if not context.options.subject_besthit:
        return records
    return records.take(best_of_targets(group_starts(records.query, records.target), records.query_start,
                                        records.query_end, records.query_frame * records.target_frame < 0))


def winnowed(context: Context, records: Alignments, limit: int, overhang: float, most: int | None = None) -> Alignments:
    """What culling to `limit`, or best hits with `overhang`, leave, if either is asked for.

    Targets come in their order in the database, or, where `most` is given, so many of them by rank.
    """
    best = context.options.best_hit()
    if not limit and best is None:
        return records
    kept: list[int] = []
    alike = first_alike(context, records)
    for low, high in pairwise(group_starts(records.query).tolist()):
        entries = entries_of(records, low, high)
        if most is not None:
            entries = best_first(context, records, entries, most)
        if best is not None:
            left = best_hits(entries, overhang, best[1], 2 * context.options.preliminary_targets())
        else:
            place = int(context.queries.locate(int(records.query[low])))
            left = culled(entries, int(context.queries.lengths[place]), limit)
        # Those that are alike stay as they have come to stand: a palindrome's two, for instance, change places.
        kept += sorted((entry.row for entry in left), key=lambda row: int(alike[row]))
    return records.take(np.array(kept, np.int64))


def entries_of(records: Alignments, low: int, high: int) -> list[Entry]:
    """Rows low … high − 1, all of one query."""
    names = ("query_start", "query_end", "score", "target", "target_start", "evalue")
    columns = (records.data[name][low:high].tolist() for name in names)
    return [Entry(row, *values) for row, values in enumerate(zip(*columns, strict=True), low)]


def best_first(context: Context, records: Alignments, entries: list[Entry], most: int) -> list[Entry]:
    """Rows of the best targets in the order of their rank, those of a target by E-value and score."""
    of_target: dict[int, list[Entry]] = {}
    for entry in entries:
        of_target.setdefault(entry.target, []).append(entry)

    starts, ends = strand_ranges(context, records)

    def order(entry: Entry) -> tuple:
        row = entry.row
        return (flat(entry), -entry.score, entry.target_start, -int(records.target_end[row]), int(starts[row]),
                -int(ends[row]))

    def rank(rows: list[Entry]) -> tuple:
        return flat(rows[0]), -rows[0].score, -rows[0].target

    lists = sorted((sorted(rows, key=order) for rows in of_target.values()), key=rank)
    return [entry for rows in lists[:most] for entry in rows]


def flat(entry: Entry) -> float:
    """The E-value by which is ordered: very small ones are equal."""
    return entry.evalue if entry.evalue >= SMALLEST_EVALUE else 0.0
