"""The protein BLAST family and its preset pipelines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from seqloom.core.context import SearchSpace
from seqloom.core.pipeline import Pipeline, Slot
from seqloom.core.sequences import ModelBatch, SequenceBatch
from seqloom.core.stages import Family, Masking
from seqloom.plugins.protein_blast.options import BlastpOptions
from seqloom.plugins.protein_blast.scoring import ProteinBlastScoring, protein_scoring


class ProteinBlast(Family):
    """Protein queries against protein databases, as blastp."""

    name = "protein-blast"
    Options = BlastpOptions
    query = "protein"
    target = "protein"
    Scoring = ProteinBlastScoring

    def masking(self, options: Any) -> Sequence[Masking]:
        """SEG and lower case, hard (masked letters score as X) unless `soft_masking`."""
        requests = []
        seg = options.seg_parameters()
        if seg is not None:
            requests.append(Masking("seg", seg, options.soft_masking))
        if options.lcase_masking:
            requests.append(Masking("lower-case", {}, options.soft_masking))
        return requests

    def scoring(
        self, queries: SequenceBatch | ModelBatch, space: SearchSpace, options: Any
    ) -> ProteinBlastScoring:
        assert isinstance(queries, SequenceBatch)
        return protein_scoring(queries, space, options)


SLOTS = (
    Slot("index.words", "neighbourhood-words"),
    # Two sound filters: they change no result, and are worth their time where they are fast kernels.
    Slot("index.lanes", "lane-interleaved", enabled="fast"),
    Slot("seed.scan", "ungapped-scan", enabled="fast"),
    Slot("seed.diagonals", "segment-diagonals", enabled="fast"),
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
        defaults={"matrix": "PAM30", "gapopen": 9, "gapextend": 1, "word_size": 2},
    ),
]
