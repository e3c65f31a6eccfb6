"""BLAST's two tables of words on CUDA devices, which G-BLASTN's kernels look words up in (``paper_kernels_cuda.py``).

The host makes a table for a batch of queries, and devices get it with each volume. Where a launch would have more pairs
of equal words than there is room for in reason, fewer pieces of the targets are scanned at a time.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import cuda as _cuda
from seqloom.core.classes import dataclass
from seqloom.core.index import Index
from seqloom.core.stages import Footprint, Shape
from seqloom.plugins.common.workspace_cuda import rounded
from seqloom.plugins.nucleotide_blast import hits_cuda, scan_cuda
from seqloom.plugins.nucleotide_blast.hits_cuda import (
    MOST_PLACES,
    Rooms,
    Searched,
    Strands,
    Words,
    block_count,
    expected_hits,
)
from seqloom.plugins.nucleotide_blast.index_reference import table_width
from seqloom.plugins.nucleotide_blast.paper_kernels_cuda import (
    NO_BASE,
    extend_pairs_kernel,
    look_up_kernel,
    scan_table_kernel,
)
from seqloom.plugins.nucleotide_blast.paper_tables_cpu import (
    ChainedTable,
    ChainedWordsCpu,
    SmallTable,
    SmallWordsCpu,
    as_tuple,
)
from seqloom.plugins.nucleotide_blast.paper_tables_reference import LARGEST, NOWHERE, SMALL, Arrays
from seqloom.plugins.nucleotide_blast.query_words_cpu import QueryWords
from seqloom.plugins.nucleotide_blast.scan_cuda import FOUND, KEPT, LOOKED_UP
from seqloom.plugins.nucleotide_blast.scanned_cpu import BLOCK, Places, places_of

cuda: Any = _cuda  # numba's types don't know what code on the device may do
MOST_PAIRS = 1 << 24
"""Pairs of equal words of unrelated sequences that a launch makes at most, unless those of a single piece are more."""
BYTES_PER_PAIR = 8
BYTES_PER_PLACE_HERE = 2 + 1
"""Of the strands of the queries, beside what all words need: four bases, and a query for some of them."""


def nibbles(codes: np.ndarray) -> np.ndarray:
    """u2[n]: four codes from each place of u1[n] on, in four bits each and the first one highest; ``NO_BASE`` where one
    isn't a base."""
    own = np.append(np.where(codes < 4, codes, NO_BASE), [NO_BASE] * 3).astype(np.uint16)
    count = len(codes)
    return own[:count] << 12 | own[1 : count + 1] << 8 | own[2 : count + 2] << 4 | own[3 : count + 3]


def in_words(array: np.ndarray) -> np.ndarray:
    """An array as i4, with zeros behind it."""
    missing = -array.nbytes % 4 // array.itemsize
    return (np.append(array, np.zeros(missing, array.dtype)) if missing else array).view(np.int32)


@dataclass(frozen=True)
class TableWords(Words):
    """Words that are looked for in a table of BLAST.

    Attributes:
        table: places are those of the strands of an index.
        places: of these strands.
        entries, several: words of the queries, and different ones of which the small table has places in its overflow
            array.
        fours: u2, ``nibbles`` of the strands as they are compared, with a sentinel behind those of each query.
    """

    table: SmallTable | ChainedTable
    places: Places
    entries: int
    several: int
    fours: np.ndarray

    @classmethod
    def of(cls, table: Arrays, own: QueryWords, size: int, strands: Strands, index: Index) -> TableWords:
        """The words of a table of an index, for hits of ``size`` bases."""
        made = as_tuple(table)
        several = int(np.count_nonzero(made.backbone < NOWHERE)) if isinstance(made, SmallTable) else 0
        return cls(own.width, size, made, places_of(index["strand_offsets"]), own.total, several,
                   nibbles(strands.compared))

    @property
    def chained(self) -> bool:
        return isinstance(self.table, ChainedTable)

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in (*self.table, *self.places, self.fours))

    @property
    def most_places(self) -> int:
        return max(1, min(MOST_PLACES, MOST_PAIRS * 4**self.width // max(1, self.entries)))

    def expected(self, places: int) -> Rooms:
        of_words = self.entries if self.chained else self.several
        found = places * of_words >> 2 * self.width
        return Rooms(rounded(2 * found + hits_cuda.SLACK), expected_hits(places, self.entries, 2 * self.width, 0),
                     expected_hits(places, self.entries, 2 * self.width, self.size - self.width))

    def needed(self, counts: np.ndarray) -> Rooms:
        return Rooms(int(counts[FOUND]), int(counts[LOOKED_UP]), int(counts[KEPT]))

    def held(self, rooms: Rooms) -> int:
        return 0

    def passing(self, rooms: Rooms) -> int:
        return BYTES_PER_PAIR * (rooms.found + rooms.pairs)

    def launch(self, searched: Searched, rooms: Rooms) -> np.ndarray:
        there, threads, chained = searched.strands, scan_cuda.THREADS, self.chained
        found, pairs = (cuda.device_array(max(1, room), np.int64) for room in (rooms.found, rooms.pairs))
        of_found, of_pairs = (found, np.int64(rooms.found)), (pairs, np.int64(rooms.pairs))
        scanned = self.table.bits if isinstance(self.table, ChainedTable) else self.table.backbone
        looked_up = self.table[1:] if chained else self.table[2:]
        table, *more = (cuda.to_device(in_words(array)) for array in (scanned, *looked_up))
        begins, blocks, fours = map(cuda.to_device, (*self.places, self.fours))
        stride, width, size, total = map(np.int64, (self.stride, self.width, self.size, searched.total))
        scan_table_kernel(chained)[block_count(-(-searched.total // threads)), threads](
            searched.packed, searched.lows, searched.firsts, searched.tiles, total, stride, width, table, *of_pairs,
            *of_found, searched.counts)
        look_up_kernel(chained)[block_count(-(-rooms.found // threads)), threads](
            *of_found, *more, *of_pairs, searched.counts)
        extend_pairs_kernel(not chained)[block_count(-(-rooms.pairs // threads)), threads](
            searched.packed, searched.lows, searched.lengths, searched.firsts, searched.diagonals, stride, begins,
            blocks, np.int64(BLOCK), there.compared, fours, there.indexed, there.opens, width, size, *of_pairs,
            np.int64(searched.bits), searched.keys, searched.places, searched.shifts, np.int64(rooms.hits),
            searched.counts)
        result: np.ndarray = searched.counts.copy_to_host()
        return result


def with_device(shape: Shape, kind: str, host: Footprint) -> Footprint:
    """What a table takes beside that of the usual words, which the stage that looks words up counts: with strands, and
    pairs of equal words of unrelated sequences."""
    size, places = shape.options.word_size if shape.options else 11, 2 * shape.query_residues
    width = table_width(size, 2 * shape.longest_query)
    pairs = min(shape.target_residues // (size - width + 1) * places >> 2 * width, MOST_PAIRS)
    table = (4 if kind != SMALL or places > LARGEST else 2) * 4**width + 4 * places
    return Footprint(host=host.host, stays=host.stays,
                     device=table + BYTES_PER_PLACE_HERE * places + 4 * BYTES_PER_PAIR * pairs)


class SmallWordsCuda(SmallWordsCpu):
    __doc__ = SmallWordsCpu.__doc__
    backend = "cuda"

    def footprint(self, shape: Shape) -> Footprint:
        return with_device(shape, self.table, super().footprint(shape))


class ChainedWordsCuda(SmallWordsCuda):
    __doc__ = ChainedWordsCpu.__doc__
    name = ChainedWordsCpu.name
    table = ChainedWordsCpu.table
