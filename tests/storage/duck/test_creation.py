"""New files get their names whole, from one process each, and nothing of what killed processes left stays."""

import os
import signal
import subprocess
import sys
import threading

import pytest
from seqloom.core.errors import StoreError
from seqloom.storage.duck.connection import connect
from seqloom.storage.duck.creation import clear_unfinished, making

MAKER = """
import sys, time
from pathlib import Path
from seqloom.core.errors import StoreError
from seqloom.storage.duck.creation import making
try:
    with making(sys.argv[1]) as part:
        Path(f"{part}.wal").write_text("log")
        Path(f"{part}.tmp").mkdir()
        part.write_text(sys.argv[2])
        print("writing", flush=True)
        sys.stdin.readline()
        Path(f"{part}.wal").unlink()
    print("made", flush=True)
except StoreError as error:
    print(f"{type(error).__name__}: {error}", flush=True)
"""


def maker(path, text):
    return subprocess.Popen([sys.executable, "-c", MAKER, str(path), text], stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE, text=True)


def test_a_file_gets_its_name_when_it_is_whole(tmp_path):
    with making(tmp_path / "a.duckdb") as part:
        part.write_text("content")
        assert not (tmp_path / "a.duckdb").exists()
    assert os.listdir(tmp_path) == ["a.duckdb"] and (tmp_path / "a.duckdb").read_text() == "content"


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, OSError])
def test_nothing_stays_when_anything_goes_wrong(tmp_path, error):
    with pytest.raises(error), making(tmp_path / "a.duckdb") as part:
        part.write_text("half")
        raise error
    assert os.listdir(tmp_path) == []


def test_a_file_with_a_log_is_not_whole(tmp_path):
    with pytest.raises(StoreError, match="disk is full"), making(tmp_path / "a.duckdb") as part:
        part.write_text("without what its log holds")
        part.with_name(f"{part.name}.wal").touch()
    assert os.listdir(tmp_path) == []


def test_a_name_that_is_taken_stays_as_it_is(tmp_path):
    path = tmp_path / "a.duckdb"
    path.write_text("theirs")
    with pytest.raises(StoreError, match="exists already; do this"), making(path, "do this"):
        raise AssertionError
    path.unlink()
    with pytest.raises(StoreError, match="exists already, made by someone else"), making(path) as part:
        part.write_text("ours")
        path.write_text("theirs")
    assert os.listdir(tmp_path) == ["a.duckdb"] and path.read_text() == "theirs"


def test_whoever_comes_second_is_told_who_is_at_it(tmp_path):
    path = tmp_path / "a.duckdb"
    first = maker(path, "first")
    assert first.stdout.readline() == "writing\n"
    second = maker(path, "second")
    assert second.communicate()[0] == (f"LockedError: {path} is being made by process {first.pid}; wait until it is "
                                       "done, or choose another name\n")
    clear_unfinished(path)
    assert first.communicate("\n")[0] == "made\n"
    assert os.listdir(tmp_path) == ["a.duckdb"] and path.read_text() == "first"
    assert "exists already" in maker(path, "third").communicate()[0]


def test_of_threads_that_make_one_name_one_does(tmp_path):
    path = tmp_path / "a.duckdb"
    for _ in range(10):
        made, told, gate = [], [], threading.Barrier(8)

        def work(number, made=made, told=told, gate=gate):
            gate.wait()
            try:
                with making(path) as part:
                    part.write_text(str(number))
                made.append(number)
            except StoreError as error:
                told.append(str(error))

        threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(made) == 1 and path.read_text() == str(made[0]) and os.listdir(tmp_path) == ["a.duckdb"]
        assert all("is being made by" in text or "exists already" in text for text in told) and len(told) == 7
        path.unlink()


@pytest.mark.parametrize("clear", ["next", "opening"])
def test_what_a_killed_process_left_is_cleared_away(tmp_path, clear):
    path = tmp_path / "a.duckdb"
    killed = maker(path, "first")
    assert killed.stdout.readline() == "writing\n"
    other = tmp_path / "a.duckdb.other.part"
    other.touch()
    assert len(os.listdir(tmp_path)) == 5
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    if clear == "next":
        with making(path) as part:
            part.write_text("second")
        assert sorted(os.listdir(tmp_path)) == ["a.duckdb", other.name]
    else:
        clear_unfinished(path)
        assert os.listdir(tmp_path) == [other.name]


@pytest.mark.parametrize("following", ["read", "made again"])
def test_a_second_name_of_a_whole_file_goes_with_the_next_command(tmp_path, following):
    path = tmp_path / "a.duckdb"
    with making(path) as part:
        connect(part, False, "results", create=True).close()
    whole = path.read_bytes()
    left = tmp_path / "a.duckdb.123-0123abcd.part"  # killed between giving it its name and removing the other
    os.link(path, left)
    (tmp_path / "a.duckdb.making").write_text("123\n")
    if following == "read":
        connect(path, True, "results").close()
    else:
        with pytest.raises(StoreError, match="exists already"), making(path):
            raise AssertionError
    assert os.listdir(tmp_path) == ["a.duckdb"] and path.read_bytes() == whole


def test_what_can_not_be_removed_goes_with_the_next_command(tmp_path, monkeypatch):
    path = tmp_path / "a.duckdb"
    with monkeypatch.context() as patch:
        unlink = os.unlink

        def failing(name, *more, **how):
            if str(name).endswith(".part"):
                raise OSError(5, "Input/output error")
            unlink(name, *more, **how)

        patch.setattr(os, "unlink", failing)
        patch.setattr(type(path), "unlink", lambda self, missing_ok=False: os.path.lexists(self) and failing(self))
        with making(path) as part:
            part.write_text("whole")
        assert {*os.listdir(tmp_path)} == {"a.duckdb", "a.duckdb.making", part.name}
        clear_unfinished(path)
        assert part.exists()
    clear_unfinished(path)
    assert os.listdir(tmp_path) == ["a.duckdb"] and path.read_text() == "whole"


def test_file_systems_without_links_and_locks_lose_nothing_either(tmp_path, monkeypatch):
    import fcntl

    def refused(*_):
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(os, "link", refused)
    monkeypatch.setattr(fcntl, "flock", refused)
    path = tmp_path / "a.duckdb"
    with making(path) as part:
        part.write_text("whole")
    assert path.read_text() == "whole"
    path.unlink()
    with pytest.raises(StoreError, match="exists already"), making(path) as part:
        part.write_text("ours")
        path.write_text("theirs")
    assert path.read_text() == "theirs" and os.listdir(tmp_path) == ["a.duckdb"]


def test_a_folder_that_can_not_be_written_to(tmp_path):
    with pytest.raises(StoreError, match="there is no folder"), making(tmp_path / "no" / "a.duckdb"):
        raise AssertionError
