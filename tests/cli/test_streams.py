"""Closed standard streams, full devices, locales other than UTF-8, terminals: commands work, or say what is wrong."""

import os
import pty
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import SAMPLE

PROGRAM = [sys.executable, "-c", "from seqloom.cli import run; run()"]
NAME = "sp|Q8AWH3|SX17A_XENTR"
PRINTING = [
    ("--help",), ("--version",), ("db", "info", "p.duckdb"), ("db", "list-sequences", "p.duckdb"),
    ("db", "extract", "p.duckdb", NAME), ("mask", "q.fasta", "--masker", "seg"), ("sort", "q.fasta"),
    ("sw", "-q", "q.fasta", "-d", "p.duckdb", "--no-store"), ("runs", "list"), ("runs", "show", "1"),
    ("runs", "write", "1"), ("sql", "SELECT 1 AS a"), ("export", "1"), ("pipelines", "list"), ("plugins", "show", "sw"),
    ("doctor",),
]
WRITING = [words for words in PRINTING if words[0] in ("mask", "sort", "sw", "sql", "export")
           or words[:2] in (("db", "extract"), ("runs", "write"))]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a database, queries and a store; nothing in the tests changes it."""
    folder = tmp_path_factory.mktemp("made")
    records = ("\n" + (SAMPLE / "proteins.fasta").read_text()).split("\n>")[1:]
    (folder / "t.fasta").write_text("".join(f">{r}\n" for r in records[:20]))
    (folder / "q.fasta").write_text(f">{records[0]}\n")
    for words in (["db", "create", "p.duckdb", "t.fasta"], ["sw", "-q", "q.fasta", "-d", "p.duckdb", "-o", os.devnull]):
        assert shell(folder, *words).returncode == 0
    return folder


def shell(folder: Path, *words: str, redirections: str = "", **more: str) -> subprocess.CompletedProcess[bytes]:
    command = ["bash", "-c", f'"$@" {redirections}', "bash", *PROGRAM, *words]
    return subprocess.run(command, cwd=folder, env={**os.environ, "SEQLOOM_BACKEND": "reference", **more},
                          capture_output=True, timeout=120)


@pytest.mark.parametrize("words", PRINTING, ids=" ".join)
def test_output_that_nobody_takes_is_an_error_in_one_line(made: Path, words: tuple[str, ...]) -> None:
    for redirections, what in ((">&-", b"it is closed"), (">/dev/full", b"the disk is full")):
        done = shell(made, *words, redirections=redirections)
        assert done.returncode == 1, done
        assert done.stderr.startswith(b"seqloom: standard output") and what in done.stderr, done.stderr
        assert done.stderr.count(b"\n") == 1, done.stderr


@pytest.mark.parametrize("words", WRITING, ids=" ".join)
def test_a_file_is_written_though_all_streams_are_closed(made: Path, tmp_path: Path, words: tuple[str, ...]) -> None:
    wanted, found = tmp_path / "wanted", tmp_path / "found"
    assert shell(made, *words, "-o", str(wanted)).returncode == 0
    done = shell(made, *words, "-o", str(found), redirections=">&- 2>&- <&-")
    assert (done.returncode, done.stdout) == (0, b"")
    assert found.read_bytes() == wanted.read_bytes() != b""


def test_messages_that_nobody_takes_go_nowhere(made: Path) -> None:
    done = shell(made, "db", "info", "none.duckdb", redirections="2>&-")
    assert (done.returncode, done.stdout) == (1, b"")
    done = shell(made, "blastq", redirections="2>&-")
    assert (done.returncode, done.stdout) == (2, b"")
    done = shell(made, "export", "1", "-o", os.devnull, redirections="2>/dev/full")
    assert (done.returncode, done.stdout) == (0, b"")


@pytest.mark.parametrize("words", [("sort", "-"), ("mask", "-", "--masker", "seg"), ("sql", "-"),
                                   ("sw", "-q", "-", "-d", "p.duckdb", "--no-store")], ids=" ".join)
def test_input_that_is_closed_is_named(made: Path, words: tuple[str, ...]) -> None:
    done = shell(made, *words, redirections="<&-")
    assert (done.returncode, done.stdout) == (1, b"")
    assert b"standard input" in done.stderr and b"it is closed" in done.stderr and done.stderr.count(b"\n") == 1


def test_no_database_gets_the_number_of_a_closed_stream(made: Path, tmp_path: Path) -> None:
    """What the program says would else be written into it."""
    shutil.copy(made / "t.fasta", tmp_path)
    assert shell(tmp_path, "db", "create", "p.duckdb", "t.fasta", redirections=">&- 2>&- <&-").returncode == 0
    assert b"all is well" in shell(tmp_path, "db", "check", "p.duckdb").stderr


@pytest.mark.parametrize("words", [("db", "extract", "p.duckdb", "--ids", "ids.txt"),
                                   ("db", "list-sequences", "p.duckdb"), ("sort", "t.fasta"),
                                   ("sw", "-q", "t.fasta", "-d", "p.duckdb", "--no-store"),
                                   ("sw", "-q", "t.fasta", "-d", "p.duckdb", "--no-store", "-f", "0")], ids=" ".join)
def test_output_is_utf_8_whatever_the_locale(tmp_path: Path, words: tuple[str, ...]) -> None:
    (tmp_path / "t.fasta").write_text(">é ïß\nMKVLAAGITWWMKVLAAGHHCCW\n", encoding="utf-8")
    (tmp_path / "ids.txt").write_text("é\n", encoding="utf-8")
    assert shell(tmp_path, "db", "create", "p.duckdb", "t.fasta").returncode == 0
    ascii_only = {"LC_ALL": "POSIX", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done, wanted = shell(tmp_path, *words, **ascii_only), shell(tmp_path, *words)
    assert done.returncode == 0, done.stderr
    assert done.stdout == wanted.stdout and "é".encode() in done.stdout
    assert shell(tmp_path, *words, "-o", "out", **ascii_only).returncode == (2 if words[1] == "list-sequences" else 0)
    done = shell(tmp_path, "db", "extract", "p.duckdb", "ü", **ascii_only)
    assert done.returncode in (1, 2) and done.stderr.count(b"\n") == 1 and b"internal" not in done.stderr


@pytest.mark.parametrize("words", [("db", "extract", "p.duckdb", "\udcff"), ("db", "info", "\udcff.duckdb"),
                                   ("db", "create", "\udcff.duckdb", "t.fasta"),
                                   ("sql", "SELECT '\udcff'", "--results", "r.duckdb"),
                                   ("sw", "-q", "t.fasta", "-d", "p.duckdb", "--results", "\udcff.duckdb")], ids=repr)
def test_words_that_utf_8_cannot_hold_are_an_error_of_one_line(tmp_path: Path, words: tuple[str, ...]) -> None:
    (tmp_path / "t.fasta").write_text(">a\nMKVLAAGITWWMKVLAAGHHCCW\n")
    assert shell(tmp_path, "db", "create", "p.duckdb", "t.fasta").returncode == 0
    if words[0] == "sql":
        assert shell(tmp_path, "sw", "-q", "t.fasta", "-d", "p.duckdb", "--results", "r.duckdb").returncode == 0
    done = shell(tmp_path, *words)
    assert done.returncode in (1, 2) and done.stderr.count(b"\n") == 1 and b"internal" not in done.stderr
    assert not [*tmp_path.glob("*.making")]


def on_terminal(folder: Path, *words: str, **more: str) -> tuple[int, bytes]:
    """Exit status, and what a terminal gets."""
    main, side = pty.openpty()
    process = subprocess.Popen([*PROGRAM, *words], cwd=folder, stdin=side, stdout=side, stderr=side,
                               env={**os.environ, "SEQLOOM_BACKEND": "reference", **more})
    os.close(side)
    data = b""
    while True:
        try:
            part = os.read(main, 1 << 16)
        except OSError:  # Linux says so that the other side is closed
            break
        if not part:
            break
        data += part
    os.close(main)
    return process.wait(60), data


@pytest.mark.parametrize("words", [("db", "list-sequences", "p.duckdb"), ("db", "extract", "p.duckdb", "a"),
                                   ("sql", "SELECT chr(27) || ']0;title' AS x"),
                                   ("db", "extract", "p.duckdb", "\x1b[2J"), ("sort", "t.fasta"),
                                   ("export", "last", "--level", "hits"), ("runs", "show", "last"),
                                   ("db", "info", "p.duckdb"), ("sw", "-q", "\x1b[2J", "-d", "p.duckdb"),
                                   ("db", "create", "\x1b[2J/x.duckdb", "t.fasta"),
                                   ("sw", "-q", "t.fasta", "-d", "p.duckdb", "-f", "0", "--quiet"),
                                   ("sw", "-q", "t.fasta", "-d", "p.duckdb", "--quiet")], ids=repr)
def test_no_name_or_title_commands_a_terminal(tmp_path: Path, words: tuple[str, ...]) -> None:
    evil = ">a \x1b]0;title\x07\x1b[31mred\nMKVLAAGITWWMKVLAAGHHCCW\n"
    (tmp_path / "t.fasta").write_text(evil)
    assert shell(tmp_path, "db", "create", "p.duckdb", "t.fasta", "--title", "\x1b[2Jtitle").returncode == 0
    assert shell(tmp_path, "sw", "-q", "t.fasta", "-d", "p.duckdb").returncode == 0
    colour = words[-1] in ("--quiet", "last", "p.duckdb")
    _, shown = on_terminal(tmp_path, *words, NO_COLOR="" if colour else "1", TERM="xterm")
    if colour:  # no sequence but those of seqloom's own
        shown = re.sub(rb"\x1b\[[012]m|\x1b\[32m", b"", shown)
    assert b"\\x1b" in shown and b"\x1b" not in shown, shown
    if words[1] == "extract" and words[-1] == "a":
        assert b"\x1b[31mred" in shell(tmp_path, *words).stdout, "files get bytes as they are"


@pytest.mark.parametrize("format, begin", [("dotplot-png", b"\x89PNG"), ("parquet", b"PAR1"), ("arrow", b"ARROW1")])
def test_bytes_are_not_for_a_terminal(tmp_path: Path, format: str, begin: bytes) -> None:
    (tmp_path / "g.fasta").write_text(">g\n" + "ACGGTCATTGCA" * 10 + "\n")
    words = ("mum", "-q", "g.fasta", "-d", "g.fasta", "--no-store", "-f", format)
    status, shown = on_terminal(tmp_path, *words)
    said = f"output format '{format}' is no text for a terminal; write it into a file with -o".encode()
    assert status == 2 and said in shown and shown.count(b"\n") == 1
    assert shell(tmp_path, *words).stdout.startswith(begin)
    for redirection in (">/dev/full", ">&-"):
        done = shell(tmp_path, *words, redirections=redirection)
        assert done.returncode == 1 and done.stderr.count(b"\n") == 1
