"""Filter: the sum over all paths, in f32. Its score is the first that is reported."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from seqloom.core.context import Context
from seqloom.core.records import Pairs, Records
from seqloom.core.stages import ExtendStage, Footprint, Shape

from .columns import PAIR_COLUMNS, by_query, residues_of
from .forward_reference import forward_parser
from .index_reference import KIND, profile_of
from .p_values import bits, exponential_survival
from .profile import LengthModel
from .scoring import HmmScoring, ProfileScoring


class ForwardFilter(ExtendStage):
    """Pairs with P ≤ F3 by their Forward score.

    A pair whose score leaves the range of f32 is dropped and counted ("overflowed"); HMMER stops with an error there.
    """

    name = "forward-filter"
    takes = (Pairs,)
    gives = Pairs
    gives_order = None
    reads: ClassVar[tuple[str, ...]] = (KIND,)
    columns = PAIR_COLUMNS
    scoring: ClassVar[type[ProfileScoring]] = HmmScoring
    counts_queries = True

    def footprint(self, shape: Shape) -> Footprint:
        return Footprint(host=100 * shape.longest_query + 24 * shape.longest_target)

    def run(self, context: Context, records: Records) -> Records:
        scores = np.full(len(records), -np.inf, np.float32)
        p_values = np.ones(len(records))
        for query, rows in by_query(records):
            profile = profile_of(context, query)
            model = profile.model
            for row, target in zip(rows, residues_of(context.targets, records.target[rows]), strict=True):
                context.advance(1, len(records))
                try:
                    scores[row], _ = forward_parser(profile.floats, LengthModel(len(target), multihit=True), target)
                except FloatingPointError:
                    context.count("overflowed")
                    continue
                score = float(bits(scores[row], records.filter_null[row]))
                p_values[row] = exponential_survival(score, model.forward_tau, model.forward_lambda)
        kept = np.flatnonzero((p_values <= context.options.largest_p("F3")) & np.isfinite(scores))
        context.count("passed", len(kept))
        return records.replace(score=scores, filter_p=p_values).take(kept)
