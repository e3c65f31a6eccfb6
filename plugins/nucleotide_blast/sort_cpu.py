"""``strand-diagonal`` on the CPU: all columns in one number where they fit."""

from __future__ import annotations

import numpy as np
from seqloom.core.context import Context
from seqloom.core.keys import byte_keys
from seqloom.core.records import Records, Seeds
from seqloom.plugins.nucleotide_blast.sort_reference import StrandDiagonal, strand_diagonal

_BITS = 63


class StrandDiagonalCpu(StrandDiagonal):
    __doc__ = StrandDiagonal.__doc__
    backend = "cpu"

    def run(self, context: Context, records: Records) -> Seeds:
        assert isinstance(records, Seeds)
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
