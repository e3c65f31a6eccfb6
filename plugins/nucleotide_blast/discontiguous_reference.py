"""Discontiguous words: word hits whose bases need to be equal at some places of a template only.

A template such as ``101101100101101101`` marks the places of a window that make up the word. Coding templates leave
out every third place, where codons vary most; the others are optimal for sensitivity (Ma, Tromp & Li 2002). Windows
are looked at from every position of the target; a window with a masked base or an ambiguity in the query has no word.
"""

from __future__ import annotations

import numpy as np
from seqloom.core.classes import dataclass
from seqloom.core.context import Context
from seqloom.core.errors import OptionError
from seqloom.core.index import Index
from seqloom.core.options import option
from seqloom.core.records import Records, Seeds
from seqloom.core.sequences import SequenceBatch
from seqloom.core.stages import Footprint, IndexStage, SeedStage, Shape
from seqloom.plugins.nucleotide_blast.index_reference import (
    BASES,
    BYTES_PER_WORD,
    index_of_parts,
    indexed_positions,
    searched_strands,
)
from seqloom.plugins.nucleotide_blast.pieces import pieces_of
from seqloom.plugins.nucleotide_blast.scoring import NucleotideBlast, NucleotideBlastOptions
from seqloom.plugins.nucleotide_blast.seed_reference import (
    CHUNK_COLUMN,
    SHIFT_COLUMN,
    QueryWords,
    forward_seeds,
    look_up,
    open_stretches_of,
    scan_footprint,
    scan_seconds,
)

TEMPLATE_WORDS = "discontiguous-words"

TEMPLATES: dict[tuple[int, int, str], str] = {
    (11, 16, "coding"): "1101101101101101",
    (11, 16, "optimal"): "1110010110110111",
    (11, 18, "coding"): "101101100101101101",
    (11, 18, "optimal"): "111010010110010111",
    (11, 21, "coding"): "100101100101100101101",
    (11, 21, "optimal"): "111010010100010010111",
    (12, 16, "coding"): "1111101101101101",
    (12, 16, "optimal"): "1110110110110111",
    (12, 18, "coding"): "101101101101101101",
    (12, 18, "optimal"): "111010110010110111",
    (12, 21, "coding"): "100101101101100101101",
    (12, 21, "optimal"): "111010010110010010111",
}
"""By word size, template length and type; 1 marks a place that counts."""


@dataclass(frozen=True)
class DiscontiguousOptions(NucleotideBlastOptions):
    """Options of a dc-megablast search: those of blastn, and the template."""

    window_size: int = option(40, "bases from the end of a first hit on a diagonal in which a second one must end; 0: "
                                  "every hit is extended", minimum=0)
    template_type: str = option("coding", "kind of template", choices=("coding", "optimal", "coding_and_optimal"))
    template_length: int = option(18, "bases of the template: 16, 18 or 21", minimum=16, maximum=21)

    def check(self) -> None:
        super().check()
        if self.word_size not in (11, 12):
            raise OptionError(f"a template has --word-size 11 or 12, not {self.word_size}")
        if self.template_length not in (16, 18, 21):
            raise OptionError(f"--template-length must be 16, 18 or 21, not {self.template_length}")

    def templates(self) -> list[np.ndarray]:
        """Places that count, i64[word_size], of each template in use."""
        kinds = ("coding", "optimal") if self.template_type == "coding_and_optimal" else (self.template_type,)
        texts = [TEMPLATES[self.word_size, self.template_length, kind] for kind in kinds]
        return [np.flatnonzero(np.frombuffer(text.encode(), np.uint8) == ord("1")) for text in texts]


class DiscontiguousBlast(NucleotideBlast):
    """Discontiguous word hits between nucleotide sequences, extended without and with gaps."""

    name = "discontiguous-blast"
    Options = DiscontiguousOptions


def template_words(bases: np.ndarray, templates: list[np.ndarray], length: int) -> np.ndarray:
    """i32[t, n]: the word of each template in every window of ``length`` bases; words of two templates differ."""
    count = max(0, len(bases) - length + 1)
    words = np.zeros((len(templates), count), np.int32)
    for number, places in enumerate(templates):
        words[number] = number
        for place in places.tolist():
            words[number] <<= 2
            words[number] |= bases[place : place + count]
    return words


class DiscontiguousWords(IndexStage):
    """Table of the template words of both query strands.

    Arrays as in ``NucleotideWords``; a word holds the number of its template above its bases. The width is the length
    of the template.
    """

    name = "discontiguous-word-table"
    side = "query"
    provides = TEMPLATE_WORDS

    def footprint(self, shape: Shape) -> Footprint:
        return Footprint(host=4 * BYTES_PER_WORD * shape.query_residues)

    def run(self, context: Context, batch: SequenceBatch) -> Index:
        options = context.options
        length = options.template_length
        parts = []
        for strands, searched in searched_strands(batch, options.strand):
            indexed = indexed_positions(strands, searched, length, length)
            positions = np.flatnonzero(indexed)
            words = template_words(np.minimum(strands, 3), options.templates(), length)[:, positions].ravel()
            positions = np.tile(positions, len(options.templates()))
            parts.append((strands, searched, indexed, words, positions, length, 1))
        return index_of_parts(context, TEMPLATE_WORDS, parts)


class DiscontiguousWordHits(SeedStage):
    """Template matches between both query strands and the targets.

    Seeds come by query, target, chunk; ``length`` is that of the template.
    """

    name = "discontiguous-word-hits"
    reads = (TEMPLATE_WORDS, BASES)
    columns = (CHUNK_COLUMN, SHIFT_COLUMN)
    takes = (None,)
    gives_order = ("query", "target")

    def footprint(self, shape: Shape) -> Footprint:
        return scan_footprint(shape, *self.word_counts(shape))

    def word_counts(self, shape: Shape) -> tuple[int, int, int, int]:
        """The stride, how many different words there can be in a table and as seeds, and templates."""
        templates = len(shape.options.templates()) if shape.options else 1
        words = templates * 4 ** (shape.options.word_size if shape.options else 11)
        return 1, words, words, templates

    def seconds(self, shape: Shape) -> float:
        return scan_seconds(shape)

    def run(self, context: Context, records: Records | None) -> Seeds:
        index, bases = context.index(TEMPLATE_WORDS), context.index(BASES)["bases"]
        length, templates = context.options.template_length, context.options.templates()
        pieces, before = pieces_of(context), context.targets.offsets
        everything = len(context.queries) * context.targets.total_residues
        parts = []
        scanned: dict[tuple[int, int], np.ndarray] = {}
        for query, ordinal in enumerate(context.queries.ordinals.tolist()):
            table = QueryWords.of(index, query)
            for number, chunk, low, high in open_stretches_of(context, pieces):
                if (low, high) not in scanned:
                    scanned[low, high] = template_words(bases[low:high], templates, length)
                for words in scanned[low, high]:
                    found, places = look_up(table, words, len(templates) * 4**context.options.word_size)
                    places = places + low - int(before[context.targets.locate(number)]) - chunk
                    shift = np.zeros(len(found), np.int64)
                    parts.append(forward_seeds(ordinal, number, chunk, found, places, shift, table.strands, length))
                context.advance(high - low, everything)
        return Seeds.concat(parts) if parts else Seeds.empty(self.columns)
