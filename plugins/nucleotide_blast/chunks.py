"""Joining of preliminary alignments from neighbouring chunks of a long target.

A long target is searched in overlapping chunks. An alignment that crosses the overlap is found in two pieces, one per
chunk; pieces that meet in the overlap on nearly the same diagonal are joined. The traceback extends the joined one
anew.
"""

from __future__ import annotations

from collections.abc import Callable

from seqloom.plugins.common.culling import Hsp
from seqloom.plugins.nucleotide_blast.pieces import CHUNK_OVERLAP

NEAR_DIAGONALS = 10

Frames = dict[int, list[Hsp]]


def continues(first: Hsp, second: Hsp, start: int) -> bool:
    """Whether alignments of two chunks, of which the later begins at ``start``, are pieces of one across the end."""
    end = start + CHUNK_OVERLAP
    crosses = first.target_start < start and first.target_end > start and second.target_start < end <= second.target_end
    near = abs(first.query_start - first.target_start - second.query_start + second.target_start) < NEAR_DIAGONALS
    return crosses and near and first.query_start <= second.query_start and first.query_end <= second.query_end


def overlaps(first: Hsp, second: Hsp, start: int) -> bool:
    """Whether segments of two chunks lie on one diagonal, and the later one begins or ends in the earlier one."""
    if first.target_end <= start or second.target_start >= start + CHUNK_OVERLAP:
        return False
    same = first.query_start - first.target_start == second.query_start - second.target_start
    return same and any(first.target_start <= end <= first.target_end
                        for end in (second.target_start, second.target_end))


def merge_chunks(found: list[tuple[int, Frames]], belong: Callable[[Hsp, Hsp, int], bool] = continues) -> Frames:
    """Alignments by frame in target coordinates, from those of chunks (start, by frame, in chunk coordinates).

    Those of the plus strand come first.

    belong: whether two of neighbouring chunks are to be joined.
    """
    merged: Frames = {}
    for start, frames in found:
        for frame, hsps in frames.items():
            for hsp in hsps:
                hsp.target_start, hsp.target_end = hsp.target_start + start, hsp.target_end + start
                hsp.anchor_target += start
            merged[frame] = _joined(merged.get(frame, []), hsps, start, belong)
    return dict(sorted(merged.items(), reverse=True))


def _joined(earlier: list[Hsp], later: list[Hsp], start: int, belong: Callable[[Hsp, Hsp, int], bool]) -> list[Hsp]:
    """Both lists; a later alignment is joined to the first earlier one that it belongs to."""
    result, rest = list(earlier), []
    for hsp in later:
        place = next((place for place, other in enumerate(result) if belong(other, hsp, start)), None)
        if place is None:
            rest.append(hsp)
        else:
            result[place] = _join(result[place], hsp)
    return result + rest


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
