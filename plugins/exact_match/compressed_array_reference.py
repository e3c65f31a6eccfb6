"""The compressed suffix array of the references: an index that holds Psi in place of the transform."""

from typing import Any, ClassVar

import numpy as np
from seqloom.core.alphabet import Alphabet
from seqloom.core.classes import dataclass
from seqloom.core.context import Context
from seqloom.core.errors import OptionError
from seqloom.core.index import Index, Side
from seqloom.core.sequences import ModelBatch, SequenceBatch
from seqloom.core.stages import Footprint, IndexStage, Shape, option

from .compressed_array import KIND, compressed
from .suffix_array import suffix_array
from .symbols import target_text


@dataclass(frozen=True)
class CompressedArrayOptions:
    """Memory against time."""

    block: int = option(32, "rows between two that are kept whole, a power of two: more take less memory and more time",
                        minimum=2, maximum=1 << 16)
    sample: int = option(8, "of so many suffixes one is kept (1: all): more take less memory and more time", minimum=1)

    def check(self) -> None:
        if self.block & (self.block - 1):
            raise OptionError(f"block of the compressed suffix array must be a power of two, not {self.block}")


class CompressedArray(IndexStage):
    """Compressed suffix array of all targets of a volume: Psi in differences, sampled suffixes.

    The text is every residue of the targets with separators between; case, masks and options of a search play no part,
    so one stored index serves them all. Arrays: see ``compressed_array.PsiTables``.
    """

    name: ClassVar[str] = "compressed-suffix-array"
    Options: ClassVar[type] = CompressedArrayOptions
    side: ClassVar[Side] = "target"
    provides: ClassVar[str] = KIND
    depends: ClassVar[tuple[str, ...] | None] = ()

    def footprint(self, shape: Shape) -> Footprint:
        return Footprint(host=160 * (shape.target_residues + shape.targets + 1))

    def run(self, context: Context, batch: "SequenceBatch | ModelBatch") -> Index:
        assert isinstance(batch, SequenceBatch)
        text, _ = target_text(batch, acgt_only=False)
        return Index(KIND, "target", self.arrays(context, text, batch.alphabet), self._parameters(batch))

    def wrong(self, context: Context, batch: "SequenceBatch | ModelBatch", index: Index) -> str:
        from seqloom.plugins.exact_match.stored_psi_cpu import wrong_compressed_array

        assert isinstance(batch, SequenceBatch)
        return wrong_compressed_array(batch, index, self._parameters(batch))

    def _parameters(self, batch: SequenceBatch) -> dict[str, Any]:
        return {"alphabet": batch.alphabet.name, "block": self.options.block, "sample": self.options.sample}

    def arrays(self, context: Context, text: np.ndarray, residues: Alphabet) -> dict[str, np.ndarray]:
        """The arrays of the index of a text."""
        return compressed(text, suffix_array(text), residues, self.options.block, self.options.sample)
