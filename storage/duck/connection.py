"""Opens DuckDB files: databases of sequences and of models, and files of results.

Checks that a file is one of ours and of a revision that this version knows, makes the tables of new files, migrates old
ones, and turns DuckDB's errors into ours.
"""

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ...core.errors import DamagedError, LockedError, OptionError, SchemaError, SeqloomError, StoreError, concerning
from .creation import clear_unfinished, stray_log
from .durable import HEADERS, descriptor, log_of, recover
from .literals import identifier, literal, utf_8
from .revisions import HEAD, KNOWN, READABLE

if TYPE_CHECKING:
    import duckdb

Kind = Literal["sequences", "results", "models"]
WORDS = {"sequences": "sequence database", "results": "results store", "models": "model database"}
STORAGE_VERSION = "v1.4.0"
"""Of new files: the oldest in which a file has an identity that its log names too, so that no other log is taken for
its own."""
RESULT_BLOCK = 1 << 16
"""Bytes of a block of a results file. Every column of every table takes one at least, and most runs fill few; DuckDB's
own blocks are four times as large."""
OUR_VIEWS = {"sequences": ("lineages",), "models": ()}
"""Of databases, for other programs; seqloom itself reads none."""
_MAGIC = slice(8, 12)
"""Where a DuckDB file says that it is one."""


class BareError(SchemaError):
    """A DuckDB file without any table or view, or an empty file: what is left when making it was cut short."""


class OtherKindError(SchemaError):
    """A file of ours of another kind than the one that was wanted; ``kind`` is what it says of itself."""

    def __init__(self, message: str, kind: str) -> None:
        super().__init__(message)
        self.kind = kind


def connect(path: "str | Path", read_only: bool, kind: Kind, create: bool = False, memory: int | None = None,
            threads: int | None = None,
            fill: "Callable[[duckdb.DuckDBPyConnection], None] | None" = None) -> "duckdb.DuckDBPyConnection":
    """Open a file of the given kind.

    Args:
        path: the file, or ":memory:" together with ``create``.
        read_only: open for reading; any number of processes can at the same time.
        kind: what the file must hold.
        create: make the tables where there is no file, or one without any table.
        memory: bytes for DuckDB's own buffers.
        threads: for DuckDB.
        fill: called with the connection when the tables have been made, in the same transaction.

    Raises:
        LockedError: another process writes to it (or, for writing, has it open at all).
        BareError: there is nothing in it.
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
    if path != ":memory:":
        stray = stray_log(path) if new else ""
        if stray:
            raise StoreError(stray)
        recover(path)
        if not new:
            clear_unfinished(path)
    connection = _open(path, read_only, memory, threads, RESULT_BLOCK if new and kind == "results" else None, new)
    try:
        with translated(path):
            if not new:
                _confine(connection, path, kind, read_only)
            if new or (create and _is_bare(connection)):
                make_tables(connection, kind, fill)
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
    return connect(path, read_only, kind, memory=memory, threads=threads)


def _confine(connection: "duckdb.DuckDBPyConnection", path: str, kind: Kind, read_only: bool) -> None:
    """Before anything of a file is read: refuse what only looks like one of ours, and let DuckDB's own functions alone
    be called by what reads it. A database can reach no other file.

    Raises:
        SchemaError: see ``strange``; or a file to be written to defines functions of its own.
    """
    name = own_functions(connection)
    if kind in OUR_VIEWS:
        connection.execute("SET enable_external_access = false")
    what = strange(connection, name, kind)
    if not read_only:  # new tables go to the first place in the search path, which has to be the file itself
        macros = connection.execute("SELECT function_name FROM duckdb_functions() WHERE NOT internal LIMIT 1").fetchall(
            ) if kind in OUR_VIEWS and not what else []
        what = f"it defines the function {macros[0][0]}" if macros else what
        connection.execute("RESET search_path")
    if what:
        if "seqloom_file" not in what:
            _revision(connection, path, kind)  # it may be something else altogether
        raise SchemaError(f"{path} is not a {WORDS[kind]} as seqloom makes them: {what}; don't use it")


def own_functions(connection: "duckdb.DuckDBPyConnection") -> str:
    """Have functions looked up among DuckDB's own first, whatever an open file defines under their names.

    Returns:
        Name of the database of that file.
    """
    connection.execute("SET search_path = 'system.main'")
    [(name,)] = connection.execute("SELECT database_name FROM duckdb_databases() WHERE NOT internal "
                                   "ORDER BY database_oid LIMIT 1").fetchall()
    connection.execute(f"SET search_path = {literal(f'system.main,{identifier(name)}.main')}")
    return name


def strange(connection: "duckdb.DuckDBPyConnection", database: str, kind: Kind) -> str:
    """What in a database only looks like one of ours, so that to read it would run the SQL of whoever made it.

    A table is a view, or a column is computed, or of another type. Empty if there is nothing of the kind. The
    connection calls DuckDB's own functions (``own_functions``).
    """
    wanted, there = made_columns(kind), f"WHERE NOT internal AND database_name = {literal(database)}"
    for (view,) in connection.execute(f"SELECT view_name FROM duckdb_views() {there} "
                                      "ORDER BY view_name <> 'seqloom_file'").fetchall():
        if view not in OUR_VIEWS.get(kind, (view,)) or any(table == view for table, _ in wanted):
            return f"its table {view} is a view"
    for table, column, holds, default in connection.execute(
            f"SELECT table_name, column_name, data_type, column_default FROM duckdb_columns() {there}").fetchall():
        if default is not None:
            return f"its column {table}.{column} is computed"
        if kind in OUR_VIEWS and wanted.get((re.sub("[0-9]+", "0", table), column), holds) != holds:
            return f"its column {table}.{column} holds {holds}"
    return ""


@cache
def made_columns(kind: Kind) -> dict[tuple[str, str], str]:
    """Type of every column of files of the newest revision, by table and column."""
    found: dict[tuple[str, str], str] = {}
    for file in (Path(__file__).parents[1] / kind).glob("*.sql"):
        text = file.read_text(encoding="utf-8")
        for table, columns in re.findall(r"CREATE TABLE (\w+) \((.*?)\n\)", text, re.DOTALL):
            for name, holds in re.findall(r'^\t"?(\w+)"? (\w+)', columns, re.MULTILINE):
                found[table, name] = {"BYTEA": "BLOB"}.get(holds, holds)
    return found


def check_kind(path: "str | Path", kind: Kind, connection: "duckdb.DuckDBPyConnection | None" = None) -> None:
    """Refuse an existing file that isn't of this kind, or of a revision that isn't known; one in use passes.

    Args:
        connection: to another file, with which this one is looked at: DuckDB takes longer to start once more.

    Raises:
        SchemaError, DamagedError, StoreError: as ``connect`` does.
    """
    path = str(path)
    if not os.path.isfile(path):
        raise SchemaError(f"{path} is not a file; give the path of a {WORDS[kind]}")
    own = identifier(connection.execute("SELECT current_database()").fetchall()[0][0]) if connection else ""
    try:
        if connection is None:
            connection = _open(path, True, None, None)
        else:
            with translated(path):
                connection.execute(f"ATTACH {literal(path)} AS looked_at (READ_ONLY)")
    except LockedError:
        return
    try:
        with translated(path):
            if own:
                connection.execute("USE looked_at")
            _revision(connection, path, kind)
    finally:
        if own:
            connection.execute(f"USE {own}; DETACH looked_at")
        else:
            connection.close()


def unused(path: "str | Path") -> bool:
    """Whether no process has a file open. It need not be a DuckDB file, or one that can be read.

    Raises:
        OSError: this process may not write to it.
    """
    import fcntl

    if descriptor(path) is not None:
        return False
    with open(path, "r+b") as file:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


def configure(connection: "duckdb.DuckDBPyConnection", memory: int | None = None, threads: int | None = None) -> None:
    """Settings of every connection: bounds; nothing from Python variables, from the network or to stdout by itself."""
    settings = ["autoinstall_known_extensions = false", "python_enable_replacements = false",
                "enable_progress_bar = false"]
    if memory is not None:
        settings.append(f"memory_limit = '{max(memory >> 10, 16 << 10)}KiB'")
    if threads is not None:
        settings.append(f"threads = {max(1, threads)}")
    connection.execute("; ".join(f"SET {s}" for s in settings))


def make_tables(connection: "duckdb.DuckDBPyConnection", kind: Kind,
                fill: "Callable[[duckdb.DuckDBPyConnection], None] | None" = None) -> None:
    """All tables of a new file, stamped with the newest revision, and what ``fill`` adds; one transaction."""
    from ...core.entry_points import versions

    sql = (Path(__file__).parents[1] / kind / f"{kind}.sql").read_text(encoding="utf-8")
    stamp = (f"INSERT INTO seqloom_file VALUES ('{kind}', '{HEAD[kind]}', 'seqloom {versions('seqloom')['seqloom']}');"
             f"INSERT INTO alembic_version VALUES ('{HEAD[kind]}');")
    connection.execute(f"BEGIN; {sql}; {stamp}")
    if fill:
        fill(connection)
    connection.execute("COMMIT")


def _open(path: str, read_only: bool, memory: int | None, threads: int | None,
          block: int | None = None, create: bool = False) -> "duckdb.DuckDBPyConnection":
    """``block``: bytes of a block of a new file, where it is made."""
    from .native import duckdb

    config: dict[str, Any] = {"storage_compatibility_version": STORAGE_VERSION} if create else {}
    if block:
        config["default_block_size"] = str(block)
    shared = path != ":memory:" and descriptor(path) is not None
    with translated(path):
        try:
            connection = duckdb.connect(utf_8(path), read_only=read_only and path != ":memory:", config=config)
        except duckdb.ConnectionException:
            if not (shared and read_only):
                raise
            connection = duckdb.connect(path)  # this program has it open for writing: the same database, once more
        if not shared:  # else the settings are those of whoever opened it
            configure(connection, memory, threads)
        return connection


def opened_for_reading(path: "str | Path") -> "duckdb.DuckDBPyConnection":
    """A DuckDB file of whatever kind, of which nothing is known yet; errors as of ``connect``."""
    return _open(str(path), True, None, None)


def _is_bare(connection: "duckdb.DuckDBPyConnection") -> bool:
    # Of what was attached last; which database is the current one is changed by ``own_functions``.
    there = ("WHERE NOT internal AND database_name = (SELECT database_name FROM duckdb_databases() WHERE NOT internal "
             "ORDER BY database_oid DESC LIMIT 1)")
    return not connection.execute(f"SELECT 1 FROM duckdb_tables() {there} UNION ALL "
                                  f"SELECT 1 FROM duckdb_views() {there} LIMIT 1").fetchall()


def _revision(connection: "duckdb.DuckDBPyConnection", path: str, kind: Kind) -> str:
    """Schema revision of a file; raises ``SchemaError`` unless it is of this kind and a known revision."""
    from .native import duckdb

    try:
        rows = connection.execute("SELECT kind, schema_revision, created_by FROM seqloom_file").fetchall()
    except (duckdb.CatalogException, duckdb.BinderException):  # no such table, or one of somebody else's
        if _is_bare(connection):
            raise BareError(f"{path} is a DuckDB file without any table") from None
        raise SchemaError(f"{path} is a DuckDB file but not a {WORDS[kind]} of seqloom; give another path") from None
    if len(rows) != 1:
        raise DamagedError(f"{path}: its table seqloom_file has {len(rows)} rows instead of one; restore it from a "
                           "copy")
    found, revision, creator = rows[0]
    if found != kind:
        raise OtherKindError(f"{path} is a {WORDS.get(found, found)}, not a {WORDS[kind]}; give another path", found)
    if revision not in KNOWN[kind]:
        raise SchemaError(f"{path} has schema revision {revision} (made by {creator}), which this version of seqloom "
                          f"does not know (newest: {HEAD[kind]}); use a newer seqloom")
    return revision


def asked(connection: "duckdb.DuckDBPyConnection", query: str) -> "duckdb.DuckDBPyConnection":
    """The result of somebody's SQL: of the last of its statements.

    Raises:
        OptionError: there is nothing in it.
    """
    result = connection.execute(utf_8(query))
    if result is None:
        raise OptionError("there is no SQL statement to carry out")
    return result


@contextmanager
def translated(path: "str | Path") -> Iterator[None]:
    """Turn errors of DuckDB about the file ``path`` into ours, and name it in those of the system."""
    from .native import duckdb

    try:
        with concerning(str(path)):
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
    if has("different configuration") or has("unique file handle conflict"):
        return LockedError(f"{path} is open in this program in another way (for reading or for writing); close it "
                           "there first")
    if has("no space left") or has("disk full") or has("file too large") or has("disk quota") or has("enospc"):
        return StoreError(f"{path} can't be written: the disk is full; free some space or choose another place")
    if has("out of memory") or has("could not allocate") or has("failed to pin block"):
        return StoreError(f"{path}: DuckDB has too little memory ({_first_line(text)}); raise --memory")
    if has("wal does not match"):
        return StoreError(f"{log_of(path)} is the log of another file that was called {path} before; move it to where "
                          "that file is now, or delete it")
    if has("input/output error") or has("fsync failed") or has("failed to fsync"):
        return StoreError(f"{path} can't be written or read: input/output error, the disk fails "
                          f"({_first_line(text)})")
    if (has("not a valid duckdb database") or has("could not read enough bytes")) and _cut_short(path):
        return BareError(f"{path} is damaged: it is empty, or was cut off before anything was in it")
    if has("not a valid duckdb database"):
        return SchemaError(f"{path} is not a DuckDB file; give the path of a file that seqloom made")
    if has("version number") and has("storage"):
        return SchemaError(f"{path} was written by a DuckDB whose format this one (duckdb {duckdb.__version__}) "
                           "can't read; update the package duckdb")
    if has("permission denied") or has("read-only file system") or has("read only"):
        return StoreError(f"{path} can't be opened or written: permission denied; check the rights of file and folder")
    if has("checksum") or has("corrupt") or has("metadata block") or has("could not read enough bytes") or isinstance(
            error, duckdb.InternalException | duckdb.FatalException | duckdb.SerializationException):
        return DamagedError(f"{path} is damaged ({_first_line(text)}); make it anew or restore it from a copy")
    return StoreError(f"{path}: {_first_line(text)}")


def _cut_short(path: str) -> bool:
    """Whether a file is the beginning of a DuckDB file, without a log that may go with it, or empty."""
    if not os.path.isfile(path) or os.path.getsize(path) >= HEADERS or os.path.exists(log_of(path)):
        return False
    begin = Path(path).read_bytes()[:_MAGIC.stop]
    return not any(begin) or begin[_MAGIC] == b"DUCK"


def lacks_table(error: Exception) -> bool:
    """Whether a table isn't there that a statement names: DuckDB's error, or that of ours that it was turned into."""
    from .native import duckdb

    return any(isinstance(one, duckdb.CatalogException) for one in (error, error.__cause__))


def _first_line(text: str) -> str:
    """What DuckDB says; of a database that it gave up on after an error, that error."""
    original = re.search('Original error: "(.+)"', text)
    return original[1] if original else text.strip().splitlines()[0] if text.strip() else "unknown error"
