"""Ranking of exact Smith–Waterman hits."""

from typing import ClassVar

import numpy as np
from seqloom.core.context import Context
from seqloom.core.keys import byte_keys
from seqloom.core.records import Hits, Records
from seqloom.core.stages import Scope, SortStage


class SmithWatermanRank(SortStage):
    """Ranks the hits of each query by E-value, then score (best first), then place in the database; keeps the best.

    Without statistics the ranking is by score. ``max_target_seqs`` hits are kept per query.
    """

    name: ClassVar[str] = "sw-rank"
    takes: ClassVar[tuple[type[Records] | None, ...]] = (Hits,)
    gives: ClassVar[type[Records]] = Hits
    gives_order: ClassVar[tuple[str, ...] | None] = ("query",)
    scopes: ClassVar[tuple[Scope, ...]] = ("unit", "reduce")
    uses: ClassVar[tuple[str, ...]] = ("max_target_seqs",)

    def run(self, context: Context, records: Records) -> Hits:
        assert isinstance(records, Hits)
        keys = byte_keys([records.query, records.evalue, records.score, records.target],
                         descending=[False, False, True, False])
        order = self.order(context, keys)
        query = records.query[order]
        rank = np.arange(len(query)) - np.searchsorted(query, query)
        context.count("past_max_target_seqs", int((rank >= context.options.max_target_seqs).sum()))
        return records.take(order[rank < context.options.max_target_seqs])
