"""Registration of the profile HMM family."""

from __future__ import annotations

from seqloom.core.hookspecs import hookimpl
from seqloom.core.pipeline import Pipeline
from seqloom.core.stages import Family, Reader, Stage, Writer

from .extend_bias_reference import BiasFilter
from .extend_domains_reference import DefineDomains
from .extend_forward_reference import ForwardFilter
from .extend_viterbi_reference import ViterbiFilter
from .family import HMMSEARCH, ProfileHmmFamily
from .index_reference import HmmProfiles
from .reader import Hmmer3Reader
from .score_domains_reference import DomainStatistics
from .score_null2_reference import Null2Score
from .seed_msv_reference import MsvFilter
from .sort_rank_reference import RankTargets
from .writers import DomainTable, TargetTable

SEQLOOM_API = 1


@hookimpl
def seqloom_stages() -> list[type[Stage]]:
    return [
        HmmProfiles,
        MsvFilter,
        BiasFilter,
        ViterbiFilter,
        ForwardFilter,
        DefineDomains,
        Null2Score,
        DomainStatistics,
        RankTargets,
    ]


@hookimpl
def seqloom_families() -> list[type[Family]]:
    return [ProfileHmmFamily]


@hookimpl
def seqloom_pipelines() -> list[Pipeline]:
    return [HMMSEARCH]


@hookimpl
def seqloom_readers() -> list[type[Reader]]:
    return [Hmmer3Reader]


@hookimpl
def seqloom_writers() -> list[type[Writer]]:
    return [TargetTable, DomainTable]
