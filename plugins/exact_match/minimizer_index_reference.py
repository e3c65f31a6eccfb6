"""The table of the references' minimizers."""

from typing import Any, ClassVar

import numpy as np
from seqloom.core.context import Context
from seqloom.core.index import Index, Side
from seqloom.core.sequences import ModelBatch, SequenceBatch
from seqloom.core.stages import Footprint, IndexStage, Shape

from .minimizers import (
    KIND,
    Words,
    buckets,
    expected_count,
    minimizers,
    table_bits,
    table_bytes,
    word_codes,
    words_of,
)
from .symbols import separator, target_text


class MinimizerIndex(IndexStage):
    """Places of the minimizers of all targets of a volume, for matches of at least the length asked for.

    Arrays: ``text`` u8[n], symbols of all targets with separators before, between and behind; ``starts`` i8[k], where
    each target begins; ``place`` u4[m] (u8 from 4 G residues on), grouped: bucket b is ``place[head[b]:head[b + 1]]``,
    ascending; ``sieve`` u1, a bit for each of 8 times as many finer buckets, whether there is something in it.
    """

    name: ClassVar[str] = "minimizer-index"
    side: ClassVar[Side] = "target"
    provides: ClassVar[str] = KIND
    depends: ClassVar[tuple[str, ...] | None] = ("length", "acgt_only")
    version: ClassVar[int] = 3

    def footprint(self, shape: Shape) -> Footprint:
        text = shape.target_residues + shape.targets + 2
        count = expected_count(text, shape.options.length if shape.options else 1)
        stays = text + table_bytes(count)
        # Minimizers are gathered part by part, then joined; the text is there more than once before.
        return Footprint(host=stays + max(3 * text, 12 * count), stays=stays)

    def run(self, context: Context, batch: "SequenceBatch | ModelBatch") -> Index:
        assert isinstance(batch, SequenceBatch)
        text, starts = target_text(batch, context.options.acgt_only)
        text = np.concatenate([[np.uint8(separator(batch.alphabet))], text])
        words = words_of(batch.alphabet, context.options.length)
        head, place, sieve = self.table(text, word_codes(batch.alphabet), words, context.threads)
        return Index(KIND, "target", {"text": text, "starts": starts + 1, "head": head, "place": place, "sieve": sieve},
                     _parameters(context.options, batch))

    def wrong(self, context: Context, batch: "SequenceBatch | ModelBatch", index: Index) -> str:
        from seqloom.plugins.exact_match.stored_cpu import wrong_minimizers

        assert isinstance(batch, SequenceBatch)
        return wrong_minimizers(batch, index, _parameters(context.options, batch))

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


def _parameters(options: Any, batch: SequenceBatch) -> dict[str, Any]:
    return {"alphabet": batch.alphabet.name, "acgt_only": options.acgt_only, "length": options.length}


def place_type(text: np.ndarray) -> np.dtype:
    """The smallest type that numbers all places of a text."""
    return np.dtype(np.uint32 if len(text) < 1 << 32 else np.uint64)
