"""Domains of each pair that passed the filters: hits with their envelopes and alignments as children."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

import numpy as np
from seqloom.core.classes import NamedTuple
from seqloom.core.context import Context
from seqloom.core.records import Alignments, Hits, Pairs, Ragged, Records
from seqloom.core.stages import ExtendStage, Footprint, Shape
from seqloom.plugins.common.edit_path import PathCounts

from .columns import DOMAIN_COLUMNS, HIT_COLUMNS, RAW_SCORE, by_query, residues_of
from .domain_path import describe_path
from .domains import Domain, Domains
from .domains_reference import define_domains
from .exact_math import F32, compensated_sum
from .forward_reference import forward_parser
from .index_reference import KIND, profile_of
from .profile import LengthModel
from .scoring import HmmScoring, ProfileScoring


class DefineDomains(ExtendStage):
    """Domains by posterior decoding, sampled paths and optimal accuracy alignment."""

    name = "define-domains"
    takes = (Pairs,)
    gives = Hits
    gives_order = None
    reads: ClassVar[tuple[str, ...]] = (KIND,)
    columns = (RAW_SCORE, *HIT_COLUMNS, *DOMAIN_COLUMNS)
    scoring: ClassVar[type[ProfileScoring]] = HmmScoring

    def footprint(self, shape: Shape) -> Footprint:
        # M, I and D in Forward, Backward, posteriors and optimal accuracy; an envelope may be the whole target.
        return Footprint(host=4 * 3 * 4 * (shape.longest_query + 8) * (shape.longest_target + 1))

    def run(self, context: Context, records: Records) -> Hits:
        found = []
        for query, rows in by_query(records):
            profile = profile_of(context, query)
            for row, target in zip(rows, residues_of(context.targets, records.target[rows]), strict=True):
                context.advance(1, len(records))
                lengths = LengthModel(len(target), multihit=True)
                score, matrix = forward_parser(profile.floats, lengths, target)
                domains = define_domains(profile.floats, target, matrix, context.options.seed)
                paths, null2_sum = [], F32(0.0)
                if domains is not None:
                    null2_sum = compensated_sum(domains.null2)
                    paths = [
                        describe_path(profile, domain.path, target[domain.start - 1 : domain.end])
                        for domain in domains.domains
                    ]
                found.append(Found(row, score, domains, null2_sum, paths))
        return as_hits(context, records, found)


class Found(NamedTuple):
    """What domain definition found in the pair at ``row``: Forward score, domains (None where f32 overflowed), sum of
    the null2 log odds over the target, and of each domain its edit path and counts."""

    row: int
    score: np.float32
    domains: Domains | None
    null2_sum: np.float32
    paths: list[tuple[list[int], PathCounts]]


def as_hits(context: Context, records: Records, found: Iterable[Found]) -> Hits:
    """Hits of the pairs in which domains were found, with their domains as children."""
    hits: list[dict[str, Any]] = []
    children: list[dict[str, Any]] = []
    for row, score, domains, null2_sum, paths in found:
        if domains is None:
            context.count("overflowed")
        elif not domains.domains:
            context.count("without domains")
        else:
            keys = {"query": records.query[row], "target": records.target[row]}
            hits.append({**keys, "score": score, "null2_sum": null2_sum, **_hit_values(domains)})
            for domain, (runs, counts) in zip(domains.domains, paths, strict=True):
                children.append({**keys, **_domain_values(domain), **counts._asdict(), "path": runs})
    alignments = _table(Alignments, (RAW_SCORE, *DOMAIN_COLUMNS), children)
    return _table(Hits, (RAW_SCORE, *HIT_COLUMNS), hits).with_alignments(alignments)


def _hit_values(found: Domains) -> dict[str, Any]:
    return {
        "expected_domains": found.expected,
        "regions": found.regions,
        "clustered_regions": found.clustered,
        "overlaps": found.overlaps,
        "envelopes": found.envelopes,
        "domains": len(found.domains),
    }


def _domain_values(domain: Domain) -> dict[str, Any]:
    first, last = domain.alignment
    return {
        "score": domain.score,
        "query_start": domain.path.model_start - 1,
        "query_end": domain.path.model_end,
        "target_start": first - 1,
        "target_end": last,
        "query_frame": 1,
        "target_frame": 1,
        "env_start": domain.start - 1,
        "env_end": domain.end,
        "accuracy": domain.accuracy,
        "posterior": domain.labels,
        "null2_correction": domain.correction,
    }


def _table(kind: type[Records], extra: Iterable[Any], rows: list[dict[str, Any]]) -> Any:
    """Records from rows of equal keys."""
    if not rows:
        return kind.empty(extra)
    data = {name: [row[name] for row in rows] for name in rows[0]}
    return kind({n: Ragged.of(v) if n == "path" else v for n, v in data.items()}, extra)
