"""Maximal matches as alignments."""

from typing import ClassVar

import numpy as np
from seqloom.core.context import Context, Scoring
from seqloom.core.records import MATCH, Alignments, Ragged, Records, Seeds
from seqloom.core.stages import ExtendStage

from .options import MatchScoring


class MatchesAsTheyAre(ExtendStage):
    """Turns every match into an alignment of one run of equal residues; statistics stay absent."""

    name: ClassVar[str] = "matches"
    takes: ClassVar[tuple[type[Records] | None, ...]] = (Seeds,)
    gives: ClassVar[type[Records]] = Alignments
    gives_order: ClassVar[tuple[str, ...] | None] = None
    reads_residues: ClassVar[bool] = False
    scoring: ClassVar[type[Scoring]] = MatchScoring

    def run(self, context: Context, records: Records) -> Alignments:
        length, none = records.length, np.zeros(len(records), np.int32)
        return Alignments({
            "query": records.query, "target": records.target, "score": length,
            "query_start": records.query_pos, "query_end": records.query_pos + length,
            "target_start": records.target_pos, "target_end": records.target_pos + length,
            "query_frame": records.query_frame, "target_frame": records.target_frame,
            "length": length, "identities": length, "positives": length, "mismatches": none, "gap_opens": none,
            "gaps": none,
            "path": Ragged.even((length << 4 | MATCH).astype(np.uint32)[:, None]),
        })
