"""The preset pipelines of nucleotide BLAST."""

from __future__ import annotations

from seqloom.core.pipeline import Pipeline, Slot


def _slots(words: str, aligner: str, separation: int, window: int = 0) -> tuple[Slot, ...]:
    """Slots of a pipeline with "nucleotide" or "discontiguous" words and the "xdrop" or "greedy" aligner."""
    options = {"diagonal_separation": separation}
    return (
        Slot("index.words", f"{words}-word-table"),
        Slot("index.bases", "nucleotide-bases"),
        Slot("seed.words", f"{words}-word-hits"),
        Slot("sort.diagonal", "strand-diagonal"),
        Slot("extend.ungapped", "nucleotide-ungapped", {"window": window} if window else {}),
        Slot("extend.gapped", f"nucleotide-{aligner}", options),
        Slot("extend.traceback", f"nucleotide-{aligner}-traceback", options),
        Slot("score.evalue", "search-space-evalue"),
        # Where alignments go for the sake of others, these must all be there before final ones are made.
        Slot("extend.winnowed", f"winnowed-nucleotide-{aligner}", options, scope="reduce"),
        Slot("sort.rank", "rank-targets", scope="reduce"),
    )


WINDOW = 40
"""Bases within which a second hit on a diagonal must lie, for discontiguous words."""
SHORT = {"word_size": 7, "reward": 1, "penalty": -3}
MEGABLAST = {
    "word_size": 28,
    "reward": 1,
    "penalty": -2,
    "gapopen": 0,
    "gapextend": 0,
    "xdrop_ungap": None,
    "xdrop_gap": 25.0,
}

PIPELINES = [
    Pipeline(
        "blastn",
        "nucleotide BLAST, as blastn: megablast, or words of 11 with --task blastn",
        "nucleotide-blast",
        _slots("nucleotide", "xdrop", 50),
        task="megablast",
    ),
    Pipeline(
        "blastn-short",
        "nucleotide BLAST for queries under 30 bases, as blastn -task blastn-short",
        "nucleotide-blast",
        _slots("nucleotide", "xdrop", 50),
        SHORT,
    ),
    Pipeline(
        "megablast",
        "nucleotide BLAST for very similar sequences, greedy, as blastn -task megablast",
        "nucleotide-blast",
        _slots("nucleotide", "greedy", 6),
        MEGABLAST,
    ),
    Pipeline(
        "dc-megablast",
        "nucleotide BLAST with discontiguous words, two on a diagonal, as blastn -task dc-megablast",
        "discontiguous-blast",
        _slots("discontiguous", "xdrop", 6, WINDOW),
    ),
]
