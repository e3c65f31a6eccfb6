"""Final alignments where some go for the sake of others: culling, best hits, best of a target (BLAST+ 2.12).

Preliminary alignments of all targets are winnowed first, then those that are left are made final, and those of the best
targets winnowed again. So this is done behind the last volume; the targets that are needed are read again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from seqloom.core.context import Context
from seqloom.core.distinct import distinct
from seqloom.core.records import Alignments, Records
from seqloom.core.stages import ExtendStage
from seqloom.plugins.common.grouping import group_starts
from seqloom.plugins.common.rank_reference import SMALLEST_EVALUE
from seqloom.plugins.common.winnow import Entry, best_hits, best_of_target, culled
from seqloom.plugins.protein_blast.adjusted_reference import AdjustedTraceback
from seqloom.plugins.protein_blast.score_reference import FiniteSizeEvalue
from seqloom.plugins.protein_blast.scoring import ProteinBlastScoring
from seqloom.plugins.protein_blast.traceback_reference import FinalTraceback

SURE, UNSURE = 0.002, 0.01
"""Where a list is full of targets with E-values up to the first, those with preliminary ones above the second aren't
looked at any more."""
LENIENT = 3
"""How many more better ones a preliminary alignment may have than a final one, if this may have several."""
WITHOUT: dict[str, Any] = {"culling_limit": None, "best_hit_overhang": None, "best_hit_score_edge": None,
                           "subject_besthit": False, "cut_early": False}
"""Options of a search in which nothing goes for the sake of others."""


class WinnowedAlignments(ExtendStage):
    """Final alignments of what is left when preliminary ones go for the sake of better ones, and of these once more."""

    name = "winnowed-alignments"
    backend = "reference"
    takes = (Alignments,)
    gives = Alignments
    gives_order = ("query", "target")
    scopes = ("reduce",)
    columns = AdjustedTraceback.columns
    scoring = ProteinBlastScoring
    uses = ("culling_limit", "best_hit_overhang", "best_hit_score_edge", "subject_besthit", "cut_early")
    makers: ClassVar[Sequence[type[ExtendStage]]] = (AdjustedTraceback, FinalTraceback)
    scorer: ClassVar[type[FiniteSizeEvalue]] = FiniteSizeEvalue

    @classmethod
    def applies(cls, options: Any) -> bool:
        return options.winnows()

    def run(self, context: Context, records: Records) -> Alignments:
        assert isinstance(records, Alignments)
        records = records.take(np.lexsort((records.target, records.query)))  # of a pair best first, as they come
        options, limit = context.options, context.options.culling_limit or 0
        lenient = limit + LENIENT if limit > 1 else limit
        if options.ungapped:
            records = winnowed(context, of_targets(context, records), lenient, 0.0)
        elif len(records):
            assert context.catalog is not None
            context = replace(context, targets=context.catalog.fetch(distinct(records.target)))
            queries, targets = context.queries, context.targets
            evalues = self.scorer().evalues(context.scoring, records.score,
                                            queries.lengths[queries.locate(records.query)],
                                            targets.lengths[targets.locate(records.target)])
            records = winnowed(context, of_targets(context, records.replace(evalue=evalues)), lenient, 0.0)
            records = among_the_best(context, records)
            maker = next(maker for maker in self.makers if maker.applies(replace(options, **WITHOUT)))
            preliminary, records = records, self.scorer().run(context, maker().run(context, records))
            records = looked_at(context, preliminary, records)
        return winnowed(context, records, limit, (options.best_hit() or (0.0, 0.0))[0], options.max_target_seqs)


def of_targets(context: Context, records: Alignments) -> Alignments:
    """Preliminary alignments without those in the range of a better one with the same target, if that is asked for."""
    if not context.options.subject_besthit:
        return records
    kept: list[bool] = []
    for low, high in pairwise(group_starts(records.query, records.target).tolist()):
        spans = zip(records.query_start[low:high].tolist(), records.query_end[low:high].tolist(), strict=True)
        kept += best_of_target(list(spans))
    return records.take(np.array(kept, bool))


def among_the_best(context: Context, records: Alignments) -> Alignments:
    """Preliminary alignments of the best targets, so many as the peer keeps, where the list is cut early.

    Culling keeps all that it leaves.
    """
    options, kept = context.options, np.ones(len(records), bool)
    if not options.cut_early or options.culling_limit:
        return records
    for low, high in pairwise(group_starts(records.query).tolist()):
        best = best_first(records, entries_of(records, low, high), options.preliminary_targets())
        kept[low:high] = np.isin(records.target[low:high], [entry.target for entry in best])
    return records.take(kept)


def looked_at(context: Context, preliminary: Alignments, records: Alignments) -> Alignments:
    """Final alignments without those of targets that the peer doesn't look at, the list being full of sure ones.

    It takes the targets in their order in the database. Its other queries, which keep it looking, aren't asked.
    """
    options = context.options
    if not options.cut_early or not options.composition_mode():
        return records
    unsure: dict[tuple[int, int], float] = {}
    for query, target, evalue in _best(preliminary):
        unsure[query, target] = evalue
    sure: dict[int, int] = {}
    above: dict[int, list[float]] = {}
    left_out = set()
    for query, target, evalue in _best(records):
        worse = above.setdefault(query, [])
        full = sure.get(query, 0) + len(worse) >= options.max_target_seqs
        if full and not worse and unsure[query, target] > UNSURE:
            left_out.add((query, target))
        elif evalue <= SURE:
            sure[query] = sure.get(query, 0) + 1
            if full and worse:
                worse.remove(max(worse))
        elif not full:
            worse.append(evalue)
        elif worse and evalue < max(worse):
            worse.remove(max(worse))
            worse.append(evalue)
    pairs = zip(records.query.tolist(), records.target.tolist(), strict=True)
    return records.take(np.array([pair not in left_out for pair in pairs], bool))


def _best(records: Alignments) -> list[tuple[int, int, float]]:
    """Query, target and least E-value of every pair, in their order."""
    return [(int(records.query[low]), int(records.target[low]), float(records.evalue[low:high].min()))
            for low, high in pairwise(group_starts(records.query, records.target).tolist())]


def winnowed(context: Context, records: Alignments, limit: int, overhang: float, most: int | None = None) -> Alignments:
    """What culling to `limit`, or best hits with `overhang`, leave, if either is asked for.

    Targets come in their order in the database, or, where `most` is given, so many of them by rank.
    """
    best = context.options.best_hit()
    if not limit and best is None:
        return records
    kept: list[int] = []
    for low, high in pairwise(group_starts(records.query).tolist()):
        entries = entries_of(records, low, high)
        if most is not None:
            entries = best_first(records, entries, most)
        if best is not None:
            left = best_hits(entries, overhang, best[1])
        else:
            place = int(context.queries.locate(int(records.query[low])))
            left = culled(entries, int(context.queries.lengths[place]), limit)
        kept += sorted(entry.row for entry in left)
    return records.take(np.array(kept, np.int64))


def entries_of(records: Alignments, low: int, high: int) -> list[Entry]:
    """Rows low … high − 1, all of one query."""
    names = ("query_start", "query_end", "score", "target", "target_start", "evalue")
    columns = (records.data[name][low:high].tolist() for name in names)
    return [Entry(row, *values) for row, values in enumerate(zip(*columns, strict=True), low)]


def best_first(records: Alignments, entries: list[Entry], most: int) -> list[Entry]:
    """Rows of the best targets in the order of their rank, those of a target by E-value and score."""
    of_target: dict[int, list[Entry]] = {}
    for entry in entries:
        of_target.setdefault(entry.target, []).append(entry)

    def order(entry: Entry) -> tuple:
        ends = int(records.target_end[entry.row]), int(records.query_end[entry.row])
        return flat(entry), -entry.score, entry.target_start, -ends[0], entry.begin, -ends[1]

    def rank(rows: list[Entry]) -> tuple:
        return flat(rows[0]), -rows[0].score, -rows[0].target

    lists = sorted((sorted(rows, key=order) for rows in of_target.values()), key=rank)
    return [entry for rows in lists[:most] for entry in rows]


def flat(entry: Entry) -> float:
    """The E-value by which is ordered: very small ones are equal."""
    return entry.evalue if entry.evalue >= SMALLEST_EVALUE else 0.0
