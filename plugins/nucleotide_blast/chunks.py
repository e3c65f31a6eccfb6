"""Joining of preliminary alignments from neighbouring chunks of a long target.

A long target is searched in overlapping chunks. An alignment that crosses the overlap is found in two pieces, one per
chunk; pieces that meet in the overlap on nearly the same diagonal are joined. The traceback extends the joined one
anew.
"""

from __future__ import annotations

from seqloom.plugins.common.culling import Hsp
from seqloom.plugins.nucleotide_blast.seed_reference import CHUNK_OVERLAP

NEAR_DIAGONALS = 10

Frames = dict[int, list[Hsp]]


def merge_chunks(found: list[tuple[int, Frames]], near: int = NEAR_DIAGONALS) -> Frames:
    """Alignments by frame in target coordinates, from those of chunks (start, by frame, in chunk coordinates).

    near: pieces are joined if their starts are less than so many diagonals apart.
    """
    merged: Frames = {}
    for start, frames in found:
        for frame, hsps in frames.items():
            for hsp in hsps:
                hsp.target_start, hsp.target_end = hsp.target_start + start, hsp.target_end + start
                hsp.anchor_target += start
            merged[frame] = _joined(merged.get(frame, []), hsps, start, near)
    return merged


def _joined(earlier: list[Hsp], later: list[Hsp], start: int, near: int) -> list[Hsp]:
    """Both lists; a later alignment that begins in the overlap is joined to the first earlier one it continues."""
    result = list(earlier)
    for hsp in later:
        partner = next((other for other in result if _continues(other, hsp, start, near)), None)
        if partner is None:
            result.append(hsp)
        else:
            result[result.index(partner)] = _join(partner, hsp)
    return result


def _continues(first: Hsp, second: Hsp, start: int, near: int) -> bool:
    end = start + CHUNK_OVERLAP
    crosses = first.target_start < start and first.target_end > start and second.target_start < end <= second.target_end
    apart = abs(first.query_start - first.target_start - second.query_start + second.target_start)
    return crosses and apart < near and first.query_start <= second.query_start and first.query_end <= second.query_end


def _join(first: Hsp, second: Hsp) -> Hsp:
    """Their bounding box, with the score of the better one or their mean score per query base over the whole box."""
    query_start = min(first.query_start, second.query_start)
    query_end = max(first.query_end, second.query_end)
    density = (first.score + second.score) / (first.query_span + second.query_span)
    better = second if second.score > first.score else first
    return Hsp(
        max(first.score, second.score, int(density * (query_end - query_start))),
        query_start,
        query_end,
        min(first.target_start, second.target_start),
        max(first.target_end, second.target_end),
        better.anchor_query,
        better.anchor_target,
    )
