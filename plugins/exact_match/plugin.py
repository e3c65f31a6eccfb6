"""Registers exact matching: stages, families, the pipelines ``mum`` and ``mum-protein``, and MUMmer's output format."""

from seqloom.core.deferred import Deferred, deferred
from seqloom.core.hookspecs import hookimpl
from seqloom.core.pipeline import Pipeline, Slot

SEQLOOM_API = 1

_SLOTS = (
    Slot("index.references", "suffix-array"),
    Slot("seed.matches", "maximal-matches"),
    Slot("extend.matches", "matches"),
    Slot("sort.unique", "unique-matches", scope="reduce"),
    Slot("sort.rank", "match-rank", scope="reduce"),
)


@hookimpl
def seqloom_stages() -> list[Deferred]:
    return deferred(__package__, {
        "suffix-array reference": "index_reference.SuffixArray",
        "maximal-matches reference": "seed_reference.MaximalMatches",
        "matches reference": "extend_reference.MatchesAsTheyAre",
        "unique-matches reference": "sort_reference.UniqueMatches",
        "match-rank reference": "sort_reference.MatchRank",
    })


@hookimpl
def seqloom_families() -> list[Deferred]:
    return deferred(__package__, {
        "exact-match": "options.ExactMatch",
        "exact-match-protein": "options.ProteinExactMatch",
    })


@hookimpl
def seqloom_pipelines() -> list[Pipeline]:
    return [
        Pipeline("mum", "maximal exact matches of nucleotide sequences, unique or all", "exact-match", _SLOTS,
                 writer="mummer"),
        Pipeline("mum-protein", "maximal exact matches of proteins, unique or all", "exact-match-protein", _SLOTS,
                 writer="mummer"),
    ]


@hookimpl
def seqloom_writers() -> list[Deferred]:
    return deferred(__package__, {
        "mummer": "mummer_writer.MummerWriter",
    })
