"""``define-domains`` on the CPU."""

from __future__ import annotations

import numpy as np
from seqloom.core.context import Context
from seqloom.core.records import Hits, Records
from seqloom.core.stages import Footprint, Shape

from .chunks import Chunk, over_chunks
from .domain_path_cpu import compensated_sum, describe_path
from .domains_cpu import ALONE_BYTES, TOGETHER_BYTES, define_domains
from .exact_math import F32
from .extend_domains_reference import DefineDomains, Found, as_hits
from .forward_cpu import SPECIALS, STREAM_ROWS, WIDE, RoomsOfThreads, StripedOdds
from .kept_states_cpu import kept_states
from .profile import LANES
from .traces_cpu import TABLE_BYTES

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

        def look(chunk: Chunk) -> list[Found]:
            odds, found = StripedOdds(chunk.profile.floats), []
            known = [states.take(chunk.query, target) for target in records.target[chunk.rows].tolist()]
            with rooms_of_threads.lent() as rooms:
                defined = define_domains(odds, chunk.residues, chunk.begins, chunk.ends, context.options.seed,
                                         context.cancellation.check, rooms, known)
            for row, begin, (score, domains) in zip(chunk.rows.tolist(), chunk.begins.tolist(), defined, strict=True):
                paths, null2_sum = [], F32(0.0)
                if domains is not None:
                    null2_sum = F32(compensated_sum(domains.null2))
                    paths = [describe_path(chunk.profile, d, chunk.residues, begin) for d in domains.domains]
                found.append(Found(row, score, domains, null2_sum, paths))
            return found

        chunks = over_chunks(context, records, np.arange(len(records)), look, _SHARE)
        return as_hits(context, records, [found for chunk in chunks for found in chunk])
