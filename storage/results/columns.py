"""Hits and alignments as table rows and back: SQL types of their columns, absent values as NULL, extra columns."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.records import Alignments, Column, Hits, Ragged, Records
from ..duck.arrow import Nullable, Values
from ..duck.literals import identifier
from .sql_columns import base_names, sql_name

SQL_TYPES = {"i1": "TINYINT", "i4": "INTEGER", "i8": "BIGINT", "f4": "FLOAT", "f8": "DOUBLE", "bool": "BOOLEAN",
             "str": "VARCHAR", "path": "UINTEGER[]"}
"""SQL type by type of a record's column."""

BASE_TYPES = {"score": "DOUBLE", "query_frame": "SMALLINT", "target_frame": "SMALLINT"}
"""SQL types of base columns where the tables are wider than the records, so that extra columns may replace them."""

LEVELS: dict[str, type[Records]] = {"hit": Hits, "alignment": Alignments}


def stored_name(level: str, column: Column) -> str:
    """Name of a record's column in the table of its level. A base column that was declared anew keeps its name."""
    return column.name if column.name in base_names(level) else sql_name(column.name)


def stored_type(level: str, column: Column) -> str:
    if column.name in base_names(level) and column.name in BASE_TYPES:
        return BASE_TYPES[column.name]
    return SQL_TYPES[column.type]


def columns_of(records: Records, level: str) -> dict[str, tuple[str, Values]]:
    """Columns of ``records`` for ``arrow.insert``."""
    return {stored_name(level, c): (stored_type(level, c), _with_nulls(c, records.data[name]))
            for name, c in records.schema.items()}


def _with_nulls(column: Column, values: Any) -> Values:
    if column.type in ("str", "path") or not column.nullable:
        return values
    absent = np.isnan(values) if values.dtype.kind == "f" else values == -1
    return Nullable(values, absent) if absent.any() else values


def selected(level: str, column: Column) -> str:
    """What to select for ``records_from``: absent numbers as records have them, and of lists how long they are."""
    name = identifier(stored_name(level, column))
    if column.type == "path":
        return f"coalesce(len({name}), 0) AS {name}"
    absent = {"f": "'NaN'", "i": "-1", "b": "false"}.get(column.type[0])
    return f"coalesce({name}, {absent}) AS {name}" if absent else name


def records_from(level: str, extra: Sequence[Column], arrays: dict[str, Any]) -> Records:
    """The records that ``columns_of`` was given, from what ``fetchnumpy`` returns for ``selected``; paths as
    ``Ragged``."""
    kind = LEVELS[level]
    schema = {c.name: c for c in (*kind.columns, *extra)}
    return kind({name: _values(c, arrays[stored_name(level, c)]) for name, c in schema.items()}, extra)


def _values(column: Column, values: Any) -> Any:
    if isinstance(values, Ragged):
        return values
    if column.type == "str":
        return np.array(values.tolist(), object)  # None for NULL
    return values.astype(column.dtype)


def place_in_group(*keys: np.ndarray) -> np.ndarray:
    """i4[n]: how many rows with equal keys stand before and at each row (1…)."""
    count = len(keys[0])
    if not count:
        return np.empty(0, np.int32)
    order = np.lexsort(keys[::-1])  # stable
    new = np.zeros(count, bool)
    new[0] = True
    for key in keys:
        new[1:] |= np.diff(key[order]) != 0
    starts = np.flatnonzero(new)
    place = np.empty(count, np.int32)
    place[order] = np.arange(count) - np.repeat(starts, np.diff(np.append(starts, count))) + 1
    return place
