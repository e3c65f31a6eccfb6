"""The stages of hmmscan: hmmsearch's, turned round."""

from __future__ import annotations

from typing import Any

import numpy as np
from seqloom.core.context import Context
from seqloom.core.distinct import ranked
from seqloom.core.index import Index
from seqloom.core.records import Column, Hits, Records
from seqloom.core.sequences import ModelBatch, SequenceBatch
from seqloom.core.stages import Footprint, Shape

from .extend_bias_reference import BiasFilter
from .extend_domains_reference import DefineDomains
from .extend_forward_reference import ForwardFilter
from .extend_viterbi_reference import ViterbiFilter
from .index_reference import HmmProfiles
from .score_domains_reference import DomainStatistics
from .score_null2_reference import Null2Score
from .scoring import ScanScoring, Threshold, Thresholds, model_cutoffs
from .seed_msv_reference import MsvFilter, SsvFilter
from .turned import VOLUME_NODES, Turned, turned_shape

ACCESSION = Column("model_accession", "str", "accession of the model", nullable=True)


class ScanProfiles(HmmProfiles):
    """Models that are targets as 8-bit, 16-bit and floating-point search profiles."""

    name = "scan-hmm-profiles"
    side = "target"
    scoring = ScanScoring
    volume_residues = VOLUME_NODES

    def footprint(self, shape: Shape) -> Footprint:
        return super().footprint(turned_shape(shape))

    def run(self, context: Context, batch: SequenceBatch | ModelBatch) -> Index:
        assert isinstance(batch, ModelBatch)
        for model in batch.models:
            model_cutoffs(model, context.options)  # says if there are none
        index = super().run(context, batch)
        return Index(index.kind, "target", objects=index.objects)


class ScanMsv(Turned, MsvFilter):
    """Pairs whose best ungapped segments reach P ≤ F1, with their MSV score."""

    name = "scan-msv"
    gives_order = ("target", "query")


class ScanSsv(Turned, SsvFilter):
    """Pairs whose best single ungapped segment reaches P ≤ F1, with their SSV score."""

    name = "scan-ssv"
    gives_order = ("target", "query")


class ScanBias(Turned, BiasFilter):
    """Pairs whose MSV score still reaches P ≤ F1 over biased composition; idle with --nobias and --max."""

    name = "scan-bias-filter"


class ScanViterbi(Turned, ViterbiFilter):
    """Pairs whose Viterbi score reaches P ≤ F2."""

    name = "scan-viterbi-filter"


class ScanForward(Turned, ForwardFilter):
    """Pairs whose Forward score reaches P ≤ F3."""

    name = "scan-forward-filter"


class ScanDomains(Turned, DefineDomains):
    """Domains by posterior decoding, sampled paths and optimal accuracy alignment."""

    name = "scan-define-domains"


def with_accessions(context: Context, hits: Hits) -> Hits:
    """Hits with the accession of each one's model."""
    places = context.targets.locate(hits.target)
    accessions = [context.targets[n].accession or None for n in np.atleast_1d(places).tolist()]
    return hits.replace((ACCESSION,), model_accession=np.array(accessions, object))


class ScanNull2(Turned, Null2Score):
    """Bits, bias and P-value of hits and domains; without correction under --nonull2."""

    name = "scan-null2"
    columns = (*Null2Score.columns, ACCESSION)

    def run(self, context: Context, records: Records | None) -> Hits:
        return with_accessions(context, super().run(context, records))


class ScanStatistics(DomainStatistics):
    """E-values, thresholds and counts of the models and domains of a query; drops what isn't reported."""

    sequence = "query"
    name = "scan-domain-statistics"
    scoring = ScanScoring

    def rules(self, context: Context, query: int, hits: Hits) -> Thresholds:
        rules = super().rules(context, query, hits)
        if not rules.from_model:
            return rules
        assert context.catalog is not None
        numbers, back = ranked(hits.target)
        models: Any = context.catalog.fetch(numbers)
        own = np.array([model_cutoffs(models[n], context.options) for n in range(len(numbers))], np.float64)
        target, domain = (Threshold(None, column) for column in own.reshape(-1, 2)[back].T)
        return Thresholds(target, domain, target, domain, from_model=True)
