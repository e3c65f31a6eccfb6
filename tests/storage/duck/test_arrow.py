"""Values and columns on their way into DuckDB."""

import subprocess
import sys

import duckdb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from seqloom.core.records import Ragged
from seqloom.core.text_rows import TextRows
from seqloom.storage.duck import arrow
from seqloom.storage.duck.arrow import FEW, Nullable, insert, texts_of
from seqloom.storage.duck.literals import literal


@pytest.fixture(scope="module", autouse=True, params=["few rows as text", "all rows as a stream"])
def way(request):
    """Both ways into a table, also for rows that would take the other one."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "all rows as a stream":
            patch.setattr(arrow, "FEW", 0)
        yield


@pytest.mark.parametrize("value", [None, True, False, 0, -5, 2**70, 0.1, 1e-300, float("inf"), "", "it's", "ß\n\t\"",
                                   b"", b"\x00'\xff", ["a", None], [1, 2]])
def test_literals(value):
    assert duckdb.connect().execute(f"SELECT {literal(value)}").fetchall() == [(value,)]


def test_literal_of_something_else():
    with pytest.raises(TypeError, match="no SQL literal for object"):
        literal(object())


def test_columns_of_every_kind():
    connection = duckdb.connect()
    connection.execute("CREATE TABLE t (k VARCHAR, a SMALLINT, b DOUBLE, c BOOLEAN, p UINTEGER[], q BIGINT, d DOUBLE, "
                       "x BLOB, y JSON, n INTEGER, z BLOB)")
    absent = np.array([True, False, False])
    insert(connection, "t", {
        "a": ("SMALLINT", np.array([1, -1, 3], np.int8)),
        "b": ("DOUBLE", Nullable(np.array([0.5, 0.1, -2], np.float32), absent)),
        "c": ("BOOLEAN", np.array([True, False, True])),
        "p": ("UINTEGER[]", Ragged(np.array([0, 1, 1, 3]), np.array([7, 2**32 - 1, 0], np.uint32))),
        "q": ("BIGINT", Nullable(np.array([5, 6, 2**60]), ~absent)),
        "d": ("DOUBLE", np.array([0.0, np.nan, np.inf, 9.0])[:3]),
        "x": ("BLOB", [bytes(20), None, b"\xff"]),
        "y": ("JSON", ["{}", "[1]", None]),
        "n": ("INTEGER", [None, 3, -1]),
        "z": ("BLOB", Ragged(np.array([1, 3, 3, 4]), np.frombuffer(b"-ab\x00-", np.uint8))),
    }, {"k": "it's"})
    rows = connection.execute("SELECT * EXCLUDE d FROM t").fetchall()
    assert rows == [("it's", 1, None, True, [7], 5, bytes(20), "{}", None, b"ab"),
                    ("it's", -1, pytest.approx(0.1), False, None, None, None, "[1]", 3, b""),
                    ("it's", 3, -2.0, True, [2**32 - 1, 0], None, b"\xff", None, -1, b"\x00")]
    assert [str(d) for (d,) in connection.execute("SELECT d FROM t").fetchall()] == ["0.0", "nan", "inf"]


@settings(max_examples=30, deadline=None)
@given(st.lists(st.none() | st.text(st.characters(exclude_categories=["Cs"])), max_size=9))
def test_texts_keep_every_character(texts):
    connection = duckdb.connect()
    connection.execute("CREATE TABLE t (place INTEGER, text VARCHAR)")
    insert(connection, "t", {"place": ("INTEGER", list(range(len(texts)))), "text": ("VARCHAR", texts)})
    assert [t for (t,) in connection.execute("SELECT text FROM t ORDER BY place").fetchall()] == texts


@settings(max_examples=30, deadline=None)
@given(st.lists(st.text(st.characters(codec="ascii") | st.sampled_from("é\0"), max_size=5), min_size=1, max_size=9),
       st.sampled_from([1, FEW]))
def test_texts_that_are_bytes_keep_every_character(texts, times):
    connection, texts = duckdb.connect(), texts * times
    connection.execute("CREATE TABLE t (place INTEGER, text VARCHAR)")
    column = texts_of(TextRows.of(texts))
    assert isinstance(column, Ragged) == "".join(texts).isascii()
    insert(connection, "t", {"place": ("INTEGER", list(range(len(texts)))), "text": ("VARCHAR", column)})
    assert [t for (t,) in connection.execute("SELECT text FROM t ORDER BY place").fetchall()] == texts


def test_many_rows_stay_in_order():
    connection = duckdb.connect()
    connection.execute("CREATE TABLE t (a BIGINT, b VARCHAR)")
    numbers = np.arange(300_000)
    insert(connection, "t", {"a": ("BIGINT", numbers), "b": ("VARCHAR", [str(n) for n in numbers.tolist()])})
    found = connection.execute("SELECT a, b::BIGINT AS b FROM t").fetchnumpy()
    assert (found["a"] == numbers).all() and (found["b"] == numbers).all()


def test_nothing_heavy_is_imported():
    program = ("import sys, duckdb\nfrom seqloom.storage.duck.arrow import insert\n"
               "c = duckdb.connect()\nc.execute('CREATE TABLE t (a INTEGER, b BLOB)')\n"
               "insert(c, 't', {'a': ('INTEGER', [1, None]), 'b': ('BLOB', [bytes(20), None])})\n"
               "assert c.execute('SELECT * FROM t').fetchall() == [(1, bytes(20)), (None, None)]\n"
               "assert not {'pandas', 'pyarrow'} & set(sys.modules)\n")
    subprocess.run([sys.executable, "-c", program], check=True)
