"""Results stores that were changed by somebody who knows how: nothing of theirs is run by what reads them."""

import duckdb
import pytest
from seqloom.core.alphabet import PROTEIN
from seqloom.core.errors import SchemaError, StoreError
from seqloom.core.sequences import SequenceBatch
from seqloom.storage.results.store import ResultStore
from seqloom.storage.sequences.database import SequenceDatabase

from .. import toy_runs


@pytest.fixture
def store(tmp_path):
    store = ResultStore(tmp_path / "store.duckdb")
    toy_runs.run_once(store)
    store.merge_pending()
    return store


def change(path, sql):
    with duckdb.connect(str(path)) as connection:
        connection.execute(sql)


@pytest.mark.parametrize("table", ["seqloom_file", "runs", "hit", "queries"])
@pytest.mark.parametrize("hidden", [False, True])
def test_a_view_in_the_place_of_a_table_is_refused(store, table, hidden):
    change(store.path, f"DROP VIEW IF EXISTS last_hits; ALTER TABLE {table} RENAME TO kept; "
                       f"CREATE VIEW {table} AS SELECT * FROM kept, read_text('/etc/hostname')")
    if hidden:
        change(store.path, "CREATE MACRO duckdb_views() AS TABLE FROM system.main.duckdb_views() WHERE false")
    for ask in (store.runs, lambda: store.sql("SELECT 1"), lambda: store.show("last")):
        with pytest.raises(SchemaError, match=f"its table {table} is a view"):
            ask()


def test_functions_of_whoever_made_the_store_are_not_called(store):
    before, wanted = store.runs(), store.sql("SELECT count(qseqid), max(score) FROM hits").to_pylist()
    for macro in ("count(x) AS 666", "max(x) AS 666", "current_database() AS 'other'", "round(a, b) AS 666"):
        change(store.path, f"CREATE MACRO {macro}")
    assert store.runs() == before
    assert store.sql("SELECT count(qseqid), max(score) FROM hits").to_pylist() == wanted


@pytest.mark.parametrize("setting", ["SET enable_external_access = true", "SET memory_limit = '1TB'",
                                     "SET lock_configuration = false", "SET threads = 64", "RESET memory_limit",
                                     "INSTALL httpfs", "LOAD httpfs", "ATTACH '/tmp/other.duckdb'",
                                     "COPY (SELECT 1) TO '/tmp/out.csv'", "FROM read_text('/etc/hostname')",
                                     "FROM '/etc/hostname'", "FROM glob('/etc/*')"])
def test_a_query_changes_no_setting_and_reaches_no_file(store, setting):
    with pytest.raises(StoreError, match="SQL: "):
        store.sql(setting)
    assert store.sql("SELECT 1 AS one").to_pylist() == [{"one": 1}]


def test_a_database_with_views_is_not_attached(store, tmp_path, caplog):
    path = tmp_path / "p.duckdb"
    SequenceDatabase.create(path, [SequenceBatch.of(PROTEIN, ["MKV"], ["a"])]).close()
    assert store.sql("SELECT name FROM p.sequences", [path]).to_pylist() == [{"name": "a"}]
    change(path, "CREATE VIEW shown AS SELECT content FROM read_text('/etc/hostname')")
    for allow in (False, True):
        with pytest.raises(SchemaError, match="its table shown is a view"):
            store.sql("SELECT * FROM p.shown", [path], allow_files=allow)
