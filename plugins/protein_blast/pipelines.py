"""The preset pipelines of protein BLAST."""

from __future__ import annotations

from seqloom.core.pipeline import Pipeline, Slot

SLOTS = (
    Slot("index.words", "neighbourhood-words"),
    # A sound filter: it changes no result, and is worth its time where it is a fast kernel.
    Slot("index.lanes", "lane-queues", enabled="fast"),
    Slot("seed.scan", "segment-diagonals", enabled="fast"),
    Slot("seed.words", "word-hits"),
    Slot("sort.diagonal", "two-hit-diagonals"),
    Slot("extend.ungapped", "two-hit-ungapped"),
    Slot("extend.gapped", "preliminary-gapped"),
    Slot("extend.traceback", "final-traceback"),
    Slot("score.evalue", "finite-size-evalue"),
    Slot("sort.rank", "rank-targets", scope="reduce"),
)

PIPELINES = [
    Pipeline(
        "blastp",
        "protein BLAST without composition-based statistics, as blastp -comp_based_stats 0",
        "protein-blast",
        SLOTS,
    ),
    Pipeline(
        "blastp-short",
        "protein BLAST for queries under 30 letters, as blastp -task blastp-short -comp_based_stats 0",
        "protein-blast",
        SLOTS,
        defaults={"matrix": "PAM30", "word_size": 2},
    ),
]
