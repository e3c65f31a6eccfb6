"""Output: files appear only when whole, tables in four formats."""

import io
import json
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from seqloom.cli import output
from seqloom.core.errors import StoreError, UnknownNameError


def test_a_file_appears_only_when_whole(tmp_path: Path) -> None:
    path = tmp_path / "hits.tsv"
    with output.opened(str(path)) as stream:
        stream.write("one\n")
        stream.flush()
        assert not path.exists()
    assert path.read_text() == "one\n"
    assert list(tmp_path.iterdir()) == [path]


def test_what_was_there_stays_when_writing_fails(tmp_path: Path) -> None:
    path = tmp_path / "hits.tsv"
    path.write_text("old\n")
    with pytest.raises(ZeroDivisionError), output.opened(str(path)) as stream:
        stream.write("half of the new")
        raise ZeroDivisionError
    assert path.read_text() == "old\n"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_nothing_is_left_when_a_signal_ends_the_process(tmp_path: Path, number: signal.Signals) -> None:
    (tmp_path / "out.txt").write_text("before")
    code = f"""
import os, signal
from seqloom.cli.output import opened
signal.signal({number}, signal.SIG_DFL)
with opened("out.txt") as stream:
    stream.write("half")
    os.kill(os.getpid(), {number})
"""
    assert subprocess.run([sys.executable, "-c", code], cwd=tmp_path).returncode == -number
    assert [p.name for p in tmp_path.iterdir()] == ["out.txt"] and (tmp_path / "out.txt").read_text() == "before"


@pytest.mark.parametrize("mode", [0o600, 0o664])
def test_a_file_that_was_there_keeps_its_permissions(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "hits.tsv"
    path.touch()
    path.chmod(mode)
    with output.opened(str(path)) as stream:
        stream.write("new")
    assert path.read_text() == "new" and stat.S_IMODE(path.stat().st_mode) == mode


def test_a_link_is_followed(tmp_path: Path) -> None:
    real, link = tmp_path / "real", tmp_path / "link"
    real.write_text("old")
    link.symlink_to(real)
    with output.opened(str(link)) as stream:
        stream.write("new")
    assert link.is_symlink() and real.read_text() == "new"


def test_devices_are_written_to_directly(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    with output.opened(str(pipe)) as stream:
        stream.write("through")
    assert os.read(reader, 100) == b"through"
    os.close(reader)
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    with output.opened(os.devnull) as stream:
        stream.write("away")


@pytest.mark.parametrize("path", [None, "-"])
def test_standard_output(path: str | None, capsys: pytest.CaptureFixture[str]) -> None:
    with output.opened(path) as stream:
        stream.write("text")
    assert capsys.readouterr().out == "text"


def test_places_are_checked_before_work(tmp_path: Path) -> None:
    output.check_place(None)
    output.check_place("-")
    output.check_place(str(tmp_path / "new"))
    with pytest.raises(StoreError, match="is a folder"):
        output.check_place(str(tmp_path))
    with pytest.raises(StoreError, match="there is no folder"):
        output.check_place(str(tmp_path / "none" / "new"))


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write anywhere")
def test_a_place_that_may_not_be_written_to(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(StoreError, match="permission denied"):
        output.check_place(str(tmp_path / "new"))


def shown(format: str, rows: list) -> str:
    stream = io.StringIO()
    output.show(("name", "score"), rows, format, stream)
    return stream.getvalue()


def test_tables() -> None:
    rows = [("a\tb", 1.5), (None, 1e-30)]
    assert shown("table", rows) == "name  score\na\tb     1.5\n      1e-30\n"
    assert shown("tsv", [("a", 1.5), (None, 1e-30)]) == "name\tscore\na\t1.5\n\t1e-30\n"
    assert shown("csv", [("a,b", 1.5)]) == 'name,score\n"a,b",1.5\n'
    assert json.loads(shown("json", rows)) == [{"name": "a\tb", "score": 1.5}, {"name": None, "score": 1e-30}]
    assert shown("table", []) == "name  score\n"
    with pytest.raises(UnknownNameError, match="unknown table format 'xml'"):
        shown("xml", rows)


def test_output_that_fails_leaves_the_run_and_no_file(seqloom: Callable, sample: Path, tmp_path: Path,
                                                      monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk under -o: one line, status 1; the hits are in the store all the same."""
    def full(self: object, stream: object, outfmt: str = "") -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("seqloom.run.Run.write", full)
    words = ["-q", str(sample / "query.fasta"), "-d", str(sample / "proteins.fasta"), "--evalue", "1e-20"]
    result = seqloom("blastp", *words, "-o", "hits.tsv")
    assert (result.status, result.out) == (1, "")
    assert result.err == "seqloom: hits.tsv: No space left on device\n"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["seqloom.duckdb"]
    assert seqloom("sql", "SELECT count(*) > 0 AS there FROM hits", "--format", "csv").out == "there\nTrue\n"
