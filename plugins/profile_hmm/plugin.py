"""Registration of the profile HMM family."""

from seqloom.core.deferred import Deferred, deferred
from seqloom.core.hookspecs import hookimpl
from seqloom.core.pipeline import Pipeline

from .pipelines import HMMSCAN, HMMSCAN_NUCLEOTIDE, HMMSEARCH, HMMSEARCH_NUCLEOTIDE, PHMMER

SEQLOOM_API = 1


_STAGES = {
    "hmm-profiles": "index.HmmProfiles",
    "sequence-profiles": "query_index.SequenceProfiles",
    "msv": "seed_msv.MsvFilter",
    "ssv": "seed_msv.SsvFilter",
    "bias-filter": "extend_bias.BiasFilter",
    "viterbi-filter": "extend_viterbi.ViterbiFilter",
    "forward-filter": "extend_forward.ForwardFilter",
    "define-domains": "extend_domains.DefineDomains",
    "null2": "score_null2.Null2Score",
    "scan-hmm-profiles": "scan.ScanProfiles",
    "scan-msv": "scan.ScanMsv",
    "scan-ssv": "scan.ScanSsv",
    "scan-bias-filter": "scan.ScanBias",
    "scan-viterbi-filter": "scan.ScanViterbi",
    "scan-forward-filter": "scan.ScanForward",
    "scan-define-domains": "scan.ScanDomains",
    "scan-null2": "scan.ScanNull2",
    "scan-domain-statistics": "scan.ScanStatistics",
}
"""Stages by name, of which ``module_reference`` has the one back end and ``module_cpu`` the other."""


def _on_both(classes: dict[str, str]) -> dict[str, str]:
    """Classes by name and back end."""
    found = {}
    for name, place in classes.items():
        module, attribute = place.split(".")
        found[f"{name} reference"] = f"{module}_reference.{attribute}"
        found[f"{name} cpu"] = f"{module}_cpu.{attribute}Cpu"
    return found


@hookimpl
def seqloom_stages() -> list[Deferred]:
    return deferred(__package__, {
        **_on_both(_STAGES),
        "msv cuda": "seed_msv_cuda.MsvFilterCuda",
        "ssv cuda": "seed_msv_cuda.SsvFilterCuda",
        "msv-warps cuda": "seed_msv_warps_cuda.MsvWarps",
        "ssv-warps cuda": "seed_msv_warps_cuda.SsvWarps",
        "bias-filter cuda": "extend_bias_cuda.BiasFilterCuda",
        "viterbi-filter cuda": "extend_viterbi_cuda.ViterbiFilterCuda",
        "forward-filter cuda": "extend_forward_cuda.ForwardFilterCuda",
        "domain-statistics reference": "score_domains_reference.DomainStatistics",
        "domain-statistics cpu": "reduce_cpu.DomainStatisticsCpu",
        "rank-hmm-targets reference": "sort_rank_reference.RankTargets",
        "rank-hmm-targets cpu": "reduce_cpu.RankTargetsCpu",
    })


@hookimpl
def seqloom_families() -> list[Deferred]:
    return deferred(__package__, {
        "profile-hmm": "family.ProfileHmmFamily",
        "profile-hmm-nucleotide": "family.NucleotideProfileFamily",
        "profile-hmm-scan": "family.ProfileScanFamily",
        "profile-hmm-scan-nucleotide": "family.NucleotideScanFamily",
        "sequence-profile": "family.SequenceProfileFamily",
    })


@hookimpl
def seqloom_pipelines() -> list[Pipeline]:
    return [HMMSEARCH, HMMSEARCH_NUCLEOTIDE, HMMSCAN, HMMSCAN_NUCLEOTIDE, PHMMER]


@hookimpl
def seqloom_readers() -> list[Deferred]:
    return deferred(__package__, {
        "hmmer3": "reader.Hmmer3Reader",
    })


@hookimpl
def seqloom_writers() -> list[Deferred]:
    by_model = ("profile-hmm", "profile-hmm-nucleotide", "sequence-profile")
    every = (*by_model[:2], "profile-hmm-scan", "profile-hmm-scan-nucleotide", "sequence-profile")
    return deferred(__package__, {
        "hmmer": "writer_hmmer.HmmerReport",
        "tblout": "writers.TargetTable",
        "domtblout": "writers.DomainTable",
        "pfamtblout": "writer_pfam.PfamTable",
        "stockholm": "writer_stockholm.StockholmAlignment",
    }, beside={**dict.fromkeys(("tblout", "domtblout", "pfamtblout"), every), "stockholm": by_model})
