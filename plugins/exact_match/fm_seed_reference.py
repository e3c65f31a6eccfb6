"""Maximal exact matches from an FM-index."""

import math
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from seqloom.core.classes import dataclass
from seqloom.core.context import Context
from seqloom.core.index import Index
from seqloom.core.records import Records, Seeds
from seqloom.core.stages import Footprint, SeedStage, Shape, option

from .fm_index import KIND, SMALLER, unpacked
from .minimizer_seed_reference import hopeless
from .seed_reference import Strand, in_order, matches, seeds_of, strand_of, strands_together
from .suffix_array import occurrence_counts

_BUCKET = 32
PLACES = ("device", "host")
"""Where places of rows that a device found are looked up."""


@dataclass(frozen=True)
class FmMatchOptions:
    """What may be asked."""

    costs: str = option("kept", "of a device, by which work that exceeds its memory is cut: kept (measured once), "
                        "anew, or nanoseconds to look up and to copy a byte, as 0.03,0.02")
    places: str = option("device", "where rows that a device found become matches: device, or host, which leaves the "
                         "device's memory to the transform alone: for texts of more than twice the size",
                         choices=PLACES)

    def check(self) -> None:
        if self.costs not in ("kept", "anew"):
            from .partition import given

            given(self.costs)


class FmMatches(SeedStage):
    """The maximal exact matches that can count in the mode asked for; with ``maxmatch``, all of them.

    In the other modes a match is left out if another one of the volume covers its query interval and is longer, and of
    matches with the same query interval the first two in order of their suffixes stay. That loses nothing: what is left
    out occurs twice, and what it covers is covered by what stays. Two are enough to show that neither is unique.

    Seeds come by query, strand (plus first), start on the strand searched, and place in the volume.

    Source: A. Drozd's thesis on string sorting and BWT alignment, 3.4.3 and figure 3.7. Here text and suffix array are
    read back from the index, and every stretch of the query is looked up.
    """

    name: ClassVar[str] = "fm-matches"
    cells_per_second: ClassVar[float | None] = math.inf
    Options: ClassVar[type] = FmMatchOptions
    takes: ClassVar[tuple[type[Records] | None, ...]] = (None,)
    gives: ClassVar[type[Records]] = Seeds
    reads: ClassVar[tuple[str, ...]] = (KIND,)
    uses: ClassVar[tuple[str, ...]] = ("length", "mode", "frames", "acgt_only")
    gives_order: ClassVar[tuple[str, ...] | None] = ("query",)
    strand_of = staticmethod(strand_of)

    def footprint(self, shape: Shape) -> Footprint:
        return Footprint(host=400 * shape.query_residues + 30 * (shape.target_residues + shape.targets) + (80 << 20))

    def run(self, context: Context, records: Records | None) -> Seeds:
        starts = text_starts(context)
        strands = [self.strand_of(context.queries, frame, context.options.acgt_only)
                   for frame in context.options.frames()]
        parts = []
        for strand, rows in zip(strands, self.matches(context, strands), strict=True):
            parts.append(seeds_of(context, starts, strand, *in_order(rows).T))
        return strands_together(parts)

    def matches(self, context: Context, strands: Sequence[Strand]) -> list[np.ndarray]:
        """i8[n, 3] for each strand: place in the strand, place in the text and length of every match, in any order."""
        index = context.index(KIND)
        text, suffixes, bwt = unpacked(index)
        smaller = index["symbols"][:, SMALLER]
        counts = occurrence_counts(bwt, len(smaller) - 1, _BUCKET)
        whole = Index("suffix-array", "target", {"text": text, "suffixes": suffixes, "bwt": bwt, "counts": counts,
                                                 "smaller": smaller}, {"bucket": _BUCKET})
        rank = np.empty(len(suffixes), np.int64)
        rank[suffixes] = np.arange(len(suffixes))
        found = []
        for strand in strands:
            parts = [np.stack(part, axis=1) for part in matches(context, whole, strand)]
            rows = np.concatenate([np.empty((0, 3), np.int64), *parts])
            if context.options.mode() != "maxmatch":
                rows = rows[~hopeless(np.stack([rows[:, 0], rank[rows[:, 1]], rows[:, 2]], axis=1))]
            found.append(rows)
        return found


def text_starts(context: Context) -> np.ndarray:
    """i8[k]: place in the text where each target of the volume starts."""
    return context.targets.offsets[:-1] + np.arange(len(context.targets), dtype=np.int64)
