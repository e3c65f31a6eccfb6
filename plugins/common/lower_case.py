"""Lower case as a mask: stretches that the source of the sequences marked."""

from __future__ import annotations

from seqloom.core.sequences import Intervals, SequenceBatch
from seqloom.core.stages import Masker


class LowerCase(Masker):
    """Stretches that are in lower case in the source."""

    name = "lower-case"

    def intervals(self, batch: SequenceBatch) -> Intervals:
        return batch.lower
