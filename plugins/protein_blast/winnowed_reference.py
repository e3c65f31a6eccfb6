"""Final alignments of proteins where some go for the sake of others, and lists of targets that are cut early."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from seqloom.core.context import Context
from seqloom.core.records import Alignments
from seqloom.core.stages import ExtendStage
from seqloom.plugins.common.grouping import group_starts
from seqloom.plugins.common.winnowed import WITHOUT, WinnowedAlignments, best_first, entries_of
from seqloom.plugins.protein_blast.adjusted_reference import AdjustedTraceback
from seqloom.plugins.protein_blast.score_reference import FiniteSizeEvalue
from seqloom.plugins.protein_blast.scoring import ProteinBlastScoring
from seqloom.plugins.protein_blast.traceback_reference import FinalTraceback

SURE, UNSURE = 0.002, 0.01
"""Where a list is full of targets with E-values up to the first, those with preliminary ones above the second aren't
looked at any more."""


class WinnowedProteins(WinnowedAlignments):
    """Final alignments of what is left when preliminary ones go for the sake of better ones, and of these once more."""

    name = "winnowed-alignments"
    backend = "reference"
    columns = AdjustedTraceback.columns
    scoring = ProteinBlastScoring
    uses = (*WinnowedAlignments.uses, "cut_early")
    makers: ClassVar[Sequence[type[ExtendStage]]] = (AdjustedTraceback, FinalTraceback)
    scorer: ClassVar[type[FiniteSizeEvalue]] = FiniteSizeEvalue

    def has_final(self, options: Any) -> bool:
        return not options.ungapped

    def expected(self, context: Context, records: Alignments) -> Alignments:
        queries, targets = context.queries, context.targets
        return records.replace(evalue=self.scorer().evalues(
            context.scoring, records.score, queries.lengths[queries.locate(records.query)],
            targets.lengths[targets.locate(records.target)]))

    def final(self, context: Context, records: Alignments) -> Alignments:
        records = among_the_best(context, records)
        options = replace(context.options, **WITHOUT, cut_early=False)
        maker = next(maker for maker in self.makers if maker.applies(options))
        return looked_at(context, records, self.scorer().run(context, maker().run(context, records)))


def among_the_best(context: Context, records: Alignments) -> Alignments:
    """Preliminary alignments of the best targets, so many as the peer keeps, where the list is cut early.

    Culling keeps all that it leaves.
    """
    options, kept = context.options, np.ones(len(records), bool)
    if not options.cut_early or options.culling_limit:
        return records
    for low, high in pairwise(group_starts(records.query).tolist()):
        best = best_first(context, records, entries_of(records, low, high), options.preliminary_targets())
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
