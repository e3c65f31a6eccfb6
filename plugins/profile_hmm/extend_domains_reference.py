"""Domains of each pair that passed the filters: hits with their envelopes and alignments as children."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from seqloom.core.context import Context
from seqloom.core.records import Alignments, Hits, Pairs, Ragged, Records
from seqloom.core.stages import ExtendStage, Footprint, Shape

from .columns import DOMAIN_COLUMNS, HIT_COLUMNS, RAW_SCORE, by_query, residues_of
from .domain_path import describe_path
from .domains import Domain, Domains
from .domains_reference import define_domains
from .exact_math import compensated_sum
from .forward_reference import forward_parser
from .index_reference import KIND, profile_of
from .profile import LengthModel, SearchProfile
from .scoring import HmmScoring


class DefineDomains(ExtendStage):
    """Domains by posterior decoding, sampled paths and optimal accuracy alignment."""

    name = "define-domains"
    takes = (Pairs,)
    gives = Hits
    gives_order = None
    reads = (KIND,)
    columns = (RAW_SCORE, *HIT_COLUMNS, *DOMAIN_COLUMNS)
    scoring = HmmScoring

    def footprint(self, shape: Shape) -> Footprint:
        # M, I and D in Forward, Backward, posteriors and optimal accuracy; an envelope may be the whole target.
        return Footprint(host=4 * 3 * 4 * (shape.longest_query + 8) * (shape.longest_target + 1))

    def run(self, context: Context, records: Records) -> Hits:
        hits: list[dict[str, Any]] = []
        children: list[dict[str, Any]] = []
        for query, rows in by_query(records):
            profile = profile_of(context, query)
            for row, target in zip(rows, residues_of(context.targets, records.target[rows]), strict=True):
                context.cancellation.check()
                lengths = LengthModel(len(target), multihit=True)
                score, matrix = forward_parser(profile.floats, lengths, target)
                found = define_domains(profile.floats, target, matrix, context.options.seed)
                if found is None:
                    context.count("overflowed")
                    continue
                if not found.domains:
                    context.count("without domains")
                    continue
                keys = {"query": query, "target": records.target[row]}
                hits.append({**keys, "score": score, **_hit_values(found)})
                children += [{**keys, **_domain_values(profile, domain, target)} for domain in found.domains]
        alignments = _table(Alignments, (RAW_SCORE, *DOMAIN_COLUMNS), children)
        return _table(Hits, (RAW_SCORE, *HIT_COLUMNS), hits).with_alignments(alignments)


def _hit_values(found: Domains) -> dict[str, Any]:
    return {
        "null2_sum": compensated_sum(found.null2),
        "expected_domains": found.expected,
        "regions": found.regions,
        "clustered_regions": found.clustered,
        "overlaps": found.overlaps,
        "envelopes": found.envelopes,
        "domains": len(found.domains),
    }


def _domain_values(profile: SearchProfile, domain: Domain, target: NDArray[np.uint8]) -> dict[str, Any]:
    runs, counts = describe_path(profile, domain.path, target[domain.start - 1 : domain.end])
    first, last = domain.alignment
    return {
        "score": domain.score,
        "query_start": domain.path.model_start - 1,
        "query_end": domain.path.model_end,
        "target_start": first - 1,
        "target_end": last,
        "query_frame": 1,
        "target_frame": 1,
        **counts._asdict(),
        "path": runs,
        "env_start": domain.start - 1,
        "env_end": domain.end,
        "accuracy": domain.accuracy,
        "null2_correction": domain.correction,
    }


def _table(kind: type[Records], extra: Iterable[Any], rows: list[dict[str, Any]]) -> Any:
    """Records from rows of equal keys."""
    if not rows:
        return kind.empty(extra)
    data = {name: [row[name] for row in rows] for name in rows[0]}
    return kind({n: Ragged.of(v) if n == "path" else v for n, v in data.items()}, extra)
