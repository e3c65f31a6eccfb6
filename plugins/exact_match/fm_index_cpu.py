"""``fm-index`` on the CPU: transform, counts and samples in one pass over the suffix array."""

import numpy as np
from seqloom.core.alphabet import Alphabet
from seqloom.core.context import Context
from seqloom.core.kernels.jit import kernel
from seqloom.core.stages import Footprint, Shape

from .fm_index import CODE, ODD, SMALLER, block_shape, row_type, symbol_table
from .fm_index_reference import FmIndex
from .suffix_array import sorting_bytes

_U64 = np.uint64


@kernel
def _fill(text, suffixes, values, odd_at, bucket, before, bits, blocks, odd_rows):
    """Fill the blocks, and the rows of symbols without a value.

    Args:
        values: u8, for each symbol what stands for it in a block; more than there are counts where nothing does.
        odd_at: where the rows of each symbol without a value are written; changed.
        before: u8, the counts at the head of the first block; changed.
        bits: of a residue.
    """
    counts = len(before)
    word, block, flagged = _U64(0), _U64(0), False
    per_word = _U64(64 // bits)
    for row in range(_U64(len(suffixes) + 1)):
        inside = row & _U64(bucket - 1)
        if inside == 0:
            block, flagged = row // _U64(bucket), False
            for n in range(counts):
                blocks[block, n] = before[n]
        if row == _U64(len(suffixes)):
            break
        suffix = suffixes[row]
        symbol = text[suffix - 1 if suffix else len(text) - 1]
        value = values[symbol]
        if value < _U64(counts):
            before[value] += _U64(1)
        else:
            odd_rows[odd_at[symbol]] = row
            odd_at[symbol] += 1
            value = _U64(0)
            if not flagged:
                blocks[block, 0] |= _U64(1) << _U64(63)
                flagged = True
        place = inside % per_word
        word |= value << (_U64(bits) * place)
        if place == per_word - _U64(1) or row == _U64(len(suffixes) - 1):
            blocks[block, _U64(counts) + inside // per_word] = word
            word = _U64(0)


@kernel
def _sample(suffixes, sample, samples, marks):
    """Keep the suffixes at every ``sample``-th place of the text, and mark their rows."""
    found = _U64(0)
    for first in range(0, len(suffixes) + 1, 64):
        marks[first // 64, 0] = found
        word = _U64(0)
        for row in range(first, min(first + 64, len(suffixes))):
            suffix = _U64(suffixes[row])
            if suffix % _U64(sample) == 0:
                samples[found] = suffix
                found += _U64(1)
                word |= _U64(1) << _U64(row - first)
        marks[first // 64, 1] = word


class FmIndexCpu(FmIndex):
    __doc__ = FmIndex.__doc__
    backend = "cpu"

    def footprint(self, shape: Shape) -> Footprint:
        text = shape.target_residues + shape.targets + 1
        # The index itself: a byte a residue (bases: two bits, and a row for each that has no code), counts, suffixes
        # and marks. Before, their suffixes are sorted: text, words, order and runs of ties.
        stays = int(text * (1.25 + 240 / self.options.bucket + 4 / self.options.sample))
        return Footprint(host=max(sorting_bytes(text), 5 * text + stays), stays=stays)

    def arrays(self, context: Context, text: np.ndarray, residues: Alphabet, bucket: int,
               sample: int) -> dict[str, np.ndarray]:
        from seqloom.plugins.exact_match.suffix_array_cpu import suffix_array  # with kernels that who reads one spares

        suffixes = suffix_array(text, context.threads)
        context.cancellation.check()
        kind, symbols = row_type(len(text)), symbol_table(text, residues)
        packed = bool((symbols[:, CODE] >= 0).any())
        values = symbols[:, CODE].astype(np.uint64) if packed else np.arange(len(symbols), dtype=np.uint64)
        blocks = np.zeros(block_shape(len(text), residues, bucket), np.uint64)
        odd_rows = np.empty(int(symbols[-1, ODD]), kind)
        coded = np.argsort(symbols[:, CODE], kind="stable")[-4:] if packed else np.arange(len(symbols) - 1)
        before = symbols[coded, SMALLER].astype(np.uint64)
        _fill(text, suffixes, values, symbols[:, ODD].copy(), bucket, before, 2 if packed else 8, blocks, odd_rows)
        context.cancellation.check()
        marks = np.empty((len(text) // 64 + 1 if sample > 1 else 0, 2), np.uint64)
        samples = np.empty(-(-len(text) // sample), kind)
        if sample > 1:
            _sample(suffixes, sample, samples, marks)
        else:
            samples[:] = suffixes
        return {"symbols": symbols, "blocks": blocks, "odd_rows": odd_rows, "samples": samples, "marks": marks}
