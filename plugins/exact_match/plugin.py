"""Registers exact matching: stages, families, the pipelines ``mum`` and ``mum-protein``, and MUMmer's output format."""

from seqloom.core.hookspecs import hookimpl
from seqloom.core.pipeline import Pipeline, Slot
from seqloom.core.stages import Family, Stage, Writer
from seqloom.plugins.exact_match.extend_reference import MatchesAsTheyAre
from seqloom.plugins.exact_match.index_reference import SuffixArray
from seqloom.plugins.exact_match.mummer_writer import MummerWriter
from seqloom.plugins.exact_match.options import ExactMatch, ProteinExactMatch
from seqloom.plugins.exact_match.seed_reference import MaximalMatches
from seqloom.plugins.exact_match.sort_reference import MatchRank, UniqueMatches

SEQLOOM_API = 1

_SLOTS = (
    Slot("index.references", "suffix-array"),
    Slot("seed.matches", "maximal-matches"),
    Slot("extend.matches", "matches"),
    Slot("sort.unique", "unique-matches", scope="reduce"),
    Slot("sort.rank", "match-rank", scope="reduce"),
)


@hookimpl
def seqloom_stages() -> list[type[Stage]]:
    return [SuffixArray, MaximalMatches, MatchesAsTheyAre, UniqueMatches, MatchRank]


@hookimpl
def seqloom_families() -> list[type[Family]]:
    return [ExactMatch, ProteinExactMatch]


@hookimpl
def seqloom_pipelines() -> list[Pipeline]:
    return [
        Pipeline("mum", "maximal exact matches of nucleotide sequences, unique or all", "exact-match", _SLOTS,
                 writer="mummer"),
        Pipeline("mum-protein", "maximal exact matches of proteins, unique or all", "exact-match-protein", _SLOTS,
                 writer="mummer"),
    ]


@hookimpl
def seqloom_writers() -> list[type[Writer]]:
    return [MummerWriter]
