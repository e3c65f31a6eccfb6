"""Preliminary gapped extension of the ungapped segments of a pair: scores and ends without paths (BLAST+ 2.12).

Segments are taken best first. One that lies inside an HSP already found, and scores no more, is skipped. The others are
extended to both sides from the middle of their best stretch. For cheapness a pair whose best segment is weak begins in
*restricted* mode, where gaps live only in every tenth row and column; a score in doubt, between 0.68 S and S, restarts
the pair with full extensions. What reaches S is kept, with the point that it was extended from: the traceback stage
starts there again.

The peer aligns targets of 90,000 residues and more only in a window around the segment; here they are aligned whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from seqloom.core.context import Context
from seqloom.core.records import Alignments, Records, Seeds
from seqloom.core.stages import ExtendStage
from seqloom.plugins.common.culling import Hsp, SavedHsps, purge_common_endpoints
from seqloom.plugins.common.grouping import group_starts
from seqloom.plugins.common.xdrop import extend_score, extend_score_restricted, two_sided
from seqloom.plugins.protein_blast.scoring import ProteinBlastScoring, read_as_query

ANCHOR_WINDOW = 11


def anchor_shift(scores: list[int]) -> int:
    """Where in an ungapped segment the gapped extension starts, from the segment's scores residue by residue.

    The middle of a short segment; else the middle of the first best window of 11 residues, or the start if no window
    scores above 0.
    """
    if len(scores) <= ANCHOR_WINDOW:
        return len(scores) // 2
    total = best = sum(scores[:ANCHOR_WINDOW])
    best_end = ANCHOR_WINDOW
    for end in range(ANCHOR_WINDOW, len(scores)):
        total += scores[end] - scores[end - ANCHOR_WINDOW]
        if total > best:
            best, best_end = total, end + 1
    return best_end - 1 - ANCHOR_WINDOW // 2 if best > 0 else 0


def preliminary_hsps(
    segments: list[Hsp], query: bytes, target: bytes, rows: list[list[int]], scoring: ProteinBlastScoring, place: int
) -> list[Hsp]:
    """Gapped HSPs that reach S, in `score_order`, from the ungapped segments of a pair in their order.

    Args:
        segments: score down, target start up, length down, query start up.
        query, target: codes, the query's as searched.
        rows: the matrix.
        place: of the query in its batch.
    """
    cutoff, doubtful = int(scoring.cutoff[place]), scoring.restricted_cutoff(place)
    restricted = scoring.may_restrict and segments[0].score < doubtful
    found = _extend_all(segments, query, target, rows, scoring, cutoff, doubtful if restricted else None)
    if found is None:
        found = _extend_all(segments, query, target, rows, scoring, cutoff, None)
    return purge_common_endpoints(found or [])


def _extend_all(
    segments: list[Hsp],
    query: bytes,
    target: bytes,
    rows: list[list[int]],
    scoring: ProteinBlastScoring,
    cutoff: int,
    doubtful: int | None,
) -> list[Hsp] | None:
    """HSPs that reach `cutoff`; in restricted mode (`doubtful` given) None as soon as a score is in doubt."""
    one_sided = extend_score if doubtful is None else extend_score_restricted
    saved = SavedHsps()
    found = []
    for segment in segments:
        if saved.contains(segment):
            continue
        scores = [
            rows[query[segment.query_start + k]][target[segment.target_start + k]] for k in range(segment.query_span)
        ]
        shift = anchor_shift(scores)
        query_anchor, target_anchor = segment.query_start + shift, segment.target_start + shift
        score, query_start, query_end, target_start, target_end = two_sided(
            one_sided,
            query,
            target,
            query_anchor + 1,
            target_anchor + 1,
            rows,
            scoring.gap_open,
            scoring.gap_extend,
            scoring.x_drop,
        )
        if query_anchor + 1 == len(query) or target_anchor + 1 == len(target):
            # The peer, with nothing to extend to the right, takes the anchor for the end, which is one residue less.
            query_end, target_end = query_anchor, target_anchor
        if score >= cutoff:
            hsp = Hsp(score, query_start, query_end, target_start, target_end, query_anchor, target_anchor)
            saved.add(hsp)
            found.append(hsp)
        elif doubtful is not None and score >= doubtful:
            return None
    return found


class PreliminaryGapped(ExtendStage):
    """Gapped X-drop extension of ungapped segments, score only; keeps HSPs that reach the score and E-value cutoffs."""

    name = "preliminary-gapped"
    preliminary = True
    backend = "reference"
    takes = (Seeds,)
    gives = Alignments
    takes_order = ("query", "target")
    gives_order = ("query", "target")
    scoring = ProteinBlastScoring

    @classmethod
    def applies(cls, options: Any) -> bool:
        """Where gaps are asked for, as they are unless other options than BLAST's say so."""
        return not getattr(options, "ungapped", False)

    def run(self, context: Context, records: Records) -> Alignments:
        """HSPs by query and target, within a pair in `score_order`, without paths and statistics."""
        scoring, queries = context.scoring, context.queries
        residues = read_as_query(queries.searched())
        rows = scoring.matrix_rows()
        found: list[tuple[int, int, Hsp]] = []
        bounds = group_starts(records.query, records.target).tolist()
        for low, high in pairwise(bounds):
            context.advance(high - low, len(records))
            number, target_number = int(records.query[low]), int(records.target[low])
            place = int(queries.locate(number))
            query = residues[queries.offsets[place] : queries.offsets[place + 1]].tobytes()
            target = context.target(target_number).tobytes()
            segments = [
                Hsp(score, query_pos, query_pos + length, target_pos, target_pos + length)
                for score, query_pos, target_pos, length in zip(
                    *(records.data[name][low:high].tolist() for name in ("score", "query_pos", "target_pos", "length")),
                    strict=True,
                )
            ]
            for hsp in preliminary_hsps(segments, query, target, rows, scoring, place):
                if scoring.evalue(hsp.score, len(query), len(target)) <= scoring.preliminary_limit:
                    found.append((number, target_number, hsp))
        return alignments_of(found)


def alignments_of(found: Sequence[tuple[int, int, Hsp]]) -> Alignments:
    """(query, target, HSP) rows as `Alignments` on the plus strands, with the columns that an `Hsp` has."""
    frame = np.ones(len(found), np.int8)
    names = ("score", "query_start", "query_end", "target_start", "target_end", "anchor_query", "anchor_target")
    data = {name: np.array([getattr(hsp, name) for _, _, hsp in found], np.int32) for name in names}
    return Alignments(
        {
            "query": np.array([query for query, _, _ in found], np.int32),
            "target": np.array([target for _, target, _ in found], np.int64),
            **data,
            "query_frame": frame,
            "target_frame": frame,
        }
    )
