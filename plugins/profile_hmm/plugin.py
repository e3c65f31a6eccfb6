"""Registration of the profile HMM family."""

from seqloom.core.deferred import Deferred, deferred
from seqloom.core.hookspecs import hookimpl
from seqloom.core.pipeline import Pipeline

from .pipelines import HMMSCAN, HMMSEARCH, PHMMER

SEQLOOM_API = 1


@hookimpl
def seqloom_stages() -> list[Deferred]:
    return deferred(__package__, {
        "hmm-profiles reference": "index_reference.HmmProfiles",
        "hmm-profiles cpu": "index_cpu.HmmProfilesCpu",
        "sequence-profiles reference": "query_index_reference.SequenceProfiles",
        "sequence-profiles cpu": "query_index_cpu.SequenceProfilesCpu",
        "msv reference": "seed_msv_reference.MsvFilter",
        "msv cpu": "seed_msv_cpu.MsvFilterCpu",
        "msv cuda": "seed_msv_cuda.MsvFilterCuda",
        "bias-filter reference": "extend_bias_reference.BiasFilter",
        "bias-filter cpu": "extend_bias_cpu.BiasFilterCpu",
        "viterbi-filter reference": "extend_viterbi_reference.ViterbiFilter",
        "viterbi-filter cpu": "extend_viterbi_cpu.ViterbiFilterCpu",
        "forward-filter reference": "extend_forward_reference.ForwardFilter",
        "forward-filter cpu": "extend_forward_cpu.ForwardFilterCpu",
        "define-domains reference": "extend_domains_reference.DefineDomains",
        "define-domains cpu": "extend_domains_cpu.DefineDomainsCpu",
        "null2 reference": "score_null2_reference.Null2Score",
        "null2 cpu": "score_null2_cpu.Null2ScoreCpu",
        "domain-statistics reference": "score_domains_reference.DomainStatistics",
        "domain-statistics cpu": "reduce_cpu.DomainStatisticsCpu",
        "rank-hmm-targets reference": "sort_rank_reference.RankTargets",
        "rank-hmm-targets cpu": "reduce_cpu.RankTargetsCpu",
        "scan-hmm-profiles reference": "scan_reference.ScanProfiles",
        "scan-hmm-profiles cpu": "scan_cpu.ScanProfilesCpu",
        "scan-msv reference": "scan_reference.ScanMsv",
        "scan-msv cpu": "scan_cpu.ScanMsvCpu",
        "scan-bias-filter reference": "scan_reference.ScanBias",
        "scan-bias-filter cpu": "scan_cpu.ScanBiasCpu",
        "scan-viterbi-filter reference": "scan_reference.ScanViterbi",
        "scan-viterbi-filter cpu": "scan_cpu.ScanViterbiCpu",
        "scan-forward-filter reference": "scan_reference.ScanForward",
        "scan-forward-filter cpu": "scan_cpu.ScanForwardCpu",
        "scan-define-domains reference": "scan_reference.ScanDomains",
        "scan-define-domains cpu": "scan_cpu.ScanDomainsCpu",
        "scan-null2 reference": "scan_reference.ScanNull2",
        "scan-null2 cpu": "scan_cpu.ScanNull2Cpu",
        "scan-domain-statistics reference": "scan_reference.ScanStatistics",
        "scan-domain-statistics cpu": "scan_cpu.ScanStatisticsCpu",
    })


@hookimpl
def seqloom_families() -> list[Deferred]:
    return deferred(__package__, {
        "profile-hmm": "family.ProfileHmmFamily",
        "profile-hmm-scan": "family.ProfileScanFamily",
        "sequence-profile": "family.SequenceProfileFamily",
    })


@hookimpl
def seqloom_pipelines() -> list[Pipeline]:
    return [HMMSEARCH, HMMSCAN, PHMMER]


@hookimpl
def seqloom_readers() -> list[Deferred]:
    return deferred(__package__, {
        "hmmer3": "reader.Hmmer3Reader",
    })


@hookimpl
def seqloom_writers() -> list[Deferred]:
    by_model = ("profile-hmm", "sequence-profile")
    every = ("profile-hmm", "profile-hmm-scan", "sequence-profile")
    return deferred(__package__, {
        "hmmer": "writer_hmmer.HmmerReport",
        "tblout": "writers.TargetTable",
        "domtblout": "writers.DomainTable",
        "pfamtblout": "writer_pfam.PfamTable",
        "stockholm": "writer_stockholm.StockholmAlignment",
    }, beside={**dict.fromkeys(("tblout", "domtblout", "pfamtblout"), every), "stockholm": by_model})
