"""Ranking: most significant target first; ties by the bytes of the name, then by number."""

from __future__ import annotations

import numpy as np
from seqloom.core.context import Context
from seqloom.core.keys import byte_keys
from seqloom.core.records import Hits, Ragged, Records
from seqloom.core.stages import SortStage

from .scoring import ProfileScoring


class RankTargets(SortStage):
    """Targets of each query by P-value, or by score where inclusion goes by score; domains stay from left to right."""

    name = "rank-hmm-targets"
    takes = (Hits,)
    gives = Hits
    gives_order = ("query",)
    scopes = ("reduce",)
    scoring = ProfileScoring

    def run(self, context: Context, records: Records) -> Records:
        assert context.catalog is not None
        names = context.catalog.info(records.target).names
        by_score = [context.scoring.thresholds[q].ranks_by_score for q in records.query.tolist()]
        merit = np.where(by_score, records.bit_score, -records.log_p)
        before = byte_keys([records.query, merit], [False, True])
        after = byte_keys([records.target])
        # A zero byte ends a name, so that a name goes before its continuations.
        rows = [
            np.concatenate([before[n], np.frombuffer(name.encode() + b"\0", np.uint8), after[n]])
            for n, name in enumerate(names)
        ]
        return records.take(self.order(context, Ragged.of(rows, np.uint8)))
