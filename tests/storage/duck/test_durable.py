"""Checkpoints that are cut off anywhere lose nothing."""

import gc
import shutil
import subprocess
import sys
import time

import duckdb
import numpy as np
import pytest
from seqloom.core.errors import StoreError
from seqloom.storage.duck import durable
from seqloom.storage.duck.connection import STORAGE_VERSION

BLOCK = 16384


@pytest.fixture(params=["v1.0.0", "v1.4.0"])
def file(tmp_path, request):
    """A DuckDB file in which every metadata block is shared by old and new tables."""
    path = tmp_path / "d.duckdb"
    with duckdb.connect(str(path), config={"default_block_size": str(BLOCK),
                                           "storage_compatibility_version": request.param}) as connection:
        for number in range(30):
            connection.execute(f"CREATE TABLE t{number} AS SELECT range AS i, 'text ' || range AS s FROM range(50)")
    return path


def change(connection):
    connection.execute("BEGIN; INSERT INTO t3 SELECT range, 'more' FROM range(3000); DELETE FROM t4 WHERE i = 7; "
                       "CREATE TABLE made AS SELECT 1 AS one; DROP TABLE t9; COMMIT")


def content(path):
    with duckdb.connect(str(path), read_only=True) as connection:
        tables = connection.execute("SELECT table_name FROM duckdb_tables() ORDER BY 1").fetchall()
        return {name: connection.execute(f"SELECT * FROM {name} ORDER BY ALL").fetchall() for (name,) in tables}


def wait_until_closed(path):
    """DuckDB may let go of a file that it couldn't open a little later."""
    for _ in range(100):
        gc.collect()
        if durable.descriptor(path) is None:
            return
        time.sleep(0.02)


def test_a_checkpoint_that_is_cut_off_in_any_write_loses_nothing(file, tmp_path, monkeypatch):
    with duckdb.connect(str(file)) as connection:
        durable.hold(connection)
        change(connection)
        before = file.read_bytes()
        log = durable.log_of(file).read_bytes()
        kept = {}
        write = durable._write
        monkeypatch.setattr(durable, "_write", lambda undo, records: (write(undo, records), kept.update(
            undo=undo.read_bytes())))
        durable.checkpoint(connection, file)
    after = file.read_bytes()
    wanted = content(file)
    assert not durable.undo_of(file).exists() and not durable.log_of(file).exists() and "made" in wanted
    places = [*range(0, durable.HEADERS, durable.PAGE), *range(durable.HEADERS, len(after), BLOCK)]
    ends = [*places[1:], len(after)]
    changed = [(a, b) for a, b in zip(places, ends, strict=True) if before[a:b] != after[a:b]]
    overwritten = [(a, b) for a, b in changed if durable.HEADERS <= a < len(before)]
    header = [(a, b) for a, b in changed if a < durable.HEADERS]
    assert overwritten and len(header) == 1
    work = tmp_path / "cut"
    work.mkdir()
    torn = 0
    for count in range(len(changed)):
        state = bytearray(before.ljust(len(after), b"\0"))
        order = [span for span in changed if span not in header] + header
        for a, b in order[:count]:
            state[a:b] = after[a:b]
        a, b = order[count]
        # A header is cut in its checksum: further on, all that differs from the one before might be there already.
        half = (a + b) // 2 if order[count] not in header else a + 4
        state[a:half] = after[a:half]
        path = work / "d.duckdb"
        path.write_bytes(state)
        durable.log_of(path).write_bytes(log)
        try:
            content(path)
        except duckdb.Error:
            torn += 1
        wait_until_closed(path)
        durable.undo_of(path).write_bytes(kept["undo"])
        durable.recover(path)
        assert content(path) == wanted
        assert not durable.undo_of(path).exists()
    assert torn  # without what was kept the file would be lost
    # Ended, and cut off before its traces were gone; and never begun.
    for state in (after, before):
        path = work / "d.duckdb"
        path.write_bytes(state)
        durable.log_of(path).unlink(missing_ok=True)
        if state is before:
            durable.log_of(path).write_bytes(log)
        wait_until_closed(path)
        durable.undo_of(path).write_bytes(kept["undo"])
        durable.recover(path)
        assert content(path) == wanted
    for size in range(0, len(kept["undo"]), 997):  # cut off while blocks were being kept
        durable.undo_of(path).write_bytes(kept["undo"][:size])
        assert durable._read(durable.undo_of(path)) == []
    assert durable._read(durable.undo_of(path)) == []


def test_blocks_of_another_file_are_not_put_into_this_one(file):
    other = file.with_name("other.duckdb")
    with duckdb.connect(str(other), config={"default_block_size": str(BLOCK),
                                            "storage_compatibility_version": "v1.4.0"}) as connection:
        connection.execute("CREATE TABLE other AS SELECT 1")
    shutil.copy(other, file)
    with duckdb.connect(str(other)) as connection:
        connection.execute("CREATE TABLE more AS SELECT 1; CHECKPOINT")
        durable._write(durable.undo_of(file), [(0, b"x" * durable.HEADERS), (durable.HEADERS, bytes(BLOCK))])
    before = file.read_bytes()
    durable.recover(file)
    assert file.read_bytes() == before and not durable.undo_of(file).exists()


def test_nothing_is_put_back_while_a_process_has_the_file_open(file):
    held = subprocess.Popen([sys.executable, "-c", "import duckdb, sys; c = duckdb.connect(sys.argv[1]); print(1, "
                             "flush=True); sys.stdin.read()", str(file)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert held.stdout.readline()
    durable._write(durable.undo_of(file), [(0, file.read_bytes()[: durable.HEADERS])])
    durable.recover(file)
    assert durable.undo_of(file).exists()
    held.communicate(b"")
    with duckdb.connect(str(file)):
        durable.recover(file)
        assert durable.undo_of(file).exists()
    durable.recover(file)
    assert not durable.undo_of(file).exists()


def test_duckdb_leaves_the_log_alone_once_it_is_held(file):
    with duckdb.connect(str(file)) as connection:
        durable.hold(connection)
        connection.execute("CREATE TABLE large AS SELECT hash(range) AS h, hash(range + 1) AS g FROM range(1500000)")
        assert durable.log_of(file).stat().st_size
    assert durable.log_of(file).exists()
    with duckdb.connect(str(file)) as connection:
        durable.hold(connection)
        durable.checkpoint(connection, file)
        assert not durable.log_of(file).exists()
        durable.checkpoint(connection, file)  # nothing to do
        assert not durable.undo_of(file).exists()


def test_a_copy_that_can_not_be_written_leaves_everything_in_the_log(file, monkeypatch):
    def full(undo, records):
        undo.write_bytes(b"half")
        raise OSError(28, "No space left on device")

    with duckdb.connect(str(file)) as connection:
        durable.hold(connection)
        change(connection)
        wanted = {"made": connection.execute("FROM made").fetchall()}
        with monkeypatch.context() as patch, pytest.raises(StoreError, match=r"d\.duckdb\.undo can't be written"):
            patch.setattr(durable, "_write", full)
            durable.checkpoint(connection, file)
        assert not durable.undo_of(file).exists()
        assert connection.execute("FROM made").fetchall() == wanted["made"]
    assert content(file)["made"] == wanted["made"]


def test_a_copy_that_can_not_be_removed_is_no_failure(file, monkeypatch):
    def failing(*_, **__):
        raise OSError(5, "Input/output error")

    with duckdb.connect(str(file)) as connection:
        durable.hold(connection)
        change(connection)
        with monkeypatch.context() as patch:
            patch.setattr(durable.Path, "unlink", failing)
            durable.checkpoint(connection, file)
        assert durable.undo_of(file).exists() and not durable.log_of(file).exists()
    wanted = content(file)
    durable.recover(file)
    assert not durable.undo_of(file).exists() and content(file) == wanted


def test_a_log_says_whether_anything_was_committed(tmp_path):
    path = tmp_path / "d.duckdb"
    assert not durable.has_commits(path)
    with duckdb.connect(str(path), config={"storage_compatibility_version": STORAGE_VERSION}) as connection:
        durable.hold(connection)
        connection.execute("BEGIN; CREATE TABLE one (i INTEGER); INSERT INTO one VALUES (1); COMMIT")
        first = durable.log_of(path).read_bytes()
        connection.execute("CREATE TABLE more (i INTEGER)")
        both = durable.log_of(path).read_bytes()
    for size in range(0, len(both), 7):
        durable.log_of(path).write_bytes(both[:size])
        assert durable.has_commits(path) == (size >= len(first)) == bool(content(path))
    for other in (b"of another version" + first, bytes(len(first))):
        durable.log_of(path).write_bytes(other)
        assert durable.has_commits(path)


def test_an_attached_file_is_checkpointed_under_its_name(file, tmp_path):
    with duckdb.connect() as connection:
        connection.execute(f"ATTACH '{file}' AS there")
        durable.hold(connection)
        connection.execute("CREATE TABLE there.more AS SELECT 1 AS one")
        assert durable.log_of(file).exists()
        durable.checkpoint(connection, file, "there")
        assert not durable.log_of(file).exists()


def test_checksums_of_headers_are_those_of_duckdb(file):
    headers = file.read_bytes()[: durable.HEADERS]
    numbers = [durable._number(headers[place : place + durable.PAGE]) for place in (durable.PAGE, 2 * durable.PAGE)]
    assert -1 not in numbers and numbers[0] != numbers[1]
    spoilt = np.frombuffer(headers, np.uint8).copy()
    spoilt[durable.PAGE + 20] ^= 4
    assert durable._number(spoilt.tobytes()[durable.PAGE : 2 * durable.PAGE]) == -1
