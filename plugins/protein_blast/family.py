"""The protein BLAST family."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from seqloom.core.context import SearchSpace
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
