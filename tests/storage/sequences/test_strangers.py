"""Databases that were changed by somebody who knows how: a search or ``db check`` says so, in one line, and no more."""

import shutil
import zlib

import duckdb
import numpy as np
import pytest
from seqloom.core.alphabet import NUCLEOTIDE, PROTEIN
from seqloom.core.errors import SchemaError, SeqloomError
from seqloom.core.sequences import SequenceBatch
from seqloom.storage.sequences.check import problems
from seqloom.storage.sequences.database import SequenceDatabase
from seqloom.storage.sequences.packing import RUN
from seqloom.storage.sequences.sources import DatabaseSource


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    path = tmp_path_factory.mktemp("whole") / "d.duckdb"
    SequenceDatabase.create(path, [SequenceBatch.of(PROTEIN, ["MKVLAW" * 9, "MKLAVtrqa" * 3, "AAAA"],
                                                    ["a", "b", "c"])]).close()
    return path


@pytest.fixture
def changed(whole, tmp_path):
    """Carries out SQL on a copy of the database."""
    def change(*statements):
        path = tmp_path / "d.duckdb"
        shutil.copy(whole, path)
        with duckdb.connect(str(path)) as connection:
            for sql, *values in statements:
                connection.execute(sql, *values)
        return path

    return change


def told(path):
    """What is said when the database is opened and searched; empty where nothing is."""
    try:
        with SequenceDatabase.open(path) as database:
            source = DatabaseSource(database)
            for span in source.plan(1 << 20):
                source.read(span).residues.sum()
            source.fetch(np.arange(source.sequences))
    except SeqloomError as error:
        return str(error)
    return ""


def found(path):
    """What a check says; empty where all is well."""
    try:
        with SequenceDatabase.open(path) as database:
            return "\n".join(problems(database))
    except SeqloomError as error:
        return str(error)


@pytest.mark.parametrize(("sql", "what"), [
    ("DROP TABLE seqloom_file; CREATE VIEW seqloom_file AS SELECT 'sequences' AS kind, '0004' AS schema_revision, "
     "content AS created_by FROM read_text('/etc/passwd')", "its table seqloom_file is a view"),
    ("ALTER TABLE sequences RENAME TO kept; CREATE VIEW sequences AS FROM kept", "its table sequences is a view"),
    ("DROP TABLE database; CREATE VIEW database AS FROM range(1::BIGINT << 60)", "its table database is a view"),
    ("DROP TABLE masks; CREATE TABLE masks (kind VARCHAR, sequence BIGINT, start INTEGER, made INTEGER AS (start + 1))",
     "its column masks.made is computed"),
    ("ALTER TABLE sequences ALTER name TYPE BLOB", "its column sequences.name holds BLOB"),
    ("ALTER TABLE volume_0 ALTER chunk TYPE VARCHAR", "its column volume_0.chunk holds VARCHAR"),
])
def test_sql_of_whoever_made_the_file_is_not_run(changed, sql, what):
    path = changed((sql,))
    for read_only in (True, False):
        with pytest.raises(SchemaError) as error:
            SequenceDatabase.open(path, read_only=read_only)
        assert str(error.value) == f"{path} is not a sequence database as seqloom makes them: {what}; don't use it"


@pytest.mark.parametrize("name", ["duckdb_views", "duckdb_columns", "duckdb_databases"])
def test_what_the_file_says_of_itself_is_not_believed(changed, name):
    path = changed((f"CREATE MACRO {name}() AS TABLE SELECT * FROM system.main.{name}() WHERE false; "
                    "ALTER TABLE sequences RENAME TO kept; CREATE VIEW sequences AS FROM kept",))
    with pytest.raises(SchemaError, match="its table sequences is a view"):
        SequenceDatabase.open(path)


@pytest.mark.parametrize("macro", ["count(x) AS 666", "coalesce(a, b) AS 666", "current_database() AS 'other'",
                                   "regexp_matches(a, b) AS false", "max(x) AS 666", "get_bit(a, b) AS 0"])
def test_functions_of_whoever_made_the_file_are_not_called(whole, changed, macro):
    path = changed((f"CREATE MACRO {macro}",))
    with SequenceDatabase.open(whole) as before, SequenceDatabase.open(path) as database:
        assert list(database.list()) == list(before.list()) and database.extract(["b"]).text(0) == "MKLAVtrqa" * 3
        assert database.find_accessions(["a", "c"]) == {"a": 0, "c": 2}
        assert [line.split(":")[0] for line in problems(database)] == [f"macro {macro.split('(')[0]}"]
    with pytest.raises(SchemaError, match=f"it defines the function {macro.split('(')[0]}"):
        SequenceDatabase.open(path, read_only=False)


def test_an_open_database_reads_no_other_file(whole):
    with SequenceDatabase.open(whole) as database, pytest.raises(SeqloomError, match="disabled"):
        database._run("SELECT * FROM read_text('/etc/passwd')")


def test_a_macro_in_place_of_a_function_is_found(changed):
    assert "macro count" in found(changed(("CREATE MACRO main.count(x) AS 666",)))


@pytest.mark.parametrize(("sql", "by"), [
    ("UPDATE sequences SET name = 'WRONG' WHERE ordinal = 1", "check"),
    ("UPDATE sequences SET name = CASE ordinal WHEN 0 THEN 'b' WHEN 1 THEN 'a' ELSE name END", "check"),
    ("UPDATE sequences SET description = 'of somebody else' WHERE ordinal = 1", "check"),
    ("UPDATE row_blocks SET descriptions = from_hex('00')", "check"),
    ("UPDATE sequences SET length = length - 1 WHERE ordinal = 0", "search"),
    ("UPDATE sequences SET length = length + CASE ordinal WHEN 1 THEN 1 ELSE -1 END WHERE ordinal IN (0, 1)", "search"),
    ("UPDATE sequences SET start = start + 1 WHERE ordinal = 1", "check"),
    ("UPDATE sequences SET start = -5 WHERE ordinal = 1", "search"),
    ("UPDATE sequences SET start = 1::BIGINT << 50 WHERE ordinal = 1", "search"),
    ("UPDATE sequences SET length = 2147483647 WHERE ordinal = 1", "search"),
    ("UPDATE sequences SET length = -3 WHERE ordinal = 1", "search"),
    ("UPDATE sequences SET ordinal = 100000 WHERE ordinal = 1", "search"),
    ("DELETE FROM sequences WHERE ordinal = 2", "search"),
    ("INSERT INTO sequences FROM sequences WHERE ordinal = 1", "search"),
    ("UPDATE database SET letters = letters + 1", "search"),
    ("UPDATE database SET letters = 1::BIGINT << 60", "search"),
    ("UPDATE database SET sequences = sequences - 1", "search"),
    ("UPDATE database SET sequences = 1::BIGINT << 60", "search"),
    ("UPDATE database SET longest = 10", "search"),
    ("UPDATE database SET shortest = 1", "search"),
    ("UPDATE database SET fingerprint = '00000000000000000000000000000000'", "check"),
    ("UPDATE database SET alphabet = 'nucleotide'", "search"),
    ("UPDATE database SET alphabet = 'klingon'", "search"),
    ("UPDATE database SET chunk_letters = 0", "search"),
    ("UPDATE database SET chunk_letters = -1", "search"),
    ("UPDATE database SET chunk_letters = 50", "search"),
    ("ALTER TABLE database ALTER letters DROP NOT NULL; UPDATE database SET letters = NULL", "search"),
    ("UPDATE volume_0 SET letters = letters - 10", "search"),
    ("DELETE FROM volume_0", "search"),
    ("INSERT INTO volume_0 FROM volume_0", "search"),
    ("UPDATE volume_0 SET digests = from_hex('00')", "check"),
    ("INSERT INTO masks VALUES ('lower', 1, 5, 100000)", "check"),
    ("UPDATE row_blocks SET digest = from_hex('00')", "check"),
    ("INSERT INTO seqloom_file FROM seqloom_file", "search"),
])
def test_what_was_changed_is_said(changed, sql, by):
    path = changed((sql,))
    said = told(path)
    assert "\n" not in said and (said or by == "check")
    assert found(path)


@pytest.mark.parametrize("code", [28, 99, 255])
def test_residues_outside_the_alphabet_are_found_though_their_checksum_is_right(whole, changed, code):
    with duckdb.connect(str(whole), read_only=True) as connection:
        [(data,)] = connection.execute("SELECT data FROM volume_0").fetchall()
    data = data[:7] + bytes([code]) + data[8:]
    path = changed(("UPDATE volume_0 SET data = ?, checksum = ?", [data, zlib.crc32(data)]))
    assert "chunk 0: codes outside the alphabet" in told(path) and "codes outside the alphabet" in found(path)


@pytest.mark.parametrize("run", [(10, 50, 14), (1 << 31, 1, 14), (0, 1, 99)])
def test_ambiguous_bases_that_can_not_be_are_found(tmp_path, run):
    path = tmp_path / "n.duckdb"
    SequenceDatabase.create(path, [SequenceBatch.of(NUCLEOTIDE, ["ACGTNNACGT"], ["a"])]).close()
    with duckdb.connect(str(path)) as connection:
        [(data,)] = connection.execute("SELECT data FROM volume_0").fetchall()
        runs = np.array([run], RUN).tobytes()
        connection.execute("UPDATE volume_0 SET ambiguities = ?, checksum = ?",
                           [runs, zlib.crc32(runs, zlib.crc32(data))])
    assert "chunk 0: " in told(path) and "chunk 0: " in found(path)
