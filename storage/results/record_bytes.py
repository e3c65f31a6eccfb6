"""Records as bytes and back: how partial results of a run are kept until its batch is complete.

A line of JSON that describes the columns, then the arrays one behind the other in the byte order of this format
(little endian). Strings are UTF-8 behind their lengths; −1 is the length of an absent one.
"""

import json
from typing import Any

import numpy as np

from ...core.records import RECORD_TYPES, Alignments, Column, Hits, Ragged, Records


def to_bytes(records: Records) -> bytes:
    """``records`` with all their columns, and the children of hits."""
    parts: list[bytes] = []
    header = _describe(records, parts)
    if isinstance(records, Hits):
        header["alignments"] = _describe(records.alignments, parts)
    return b"".join([json.dumps(header).encode(), b"\n", *parts])


def from_bytes(data: bytes) -> Records:
    """The records that ``to_bytes`` was given."""
    end = data.index(b"\n")
    header = json.loads(data[:end])
    records, place = _restore(header, data, end + 1)
    if "alignments" in header:
        children, _ = _restore(header["alignments"], data, place)
        assert isinstance(records, Hits) and isinstance(children, Alignments)
        return records.with_alignments(children)
    return records


def _describe(records: Records, parts: list[bytes]) -> dict[str, Any]:
    sizes: dict[str, list[int]] = {}
    for name, column in records.schema.items():
        arrays = [np.ascontiguousarray(a) for a in _arrays(column, records.data[name])]
        sizes[name] = [len(a) for a in arrays]
        parts += [a.astype(a.dtype.newbyteorder("<"), copy=False).tobytes() for a in arrays]
    extra = [[c.name, c.type, c.doc, c.nullable] for c in records.extra]
    return {"type": type(records).__name__, "rows": len(records), "extra": extra, "sizes": sizes}


def _arrays(column: Column, values: Any) -> list[np.ndarray]:
    if column.type == "path":
        return [values.offsets.astype(np.int64), values.values.astype(np.uint32)]
    if column.type == "str":
        texts = [None if v is None else str(v).encode() for v in values.tolist()]
        lengths = np.array([-1 if t is None else len(t) for t in texts], np.int64)
        return [lengths, np.frombuffer(b"".join(t for t in texts if t), np.uint8)]
    return [values]


def _restore(header: dict[str, Any], data: bytes, place: int) -> tuple[Records, int]:
    kind = RECORD_TYPES[header["type"]]
    extra = [Column(*entry) for entry in header["extra"]]
    schema = {c.name: c for c in (*kind.columns, *extra)}
    columns: dict[str, Any] = {}
    for name, sizes in header["sizes"].items():
        column = schema[name]
        ragged: dict[str, tuple[Any, ...]] = {"path": (np.int64, np.uint32), "str": (np.int64, np.uint8)}
        dtypes = ragged.get(column.type, (column.dtype,))
        arrays = []
        for dtype, size in zip(dtypes, sizes, strict=True):
            little = np.dtype(dtype).newbyteorder("<")
            arrays.append(np.frombuffer(data, little, size, place).astype(dtype))
            place += size * little.itemsize
        columns[name] = (Ragged(*arrays) if column.type == "path" else
                         _strings(*arrays) if column.type == "str" else arrays[0])
    return kind(columns, extra), place


def _strings(lengths: np.ndarray, text: np.ndarray) -> np.ndarray:
    raw, place = text.tobytes(), 0
    values = np.empty(len(lengths), object)
    for row, length in enumerate(lengths.tolist()):
        values[row] = None if length < 0 else raw[place : place + length].decode()
        place += max(length, 0)
    return values
