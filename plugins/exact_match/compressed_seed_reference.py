"""Queries that occur whole, and maximal exact matches, from a compressed suffix array."""

import math
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from seqloom.core.classes import dataclass
from seqloom.core.context import Context
from seqloom.core.index import Index
from seqloom.core.records import Records, Seeds
from seqloom.core.stages import Footprint, SeedStage, Shape, option

from .compressed_array import KIND, psi_tables, read_back
from .fm_seed_reference import text_starts
from .seed_reference import Strand, in_order, matches, seeds_of, strand_of, strands_together
from .suffix_array import occurrence_counts, transform
from .whole_seed_reference import WholeQueries

_BUCKET = 32


@dataclass(frozen=True)
class CompressedQueryOptions:
    """What may be asked."""

    longest: int = option(100_000, "residues that a query has at most", minimum=1)


class CompressedQueries(WholeQueries):
    """Every place where a query occurs as a whole, looked up in a compressed suffix array; see ``whole-queries``.

    Source: A. Drozd's thesis on string sorting and BWT alignment, 3.4.2. Here text and suffix array are read back from
    the index, and compared.
    """

    name: ClassVar[str] = "compressed-queries"
    Options: ClassVar[type] = CompressedQueryOptions
    reads: ClassVar[tuple[str, ...]] = (KIND,)

    def read_back(self, context: Context) -> tuple[np.ndarray, np.ndarray]:
        return read_back(context.index(KIND))


class CompressedMatches(SeedStage):
    """All maximal exact matches of at least ``length`` residues, looked up in a compressed suffix array.

    Seeds come by query, strand (plus first), start on the strand searched, and place in the volume.

    Source: A. Drozd's thesis on string sorting and BWT alignment, 3.4.2 and 3.4.3. Here text and suffix array are read
    back from the index, and every stretch of the query is looked up.
    """

    name: ClassVar[str] = "compressed-matches"
    cells_per_second: ClassVar[float | None] = math.inf
    takes: ClassVar[tuple[type[Records] | None, ...]] = (None,)
    gives: ClassVar[type[Records]] = Seeds
    reads: ClassVar[tuple[str, ...]] = (KIND,)
    uses: ClassVar[tuple[str, ...]] = ("length", "mode", "frames", "acgt_only")
    gives_order: ClassVar[tuple[str, ...] | None] = ("query",)
    strand_of = staticmethod(strand_of)

    def footprint(self, shape: Shape) -> Footprint:
        return Footprint(host=400 * shape.query_residues + 60 * (shape.target_residues + shape.targets) + (80 << 20))

    def run(self, context: Context, records: Records | None) -> Seeds:
        starts, parts = text_starts(context), []
        strands = [self.strand_of(context.queries, frame, context.options.acgt_only)
                   for frame in context.options.frames()]
        for strand, rows in zip(strands, self.matches(context, strands), strict=True):
            parts.append(seeds_of(context, starts, strand, *in_order(rows).T))
        return strands_together(parts)

    def matches(self, context: Context, strands: Sequence[Strand]) -> list[np.ndarray]:
        """i8[n, 3] for each strand: place in the strand, place in the text and length of every match, in any order."""
        text, suffixes = read_back(context.index(KIND))
        bwt, smaller = transform(text, suffixes), psi_tables(context.index(KIND)).smaller
        counts = occurrence_counts(bwt, len(smaller) - 1, _BUCKET)
        whole = Index("suffix-array", "target", {"text": text, "suffixes": suffixes, "bwt": bwt, "counts": counts,
                                                 "smaller": smaller}, {"bucket": _BUCKET})
        nothing = np.empty((0, 3), np.int64)
        return [np.concatenate([nothing, *(np.stack(part, axis=1) for part in matches(context, whole, strand))])
                for strand in strands]
