"""Registers exact Smith–Waterman: stages, families, and the pipelines ``sw`` and ``sw-nucleotide``."""

from seqloom.core.deferred import Deferred, deferred
from seqloom.core.hookspecs import hookimpl
from seqloom.core.pipeline import Pipeline, Slot

SEQLOOM_API = 1

_SLOTS = (
    Slot("seed.scores", "sw-scores"),
    Slot("score.evalue", "sw-statistics"),
    Slot("extend.traceback", "sw-traceback"),
    Slot("sort.rank", "sw-rank", scope="reduce"),
)
DEVICES_FROM = 50_000_000_000
"""Cells of a search: 500 residues in 100 million. Smaller ones are done before a device has started."""


@hookimpl
def seqloom_stages() -> list[Deferred]:
    return deferred(__package__, {
        "sw-targets cpu": "index_cpu.SmithWatermanTargets",
        "sw-targets cuda": "index_cuda.SmithWatermanTargetsCuda",
        "sw-scores reference": "seed_reference.SmithWatermanScores",
        "sw-scores cpu": "seed_cpu.SmithWatermanScoresCpu",
        "sw-scores cuda": "seed_cuda.SmithWatermanScoresCuda",
        "antidiagonal-scores cuda": "antidiagonal_cuda.AntidiagonalScores",
        "sw-statistics reference": "score_reference.SmithWatermanStatistics",
        "sw-statistics cpu": "score_cpu.SmithWatermanStatisticsCpu",
        "sw-traceback reference": "extend_reference.SmithWatermanTraceback",
        "sw-traceback cpu": "extend_cpu.SmithWatermanTracebackCpu",
        "sw-traceback cuda": "extend_cuda.SmithWatermanTracebackCuda",
        "sw-rank reference": "sort_reference.SmithWatermanRank",
        "sw-rank cpu": "sort_cpu.SmithWatermanRankCpu",
    })


@hookimpl
def seqloom_families() -> list[Deferred]:
    return deferred(__package__, {
        "smith-waterman": "scoring.SmithWaterman",
        "smith-waterman-nucleotide": "scoring.SmithWatermanNucleotide",
    })


@hookimpl
def seqloom_pipelines() -> list[Pipeline]:
    return [
        # Proteins are short: side by side they serve all query batches. Long targets are cut by the query's reach, on
        # the CPU anew for every batch; devices are sent both ahead of their use.
        Pipeline("sw", "exact Smith–Waterman search of protein databases", "smith-waterman",
                 (Slot("index.targets", "sw-targets", enabled="fast"), *_SLOTS), devices_from=DEVICES_FROM),
        Pipeline("sw-nucleotide", "exact Smith–Waterman search of nucleotide databases", "smith-waterman-nucleotide",
                 (Slot("index.targets", "resident-targets", enabled="fast"), *_SLOTS), devices_from=DEVICES_FROM),
    ]
