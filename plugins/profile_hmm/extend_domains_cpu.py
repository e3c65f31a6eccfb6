"""``define-domains`` on the CPU."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from seqloom.core.classes import NamedTuple
from seqloom.core.context import Context
from seqloom.core.records import Alignments, Hits, Ragged, Records
from seqloom.core.stages import Footprint, Shape
from seqloom.plugins.common.edit_path import PathCounts

from .chunks import Chunk, over_chunks
from .columns import DOMAIN_COLUMNS, HIT_COLUMNS, RAW_SCORE
from .domain_path_cpu import describe_paths
from .domains_cpu import ALONE_BYTES, TOGETHER_BYTES, Found, define_domains
from .exact_math import F32
from .extend_domains_reference import DefineDomains
from .forward_cpu import SPECIALS, STREAM_ROWS, WIDE, RoomsOfThreads, StripedOdds
from .kept_states_cpu import kept_states
from .profile import LANES
from .traces_cpu import TABLE_BYTES

if TYPE_CHECKING:
    from numpy.typing import NDArray

_SHARE = 2


class DefineDomainsCpu(DefineDomains):
    __doc__ = DefineDomains.__doc__
    backend = "cpu"

    def footprint(self, shape: Shape) -> Footprint:
        # For each thread M, I and D of rows of an envelope, which may be the whole target, or of those that are gone
        # through side by side; rows that are kept to begin anew from; the states around the model, of several targets
        # Forward's and Backward's, of envelopes those of alignments as well.
        row = 3 * 4 * (shape.longest_query + 8)
        matrix = row * (shape.longest_target + 1)
        cells = max(min(TOGETHER_BYTES, matrix * WIDE // LANES) * 5 // 4, min(max(ALONE_BYTES, 16 * row), matrix))
        kept = 3 * row * (matrix // ALONE_BYTES + 2) + 10 * WIDE // LANES * row
        around = 4 * SPECIALS * (2 * WIDE * (STREAM_ROWS + shape.longest_target) + 4 * LANES * shape.longest_target)
        around += min(TOGETHER_BYTES, matrix * WIDE // LANES) // 8
        labels = cells // 6
        noted = TABLE_BYTES + 1024 * shape.longest_query
        return Footprint(host=shape.threads * (cells + labels + kept + around + noted))

    def run(self, context: Context, records: Records) -> Hits:
        rooms_of_threads, states = RoomsOfThreads(), kept_states(context)

        def look(chunk: Chunk) -> _Part:
            known = [states.take(chunk.query, target) for target in records.target[chunk.rows].tolist()]
            with rooms_of_threads.lent() as rooms:
                found = define_domains(StripedOdds(chunk.profile.floats), chunk.residues, chunk.begins, chunk.ends,
                                       context.options.seed, context.cancellation.check, rooms, known)
            first = chunk.begins[found.owners] + found.starts + found.places[:, 0] - 2
            return _Part(chunk.rows, found, *describe_paths(chunk.profile, found.path, found.offsets, chunk.residues,
                                                            first, found.places[:, 2] - 1))

        parts = over_chunks(context, records, np.arange(len(records)), look, _SHARE)
        if parts:
            return _as_hits(context, records, _joined(parts))
        nothing = Alignments.empty((RAW_SCORE, *DOMAIN_COLUMNS))
        return Hits.empty((RAW_SCORE, *HIT_COLUMNS)).with_alignments(nothing)


class _Part(NamedTuple):
    """Domains of some targets of a model, or of several models: i8[n] ``rows`` of the records, what was ``found``,
    edit paths and counts i8[d, 6] of ``describe_paths``."""

    rows: NDArray[np.int64]
    found: Found
    paths: Ragged
    counts: NDArray[np.int64]


def _joined(parts: list[_Part]) -> _Part:
    """All of them, one behind the other."""
    rows, founds, paths, counts = zip(*parts, strict=True)
    arrays = {name: np.concatenate([getattr(found, name) for found in founds]) for name in Found._fields}
    for name, sizes in (("owners", [len(found.scores) for found in founds]),
                        ("offsets", [len(found.path) for found in founds])):
        before = np.cumsum([0, *sizes]).tolist()
        moved = [getattr(found, name)[name == "offsets" :] + first
                 for found, first in zip(founds, before, strict=False)]
        arrays[name] = np.concatenate([np.zeros(int(name == "offsets"), np.int64), *moved])
    return _Part(np.concatenate(rows), Found(**arrays), Ragged.concat(paths), np.concatenate(counts))


def _as_hits(context: Context, records: Records, part: _Part) -> Hits:
    """Hits of the targets in which domains were found, with their domains as children."""
    found = part.found
    domains = np.bincount(found.owners, minlength=len(part.rows))
    for what, there in (("overflowed", found.overflowed), ("without domains", (domains == 0) & ~found.overflowed)):
        if there.any():
            context.count(what, int(there.sum()))
    kept = np.flatnonzero(domains)
    rows, owners = part.rows[kept], part.rows[found.owners]
    model_start, model_end = found.places[:, 2], found.places[:, 3]
    first, last = found.starts + found.places[:, 0] - 1, found.starts + found.places[:, 1] - 1
    shown, bounds = found.shown.tobytes().decode("ascii"), found.offsets.tolist()
    ones = np.ones(len(owners), np.int64)
    children = Alignments({
        "query": records.query[owners], "target": records.target[owners],
        "score": found.domain_scores, "query_start": model_start - 1, "query_end": model_end,
        "target_start": first - 1, "target_end": last, "query_frame": ones, "target_frame": ones,
        "env_start": found.starts - 1, "env_end": found.ends,
        "accuracy": found.accuracies / (found.ends - found.starts + 1).astype(F32),
        "posterior": [shown[begin:end] for begin, end in pairwise(bounds)],
        "null2_correction": found.corrections, "path": part.paths,
        **dict(zip(PathCounts._fields, part.counts.T, strict=True)),
    }, (RAW_SCORE, *DOMAIN_COLUMNS))
    hits = Hits({
        "query": records.query[rows], "target": records.target[rows], "score": found.scores[kept],
        "null2_sum": found.null2_sums[kept], "expected_domains": found.expected[kept],
        "regions": found.regions[kept], "clustered_regions": found.clustered[kept], "overlaps": found.overlaps[kept],
        "envelopes": found.envelopes[kept], "domains": domains[kept],
    }, (RAW_SCORE, *HIT_COLUMNS))
    return hits.with_alignments(children)
