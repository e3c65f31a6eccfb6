"""Joining of preliminary alignments from neighbouring pieces of a target.

A long target is searched in overlapping chunks. An alignment that crosses the overlap is found in two parts, one per
chunk; parts that meet in the overlap on nearly the same diagonal are joined. The traceback extends the joined one
anew.

What a hard mask leaves of a target are pieces as well, and one may begin up to three masked bases early: then
alignments of both sides of a short masked stretch can meet there, and are joined by the same rule, as in BLAST+ 2.12.
"""

from __future__ import annotations

from collections.abc import Callable

from seqloom.plugins.common.culling import Hsp, score_order
from seqloom.plugins.common.winnow import best_of_target
from seqloom.plugins.nucleotide_blast.pieces import CHUNK_OVERLAP
from seqloom.plugins.nucleotide_blast.strands import mirrored

NEAR_DIAGONALS = 10

Frames = dict[int, list[Hsp]]


def continues(first: Hsp, second: Hsp, start: int) -> bool:
    """Whether alignments of two pieces, of which the later begins at ``start``, are parts of one.

    Both reach into the overlap, the later one begins near the diagonal on which the earlier ends, and one of its ends
    lies in the closed box of the earlier.
    """
    if first.target_end <= start or second.target_start >= start + CHUNK_OVERLAP:
        return False
    apart = first.query_end - first.target_end - second.query_start + second.target_start
    return abs(apart) < NEAR_DIAGONALS and any(
        first.query_start <= query <= first.query_end and first.target_start <= target <= first.target_end
        for query, target in ((second.query_start, second.target_start), (second.query_end, second.target_end))
    )


def overlaps(first: Hsp, second: Hsp, start: int) -> bool:
    """``continues`` of segments, which must lie on one diagonal."""
    same = first.query_start - first.target_start == second.query_start - second.target_start
    return same and continues(first, second, start)


def merge_chunks(found: list[tuple[int, Frames]], belong: Callable[[Hsp, Hsp, int], bool] = continues,
                 best_of: int | None = None) -> Frames:
    """Alignments by frame in target coordinates, from those of pieces (start, by frame, in coordinates of the piece).

    Those of the plus strand come first, and those of a strand in ``score_order``.

    Args:
        found: by rising starts.
        belong: whether two, of an earlier and of a later piece, are to be joined.
        best_of: bases of the query where ``best_of_target`` says which stay of what was found so far, after every
            piece; None: all do.
    """
    merged: Frames = {}
    latest: Frames = {}
    for start, frames in found:
        for frame, hsps in frames.items():
            for hsp in hsps:
                hsp.target_start, hsp.target_end = hsp.target_start + start, hsp.target_end + start
                hsp.anchor_target += start
            earlier = latest.get(frame, [])
            merged.setdefault(frame, []).extend(hsp for hsp in earlier if hsp.target_end <= start)
            latest[frame] = _joined([hsp for hsp in earlier if hsp.target_end > start], hsps, start, belong)
        if best_of is not None:
            _keep_best((merged, latest), best_of)
    return {frame: sorted(merged[frame] + latest[frame], key=score_order) for frame in sorted(latest, reverse=True)}


def _joined(earlier: list[Hsp], later: list[Hsp], start: int, belong: Callable[[Hsp, Hsp, int], bool]) -> list[Hsp]:
    """Both lists, best first; a later alignment is joined to the best earlier one that it belongs to."""
    result, rest = list(earlier), []
    for hsp in sorted(later, key=score_order):
        place = next((place for place, other in enumerate(result) if belong(other, hsp, start)), None)
        if place is None:
            rest.append(hsp)
        else:
            result[place] = _join(result[place], hsp)
    return sorted(result + rest, key=score_order)


def _keep_best(lists: tuple[Frames, ...], length: int) -> None:
    """Leave out of all lists what lies in the range of a better alignment. length: of the query."""
    found = sorted(((hsp, frame) for frames in lists for frame, hsps in frames.items() for hsp in hsps),
                   key=lambda pair: score_order(pair[0]))
    kept = best_of_target([mirrored(hsp.query_start, hsp.query_end, length, frame) for hsp, frame in found],
                          [frame < 0 for _, frame in found])
    gone = {id(hsp) for (hsp, _), stays in zip(found, kept, strict=True) if not stays}
    for frames in lists:
        for hsps in frames.values():
            hsps[:] = [hsp for hsp in hsps if id(hsp) not in gone]


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
