"""The file that one run writes for itself, so that no search waits for another one.

It holds the tables of a results store (``result_schema``) with the run as number 0, and how far the run has come. Every
commit is one transaction: a process that is killed leaves a file from which the run can be resumed, or a finished one
that is waiting to be merged into its store. With the path ":memory:" nothing is left behind.
"""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.alphabet import alphabet
from ..core.errors import LockedError, SchemaError, StoreError
from ..core.ports import SlotStats, Span, TargetInfo, UnitPlan, VolumeSource
from ..core.records import Hits, Ragged, Records
from ..core.sequences import Intervals, ModelBatch, SequenceBatch
from ..core.stages import OnBad
from .arrow import insert
from .connection import connect, translated
from .literals import literal
from .record_bytes import from_bytes, to_bytes
from .report import RunReport
from .result_rows import base_names, columns_of, place_in_group, stored_name, stored_type
from .result_views import create_views
from .run_row import NUMBER, OF_DATABASE, begun, new_run_id, numbered, utc_now

if TYPE_CHECKING:
    import duckdb

    from ..core.pipeline import Plan
    from ..core.registry import Registry

SUFFIX = ".duckdb"
"""End of the name of a run's file."""
DONE_SUFFIX = ".done"
"""End of the name of the empty file that says that a run is finished and its file closed."""
THREADS = 1
"""Of DuckDB: rows come and go in small lots, and the thread that waits for a second one of DuckDB's takes the time that
it waits from those that search."""


class RunFile:
    """A run under way, finished or interrupted. Implements ``ResultSink`` of ``core.ports``.

    Attributes:
        id: unique identifier of the run.
        path: of the file; None in memory.
        connection: on which the tables and views can be queried while the file is open.
        number: the run's number in the tables of this file.
        done: whether the run is finished.
    """

    number = NUMBER

    def __init__(self, connection: "duckdb.DuckDBPyConnection", path: Path | None) -> None:
        self.connection, self.path = connection, path
        self.is_open = True
        rows = connection.execute("SELECT id::VARCHAR, provenance, state FROM runs").fetchall()
        if len(rows) != 1:
            raise SchemaError(f"{path}: not the file of one run")
        self.id: str = rows[0][0]
        self.provenance: dict[str, Any] = json.loads(rows[0][1])
        self.done = rows[0][2] == "done"
        self._stats = {
            slot: SlotStats(seconds, records_in, records_out, json.loads(counters))
            for slot, seconds, records_in, records_out, counters in connection.execute(
                "SELECT slot, seconds, records_in, records_out, counters FROM run_slots ORDER BY position").fetchall()}
        self._targets = np.array(connection.execute("SELECT target FROM targets").fetchall(), np.int64).ravel()

    @property
    def database(self) -> str:
        """DuckDB's name of the file on ``connection``."""
        return self.connection.execute("SELECT current_database()").fetchall()[0][0]

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
            run_id: of a run in memory that has one already.

        Raises:
            StoreError: the folder or file can't be written; the message names it.
        """
        run_id = run_id or new_run_id()
        path = None
        if str(where) == ":memory:":
            connection = connect(":memory:", False, "results", create=True, memory=memory, threads=THREADS)
        else:
            connection, path, run_id = _create_file(Path(where), run_id, memory)
        try:
            with _transaction(connection):
                _write_run(connection, begun(run_id, provenance, queries))
                _write_databases(connection, numbered(databases))
                _write_slots(connection, provenance.get("plan", {}).get("slots", ()))
                _write_queries(connection, queries)
            return cls(connection, path)
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
            return cls(connection, Path(path))
        except BaseException:
            connection.close()
            raise

    # ---- what the engine asks for

    def plan(self) -> UnitPlan | None:
        rows = self.connection.execute("SELECT plan FROM plans").fetchall()
        if not rows:
            return None
        data = json.loads(rows[0][0])
        return UnitPlan(tuple((a, b) for a, b in data["batches"]), tuple(Span(*v) for v in data["volumes"]))

    def begin(self, plan: UnitPlan) -> None:
        volumes = [[v.first, v.last, v.letters, v.longest] for v in plan.volumes]
        data = json.dumps({"batches": [list(b) for b in plan.batches], "volumes": volumes})
        with self._changes():
            self.connection.execute(f"INSERT INTO plans VALUES ({NUMBER}, {literal(data)})")

    def done_units(self) -> set[tuple[int, int]]:
        return set(self.connection.execute("SELECT batch, volume FROM units").fetchall())

    def done_batches(self) -> set[int]:
        return {row[0] for row in self.connection.execute("SELECT batch FROM batches").fetchall()}

    def commit_unit(self, batch: int, volume: int, records: Records, stats: Mapping[str, SlotStats]) -> None:
        with self._changes() as connection:
            connection.execute(f"INSERT INTO units VALUES ({NUMBER}, {batch}, {volume})")
            connection.execute(_making(batch, volume))
            insert(connection, _partial(batch, volume), {"records": ("BLOB", [to_bytes(records)])})
            totals = self._add(stats)
        self._stats = totals

    def partials(self, batch: int) -> list[Records]:
        with translated(self.path or "the results"):
            return [from_bytes(self.connection.execute(f"SELECT records FROM {table}").fetchall()[0][0])
                    for table in self._partials(batch)]

    def commit_batch(self, batch: int, hits: Hits, targets: TargetInfo, stats: Mapping[str, SlotStats]) -> None:
        with self._changes() as connection:
            for table in self._partials(batch):
                connection.execute(f"DROP TABLE {table}")
            connection.execute(f"INSERT INTO batches VALUES ({NUMBER}, {batch})")
            self._declare(hits)
            known = self._write_targets(targets)
            rank = place_in_group(hits.query)
            insert(connection, "hit", {"rank": ("INTEGER", rank), **columns_of(hits, "hit")}, {"run": NUMBER})
            children = hits.alignments
            number = place_in_group(children.query, children.target)
            insert(connection, "alignment", {"number": ("INTEGER", number), **columns_of(children, "alignment")},
                   {"run": NUMBER})
            totals = self._add(stats)
        self._stats, self._targets = totals, known

    def _partials(self, batch: int) -> list[str]:
        """Tables with partial results of a batch that isn't done, in order of volumes."""
        done = self.connection.execute(f"SELECT volume FROM units WHERE batch = {batch} AND batch NOT IN "
                                       "(SELECT batch FROM batches) ORDER BY volume").fetchall()
        return [_partial(batch, volume) for (volume,) in done]

    # ---- what the rest of the program asks for

    def databases(self) -> list[dict[str, Any]]:
        """Per database: path, fingerprint, title, sequences, letters, first_target, as they were when the run began."""
        rows = self.connection.execute(f"SELECT {', '.join(OF_DATABASE)} FROM run_databases ORDER BY number").fetchall()
        return [dict(zip(OF_DATABASE, row)) for row in rows]

    def queries(self, registry: "Registry") -> SequenceBatch | ModelBatch:
        """All queries of the run; models are made again by the reader that knows their text."""
        kind = self.connection.execute("SELECT query_type FROM runs").fetchall()[0][0]
        return _read_models(self.connection, registry) if kind == "model" else _read_queries(self.connection, kind)

    def add(self, stats: Mapping[str, SlotStats]) -> None:
        """Add to the statistics of some slots."""
        with self._changes():
            totals = self._add(stats)
        self._stats = totals

    def report(self, source: VolumeSource | None, plan: "Plan | None") -> RunReport:
        """The results for writers; see ``RunReport``."""
        return RunReport(self.connection, self.id, source, plan)

    def finish(self, state: str, seconds: float = 0.0, error: str | None = None,
               indexes: Mapping[str, SlotStats] | None = None) -> None:
        """Note how the run ended.

        Args:
            state: "done", or "incomplete" for a run that can be resumed.
            seconds: of work in this process; they add up over resumptions.
            error: why it isn't done.
            indexes: statistics of the slots, from ``Engine.run``; those of index slots, which no commit brings, are
                added to what is kept.
        """
        totals = self._stats
        with self._changes() as connection:
            if indexes:
                totals = self._add({n: s for n, s in indexes.items() if n.split(".")[0] == "index"})
            connection.execute(
                f"UPDATE runs SET state = {literal(state)}, finished = {_utc(utc_now())}, "
                f"seconds = seconds + {literal(float(seconds))}, error = {literal(error)}")
        self._stats = totals
        self.done = state == "done"

    def close(self) -> None:
        """Let go of the file. A finished run is marked for merging."""
        if self.is_open:
            self.is_open = False
            if self.done:  # its log is as good as tables that are copied and deleted soon
                self.connection.execute("PRAGMA disable_checkpoint_on_shutdown")
            self.connection.close()
            if self.path and self.done:
                mark_done(self.path)

    def release(self) -> None:
        """Do without the databases from now on: all that is wanted of them is here."""

    def discard(self) -> None:
        """Close and delete the file."""
        self.done = False
        self.close()
        if self.path:
            remove(self.path)

    # ---- inside

    @contextmanager
    def _changes(self) -> Iterator["duckdb.DuckDBPyConnection"]:
        with _transaction(self.connection):
            yield self.connection

    def _add(self, stats: Mapping[str, SlotStats]) -> dict[str, SlotStats]:
        """Write the statistics of some slots, added to what is kept; returns the sums."""
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
        if rows:
            self.connection.execute(
                "UPDATE run_slots SET seconds = n.seconds, records_in = n.records_in, records_out = n.records_out, "
                f"counters = n.counters FROM (VALUES {', '.join(rows)}) "
                "n(slot, seconds, records_in, records_out, counters) WHERE run_slots.slot = n.slot")
        return totals

    def _declare(self, hits: Hits) -> None:
        """Make table columns for extra columns that aren't there yet, and note what they mean."""
        noted = set(self.connection.execute("SELECT level, name FROM extra_columns").fetchall())
        changed = False
        for level, records in (("hit", hits), ("alignment", hits.alignments)):
            for position, column in enumerate(records.extra):
                if (level, column.name) in noted:
                    continue
                if column.name not in base_names(level):
                    name = stored_name(level, column)
                    self.connection.execute(f'ALTER TABLE {level} ADD COLUMN "{name}" {stored_type(level, column)}')
                insert(self.connection, "extra_columns", {"name": ("VARCHAR", [column.name])}, {
                    "run": NUMBER, "level": level, "position": position, "type": column.type, "doc": column.doc,
                    "nullable": column.nullable})
                changed = True
        if changed:
            create_views(self.connection)

    def _write_targets(self, targets: TargetInfo) -> np.ndarray:
        """Add those that aren't there yet; returns the numbers of all that are there then."""
        new = np.flatnonzero(~np.isin(targets.numbers, self._targets))

        def pick(values: Any) -> Any:
            return values[new] if isinstance(values, np.ndarray) else [values[i] for i in new.tolist()]

        descriptions = targets.descriptions or [""] * len(targets.numbers)
        insert(self.connection, "targets", {
            "target": ("BIGINT", pick(targets.numbers)), "database": ("INTEGER", pick(targets.databases)),
            "ordinal": ("BIGINT", pick(targets.ordinals)), "name": ("VARCHAR", pick(targets.names)),
            "description": ("VARCHAR", pick(descriptions)), "length": ("BIGINT", pick(targets.lengths)),
        }, {"run": NUMBER})
        return np.concatenate([self._targets, targets.numbers[new]])


def mark_of(path: Path) -> Path:
    """The mark that belongs to a run's file."""
    return path.with_suffix(DONE_SUFFIX)


def mark_done(path: Path) -> None:
    """Say that the run in this file is finished. The file itself keeps its name, so that nobody misses it."""
    mark_of(path).touch()


def remove(path: Path) -> None:
    """Delete a run's file and all that belongs to it: the mark first, since a file without its log isn't whole."""
    for name in (str(mark_of(path)), f"{path}.wal", str(path)):
        with suppress(FileNotFoundError):
            os.unlink(name)


def _create_file(folder: Path, run_id: str, memory: int | None) -> tuple["duckdb.DuckDBPyConnection", Path, str]:
    for _ in range(20):
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(f"{folder}: can't make the folder for runs: {error.strerror}; give another store with "
                             "--results, or --no-store") from None
        path = folder / f"{run_id}{SUFFIX}"
        try:
            return connect(str(path), False, "results", create=True, memory=memory, threads=THREADS), path, run_id
        except LockedError:  # another process looked into the folder in the moment between creating and locking
            run_id = new_run_id()
        except StoreError:
            if folder.is_dir():  # else another process has just removed the folder because it was empty
                raise
    raise StoreError(f"{folder}: no file for the run could be made and locked; does the file system support locks?")


def _partial(batch: int, volume: int) -> str:
    """Name of the table with the partial result of a unit."""
    return f"partial_{batch}_{volume}"


def _making(batch: int, volume: int) -> str:
    """SQL that makes it."""
    template = (Path(__file__).parent / "partial.sql").read_text()
    return template.replace(_partial(0, 0), _partial(batch, volume))


@contextmanager
def _transaction(connection: "duckdb.DuckDBPyConnection") -> Iterator[None]:
    from .native import duckdb

    connection.execute("BEGIN")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException as error:
        with suppress(duckdb.Error):
            connection.execute("ROLLBACK")
        if isinstance(error, duckdb.Error):
            raise StoreError(f"the results can't be written: {str(error).splitlines()[0]}") from error
        raise


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
    nothing: list[None] = [None] * count
    empty = [""] * count
    columns: dict[str, tuple[str, Any]] = {
        "query": ("INTEGER", queries.ordinals), "name": ("VARCHAR", list(queries.names)),
        "description": ("VARCHAR", list(queries.descriptions or empty)),
    }
    if isinstance(queries, ModelBatch):
        columns |= {"accession": ("VARCHAR", list(queries.accessions or empty)), "length": ("BIGINT", queries.lengths),
                    "source": ("VARCHAR", list(queries.sources or nothing))}
    else:
        ends = np.column_stack([queries.lower.start, queries.lower.end]).astype(np.int32).ravel()
        lower = Ragged(2 * np.searchsorted(queries.lower.sequence, np.arange(count + 1)), ends)
        columns |= {"length": ("BIGINT", queries.lengths), "lower": ("INTEGER[]", lower),
                    "residues": ("BLOB", Ragged(queries.offsets, queries.residues))}
    insert(connection, "queries", columns, {"run": NUMBER})


def _read_queries(connection: "duckdb.DuckDBPyConnection", kind: str) -> SequenceBatch:
    rows = connection.execute("SELECT query, name, description, residues, lower FROM queries").fetchall()
    rows.sort(key=lambda row: row[0])
    offsets = np.zeros(len(rows) + 1, np.int64)
    np.cumsum([len(row[3]) for row in rows], out=offsets[1:])
    lower = [(i, s, e) for i, row in enumerate(rows) for s, e in zip((row[4] or ())[::2], (row[4] or ())[1::2])]
    return SequenceBatch(
        alphabet(kind), np.frombuffer(b"".join(row[3] for row in rows), np.uint8), offsets,
        np.array([row[0] for row in rows], np.int64), Intervals.of(lower), names=[row[1] for row in rows],
        descriptions=[row[2] for row in rows])


def _read_models(connection: "duckdb.DuckDBPyConnection", registry: "Registry") -> ModelBatch:
    import io

    rows = connection.execute("SELECT query, source FROM queries").fetchall()
    text = "".join(source for _, source in sorted(rows)).encode()
    for reader_type in registry.readers():
        reader = reader_type()
        if reader.gives == "models" and reader.sniff(text[:4096]):
            parts = list(reader.read(io.BytesIO(text), "models kept with the run", None, _Refuse(), 1 << 62))
            return _joined(parts)
    raise StoreError("no installed plugin reads the models that are kept with the run; install the one that did")


class _Refuse(OnBad):
    def __call__(self, where: str, line: int, what: str, remedy: str) -> None:
        raise StoreError(f"{where}, line {line}: {what}")


def _joined(parts: Sequence[Any]) -> ModelBatch:
    def chain(name: str) -> list:
        return [item for part in parts for item in getattr(part, name)]

    return ModelBatch(parts[0].alphabet, chain("models"), np.concatenate([p.lengths for p in parts]),
                      np.arange(sum(map(len, parts)), dtype=np.int64), chain("names"), chain("accessions"),
                      chain("descriptions"), chain("sources"))
