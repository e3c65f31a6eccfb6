"""Indexes of nucleotide BLAST on the CPU: the reference's rules, all queries in one pass."""

from __future__ import annotations

import numpy as np
from seqloom.core.alphabet import NUCLEOTIDE
from seqloom.core.context import Context
from seqloom.core.distinct import ranked
from seqloom.core.index import Index
from seqloom.core.kernels.jit import inline, kernel
from seqloom.core.kernels.simd import picked_bits
from seqloom.core.sequences import SequenceBatch, offsets_of
from seqloom.core.stages import Footprint, Shape
from seqloom.plugins.common.nucleotide_statistics import BASES_OF_CODE, SENTINEL
from seqloom.plugins.nucleotide_blast.discontiguous_reference import DiscontiguousOptions
from seqloom.plugins.nucleotide_blast.greedy_cpu import sequence
from seqloom.plugins.nucleotide_blast.index_reference import (
    BASES,
    WORDS,
    NucleotideBases,
    NucleotideWords,
    table_width,
)
from seqloom.plugins.nucleotide_blast.packed_cpu import (
    BITS,
    RUNS,
    PackedBases,
    PackedIndex,
    packed_of,
    put,
    reversed_bytes,
)
from seqloom.plugins.nucleotide_blast.query_words_cpu import bytes_kept
from seqloom.plugins.nucleotide_blast.random_bases import DISCARDED, LAG, MASK, seeded_state
from seqloom.plugins.nucleotide_blast.strands_cpu import EACH, NO_BASE, lay_out, next_unlike


@kernel
def _lay_out(codes, offsets, allowed, complement, plus, minus, strands, words, masked, masked_words):
    """Write ``both_strands`` of every query, and which of their bases may not seed.

    codes, allowed: ``sequence`` of the queries, and of flags. words, masked_words: of ``sequence`` of what is written.
    """
    for query in range(len(offsets) - 1):
        low, size = offsets[query], offsets[query + 1] - offsets[query]
        at, end = 2 * low + query, offsets[query + 1]
        lay_out(codes, low, size, complement, at, strands, words)
        strands[at + size] = SENTINEL
        masked[at : at + 2 * size + 1] = True
        if plus:
            ahead, own = allowed.bases[low:end], masked[at : at + size]
            for k in range(size):
                own[k] = ahead[k] ^ 1
        if minus:
            at, k = at + size + 1, 0
            while k + 8 <= size:
                masked_words[at + k] = reversed_bytes(allowed.words[end - k - 8]) ^ EACH
                k += 8
            while k < size:
                masked[at + k] = allowed.bases[end - k - 1] ^ 1
                k += 1


@kernel
def _open_words(masked, offsets, counts):
    """Count, for every query, the bases of its open stretches, each less one. masked: ``sequence`` of flags."""
    for query in range(len(offsets) - 1):
        count, end = 0, offsets[query + 1]
        start = next_unlike(masked, offsets[query], end, EACH, EACH)
        while start < end:
            stop = next_unlike(masked, start, end, np.uint64(0), EACH)
            count += stop - start - 1
            start = next_unlike(masked, stop, end, EACH, EACH)
        counts[query] = count


@kernel
def _mark_words(codes, masked, offsets, size, widths, indexed, counts):
    """Mark where words of ``widths[query]`` bases begin, in stretches of ``size`` open bases and more; count them.

    codes, masked: ``sequence`` of the strands, and of flags.
    """
    for query in range(len(offsets) - 1):
        width, end, count = widths[query], offsets[query + 1], 0
        start = next_unlike(masked, offsets[query], end, EACH, EACH)
        while start < end:
            stop = next_unlike(masked, start, end, np.uint64(0), EACH)
            place = start if stop - start >= size else stop
            while place < stop:
                after = next_unlike(codes, place, stop, np.uint64(0), NO_BASE)
                if after - place >= width:
                    indexed[place : after - width + 1] = True
                    count += after - place - width + 1
                place = after + 1
            start = next_unlike(masked, stop, end, EACH, EACH)
        counts[query] = count


@kernel
def _collect_words(strands, indexed, offsets, widths, word_offsets, words, positions):
    """Write the words that begin at marked places, and where in the strands of their query."""
    for query in range(len(offsets) - 1):
        own, marked = strands[offsets[query] : offsets[query + 1]], indexed[offsets[query] : offsets[query + 1]]
        ahead, slot, word = np.uint64(widths[query] - 1), np.uint64(word_offsets[query]), np.uint32(0)
        mask = np.uint32((1 << (2 * widths[query])) - 1)
        for place in range(len(own)):
            here = np.uint64(place)
            word = (word << np.uint32(2) | np.uint32(own[here]) & np.uint32(3)) & mask
            if here >= ahead and marked[here - ahead]:
                words[slot], positions[slot] = word, here - ahead
                slot += np.uint64(1)


@kernel
def _collect_template_words(strands, indexed, offsets, length, masks, width, word_offsets, words, positions):
    """As ``_collect_words``, of windows of ``length`` bases, of which u8[t] ``masks`` have the bits that count: the
    words of one template, of ``width`` bases, after those of another."""
    for query in range(len(offsets) - 1):
        own, marked = strands[offsets[query] : offsets[query + 1]], indexed[offsets[query] : offsets[query + 1]]
        ahead, slot = np.uint64(length - 1), np.uint64(word_offsets[query])
        for number in range(len(masks)):
            window, above = np.uint64(0), np.uint64(number) << np.uint64(2 * width)
            for place in range(len(own)):
                here = np.uint64(place)
                window = window << np.uint64(2) | np.uint64(own[here]) & np.uint64(3)
                if here >= ahead and marked[here - ahead]:
                    words[slot], positions[slot] = picked_bits(window, masks[number]) | above, here - ahead
                    slot += np.uint64(1)


def word_index(context: Context, batch: SequenceBatch, kind: str, size: int, width: int,
               masks: np.ndarray | None = None) -> Index:
    """The index of a batch: contiguous words as wide as BLAST makes them, or windows of ``width`` bases of templates.

    Args:
        size: open bases in a row without which no word begins.
        width: of all words; 0 to choose it.
        masks: u8[t], of templates: the bits of a window that count.
    """
    options, count = context.options, len(batch)
    offsets = 2 * batch.offsets + np.arange(count + 1)
    strands, masked = np.empty(offsets[-1], np.uint8), np.empty(offsets[-1], np.uint8)
    _lay_out(sequence(batch.searched()), batch.offsets, sequence(batch.indexable().view(np.uint8)),
             NUCLEOTIDE.complement, options.strand != "minus", options.strand != "plus", strands,
             sequence(strands).words, masked, sequence(masked).words)
    codes, flags = sequence(strands), sequence(masked)
    counts = np.empty(count, np.int64)
    widths = np.full(count, width, np.int32)
    if not width:
        _open_words(flags, offsets, counts)
        numbers, number_of = ranked(counts)
        widths[:] = np.array([table_width(size, words) for words in numbers.tolist()], np.int32)[number_of]
    indexed = np.zeros(offsets[-1], np.bool_)
    _mark_words(codes, flags, offsets, size, widths, indexed, counts)
    word_offsets = offsets_of(counts * (1 if masks is None else len(masks)))
    arrays = {
        "strands": strands, "masked": masked.view(np.bool_), "indexed": indexed, "width": widths,
        "stride": (size - widths + 1).astype(np.int32), "strand_offsets": offsets, "word_offsets": word_offsets,
    }  # fmt: skip
    if masks is not None:
        words, positions = np.empty((2, word_offsets[-1]), np.int32)
        _collect_template_words(strands, indexed, offsets, width, masks, options.word_size, word_offsets, words,
                                positions)
        arrays |= {"words": words, "positions": positions}
    context.count("words", int(word_offsets[-1]))
    made = Index if masks is not None else WordIndex
    return made(kind, "query", arrays, {"word_size": options.word_size, "strand": options.strand})


class WordIndex(Index):
    """The index of contiguous words; ``words`` and ``positions`` of it are made when somebody asks for these: who looks
    the marked places of the strands through needs neither."""

    def __getitem__(self, name: str) -> np.ndarray:
        if name not in ("words", "positions"):
            return super().__getitem__(name)
        found: np.ndarray = self.kept("words", self._collected)[name]
        return found

    def _collected(self) -> dict[str, np.ndarray]:
        words, positions = np.empty((2, self["word_offsets"][-1]), np.int32)
        _collect_words(self["strands"], self["indexed"], self["strand_offsets"], self["width"], self["word_offsets"],
                       words, positions)
        return {"words": words, "positions": positions}


class NucleotideWordsCpu(NucleotideWords):
    __doc__ = NucleotideWords.__doc__
    backend = "cpu"

    def run(self, context: Context, batch: SequenceBatch) -> Index:
        return word_index(context, batch, WORDS, context.options.word_size, 0)


@inline
def _drawn(state, k, j):
    """Draw the next number: what is at ``k`` then, and both places after it."""
    state[k] = (state[k] + state[j]) & MASK
    k, j = k - 1, j - 1
    return k if k >= 0 else len(state) - 1, j if j >= 0 else len(state) - 1


@kernel
def _replace(bits, begin, runs, low, high, state, choices, numbers):
    """``replace_ambiguities`` of a sequence from ``low`` to ``high``. state: i8, of ``LaggedFibonacci``, as seeded.

    begin: of the volume in ``bits``. runs: i8[m, 3], those with ambiguities of the sequence. choices: u1[16, 4];
    numbers: of them.
    """
    k, j = len(state) - 1, LAG
    for _ in range(DISCARDED):
        k, j = _drawn(state, k, j)
    for run in range(len(runs)):
        code = runs[run, 2]
        number = numbers[code]
        for place in range(max(low, runs[run, 0]), min(high, runs[run, 1])):
            value, (k, j) = state[k] + state[j], _drawn(state, k, j)
            value = (value & MASK) >> 1
            put(bits, begin + place, choices[code, value & 3 if number == 4 else value % number])


def _replaced(packed: PackedBases, offsets: np.ndarray) -> None:
    """Write random bases for the ambiguities of sequences with i8[k + 1] ``offsets``."""
    choices, numbers = np.zeros((16, 4), np.uint8), np.array([len(bases) for bases in BASES_OF_CODE], np.int64)
    for row, bases in zip(choices, BASES_OF_CODE, strict=True):
        row[: len(bases)] = bases
    runs = packed.runs
    first = np.searchsorted(runs[:, 1], offsets[:-1], "right")
    last = np.searchsorted(runs[:, 0], offsets[1:], "left")
    for target in np.flatnonzero(first < last).tolist():
        low, high = offsets[target : target + 2].tolist()
        state = np.array(seeded_state(high - low), np.int64)
        _replace(packed.bits, packed.first, runs[first[target] : last[target]], low, high, state, choices, numbers)


class NucleotideBasesCpu(NucleotideBases):
    """Targets with a random base in place of every ambiguity, at two bits a base.

    Arrays as of ``PackedBases``; ``bases`` u8, parallel to the residues of the volume, to be had besides.
    """

    backend = "cpu"
    reads_residues = False

    def footprint(self, shape: Shape) -> Footprint:
        kept = 0 if isinstance(shape.options, DiscontiguousOptions) else bytes_kept(shape)
        return Footprint(host=shape.target_residues + kept, stays=shape.target_residues // 4 + kept)

    def run(self, context: Context, batch: SequenceBatch) -> Index:
        return self._of(packed_of(batch), batch)

    def _of(self, packed: PackedBases, batch: SequenceBatch) -> Index:
        _replaced(packed, batch.offsets)
        return PackedIndex(BASES, "target", {BITS: packed.bits, RUNS: packed.runs},
                           {"size": packed.size, "first": packed.first})
