"""Files of the first revision of results, made by ``toy_runs``: a store with two runs, and the file of a third one."""

import gzip
import resource
from pathlib import Path

import duckdb
import pytest
from seqloom.core.errors import StoreError
from seqloom.core.records import Hits
from seqloom.storage.duck import revisions
from seqloom.storage.duck.connection import connect
from seqloom.storage.results.record_bytes import to_bytes
from seqloom.storage.results.report import RunReport
from seqloom.storage.results.run_file import RunFile
from seqloom.storage.results.run_paths import mark_done
from seqloom.storage.results.store import ResultStore
from seqloom.testing import assert_same_hits, assert_same_records

from .. import toy_runs

DATA = Path(__file__).parents[1] / "data"
OLD_RUN = "01a1fd53-3626-7924-a557-c166b3c6b92f"
HEAD = revisions.HEAD["results"]


def unpack(name: str, path: Path) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(gzip.decompress((DATA / name).read_bytes()))


@pytest.fixture
def store(tmp_path):
    unpack("results_0001.duckdb.gz", tmp_path / "store.duckdb")
    return ResultStore(tmp_path / "store.duckdb")


def assert_all_rows(store: ResultStore, count: int) -> None:
    runs = store.runs()
    assert [r["run"] for r in runs] == list(range(1, count + 1))
    for run in runs:
        with store.open_run(run["id"]) as (connection, number):
            hits = Hits.concat([query.hits for query in RunReport(connection, run["id"]).queries()])
            assert_same_hits(hits, toy_runs.expected_hits())
            rows = connection.execute(f"SELECT count(*), count(accuracy) FROM hsps WHERE run = {number}").fetchall()
        assert rows == [(len(hits.alignments), len(hits.alignments) // 2)]


def revision_of(path: Path) -> str:
    with connect(path, True, "results") as connection:
        return connection.execute("SELECT schema_revision FROM seqloom_file").fetchall()[0][0]


def test_old_store_can_be_read_as_it_is(store, capfd):
    before = store.path.read_bytes()
    assert_all_rows(store, 2)
    assert store.show(2)["options"] == {"evalue": 10.0}
    assert store.path.read_bytes() == before and capfd.readouterr().err == ""


def test_old_store_is_brought_to_head_by_the_next_run(store, capfd):
    toy_runs.run_once(store)
    assert len(store.merge_pending()) == 1
    assert capfd.readouterr().err == f"seqloom: {store.path}: bringing it from schema revision 0001 to {HEAD}\n"
    assert revision_of(store.path) == HEAD
    assert_all_rows(store, 3)
    assert store.sql("SELECT longest FROM runs").to_pydict() == {"longest": [100, 100, 100]}
    toy_runs.run_once(store)
    store.merge_pending()
    assert capfd.readouterr().err == ""


def test_a_full_disk_is_told_of_as_such(store, capfd):
    """A limit on the size of files stands for it."""
    before = store.path.read_bytes()
    former = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, former[1]))
    try:
        with pytest.raises(StoreError, match="the disk is full"):
            connect(store.path, False, "results")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, former)
    assert store.path.read_bytes() == before
    toy_runs.run_once(store)
    store.merge_pending()
    assert_all_rows(store, 3)


def test_old_file_of_a_run_is_merged(store, capfd):
    path = store.runs_folder / f"{OLD_RUN}.duckdb"
    unpack("run_0001.duckdb.gz", path)
    mark_done(path)
    assert store.merge_pending() == [OLD_RUN]
    assert f"{path}: bringing it from schema revision 0001 to {HEAD}" in capfd.readouterr().err
    assert_all_rows(store, 3)
    assert store.sql("SELECT longest FROM runs").to_pydict() == {"longest": [100, 100, 100]}


def test_interrupted_run_of_an_old_version_goes_on(store, capfd):
    path = store.runs_folder / f"{OLD_RUN}.duckdb"
    unpack("run_0001.duckdb.gz", path)
    with RunFile.open(path).connection as connection:
        connection.execute("UPDATE runs SET state = 'incomplete'; DELETE FROM batches WHERE batch = 2; "
                           "DELETE FROM units WHERE batch = 2; DELETE FROM hit WHERE query >= 4; "
                           "DELETE FROM alignment WHERE query >= 4")
    run = store.open_incomplete(OLD_RUN)
    toy_runs.work(run)
    run.close()
    assert store.merge_pending() == [OLD_RUN]
    assert_all_rows(store, 3)
    assert "bringing it from" in capfd.readouterr().err


def test_partial_results_of_an_old_version_are_found(store, capfd):
    path = store.runs_folder / f"{OLD_RUN}.duckdb"
    unpack("run_0001.duckdb.gz", path)
    some = toy_runs.unit_rows(2, 1)
    with duckdb.connect(str(path)) as connection:
        connection.execute("UPDATE runs SET state = 'incomplete'; DELETE FROM batches WHERE batch = 2; "
                           "DELETE FROM units WHERE batch = 2 AND volume <> 1; DELETE FROM hit WHERE query >= 4; "
                           "DELETE FROM alignment WHERE query >= 4")
        connection.execute("INSERT INTO partials VALUES (0, 2, 1, ?)", [to_bytes(some)])
    run = store.open_incomplete(OLD_RUN)
    assert (2, 1) in run.done_units()
    assert_same_records(run.partials(2)[0], some)
    toy_runs.work(run)
    run.close()
    assert store.merge_pending() == [OLD_RUN]
    assert_all_rows(store, 3)
