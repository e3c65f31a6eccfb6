"""Final gapped extension: from the point where the preliminary one started, with a larger X-drop and the path.

Sources: BLAST+ 2.12 without composition-based statistics. HSPs are taken best first; one that lies inside an alignment
already traced is dropped. The score may change either way and isn't tested again. Afterwards alignments that share an
end are purged, and contained ones dropped.

Scores see hard-masked letters and O in queries as X; paths, identities and positives are those of the real letters.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from seqloom.core.alphabet import PROTEIN
from seqloom.core.context import Context
from seqloom.core.records import Alignments, Ragged, Records
from seqloom.core.stages import ExtendStage
from seqloom.plugins.common.culling import Hsp, SavedHsps, drop_contained, purge_common_endpoints
from seqloom.plugins.common.edit_path import PathCounts, count_path, path_of_steps
from seqloom.plugins.common.grouping import group_starts
from seqloom.plugins.common.matrices import FORBIDDEN
from seqloom.plugins.common.xdrop import two_sided_traceback
from seqloom.plugins.protein_blast.gapped_reference import alignments_of
from seqloom.plugins.protein_blast.scoring import ProteinBlastScoring, read_as_query


def traced_hsps(
    preliminary: list[Hsp],
    query: bytes,
    real_query: bytes,
    target: bytes,
    rows: list[list[int]],
    scoring: ProteinBlastScoring,
) -> list[Hsp]:
    """Alignments of a pair with their paths, in `score_order`.

    Args:
        preliminary: HSPs in `score_order`, with anchors.
        query, real_query: codes as searched and as they are.
        target: codes.
        rows: the matrix.
    """
    saved = SavedHsps()
    traced = []
    for hsp in preliminary:
        if saved.contains(hsp):
            continue
        found = two_sided_traceback(
            query,
            target,
            hsp.anchor_query + 1,
            hsp.anchor_target + 1,
            rows,
            scoring.gap_open,
            scoring.gap_extend,
            scoring.x_drop_final,
        )
        if not len(found.steps):  # extensions of letters that score nothing
            continue
        alignment = Hsp(
            found.score,
            found.row_start,
            found.row_end,
            found.column_start,
            found.column_end,
            hsp.anchor_query,
            hsp.anchor_target,
        )
        alignment.path = path_of_steps(
            found.steps, real_query[found.row_start : found.row_end], target[found.column_start : found.column_end]
        )
        saved.add(alignment)
        traced.append(alignment)
    return drop_contained(purge_common_endpoints(traced))


def similarity(matrix: np.ndarray) -> list[list[int]]:
    """The matrix by which unequal letters count as positive: that of the scores, but J is similar to none."""
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
    takes_order = ("query", "target")
    gives_order = ("query", "target")
    scoring = ProteinBlastScoring

    def run(self, context: Context, records: Records) -> Alignments:
        """Alignments by query and target, within a pair in `score_order`."""
        scoring, queries = context.scoring, context.queries
        searched, real = read_as_query(queries.searched()), queries.residues
        rows, similar = scoring.matrix_rows(), similarity(scoring.matrix)
        found: list[tuple[int, int, Hsp]] = []
        counts: list[PathCounts] = []
        bounds = group_starts(records.query, records.target).tolist()
        for low, high in pairwise(bounds):
            context.cancellation.check()
            number, target_number = int(records.query[low]), int(records.target[low])
            place = int(queries.locate(number))
            span = slice(int(queries.offsets[place]), int(queries.offsets[place + 1]))
            query, real_query = searched[span].tobytes(), real[span].tobytes()
            target = context.target(target_number).tobytes()
            for hsp in traced_hsps(_hsps(records, low, high), query, real_query, target, rows, scoring):
                found.append((number, target_number, hsp))
                stretches = real_query[hsp.query_start : hsp.query_end], target[hsp.target_start : hsp.target_end]
                counts.append(count_path(hsp.path, *stretches, similar))
        table = np.array(counts, np.int32).reshape(-1, len(PathCounts._fields))
        columns = {name: table[:, place] for place, name in enumerate(PathCounts._fields)}
        path = Ragged.of([hsp.path for _, _, hsp in found])
        return alignments_of(found).replace(**columns, path=path)


def _hsps(records: Records, low: int, high: int) -> list[Hsp]:
    names = ("score", "query_start", "query_end", "target_start", "target_end", "anchor_query", "anchor_target")
    return [Hsp(*row) for row in zip(*(records.data[name][low:high].tolist() for name in names), strict=True)]
