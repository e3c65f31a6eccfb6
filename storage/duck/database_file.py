"""What databases of sequences and of models have in common: an open DuckDB file, read by several threads at once."""

import logging
import os
import stat
import threading
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from ...core.errors import SchemaError, StoreError
from ...core.output_files import begins_database
from . import durable
from .connection import (
    STORAGE_VERSION,
    Kind,
    configure,
    connect,
    make_tables,
    opened_for_reading,
    own_functions,
    translated,
)
from .literals import literal

if TYPE_CHECKING:
    import duckdb

READING_MEMORY = 256 << 20
"""Bytes for them without one, so that DuckDB doesn't keep what was read into arrays."""
_log = logging.getLogger("seqloom")

_open_here: set[str] = set()
"""Files that this process has open: a handle of our own on one, when closed, would drop DuckDB's lock on it."""


_left: "list[duckdb.DuckDBPyConnection] | None" = None
"""Connections of files that were read and stay open until the process ends, where ``leave_open`` was called."""


def leave_open() -> None:
    """Have files that are only read stay open until the process ends, which is when its command has been carried out.

    To close one DuckDB has the C library look through all memory for what the system can have back: 0.02 s and more.
    """
    global _left
    _left = []


def is_database(path: "str | Path") -> bool:
    """Whether ``path`` is a DuckDB file, of whatever content."""
    if os.path.realpath(path) in _open_here:
        return True
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            return False  # of a pipe nobody else could read what is read here
        with open(path, "rb") as file:
            return begins_database(file.read(32))
    except (OSError, ValueError):
        return False


def kind_of(path: "str | Path") -> str:
    """What a DuckDB file says that it holds, such as "models"; "" where it says nothing, or is none.

    Raises:
        LockedError, DamagedError: as ``connect`` does.
    """
    from .native import duckdb

    if not is_database(path):
        return ""
    durable.recover(path)
    try:
        connection = opened_for_reading(path)
    except SchemaError:
        return ""
    with closing(connection):
        name = own_functions(connection)
        connection.execute("SET enable_external_access = false")
        try:
            [(tables,)] = connection.execute("SELECT count(*) FROM duckdb_tables() WHERE NOT internal AND table_name = "
                                             f"'seqloom_file' AND database_name = {literal(name)}").fetchall()
            kinds = connection.execute("SELECT kind FROM seqloom_file LIMIT 1").fetchall() if tables else []
        except duckdb.Error:
            return ""
    return str(kinds[0][0]) if kinds else ""


class DatabaseFile:
    """An open database. Its methods may be called from several threads.

    Attributes:
        kind: what such files hold.
        path: the file.
        read_only: whether it was opened for reading.
    """

    kind: ClassVar[Kind]
    path: Path
    read_only: bool

    def __init__(self, path: Path, open_file: "Callable[[], duckdb.DuckDBPyConnection]", read_only: bool) -> None:
        self.path, self.read_only, self._open = path, read_only, open_file
        self._opened: duckdb.DuckDBPyConnection | None = None
        self._lock = threading.RLock()
        self._real = os.path.realpath(path)

    @property
    def _connection(self) -> "duckdb.DuckDBPyConnection":
        if self._opened is None:
            self._opened = self._open()
            _open_here.add(self._real)
        return self._opened

    @classmethod
    def open(cls, path: "str | Path", read_only: bool = True, memory: int | None = None,
             threads: int | None = None) -> Self:
        """Open an existing file; see ``connection.connect`` for the errors."""
        raise NotImplementedError

    def info(self) -> dict[str, Any]:
        """What it says of itself, for people."""
        raise NotImplementedError

    def close(self) -> None:
        """Release the file. May be called more than once."""
        if self._opened is not None and self.read_only and _left is not None:
            _left.append(self._opened)
            self._opened = None
        elif self._opened is not None:
            self._opened.close()
            _open_here.discard(self._real)
        self._open = partial(_closed, self.path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def bring_in(self, what: str) -> None:
        """Bring what was committed into the file. If that can't be done it is there all the same: then a warning says
        ``what`` was done, and the database is open for reading from now on."""
        try:
            self.checkpoint()
        except StoreError as error:
            _log.warning("%s: %s, but stand in %s yet, to be kept beside it (%s)", self.path, what,
                         durable.log_of(self.path).name, error)
            self.close()
            self._opened, self.read_only = None, True
            self._open = partial(for_reading, self.path, self.kind, None, None)

    def checkpoint(self) -> None:
        """Bring what was committed into the file, so that nothing stays in its log.

        Raises:
            StoreError: the disk is full, for instance. What was committed stays in the log, and nothing is lost; close
                the database then.
        """
        with self._lock, translated(self.path):
            durable.checkpoint(self._connection, self.path)

    def _rollback(self) -> None:
        from .native import duckdb

        with suppress(duckdb.Error):  # the transaction may be gone already, with all that it did
            self._connection.execute("ROLLBACK")

    def _run(self, sql: str) -> Sequence[tuple[Any, ...]]:
        with self._lock, translated(self.path):
            return self._connection.execute(sql).fetchall()

    def _run_apart(self, sql: str) -> Sequence[tuple[Any, ...]]:
        """What ``_run`` gives, beside other statements."""
        with self._lock:
            cursor = self._connection.cursor()
        with closing(cursor), translated(self.path):
            return cursor.execute(sql).fetchall()

    def _columns(self, sql: str) -> dict[str, np.ndarray]:
        with self._lock, translated(self.path):
            return {n: np.asarray(c) for n, c in self._connection.execute(sql).fetchnumpy().items()}


def begun(part: Path, path: Path, kind: Kind, memory: int | None,
          threads: int | None) -> "duckdb.DuckDBPyConnection":
    """A new file ``part``, which will be at ``path``, with all its tables and in a transaction; to be ended by
    ``ENDING``."""
    from .native import duckdb

    with translated(path):
        connection = duckdb.connect()
        try:
            configure(connection, memory, threads)
            connection.execute(f"SET temp_directory = {literal(f'{part}.tmp')}")
            # Nothing needs to survive a crash before the file has its name, so nothing is logged ahead.
            connection.execute(f"ATTACH {literal(str(part))} AS made (STORAGE_VERSION "
                               f"{literal(STORAGE_VERSION)}, RECOVERY_MODE no_wal_writes); USE made")
            make_tables(connection, kind)
            connection.execute("BEGIN")
        except BaseException:
            connection.close()
            raise
        return connection


SAVING = "COMMIT; CHECKPOINT made; BEGIN"
"""Brings what was written to a new file to disk at once, so that it leaves memory; nobody sees the file yet."""
ENDING = "COMMIT; CHECKPOINT made; USE memory; DETACH made"
"""The last statements on a new file."""


def for_reading(path: Path, kind: Kind, memory: int | None, threads: int | None) -> "duckdb.DuckDBPyConnection":
    return connect(path, True, kind, memory=memory or READING_MEMORY, threads=threads)


def for_writing(path: Path, kind: Kind, memory: int | None, threads: int | None) -> "duckdb.DuckDBPyConnection":
    connection = connect(path, False, kind, memory=memory, threads=threads)
    with translated(path):
        durable.hold(connection)
    return connection


def _closed(path: Path) -> "duckdb.DuckDBPyConnection":
    raise StoreError(f"{path} was closed; open it again")
