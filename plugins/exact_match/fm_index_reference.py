"""The FM-index of the references: what backward search needs, in a few bits a residue, independent of any search."""

from typing import Any, ClassVar

import numpy as np
from seqloom.core.alphabet import Alphabet
from seqloom.core.classes import dataclass
from seqloom.core.context import Context
from seqloom.core.errors import OptionError
from seqloom.core.index import Index, Side
from seqloom.core.sequences import ModelBatch, SequenceBatch
from seqloom.core.stages import Footprint, IndexStage, Shape, option

from .fm_index import KIND, packed
from .suffix_array import suffix_array
from .symbols import target_text


@dataclass(frozen=True)
class FmIndexOptions:
    """Memory against time."""

    bucket: int = option(128, "residues between two stored counts, a power of two: more take less memory and more time",
                         minimum=32, maximum=1 << 16)
    sample: int = option(8, "of so many suffixes one is kept (1: all): more take less memory and more time", minimum=1)

    def check(self) -> None:
        if self.bucket & (self.bucket - 1):
            raise OptionError(f"bucket of the FM-index must be a power of two, not {self.bucket}")


class FmIndex(IndexStage):
    """FM-index of all targets of a volume: transform, counts in buckets, sampled suffix array.

    The text is every residue of the targets with separators between; case, masks and options of a search play no part,
    so one stored index serves them all. Arrays: see ``fm_index.Tables``.
    """

    name: ClassVar[str] = "fm-index"
    Options: ClassVar[type] = FmIndexOptions
    side: ClassVar[Side] = "target"
    provides: ClassVar[str] = KIND
    depends: ClassVar[tuple[str, ...] | None] = ()

    def footprint(self, shape: Shape) -> Footprint:
        return Footprint(host=120 * (shape.target_residues + shape.targets + 1))

    def run(self, context: Context, batch: "SequenceBatch | ModelBatch") -> Index:
        assert isinstance(batch, SequenceBatch)
        text, _ = target_text(batch, acgt_only=False)
        options = self.options
        arrays = self.arrays(context, text, batch.alphabet, options.bucket, options.sample)
        return Index(KIND, "target", arrays, self._parameters(batch))

    def wrong(self, context: Context, batch: "SequenceBatch | ModelBatch", index: Index) -> str:
        from seqloom.plugins.exact_match.stored_cpu import wrong_fm_index  # with kernels that who maps one spares

        assert isinstance(batch, SequenceBatch)
        return wrong_fm_index(batch, index, self._parameters(batch))

    def _parameters(self, batch: SequenceBatch) -> dict[str, Any]:
        return {"alphabet": batch.alphabet.name, "bucket": self.options.bucket, "sample": self.options.sample}

    def arrays(self, context: Context, text: np.ndarray, residues: Alphabet, bucket: int,
               sample: int) -> dict[str, np.ndarray]:
        """The arrays of the index of a text."""
        return packed(text, suffix_array(text), residues, bucket, sample)
