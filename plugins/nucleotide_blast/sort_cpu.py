"""``strand-diagonal`` on the CPU: all columns in one number where they fit."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from seqloom.core.context import Context
from seqloom.core.keys import byte_keys
from seqloom.core.records import Records, Seeds
from seqloom.plugins.nucleotide_blast.scanned_cpu import ScannedSeeds
from seqloom.plugins.nucleotide_blast.sort_reference import StrandDiagonal, strand_diagonal

_BITS = 63


class SortedSeeds:
    """Makes the columns of seeds in the order of the stage, when somebody asks for one.

    unsorted: what makes them as they were found.
    """

    def __init__(self, unsorted: ScannedSeeds, sort: Callable[[], Seeds]) -> None:
        self.unsorted, self._sort = unsorted, sort

    def __call__(self) -> dict[str, np.ndarray]:
        return self._sort().data


class StrandDiagonalCpu(StrandDiagonal):
    __doc__ = StrandDiagonal.__doc__
    backend = "cpu"
    reads_residues = False

    def run(self, context: Context, records: Records) -> Seeds:
        assert isinstance(records, Seeds)
        if isinstance(make := records.unmade, ScannedSeeds):
            later = SortedSeeds(make, lambda: self._sorted(context, records))
            return Seeds.later(len(records), later, records.extra)
        return self._sorted(context, records)

    def _sorted(self, context: Context, records: Seeds) -> Seeds:
        if not len(records):
            return records
        columns = [records.query, records.target, records.chunk, -records.query_frame, strand_diagonal(records),
                   records.target_pos - records.shift]
        packed, used = np.zeros(len(records), np.int64), 0
        for column in columns[::-1]:
            low = int(column.min())
            bits = (int(column.max()) - low).bit_length()
            if used + bits > _BITS:
                return records.take(self.order(context, byte_keys(columns)))
            packed |= (column.astype(np.int64) - low) << used
            used += bits
        if (packed[1:] >= packed[:-1]).all():
            return records
        return records.take(self.order(context, byte_keys([packed])))
