"""SEG as a masker, with its options: by kernels, or by the rules of ``seg`` where there is little to look through."""


import numpy as np
from seqloom.core.classes import dataclass
from seqloom.core.errors import OptionError
from seqloom.core.options import option
from seqloom.core.sequences import Intervals, SequenceBatch
from seqloom.core.stages import Masker

from .seg import low_complexity

_FEW = 1 << 15
"""Residues below which kernels take longer to load than all the rest."""


@dataclass(frozen=True)
class SegOptions:
    """Options of SEG."""

    window: int = option(12, "residues of a window", minimum=1)
    locut: float = option(2.2, "entropy in bits at which a window triggers", minimum=0.0)
    hicut: float = option(2.5, "entropy in bits up to which a stretch is extended", minimum=0.0)

    def check(self) -> None:
        """The trigger must not be above the extension's limit; raises `OptionError`."""
        if self.locut > self.hicut:
            raise OptionError(f"SEG's locut ({self.locut}) must not exceed its hicut ({self.hicut})")


class Seg(Masker):
    """Low-complexity stretches of proteins by SEG."""

    name = "seg"
    alphabets = ("protein",)
    Options = SegOptions

    def described(self) -> tuple[int, str, str]:
        chosen = self.options
        return 1, "seg", f"window={chosen.window}; locut={chosen.locut:g}; hicut={chosen.hicut:g}"

    def intervals(self, batch: SequenceBatch) -> Intervals:
        chosen = self.options
        if batch.total_residues >= _FEW:
            from .seg_cpu import find_low_complexity  # which loads kernels

            rows = find_low_complexity(batch.residues, batch.offsets, chosen.window, chosen.locut, chosen.hicut)
            return Intervals(*np.ascontiguousarray(rows[np.lexsort(rows.T[::-1])].T.astype(np.int32)))
        found = []
        for place in range(len(batch)):
            stretches = low_complexity(batch[place], chosen.window, chosen.locut, chosen.hicut)
            found += [(place, begin, end) for begin, end in stretches]
        return Intervals.of(found)
