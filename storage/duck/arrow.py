"""Rows into tables, and out: columns go to DuckDB as they are in memory, as an Arrow stream; a few rows as text.

With duckdb 1.5 any bound parameter, registered array or Arrow table imports pandas and pyarrow where they are
installed, 0.2 s in every process; a search of one query is over in less. The bare capsule of a stream (the Arrow
PyCapsule interface) imports nothing, and needs no parsing either.
"""

import warnings
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.classes import dataclass
from ...core.records import Ragged
from ...core.text_rows import TextRows
from .connection import asked
from .literals import identifier, literal

if TYPE_CHECKING:
    import duckdb
    import pyarrow


@dataclass(frozen=True)
class Nullable:
    """Numbers of which those are NULL for which bool[n] ``absent`` says so. Numpy's own arrays of the kind take 8 ms to
    import."""

    numbers: np.ndarray
    absent: np.ndarray

    def __len__(self) -> int:
        return len(self.numbers)


Values = Sequence[Any] | np.ndarray | Ragged | Nullable

FEW, SHORT = 500, 16 << 10
"""Values, and characters, bytes or items in a column, up to which text is the quicker way: it needs no import."""

_NOTHING: dict[str, Any] = {"VARCHAR": "", "JSON": "", "BLOB": b""}
"""SQL types of texts and bytes, with what stands in the place of an absent one."""


def insert(connection: "duckdb.DuckDBPyConnection", table: str, columns: Mapping[str, tuple[str, Values]],
           constants: Mapping[str, Any] | None = None) -> None:
    """Append rows to a table.

    Args:
        table: name of the table.
        columns: by name, the SQL type and the values, equally many of each: lists with None for NULL, arrays,
            ``Nullable`` ones, or a ``Ragged``: of bytes for BLOB, of UTF-8 for VARCHAR, else for a list type, and its
            empty rows are NULL.
        constants: values that are the same in all rows, by name.
    """
    rows = len(next(iter(columns.values()))[1])
    if not rows:
        return
    constants = constants or {}
    names = ", ".join(map(identifier, (*constants, *columns)))
    fixed = list(map(literal, constants.values()))
    if rows * len(columns) <= FEW and all(_short(*column) for column in columns.values()):
        lists = [map(literal, _plain(*column)) for column in columns.values()]
        texts = ("(" + ", ".join([*fixed, *row]) + ")" for row in zip(*lists, strict=True))
        connection.execute(f"INSERT INTO {table} ({names}) VALUES {', '.join(texts)}")
        return
    from .native import complete

    complete()
    connection.register("new_rows", _stream(rows, columns))
    try:
        values = ", ".join([*fixed, *map(identifier, columns)])
        connection.execute(f"INSERT INTO {table} ({names}) SELECT {values} FROM new_rows")
    finally:
        connection.unregister("new_rows")


def fetched(connection: "duckdb.DuckDBPyConnection", query: str) -> "pyarrow.Table":
    """The rows that a query gives, or the last of several.

    Raises:
        OptionError: there is nothing in it.
    """
    return table_of(asked(connection, query))


def table_of(result: "duckdb.DuckDBPyConnection") -> "pyarrow.Table":
    """The rows of a statement that was carried out, none of which have been fetched."""
    from .native import complete

    complete()
    with warnings.catch_warnings():
        # DuckDB 2 would rather have them as a relation, which not every statement gives.
        warnings.filterwarnings("ignore", message="Arrow output on a DB-API result", category=UserWarning)
        return result.to_arrow_table()


def texts_of(texts: Sequence[str]) -> "Sequence[str] | Ragged":
    """A column of texts for ``insert``: many of them as they are in memory."""
    if isinstance(texts, TextRows) and (texts.rows.values < 128).all():
        return texts.rows
    return list(texts)


def _short(kind: str, values: Values) -> bool:
    """Whether a column may be written as text: it is no longer than that is worth, and SQL has a text for it."""
    if isinstance(values, Ragged):
        return len(values.values) <= SHORT and (kind not in _NOTHING or kind == "BLOB" or bool(values.values.all()))
    if kind not in _NOTHING or isinstance(values, Nullable):
        return True
    there = [v for v in values if v is not None]
    return sum(map(len, there)) <= SHORT and (kind == "BLOB" or not any("\0" in text for text in there))


def _plain(kind: str, values: Values) -> Sequence[Any]:
    """Python's values of a column."""
    if isinstance(values, Ragged) and kind in _NOTHING:
        rows = [row.tobytes() for row in values]
        return rows if kind == "BLOB" else [row.decode() for row in rows]
    if isinstance(values, Ragged):
        return [row.tolist() or None for row in values]
    if isinstance(values, Nullable):
        return [None if absent else number
                for number, absent in zip(values.numbers.tolist(), values.absent.tolist(), strict=True)]
    return values.tolist() if isinstance(values, np.ndarray) else values


def _stream(rows: int, columns: Mapping[str, tuple[str, Values]]) -> Any:
    """The capsule of a stream of one batch, which can be read once."""
    import nanoarrow
    from nanoarrow.c_array_stream import CArrayStream

    children = {name: _array(kind, values) for name, (kind, values) in columns.items()}
    schema = nanoarrow.struct({name: nanoarrow.Schema(child.schema) for name, child in children.items()})
    batch = nanoarrow.c_array_from_buffers(schema, rows, [None], null_count=0, children=list(children.values()))
    return CArrayStream.from_c_arrays([batch], batch.schema).__arrow_c_stream__()


def _array(kind: str, values: Values) -> Any:
    """An Arrow array of ``values``, of the Arrow type nearest to their own; DuckDB casts it to the column's."""
    import nanoarrow

    if isinstance(values, Ragged) and kind in _NOTHING:
        type_ = nanoarrow.large_binary() if kind == "BLOB" else nanoarrow.large_string()
        return _bytes(type_, values.offsets, values.values, np.zeros(len(values), np.bool_))
    if isinstance(values, Ragged):
        return _lists(kind.removesuffix("[]"), values)
    if isinstance(values, Nullable):
        return _numbers(values.numbers, values.absent)
    if isinstance(values, np.ndarray) and values.dtype != object:
        return _numbers(values, np.zeros(len(values), np.bool_))
    values = list(values)
    absent = np.zeros(len(values), np.bool_)
    if None in values:
        absent = np.array([v is None for v in values])
        values = [_NOTHING.get(kind, 0) if v is None else v for v in values]
    return _texts(kind, values, absent) if kind in _NOTHING else _numbers(np.array(values), absent)


def _lists(kind: str, rows: Ragged) -> Any:
    import nanoarrow

    items = _array(kind, rows.values)
    buffers = [_there(np.diff(rows.offsets) == 0), np.ascontiguousarray(rows.offsets, np.int64)]
    return nanoarrow.c_array_from_buffers(nanoarrow.large_list(nanoarrow.Schema(items.schema)), len(rows), buffers,
                                          children=[items])


def _texts(kind: str, values: list[Any], absent: np.ndarray) -> Any:
    import nanoarrow

    lengths: Iterable[int] = map(len, values)
    if kind == "BLOB":
        type_, data = nanoarrow.large_binary(), b"".join(values)
    else:
        text = "".join(values)
        type_, data = nanoarrow.large_string(), text.encode()
        if len(data) != len(text):
            lengths = (len(v.encode()) for v in values)
    return _bytes(type_, np.fromiter(accumulate(lengths, initial=0), np.int64, len(values) + 1), data, absent)


def _bytes(type_: Any, offsets: np.ndarray, data: Any, absent: np.ndarray) -> Any:
    import nanoarrow

    buffers = [_there(absent), np.ascontiguousarray(offsets, np.int64), data]
    return nanoarrow.c_array_from_buffers(type_, len(absent), buffers)


def _numbers(values: np.ndarray, absent: np.ndarray) -> Any:
    import nanoarrow

    if values.dtype == np.bool_:
        type_, data = nanoarrow.bool_(), np.packbits(values, bitorder="little")
    else:
        type_, data = getattr(nanoarrow, values.dtype.name)(), np.ascontiguousarray(values)
    return nanoarrow.c_array_from_buffers(type_, len(values), [_there(absent), data])


def _there(absent: np.ndarray) -> np.ndarray | None:
    """Arrow's validity bits where bool[n] ``absent`` says which values are NULL; None where none is."""
    return np.packbits(~absent, bitorder="little") if absent.any() else None
