"""The index of the references: a suffix array with Burrows–Wheeler transform and occurrence counts in buckets."""

from typing import Any, ClassVar

import numpy as np
from seqloom.core.classes import dataclass
from seqloom.core.context import Context
from seqloom.core.index import Index, Side
from seqloom.core.sequences import ModelBatch, SequenceBatch
from seqloom.core.stages import Footprint, IndexStage, Shape, option

from .suffix_array import occurrence_counts, suffix_array, transform
from .symbols import end, target_text


@dataclass(frozen=True)
class SuffixArrayOptions:
    """How the index is laid out."""

    bucket: int = option(32, "symbols of the transform between two stored occurrence counts", minimum=1)


class SuffixArray(IndexStage):
    """Suffix array of all targets of a volume, with what a backward search needs.

    Arrays: ``text`` u8[n], symbols of all targets with separators between; ``starts`` i8[k], place of each target;
    ``suffixes`` i8[n]; ``bwt`` u8[n]; ``smaller`` i8[symbols + 1], how many symbols of the text are smaller; ``counts``
    i8[buckets, symbols], occurrences in the transform before each bucket. Case and masks play no part.

    Source: A. Drozd's thesis on string sorting and BWT alignment, 3.3.2, 3.4.1 and 3.5.
    """

    name: ClassVar[str] = "suffix-array"
    Options: ClassVar[type] = SuffixArrayOptions
    side: ClassVar[Side] = "target"
    provides: ClassVar[str] = "suffix-array"
    depends: ClassVar[tuple[str, ...] | None] = ("acgt_only",)

    def footprint(self, shape: Shape) -> Footprint:
        text = shape.target_residues + shape.targets + 1
        return Footprint(host=80 * text + 32 * 8 * (text // self.options.bucket + 1))

    def run(self, context: Context, batch: "SequenceBatch | ModelBatch") -> Index:
        assert isinstance(batch, SequenceBatch)
        acgt_only = bool(getattr(context.options, "acgt_only", False))
        text, starts = target_text(batch, acgt_only)
        suffixes = suffix_array(text)
        bwt = transform(text, suffixes)
        symbols = end(batch.alphabet) + 1
        smaller = np.concatenate([[0], np.cumsum(np.bincount(text, minlength=symbols))])
        counts = occurrence_counts(bwt, symbols, self.options.bucket)
        return Index("suffix-array", "target",
                     {"text": text, "starts": starts, "suffixes": suffixes, "bwt": bwt, "smaller": smaller,
                      "counts": counts},
                     self._parameters(context, batch))

    def wrong(self, context: Context, batch: "SequenceBatch | ModelBatch", index: Index) -> str:
        from seqloom.plugins.exact_match.stored_cpu import wrong_suffix_array

        assert isinstance(batch, SequenceBatch)
        return wrong_suffix_array(batch, index, self._parameters(context, batch))

    def _parameters(self, context: Context, batch: SequenceBatch) -> dict[str, Any]:
        return {"alphabet": batch.alphabet.name, "acgt_only": bool(getattr(context.options, "acgt_only", False)),
                "bucket": self.options.bucket}
