"""Registers exact Smith–Waterman: stages, families, and the pipelines ``sw`` and ``sw-nucleotide``."""

from seqloom.core.hookspecs import hookimpl
from seqloom.core.pipeline import Pipeline, Slot
from seqloom.core.stages import Family, Stage
from seqloom.plugins.smith_waterman.extend_reference import SmithWatermanTraceback
from seqloom.plugins.smith_waterman.score_reference import SmithWatermanStatistics
from seqloom.plugins.smith_waterman.scoring import SmithWaterman, SmithWatermanNucleotide
from seqloom.plugins.smith_waterman.seed_reference import SmithWatermanScores
from seqloom.plugins.smith_waterman.sort_reference import SmithWatermanRank

SEQLOOM_API = 1

_SLOTS = (
    Slot("seed.scores", "sw-scores"),
    Slot("score.evalue", "sw-statistics"),
    Slot("extend.traceback", "sw-traceback"),
    Slot("sort.rank", "sw-rank", scope="reduce"),
)


@hookimpl
def seqloom_stages() -> list[type[Stage]]:
    return [SmithWatermanScores, SmithWatermanStatistics, SmithWatermanTraceback, SmithWatermanRank]


@hookimpl
def seqloom_families() -> list[type[Family]]:
    return [SmithWaterman, SmithWatermanNucleotide]


@hookimpl
def seqloom_pipelines() -> list[Pipeline]:
    return [
        Pipeline("sw", "exact Smith–Waterman search of protein databases", "smith-waterman", _SLOTS),
        Pipeline("sw-nucleotide", "exact Smith–Waterman search of nucleotide databases", "smith-waterman-nucleotide",
                 _SLOTS),
    ]
