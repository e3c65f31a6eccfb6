"""Registers exact matching: stages, families, pipelines, and MUMmer's output format."""

from seqloom.core.deferred import Deferred, deferred
from seqloom.core.hookspecs import hookimpl
from seqloom.core.pipeline import Pipeline, Slot

SEQLOOM_API = 1

_SLOTS = (
    Slot("index.references", "minimizer-index"),
    Slot("seed.matches", "minimizer-matches"),
    Slot("extend.matches", "matches"),
    Slot("sort.unique", "unique-matches", scope="reduce"),
    Slot("sort.rank", "match-rank", scope="reduce"),
)
_WHOLE = (
    Slot("index.references", "fm-index"),
    Slot("seed.queries", "whole-queries"),
    Slot("extend.matches", "matches"),
    Slot("sort.rank", "match-rank", scope="reduce"),
)
_STORED = {"index.references": "fm-index", "seed.matches": "fm-matches"}
_OWN_FROM = 0.25
"""Residues of queries for each of the references from which on minimizers of both are quicker than a stored index."""


@hookimpl
def seqloom_stages() -> list[Deferred]:
    return deferred(__package__, {
        "suffix-array reference": "index_reference.SuffixArray",
        "suffix-array cpu": "index_cpu.SuffixArrayCpu",
        "maximal-matches reference": "seed_reference.MaximalMatches",
        "maximal-matches cpu": "seed_cpu.MaximalMatchesCpu",
        "fm-index reference": "fm_index_reference.FmIndex",
        "fm-index cpu": "fm_index_cpu.FmIndexCpu",
        "fm-matches reference": "fm_seed_reference.FmMatches",
        "fm-matches cpu": "fm_seed_cpu.FmMatchesCpu",
        "fm-matches cuda": "fm_seed_cuda.FmMatchesCuda",
        "compressed-suffix-array reference": "compressed_array_reference.CompressedArray",
        "compressed-suffix-array cpu": "compressed_array_cpu.CompressedArrayCpu",
        "compressed-queries reference": "compressed_seed_reference.CompressedQueries",
        "compressed-queries cpu": "compressed_seed_cpu.CompressedQueriesCpu",
        "compressed-matches reference": "compressed_seed_reference.CompressedMatches",
        "compressed-matches cpu": "compressed_seed_cpu.CompressedMatchesCpu",
        "whole-queries reference": "whole_seed_reference.WholeQueries",
        "whole-queries cpu": "whole_seed_cpu.WholeQueriesCpu",
        "whole-queries cuda": "whole_seed_cuda.WholeQueriesCuda",
        "near-queries reference": "near_seed_reference.NearQueries",
        "near-queries cpu": "near_seed_cpu.NearQueriesCpu",
        "near-queries cuda": "near_seed_cuda.NearQueriesCuda",
        "near-matches reference": "near_seed_reference.NearMatches",
        "near-matches cpu": "near_seed_cpu.NearMatchesCpu",
        "minimizer-index reference": "minimizer_index_reference.MinimizerIndex",
        "minimizer-index cpu": "minimizer_index_cpu.MinimizerIndexCpu",
        "minimizer-matches reference": "minimizer_seed_reference.MinimizerMatches",
        "minimizer-matches cpu": "minimizer_seed_cpu.MinimizerMatchesCpu",
        "matches reference": "extend_reference.MatchesAsTheyAre",
        "matches cpu": "extend_cpu.MatchesAsTheyAreCpu",
        "unique-matches reference": "sort_reference.UniqueMatches",
        "unique-matches cpu": "sort_cpu.UniqueMatchesCpu",
        "match-rank reference": "sort_reference.MatchRank",
        "match-rank cpu": "sort_cpu.MatchRankCpu",
    })


@hookimpl
def seqloom_families() -> list[Deferred]:
    return deferred(__package__, {
        "exact-match": "options.ExactMatch",
        "exact-match-protein": "options.ProteinExactMatch",
        "exact-query": "options.ExactQuery",
        "exact-query-protein": "options.ProteinExactQuery",
    })


@hookimpl
def seqloom_pipelines() -> list[Pipeline]:
    return [
        Pipeline("mum", "maximal exact matches of nucleotide sequences, unique or all", "exact-match", _SLOTS,
                 writer="mummer", stored=_STORED, own_from=_OWN_FROM),
        Pipeline("mum-protein", "maximal exact matches of proteins, unique or all", "exact-match-protein", _SLOTS,
                 writer="mummer", stored=_STORED, own_from=_OWN_FROM),
        Pipeline("exact", "places where short nucleotide sequences occur whole", "exact-query", _WHOLE),
        Pipeline("exact-protein", "places where short proteins occur whole", "exact-query-protein", _WHOLE),
    ]


@hookimpl
def seqloom_writers() -> list[Deferred]:
    return deferred(__package__, {
        "mummer": "mummer_writer.MummerWriter",
    })
