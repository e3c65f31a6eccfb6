"""SQLAlchemy's view of DuckDB, as much of it as schemas and their migrations need.

The packages that offer a whole one bind their users to some releases of DuckDB. It has a name of its own, so that it
gets in nobody's way.
"""

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from alembic.ddl.impl import DefaultImpl
from sqlalchemy.dialects import registry
from sqlalchemy.engine.default import DefaultDialect
from sqlalchemy.pool import NullPool
from sqlalchemy.sql.compiler import GenericTypeCompiler

from .column_types import UInteger

NAME = "seqloom_duckdb"
_TYPES: dict[str, Any] = {
    "BIGINT": sa.BigInteger, "BLOB": sa.LargeBinary, "BOOLEAN": sa.Boolean, "DOUBLE": sa.Double, "FLOAT": sa.REAL,
    "INTEGER": sa.Integer, "JSON": sa.JSON, "SMALLINT": sa.SmallInteger, "TIMESTAMP": sa.DateTime,
    "UINTEGER": UInteger, "UUID": sa.Uuid, "VARCHAR": sa.String}


class _Cursor:
    """Results are taken whole: while one is open DuckDB may keep a table from being changed."""

    arraysize, rowcount, lastrowid = 1, -1, None

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self.description: Any = None
        self._rows: list[Any] = []

    def execute(self, statement: str, parameters: Sequence[Any] = ()) -> None:
        self._connection.execute(statement, list(parameters) or None)
        columns = self._connection.description or []
        self._rows = self._connection.fetchall()[::-1] if columns else []
        self.description = [(name, str(kind), *rest) for name, kind, *rest in columns] or None

    def executemany(self, statement: str, parameters: Sequence[Sequence[Any]]) -> None:
        for some in parameters:
            self.execute(statement, some)

    def fetchone(self) -> Any:
        return self._rows.pop() if self._rows else None

    def fetchmany(self, size: int = 1) -> list[Any]:
        return [self._rows.pop() for _ in range(min(size, len(self._rows)))]

    def fetchall(self) -> list[Any]:
        return self.fetchmany(len(self._rows))

    def close(self) -> None:
        self._rows = []


class _Connection:
    """All that is done until ``commit`` is one transaction, as SQLAlchemy wants it."""

    def __init__(self, database: str) -> None:
        import duckdb

        self.native, self._begun = duckdb.connect(database), False

    def cursor(self) -> _Cursor:
        if not self._begun:
            self.native.execute("BEGIN TRANSACTION")
            self._begun = True
        return _Cursor(self.native)

    def _end(self, how: str) -> None:
        if self._begun:
            self._begun = False
            self.native.execute(how)

    def commit(self) -> None:
        self._end("COMMIT")

    def rollback(self) -> None:
        self._end("ROLLBACK")

    def close(self) -> None:
        self.native.close()


class _Driver:
    """What SQLAlchemy asks a module of the database interface for."""

    paramstyle = "qmark"
    Binary = bytes

    @staticmethod
    def connect(database: str) -> _Connection:
        return _Connection(database)


class _TypeNames(GenericTypeCompiler):
    def visit_ARRAY(self, kind: Any, **words: Any) -> str:
        return f"{self.process(kind.item_type, **words)}[]"

    def visit_JSON(self, kind: Any, **words: Any) -> str:
        return "JSON"

    def visit_datetime(self, type_: Any, **kw: Any) -> str:
        return "TIMESTAMP"

    def visit_uuid(self, type_: Any, **kw: Any) -> str:
        return "UUID"  # SQLAlchemy 2.0.0 doesn't ask the dialect


class Dialect(DefaultDialect):
    """The dialect: tables of columns without keys, defaults or indexes."""

    name, driver = NAME, "duckdb"
    type_compiler_cls = _TypeNames
    default_paramstyle = "qmark"
    supports_alter = supports_sequences = supports_native_boolean = supports_native_uuid = True
    supports_statement_cache = True
    supports_sane_rowcount = postfetch_lastrowid = False

    @classmethod
    def import_dbapi(cls) -> Any:
        import duckdb

        _Driver.Error = duckdb.Error  # type: ignore[attr-defined]
        return _Driver

    @classmethod
    def get_pool_class(cls, url: Any) -> Any:
        return NullPool

    def create_connect_args(self, url: Any) -> Any:
        return [url.database or ":memory:"], {}

    def get_driver_connection(self, connection: Any) -> Any:
        return connection.native

    def _get_default_schema_name(self, connection: Any) -> str:
        return "main"

    def get_table_names(self, connection: Any, schema: Any = None, **words: Any) -> list[str]:
        return [name for (name,) in connection.exec_driver_sql(
            "SELECT table_name FROM duckdb_tables() WHERE NOT internal AND NOT temporary "
            "AND database_name = current_database() ORDER BY ALL")]

    def has_table(self, connection: Any, table_name: str, schema: Any = None, **words: Any) -> bool:
        return table_name in self.get_table_names(connection)

    def get_columns(self, connection: Any, table_name: str, schema: Any = None, **words: Any) -> Any:
        rows = connection.exec_driver_sql(
            "SELECT column_name, data_type, is_nullable FROM duckdb_columns() WHERE table_name = ? "
            "AND database_name = current_database() ORDER BY column_index", (table_name,))
        return [{"name": name, "type": _type(kind), "nullable": nullable, "default": None}
                for name, kind, nullable in rows]

    def _nothing(self, *_: Any, **words: Any) -> Any:
        return []

    get_indexes = get_unique_constraints = get_foreign_keys = get_check_constraints = get_view_names = _nothing

    def get_pk_constraint(self, *_: Any, **words: Any) -> Any:
        return {"name": None, "constrained_columns": []}

    def get_table_comment(self, *_: Any, **words: Any) -> Any:
        return {"text": None}


def _type(text: str) -> Any:
    """A column's type by DuckDB's name of it."""
    return sa.ARRAY(_type(text[:-2])) if text.endswith("[]") else _TYPES.get(text, sa.types.NullType)()


class _Alembic(DefaultImpl):
    """What Alembic has to know."""

    __dialect__ = NAME
    transactional_ddl = True


registry.register(NAME, __name__, "Dialect")
