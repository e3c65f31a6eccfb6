"""``define-domains`` on the CPU."""

from __future__ import annotations

import numpy as np
from seqloom.core.context import Context
from seqloom.core.records import Hits, Records
from seqloom.core.stages import Footprint, Shape

from .chunks import Chunk, over_chunks
from .domain_path_cpu import compensated_sum, describe_path
from .domains_cpu import TOGETHER_BYTES, define_domains
from .exact_math import F32
from .extend_domains_reference import DefineDomains, Found, as_hits
from .forward_cpu import SPECIALS, WIDE, StripedOdds
from .profile import LANES

_SHARE = 16


class DefineDomainsCpu(DefineDomains):
    __doc__ = DefineDomains.__doc__
    backend = "cpu"

    def footprint(self, shape: Shape) -> Footprint:
        # For each thread M, I and D of an envelope, which may be the whole target, and of those that are gone through
        # side by side; labels of the larger of them; the states around the model, of several targets together.
        matrix = 3 * 4 * (shape.longest_query + 8) * (shape.longest_target + 1)
        together = min(TOGETHER_BYTES, matrix * WIDE // LANES) * 5 // 4
        around = 2 * 2 * 4 * SPECIALS * WIDE * (shape.longest_target + 1)
        each = matrix + together + max(matrix, together) // 6 + around + 1024 * shape.longest_query
        return Footprint(host=shape.threads * each)

    def run(self, context: Context, records: Records) -> Hits:
        def look(chunk: Chunk) -> list[Found]:
            odds, found = StripedOdds(chunk.profile.floats), []
            defined = define_domains(odds, chunk.residues, chunk.begins, chunk.ends, context.options.seed,
                                     context.cancellation.check)
            for row, begin, (score, domains) in zip(chunk.rows.tolist(), chunk.begins.tolist(), defined, strict=True):
                paths, null2_sum = [], F32(0.0)
                if domains is not None:
                    null2_sum = F32(compensated_sum(domains.null2))
                    paths = [describe_path(chunk.profile, d, chunk.residues, begin) for d in domains.domains]
                found.append(Found(row, score, domains, null2_sum, paths))
            return found

        chunks = over_chunks(context, records, np.arange(len(records)), look, _SHARE)
        return as_hits(context, records, [found for chunk in chunks for found in chunk])
