"""Stretches of targets that are aligned for themselves: whole targets, and overlapping pieces of very long ones.

An alignment takes a bounded number of target residues: its reach. Pieces that overlap by the reach hold every alignment
of the target whole, and the first piece that holds an alignment's end also holds all that the choice among equally good
ones depends on. Lanes then share a chromosome, and no working space grows with its length.
"""


import numpy as np
from seqloom.core.classes import dataclass
from seqloom.core.index import Index
from seqloom.core.kernels.jit import kernel
from seqloom.core.sequences import SequenceBatch
from seqloom.plugins.common.lanes import grouped_stretches, interleaved_stretches
from seqloom.plugins.common.residues_cpu import mark_residues

LEAST_PIECE = 1 << 14
"""Residues that a piece has beside its overlap, at least."""


@kernel
def _mark_residues(residues, begins, ends, seen):
    for n in range(len(begins)):
        mark_residues(residues, begins[n], ends[n], seen)


@dataclass(frozen=True)
class Stretches:
    """Stretches of the targets of a volume.

    Attributes:
        residues: u8, residues of the volume as searched.
        begins, ends: i8[k], in ``residues``.
        owners: i8[k], position in the volume of the target of each, ascending; pieces of one target in their order.
        starts: i8[k], where each begins in its target.
        whole: they are all targets of the volume, none of them cut.
    """

    residues: np.ndarray
    begins: np.ndarray
    ends: np.ndarray
    owners: np.ndarray
    starts: np.ndarray
    whole: bool = False

    @classmethod
    def of(cls, targets: SequenceBatch, places: np.ndarray, reach: int | None, step: int | None = None) -> "Stretches":
        """Those of the targets at ``places`` (i8, ascending), cut where they are long and the reach is bounded.

        step: residues of a piece beside its overlap, if the stage knows what suits it.
        """
        begins, ends, lengths = targets.offsets[:-1], targets.offsets[1:], targets.lengths
        whole = len(places) == len(targets)
        if not whole:
            begins, ends, lengths = begins[places], ends[places], lengths[places]
        owners, starts = places, np.zeros(len(places), np.int64)
        step = 0 if reach is None else step or max(LEAST_PIECE, 4 * reach)
        if reach is not None and (targets.longest if whole else lengths.max(initial=0)) > step + reach:
            whole = False
            counts = np.maximum(1, -(-(lengths - reach) // step))
            owners = np.repeat(places, counts)
            first = np.repeat(np.cumsum(counts) - counts, counts)
            starts = (np.arange(len(owners)) - first) * step
            whole_end = np.repeat(ends, counts)
            begins = np.repeat(begins, counts) + starts
            ends = np.minimum(whole_end, begins + step + reach)
        return cls(targets.searched(), begins, ends, np.asarray(owners, np.int64), starts, whole)

    def __len__(self) -> int:
        return len(self.begins)

    def __getitem__(self, number: int) -> np.ndarray:
        return self.residues[self.begins[number] : self.ends[number]]

    @property
    def lengths(self) -> np.ndarray:
        """i8[k], residues of each."""
        return self.ends - self.begins

    def occurring(self) -> np.ndarray:
        """i8[k]: the residues that occur in them, ascending."""
        seen = np.zeros(256, np.bool_)
        _mark_residues(self.residues, self.begins, self.ends, seen)
        return np.flatnonzero(seen)

    def interleaved(self, numbers: np.ndarray) -> Index:
        """Index of kind "lanes" of the stretches with these numbers; its ``order`` holds numbers."""
        return interleaved_stretches(self.residues, self.begins, self.ends, numbers)

    def grouped(self, numbers: np.ndarray) -> Index:
        """The same without its columns; see ``lanes.laid_out``."""
        return grouped_stretches(self.residues, self.begins, self.ends, numbers)
