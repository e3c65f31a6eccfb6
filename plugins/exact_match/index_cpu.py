"""``suffix-array`` on the CPU: see ``suffix_array_cpu``; transform and counts in one pass."""

import numpy as np
from seqloom.core.context import Context
from seqloom.core.index import Index
from seqloom.core.kernels.jit import kernel
from seqloom.core.sequences import ModelBatch, SequenceBatch
from seqloom.core.stages import Footprint, Shape

from .index_reference import SuffixArray
from .suffix_array import sorting_bytes, suffix_type
from .suffix_array_cpu import suffix_array
from .symbols import end, target_text


@kernel
def _transform(text, suffixes, bucket, bwt, counts, sums):
    """Fill the transform, and the counts of each symbol before each bucket; ``sums`` end as those of the whole text."""
    for row in range(len(suffixes)):
        if row % bucket == 0:
            counts[row // bucket] = sums
        suffix = suffixes[row]
        symbol = text[suffix - 1 if suffix else len(text) - 1]
        bwt[row] = symbol
        sums[symbol] += 1
    if len(suffixes) % bucket == 0:
        counts[len(suffixes) // bucket] = sums


class SuffixArrayCpu(SuffixArray):
    __doc__ = SuffixArray.__doc__
    backend = "cpu"

    def footprint(self, shape: Shape) -> Footprint:
        text = shape.target_residues + shape.targets + 1
        counts = 32 * 8 * (text // self.options.bucket + 1)
        return Footprint(host=sorting_bytes(text) + counts, stays=(2 + suffix_type(text).itemsize) * text + counts)

    def run(self, context: Context, batch: SequenceBatch | ModelBatch) -> Index:
        assert isinstance(batch, SequenceBatch)
        acgt_only = bool(getattr(context.options, "acgt_only", False))
        text, starts = target_text(batch, acgt_only)
        suffixes = suffix_array(text, context.threads)
        context.cancellation.check()
        symbols = end(batch.alphabet) + 1
        bwt, sums = np.empty(len(text), np.uint8), np.zeros(symbols, np.int64)
        counts = np.empty((len(text) // self.options.bucket + 1, symbols), np.int64)
        _transform(text, suffixes, self.options.bucket, bwt, counts, sums)
        return Index("suffix-array", "target",
                     {"text": text, "starts": starts, "suffixes": suffixes, "bwt": bwt,
                      "smaller": np.concatenate([[0], np.cumsum(sums)]), "counts": counts},
                     self._parameters(context, batch))
