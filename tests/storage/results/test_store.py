"""The results store: merging, looking, deleting, asking; and what must hold when processes are killed or many."""

import json
import multiprocessing
import os
import random
import shutil
import time
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path

import duckdb
import numpy as np
import pytest
from seqloom.core.errors import LockedError, ResumeError, SchemaError, StoreError, UnknownNameError
from seqloom.core.records import Column, Hits
from seqloom.storage.duck.arrow import fetched
from seqloom.storage.duck.connection import connect
from seqloom.storage.results.report import RunReport
from seqloom.storage.results.run_file import RunFile
from seqloom.storage.results.store import ResultStore
from seqloom.testing import assert_same_hits

from ...forked import SERVER, preload
from .. import toy_runs

ROWS = len(toy_runs.expected_hits()), len(toy_runs.expected_hits().alignments)


@pytest.fixture
def store(tmp_path):
    return ResultStore(tmp_path / "store.duckdb")


def rows_of(store: ResultStore, run: str) -> Hits:
    with store.open_run(run) as (connection, _):
        return Hits.concat([query.hits for query in RunReport(connection, run).queries()])


def with_column(store: ResultStore, column: Column, values) -> str:
    """A run whose single hit has a column of its own."""
    run = toy_runs.create(store)
    run.begin(toy_runs.PLAN)
    hits = Hits({"query": [0], "target": [0], "score": [1], column.name: values}, [column])
    run.commit_batch(0, hits, toy_runs.info(np.array([0])), {})
    run.finish("complete")
    run.close()
    return run.id


def test_merged_runs_are_numbered_and_whole(store):
    ids = [toy_runs.run_once(store) for _ in range(3)]
    assert not store.path.exists()
    assert store.merge_pending() == ids
    assert not store.runs_folder.exists()
    assert store.merge_pending() == []
    known = [(r["run"], r["id"], r["state"]) for r in store.runs()]
    assert known == [(n + 1, i, "complete") for n, i in enumerate(ids)]
    for run in ids:
        assert_same_hits(rows_of(store, run), toy_runs.expected_hits())
    again = toy_runs.run_once(store)
    assert store.merge_pending() == [again] and store.locate(again).number == 4


def test_a_run_that_is_in_the_store_is_only_deleted(store, tmp_path):
    run = toy_runs.run_once(store)
    copy = tmp_path / "copy"
    shutil.copytree(store.runs_folder, copy)
    store.merge_pending()
    shutil.copytree(copy, store.runs_folder)
    assert [r["state"] for r in store.runs()] == ["complete"]
    assert store.merge_pending() == [] and not store.runs_folder.exists()
    assert_same_hits(rows_of(store, run), toy_runs.expected_hits())


def test_busy_store_is_not_waited_for(store):
    first = toy_runs.run_once(store)
    store.merge_pending()
    held = hold(store.path)
    try:
        second = toy_runs.run_once(store)
        assert store.merge_pending() == []
        third = toy_runs.run_once(store)
    finally:
        held()
    assert store.merge_pending() == [second, third]
    assert [r["id"] for r in store.runs()] == [first, second, third]


def hold(path: Path):
    """Have another process open ``path`` for writing; returns what makes it let go."""
    ours, theirs = SERVER.Pipe()
    process = SERVER.Process(target=_hold, args=(path, theirs))
    process.start()
    ours.recv()

    def release():
        ours.send("go")
        process.join()

    return release


def _hold(path: Path, pipe) -> None:
    connection = connect(path, False, "results")
    pipe.send("held")
    pipe.recv()
    connection.close()


def test_states(store):
    stored = toy_runs.run_once(store)
    store.merge_pending()
    pending = toy_runs.run_once(store)
    stopped = toy_runs.create(store)
    stopped.begin(toy_runs.PLAN)
    stopped.finish("incomplete", 1.0, "killed by hand")
    stopped.close()
    release = hold_new_run(store)
    try:
        runs = {r["state"]: r for r in store.runs()}
        assert set(runs) == {"complete", "pending", "incomplete", "running"}
        assert [runs[s]["id"] for s in ("complete", "pending", "incomplete")] == [stored, pending, stopped.id]
        assert runs["incomplete"]["error"] == "killed by hand"
        running = runs["running"]["id"]
        assert abs(runs["running"]["started"].timestamp() - time.time()) < 86400
        assert store.show(running)["state"] == "running"
        with pytest.raises(ResumeError, match="still running"):
            store.open_incomplete(running)
        with pytest.raises(LockedError):
            store.delete(running)
        with pytest.raises(LockedError), store.open_run(running, wait=0):
            pass
        for complete in (stored, pending):
            with pytest.raises(ResumeError, match="is complete"):
                store.open_incomplete(complete)
        assert_same_hits(rows_of(store, pending), toy_runs.expected_hits())
        assert store.delete(pending) == pending
    finally:
        release()
    run = store.open_incomplete(stopped.id)
    toy_runs.work(run)
    run.close()
    assert store.merge_pending() == [stopped.id]
    assert_same_hits(rows_of(store, stopped.id), toy_runs.expected_hits())
    assert store.delete(running) == running
    assert {r["id"] for r in store.runs()} == {stored, stopped.id}


def hold_new_run(store: ResultStore):
    ours, theirs = SERVER.Pipe()
    process = SERVER.Process(target=_hold_new_run, args=(store.path, theirs))
    process.start()
    ours.recv()

    def release():
        ours.send("go")
        process.join()

    return release


def _hold_new_run(path: Path, pipe) -> None:
    run = toy_runs.create(ResultStore(path))
    pipe.send("held")
    pipe.recv()
    run.close()


def test_finding_a_run(store):
    ids = [toy_runs.run_once(store) for _ in range(2)]
    store.merge_pending()
    assert store.locate("last").id == store.locate(2).id == store.locate("2").id == store.locate(ids[1]).id == ids[1]
    assert store.locate(ids[0][:-2].upper()).id == ids[0]
    with pytest.raises(UnknownNameError, match="several begin so"):
        store.locate(ids[0][:8])
    with pytest.raises(UnknownNameError, match="it has 2 runs"):
        store.locate("7")
    with pytest.raises(UnknownNameError, match="there are no runs"):
        ResultStore(store.path.with_name("other.duckdb")).locate("last")


def test_show(store):
    toy_runs.run_once(store)
    store.merge_pending()
    run = store.show("last")
    assert run["pipeline"] == "toy" and run["options"] == {"evalue": 10.0} and run["provenance"] == toy_runs.PROVENANCE
    assert [s["slot"] for s in run["slots"]] == ["index.toy", "seed.toy", "sort.rank"]
    assert (run["hits"], run["alignments"]) == ROWS
    assert run["databases"][0]["fingerprint"] == "abc"


def test_delete_takes_all_rows_and_no_others(store):
    ids = [toy_runs.run_once(store) for _ in range(3)]
    store.merge_pending()
    assert store.delete("2") == ids[1]
    assert [r["run"] for r in store.runs()] == [1, 3]
    with connect(store.path, True, "results") as connection:
        tables = [t for (t,) in connection.execute("SELECT DISTINCT table_name FROM duckdb_columns() "
                                                   "WHERE NOT internal AND column_name = 'run'").fetchall()]
        for table in tables:
            assert connection.execute(f"SELECT count(*) FROM {table} WHERE run = 2").fetchall() == [(0,)], table
    assert_same_hits(rows_of(store, ids[2]), toy_runs.expected_hits())
    assert toy_runs.run_once(store) in store.merge_pending()
    assert [r["run"] for r in store.runs()] == [1, 3, 4]  # a number is never given twice


def test_columns_of_plugins_meet(store):
    ids = [toy_runs.run_once(store), with_column(store, Column("depth", "i4", "levels"), [3]),
           with_column(store, Column("depth", "f8", "levels"), [0.5]), toy_runs.run_once(store)]
    assert store.merge_pending() == ids
    table = store.sql("SELECT run, depth FROM hits WHERE depth IS NOT NULL ORDER BY run")
    assert table.to_pydict() == {"run": [2, 3], "depth": [3.0, 0.5]}
    for run in (ids[0], ids[3]):
        assert_same_hits(rows_of(store, run), toy_runs.expected_hits())
    assert rows_of(store, ids[1]).depth.dtype == np.int32


def test_columns_that_do_not_go_together_leave_the_run_pending(store, caplog):
    good = with_column(store, Column("depth", "i4", "levels"), [3])
    bad = with_column(store, Column("depth", "str", "levels"), ["three"])
    other = toy_runs.run_once(store)
    assert store.merge_pending() == [good, other]
    assert "column 'depth' is of type INTEGER in this results store, and the run has it as VARCHAR" in caplog.text
    assert {r["id"]: r["state"] for r in store.runs()} == {good: "complete", bad: "pending", other: "complete"}
    assert rows_of(store, bad).depth.tolist() == ["three"]


def test_a_finished_run_whose_process_was_killed_is_merged(store):
    run = toy_runs.create(store)
    toy_runs.work(run)
    run.connection.close()  # as if the process had ended here, before it could mark the file
    assert [r["state"] for r in store.runs()] == ["pending"]
    assert store.merge_pending() == []
    assert store.merge_pending(age=0) == [run.id]


def test_leftovers_are_tidied_up(store, monkeypatch):
    store.runs_folder.mkdir()
    names = ["01a1fd32-f53e-7322-b1a8-ab068bf7a323.duckdb", "01a1fd32-f53e-7322-b1a8-ab068bf7a324.duckdb",
             "01a1fd32-f53e-7322-b1a8-ab068bf7a325.duckdb"]
    (store.runs_folder / names[0]).touch()
    connect(store.runs_folder / names[1], False, "results", create=True).close()
    duckdb.connect(str(store.runs_folder / names[2])).close()
    os.truncate(store.runs_folder / names[2], 6000)
    assert store.runs() == [] and store.merge_pending(age=0) == []
    assert sorted(p.name for p in store.runs_folder.iterdir()) == names  # they may have been made just now
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 4000)
    assert store.merge_pending() == [] and not store.runs_folder.exists()


@pytest.mark.parametrize(("select", "kind"), [
    ("1::TINYINT", int), ("2::UBIGINT", int), ("0.1::FLOAT", float), ("'NaN'::DOUBLE", float), ("true", bool),
    ("'x'", str), ("'{}'::JSON", str), ("'ab'::BLOB", bytes), ("NULL", type(None)), ("DATE '2020-01-02'", date),
    ("TIMESTAMP '2020-01-02 03:04:05.6'", datetime), ("3::HUGEINT", Decimal), ("[1, 2]", list), ("{'a': 1}", dict),
    ("MAP {'a': 1}", list), ("TIMESTAMPTZ '2020-01-02 03:04:05+00'", datetime)])
def test_rows_are_what_arrow_makes_of_them(store, select, kind):
    toy_runs.run_once(store)
    store.merge_pending()
    query = f"SELECT {select} AS a, 'b' AS a, uuid() AS c FROM runs"
    table = store.sql(query)
    columns, [(value, *others)] = store.rows(query)
    assert isinstance(value, kind)
    assert [*map(str, (value, others[0]))] == [str(column.to_pylist()[0]) for column in table.columns[:2]]
    assert columns == table.column_names == ["a", "a", "c"]
    assert len(str(others[1])) == 36


def test_sql_attaches_databases(store, tmp_path):
    with pytest.raises(StoreError, match="there is no results store"):
        store.sql("SELECT 1")
    toy_runs.run_once(store)
    store.merge_pending()
    from seqloom.core.sequences import SequenceBatch
    from seqloom.storage.sequences.database import SequenceDatabase

    database = tmp_path / "my-set.duckdb"
    SequenceDatabase.create(database, [SequenceBatch.of(toy_runs.PROTEIN, ["MKV"], ["t0"])]).close()
    assert store.sql("SELECT count(*) AS n FROM hsps", []).to_pydict() == {"n": [ROWS[1]]}
    joined = "SELECT DISTINCT h.sseqid FROM hits h JOIN my_set.sequences s ON s.name = h.sseqid"
    assert store.sql(joined, [database]).to_pydict() == {"sseqid": ["t0"]}
    with pytest.raises(StoreError, match=r"SQL: .*nothing_of_that_name"):
        store.sql("FROM nothing_of_that_name")
    with pytest.raises(StoreError):
        store.sql("DELETE FROM hit")
    with pytest.raises(StoreError):
        store.sql("SELECT 1", [tmp_path / "absent.duckdb"])


@pytest.mark.parametrize("format", ["tsv", "csv", "jsonl", "parquet"])
@pytest.mark.parametrize("level", ["hsps", "hits", "best_hits", "coverage"])
def test_export(store, tmp_path, format, level):
    import pyarrow.csv
    import pyarrow.parquet

    toy_runs.run_once(store)
    store.merge_pending()
    out = tmp_path / f"rows.{format}"
    count = store.export("last", format, out, level)
    with store.open_run("last") as (connection, _):
        order = {"hsps": "rank, number", "coverage": "snumber"}.get(level, "rank")
        query = f"SELECT * EXCLUDE (run, qnumber, snumber) FROM {level} ORDER BY qnumber, {order}"
        wanted = fetched(connection, query).to_pylist()
    assert count == len(wanted)
    if format == "jsonl":
        rows = [json.loads(line) for line in out.read_text().splitlines()]
    elif format == "parquet":
        rows = pyarrow.parquet.read_table(out).to_pylist()
    else:
        parse = pyarrow.csv.ParseOptions(delimiter="\t" if format == "tsv" else ",")
        convert = pyarrow.csv.ConvertOptions(strings_can_be_null=True)
        rows = pyarrow.csv.read_csv(out, parse_options=parse, convert_options=convert).to_pylist()
    assert [list(r) for r in rows] == [list(r) for r in wanted]
    assert rows == [pytest.approx(r) for r in wanted]


def test_export_to_standard_output(store, capfdbinary):
    toy_runs.run_once(store)
    store.export("last", "tsv", level="hits")
    lines = capfdbinary.readouterr().out.decode().splitlines()
    assert lines[0].startswith("qseqid\tsseqid\trank\tscore") and len(lines) == 1 + ROWS[0]


def test_export_says_what_is_wrong(store, tmp_path):
    toy_runs.run_once(store)
    with pytest.raises(UnknownNameError, match="unknown export format 'tvs'; did you mean 'tsv'"):
        store.export("last", "tvs")
    with pytest.raises(UnknownNameError, match="unknown level"):
        store.export("last", "tsv", level="domains")
    with pytest.raises(StoreError):
        store.export("last", "tsv", tmp_path / "absent" / "file")


def test_store_that_is_something_else(store):
    store.path.write_text("not a database, but a text of some length " * 1000)
    run = toy_runs.run_once(store)
    with pytest.raises(SchemaError):
        store.merge_pending(strict=True)
    assert store.merge_pending() == []
    assert RunFile.open(store.runs_folder / f"{run}.duckdb").done


# ---- killed processes, and many of them

preload("tests.storage.toy_runs")


def start(store: ResultStore, resume: bool) -> multiprocessing.Process:
    process = SERVER.Process(target=toy_runs.process, args=(store.path, resume))
    process.start()
    return process


@pytest.mark.long
@pytest.mark.parametrize("kills", [10, pytest.param(25, marks=pytest.mark.gold)])
def test_killed_at_any_time(store, kills):
    """Processes that begin, resume, finish and merge runs are killed at random; in the end every row is there once."""
    begin = time.monotonic()
    start(store, False).join()
    usual = time.monotonic() - begin
    chance = random.Random(kills)
    killed = 0
    while killed < kills:
        process = start(store, resume=chance.random() < 0.7)
        process.join(chance.uniform(0, 1.2 * usual))
        if process.is_alive():
            process.kill()
            killed += 1
        process.join()
    begun = [r["id"] for r in store.runs()]
    while any(r["state"] == "incomplete" for r in store.runs()):
        process = start(store, resume=True)
        process.join()
        assert process.exitcode == 0
    store.merge_pending(age=0)
    runs = store.runs()
    assert {r["state"] for r in runs} == {"complete"} and len({r["id"] for r in runs}) == len(runs)
    assert set(begun) <= {r["id"] for r in runs}
    for run in runs:
        assert_same_hits(rows_of(store, run["id"]), toy_runs.expected_hits())
        assert (store.show(run["id"])["hits"], store.show(run["id"])["alignments"]) == ROWS
    whole = store.sql("SELECT (SELECT count(*) FROM hit) h, (SELECT count(*) FROM alignment) a").to_pylist()[0]
    assert whole == {"h": ROWS[0] * len(runs), "a": ROWS[1] * len(runs)}


def at_once(path: Path, barrier, results) -> None:
    store = ResultStore(path)
    run = toy_runs.create(store)
    toy_runs.work(run, batches=1)
    barrier.wait()
    run.close()
    results.put((run.id, store.merge_pending()))


def test_fifty_searches_that_end_at_once(store):
    """All of them succeed, and all runs are merged without anyone coming back for them."""
    count = 50
    barrier, results = SERVER.Barrier(count), SERVER.Queue()
    processes = [SERVER.Process(target=at_once, args=(store.path, barrier, results)) for _ in range(count)]
    for process in processes:
        process.start()
    outcomes = [results.get(timeout=60) for _ in range(count)]
    for process in processes:
        process.join()
        assert process.exitcode == 0
    ids = sorted(run for run, _ in outcomes)
    assert sorted(run for _, merged in outcomes for run in merged) == ids  # each by exactly one process
    assert not store.runs_folder.exists()
    runs = store.runs()
    assert sorted(r["id"] for r in runs) == ids and [r["run"] for r in runs] == list(range(1, count + 1))
    each = store.sql("SELECT count(*) AS n FROM hit GROUP BY run").to_pydict()["n"]
    assert each == [len(toy_runs.expected_hits(batches=1))] * count


def worked(store: ResultStore) -> RunFile:
    """A finished run whose file is open."""
    run = toy_runs.create(store)
    toy_runs.work(run)
    return run


def test_a_run_whose_file_is_open_is_taken_as_it_is(store):
    first, second = worked(store), worked(store)
    for run in (first, second):
        assert store.take(run) and not run.is_open
        assert_same_hits(rows_of(store, run.id), toy_runs.expected_hits())
    assert not list(store.runs_folder.glob("*")) and store.merge_pending() == []
    assert [(r["run"], r["id"], r["state"]) for r in store.runs()] == [
        (1, first.id, "complete"), (2, second.id, "complete")]
    with store.open_run(second.id) as (connection, number):
        assert connection.execute(f"SELECT count(*) FROM hsps WHERE run = {number}").fetchall() == [(ROWS[1],)]


def test_a_run_is_not_taken_while_the_store_is_in_use(store):
    toy_runs.run_once(store)
    store.merge_pending()
    run = worked(store)
    release = hold(store.path)
    assert not store.take(run) and run.is_open
    run.close()
    assert store.merge_pending() == []
    release()
    assert store.merge_pending() == [run.id]
    assert_same_hits(rows_of(store, run.id), toy_runs.expected_hits())


def test_a_run_that_does_not_fit_the_store_is_not_taken(store):
    with_column(store, Column("depth", "str"), ["a"])
    store.merge_pending()
    run = toy_runs.create(store)
    run.begin(toy_runs.PLAN)
    run.commit_batch(0, Hits({"query": [0], "target": [0], "score": [1], "depth": [2]}, [Column("depth", "i4")]),
                     toy_runs.info(np.array([0])), {})
    run.finish("complete")
    assert not store.take(run)
    assert run.is_open and run.connection.execute("SELECT count(*) FROM hit").fetchall() == [(1,)]
    run.close()
    assert len(store.runs()) == 2 and store.merge_pending() == []
    connection = connect(store.path, False, "results")
    connection.execute("UPDATE seqloom_file SET schema_revision = 'another'")
    connection.close()
    assert not store.take(worked(store))
