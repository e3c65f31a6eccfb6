"""Queries of which a stretch alone is searched: cut for the stages, and their results moved back."""

from dataclasses import replace

import numpy as np

from ..errors import InputError
from ..records import Alignments, Hits
from ..sequences import Intervals, SequenceBatch, offsets_of

Stretch = tuple[int, int] | None


def cut(queries: SequenceBatch, stretch: Stretch) -> SequenceBatch:
    """The queries, each without what lies outside the half-open stretch; empty where it ends before."""
    if stretch is None:
        return queries
    starts = queries.offsets[:-1] + np.minimum(queries.lengths, stretch[0])
    ends = queries.offsets[:-1] + np.minimum(queries.lengths, stretch[1])
    inside = np.concatenate([np.arange(*bounds) for bounds in zip(starts.tolist(), ends.tolist())] or [starts])
    offsets = offsets_of(ends - starts)
    lower = Intervals.from_mask(queries.lower.mask(queries.offsets)[inside], offsets)
    return replace(queries, residues=queries.residues[inside], offsets=offsets, lower=lower)


def moved_back(hits: Hits, stretch: Stretch) -> Hits:
    """Hits of cut queries with their places in the whole ones."""
    if stretch is None:
        return hits
    found: Alignments = hits.alignments
    places = {name: np.where(found.data[name] < 0, found.data[name], found.data[name] + stretch[0])
              for name in ("query_start", "query_end", "anchor_query")}
    return hits.with_alignments(found.replace(**places))


def check_stretch(queries: SequenceBatch, stretch: Stretch) -> None:
    """Refuse a stretch that lies behind the ends of all queries."""
    if stretch is not None and stretch[0] >= queries.longest:
        raise InputError(f"residues {stretch[0] + 1:,} to {stretch[1]:,} are asked for, and the longest query has "
                         f"{queries.longest:,}; give a stretch that it has")
