"""``define-domains`` on the CPU."""

from __future__ import annotations

import numpy as np
from seqloom.core.context import Context
from seqloom.core.records import Hits, Records
from seqloom.core.stages import Footprint, Shape

from .chunks import Chunk, over_chunks
from .domain_path_cpu import compensated_sum, describe_path
from .domains_cpu import define_domains
from .exact_math import F32
from .extend_domains_reference import DefineDomains, Found, as_hits
from .forward_cpu import SPECIALS, WIDE, Parser, StripedOdds, longest_first

_SHARE = 16


class DefineDomainsCpu(DefineDomains):
    __doc__ = DefineDomains.__doc__
    backend = "cpu"

    def footprint(self, shape: Shape) -> Footprint:
        # For each thread M, I and D in Forward and Backward; an envelope may be the whole target. The states around the
        # model of several targets, which are gone through side by side.
        matrices = 2 * 3 * 4 * (shape.longest_query + 8) * (shape.longest_target + 1)
        around = 2 * 4 * SPECIALS * WIDE * shape.longest_target
        return Footprint(host=shape.threads * (matrices + around + 1024 * shape.longest_query))

    def run(self, context: Context, records: Records) -> Hits:
        def look(chunk: Chunk) -> list[Found]:
            odds, lengths = StripedOdds(chunk.profile.floats), chunk.ends - chunk.begins
            parser = Parser(odds, int(lengths.max()))
            found = {}
            for chosen in longest_first(lengths):
                context.cancellation.check()
                parser.run(chunk.residues, chunk.begins[chosen], lengths[chosen], both=True)
                for number, place in enumerate(chosen.tolist()):
                    begin, end = int(chunk.begins[place]), int(chunk.ends[place])
                    domains = define_domains(odds, chunk.residues, begin, end, parser, number, context.options.seed)
                    paths, null2_sum = [], F32(0.0)
                    if domains is not None:
                        null2_sum = F32(compensated_sum(domains.null2))
                        paths = [describe_path(chunk.profile, d, chunk.residues, begin) for d in domains.domains]
                    found[place] = Found(int(chunk.rows[place]), parser.scores[number], domains, null2_sum, paths)
            return [found[place] for place in range(len(lengths))]

        chunks = over_chunks(context, records, np.arange(len(records)), look, _SHARE)
        return as_hits(context, records, [found for chunk in chunks for found in chunk])
