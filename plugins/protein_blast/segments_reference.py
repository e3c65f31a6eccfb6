"""Searches without gaps: the ungapped segments as alignments (BLAST+ 2.12 with `-ungapped`)."""

from __future__ import annotations

from typing import Any

import numpy as np
from seqloom.core.context import Context
from seqloom.core.records import Alignments, Ragged, Records, Seeds
from seqloom.core.stages import ExtendStage
from seqloom.plugins.common.culling import Hsp, score_order
from seqloom.plugins.common.edit_path import PathCounts, count_path, path_of_steps
from seqloom.plugins.common.xdrop import BOTH
from seqloom.plugins.protein_blast.gapped_reference import alignments_of
from seqloom.plugins.protein_blast.scoring import ProteinBlastScoring
from seqloom.plugins.protein_blast.traceback_reference import similarity


class SegmentAlignments(ExtendStage):
    """Ungapped segments as alignments, with what is equal and what is similar in them."""

    name = "segment-alignments"
    backend = "reference"
    takes = (Seeds,)
    gives = Alignments
    takes_order = ("query", "target")
    gives_order = ("query", "target")
    scoring = ProteinBlastScoring
    uses = ("ungapped",)

    @classmethod
    def applies(cls, options: Any) -> bool:
        return options.ungapped

    def run(self, context: Context, records: Records) -> Alignments:
        """Alignments by query and target, within a pair in `score_order`."""
        similar = similarity(context.scoring.matrix)
        rows = list(zip(*(records.data[name].tolist() for name in (
            "query", "target", "score", "query_pos", "target_pos", "length")), strict=True))
        found: list[tuple[int, int, Hsp]] = []
        counts: list[PathCounts] = []
        for query, target, score, query_pos, target_pos, length in rows:
            found.append((query, target, Hsp(score, query_pos, query_pos + length, target_pos, target_pos + length)))
        found.sort(key=lambda row: (row[0], row[1], *score_order(row[2])))
        for query, target, hsp in found:
            context.advance(1, len(found))
            stretches = (context.query(query)[hsp.query_start : hsp.query_end].tobytes(),
                         context.target(target)[hsp.target_start : hsp.target_end].tobytes())
            hsp.path = path_of_steps([BOTH] * hsp.query_span, *stretches)
            counts.append(count_path(hsp.path, *stretches, similar))
        table = np.array(counts, np.int32).reshape(-1, len(PathCounts._fields))
        columns = {name: table[:, place] for place, name in enumerate(PathCounts._fields)}
        return alignments_of(found).replace(**columns, path=Ragged.of([hsp.path for _, _, hsp in found]))
