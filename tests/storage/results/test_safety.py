"""What can't be read is never deleted; what was cut short is made anew; what is damaged or a stranger's is refused."""

import os
import time

import duckdb
import pytest
from seqloom.core.errors import LockedError, ResumeError, SchemaError, SeqloomError, StoreError, UnknownNameError
from seqloom.storage.duck.connection import connect
from seqloom.storage.duck.durable import log_of
from seqloom.storage.results import run_row
from seqloom.storage.results import store as store_module
from seqloom.storage.results.run_file import RunFile
from seqloom.storage.results.store import ResultStore
from seqloom.testing import assert_same_hits

from .. import toy_runs
from .test_store import ROWS, rows_of


@pytest.fixture
def store(tmp_path):
    return ResultStore(tmp_path / "store.duckdb")


@pytest.fixture
def later(monkeypatch):
    """Files are older than leftovers are."""
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 4000)


def interrupted(store: ResultStore) -> str:
    run = toy_runs.create(store)
    run.begin(toy_runs.PLAN)
    run.commit_unit(0, 0, toy_runs.unit_rows(0, 0), {})
    run.close()
    return run.id


def spoil(path, revision: str = "0099") -> None:
    """Stamp a file of results with a revision of the future, in its log."""
    with duckdb.connect(str(path)) as connection:
        connection.execute("PRAGMA disable_checkpoint_on_shutdown")
        connection.execute(f"UPDATE seqloom_file SET schema_revision = '{revision}'")


@pytest.mark.parametrize("harm", ["a flipped bit", "a newer version", "no database"])
def test_an_interrupted_run_that_can_not_be_read_stays(store, later, caplog, harm):
    run = interrupted(store)
    path = store.runs_folder / f"{run}.duckdb"
    if harm == "a flipped bit":
        data = bytearray(log_of(path).read_bytes())
        data[200] ^= 1
        log_of(path).write_bytes(data)
    elif harm == "a newer version":
        spoil(path)
    else:
        path.write_bytes(b"something else " * 1000)
    before = {p.name: p.read_bytes() for p in store.runs_folder.iterdir()}
    done = toy_runs.run_once(store)
    assert store.merge_pending() == [done]
    assert {p.name: p.read_bytes() for p in store.runs_folder.iterdir()} == before
    assert sum(f"run {run} can't be read: " in record.getMessage() for record in caplog.records) == 1
    store.merge_pending()
    assert len(caplog.records) == 1  # said once
    listed = {r["id"]: r for r in store.runs()}
    assert listed[run]["state"] == "unreadable"
    assert ("use a newer seqloom" in listed[run]["error"]) == (harm == "a newer version")
    assert store.show(run)["error"] == listed[run]["error"]
    with pytest.raises(StoreError, match="can't be read"):
        store.open_incomplete(run)
    with pytest.raises(StoreError, match="can't be read"), store.open_run(run):
        pass
    assert store.delete(run) == run and not list(store.runs_folder.iterdir())


def test_several_runs_that_can_not_be_read_are_told_of_in_one_line(store, later, caplog):
    for _ in range(2):
        spoil(store.runs_folder / f"{interrupted(store)}.duckdb")
    store.merge_pending()
    assert [r.getMessage() for r in caplog.records] == [
        f"2 runs beside {store.path} can't be read; 'seqloom runs list' says why"]


def test_a_bare_file_with_a_log_stays(store, later):
    store.runs_folder.mkdir()
    path = store.runs_folder / "01a1fd32-f53e-7322-b1a8-ab068bf7a324.duckdb"
    duckdb.connect(str(path)).close()
    log_of(path).write_bytes(b"\1" * 20_000)
    store.merge_pending(age=0)
    assert path.exists() and log_of(path).exists() and [r["state"] for r in store.runs()] == ["unreadable"]


def test_a_run_that_was_cut_off_in_its_first_write_goes(store, later):
    run = toy_runs.create(store)
    run.close()
    path = store.runs_folder / f"{run.id}.duckdb"
    bare, log = path.read_bytes(), log_of(path).read_bytes()
    for size in (0, 3, 500, len(log) - 1):
        path.write_bytes(bare)
        log_of(path).write_bytes(log[:size])
        assert store.runs() == []
        store.merge_pending()
        assert not store.runs_folder.exists()
        store.runs_folder.mkdir()


def test_a_file_that_a_process_has_open_is_not_taken_for_a_leftover(store, later):
    store.runs_folder.mkdir()
    path = store.runs_folder / "01a1fd32-f53e-7322-b1a8-ab068bf7a324.duckdb"
    with duckdb.connect(str(path)):
        store.merge_pending(age=0)
        assert path.exists()
    store.merge_pending(age=0)
    assert not path.exists()


def test_a_disk_that_fails_while_runs_are_merged_is_told_of(store, monkeypatch, caplog):
    class Failing:
        """Of no use after the first commit, as DuckDB's connections are when the disk has failed."""

        def __init__(self, connection):
            self.connection, self.failed = connection, False

        def execute(self, sql):
            self.failed |= sql == "COMMIT"
            if self.failed:
                raise duckdb.FatalException('FATAL Error: invalidated\nOriginal error: "fsync failed!"')
            return self.connection.execute(sql)

        def close(self):
            self.connection.close()

    runs = []
    for _ in range(2):
        run = toy_runs.create(store)
        toy_runs.work(run)
        run.close()
        runs.append(run.id)
    with monkeypatch.context() as patch:
        opened = store._open_for_writing
        patch.setattr(store, "_open_for_writing", lambda: Failing(opened()))
        assert store.merge_pending() == []
    assert caplog.records and all("the disk fails (fsync failed!)" in record.getMessage() for record in caplog.records)
    assert store.merge_pending() == runs


def test_a_run_that_ends_while_the_log_of_the_store_is_cleared_is_merged(store, monkeypatch):
    toy_runs.run_once(store)
    store.merge_pending()
    with duckdb.connect(str(store.path)) as connection:
        connection.execute("PRAGMA disable_checkpoint_on_shutdown")
        connection.execute("UPDATE runs SET host = 'there'")
    clear, ended = store._clear_log, []

    def clear_while_a_run_ends():
        ended.append(toy_runs.run_once(store))
        clear()

    monkeypatch.setattr(store, "_clear_log", clear_while_a_run_ends)
    assert store.merge_pending() == ended and len(ended) == 1


def test_a_run_that_can_not_be_begun_leaves_no_file(store, monkeypatch):
    def full(*_):
        raise duckdb.IOException("Could not write file: No space left on device")

    monkeypatch.setattr("seqloom.storage.results.run_file._write_run", full)
    with pytest.raises(StoreError, match="the disk is full"):
        toy_runs.create(store)
    assert not list(store.runs_folder.iterdir())


@pytest.mark.parametrize("left", ["empty", "bare"])
def test_a_store_that_was_never_filled_becomes_the_store(store, left):
    if left == "empty":
        store.path.touch()
    else:
        duckdb.connect(str(store.path)).close()
    store.check()
    store.begin(toy_runs.PROVENANCE, toy_runs.queries(), toy_runs.DATABASES).discard()
    assert store.runs() == []
    with pytest.raises(StoreError, match="there are no runs in"):
        store.sql("SELECT 1")
    runs = [toy_runs.run_once(store)]
    assert store.merge_pending() == runs
    run = toy_runs.create(store)
    toy_runs.work(run)
    assert store.take(run)
    assert [r["id"] for r in store.runs()] == [*runs, run.id]
    assert_same_hits(rows_of(store, run.id), toy_runs.expected_hits())


def test_somebody_else_s_database_does_not_become_the_store(store):
    with duckdb.connect(str(store.path)) as connection:
        connection.execute("CREATE TABLE mine AS SELECT 1")
    store.check()
    with pytest.raises(SchemaError, match="is a DuckDB file but not a results store"):
        store.begin(toy_runs.PROVENANCE, toy_runs.queries(), toy_runs.DATABASES)
    assert not store.runs_folder.exists()
    toy_runs.run_once(store)
    with pytest.raises(SchemaError):
        store.merge_pending(strict=True)


def test_the_log_of_a_store_that_is_gone_is_not_read_into_a_new_one(store, caplog):
    toy_runs.run_once(store)
    store.merge_pending()
    with duckdb.connect(str(store.path)) as connection:
        connection.execute("PRAGMA disable_checkpoint_on_shutdown")
        connection.execute("INSERT INTO runs SELECT * REPLACE (77 AS run) FROM runs")
    assert log_of(store.path).exists()
    store.path.unlink()
    run = toy_runs.run_once(store)
    assert store.merge_pending() == [] and f"{log_of(store.path)}" in caplog.text
    assert [(r["id"], r["state"]) for r in store.runs()] == [(run, "pending")]
    log_of(store.path).unlink()
    assert store.merge_pending() == [run] and [r["run"] for r in store.runs()] == [1]


def test_a_store_that_can_not_be_written_can_be_read(store, monkeypatch, caplog):
    first = toy_runs.run_once(store)
    store.merge_pending()
    second = toy_runs.run_once(store)

    def refuse(path, read_only, *args, **options):
        if not read_only and str(path) == str(store.path):
            raise StoreError(f"{path} can't be opened or written: permission denied")
        return connect(path, read_only, *args, **options)

    monkeypatch.setattr(store_module, "connect", refuse)
    assert store.sql("SELECT count(*) AS n FROM hits").to_pydict() == {"n": [ROWS[0]]}
    assert store.merge_pending() == []
    assert [r.getMessage().split(" in ")[0] for r in caplog.records] == ["1 complete run is kept"]
    assert {r["id"]: r["state"] for r in store.runs()} == {first: "complete", second: "pending"}
    with pytest.raises(StoreError, match="permission denied"):
        store.merge_pending(strict=True)


def test_damage_is_said_of_the_store(store, tmp_path):
    run = [toy_runs.run_once(store) for _ in range(2)][1]
    store.merge_pending()
    whole = store.path.read_bytes()
    said = 0
    for place in range(12288, len(whole), 65536 - 4096):  # somewhere in each block, which has a checksum
        data = bytearray(whole)
        data[place:place + 64] = bytes(b ^ 0x55 for b in data[place:place + 64])
        store.path.write_bytes(data)
        for ask in (store.runs, lambda: store.show(1), lambda: rows_of(store, run),
                    lambda: store.sql("SELECT * FROM hsps"), lambda: store.export(1, "tsv", tmp_path / "o.tsv")):
            try:
                ask()
            except SeqloomError as error:
                said += 1
                assert str(store.path) in str(error) and "o.tsv" not in str(error)
    assert said > 10


def test_views_and_functions_of_the_file_are_not_used(store):
    toy_runs.run_once(store)
    store.merge_pending()
    with duckdb.connect(str(store.path)) as connection:
        connection.execute("CREATE OR REPLACE VIEW hits AS SELECT 1 AS run, 'evil' AS qseqid; "
                           "CREATE MACRO count(x) AS 666;"
                           "CREATE MACRO round(x, y) AS 'evil'; CREATE MACRO concat_ws(a, b, c) AS 'evil'")
    table = store.sql("SELECT count(qseqid) AS n, min(stitle) AS first FROM hits").to_pydict()
    assert table == {"n": [ROWS[0]], "first": ["t0 target 0"]}
    assert store.show(1)["hits"] == ROWS[0]
    with store.open_run(1, views=True) as (connection, _):
        assert connection.execute("SELECT count(sseqid) FROM hsps").fetchall() == [(ROWS[1],)]
    with duckdb.connect(str(store.path)) as connection:
        connection.execute("ALTER TABLE targets RENAME TO other; CREATE VIEW targets AS FROM other")
    with pytest.raises(SchemaError, match="its table targets is a view"):
        store.sql("SELECT 1")


def test_a_query_reaches_no_files_unless_it_may(store, tmp_path):
    toy_runs.run_once(store)
    store.merge_pending()
    (tmp_path / "secret.csv").write_text("a\n1\n")
    for query in (f"FROM read_csv('{tmp_path}/secret.csv')", f"COPY runs TO '{tmp_path}/out.csv'",
                  f"ATTACH '{tmp_path}/other.duckdb'", f"SELECT content FROM read_text('{tmp_path}/secret.csv')"):
        with pytest.raises(StoreError, match="--allow-files"):
            store.sql(query)
    assert not (tmp_path / "out.csv").exists() and not (tmp_path / "other.duckdb").exists()
    assert store.sql(f"FROM read_csv('{tmp_path}/secret.csv')", allow_files=True).to_pydict() == {"a": [1]}
    with pytest.raises(StoreError):
        store.sql("DELETE FROM hit", allow_files=True)


def test_a_query_is_stopped_in_time(store):
    toy_runs.run_once(store)
    store.merge_pending()
    begin = time.monotonic()
    with pytest.raises(StoreError, match=r"stopped after 0.2 seconds; --timeout"):
        store.sql("SELECT count(*) FROM range(1000000) a, range(1000000) b WHERE sqrt(a.range * b.range) < 7",
                  timeout=0.2)
    assert time.monotonic() - begin < 30
    with pytest.raises(SeqloomError, match="no SQL statement"):
        store.sql(" -- nothing")


def test_a_run_alone_and_the_last_run(store):
    runs = [toy_runs.run_once(store), toy_runs.run_once(store)]
    store.merge_pending()
    for number, run in enumerate(runs, 1):
        with store.open_run(run, alone=True) as (connection, _):
            for view in ("hits", "hit", "hsps", "runs", "queries", "best_hits", "coverage"):
                assert connection.execute(f"SELECT DISTINCT run FROM {view}").fetchall() == [(number,)], view
            assert connection.execute("SELECT count(*) FROM hits").fetchall() == [(ROWS[0],)]
    assert store.sql("SELECT DISTINCT run FROM last_hits").to_pydict() == {"run": [2]}
    assert ROWS[0] > 1
    for view in ("last_hits", "last_hsps"):
        assert store.sql(f"SELECT run FROM {view} LIMIT 1").num_rows == 1
    assert store.sql("SELECT count(*) AS n FROM last_hsps").to_pydict() == {"n": [ROWS[1]]}
    with duckdb.connect(str(store.path), read_only=True) as connection:  # for other programs as well
        assert connection.execute("SELECT DISTINCT run FROM last_hits").fetchall() == [(2,)]


def test_last_is_the_run_that_was_completed_last_whatever_the_clock_says(store, monkeypatch):
    first = toy_runs.run_once(store)
    store.merge_pending()
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now - 86400)
    second = toy_runs.run_once(store)
    store.merge_pending()
    assert second < first and store.locate("last").id == second
    assert [r["id"] for r in store.runs()] == [first, second]
    stopped = interrupted(store)
    assert store.locate("last").id == second
    assert store.open_incomplete("last").id == stopped


def test_only_interrupted_runs_are_gone_on_with_by_themselves(store):
    for _ in range(2):
        with pytest.raises(ResumeError, match="there is no interrupted run in"):
            store.open_incomplete("last")
        toy_runs.run_once(store)
        store.merge_pending()
    stopped = interrupted(store)
    toy_runs.run_once(store)
    run = store.open_incomplete("last")
    assert run.id == stopped
    run.close()


@pytest.mark.parametrize("clock", [-1e9, 0.0, 9.9e9, 2.0**45])
def test_a_clock_set_wrong_is_no_error(store, monkeypatch, clock):
    monkeypatch.setattr(time, "time", lambda: clock)
    run = run_row.new_run_id()
    assert len(run) == 36
    made = RunFile.create(store.runs_folder, toy_runs.PROVENANCE, toy_runs.queries(), toy_runs.DATABASES)
    made.close()
    assert [r["id"] for r in store.runs()] == [made.id]


def test_one_run_is_called_one_run(store):
    toy_runs.run_once(store)
    with pytest.raises(UnknownNameError, match="it has 1 run; 'seqloom runs list' shows it"):
        store.locate("7")


def test_results_are_read_while_this_program_has_the_store_open(store):
    run = toy_runs.run_once(store)
    store.merge_pending()
    with duckdb.connect(str(store.path)) as mine:  # what one does in a notebook
        assert_same_hits(rows_of(store, run), toy_runs.expected_hits())
        assert store.sql("SELECT count(*) AS n FROM hits").to_pydict() == {"n": [ROWS[0]]}
        more = toy_runs.create(store)
        toy_runs.work(more)
        if not store.take(more):
            more.close()
            assert store.merge_pending() == [more.id]
        assert mine.execute("SELECT count(*) FROM runs").fetchall() == [(2,)]
        mine.execute(f"COPY (SELECT 1) TO '{store.path.parent}/mine.csv'")  # with settings of its own
        assert mine.execute("SELECT current_setting('python_enable_replacements')").fetchall() == [(True,)]
    with duckdb.connect(str(store.path), read_only=True):
        assert_same_hits(rows_of(store, run), toy_runs.expected_hits())
        toy_runs.run_once(store)
        assert store.merge_pending() == []
    assert len(store.merge_pending()) == 1


def test_a_file_in_use_here_is_in_use(store):
    toy_runs.run_once(store)
    store.merge_pending()
    with duckdb.connect() as other:
        other.execute(f"ATTACH '{store.path}' AS somewhere")
        with pytest.raises(LockedError, match="is open in this program"):
            connect(store.path, False, "results")
        toy_runs.run_once(store)
        assert store.merge_pending() == []
    assert len(store.merge_pending()) == 1


def test_a_file_that_is_not_ours_to_write_is_left(store, later):
    store.runs_folder.mkdir()
    path = store.runs_folder / "01a1fd32-f53e-7322-b1a8-ab068bf7a324.duckdb"
    path.touch()
    if os.geteuid():  # root may write to anything
        path.chmod(0o400)
        store.merge_pending(age=0)
        assert path.exists()
