"""The preset pipelines of nucleotide BLAST."""

from __future__ import annotations

from seqloom.core.pipeline import Pipeline, Slot


def _slots(words: str, separation: int) -> tuple[Slot, ...]:
    """Slots of a pipeline with "nucleotide" or "discontiguous" words."""
    options = {"diagonal_separation": separation}
    # Spaced words of targets are in no table.
    of_targets = (Slot("index.target-words", "target-word-table", enabled="stored"),) if words == "nucleotide" else ()
    return (
        Slot("index.words", f"{words}-word-table"),
        Slot("index.bases", "nucleotide-bases"),
        *of_targets,
        Slot("seed.words", f"{words}-word-hits"),
        Slot("sort.diagonal", "strand-diagonal"),
        Slot("extend.ungapped", "nucleotide-ungapped"),
        # The segments themselves, or one of the two ways to extend with gaps.
        Slot("extend.segments", "nucleotide-segments"),
        Slot("extend.greedy", "nucleotide-greedy", options),
        Slot("extend.gapped", "nucleotide-xdrop", options),
        Slot("extend.greedy-traceback", "nucleotide-greedy-traceback", options),
        Slot("extend.traceback", "nucleotide-xdrop-traceback", options),
        Slot("score.evalue", "search-space-evalue"),
        # Where alignments go for the sake of others, these must all be there before final ones are made.
        Slot("extend.greedy-winnowed", "winnowed-nucleotide-greedy", options, scope="reduce"),
        Slot("extend.winnowed", "winnowed-nucleotide-xdrop", options, scope="reduce"),
        Slot("sort.rank", "rank-targets", scope="reduce"),
    )


SHORT = {"word_size": 7, "reward": 1, "penalty": -3}
MEGABLAST = {
    "word_size": 28,
    "reward": 1,
    "penalty": -2,
    "gapopen": 0,
    "gapextend": 0,
    "greedy": True,
    "xdrop_ungap": None,
    "xdrop_gap": 25.0,
}

DEVICES_FROM = 10_000_000_000_000
"""Cells of a search: 10,000 bases in a billion."""

PIPELINES = [
    Pipeline(
        "blastn",
        "nucleotide BLAST, as blastn: megablast, or words of 11 with --task blastn",
        "nucleotide-blast",
        _slots("nucleotide", 50),
        task="megablast",
        devices_from=DEVICES_FROM,
    ),
    Pipeline(
        "blastn-short",
        "nucleotide BLAST for queries under 30 bases, as blastn -task blastn-short",
        "nucleotide-blast",
        _slots("nucleotide", 50),
        SHORT,
        devices_from=DEVICES_FROM,
    ),
    Pipeline(
        "megablast",
        "nucleotide BLAST for very similar sequences, greedy, as blastn -task megablast",
        "nucleotide-blast",
        _slots("nucleotide", 6),
        MEGABLAST,
        devices_from=DEVICES_FROM,
    ),
    Pipeline(
        "dc-megablast",
        "nucleotide BLAST with discontiguous words, two on a diagonal, as blastn -task dc-megablast",
        "discontiguous-blast",
        _slots("discontiguous", 6),
        devices_from=DEVICES_FROM,
    ),
]
