"""Values as SQL text, and rows into tables, without bound parameters.

With duckdb 1.5 any bound parameter, registered object or replacement scan imports pandas and pyarrow where they are
installed, 0.2 s in every process. A search of one query is over in less. So statements on the search path carry their
values as text, which DuckDB parses fast enough for some thousand rows; larger tables go through Arrow. A few large
blobs, such as a genome, and arrays of numbers are handed over as they are, while pandas is kept away.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.records import Ragged

if TYPE_CHECKING:
    import duckdb

ARROW_FROM = 5_000
"""Rows from which importing Arrow pays."""
BYTES_FROM = 4 << 20
"""Bytes of text and binary values from which it does."""

Values = Sequence[Any] | np.ndarray | Ragged


def literal(value: Any) -> str:
    """``value`` (None, bool, int, float, str, bytes, or a list of such) as SQL text."""
    if value is None:
        return "NULL"
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    if isinstance(value, str):
        return "'" + value.replace("'", "''").replace("\0", "�") + "'"
    if isinstance(value, bytes | bytearray | memoryview):
        return f"from_hex('{value.hex()}')"
    if isinstance(value, int | np.integer):
        return str(int(value))
    if isinstance(value, float | np.floating):
        return f"'{float(value)!r}'::DOUBLE"
    if isinstance(value, list | tuple | np.ndarray):
        return "[" + ",".join(map(literal, value)) + "]"
    raise TypeError(f"no SQL literal for {type(value).__name__}")


def identifier(name: str) -> str:
    """``name`` quoted for SQL."""
    return '"' + name.replace('"', '""') + '"'


def insert(connection: "duckdb.DuckDBPyConnection", table: str, columns: Mapping[str, tuple[str, Values]],
           constants: Mapping[str, Any] | None = None) -> None:
    """Append rows to a table.

    Args:
        table: name of the table.
        columns: by name, the SQL type and the values, equally many of each: lists with None for NULL, arrays, or a
            ``Ragged`` for a list type, whose empty rows are NULL.
        constants: values that are the same in all rows, by name.
    """
    rows = len(next(iter(columns.values()))[1])
    if not rows:
        return
    constants = constants or {}
    names = ", ".join(map(identifier, (*constants, *columns)))
    fixed = [literal(v) for v in constants.values()]
    text, blob = (sum(sum(map(len, filter(None, v))) for t, v in columns.values() if t in kinds)
                  for kinds in (("VARCHAR", "JSON"), ("BLOB",)))
    if rows < ARROW_FROM and text < BYTES_FROM:
        large = {n: v for n, (t, v) in columns.items() if t == "BLOB" and blob >= BYTES_FROM}
        parts = [f"unnest({_list_text(t, v)}) AS {identifier(n)}" for n, (t, v) in columns.items() if n not in large]
        chosen = ", ".join([*fixed, *map(identifier, columns)])
        if large:
            _insert_beside(connection, f"INSERT INTO {table} ({names}) SELECT {chosen}", parts, large)
        else:
            connection.execute(f"INSERT INTO {table} ({names}) SELECT {chosen} FROM (SELECT {', '.join(parts)})")
        return
    if all(_is_plain(t, v) for t, v in columns.values()):
        _insert_numbers(connection, f"INSERT INTO {table} ({names})", fixed, columns)
        return
    import pyarrow

    rows_to_insert = pyarrow.table({n: _arrow(t, v) for n, (t, v) in columns.items()})
    connection.register("rows_to_insert", rows_to_insert)
    chosen = ", ".join([*fixed, *(f"CAST({identifier(n)} AS {t})" for n, (t, _) in columns.items())])
    try:
        connection.execute(f"INSERT INTO {table} ({names}) SELECT {chosen} FROM rows_to_insert")
    finally:
        connection.unregister("rows_to_insert")


def _is_plain(kind: str, values: Values) -> bool:
    """Whether a column is of numbers alone, some of them absent, or of lists of one number at most."""
    if isinstance(values, Ragged):
        return int(np.diff(values.offsets).max(initial=0)) <= 1
    return isinstance(values, np.ndarray) and values.dtype.kind in "biuf" and kind not in ("VARCHAR", "JSON", "BLOB")


def _insert_numbers(connection: "duckdb.DuckDBPyConnection", statement: str, fixed: Sequence[str],
                    columns: Mapping[str, tuple[str, Values]]) -> None:
    """Carry out an INSERT of plain columns, whose arrays are handed over as they are."""
    from .connection import without_pandas

    arrays: dict[str, np.ndarray] = {}
    chosen = [*fixed]
    for number, (kind, values) in enumerate(columns.values()):
        name, there = f"c{number}", None
        if isinstance(values, Ragged):
            there = np.diff(values.offsets) > 0
            arrays[name] = np.zeros(len(there), values.values.dtype)
            arrays[name][there] = values.values
            value = f"[{name}]"
        else:
            there = ~np.ma.getmaskarray(values) if isinstance(values, np.ma.MaskedArray) else None
            arrays[name], value = np.ascontiguousarray(np.ma.getdata(values)), name
        if there is not None and not there.all():
            arrays[f"{name}_there"] = there
            value = f"CASE WHEN {name}_there THEN {value} END"
        chosen.append(f"CAST({value} AS {kind})")
    with without_pandas():
        connection.register("new_numbers", arrays)
        try:
            connection.execute(f"{statement} SELECT {', '.join(chosen)} FROM new_numbers")
        finally:
            connection.unregister("new_numbers")


def _insert_beside(connection: "duckdb.DuckDBPyConnection", statement: str, parts: Sequence[str],
                   blobs: Mapping[str, Values]) -> None:
    """Carry out an INSERT from columns that are SQL text, and from blobs that are handed over as they are."""
    from .connection import without_pandas

    objects = {}
    for name, values in blobs.items():
        objects[name] = np.empty(len(values), object)
        objects[name][:] = list(values)
    source = f"(SELECT {', '.join(parts)}) POSITIONAL JOIN new_blobs" if parts else "new_blobs"
    with without_pandas():
        connection.register("new_blobs", objects)
        try:
            connection.execute(f"{statement} FROM {source}")
        finally:
            connection.unregister("new_blobs")


def _list_text(kind: str, values: Values) -> str:
    """One SQL list of all values. A list of numbers is parsed fastest as one text that is cast."""
    if isinstance(values, Ragged):
        rows = ",".join(str(row.tolist()) if len(row) else "NULL" for row in values)
        return f"'[{rows}]'::{kind}[]"
    plain = values.tolist() if isinstance(values, np.ndarray) else list(values)
    if kind in ("VARCHAR", "JSON", "BLOB", "TIMESTAMP", "UUID"):
        return f"{literal(plain)}::{kind}[]"
    if kind.endswith("[]"):
        rows = ",".join("NULL" if row is None else str(list(row)) for row in plain)
        return f"'[{rows}]'::{kind}[]"
    if type(values) is np.ndarray and values.dtype != object:  # neither a mask nor None among them
        return f"'{plain}'::{kind}[]"
    return "'[" + ",".join("NULL" if v is None else repr(v) for v in plain) + f"]'::{kind}[]"


def _arrow(kind: str, values: Values) -> Any:
    import pyarrow

    if isinstance(values, Ragged):
        flat = pyarrow.array(values.values)
        empty = np.append(np.diff(values.offsets) == 0, False)
        offsets = pyarrow.array(values.offsets, mask=empty)
        return pyarrow.LargeListArray.from_arrays(offsets, flat)
    types = {"VARCHAR": pyarrow.large_string(), "JSON": pyarrow.large_string(), "BLOB": pyarrow.large_binary(),
             "DOUBLE": pyarrow.float64(), "FLOAT": pyarrow.float32(), "BIGINT": pyarrow.int64(),
             "INTEGER": pyarrow.int32(), "SMALLINT": pyarrow.int16(), "TINYINT": pyarrow.int8(),
             "BOOLEAN": pyarrow.bool_(), "INTEGER[]": pyarrow.large_list(pyarrow.int32())}
    return pyarrow.array(values, types.get(kind), from_pandas=False)
