"""``compressed-suffix-array`` on the CPU: Psi from the suffixes, then its differences and the samples, a pass each."""

import numpy as np
from seqloom.core.alphabet import Alphabet
from seqloom.core.context import Context
from seqloom.core.kernels.jit import kernel
from seqloom.core.stages import Footprint, Shape

from .compressed_array import SPARE, bit_type, smaller_symbols
from .compressed_array_reference import CompressedArray
from .fm_index import row_type
from .fm_index_cpu import sampled
from .suffix_array import sorting_bytes

_U64 = np.uint64


@kernel
def _invert(suffixes, rank):
    """Fill the row of every place."""
    for row in range(len(suffixes)):
        rank[suffixes[row]] = row


@kernel
def _power(number):
    """The greatest power of two, as exponent, that is not greater than u8 ``number``, which is 1 at least."""
    exponent = _U64(0)
    for step in (32, 16, 8, 4, 2, 1):
        if number >> _U64(step):
            number >>= _U64(step)
            exponent += _U64(step)
    return exponent


@kernel
def _row_behind(suffixes, rank, row):
    """Psi of a row."""
    place = _U64(suffixes[row]) + _U64(1)
    return _U64(rank[place if place < _U64(len(suffixes)) else _U64(0)])


@kernel
def _measure(suffixes, rank, shift, begins):
    """Fill the first bit of the differences of each block, as ``PsiTables.begins`` but for its type."""
    count, place, before = _U64(len(suffixes)), _U64(0), _U64(0)
    for row in range(count):
        value = _row_behind(suffixes, rank, row)
        if row & ((_U64(1) << shift) - _U64(1)) == _U64(0):
            begins[row >> shift] = place
        else:
            place += _U64(2) * _power(value - before if value > before else value + count - before) + _U64(1)
        before = value
    begins[len(begins) - 1] = place


@kernel
def _write(suffixes, rank, shift, heads, bits):
    """Fill the first values of blocks, and the differences; ``bits`` are all zero before."""
    count, place, before = _U64(len(suffixes)), _U64(0), _U64(0)
    for row in range(count):
        value = _row_behind(suffixes, rank, row)
        if row & ((_U64(1) << shift) - _U64(1)) == _U64(0):
            heads[row >> shift] = value
        else:
            step = value - before if value > before else value + count - before
            tail = _power(step)
            place += tail
            bits[place >> _U64(6)] |= _U64(1) << (place & _U64(63))
            place += _U64(1)
            rest, inside = step - (_U64(1) << tail), place & _U64(63)
            bits[place >> _U64(6)] |= rest << inside
            if inside + tail > _U64(64):
                bits[(place >> _U64(6)) + _U64(1)] |= rest >> (_U64(64) - inside)
            place += tail
        before = value


class CompressedArrayCpu(CompressedArray):
    __doc__ = CompressedArray.__doc__
    backend = "cpu"

    def footprint(self, shape: Shape) -> Footprint:
        text = shape.target_residues + shape.targets + 1
        # Of each row some bits of its difference (4 for bases, up to 9 for residues of proteins in any order), a head
        # and a bit's number for each block, samples and marks. Before, suffixes are sorted, and turned into ranks.
        stays = int(text * (1.5 + 16 / self.options.block + 4 / self.options.sample))
        return Footprint(host=max(sorting_bytes(text), 9 * text + stays), stays=stays)

    def arrays(self, context: Context, text: np.ndarray, residues: Alphabet) -> dict[str, np.ndarray]:
        from seqloom.plugins.exact_match.suffix_array_cpu import suffix_array  # with kernels that who reads one spares

        block, sample, count = self.options.block, self.options.sample, len(text)
        suffixes = suffix_array(text, context.threads)
        context.cancellation.check()
        kind, shift = row_type(count), _U64(block.bit_length() - 1)
        rank, begins = np.empty(count, kind), np.empty(-(-count // block) + 1, np.uint64)
        _invert(suffixes, rank)
        _measure(suffixes, rank, shift, begins)
        context.cancellation.check()
        heads, bits = np.empty(len(begins) - 1, kind), np.zeros(int(begins[-1]) // 64 + 1 + SPARE, np.uint64)
        _write(suffixes, rank, shift, heads, bits)
        samples, marks = sampled(suffixes, sample, kind, context.threads)
        return {"smaller": smaller_symbols(text, residues), "heads": heads,
                "begins": begins.astype(bit_type(int(begins[-1]))), "bits": bits, "samples": samples, "marks": marks}
