"""The preset pipelines of protein BLAST."""

from __future__ import annotations

from seqloom.core.pipeline import Pipeline, Slot

SLOTS = (
    Slot("index.words", "neighbourhood-words"),
    Slot("index.targets", "resident-targets", enabled="fast"),  # only devices have it
    # A sound filter: it changes no result, and is worth its time where it is a fast kernel.
    Slot("seed.scan", "segment-diagonals", enabled="fast"),
    Slot("seed.words", "word-hits"),
    Slot("sort.diagonal", "two-hit-diagonals"),
    Slot("extend.ungapped", "two-hit-ungapped"),
    # With gaps, or the segments themselves.
    Slot("extend.segments", "segment-alignments"),
    Slot("extend.gapped", "preliminary-gapped"),
    # One of the two makes the final alignments, as composition-based statistics are asked for or not.
    Slot("extend.adjusted", "adjusted-traceback"),
    Slot("extend.traceback", "final-traceback"),
    Slot("score.evalue", "finite-size-evalue"),
    # Where alignments go for the sake of others, these must all be there before final ones are made.
    Slot("extend.winnowed", "winnowed-alignments", scope="reduce"),
    Slot("sort.rank", "rank-targets", scope="reduce"),
)

DEVICES_FROM = 100_000_000_000
"""Cells of a search: 500 residues in 200 million. Smaller ones are done before a device has started."""

PIPELINES = [
    Pipeline(
        "blastp",
        "protein BLAST, as blastp",
        "protein-blast",
        SLOTS,
        devices_from=DEVICES_FROM,
    ),
    Pipeline(
        "blastp-short",
        "protein BLAST for queries under 30 residues, as blastp -task blastp-short",
        "protein-blast",
        SLOTS,
        defaults={"matrix": "PAM30", "word_size": 2},
        devices_from=DEVICES_FROM,
    ),
    Pipeline(
        "blastp-fast",
        "protein BLAST with words of six residues, as blastp -task blastp-fast",
        "protein-blast",
        SLOTS,
        defaults={"word_size": 6, "threshold": 21.0},
        devices_from=DEVICES_FROM,
    ),
]
