"""``fm-index`` on the CPU: transform, counts and samples from the suffix array, of which each thread has a part."""

from itertools import pairwise

import numpy as np
from seqloom.core.alphabet import Alphabet
from seqloom.core.context import Context
from seqloom.core.engine.threads import run_tasks
from seqloom.core.kernels.jit import kernel
from seqloom.core.kernels.simd import prefetch
from seqloom.core.stages import Footprint, Shape

from .fm_index import CODE, ODD, SMALLER, block_shape, row_type, symbol_table
from .fm_index_reference import FmIndex
from .suffix_array import sorting_bytes

_U64 = np.uint64
_AHEAD = 32  # symbols whose memory is asked for before they are needed
_LEAST_PART = 1 << 20  # rows of a thread's part


@kernel
def _transform(text, suffixes, first, last, before, counts):
    """Fill u8[n] ``before`` with the symbol before each suffix of rows first … last − 1, and count these symbols."""
    for row in range(first, last):
        ahead = np.int64(suffixes[min(row + _AHEAD, last - 1)])
        prefetch(text, ahead - 1 if ahead else ahead)
        suffix = np.int64(suffixes[row])
        symbol = text[suffix - 1 if suffix else len(text) - 1]
        before[row] = symbol
        counts[symbol] += 1


@kernel
def _fill(transform, values, odd_at, bucket, before, shift, blocks, odd_rows, first, last):
    """Fill the blocks that begin at rows first … last, and the rows of symbols without a value.

    Args:
        transform: u8[n].
        values: u8, for each symbol what stands for it in a block; more than there are counts where nothing does.
        odd_at: where the rows of each symbol without a value are written; changed.
        before: u8, the counts at the head of the first block; changed.
        shift: two to this power are the residues of a word.
        last: where a block ends.
    """
    counts = len(before)
    word, block, flagged = _U64(0), _U64(0), False
    per_word = _U64(1) << _U64(shift)
    bits = _U64(64) >> _U64(shift)
    size = _U64(len(transform))
    for row in range(_U64(first), _U64(last)):
        inside = row & _U64(bucket - 1)
        if inside == 0:
            block, flagged = row // _U64(bucket), False
            for n in range(counts):
                blocks[block, n] = before[n]
        if row == size:
            break
        symbol = transform[row]
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
        place = inside & (per_word - _U64(1))
        word |= value << (bits * place)
        if place == per_word - _U64(1) or row == size - _U64(1):
            blocks[block, _U64(counts) + (inside >> _U64(shift))] = word
            word = _U64(0)


@kernel
def _count_sampled(suffixes, sample, first, last):
    """How many suffixes of rows first … last − 1 are at every ``sample``-th place of the text."""
    count = 0
    for row in range(first, last):
        count += _U64(suffixes[row]) % _U64(sample) == 0
    return count


@kernel
def _sample(suffixes, sample, samples, marks, first, last, found):
    """Keep the suffixes at every ``sample``-th place of the text, and mark their rows: those of blocks of 64 that begin
    at rows first … last, behind ``found`` others."""
    found = _U64(found)
    for begin in range(first, last, 64):
        marks[begin // 64, 0] = found
        word = _U64(0)
        for row in range(begin, min(begin + 64, len(suffixes))):
            suffix = _U64(suffixes[row])
            if suffix % _U64(sample) == 0:
                samples[found] = suffix
                found += _U64(1)
                word |= _U64(1) << _U64(row - begin)
        marks[begin // 64, 1] = word


def sampled(suffixes: np.ndarray, sample: int, kind: np.dtype, threads: int) -> tuple[np.ndarray, np.ndarray]:
    """Samples and marks of ``Tables``, with every ``sample``-th place of a text, by its suffix array."""
    count = len(suffixes)
    samples, marks = np.empty(-(-count // sample), kind), np.empty((count // 64 + 1, 2), np.uint64)
    parts = _parts(threads, count, 64)
    sizes = run_tasks(threads, lambda part: _count_sampled(suffixes, sample, *part), parts[:-1])
    found = np.cumsum([0, *sizes]).tolist()
    run_tasks(threads, lambda n: _sample(suffixes, sample, samples, marks, parts[n][0],
                                         parts[n][1] + (parts[n][1] == count), found[n]), range(len(parts)))
    return samples, marks


def _parts(threads: int, rows: int, block: int) -> list[tuple[int, int]]:
    """First and last + 1 of the rows of each thread; blocks of rows stay whole."""
    most = max(1, min(threads, rows // _LEAST_PART))
    bounds = [rows * n // most // block * block for n in range(most)]
    return [*pairwise([*bounds, rows])]


class FmIndexCpu(FmIndex):
    __doc__ = FmIndex.__doc__
    backend = "cpu"

    def footprint(self, shape: Shape) -> Footprint:
        text = shape.target_residues + shape.targets + 1
        # The index itself: a byte a residue (bases: two bits, and a row for each that has no code), counts, suffixes
        # and marks. Before, their suffixes are sorted: text, words, order and runs of ties.
        stays = int(text * (1.25 + 240 / self.options.bucket + 4 / self.options.sample))
        return Footprint(host=max(sorting_bytes(text), 6 * text + stays), stays=stays)

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
        parts = _parts(context.threads, len(text), bucket)
        bwt, counts = np.empty(len(text), np.uint8), np.zeros((len(parts), len(symbols)), np.int64)
        run_tasks(context.threads, lambda n: _transform(text, suffixes, *parts[n], bwt, counts[n]), range(len(parts)))
        before = np.cumsum(counts, axis=0) - counts  # of each part

        def fill(n: int) -> None:
            first, last = parts[n]
            heads = (symbols[coded, SMALLER] + before[n, coded]).astype(np.uint64)
            _fill(bwt, values, symbols[:, ODD] + before[n], bucket, heads, 5 if packed else 3, blocks, odd_rows, first,
                  last + (last == len(text)))

        run_tasks(context.threads, fill, range(len(parts)))
        context.cancellation.check()
        if sample > 1:
            samples, marks = sampled(suffixes, sample, kind, context.threads)
        else:
            samples, marks = suffixes.astype(kind), np.empty((0, 2), np.uint64)
        return {"symbols": symbols, "blocks": blocks, "odd_rows": odd_rows, "samples": samples, "marks": marks}
