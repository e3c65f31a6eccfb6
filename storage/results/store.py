"""The results store: all complete runs of a folder in one DuckDB file, and the files of runs beside it.

A run writes to a file of its own, ``<store>.runs/<id>.duckdb``; an empty file ``<id>.done`` beside it says that the run
is finished and waits to be merged. Whoever finishes a run tries the store's lock without waiting. If another process
has it, that process looks into the folder again after letting the lock go, so that no finished run stays behind when
many end at once. A run is merged in one transaction and its file is deleted afterwards; a file whose run is in the
store already is only deleted. Who has just finished a run merges it while its file is still open, where the store is
free; the file needs no mark then.

No file is deleted that isn't known to be empty: one that can't be read, whatever the reason, is informed of and stays.
"""

import json
import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from seqloom.core.classes import dataclass

from ...core import output_files
from ...core.errors import (
    DamagedError,
    LockedError,
    OptionError,
    ResumeError,
    SchemaError,
    SeqloomError,
    StoreError,
    UnknownNameError,
)
from ..duck.connection import BareError, as_ours, asked, check_kind, connect, descriptor, strange, translated, unused
from ..duck.copying import copy_rows
from ..duck.creation import making
from ..duck.durable import checkpoint, has_commits, hold, log_of, recover
from ..duck.literals import identifier, literal
from ..duck.revisions import HEAD
from .merging import attached, copy_run, transaction
from .run_paths import DONE_SUFFIX, SUFFIX, mark_done, mark_of, remove
from .run_row import COMPLETE, run_description
from .views import TABLES, create_views, shadow

if TYPE_CHECKING:
    import duckdb
    import pyarrow

    from ...core.context import Queries
    from .run_file import RunFile

T = TypeVar("T")

FORMATS = {"tsv": "FORMAT csv, HEADER, DELIMITER '\t'", "csv": "FORMAT csv, HEADER", "parquet": "FORMAT parquet",
           "jsonl": "FORMAT json"}
LEVELS = {"hsps": "qnumber, rank, number", "hits": "qnumber, rank", "best_hits": "qnumber",
          "coverage": "qnumber, snumber"}
"""Views that can be exported, and the order of their rows."""
PLAIN = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "FLOAT", "DOUBLE",
         "BOOLEAN", "VARCHAR", "JSON", "BLOB", "UUID", "DATE", "TIME", "TIMESTAMP"}
"""Types whose values are printed alike, whether Arrow or DuckDB makes them."""

LEFTOVER_SECONDS = 60.0
"""Age from which files that say nothing of themselves are taken for leftovers of killed processes."""
State = Literal["complete", "pending", "incomplete", "running", "unreadable"]
_log = logging.getLogger("seqloom")
_said: set[str] = set()
"""Warnings that this process has given."""


@dataclass(frozen=True)
class Located:
    """Where a run is.

    Attributes:
        id: unique identifier.
        state: "complete", in the store; "pending", complete and waiting to be merged; "incomplete", can be resumed;
            "running", held by a living process; "unreadable", its file can't be opened.
        path: the store or the run's own file.
        number: in the store; None elsewhere.
    """

    id: str
    state: State
    path: Path
    number: int | None = None
    error: str | None = None


class ResultStore:
    """A results store by its path. No file is open between calls, and none is made before there is a run to keep.

    Args:
        memory: bytes that DuckDB may take to write it.
    """

    def __init__(self, path: str | Path, memory: int | None = None) -> None:
        self.path = Path(path)
        self.runs_folder = Path(f"{path}.runs")
        self.memory = memory

    def check(self) -> None:
        """Refuse a path at which no results can be kept, before any work is done for them.

        Raises:
            StoreError: its folder isn't there.
            SchemaError: it is something else than a results store, or one of a newer version.
        """
        if not self.path.parent.is_dir():
            raise StoreError(f"{self.path} can't be made: there is no folder {self.path.parent}; make it or choose "
                             "another place with --results")
        if self.path.exists() and not output_files.is_database(self.path):  # else ``begin`` sees what it is
            with suppress(BareError):  # it becomes the store
                check_kind(self.path, "results")

    def begin(self, provenance: Mapping[str, Any], queries: "Queries", databases: Sequence[Mapping[str, Any]],
              memory: int | None = None, run_id: str | None = None) -> "RunFile":
        """Make the file of a new run; arguments as of ``RunFile.create``.

        Raises:
            SchemaError: as of ``check``.
            StoreError: as of ``RunFile.create``.
        """
        from .run_file import RunFile

        run = RunFile.create(self.runs_folder, provenance, queries, databases, memory, run_id)
        try:
            if self.path.exists():
                with suppress(BareError):
                    check_kind(self.path, "results", run.tables)
        except BaseException:
            run.discard()
            with suppress(OSError):
                self.runs_folder.rmdir()  # only an empty folder goes
            raise
        return run

    # ---- merging

    def merge_pending(self, age: float = LEFTOVER_SECONDS, strict: bool = False) -> list[str]:
        """Merge every complete run into the store, unless another process has the store open.

        Args:
            age: seconds since anything was written to it from which a file is looked into that no process holds and
                that isn't marked: its process was killed. 0 for all of them, which takes time when many run.
            strict: raise what keeps the store from being written instead of warning of it.

        Returns:
            Identifiers of the runs merged by this call. Runs that can't be merged stay as they are and are warned of.
        """
        self._mark_leftovers(age)
        merged: list[str] = []
        refused: dict[Path, SeqloomError] = {}
        cleared = False
        while True:
            pending = [p for p in self._pending() if p not in refused]
            if not pending:
                if cleared or merged or not (self.path.exists() and os.path.exists(log_of(self.path))):
                    break
                self._clear_log()
                cleared = True
                continue  # a run that ended meanwhile found the store in use
            try:
                connection = self._open_for_writing()
            except LockedError:
                break
            except StoreError as error:
                if strict:
                    raise
                _warn(f"{_runs(len(pending))} kept in {self.runs_folder} and not in the store: {error}; then 'seqloom "
                      "runs merge' brings it there")
                break
            try:
                for path in pending:
                    try:
                        merged += self._merge(connection, path)
                    except SeqloomError as error:
                        refused[path] = error
                self._checkpoint(connection)
            finally:
                connection.close()
        left = {path: error for path, error in refused.items() if path.exists()}  # others have just been deleted
        for path, why in [*left.items()][:1]:
            others = f"; so do {len(left) - 1} more" if len(left) > 1 else ""
            _warn(f"run {path.stem} stays in {path}: {why}{others}")
        with suppress(OSError):
            self.runs_folder.rmdir()  # only an empty folder goes
        return merged

    def _clear_log(self) -> None:
        """Bring what a killed or failed process left in the log into the store; it is as good there until then."""
        with suppress(StoreError):
            connection = self._open_for_writing()
            try:
                self._checkpoint(connection)
            finally:
                connection.close()

    def take(self, run: "RunFile") -> bool:
        """Merge a finished run whose file is open here, which spares reading it from disk; its file is deleted.

        Returns:
            False where that can't be: the run's file is as it was, to be closed and merged as any other.
        """
        from ..duck.native import duckdb

        own, connection = run.database, run.tables
        try:
            self._make()
            recover(self.path)
            connection.execute(f"ATTACH {literal(str(self.path))} AS results_store; USE results_store")
        except (SeqloomError, duckdb.Error):  # in use, or not as it should be: who merges finds out and says so
            return False
        merged = False
        with suppress(SeqloomError), translated(self.path):
            is_ours = [("results", HEAD["results"])]
            if connection.execute("SELECT kind, schema_revision FROM seqloom_file").fetchall() == is_ours:
                with transaction(connection):
                    copy_run(connection, own, self.memory)
                merged = True
        if merged:
            self._checkpoint(connection, "results_store")
        with suppress(duckdb.Error):
            connection.execute(f"USE {identifier(own)}; DETACH results_store")
        if merged:
            run.discard()
        return merged

    def _pending(self) -> list[Path]:
        """Files of complete runs. Marks whose files are gone are deleted on the way."""
        found = []
        for mark in self._files(DONE_SUFFIX):
            path = mark.with_suffix(SUFFIX)
            if path.exists():
                found.append(path)
            else:
                remove(path)
        return found

    def _mark_leftovers(self, age: float) -> None:
        """Tidy up after processes that were killed: mark complete runs, delete files in which none was begun."""
        unreadable = []
        for path in self._files(SUFFIX):
            with suppress(SeqloomError, OSError):
                if mark_of(path).exists() or time.time() - _written(path) < age:
                    continue
                run = self._beside(path)
                if run and run["state"] == "pending":
                    mark_done(path)
                elif run and run["state"] == "unreadable":
                    unreadable.append(run)
                elif run == {} and time.time() - _written(path) > LEFTOVER_SECONDS and unused(path):
                    remove(path)  # younger ones may still be filled by their makers
        if len(unreadable) == 1:
            _warn(f"run {unreadable[0]['id']} can't be read: {unreadable[0]['error']}")
        elif unreadable:
            _warn(f"{len(unreadable)} runs beside {self.path} can't be read; 'seqloom runs list' says why")

    def _merge(self, store: "duckdb.DuckDBPyConnection", path: Path) -> list[str]:
        run_id = path.stem
        with translated(self.path):
            known = store.execute(f"SELECT 1 FROM runs WHERE id = {literal(run_id)}::UUID").fetchall()
        if known:
            remove(path)
            return []
        with translated(path), attached(store, path), translated(self.path), transaction(store):
            copy_run(store, "run_file", self.memory)
        remove(path)
        return [run_id]

    def _open_for_writing(self) -> "duckdb.DuckDBPyConnection":
        """The store, made where there is none or one that was never filled."""
        self._make()
        shared = descriptor(self.path) is not None  # then whoever opened it in this program says when it is written
        connection = connect(self.path, False, "results", create=True, memory=self.memory, fill=create_views)
        if not shared:
            hold(connection)
        return connection

    def _make(self) -> None:
        """Make the store where there is none, or an empty file in its place.

        Raises:
            LockedError: another process is at it.
            StoreError: it can't be made; the message names it.
        """
        with suppress(OSError):
            if self.path.stat().st_size:
                return
            if not _has_log(self.path) and unused(self.path):
                self.path.unlink()
        try:
            with making(self.path) as part, translated(self.path):
                connection = connect(part, False, "results", create=True, fill=create_views)
                try:
                    connection.execute("CHECKPOINT")  # closing would say nothing of a full disk
                finally:
                    connection.close()
        except StoreError:
            if not self.path.exists():
                raise

    def _checkpoint(self, connection: "duckdb.DuckDBPyConnection", name: str = "") -> None:
        """Bring what was added into the store's file; where that can't be, it stays in the log and is as safe there."""
        from ..duck.native import duckdb

        try:
            checkpoint(connection, self.path, name)
        except StoreError as error:
            _warn(str(error))
        except duckdb.Error as error:
            _warn(f"{as_ours(error, str(self.path))}; nothing is lost, what was added stays in {log_of(self.path)}")

    # ---- looking

    def runs(self) -> list[dict[str, Any]]:
        """All runs: those in the store in the order in which they came there, then the others, oldest first.

        Each has run (its number or None), id, state, pipeline, started, seconds, queries, command, file, …; of a
        running one only what its file's name says is known, and of one that can't be read ``error``.
        """
        beside = [run for run in map(self._beside, self._files(SUFFIX)) if run]
        stored = self._stored()
        known = {r["id"] for r in stored}
        beside = [r for r in beside if r["id"] not in known]
        return sorted(stored, key=lambda r: r["run"]) + sorted(beside, key=lambda r: r["id"])

    def locate(self, reference: str | int) -> Located:
        """Find a run by its number, the beginning of its identifier, or "last": the one that was completed last.

        Raises:
            UnknownNameError: there is no such run, or several.
        """
        runs = self.runs()
        text = str(reference)
        if text == "last":
            found = _last(runs)
        else:
            found = [r for r in runs if r["run"] is not None and str(r["run"]) == text] or [
                r for r in runs if len(text) >= 4 and r["id"].startswith(text.lower())]
        if not found:
            known = (f"it has {_count(len(runs))}; 'seqloom runs list' shows {'it' if len(runs) == 1 else 'them'}"
                     if runs else "there are no runs")
            raise UnknownNameError("run", text, where=f"in {self.path} ({known})")
        if len(found) > 1:
            raise UnknownNameError("run", text, [r["id"] for r in found], "(several begin so)")
        run = found[0]
        return Located(run["id"], run["state"], Path(run["file"]), run["run"], run.get("error"))

    def show(self, reference: str | int) -> dict[str, Any]:
        """Everything that is known of a run, with ``slots``: what each did."""
        where = self.locate(reference)
        if where.state == "running":
            return {"id": where.id, "state": "running", "started": _started(where.id), "file": str(where.path)}
        if where.state == "unreadable":
            return {"id": where.id, "state": "unreadable", "error": where.error, "started": _started(where.id),
                    "file": str(where.path)}
        with self._opened(where) as (connection, number):
            run = run_description(connection, number)
            result = connection.execute(f"SELECT * EXCLUDE (run) FROM run_slots WHERE run = {number} ORDER BY position")
            names = [d[0] for d in result.description or ()]
            slots = [dict(zip(names, row)) for row in result.fetchall()]
            run["slots"] = [{**s, **{n: json.loads(s[n] or "{}") for n in ("options", "counters")}} for s in slots]
            for level in ("hit", "alignment"):
                run[f"{level}s"] = connection.execute(
                    f"SELECT count(*) FROM {level} WHERE run = {number}").fetchall()[0][0]
        return {**run, "state": where.state, "file": str(where.path)}

    @contextmanager
    def open_run(self, reference: str | int, wait: float = 10.0, views: bool = False,
                 alone: bool = False) -> "Iterator[tuple[duckdb.DuckDBPyConnection, int]]":
        """A read-only connection to the file in which a run is now, and the run's number there.

        Args:
            wait: seconds to try again while the file is in use by another process.
            views: whether the views are wanted; they are this version's, whatever the file says.
            alone: show the rows of this run alone in all tables and views.

        Raises:
            UnknownNameError, LockedError, DamagedError
        """
        with self._patiently(lambda: self._enter(self.locate(reference)), wait) as (connection, number):
            if views or alone:
                shadow(connection, number if alone else None)
            yield connection, number

    def resumable(self, reference: str | int) -> str | int:
        """``reference``; in the place of "last", the run that was begun last of those that can be resumed.

        Raises:
            ResumeError: there is none.
        """
        if str(reference) != "last":
            return reference
        found = [run["id"] for run in self.runs() if run["state"] == "incomplete"]
        if not found:
            raise ResumeError(f"there is no interrupted run in {self.path}: nothing to resume")
        return found[-1]

    def open_incomplete(self, reference: str | int) -> "RunFile":
        """The file of an interrupted run, to go on with it.

        Args:
            reference: see ``locate``; "last" is the one that was begun last of those that can be resumed.

        Raises:
            ResumeError: the run is complete or still running, or there is none to resume.
        """
        from .run_file import RunFile

        reference = self.resumable(reference)
        end = time.monotonic() + 2.0
        while True:
            where = self.locate(reference)
            if where.state in ("complete", "pending"):
                raise ResumeError(f"run {where.id} is complete; there is nothing to resume (seqloom runs write gives "
                                  "its output)")
            if where.state == "unreadable":
                raise StoreError(f"run {where.id} can't be read: {where.error}")
            if where.state == "incomplete":
                with suppress(LockedError):
                    run_file = RunFile.open(where.path, self.memory)
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
            if where.state == "running" or not unused(where.path):
                raise LockedError(f"run {where.id} is still running; wait for it, or end its process first")
            try:
                remove(where.path)
            except OSError as error:
                raise StoreError(f"{where.path} can't be deleted: {error.strerror}") from None
            return where.id
        connection = self._open_for_writing()
        try:
            with translated(self.path), transaction(connection):
                for table in TABLES:
                    connection.execute(f"DELETE FROM {table} WHERE run = {where.number}")
            self._checkpoint(connection)
        finally:
            connection.close()
        return where.id

    # ---- asking

    def sql(self, query: str, attach: Sequence[str | Path] | None = None, wait: float = 10.0,
            allow_files: bool = False, timeout: float | None = None, memory: int | None = None) -> "pyarrow.Table":
        """Rows of an SQL query over the tables and views of the store, which it can't change.

        Args:
            query: one statement, or several of which the last gives the rows.
            attach: sequence databases that are attached READ_ONLY under the names of their files; None for those of
                all runs that are still there.
            wait: seconds to try again while the store is in use by another process.
            allow_files: let the query read and write other files and load extensions; else it reaches what is attached.
            timeout: seconds after which the query is stopped.
            memory: bytes that DuckDB may take.

        Raises:
            OptionError: there is nothing in the query.
            StoreError: the query is wrong, takes too long or takes too much memory; the message is DuckDB's.
        """
        from ..duck.arrow import fetched

        with self._asked(attach, wait, allow_files, timeout, memory) as connection:
            return fetched(connection, query)

    def rows(self, query: str, allow_files: bool = False, timeout: float | None = None,
             memory: int | None = None) -> "tuple[list[str], Sequence[tuple[Any, ...]]]":
        """Names of the columns and all rows of an SQL query as values of Python, of the kinds that Arrow makes of them,
        without loading it for the usual ones; arguments and errors as of ``sql``."""
        with self._asked(None, 10.0, allow_files, timeout, memory) as connection:
            result = asked(connection, query)
            columns = result.description or ()
            if all(str(column[1]) in PLAIN for column in columns):
                return [column[0] for column in columns], result.fetchall()
            from ..duck.arrow import table_of

            table = table_of(result)
        return table.column_names, list(zip(*(column.to_pylist() for column in table.columns), strict=True))

    def first_rows(self, query: str, rows: int, timeout: float, memory: int,
                   disk: int) -> tuple[list[str], list[tuple[Any, ...]]]:
        """Names of the columns and the first rows of an SQL query, of which no more are computed where that can be.

        Args:
            query: see ``sql``; it reaches no file.
            rows: so many at most.
            timeout: seconds after which the query is stopped.
            memory: bytes that DuckDB may take; disk: that it may lay aside in files when it runs out of memory.

        Raises:
            StoreError: see ``sql``; or this program has the store open, by whose settings files can be reached.
        """
        if descriptor(self.path) is not None:
            raise StoreError(f"{self.path} is open in this program, whose queries could reach files; ask elsewhere")
        with self._asked(None, 10.0, False, timeout, memory, disk) as connection:
            result = asked(connection, query)
            return [column[0] for column in result.description or ()], result.fetchmany(rows)

    @contextmanager
    def _asked(self, attach: Sequence[str | Path] | None, wait: float, allow_files: bool, timeout: float | None,
               memory: int | None, disk: int | None = None) -> "Iterator[duckdb.DuckDBPyConnection]":
        """A connection for somebody's query; arguments as of ``sql`` and ``first_rows``."""
        from ..duck.native import duckdb

        if not self.path.exists():
            raise StoreError(f"there is no results store {self.path}; run a search, or give another one with --results")
        shared = descriptor(self.path) is not None
        try:
            connection = self._patiently(lambda: connect(self.path, True, "results", memory=memory), wait)
        except BareError:
            raise StoreError(f"there are no runs in {self.path}") from None
        stopped = threading.Timer(timeout or 0, connection.interrupt)
        try:
            with translated(self.path):
                shadow(connection)
                self._attach_databases(connection, attach)
                if disk is not None:
                    connection.execute(f"SET max_temp_directory_size = '{max(1, disk >> 10)}KiB'")
                if not allow_files and not shared:  # the setting would be that of all who have it open in this program
                    connection.execute("SET enable_external_access = false; SET lock_configuration = true")
            if timeout is not None:
                stopped.start()
            yield connection
        except duckdb.Error as error:
            raise self._of_query(error, timeout) from None
        finally:
            stopped.cancel()
            connection.close()
            with suppress(SeqloomError):
                self.merge_pending()  # runs that ended while the store was in use here

    def _of_query(self, error: "duckdb.Error", timeout: float | None) -> SeqloomError:
        """What DuckDB's error in a query means."""
        from ..duck.native import duckdb

        if isinstance(error, duckdb.InterruptException) and timeout is not None:
            return StoreError(f"SQL: stopped after {timeout:g} seconds; --timeout allows more")
        ours = as_ours(error, str(self.path))
        if isinstance(ours, DamagedError) or isinstance(error, duckdb.OutOfMemoryException):
            return ours
        hint = ""
        if isinstance(error, duckdb.PermissionException):
            hint = "; --allow-files lets a query read and write files"
        return StoreError(f"SQL: {error}{hint}")

    def export(self, reference: str | int, format: str, out: str | Path = "-", level: str = "hsps") -> int:
        """Write rows of a run to a file.

        Args:
            format: "tsv" or "csv" (with a line of column names), "parquet", or "jsonl" (an object per line).
            out: path; "-" is standard output. ".gz" or ".zst" at its end has it compressed.
            level: "hsps" (alignments), "hits", "best_hits" or "coverage".

        Returns:
            The number of rows.

        Raises:
            UnknownNameError: unknown format or level.
            UsageError: the file is the store or belongs to it.
            StoreError: the file can't be written.
            DamagedError: the store can't be read.
        """
        if format not in FORMATS:
            raise UnknownNameError("export format", format, list(FORMATS))
        if level not in LEVELS:
            raise UnknownNameError("level", level, list(LEVELS))
        if format == "parquet" and str(out) == "-" and sys.stdout.isatty():
            raise OptionError("parquet is no format for a terminal; give a file")
        own = nullcontext(sys.stdout.buffer) if str(out) == "-" else output_files.binary(out, [self.path])
        with self.open_run(reference, views=True) as (connection, number), own as stream:
            query = (f"SELECT * EXCLUDE (run, qnumber, snumber) FROM {level} WHERE run = {number} "
                     f"ORDER BY {LEVELS[level]}")
            rows = copy_rows(connection, query, FORMATS[format], stream, str(self.path))
            stream.flush()
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
        """What is known of a run by its own file; empty where no run was begun in it, None where it has gone."""
        known = {"run": None, "id": path.stem, "started": _started(path.stem), "file": str(path)}
        try:
            connection = connect(path, True, "results")
        except LockedError:
            return {**known, "state": "running"}
        except BareError as error:
            if has_commits(path):
                return {**known, "state": "unreadable", "error": f"{error}, and its log {log_of(path)} can't be read"}
            return {}
        except StoreError as error:
            return {**known, "state": "unreadable", "error": str(error)} if path.exists() else None
        try:
            with translated(path):
                rows = _all_runs(connection)
        except StoreError as error:
            return {**known, "state": "unreadable", "error": str(error)}
        finally:
            connection.close()
        for run in rows:
            pending = run["state"] in (COMPLETE, "done")  # as versions up to 0.1 called it
            return {**run, "run": None, "state": "pending" if pending else "incomplete", "file": str(path)}
        return {**known, "state": "unreadable", "error": f"{path} holds no run"} if has_commits(path) else {}

    def _stored(self) -> list[dict[str, Any]]:
        if not self.path.exists():
            return []
        try:
            connection = self._patiently(lambda: connect(self.path, True, "results"), 10.0)
        except BareError:
            return []
        try:
            with translated(self.path):
                return [{**row, "state": "complete", "file": str(self.path)} for row in _all_runs(connection)]
        finally:
            connection.close()

    def _enter(self, where: Located) -> "_Opened":
        if where.state == "running":
            raise LockedError(f"run {where.id} is still running")
        if where.state == "unreadable":
            raise StoreError(f"run {where.id} can't be read: {where.error}")
        try:
            return _Opened(connect(where.path, True, "results"), where.number or 0, where.path)
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
                    what = strange(connection, name, "sequences")
                    if what:
                        connection.execute(f"DETACH {identifier(name)}")
                        raise SchemaError(f"{path} is not a sequence database as seqloom makes them: {what}")
            except StoreError as error:
                if attach is not None:
                    raise
                _log.warning("database %s is not attached: %s", path, error)


class _Opened:
    """A connection and a run's number on it, as a context manager that closes it and translates DuckDB's errors."""

    def __init__(self, connection: "duckdb.DuckDBPyConnection", number: int, path: Path) -> None:
        self.connection, self.number, self.path = connection, number, path

    def __enter__(self) -> "tuple[duckdb.DuckDBPyConnection, int]":
        return self.connection, self.number

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        from ..duck.native import duckdb

        self.connection.close()
        if isinstance(error, duckdb.Error):
            raise as_ours(error, str(self.path)) from error


def _warn(text: str) -> None:
    """Say it once in this process."""
    if text not in _said:
        _said.add(text)
        _log.warning("%s", text)


def _count(runs: int) -> str:
    return "1 run" if runs == 1 else f"{runs:,} runs"


def _runs(count: int) -> str:
    return "1 complete run is" if count == 1 else f"{count:,} complete runs are"


def _last(runs: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The run that was completed last, of ``ResultStore.runs``; where none is, the one that was begun last.

    Those in the store have numbers, which go up however the clock is set.
    """
    stored = [r for r in runs if r["state"] == "complete"][-1:]
    waiting = sorted((r for r in runs if r["state"] == "pending"), key=lambda r: r["finished"])[-1:]
    if stored and waiting:
        return max(waiting, stored, key=lambda found: found[0]["finished"])
    return stored or waiting or list(runs[-1:])


def _has_log(path: Path) -> bool:
    return log_of(path).exists() and log_of(path).stat().st_size > 0


def _written(path: Path) -> float:
    """When anything was last written to a run's file (seconds since the epoch)."""
    log = Path(f"{path}.wal")
    return max(p.stat().st_mtime for p in (path, log) if p is path or p.exists())


def _started(run_id: str) -> datetime | None:
    """Time of creation that a version 7 UUID holds (UTC, without zone as in the tables)."""
    with suppress(ValueError, OverflowError, OSError):
        return datetime.fromtimestamp(int(run_id.replace("-", "")[:12], 16) / 1000, UTC).replace(tzinfo=None)
    return None


def _all_runs(connection: "duckdb.DuckDBPyConnection") -> list[dict[str, Any]]:
    names = ("run", "id", "state", "pipeline", "started", "finished", "seconds", "queries", "backend", "version",
             "command", "error")
    chosen = ", ".join("id::VARCHAR" if n == "id" else n for n in names)
    return [dict(zip(names, row)) for row in connection.execute(f"SELECT {chosen} FROM runs").fetchall()]
