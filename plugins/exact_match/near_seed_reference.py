"""Queries that occur whole in the references but for a few residues, and their alignments."""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from seqloom.core.classes import dataclass
from seqloom.core.context import Context
from seqloom.core.records import MATCH, MISMATCH, Alignments, Ragged, Records
from seqloom.core.stages import Footprint, Shape, option

from .extend_reference import MatchesAsTheyAre
from .fm_seed_reference import text_starts
from .seed_reference import Strand, strand_of
from .symbols import rejected, target_text
from .whole_seed_reference import QueryOptions, WholeQueries


@dataclass(frozen=True)
class NearQueryOptions(QueryOptions):
    """What may be asked."""

    mismatches: int = option(1, "residues of a query that may differ", minimum=0, maximum=3)


class NearQueries(WholeQueries):
    """Every place where at most ``mismatches`` residues of a query differ, on the strands that the options ask for.

    A place lies inside of one target. Residues that aren't to match (``acgt_only``) differ from all. Seeds come by
    query, strand (plus first) and place in the volume; here by comparing every query with every place.
    """

    name: ClassVar[str] = "near-queries"
    Options: ClassVar[type] = NearQueryOptions
    reads_residues: ClassVar[bool] = True

    def footprint(self, shape: Shape) -> Footprint:
        text = shape.target_residues + shape.targets
        return Footprint(host=16 * shape.query_residues + text * (30 + 2 * shape.longest_query))

    def places(self, context: Context, strands: Sequence[Strand]) -> list[tuple[np.ndarray, np.ndarray]]:
        text, found = target_text(context.targets, acgt_only=False)[0], []
        for strand in strands:
            numbers, places = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
            for number, (start, length) in enumerate(zip(strand.starts, context.queries.lengths.tolist(), strict=True)):
                if 0 < length <= len(text):
                    windows = np.lib.stride_tricks.sliding_window_view(text, length)
                    differ = (windows != strand.symbols[start : start + length]).sum(axis=1)
                    inside = (windows <= rejected(context.targets.alphabet)).all(axis=1)
                    places.append(np.flatnonzero(inside & (differ <= self.options.mismatches)))
                    numbers.append(np.full(len(places[-1]), number))
            found.append((np.concatenate(numbers), np.concatenate(places)))
        return found


class NearMatches(MatchesAsTheyAre):
    """Turns every place into an alignment without gaps, with runs of equal residues and of others; statistics stay
    absent, and the score is the number of equal residues."""

    name: ClassVar[str] = "near-matches"
    reads_residues: ClassVar[bool] = True
    uses: ClassVar[tuple[str, ...]] = ("frames", "acgt_only")
    strand_of = staticmethod(strand_of)

    def run(self, context: Context, records: Records) -> Alignments:
        found = super().run(context, records)
        lengths, equal = records.length.astype(np.int64), self._equal(context, records)
        ends = np.cumsum(lengths)
        begins = np.zeros(len(equal), bool)  # of runs
        begins[(ends - lengths)[lengths > 0]] = True
        begins[1:] |= equal[1:] != equal[:-1]
        runs = np.flatnonzero(begins)
        items = np.diff(runs, append=len(equal)) << 4 | np.where(equal[runs], MATCH, MISMATCH)
        offsets = np.concatenate([[0], np.searchsorted(runs, ends)]).astype(np.int64)
        same = np.diff(np.concatenate([[0], np.cumsum(equal)])[np.concatenate([[0], ends])]).astype(np.int32)
        return found.replace(score=same, identities=same, positives=same,
                                  mismatches=(lengths - same).astype(np.int32),
                                  path=Ragged(offsets, items.astype(np.uint32)))

    def _equal(self, context: Context, records: Records) -> np.ndarray:
        """bool[sum of lengths]: whether residues of each place are those of the query's strand, along the target."""
        lengths, starts = records.length.astype(np.int64), text_starts(context)
        text = target_text(context.targets, acgt_only=False)[0]
        query, target = context.queries.locate(records.query), context.targets.locate(records.target)
        equal, first = np.empty(int(lengths.sum()), bool), np.cumsum(lengths) - lengths
        for frame in (1, -1):
            some = np.flatnonzero(records.query_frame == frame)
            if not len(some):
                continue
            strand, size = self.strand_of(context.queries, frame, context.options.acgt_only), lengths[some]
            begin = records.query_pos[some].astype(np.int64)
            if frame < 0:
                begin = context.queries.lengths[query[some]] - begin - size
            inside = np.arange(int(size.sum())) - np.repeat(np.cumsum(size) - size, size)
            ours = strand.symbols[np.repeat(strand.starts[query[some]] + begin, size) + inside]
            theirs = text[np.repeat(starts[target[some]] + records.target_pos[some], size) + inside]
            equal[np.repeat(first[some], size) + inside] = ours == theirs
        return equal

