"""The file that one run writes for itself, so that no search waits for another one.

It holds the tables of a results store (``schema``) with the run as number 0, and how far the run has come; views are
made when somebody asks for them. A batch comes whole, by one transaction or with some others that are done soon after
one another: a process that is killed leaves a file from which the run can be resumed, or a finished one that is waiting
to be merged into its store. With the path ":memory:" nothing is left behind.
"""

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from ...core.errors import LockedError, SchemaError, StoreError
from ...core.packed_texts import PackedTexts
from ...core.ports import SlotStats, Span, TargetInfo, Taxon, UnitPlan, VolumeSource
from ...core.records import Hits, Ragged, Records
from ...core.sequences import ModelBatch, SequenceBatch
from ...core.stages import OnBad
from ...core.text_rows import TextRows
from ..duck.arrow import insert, texts_of
from ..duck.connection import as_ours, connect, translated
from ..duck.durable import checkpoint, hold, log_of
from ..duck.literals import literal
from .columns import columns_of, place_in_group, stored_name, stored_type
from .record_bytes import from_bytes, to_bytes
from .report import MODELS_AT_ONCE, OF_TAXON, RunReport, kept_models, kept_queries
from .run_paths import SUFFIX, mark_done, remove
from .run_row import COMPLETE, NUMBER, OF_DATABASE, begun, new_run_id, numbered, utc_now
from .sql_columns import base_names
from .views import create_views

if TYPE_CHECKING:
    import duckdb

    from ...core.pipeline import Plan
    from ...core.registry import Registry

LOG_BYTES, LEAST_LOG_BYTES, _OF_MEMORY = 64 << 20, 16 << 20, 4
"""Size of a file's log from which it is brought into the file, as such a part of DuckDB's memory, and at least; opening
a file reads its log."""
TOGETHER = 3.0
"""Seconds from one commit of batches to the next, at least: what an interruption loses at most, as of a unit. DuckDB
puts rows into their place at once where a commit has enough of them, and those of small commits into its log first."""
THREADS = 1
"""Of DuckDB: rows come and go in small lots, and the thread that waits for a second one of DuckDB's takes the time that
it waits from those that search."""


class RunFile:
    """A run under way, finished or interrupted, as ``RunResults``.

    Attributes:
        id: unique identifier of the run.
        path: of the file; None in memory.
        tables: a connection on which the tables can be queried while the file is open.
        number: the run's number in the tables of this file.
        done: whether the run is finished.
    """

    number = NUMBER

    def __init__(self, connection: "duckdb.DuckDBPyConnection", path: Path | None, memory: int | None = None) -> None:
        self.tables, self.path = connection, path
        self._log_bytes = LOG_BYTES if memory is None else max(LEAST_LOG_BYTES, min(LOG_BYTES, memory // _OF_MEMORY))
        self.is_open, self._has_views = True, False
        if path:
            hold(connection)
        rows = connection.execute("SELECT id::VARCHAR, provenance, state FROM runs").fetchall()
        if len(rows) != 1:
            raise SchemaError(f"{path}: not the file of one run")
        self.id: str = rows[0][0]
        self.provenance: dict[str, Any] = json.loads(rows[0][1])
        self.done = rows[0][2] in (COMPLETE, "done")  # as versions up to 0.1 called it
        self._stats = {
            slot: SlotStats(seconds, records_in, records_out, json.loads(counters))
            for slot, seconds, records_in, records_out, counters in connection.execute(
                "SELECT slot, seconds, records_in, records_out, counters FROM run_slots ORDER BY position").fetchall()}
        self._targets = np.array(connection.execute("SELECT target FROM targets").fetchall(), np.int64).ravel()
        self._committed, self._last = (self._stats, self._targets), time.monotonic()
        self._under_way = False

    @property
    def connection(self) -> "duckdb.DuckDBPyConnection":
        """The same for tables and views, which are made when they are first asked for."""
        if not self._has_views:
            with translated(self.path or "the results"):
                create_views(self.tables)
            self._has_views = True
        return self.tables

    @property
    def database(self) -> str:
        """DuckDB's name of the file on ``tables``."""
        return self.tables.execute("SELECT current_database()").fetchall()[0][0]

    @classmethod
    def create(cls, where: str | Path, provenance: Mapping[str, Any], queries: SequenceBatch | ModelBatch,
               databases: Sequence[Mapping[str, Any]], memory: int | None = None,
               run_id: str | None = None) -> "RunFile":
        """Make the file of a new run.

        Args:
            where: folder for it, made when absent; or ":memory:".
            provenance: plain data that says what runs; kept as it is, its main entries also as columns.
            queries: kept with the run, so that it can be resumed without the file they came from.
            databases: what ``VolumeSource.fingerprints`` gives.
            memory: bytes that DuckDB may take.
            run_id: that the run shall have; made when left out.

        Raises:
            StoreError: the folder or file can't be written; the message names it.
        """
        given, run_id = run_id is not None, run_id or new_run_id()

        def fill(run_id: str, connection: "duckdb.DuckDBPyConnection") -> None:
            _write_run(connection, begun(run_id, provenance, queries))
            _write_databases(connection, numbered(databases))
            _write_slots(connection, provenance.get("plan", {}).get("slots", ()))
            _write_queries(connection, queries)

        path = None
        if str(where) == ":memory:":
            connection = connect(":memory:", False, "results", create=True, memory=memory, threads=THREADS,
                                 fill=partial(fill, run_id))
        else:
            connection, path = _create_file(Path(where), run_id, memory, fill, given)
        try:
            return cls(connection, path, memory)
        except BaseException:
            connection.close()
            if path:
                remove(path)
            raise

    @classmethod
    def open(cls, path: str | Path, memory: int | None = None) -> "RunFile":
        """Open the file of a run that was begun before.

        Raises:
            LockedError: another process has it open, so the run is still running.
            SchemaError: it is no file of a run.
        """
        connection = connect(str(path), False, "results", memory=memory, threads=THREADS)
        try:
            return cls(connection, Path(path), memory)
        except BaseException:
            connection.close()
            raise

    # ---- what the engine asks for

    def plan(self) -> UnitPlan | None:
        rows = self.tables.execute("SELECT plan FROM plans").fetchall()
        if not rows:
            return None
        data = json.loads(rows[0][0])
        return UnitPlan(tuple((a, b) for a, b in data["batches"]), tuple(Span(*v) for v in data["volumes"]),
                        data.get("first_batch", 0), data.get("more", False))

    def begin(self, plan: UnitPlan, queries: SequenceBatch | ModelBatch | None = None) -> None:
        volumes = [[v.first, v.last, v.total_residues, v.longest] for v in plan.volumes]
        data = json.dumps({"batches": [list(b) for b in plan.batches], "volumes": volumes,
                           "first_batch": plan.first_batch, "more": plan.more})
        with self._changes(TOGETHER) as connection:
            connection.execute(f"DELETE FROM plans; INSERT INTO plans VALUES ({NUMBER}, {literal(data)})")
            if queries is not None:
                _write_queries(connection, queries)
                connection.execute(f"UPDATE runs SET queries = queries + {len(queries)}")

    def done_units(self) -> set[tuple[int, int]]:
        return set(self._ask("SELECT batch, volume FROM units"))

    def done_batches(self) -> set[int]:
        return {row[0] for row in self._ask("SELECT batch FROM batches")}

    def commit_unit(self, batch: int, volume: int, records: Records, stats: Mapping[str, SlotStats]) -> None:
        with self._changes() as connection:
            connection.execute(f"INSERT INTO units VALUES ({NUMBER}, {batch}, {volume})")
            connection.execute(_making(batch, volume))
            insert(connection, _partial(batch, volume), {"records": ("BLOB", [to_bytes(records)])})
            self._add(stats)

    def partials(self, batch: int) -> list[Records]:
        return [from_bytes(self._ask(f"SELECT records FROM {table}")[0][0]) for table in self._partials(batch)]

    def commit_batch(self, batch: int, hits: Hits, targets: TargetInfo, stats: Mapping[str, SlotStats]) -> None:
        with self._changes(TOGETHER) as connection:
            for table in self._partials(batch):
                connection.execute(f"DROP TABLE {table}")
            connection.execute(f"INSERT INTO batches VALUES ({NUMBER}, {batch})")
            self._declare(hits)
            self._write_targets(targets)
            rank = place_in_group(hits.query)
            insert(connection, "hit", {"rank": ("INTEGER", rank), **columns_of(hits, "hit")}, {"run": NUMBER})
            children = hits.alignments
            number = place_in_group(children.query, children.target)
            insert(connection, "alignment", {"number": ("INTEGER", number), **columns_of(children, "alignment")},
                   {"run": NUMBER})
            self._add(stats)

    def _partials(self, batch: int) -> list[str]:
        """Tables with partial results of a batch that isn't done, in order of volumes."""
        done = self.tables.execute(f"SELECT volume FROM units WHERE batch = {batch} AND batch NOT IN "
                                       "(SELECT batch FROM batches) ORDER BY volume").fetchall()
        return [_partial(batch, volume) for (volume,) in done]

    # ---- what the rest of the program asks for

    def databases(self) -> list[dict[str, Any]]:
        """Per database: path, fingerprint, title, sequences, residues, first_target, as they were when the run
        began."""
        rows = self.tables.execute(f"SELECT {', '.join(OF_DATABASE)} FROM run_databases ORDER BY number").fetchall()
        return [dict(zip(OF_DATABASE, row)) for row in rows]

    def queries(self, registry: "Registry", first: int = 0, last: int | None = None) -> SequenceBatch | ModelBatch:
        """Queries ``first`` … ``last`` − 1 of the run, all that are kept where these are left out; models are made
        again by the reader that knows their text."""
        kind = self.tables.execute("SELECT query_type FROM runs").fetchall()[0][0]
        if kind == "model":
            return _read_models(self.tables, registry)
        behind = "" if last is None else f" AND query < {last}"
        return kept_queries(self.tables, kind, f"WHERE query >= {first}{behind}" if first or behind else "")

    def add(self, stats: Mapping[str, SlotStats]) -> None:
        """Add to the statistics of some slots."""
        with self._changes():
            self._add(stats)

    def report(self, source: VolumeSource | None, plan: "Plan | None") -> RunReport:
        """The results for writers; see ``RunReport``."""
        return RunReport(self.tables, self.id, source, plan, self.path or "the results")

    def finish(self, state: str, seconds: float = 0.0, error: str | None = None,
               indexes: Mapping[str, SlotStats] | None = None) -> None:
        """Note how the run ended; see ``RunResults``."""
        with self._changes() as connection:
            if indexes:
                self._add({n: s for n, s in indexes.items() if n.split(".")[0] == "index"})
            connection.execute(
                f"UPDATE runs SET state = {literal(state)}, finished = {_utc(utc_now())}, "
                f"seconds = seconds + {literal(float(seconds))}, error = {literal(error)}")
        self.done = state == COMPLETE

    def note(self, name: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Keep further plain data with the provenance; see ``RunResults``."""
        provenance = {**self.provenance, name: [*self.provenance.get(name, ()), *rows]}
        with self._changes() as connection:
            connection.execute(f"UPDATE runs SET provenance = {literal(json.dumps(provenance))}")
        self.provenance = provenance

    def close(self) -> None:
        """Let go of the file. A finished run is marked for merging."""
        if self.is_open:
            with suppress(StoreError):  # of a disk that fails; what was committed is there all the same
                self._commit()
            self.is_open = False
            self.tables.close()  # its log is as good as tables
            if self.path and self.done:
                mark_done(self.path)

    def release(self) -> None:
        """Do without the databases from now on: all that is wanted of them is here."""

    def discard(self) -> None:
        """Close and delete the file."""
        self.done = self._under_way = False
        self.close()
        if self.path:
            remove(self.path)

    # ---- inside

    def _ask(self, sql: str) -> list[Any]:
        with translated(self.path or "the results"):
            return self.tables.execute(sql).fetchall()

    def _shorten_log(self) -> None:
        if self.path and log_of(self.path).stat().st_size > self._log_bytes:
            with translated(self.path):
                checkpoint(self.tables, self.path)

    @contextmanager
    def _changes(self, together: float = 0.0) -> Iterator["duckdb.DuckDBPyConnection"]:
        """A transaction, which goes on behind the block until so many seconds have gone by since the last one ended."""
        with self._or_nothing():
            if not self._under_way:
                self.tables.execute("BEGIN")
                self._under_way = True
            yield self.tables
        if time.monotonic() - self._last >= together:
            self._commit()

    @contextmanager
    def _or_nothing(self) -> Iterator[None]:
        """Have nothing happened since the last commit if the block fails, with errors of DuckDB as ours."""
        from ..duck.native import duckdb

        try:
            yield
        except BaseException as error:
            with suppress(duckdb.Error):
                self.tables.execute("ROLLBACK")
            self._under_way, (self._stats, self._targets) = False, self._committed
            if isinstance(error, duckdb.Error):
                raise as_ours(error, str(self.path or "the results")) from error
            raise

    def _commit(self) -> None:
        """Keep what was changed."""
        if self._under_way:
            with self._or_nothing():
                self.tables.execute("COMMIT")
            self._under_way, self._committed = False, (self._stats, self._targets)
            self._shorten_log()
        self._last = time.monotonic()

    def _add(self, stats: Mapping[str, SlotStats]) -> None:
        """Write the statistics of some slots, added to what is kept."""
        totals = {name: SlotStats(old.seconds, old.records_in, old.records_out, dict(old.counters))
                  for name, old in self._stats.items()}
        rows = []
        for name, new in stats.items():
            if name not in totals:
                raise StoreError(f"slot '{name}' is not in the plan of run {self.id}")
            total = totals[name]
            total.add(new)
            rows.append(f"({literal(name)}, {literal(float(total.seconds))}, {total.records_in}, {total.records_out}, "
                        f"{literal(json.dumps(total.counters))})")
        for name, new in stats.items():
            if new.passed:
                insert(self.tables, "passed", {"query": ("INTEGER", list(new.passed)),
                       "records": ("BIGINT", list(new.passed.values()))}, {"run": NUMBER, "slot": name})
        if rows:
            self.tables.execute(
                "UPDATE run_slots SET seconds = n.seconds, records_in = n.records_in, records_out = n.records_out, "
                f"counters = n.counters FROM (VALUES {', '.join(rows)}) "
                "n(slot, seconds, records_in, records_out, counters) WHERE run_slots.slot = n.slot")
        self._stats = totals

    def _declare(self, hits: Hits) -> None:
        """Make table columns for extra columns that aren't there yet, and note what they mean."""
        noted = set(self.tables.execute("SELECT level, name FROM extra_columns").fetchall())
        for level, records in (("hit", hits), ("alignment", hits.alignments)):
            for position, column in enumerate(records.extra):
                if (level, column.name) in noted:
                    continue
                if column.name not in base_names(level):
                    name = stored_name(level, column)
                    self.tables.execute(f'ALTER TABLE {level} ADD COLUMN "{name}" {stored_type(level, column)}')
                insert(self.tables, "extra_columns", {"name": ("VARCHAR", [column.name])}, {
                    "run": NUMBER, "level": level, "position": position, "type": column.type, "doc": column.doc,
                    "nullable": column.nullable})
                self._has_views = False

    def _write_targets(self, targets: TargetInfo) -> None:
        """Add those that aren't there yet."""
        new = np.flatnonzero(~np.isin(targets.numbers, self._targets))

        def pick(values: Any) -> Any:
            return values[new] if isinstance(values, np.ndarray) else [values[i] for i in new.tolist()]

        descriptions = targets.descriptions or [""] * len(targets.numbers)
        insert(self.tables, "targets", {
            "target": ("BIGINT", pick(targets.numbers)), "database": ("INTEGER", pick(targets.databases)),
            "ordinal": ("BIGINT", pick(targets.ordinals)), "name": ("VARCHAR", pick(targets.names)),
            "description": ("VARCHAR", pick(descriptions)), "length": ("BIGINT", pick(targets.lengths)),
            **_taxon_columns(pick(targets.taxa) if targets.taxa else ()),
        }, {"run": NUMBER})
        self._targets = np.concatenate([self._targets, targets.numbers[new]])


def _taxon_columns(taxa: Sequence[Taxon | None]) -> dict[str, tuple[str, list[Any]]]:
    """Columns of ``targets`` that say which organisms they are of; none where nothing is known."""
    if not any(taxa):
        return {}
    rows = [tuple(value or None for value in taxon or Taxon(0)) for taxon in taxa]
    return {name: ("INTEGER" if name == "taxid" else "VARCHAR", list(column))
            for name, column in zip(OF_TAXON, zip(*rows), strict=True)}


def _create_file(folder: Path, run_id: str, memory: int | None,
                 fill: Callable[[str, "duckdb.DuckDBPyConnection"], None],
                 given: bool) -> tuple["duckdb.DuckDBPyConnection", Path]:
    """Make the file of a run and begin the run in it, in one transaction: no file is ever of no run.

    Where the identifier is ``given``, no other one is taken in its place.
    """
    for _ in range(20):
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(f"{folder}: can't make the folder for runs: {error.strerror}; give another store with "
                             "--results, or --no-store") from None
        path = folder / f"{run_id}{SUFFIX}"
        filled, there = False, given and path.exists()

        def begin(connection: "duckdb.DuckDBPyConnection", run_id: str = run_id) -> None:
            nonlocal filled
            fill(run_id, connection)
            filled = True

        try:
            connection = connect(str(path), False, "results", create=True, memory=memory, threads=THREADS, fill=begin)
        except LockedError:  # another process looked into the folder in the moment between creating and locking
            if given:
                time.sleep(0.05)
            else:
                run_id = new_run_id()
        except BaseException as error:
            if not isinstance(error, StoreError) or folder.is_dir():
                if not there:
                    remove(path)  # what is there of it is nothing
                raise
            # else another process has just removed the folder because it was empty
        else:
            if filled:
                return connection, path
            connection.close()
            raise StoreError(f"there is a run {run_id} already; give another identifier, or resume it")
    raise StoreError(f"{folder}: no file for the run could be made and locked; does the file system support locks?")


def _partial(batch: int, volume: int) -> str:
    """Name of the table with the partial result of a unit."""
    return f"partial_{batch}_{volume}"


def _making(batch: int, volume: int) -> str:
    """SQL that makes it."""
    template = (Path(__file__).parent / "partial.sql").read_text(encoding="utf-8")
    return template.replace(_partial(0, 0), _partial(batch, volume))


def _utc(moment: datetime) -> str:
    return f"'{moment.isoformat()}'::TIMESTAMP"


def _write_run(connection: "duckdb.DuckDBPyConnection", row: Mapping[str, Any]) -> None:
    values = [_utc(v) if isinstance(v, datetime) else literal(json.dumps(v) if isinstance(v, dict) else v)
              for v in row.values()]
    connection.execute(f"INSERT INTO runs ({', '.join(row)}) VALUES ({', '.join(values)})")


def _write_databases(connection: "duckdb.DuckDBPyConnection", databases: Sequence[Mapping[str, Any]]) -> None:
    columns: dict[str, tuple[str, Any]] = {"number": ("INTEGER", list(range(len(databases))))}
    for name in ("path", "fingerprint", "title"):
        columns[name] = ("VARCHAR", [d[name] for d in databases])
    for name in ("sequences", "letters", "first_target"):
        columns[name] = ("BIGINT", [d[name] for d in databases])
    insert(connection, "run_databases", columns, {"run": NUMBER})


def _write_slots(connection: "duckdb.DuckDBPyConnection", slots: Sequence[Mapping[str, Any]]) -> None:
    columns: dict[str, tuple[str, Any]] = {"position": ("INTEGER", list(range(len(slots))))}
    for name in ("slot", "plugin", "backend", "scope"):
        columns[name] = ("VARCHAR", [s.get(name) for s in slots])
    columns["options"] = ("JSON", [json.dumps(s.get("options", {})) for s in slots])
    insert(connection, "run_slots", columns,
           {"run": NUMBER, "seconds": 0.0, "records_in": 0, "records_out": 0, "counters": "{}"})


def _write_queries(connection: "duckdb.DuckDBPyConnection", queries: SequenceBatch | ModelBatch) -> None:
    count = len(queries)
    columns: dict[str, tuple[str, Any]] = {
        "query": ("INTEGER", queries.ordinals), "name": ("VARCHAR", texts_of(queries.names)),
        "description": ("VARCHAR", texts_of(queries.descriptions or TextRows.blank(count))),
    }
    if isinstance(queries, ModelBatch):
        if count > MODELS_AT_ONCE:
            for first in range(0, count, MODELS_AT_ONCE):
                _write_queries(connection, queries.take(first, min(first + MODELS_AT_ONCE, count)))
            return
        texts = PackedTexts.of(queries.sources or [""] * count).packed
        accessions = texts_of(queries.accessions or TextRows.blank(count))
        columns |= {"accession": ("VARCHAR", accessions), "length": ("BIGINT", queries.lengths),
                    "residues": ("BLOB", Ragged.of([np.frombuffer(text, np.uint8) for text in texts], np.uint8))}
    else:
        ends = np.column_stack([queries.lower.start, queries.lower.end]).astype(np.int32).ravel()
        lower = Ragged(2 * np.searchsorted(queries.lower.sequence, np.arange(count + 1)), ends)
        columns |= {"length": ("BIGINT", queries.lengths), "lower": ("INTEGER[]", lower),
                    "residues": ("BLOB", Ragged(queries.offsets, queries.residues))}
    insert(connection, "queries", columns, {"run": NUMBER})


def _read_models(connection: "duckdb.DuckDBPyConnection", registry: "Registry") -> ModelBatch:
    return models_of(kept_models(connection), registry)


def models_of(source: str, registry: "Registry") -> ModelBatch:
    """The models of a text kept with a run, numbered from 0; raises ``StoreError`` where no plugin reads it."""
    import io

    text = source.encode()
    for reader_type in registry.readers():
        reader = reader_type()
        if reader.gives == "models" and reader.sniff(text[:4096]):
            parts = list(reader.read(io.BytesIO(text), "models kept with the run", None, _Refuse(), 1 << 62))
            models = ModelBatch.concat(cast("list[ModelBatch]", parts))
            return models.renumbered(np.arange(len(models), dtype=np.int64))
    raise StoreError("no installed plugin reads the models that are kept with the run; install the one that did")


class _Refuse(OnBad):
    def __call__(self, where: str, line: int, what: str, remedy: str) -> None:
        raise StoreError(f"{where}, line {line}: {what}")
