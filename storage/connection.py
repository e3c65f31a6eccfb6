"""Opens DuckDB files: sequence databases and files of results.

Checks that a file is one of ours and of a revision that this version knows, makes the tables of new files, migrates old
ones, and turns DuckDB's errors into ours.
"""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from ..core.errors import DamagedError, LockedError, SchemaError, SeqloomError, StoreError
from .revisions import HEAD, KNOWN, READABLE

if TYPE_CHECKING:
    import duckdb

Kind = Literal["sequences", "results"]
WORDS = {"sequences": "sequence database", "results": "results store"}
RESULT_BLOCK = 1 << 16
"""Bytes of a block of a results file. Every column of every table takes one at least, and most runs fill few; DuckDB's
own blocks are four times as large."""


def connect(path: "str | Path", read_only: bool, kind: Kind, create: bool = False, memory: int | None = None,
            threads: int | None = None) -> "duckdb.DuckDBPyConnection":
    """Open a file of the given kind.

    Args:
        path: the file, or ":memory:" together with ``create``.
        read_only: open for reading; any number of processes can at the same time.
        kind: what the file must hold.
        create: make the tables where there is no file, or one without any table.
        memory: bytes for DuckDB's own buffers.
        threads: for DuckDB.

    Raises:
        LockedError: another process writes to it (or, for writing, has it open at all).
        SchemaError: not a DuckDB file, not one of ours, of the other kind, or of a revision that is not known.
        DamagedError: its header or tables can't be read.
        StoreError: there is no such file, or it can't be opened.
    """
    path = str(path)
    new = path == ":memory:" or not os.path.exists(path)
    if new and not create:
        raise StoreError(f"there is no {WORDS[kind]} {path}")
    if not new and not os.path.isfile(path):
        raise SchemaError(f"{path} is not a file; give the path of a {WORDS[kind]}")
    connection = _open(path, read_only, memory, threads, RESULT_BLOCK if new and kind == "results" else None)
    try:
        with translated(path):
            if new or (create and not _tables(connection)):
                make_tables(connection, kind)
                return connection
            revision = _revision(connection, path, kind)
        if revision == HEAD[kind] or (read_only and revision in READABLE[kind]):
            return connection
        if read_only:
            raise SchemaError(f"{path} was made by an earlier version of seqloom (revision {revision}, now "
                              f"{HEAD[kind]}); open it once for writing to bring it up to date")
    except BaseException:
        connection.close()
        raise
    connection.close()
    from .migrate import migrate

    with translated(path):
        migrate(path, kind, revision)
    return _open(path, read_only, memory, threads)


def check_kind(path: "str | Path", kind: Kind) -> None:
    """Refuse an existing file that isn't of this kind, or of a revision that isn't known; one in use passes.

    Raises:
        SchemaError, DamagedError, StoreError: as ``connect`` does.
    """
    path = str(path)
    if not os.path.isfile(path):
        raise SchemaError(f"{path} is not a file; give the path of a {WORDS[kind]}")
    try:
        connection = _open(path, True, None, None)
    except LockedError:
        return
    try:
        with translated(path):
            _revision(connection, path, kind)
    finally:
        connection.close()


def configure(connection: "duckdb.DuckDBPyConnection", memory: int | None = None, threads: int | None = None) -> None:
    """Settings of every connection: bounds; nothing from Python variables, from the network or to stdout by itself."""
    settings = ["autoinstall_known_extensions = false", "python_enable_replacements = false",
                "enable_progress_bar = false"]
    if memory is not None:
        settings.append(f"memory_limit = '{max(memory >> 10, 16 << 10)}KiB'")
    if threads is not None:
        settings.append(f"threads = {max(1, threads)}")
    connection.execute("; ".join(f"SET {s}" for s in settings))


def make_tables(connection: "duckdb.DuckDBPyConnection", kind: Kind) -> None:
    """All tables of a new file, stamped with the newest revision; one transaction."""
    from importlib.metadata import version

    sql = (Path(__file__).parent / f"{kind}.sql").read_text()
    stamp = (f"INSERT INTO seqloom_file VALUES ('{kind}', '{HEAD[kind]}', 'seqloom {version('seqloom')}');"
             f"INSERT INTO alembic_version VALUES ('{HEAD[kind]}');")
    connection.execute(f"BEGIN; {sql}; {stamp} COMMIT")


def _open(path: str, read_only: bool, memory: int | None, threads: int | None,
          block: int | None = None) -> "duckdb.DuckDBPyConnection":
    """``block``: bytes of a block of a new file."""
    from .native import duckdb

    with translated(path):
        connection = duckdb.connect(path, read_only=read_only and path != ":memory:",
                                    config={"default_block_size": str(block)} if block else {})
        configure(connection, memory, threads)
        return connection


def _tables(connection: "duckdb.DuckDBPyConnection") -> list[str]:
    found = connection.execute("SELECT table_name FROM duckdb_tables() WHERE database_name = current_database()")
    return [name for (name,) in found.fetchall()]


def _revision(connection: "duckdb.DuckDBPyConnection", path: str, kind: Kind) -> str:
    """Schema revision of a file; raises ``SchemaError`` unless it is of this kind and a known revision."""
    from .native import duckdb

    try:
        rows = connection.execute("SELECT kind, schema_revision, created_by FROM seqloom_file").fetchall()
    except (duckdb.CatalogException, duckdb.BinderException):  # no such table, or one of somebody else's
        raise SchemaError(f"{path} is a DuckDB file but not a {WORDS[kind]} of seqloom; give another path") from None
    if len(rows) != 1:
        raise DamagedError(f"{path}: its table seqloom_file has {len(rows)} rows instead of one; restore it from a "
                           "copy")
    found, revision, creator = rows[0]
    if found != kind:
        raise SchemaError(f"{path} is a {WORDS.get(found, found)}, not a {WORDS[kind]}; give another path")
    if revision not in KNOWN[kind]:
        raise SchemaError(f"{path} has schema revision {revision} (made by {creator}), which this version of seqloom "
                          f"does not know (newest: {HEAD[kind]}); use a newer seqloom")
    return revision


@contextmanager
def translated(path: "str | Path") -> Iterator[None]:
    """Turn errors of DuckDB about the file ``path`` into ours."""
    from .native import duckdb

    try:
        yield
    except duckdb.Error as error:
        raise as_ours(error, str(path)) from error


def as_ours(error: "duckdb.Error", path: str) -> SeqloomError:
    """The error of ours that says the same as DuckDB's ``error``."""
    from .native import duckdb

    text = str(error)
    has = text.lower().__contains__
    if has("could not set lock") or has("conflicting lock"):
        pid = re.search(r"PID (\d+)", text)
        who = f"process {pid[1]}" if pid else "another process"
        return LockedError(f"{path} is in use: {who} has it open; wait until it is done, or work on a copy")
    if has("different configuration"):
        return LockedError(f"{path} is open in this program in another way (for reading or for writing); close it "
                           "there first")
    if has("no space left") or has("disk full") or has("file too large") or has("disk quota") or has("enospc"):
        return StoreError(f"{path} can't be written: the disk is full; free some space or choose another place")
    if has("out of memory") or has("could not allocate"):
        return StoreError(f"{path}: DuckDB has too little memory ({_first_line(text)}); raise --memory")
    if has("not a valid duckdb database"):
        return SchemaError(f"{path} is not a DuckDB file; give the path of a file that seqloom made")
    if has("version number") and has("storage"):
        return SchemaError(f"{path} was written by a DuckDB whose format this one (duckdb {duckdb.__version__}) "
                           "can't read; update the package duckdb")
    if has("permission denied") or has("read-only file system") or has("read only"):
        return StoreError(f"{path} can't be opened or written: permission denied; check the rights of file and folder")
    if has("checksum") or has("corrupt") or has("could not read enough bytes") or isinstance(
            error, duckdb.InternalException | duckdb.FatalException | duckdb.SerializationException):
        return DamagedError(f"{path} is damaged ({_first_line(text)}); make it anew or restore it from a copy")
    return StoreError(f"{path}: {_first_line(text)}")


def lacks_table(error: StoreError) -> bool:
    """Whether a table isn't there that a statement names."""
    from .native import duckdb

    return isinstance(error.__cause__, duckdb.CatalogException)


def _first_line(text: str) -> str:
    return text.strip().splitlines()[0] if text.strip() else "unknown error"
