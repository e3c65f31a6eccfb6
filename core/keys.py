"""Columns as byte keys: bytes whose plain order is the wanted order, so that one kind of sorter sorts everything."""

from collections.abc import Sequence

import numpy as np

from .records import Ragged


def byte_keys(columns: Sequence[np.ndarray], descending: Sequence[bool] = ()) -> Ragged:
    """Fixed-width keys that order rows by ``columns``, the first column first.

    Args:
        columns: integer, bool or float arrays of one length. NaN sorts last in ascending order.
        descending: per column, whether larger values come first; all ascending when left out.

    Returns:
        Ragged u1 with one row per record: big-endian bytes, sign bit flipped (floats: all bits of negative numbers).
    """
    descending = descending or [False] * len(columns)
    parts = []
    for column, down in zip(columns, descending, strict=True):
        values = np.ascontiguousarray(column)
        values = values.astype(np.uint8 if values.dtype == bool else values.dtype.newbyteorder("="), copy=False)
        bits = values.dtype.itemsize * 8
        unsigned = np.dtype(f"u{values.dtype.itemsize}")
        if values.dtype.kind == "f":
            values = np.where(np.isnan(values), values.dtype.type(np.nan), values + 0)  # NaN of one sign; −0.0 is 0.0
            raw = values.view(unsigned)
            sign = unsigned.type(1 << (bits - 1))
            raw = np.where(raw & sign, ~raw, raw | sign)
        elif values.dtype.kind == "i":
            raw = values.view(unsigned) ^ unsigned.type(1 << (bits - 1))
        else:
            raw = values
        if down:
            raw = ~raw
        parts.append(raw.astype(unsigned.newbyteorder(">")).view(np.uint8).reshape(len(values), unsigned.itemsize))
    table = np.concatenate(parts, axis=1) if parts else np.empty((0, 0), np.uint8)
    return Ragged.even(table)
