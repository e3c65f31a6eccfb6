"""``seqloom runs``, ``sql`` and ``export`` on stores that are missing, odd, damaged or in use."""

import io
import os
import shutil
import subprocess
import sys

import pytest
from seqloom.storage.results.store import ResultStore

from tests.storage import toy_runs


@pytest.fixture
def store(seqloom, tmp_path):
    store = ResultStore(tmp_path / "seqloom.duckdb")
    toy_runs.run_once(store)
    store.merge_pending()
    return store


def test_questions_without_a_question(seqloom, store, monkeypatch):
    assert seqloom("sql", "").err == "seqloom: no SQL: the query is empty\n"
    monkeypatch.setattr(sys, "stdin", io.StringIO("\n"))
    nothing = seqloom("sql", "-")
    assert (nothing.status, nothing.err) == (2, "seqloom: no SQL: there is nothing on standard input\n")
    comment = seqloom("sql", "/* nothing */")
    assert comment.status == 2 and "no SQL statement" in comment.err


def test_questions_keep_to_the_store_unless_they_may_read_files(seqloom, store, tmp_path):
    (tmp_path / "more.csv").write_text("a\n5\n")
    refused = seqloom("sql", "FROM 'more.csv'")
    assert refused.status == 1
    assert seqloom("sql", "FROM 'more.csv'", "--allow-files", "--format", "tsv").out == "a\n5\n"
    copied = seqloom("sql", "COPY runs TO 'runs.csv'")
    assert copied.status == 1 and "--allow-files" in copied.err and not (tmp_path / "runs.csv").exists()
    assert seqloom("sql", "SELECT count(*) AS n FROM last_hits", "--format", "tsv", "-o", "n.tsv").status == 0
    assert (tmp_path / "n.tsv").read_text() == f"n\n{len(toy_runs.expected_hits())}\n"


def test_questions_that_take_too_long(seqloom, store):
    cross = "SELECT count(*) FROM range(1000000) a, range(1000000) b WHERE sqrt(a.range + b.range) < 7"
    endless = seqloom("sql", cross, "--timeout", "0.2")
    assert endless.status == 1 and "stopped after 0.2 seconds" in endless.err
    for wrong in ("no", "0", "-1", "nan"):
        assert "--timeout needs a number" in seqloom("sql", "SELECT 1", "--timeout", wrong).err


def test_a_terminal_gets_the_first_rows_of_a_long_table(seqloom, store, monkeypatch):
    query = "SELECT range AS i FROM range(2500)"
    assert len(seqloom("sql", query).out.splitlines()) == 2501
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    shown = seqloom("sql", query)
    assert len(shown.out.splitlines()) == 1001
    assert shown.err == "seqloom: 1,500 more rows; -o FILE or --format tsv gives all\n"


def test_a_store_that_is_not_there(seqloom):
    for words in (["runs", "list"], ["sql", "SELECT 1"], ["runs", "show", "last"], ["export", "last"]):
        refused = seqloom(*words, "--results", "nope.duckdb")
        assert refused.status and "nope.duckdb" in refused.err and len(refused.err.splitlines()) == 1
    assert seqloom("runs", "list").status == 0  # nothing has been searched here yet
    nothing = seqloom("runs", "resume")
    assert nothing.err == "seqloom: there is no interrupted run in seqloom.duckdb: nothing to resume\n"


def test_a_run_is_shown_in_lines_that_can_be_read(seqloom, store):
    shown = seqloom("runs", "show", "1")
    assert shown.status == 0 and "{" not in shown.out and max(map(len, shown.out.splitlines())) < 400
    assert "complete" in shown.out and "toy-seed" in shown.out and "--evalue" in shown.out


def test_runs_that_can_not_be_read_are_listed_with_the_reason(seqloom, store):
    store.runs_folder.mkdir()
    (store.runs_folder / "01a1fd32-f53e-7322-b1a8-ab068bf7a324.duckdb").write_bytes(b"something else " * 1000)
    listed = seqloom("runs", "list")
    assert "unreadable" in listed.out and "is not a DuckDB file" in listed.err and len(listed.err.splitlines()) == 1
    assert seqloom("runs", "delete", "01a1fd32").status == 0
    assert "unreadable" not in seqloom("runs", "list").out


def test_a_damaged_store_is_named_in_one_line(seqloom, store):
    data = bytearray(store.path.read_bytes())
    data[12288:] = bytes(len(data) - 12288)
    store.path.write_bytes(data)
    for words in (["runs", "list"], ["runs", "show", "1"], ["runs", "write", "1"], ["sql", "FROM hits"],
                  ["export", "1", "-o", "hits.tsv"], ["runs", "delete", "1"]):
        said = seqloom(*words)
        assert said.status == 1 and "seqloom.duckdb is damaged" in said.err, words
        assert len(said.err.splitlines()) == 1 and "internal error" not in said.err


@pytest.mark.skipif(os.name != "posix" or (os.geteuid() == 0 and not shutil.which("setpriv")),
                    reason="root may write to anything")
def test_a_store_that_may_not_be_written_can_be_asked(seqloom, store, tmp_path):
    toy_runs.run_once(store)
    store.path.chmod(0o444)
    without = ["setpriv", "--inh-caps=-all", "--bounding-set=-all"] if os.geteuid() == 0 else []
    done = subprocess.run([*without, sys.executable, "-c", "from seqloom.cli import run; run()", "sql",
                           "SELECT count(*) AS n FROM runs", "--format", "tsv"], capture_output=True, text=True,
                          cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "n\n1\n"), done.stderr
    assert len(done.stderr.splitlines()) == 1 and "1 complete run is kept" in done.stderr
