"""The table of the references' minimizers."""

from typing import ClassVar

import numpy as np
from seqloom.core.context import Context
from seqloom.core.index import Index, Side
from seqloom.core.sequences import ModelBatch, SequenceBatch
from seqloom.core.stages import Footprint, IndexStage, Shape
from seqloom.plugins.exact_match.minimizers import KIND, Words, buckets, minimizers, table_bits, word_codes, words_of
from seqloom.plugins.exact_match.symbols import separator, target_text


class MinimizerIndex(IndexStage):
    """Places of the minimizers of all targets of a volume, for matches of at least the length asked for.

    Arrays: ``text`` u8[n], symbols of all targets with separators before, between and behind; ``starts`` i8[k], where
    each target begins; ``place`` u4[m] (u8 from 4 G letters on), grouped: bucket b is ``place[head[b]:head[b + 1]]``,
    ascending; ``sieve`` u1, a bit for each of 8 times as many finer buckets, whether there is something in it.
    """

    name: ClassVar[str] = "minimizer-index"
    side: ClassVar[Side] = "target"
    provides: ClassVar[str] = KIND
    depends: ClassVar[tuple[str, ...] | None] = ("length", "acgt_only")
    version: ClassVar[int] = 3

    def footprint(self, shape: Shape) -> Footprint:
        # Words of equal letters are all minimizers: then bucket, place and sieve take 24 bytes a letter of the text.
        text = shape.target_letters + shape.targets + 2
        return Footprint(host=56 * text, stays=25 * text)

    def run(self, context: Context, batch: "SequenceBatch | ModelBatch") -> Index:
        assert isinstance(batch, SequenceBatch)
        text, starts = target_text(batch, context.options.acgt_only)
        text = np.concatenate([[np.uint8(separator(batch.alphabet))], text])
        words = words_of(batch.alphabet, context.options.length)
        head, place, sieve = self.table(text, word_codes(batch.alphabet), words, context.threads)
        return Index(KIND, "target", {"text": text, "starts": starts + 1, "head": head, "place": place, "sieve": sieve},
                     {"alphabet": batch.alphabet.name, "acgt_only": context.options.acgt_only,
                      "length": context.options.length})

    def table(self, text: np.ndarray, codes: np.ndarray, words: Words,
              threads: int = 1) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """``head``, ``place`` and ``sieve`` of a text."""
        places, hashes = minimizers(text, codes, words)
        bits, fine = table_bits(len(places))
        of = buckets(hashes, bits)
        head = np.concatenate([[0], np.cumsum(np.bincount(of, minlength=1 << bits))]).astype(place_type(text))
        there = np.zeros(1 << fine, bool)
        there[buckets(hashes, fine)] = True
        place = places[np.argsort(of, kind="stable")].astype(place_type(text))
        return head, place, np.packbits(there, bitorder="little")


def place_type(text: np.ndarray) -> np.dtype:
    """The smallest type that numbers all places of a text."""
    return np.dtype(np.uint32 if len(text) < 1 << 32 else np.uint64)
