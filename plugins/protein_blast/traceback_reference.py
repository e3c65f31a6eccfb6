"""Final gapped extension: from the point where the preliminary one started, with a larger X-drop and the path.

Sources: BLAST+ 2.12 without composition-based statistics. HSPs are taken best first; one that lies inside an alignment
already traced is dropped. The score may change either way and isn't tested again. Afterwards alignments that share an
end are purged, and contained ones dropped.

Scores see hard-masked residues and O in queries as X; paths, identities and positives are those of the real residues.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
from seqloom.core.alphabet import PROTEIN
from seqloom.core.context import Context
from seqloom.core.records import Alignments, Column, Ragged, Records
from seqloom.core.stages import ExtendStage
from seqloom.plugins.common.culling import Hsp, SavedHsps, drop_contained, purge_common_endpoints
from seqloom.plugins.common.edit_path import PathCounts, count_path, path_of_steps
from seqloom.plugins.common.grouping import group_starts
from seqloom.plugins.common.matrices import FORBIDDEN
from seqloom.plugins.common.xdrop import two_sided_traceback
from seqloom.plugins.protein_blast.gapped_reference import alignments_of
from seqloom.plugins.protein_blast.options import BlastpOptions
from seqloom.plugins.protein_blast.scoring import ProteinBlastScoring, read_as_query


def traced_hsps(preliminary: list[Hsp], query: bytes, target: bytes, rows: list[list[int]],
                scoring: ProteinBlastScoring) -> list[Hsp]:
    """Alignments of a pair with steps for paths, in `score_order`.

    Args:
        preliminary: HSPs in `score_order`, with anchors.
        query, target: codes as searched.
        rows: the matrix.
    """
    saved = SavedHsps()
    traced = []
    for hsp in preliminary:
        if saved.contains(hsp):
            continue
        found = two_sided_traceback(query, target, hsp.anchor_query + 1, hsp.anchor_target + 1, rows, scoring.gap_open,
                                    scoring.gap_extend, scoring.x_drop_final)
        if not len(found.steps):  # extensions of residues that score nothing
            continue
        alignment = Hsp(found.score, found.row_start, found.row_end, found.column_start, found.column_end,
                        hsp.anchor_query, hsp.anchor_target)
        alignment.path = found.steps
        saved.add(alignment)
        traced.append(alignment)
    return drop_contained(purge_common_endpoints(traced))


ADJUSTMENT = Column("adjustment", "i1",
                    "how scores were adjusted to compositions: 1 scaled, 2 by joint frequencies; 0 not")


def traced_pairs(context: Context, records: Records,
                 trace: Callable[[list[Hsp], int, np.ndarray, np.ndarray], list[Hsp]]) -> Alignments:
    """What `trace` makes of the preliminary HSPs of every pair, with paths and counts, by query and target.

    Args:
        trace: of HSPs, the place of their query among those of the unit, and u1 codes of the query, as searched, and
            of the target: alignments with steps for paths, in `score_order`.
    """
    queries, similar = context.queries, similarity(context.scoring.matrix)
    searched, real = read_as_query(queries.searched()), queries.residues
    found: list[tuple[int, int, Hsp]] = []
    counts: list[PathCounts] = []
    for low, high in pairwise(group_starts(records.query, records.target).tolist()):
        context.advance(high - low, len(records))
        number, target_number = int(records.query[low]), int(records.target[low])
        place = int(queries.locate(number))
        span = slice(int(queries.offsets[place]), int(queries.offsets[place + 1]))
        target = context.target(target_number)
        for hsp in trace(hsps_of(records, low, high), place, searched[span], target):
            stretches = (real[span][hsp.query_start : hsp.query_end].tobytes(),
                         target[hsp.target_start : hsp.target_end].tobytes())
            hsp.path = path_of_steps(hsp.path, *stretches)
            found.append((number, target_number, hsp))
            counts.append(count_path(hsp.path, *stretches, similar))
    table = np.array(counts, np.int32).reshape(-1, len(PathCounts._fields))
    columns = {name: table[:, place] for place, name in enumerate(PathCounts._fields)}
    ways = np.array([hsp.adjustment for _, _, hsp in found], np.int8)
    return alignments_of(found).replace([ADJUSTMENT], **columns, path=Ragged.of([hsp.path for _, _, hsp in found]),
                                        adjustment=ways)


def similarity(matrix: np.ndarray) -> list[list[int]]:
    """The matrix by which unequal residues count as positive: that of the scores, but J is similar to none."""
    printed = matrix.copy()
    ambiguous = PROTEIN.letters.index("J")
    printed[ambiguous, :] = printed[:, ambiguous] = FORBIDDEN
    return printed.tolist()


class FinalTraceback(ExtendStage):
    """Gapped X-drop extension with traceback of preliminary HSPs: paths, identities, positives, gaps."""

    name = "final-traceback"
    backend = "reference"
    takes = (Alignments,)
    gives = Alignments
    columns = (ADJUSTMENT,)
    takes_order = ("query", "target")
    gives_order = ("query", "target")
    scoring = ProteinBlastScoring

    @classmethod
    def applies(cls, options: Any) -> bool:
        """Where no other stage makes alignments with other statistics."""
        return not (isinstance(options, BlastpOptions)
                    and (options.ungapped or options.redoes_alignments() or options.winnows()))

    def run(self, context: Context, records: Records) -> Alignments:
        """Alignments by query and target, within a pair in `score_order`."""
        scoring, rows = context.scoring, context.scoring.matrix_rows()

        def trace(preliminary: list[Hsp], place: int, query: np.ndarray, target: np.ndarray) -> list[Hsp]:
            return traced_hsps(preliminary, query.tobytes(), target.tobytes(), rows, scoring)

        return traced_pairs(context, records, trace)


def hsps_of(records: Records, low: int, high: int) -> list[Hsp]:
    """Rows of preliminary alignments."""
    names = ("score", "query_start", "query_end", "target_start", "target_end", "anchor_query", "anchor_target")
    return [Hsp(*row) for row in zip(*(records.data[name][low:high].tolist() for name in names), strict=True)]
