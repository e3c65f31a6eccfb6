"""The preset pipelines of nucleotide BLAST."""

from __future__ import annotations

from seqloom.core.pipeline import Pipeline, Slot
from seqloom.plugins.nucleotide_blast.scoring import NucleotideBlast


def _slots(aligner: str, separation: int) -> tuple[Slot, ...]:
    """Slots of a pipeline with the "xdrop" or "greedy" aligner."""
    options = {"diagonal_separation": separation}
    return (
        Slot("index.words", "nucleotide-word-table"),
        Slot("index.bases", "nucleotide-bases"),
        Slot("seed.words", "nucleotide-word-hits"),
        Slot("sort.diagonal", "strand-diagonal"),
        Slot("extend.ungapped", "nucleotide-ungapped"),
        Slot("extend.gapped", f"nucleotide-{aligner}", options),
        Slot("extend.traceback", f"nucleotide-{aligner}-traceback", options),
        Slot("score.evalue", "search-space-evalue"),
        Slot("sort.rank", "rank-targets", scope="reduce"),
    )


FAMILY = NucleotideBlast.name
MEGABLAST = {
    "word_size": 28,
    "reward": 1,
    "penalty": -2,
    "gapopen": 0,
    "gapextend": 0,
    "xdrop_ungap": None,
    "xdrop_gap": 25.0,
}
SHORT = {"word_size": 7, "reward": 1, "penalty": -3, "dust": "no"}

PIPELINES = [
    Pipeline("blastn", "nucleotide BLAST with words of 11, as blastn -task blastn", FAMILY, _slots("xdrop", 50)),
    Pipeline(
        "blastn-short",
        "nucleotide BLAST for queries under 30 letters, as blastn -task blastn-short",
        FAMILY,
        _slots("xdrop", 50),
        SHORT,
    ),
    Pipeline(
        "megablast",
        "nucleotide BLAST for very similar sequences, greedy, as blastn -task megablast",
        FAMILY,
        _slots("greedy", 6),
        MEGABLAST,
    ),
]
