"""Whether the values of a stored compressed suffix array make sense: kernels follow them without looking.

One pass over each array, as for the others (``stored_cpu.py``).
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from seqloom.core.index import Index
from seqloom.core.kernels.jit import kernel
from seqloom.core.sequences import SequenceBatch

from .compressed_array import SPARE, bit_type, psi_tables, smaller_symbols
from .compressed_search_cpu import next_step
from .fm_index import row_type
from .stored_cpu import sound_samples, unlike
from .symbols import target_text

_U64 = np.uint64


def wrong_compressed_array(batch: SequenceBatch, index: Index, parameters: Mapping[str, Any]) -> str:
    """Of ``compressed_array.PsiTables``: every row and place that look-ups come to lies inside, and they all end."""
    text, _ = target_text(batch, acgt_only=False)
    rows, kind = len(text), row_type(len(text))
    begins = index.arrays.get("begins", np.zeros(1, np.uint64))
    last = int(begins[-1]) if begins.ndim == 1 and len(begins) else 0
    words = last // 64 + 1 + SPARE
    what = unlike(index, parameters, {
        "smaller": (np.dtype(np.int64), (len(smaller_symbols(text, batch.alphabet)),)),
        "heads": (kind, (-(-rows // parameters["block"]),)),
        "begins": (bit_type(last), (-(-rows // parameters["block"]) + 1,)), "bits": (np.dtype(np.uint64), (words,)),
        "samples": (kind, (-(-rows // parameters["sample"]),)), "marks": (np.dtype(np.uint64), (rows // 64 + 1, 2))})
    if what:
        return what
    tables = psi_tables(index)
    if not np.array_equal(tables.smaller, smaller_symbols(text, batch.alphabet)):
        return "its counts of symbols make no sense"
    if not _sound_psi(tables.smaller, tables.heads, tables.begins, tables.bits, tables.shift):
        return "its differences make no sense"
    if not sound_samples(tables.samples, tables.marks, _U64(rows), _U64(parameters["sample"])):
        return "its places make no sense"
    return ""


@kernel
def _sound_psi(smaller, heads, begins, bits, shift):
    """Whether each block has as many bits as it says, and the values are rows that ascend where rows begin with one
    symbol, and of which none is there twice, as far as their sum and that of their squares tell."""
    count, symbol, before = _U64(smaller[-1]), 0, _U64(0)
    total, squares, wanted = _U64(0), _U64(0), _U64(0)
    for block in range(_U64(len(heads))):
        place, value = _U64(begins[block]), _U64(heads[block])
        first = block << shift
        for row in range(first, min(count, first + (_U64(1) << shift))):
            if row > first:
                if (place >> _U64(6)) + _U64(SPARE) > _U64(len(bits)):
                    return False
                step, behind = next_step(bits, place)
                if behind <= place or behind > place + _U64(127) or step >= count:
                    return False
                place, value = behind, value + step
                if value >= count:
                    value -= count
            if value >= count:
                return False
            begun = False
            while row >= _U64(smaller[symbol + 1]):
                symbol, begun = symbol + 1, True
            if value <= before and row > _U64(0) and not begun:
                return False
            before = value
            total, squares, wanted = total + value - row, squares + value * value, wanted + row * row
        if place != _U64(begins[block + _U64(1)]):
            return False
    return begins[0] == 0 and total == _U64(0) and squares == wanted


__all__ = ["wrong_compressed_array"]
