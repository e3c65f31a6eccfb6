"""Values as SQL text, and rows into tables, without bound parameters.

With duckdb 1.5 any bound parameter or registered Arrow table imports pandas and pyarrow where they are installed, 0.2 s
in every process. A search of one query is over in less. So statements on the search path carry their values as text,
which DuckDB parses fast enough for some hundred rows. Of larger tables, arrays and texts are handed over as they are,
while pandas is kept away; lists of Python values remain text in smaller tables, in large ones they go through Arrow.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.records import Ragged

if TYPE_CHECKING:
    import duckdb

HANDED_OVER_FROM = 100
"""Rows from which handing over arrays is faster than text."""
ARROW_FROM = 50_000
"""Rows from which importing Arrow pays."""
BYTES_FROM = 4 << 20
"""Bytes of text from which Arrow pays."""
BLOB_BYTES_FROM = 1 << 18
"""Bytes of binary values from which handing them over is faster."""

ANALYSED = 1000
"""Values that DuckDB looks at where they aren't all texts."""

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
    handed = {n: v for n, (t, v) in columns.items()
              if (t == "BLOB" and blob >= BLOB_BYTES_FROM) or (rows >= HANDED_OVER_FROM and _can_be_handed_over(t, v))}
    if (rows < ARROW_FROM and text < BYTES_FROM) or len(handed) == len(columns):
        parts = [f"unnest({_list_text(t, v)}) AS {identifier(n)}" for n, (t, v) in columns.items() if n not in handed]
        _insert(connection, f"INSERT INTO {table} ({names}) SELECT", [*fixed, *map(identifier, columns)], parts, handed)
        return
    import pyarrow

    rows_to_insert = pyarrow.table({n: _arrow(t, v) for n, (t, v) in columns.items()})
    connection.register("rows_to_insert", rows_to_insert)
    chosen = ", ".join([*fixed, *(f"CAST({identifier(n)} AS {t})" for n, (t, _) in columns.items())])
    try:
        connection.execute(f"INSERT INTO {table} ({names}) SELECT {chosen} FROM rows_to_insert")
    finally:
        connection.unregister("rows_to_insert")


def _can_be_handed_over(kind: str, values: Values) -> bool:
    if isinstance(values, Ragged):
        return values.values.dtype == np.uint32
    if isinstance(values, np.ndarray):
        there = values.compressed() if isinstance(values, np.ma.MaskedArray) else values
        return values.dtype.kind in "iub" or (values.dtype.kind == "f" and not np.isnan(there).any())
    return kind in ("VARCHAR", "JSON", "BLOB")


def _insert(connection: "duckdb.DuckDBPyConnection", statement: str, chosen: list[str], parts: Sequence[str],
            handed: Mapping[str, Values]) -> None:
    """Carry out an INSERT from columns that are SQL text, and from values that are handed over as they are."""
    source = f"(SELECT {', '.join(parts)})"
    if not handed:
        connection.execute(f"{statement} {', '.join(chosen)} FROM {source}")
        return
    from .connection import without_pandas

    arrays: dict[str, np.ndarray] = {"row number": np.arange(len(next(iter(handed.values()))))}
    tables = {"handed_over": arrays}
    joins = ""
    for name, values in handed.items():
        if isinstance(values, Ragged) and int(np.diff(values.offsets).max(initial=0)) <= 1:
            arrays[name] = np.zeros(len(values), values.values.dtype)
            there = np.diff(values.offsets) > 0
            arrays[name][there] = values.values
            chosen[chosen.index(identifier(name))] = _unless_absent(name, ~there, f"[{identifier(name)}]", arrays)
            continue
        if isinstance(values, Ragged):
            # DuckDB is slow at lists but for those it makes itself: out of items that are numbered to keep their order.
            tables[f"list {name}"] = {
                "row number": np.repeat(arrays["row number"], np.diff(values.offsets)),
                "item": np.arange(len(values.values), dtype=np.uint64) << np.uint64(32) | values.values}
            joins += (f""" LEFT JOIN (SELECT "row number", list_transform(list_sort(list(item)), lambda item: """
                      f"""(item & 4294967295)::UINTEGER) AS {identifier(name)} FROM {identifier(f"list {name}")} """
                      """GROUP BY "row number") USING ("row number")""")
            continue
        if isinstance(values, np.ma.MaskedArray):  # DuckDB looks at the mask of some types only
            chosen[chosen.index(identifier(name))] = _unless_absent(name, np.ma.getmaskarray(values), identifier(name),
                                                                    arrays)
        if isinstance(values, np.ndarray):
            arrays[name] = np.ascontiguousarray(np.ma.getdata(values))
        else:
            arrays[name] = np.empty(len(values), object)
            arrays[name][:] = list(values)
    both = f"(SELECT * FROM {source} POSITIONAL JOIN handed_over)" if parts else "handed_over"
    binary = any(isinstance(v, bytes) for values in handed.values() if isinstance(values, list) for v in values)
    with without_pandas():
        # DuckDB looks at a sample of the values to learn their type, which takes long; without, they are texts.
        connection.execute(f"SET pandas_analyze_sample = {ANALYSED if binary else 0}")
        for name, table in tables.items():
            connection.register(name, table)
        try:
            connection.execute(f"""{statement} {', '.join(chosen)} FROM {both}{joins} ORDER BY "row number\"""")
        finally:
            for name in tables:
                connection.unregister(name)


def _unless_absent(name: str, absent: np.ndarray, value: str, arrays: dict[str, np.ndarray]) -> str:
    """SQL of ``value``, or NULL where bool[n] ``absent``, which is added to the arrays handed over."""
    arrays[f"no {name}"] = absent
    return f"CASE WHEN NOT {identifier(f'no {name}')} THEN {value} END"


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
