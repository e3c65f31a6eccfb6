"""Registration of the profile HMM family."""

from seqloom.core.deferred import Deferred, deferred
from seqloom.core.hookspecs import hookimpl
from seqloom.core.pipeline import Pipeline

from .pipelines import HMMSEARCH

SEQLOOM_API = 1


@hookimpl
def seqloom_stages() -> list[Deferred]:
    return deferred(__package__, {
        "hmm-profiles reference": "index_reference.HmmProfiles",
        "msv reference": "seed_msv_reference.MsvFilter",
        "bias-filter reference": "extend_bias_reference.BiasFilter",
        "viterbi-filter reference": "extend_viterbi_reference.ViterbiFilter",
        "forward-filter reference": "extend_forward_reference.ForwardFilter",
        "define-domains reference": "extend_domains_reference.DefineDomains",
        "null2 reference": "score_null2_reference.Null2Score",
        "domain-statistics reference": "score_domains_reference.DomainStatistics",
        "rank-hmm-targets reference": "sort_rank_reference.RankTargets",
    })


@hookimpl
def seqloom_families() -> list[Deferred]:
    return deferred(__package__, {
        "profile-hmm": "family.ProfileHmmFamily",
    })


@hookimpl
def seqloom_pipelines() -> list[Pipeline]:
    return [HMMSEARCH]


@hookimpl
def seqloom_readers() -> list[Deferred]:
    return deferred(__package__, {
        "hmmer3": "reader.Hmmer3Reader",
    })


@hookimpl
def seqloom_writers() -> list[Deferred]:
    return deferred(__package__, {
        "tblout": "writers.TargetTable",
        "domtblout": "writers.DomainTable",
    })
