"""Order of word hits for the ungapped extension: strand by strand, diagonal by diagonal."""

from __future__ import annotations

import numpy as np
from seqloom.core.context import Context
from seqloom.core.keys import byte_keys
from seqloom.core.records import Records, Seeds
from seqloom.core.stages import SortStage
from seqloom.plugins.nucleotide_blast.scoring import NucleotideScoring


def strand_diagonal(seeds: Seeds) -> np.ndarray:
    """i64[n]: target minus query position on the strand that was searched, up to a constant per query.

    Seeds of a reverse strand hold forward coordinates; on them the sum of the positions is what stays equal.
    """
    query = seeds.query_pos.astype(np.int64)
    return seeds.target_pos + np.where(seeds.query_frame < 0, query + seeds.length, -query)


class StrandDiagonal(SortStage):
    """Seeds by query, target, chunk of the target, strand, diagonal of that strand, and place on the diagonal."""

    name = "strand-diagonal"
    scoring = NucleotideScoring
    gives_order = ("query", "target", "chunk", "query_frame", "diagonal", "target_pos")

    def run(self, context: Context, records: Records) -> Seeds:
        assert isinstance(records, Seeds)
        columns = [records.query, records.target, records.chunk, -records.query_frame, strand_diagonal(records)]
        return records.take(self.order(context, byte_keys([*columns, records.target_pos - records.shift])))
