"""Queries that occur whole in the references."""

import math
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from seqloom.core.classes import dataclass
from seqloom.core.context import Context
from seqloom.core.engine.threads import run_tasks
from seqloom.core.errors import InputError
from seqloom.core.records import Records, Seeds
from seqloom.core.stages import Footprint, SeedStage, Shape, option

from .fm_index import KIND, unpacked
from .fm_seed_reference import PLACES, text_starts
from .seed_reference import Strand, in_order, seeds_of, strand_of, strands_together


@dataclass(frozen=True)
class QueryOptions:
    """What may be asked of all that looks up queries as a whole."""

    longest: int = option(100_000, "residues that a query has at most", minimum=1)
    costs: str = option("kept", "of a device, by which work that exceeds its memory is cut: kept (measured once), "
                        "anew, or nanoseconds to look up and to copy a byte, as 0.03,0.02")

    def check(self) -> None:
        if self.costs not in ("kept", "anew"):
            from .partition import given

            given(self.costs)


@dataclass(frozen=True)
class WholeQueryOptions(QueryOptions):
    """What may be asked."""

    places: str = option("device", "where a device's rows become places: device, or host, which leaves the device's "
                         "memory to the transform alone: for texts of more than twice the size", choices=PLACES)


class WholeQueries(SeedStage):
    """Every place where a query occurs as a whole, residue by residue, on the strands that the options ask for.

    Seeds come by query, strand (plus first) and place in the volume. Queries without residues occur nowhere.

    Source: A. Drozd's thesis on string sorting and BWT alignment, 3.4.3 and figure 3.7: rows by backward search, places
    from the suffix array. Here text and suffix array are read back from the index, and compared.
    """

    name: ClassVar[str] = "whole-queries"
    cells_per_second: ClassVar[float | None] = math.inf
    Options: ClassVar[type] = WholeQueryOptions
    takes: ClassVar[tuple[type[Records] | None, ...]] = (None,)
    gives: ClassVar[type[Records]] = Seeds
    reads: ClassVar[tuple[str, ...]] = (KIND,)
    uses: ClassVar[tuple[str, ...]] = ("frames", "acgt_only")
    gives_order: ClassVar[tuple[str, ...] | None] = ("query",)
    reads_residues: ClassVar[bool] = False
    strand_of = staticmethod(strand_of)

    def footprint(self, shape: Shape) -> Footprint:
        return Footprint(host=16 * shape.query_residues + 30 * (shape.target_residues + shape.targets))

    def run(self, context: Context, records: Records | None) -> Seeds:
        queries, starts = context.queries, text_starts(context)
        if (queries.lengths > self.options.longest).any():
            at = int(np.argmax(queries.lengths > self.options.longest))
            raise InputError(f"query '{queries.names[at]}' has {int(queries.lengths[at]):,} residues and at most "
                             f"{self.options.longest:,} can be looked up as a whole; raise {context.slot}.longest with "
                             "--set, or find the matches in it with seqloom mum")
        strands = run_tasks(context.threads, lambda frame: self.strand_of(queries, frame, context.options.acgt_only),
                            list(context.options.frames()))
        return self.seeds(context, starts, strands, self.places(context, strands))

    @staticmethod
    def seeds(context: Context, starts: np.ndarray, strands: Sequence[Strand],
              found: Sequence[tuple[np.ndarray, np.ndarray]]) -> Seeds:
        """Seeds of what ``places`` gives, by query, strand and place; targets begin at i8[k] ``starts`` of the text."""
        parts = []
        for strand, (numbers, places) in zip(strands, found, strict=True):
            rows = in_order(np.stack([strand.starts[numbers], places, context.queries.lengths[numbers]], axis=1))
            parts.append(seeds_of(context, starts, strand, *rows.T))
        return strands_together(parts)

    def places(self, context: Context, strands: Sequence[Strand]) -> list[tuple[np.ndarray, np.ndarray]]:
        """For each strand, i8[n] numbers of queries in the batch and places of the text where they occur."""
        text, suffixes = self.read_back(context)
        whole = text.tobytes()
        found = []
        for strand in strands:
            rows = []
            for number, (start, length) in enumerate(zip(strand.starts, context.queries.lengths, strict=True)):
                residues = strand.symbols[start : start + length].tobytes()
                low, high = (_behind(whole, suffixes, residues, upper) for upper in (False, True))
                rows += [(number, place) for place in suffixes[low:high].tolist()] if length else []
            table = np.array(rows, np.int64).reshape(-1, 2)
            found.append((table[:, 0], table[:, 1]))
        return found

    def read_back(self, context: Context) -> tuple[np.ndarray, np.ndarray]:
        """u1[n] text and i8[n] suffix array, from the index."""
        return unpacked(context.index(KIND))[:2]


def _behind(text: bytes, suffixes: np.ndarray, residues: bytes, upper: bool) -> int:
    """The first row whose suffix is not less than ``residues``; with ``upper``, whose begin is greater."""
    low, high = 0, len(suffixes)
    while low < high:
        row = (low + high) // 2
        begin = text[suffixes[row] : suffixes[row] + len(residues)]
        if begin < residues or (upper and begin == residues):
            low = row + 1
        else:
            high = row
    return low
