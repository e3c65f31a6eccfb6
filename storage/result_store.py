"""The results store: all finished runs of a folder in one DuckDB file, and the files of runs beside it.

A run writes to a file of its own, ``<store>.runs/<id>.duckdb``; an empty file ``<id>.done`` beside it says that the run
is finished and waits to be merged. Whoever finishes a run tries the store's lock without waiting. If another process
has it, that process looks into the folder again after letting the lock go, so that no finished run stays behind when
many end at once. A run is merged in one transaction and its file is deleted afterwards; a file whose run is in the
store already is only deleted. Who has just finished a run merges it while its file is still open, where the store is
free; the file needs no mark then.
"""

import logging
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from ..core.errors import LockedError, OptionError, ResumeError, SeqloomError, StoreError, UnknownNameError
from .connection import check_kind, connect, translated
from .literals import identifier, literal
from .report import run_description
from .result_rows import wider
from .result_views import create_views, drop_views
from .revisions import HEAD
from .run_file import DONE_SUFFIX, SUFFIX, RunFile, mark_done, mark_of, new_run_id, remove

if TYPE_CHECKING:
    import duckdb
    import pyarrow

T = TypeVar("T")

TABLES = ("runs", "run_databases", "run_slots", "queries", "targets", "hit", "alignment", "extra_columns")
"""Tables whose rows belong to a run; the others hold progress and stay in run files."""

FORMATS = {"tsv": "FORMAT csv, HEADER, DELIMITER '\t'", "csv": "FORMAT csv, HEADER", "parquet": "FORMAT parquet",
           "jsonl": "FORMAT json"}
HEADER_BYTES = 12288
"""Size of a DuckDB file in which nothing has been checkpointed yet."""
NEW_SUFFIX = ".new"
"""End of the name of a store that is being made."""
LEVELS = {"hsps": "qnumber, rank, number", "hits": "qnumber, rank", "best_hits": "qnumber",
          "coverage": "qnumber, snumber"}
"""Views that can be exported, and the order of their rows."""

LEFTOVER_SECONDS = 60.0
"""Age from which files that say nothing of themselves are taken for leftovers of killed processes."""
State = Literal["stored", "pending", "incomplete", "running"]
_log = logging.getLogger("seqloom")


@dataclass(frozen=True)
class Located:
    """Where a run is.

    Attributes:
        id: unique identifier.
        state: "stored" in the store; "pending", finished and not merged yet; "incomplete", can be resumed; "running",
            held by a living process.
        path: the store or the run's own file.
        number: in the store; None elsewhere.
    """

    id: str
    state: State
    path: Path
    number: int | None = None


class ResultStore:
    """A results store by its path. No file is open between calls, and none is made before there is a run to keep."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.runs_folder = Path(f"{path}.runs")

    def check(self) -> None:
        """Refuse a path at which no results can be kept, before any work is done for them.

        Raises:
            StoreError: its folder isn't there.
            SchemaError: it is something else than a results store, or one of a newer version.
        """
        if not self.path.parent.is_dir():
            raise StoreError(f"{self.path} can't be made: there is no folder {self.path.parent}; make it or choose "
                             "another place with --results")
        if self.path.exists():
            check_kind(self.path, "results")

    # ---- merging

    def merge_pending(self, age: float = LEFTOVER_SECONDS) -> list[str]:
        """Merge every finished run into the store, unless another process has the store open.

        Args:
            age: seconds since anything was written to it from which a file is looked into that no process holds and
                that isn't marked: its process was killed. 0 for all of them, which takes time when many run.

        Returns:
            Identifiers of the runs merged by this call. Runs that can't be merged stay as they are and are warned of.
        """
        self._mark_leftovers(age)
        merged: list[str] = []
        refused: set[Path] = set()
        while pending := [p for p in self._pending() if p not in refused]:
            try:
                connection = self._open_for_writing()
            except LockedError:
                break
            try:
                for path in pending:
                    try:
                        merged += self._merge(connection, path)
                    except SeqloomError as error:
                        refused.add(path)
                        if path.exists():  # else it has just been deleted
                            _log.warning("run %s stays in %s: %s", path.stem, path, error)
            finally:
                connection.close()
        with suppress(OSError):
            self.runs_folder.rmdir()  # only an empty folder goes
        return merged

    def take(self, run: RunFile) -> bool:
        """Merge a finished run whose file is open here, which spares reading it from disk; its file is deleted.

        Returns:
            False where that can't be: the run's file is as it was, to be closed and merged as any other.
        """
        from .native import duckdb

        own, connection = run.database, run.connection
        try:
            if not self.path.exists():
                self._open_for_writing().close()
            connection.execute(f"ATTACH {literal(str(self.path))} AS results_store; USE results_store")
        except (SeqloomError, duckdb.Error):  # in use, or not as it should be: who merges finds out and says so
            return False
        merged = False
        with suppress(SeqloomError), translated(self.path):
            is_ours = [("results", HEAD["results"])]
            if connection.execute("SELECT kind, schema_revision FROM seqloom_file").fetchall() == is_ours:
                with _transaction(connection):
                    self._copy(connection, own)
                merged = True
        with suppress(duckdb.Error):
            connection.execute(f"USE {identifier(own)}; DETACH results_store")
        if merged:
            run.discard()
        return merged

    def _pending(self) -> list[Path]:
        """Files of finished runs. Marks whose files are gone are deleted on the way."""
        found = []
        for mark in self._files(DONE_SUFFIX):
            path = mark.with_suffix(SUFFIX)
            if path.exists():
                found.append(path)
            else:
                remove(path)
        return found

    def _mark_leftovers(self, age: float) -> None:
        """Tidy up after processes that were killed: mark finished runs, delete files in which none was begun yet."""
        for path in (*self._files(SUFFIX), *self._files(NEW_SUFFIX)):
            with suppress(SeqloomError, OSError):
                if mark_of(path).exists() or time.time() - _written(path) < age:
                    continue
                run = {} if path.suffix == NEW_SUFFIX else self._beside(path)
                if run and run["state"] == "pending":
                    mark_done(path)
                elif run == {} and time.time() - _written(path) > LEFTOVER_SECONDS:  # else its maker may still be at it
                    remove(path)

    def _merge(self, store: "duckdb.DuckDBPyConnection", path: Path) -> list[str]:
        run_id = path.stem
        known = f"SELECT 1 FROM runs WHERE id = {literal(run_id)}::UUID"
        if store.execute(known).fetchall():
            remove(path)
            return []
        with translated(path), _attached(store, path), translated(self.path), _transaction(store):
            self._copy(store, "run_file")
        remove(path)
        return [run_id]

    def _copy(self, store: "duckdb.DuckDBPyConnection", run: str) -> None:
        """Rows of the database ``run`` that is attached into the tables of the store."""
        number = store.execute("SELECT nextval('run_numbers')").fetchall()[0][0]
        levels = store.execute(f"SELECT DISTINCT level FROM {identifier(run)}.extra_columns").fetchall()
        changes = [change for (level,) in levels for change in _column_changes(store, run, level)]
        if changes:
            drop_views(store)
            store.execute(";".join(changes))
        for table in TABLES:
            store.execute(f"INSERT INTO {table} BY NAME SELECT * REPLACE ({number} AS run) "
                          f"FROM {identifier(run)}.{table}")
        if changes:
            create_views(store)

    def _open_for_writing(self) -> "duckdb.DuckDBPyConnection":
        """The store, made where there is none: under another name first, so that no half-made file is ever seen."""
        if not self.path.exists():
            new = self.runs_folder / f"{new_run_id()}{NEW_SUFFIX}"
            try:
                self.runs_folder.mkdir(exist_ok=True)
                connect(new, False, "results", create=True).close()
                _link(new, self.path)
            except OSError as error:
                raise StoreError(f"{self.path} can't be made: {error.strerror}; choose another place with "
                                 "--results") from None
            finally:
                remove(new)
        return connect(self.path, False, "results")

    # ---- looking

    def runs(self) -> list[dict[str, Any]]:
        """All runs, oldest first: run (number or None), id, state, pipeline, started, seconds, queries, command, …

        Of a running one only what its file's name says is known.
        """
        found = [run for run in map(self._beside, self._files(SUFFIX)) if run]
        if self.path.exists():
            stored = self._reading(_all_runs)
            known = {r["id"] for r in stored}
            found = stored + [r for r in found if r["id"] not in known]
        return sorted(found, key=lambda r: r["id"])

    def locate(self, reference: str | int) -> Located:
        """Find a run by its number, the beginning of its identifier, or "last".

        Raises:
            UnknownNameError: there is no such run, or several.
        """
        runs = self.runs()
        text = str(reference)
        if text == "last":
            found = runs[-1:]
        else:
            found = [r for r in runs if r["run"] is not None and str(r["run"]) == text] or [
                r for r in runs if len(text) >= 4 and r["id"].startswith(text.lower())]
        if not found:
            known = f"it has {len(runs)} runs; 'seqloom runs list' shows them" if runs else "there are no runs"
            raise UnknownNameError(f"run in {self.path} ({known}):", text)
        if len(found) > 1:
            raise UnknownNameError("run (several begin so)", text, [r["id"] for r in found])
        run = found[0]
        return Located(run["id"], run["state"], Path(run["file"]), run["run"])

    def show(self, reference: str | int) -> dict[str, Any]:
        """Everything that is known of a run, with ``slots``: what each did."""
        where = self.locate(reference)
        if where.state == "running":
            return {"id": where.id, "state": "running", "started": _started(where.id), "file": str(where.path)}
        with self._opened(where) as (connection, number):
            run = run_description(connection, number)
            result = connection.execute(f"SELECT * EXCLUDE (run) FROM run_slots WHERE run = {number} ORDER BY position")
            names = [d[0] for d in result.description or ()]
            run["slots"] = [dict(zip(names, row)) for row in result.fetchall()]
            for level in ("hit", "alignment"):
                run[f"{level}s"] = connection.execute(
                    f"SELECT count(*) FROM {level} WHERE run = {number}").fetchall()[0][0]
        return {**run, "state": where.state, "file": str(where.path)}

    @contextmanager
    def open_run(self, reference: str | int,
                 wait: float = 10.0) -> "Iterator[tuple[duckdb.DuckDBPyConnection, int]]":
        """A read-only connection to the file in which a run is now, and the run's number there.

        Args:
            wait: seconds to try again while the file is in use by another process.

        Raises:
            UnknownNameError, LockedError
        """
        with self._patiently(lambda: self._enter(self.locate(reference)), wait) as opened:
            yield opened

    def open_incomplete(self, reference: str | int) -> RunFile:
        """The file of an interrupted run, to go on with it.

        Raises:
            ResumeError: the run is complete or still running.
        """
        end = time.monotonic() + 2.0
        while True:
            where = self.locate(reference)
            if where.state in ("stored", "pending"):
                raise ResumeError(f"run {where.id} is complete; there is nothing to resume (seqloom runs write gives "
                                  "its output)")
            if where.state == "incomplete":
                with suppress(LockedError):
                    run_file = RunFile.open(where.path)
                    if not run_file.done:
                        return run_file
                    run_file.close()
            elif time.monotonic() > end:  # someone who only looks into the file lets it go sooner
                raise ResumeError(f"run {where.id} is still running; wait for it, or end its process first")
            time.sleep(0.05)

    # ---- changing

    def delete(self, reference: str | int) -> str:
        """Delete all rows of a run, or its file when it isn't in the store; returns its identifier.

        Raises:
            LockedError: the run is still running, or the store is in use.
        """
        where = self.locate(reference)
        if where.number is None:
            connect(where.path, False, "results").close()  # refused while a process holds it
            remove(where.path)
            return where.id
        connection = self._open_for_writing()
        try:
            with translated(self.path), _transaction(connection):
                for table in TABLES:
                    connection.execute(f"DELETE FROM {table} WHERE run = {where.number}")
        finally:
            connection.close()
        return where.id

    # ---- asking

    def sql(self, query: str, attach: Sequence[str | Path] | None = None, wait: float = 10.0) -> "pyarrow.Table":
        """Rows of an SQL query over the tables and views of the store.

        Args:
            query: one statement, or several of which the last gives the rows.
            attach: sequence databases that are attached READ_ONLY under the names of their files; None for those of
                all runs that are still there.
            wait: seconds to try again while the store is in use by another process.

        Raises:
            StoreError: the query is wrong; the message is DuckDB's.
        """
        from .native import duckdb

        if not self.path.exists():
            raise StoreError(f"there is no results store {self.path}; run a search, or give another one with --results")
        connection = self._patiently(lambda: connect(self.path, True, "results"), wait)
        try:
            self._attach_databases(connection, attach)
            return connection.execute(query).to_arrow_table()
        except duckdb.Error as error:
            raise StoreError(f"SQL: {error}") from None
        finally:
            connection.close()
            self.merge_pending()  # runs that ended while the store was in use here

    def export(self, reference: str | int, format: str, out: str | Path = "-", level: str = "hsps") -> int:
        """Write rows of a run to a file.

        Args:
            format: "tsv" or "csv" (with a line of column names), "parquet", or "jsonl" (an object per line).
            out: path; "-" is standard output.
            level: "hsps" (alignments), "hits", "best_hits" or "coverage".

        Returns:
            The number of rows.

        Raises:
            UnknownNameError: unknown format or level.
            StoreError: the file can't be written.
        """
        if format not in FORMATS:
            raise UnknownNameError("export format", format, list(FORMATS))
        if level not in LEVELS:
            raise UnknownNameError("level", level, list(LEVELS))
        if format == "parquet" and str(out) == "-" and sys.stdout.isatty():
            raise OptionError("parquet is no format for a terminal; give a file")
        with self.open_run(reference) as (connection, number), tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "rows") if str(out) == "-" else str(out)
            with translated(path):
                rows = connection.execute(
                    f"COPY (SELECT * EXCLUDE (run, qnumber, snumber) FROM {level} WHERE run = {number} "
                    f"ORDER BY {LEVELS[level]}) TO {literal(path)} ({FORMATS[format]})").fetchall()[0][0]
            if str(out) == "-":
                with open(path, "rb") as written:
                    shutil.copyfileobj(written, sys.stdout.buffer)
                sys.stdout.flush()
        return rows

    # ---- inside

    def _files(self, suffix: str) -> list[Path]:
        """Files beside the store whose names end so, oldest run first."""
        try:
            names = os.listdir(self.runs_folder)
        except FileNotFoundError:
            return []
        return [self.runs_folder / n for n in sorted(names) if n.endswith(suffix)]

    def _beside(self, path: Path) -> dict[str, Any] | None:
        """What is known of a run by its own file; empty if it holds none yet, None if it has gone or can't be read."""
        try:
            connection = connect(path, True, "results")
        except LockedError:
            return {"run": None, "id": path.stem, "state": "running", "started": _started(path.stem),
                    "file": str(path)}
        except StoreError as error:
            with suppress(FileNotFoundError):
                if path.stat().st_size <= HEADER_BYTES:
                    return {}
                _log.warning("left out: %s", error)
            return None
        try:
            rows = _all_runs(connection)
        finally:
            connection.close()
        for run in rows:
            return {**run, "run": None, "state": "pending" if run["state"] == "done" else "incomplete",
                    "file": str(path)}
        return {}

    def _reading(self, read: Callable[["duckdb.DuckDBPyConnection"], list[dict[str, Any]]]) -> list[dict[str, Any]]:
        connection = self._patiently(lambda: connect(self.path, True, "results"), 10.0)
        try:
            return [{**row, "state": "stored", "file": str(self.path)} for row in read(connection)]
        finally:
            connection.close()

    def _enter(self, where: Located) -> "_Opened":
        if where.state == "running":
            raise LockedError(f"run {where.id} is still running")
        try:
            return _Opened(connect(where.path, True, "results"), where.number or 0)
        except StoreError:
            if where.path.exists():
                raise
            raise LockedError(f"run {where.id} is just being merged into {self.path}; try again") from None

    def _opened(self, where: Located) -> "_Opened":
        return self._patiently(lambda: self._enter(where), 10.0)

    def _patiently(self, act: Callable[[], T], wait: float) -> T:
        """Try again while a file is in use for up to ``wait`` seconds."""
        end = time.monotonic() + wait
        while True:
            try:
                return act()
            except LockedError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.05)

    def _attach_databases(self, connection: "duckdb.DuckDBPyConnection", attach: Sequence[str | Path] | None) -> None:
        if attach is None:
            rows = connection.execute("SELECT DISTINCT path FROM run_databases ORDER BY path").fetchall()
            paths = [p for (p,) in rows if p and p.endswith(".duckdb") and os.path.exists(p)]
        else:
            paths = [str(p) for p in attach]
        taken = {"main", "temp", "system", self.path.stem}
        for path in paths:
            stem = "".join(c if c.isalnum() else "_" for c in Path(path).stem)
            name = next(n for n in (stem, *(f"{stem}_{i}" for i in range(2, 10_000))) if n not in taken)
            taken.add(name)
            try:
                with translated(path):
                    connection.execute(f"ATTACH {literal(path)} AS {identifier(name)} (READ_ONLY)")
            except StoreError as error:
                if attach is not None:
                    raise
                _log.warning("database %s is not attached: %s", path, error)


class _Opened:
    """A connection and a run's number on it, as a context manager that closes it."""

    def __init__(self, connection: "duckdb.DuckDBPyConnection", number: int) -> None:
        self.connection, self.number = connection, number

    def __enter__(self) -> "tuple[duckdb.DuckDBPyConnection, int]":
        return self.connection, self.number

    def __exit__(self, *_: object) -> None:
        self.connection.close()


def _link(new: Path, path: Path) -> None:
    """Give the file ``new`` the name ``path`` unless there is one already."""
    try:
        os.link(new, path)
    except FileExistsError:
        pass
    except OSError:  # a file system without hard links
        os.rename(new, path)


def _written(path: Path) -> float:
    """When anything was last written to a run's file (seconds since the epoch)."""
    log = Path(f"{path}.wal")
    return max(p.stat().st_mtime for p in (path, log) if p is path or p.exists())


def _started(run_id: str) -> datetime | None:
    """Time of creation that a version 7 UUID holds (UTC, without zone as in the tables)."""
    with suppress(ValueError):
        return datetime.fromtimestamp(int(run_id.replace("-", "")[:12], 16) / 1000, UTC).replace(tzinfo=None)
    return None


def _all_runs(connection: "duckdb.DuckDBPyConnection") -> list[dict[str, Any]]:
    names = ("run", "id", "state", "pipeline", "started", "finished", "seconds", "queries", "backend", "version",
             "command", "error")
    chosen = ", ".join("id::VARCHAR" if n == "id" else n for n in names)
    return [dict(zip(names, row)) for row in connection.execute(f"SELECT {chosen} FROM runs").fetchall()]


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
def _attached(store: "duckdb.DuckDBPyConnection", path: Path) -> Iterator[None]:
    """The run's file under the name ``run_file``, brought to the present schema first."""
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
def _transaction(connection: "duckdb.DuckDBPyConnection") -> Iterator[None]:
    from .native import duckdb

    connection.execute("BEGIN")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        with suppress(duckdb.Error):
            connection.execute("ROLLBACK")
        raise
