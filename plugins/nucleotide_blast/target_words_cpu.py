"""Tables of the words of targets that are stored with a database, so that few or short queries need no scan.

A search whose queries have words of the same width and size looks these up, in time that depends on the queries alone.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from seqloom.core.classes import dataclass
from seqloom.core.context import Context
from seqloom.core.index import Index, Side
from seqloom.core.kernels.jit import kernel
from seqloom.core.stages import Footprint, IndexStage, Shape, option
from seqloom.plugins.nucleotide_blast.index_cpu import NucleotideBasesCpu
from seqloom.plugins.nucleotide_blast.index_reference import BASES, table_width
from seqloom.plugins.nucleotide_blast.packed_cpu import packed_bases
from seqloom.plugins.nucleotide_blast.pieces import unmasked_pieces
from seqloom.plugins.nucleotide_blast.query_words_cpu import WIDE, Chunks, TargetWords, wider_by
from seqloom.plugins.nucleotide_blast.word_table_cpu import WordTable

KIND = "target-words"
_TABLES = ("ahead", "back")
_TYPES = {"bits": np.uint64, "ranks": np.int32, "starts": np.int32, "entries": np.int32}
_BYTES_PER_WORD = 40
"""While tables are made: words, wider ones and their numbers, starts and entries of both."""


@dataclass(frozen=True)
class TargetWordOptions:
    """Which queries the table serves."""

    width: int = option(0, "bases of the words; 0: as wide as short queries have them (megablast: up to 4,000 bases)",
                        minimum=0, maximum=WIDE)


class TargetWordTable(IndexStage):
    """Words of all targets, as queries of some ``word_size`` look them up; for storing with a database.

    Where targets have ambiguities, their words have the bases that stand for these. Arrays: presence bits u8, ranks i4,
    starts i4 and entries i4 of the table, or of both tables of wider words; see ``TargetWords``.
    """

    name: ClassVar[str] = "target-word-table"
    backend = "cpu"
    Options: ClassVar[type] = TargetWordOptions
    side: ClassVar[Side] = "target"
    provides: ClassVar[str] = KIND
    depends: ClassVar[tuple[str, ...] | None] = ("word_size",)
    reads_residues = False
    volume_residues = 1 << 30  # each volume costs a look-up of every word

    def footprint(self, shape: Shape) -> Footprint:
        size = shape.options.word_size if shape.options else 11
        width = self._width(size)
        kept = TargetWords.bytes_of(shape.target_residues, 1, width, size)
        return Footprint(host=kept + _BYTES_PER_WORD * shape.target_residues // (size - width + 1)
                         + shape.target_residues // 4, stays=kept)

    def _width(self, word_size: int) -> int:
        return min(self.options.width or table_width(word_size, 1), word_size)

    def run(self, context: Context, batch: Any) -> Index:
        size = context.options.word_size
        width = self._width(size)
        if BASES not in context.indexes:
            bases = NucleotideBasesCpu().run(context, batch)
            context = replace(context, indexes={**context.indexes, BASES: bases})
        chunks = _chunks(context, batch, width, size)
        tables = TargetWords.of(chunks, width, size, context.threads)
        arrays = {f"{side}_{name}": array for side in _TABLES[: 1 + bool(tables.more)]
                  for name, array in getattr(tables, side)._asdict().items()}
        return Index(KIND, "target", arrays, self._parameters(batch, width, size))

    @staticmethod
    def _parameters(batch: Any, width: int, size: int) -> dict[str, Any]:
        return {"width": width, "word_size": size, "targets": len(batch), "residues": int(batch.total_residues)}

    def wrong(self, context: Context, batch: Any, index: Index) -> str:
        size = context.options.word_size
        width = index.parameters.get("width")
        if (not isinstance(width, int) or not 0 < width <= min(size, WIDE)
                or index.parameters != self._parameters(batch, width, size)):
            return "it is of other words or targets"
        more, words = wider_by(width, size), _total(np.asarray(batch.offsets), width, size)
        sides = _TABLES[: 1 + bool(more)]
        layout: dict[str, tuple[np.dtype, tuple[int, ...]]] = {
            f"{side}_{name}": (np.dtype(dtype), (-1,)) for side in sides for name, dtype in _TYPES.items()}
        if why := index.unlike(layout):
            return why
        for side in sides:
            table = _table(index, side)
            if (len(table.bits) != 4 ** (width + more) // 64 or len(table.ranks) != len(table.bits)
                    or len(table.entries) > words or not _fits(table, words)):
                return f"its table {side} is no table of these words"
        return ""


@kernel
def _fits(table, words):
    """Whether all that a table says stays inside it, and its entries are numbers of that many words."""
    total = 0
    for block in range(len(table.bits)):
        if table.ranks[block] != total:
            return False
        bits = table.bits[block]
        while bits:
            bits &= bits - np.uint64(1)
            total += 1
    if len(table.starts) != total + 2 or table.starts[0] != 0:
        return False
    for rank in range(1, total + 1):
        if table.starts[rank] < table.starts[rank - 1]:
            return False
    if table.starts[total] != len(table.entries):
        return False
    outside = False
    for entry in table.entries:
        outside |= entry < 0 or entry >= words
    return not outside


def _total(offsets: np.ndarray, width: int, size: int) -> int:
    spans = unmasked_pieces(offsets).spans
    return int(np.maximum(0, (spans[:, 1] - spans[:, 0] - width) // (size - width + 1) + 1).sum())


def _chunks(context: Context, batch: Any, width: int, size: int) -> Chunks:
    return Chunks.of(packed_bases(context), unmasked_pieces(np.asarray(batch.offsets)).spans, width, size - width + 1)


def _table(index: Index, side: str) -> WordTable:
    return WordTable(*(index[f"{side}_{name}"] for name in WordTable._fields))


def stored_words(context: Context, width: int, size: int) -> TargetWords | None:
    """Tables of the words of all targets of the volume, where they were read with it and are of that width and size."""
    index = context.indexes.get(KIND)
    if index is None or (index.parameters.get("width"), index.parameters.get("word_size")) != (width, size):
        return None
    more = wider_by(width, size)
    ahead = _table(index, "ahead")
    return TargetWords(more, ahead, _table(index, "back") if more else ahead)
