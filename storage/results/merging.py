"""How the rows of a run's file come into the store: table by table, in parts that DuckDB has room for."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from ..duck.connection import connect
from ..duck.durable import recover
from ..duck.literals import identifier, literal
from ..duck.revisions import HEAD
from .sql_columns import wider
from .views import create_views, drop_views, tables_of

if TYPE_CHECKING:
    import duckdb

VECTOR = 2048
"""Rows that DuckDB reads together."""
NODE_BYTES = 100
"""Of the packed text of a model for each of its nodes, about."""
BYTES_TOGETHER = 4 << 20
"""Of residues and texts of queries that are brought into the store at a time, about, where memory is limited."""


def copy_run(store: "duckdb.DuckDBPyConnection", run: str, memory: int | None) -> None:
    """Rows of the database ``run`` that is attached into the tables of the store.

    Args:
        memory: bytes that DuckDB may take.
    """
    number = store.execute("SELECT nextval('run_numbers')").fetchall()[0][0]
    levels = store.execute(f"SELECT DISTINCT level FROM {identifier(run)}.extra_columns").fetchall()
    changes = [change for (level,) in levels for change in _column_changes(store, run, level)]
    if changes:
        drop_views(store)
        store.execute(";".join(changes))
    for table in tables_of(store, run):
        source = f"{identifier(run)}.{table}"
        if table == "queries":
            _make_room(store, source, memory)
        for which in _in_parts(store, source) if table == "queries" and memory is not None else ("",):
            store.execute(f"INSERT INTO {table} BY NAME SELECT * REPLACE ({number} AS run) FROM {source} {which}")
    if changes:
        create_views(store)


def _make_room(store: "duckdb.DuckDBPyConnection", queries: str, memory: int | None) -> None:
    """Let DuckDB read a vector of models, which it does as a whole: what a search held is free by now."""
    if memory is None:
        return
    [(most,)] = store.execute(  # by lengths, since to ask for sizes is to read all
        f"SELECT coalesce(max(size), 0)::BIGINT FROM (SELECT sum(length) AS size FROM {queries} "
        f"WHERE lower IS NULL GROUP BY query // {VECTOR})").fetchall()
    if most * NODE_BYTES > BYTES_TOGETHER:
        store.execute(f"SET memory_limit = '{memory + 4 * NODE_BYTES * most >> 10}KiB'")


def _in_parts(store: "duckdb.DuckDBPyConnection", queries: str) -> list[str]:
    """WHERE clauses that part queries: DuckDB holds a vector of those it copies, and texts of models are long."""
    [(count, size)] = store.execute(
        f"SELECT count(*), coalesce(sum(octet_length(residues)), 0)::BIGINT FROM {queries}").fetchall()
    parts = min(count, -(-size // BYTES_TOGETHER))
    if parts < 2:
        return [""]
    bounds = [count * n // parts for n in range(1, parts)]
    between = [f"WHERE query >= {a} AND query < {b}" for a, b in pairwise(bounds)]
    return [f"WHERE query < {bounds[0]}", *between, f"WHERE query >= {bounds[-1]}"]


def _column_changes(store: "duckdb.DuckDBPyConnection", run: str, table: str) -> list[str]:
    """Statements that make room for columns that plugins added to a table of the attached database ``run``."""
    theirs, ours = (_columns(store, database, table) for database in (literal(run), "current_database()"))
    changes = []
    for name, kind in theirs.items():
        if name not in ours:
            changes.append(f"ALTER TABLE {table} ADD COLUMN {identifier(name)} {kind}")
        elif (both := wider(ours[name], kind, name)) != ours[name]:
            changes.append(f"ALTER TABLE {table} ALTER COLUMN {identifier(name)} TYPE {both}")
    return changes


def _columns(connection: "duckdb.DuckDBPyConnection", database: str, table: str) -> dict[str, str]:
    """SQL types of the columns of a table by name; ``database`` is an SQL expression."""
    return dict(connection.execute(
        f"SELECT column_name, data_type FROM duckdb_columns() WHERE database_name = {database} "
        f"AND schema_name = 'main' AND table_name = {literal(table)} ORDER BY column_index").fetchall())


@contextmanager
def attached(store: "duckdb.DuckDBPyConnection", path: Path) -> Iterator[None]:
    """The run's file under the name ``run_file``, brought to the present schema first."""
    recover(path)
    attach = f"ATTACH {literal(str(path))} AS run_file (READ_ONLY)"
    store.execute(attach)
    try:
        revision = store.execute("SELECT schema_revision FROM run_file.seqloom_file").fetchall()[0][0]
        if revision != HEAD["results"]:
            store.execute("DETACH run_file")
            connect(path, False, "results").close()
            store.execute(attach)
        yield
    finally:
        store.execute("DETACH DATABASE IF EXISTS run_file")


@contextmanager
def transaction(connection: "duckdb.DuckDBPyConnection") -> Iterator[None]:
    from ..duck.native import duckdb

    connection.execute("BEGIN")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        with suppress(duckdb.Error):
            connection.execute("ROLLBACK")
        raise
