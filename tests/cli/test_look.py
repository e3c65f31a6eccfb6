"""What people look at: tables of hits on a terminal, colour, pages and figures by command."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from seqloom.cli import colour
from seqloom.core.errors import UsageError

from .test_streams import on_terminal


@pytest.fixture
def run(seqloom: Callable, sample: Path, tmp_path: Path) -> Callable:
    """A command in a folder with a run."""
    proteins = (sample / "proteins.fasta").read_text(encoding="utf-8").split(">")
    globins = [text for text in proteins if "Globin" in text][:4]
    (tmp_path / "db.fasta").write_text("".join(f">{text}" for text in globins))
    (tmp_path / "q.fasta").write_text(f">query\n{globins[0].partition(chr(10))[2][:60]}\n>other\nWWWWWWWW\n")
    assert seqloom("sw", "-q", "q.fasta", "-d", "db.fasta", "--evalue", "1e-3").status == 0
    return seqloom


def test_hits_on_a_terminal_are_a_table_as_wide_as_that(run: Callable, tmp_path: Path) -> None:
    plain = run("runs", "write", "last").out
    hits = plain.splitlines()
    assert all(len(line.split("\t")) == 12 for line in hits)
    for columns in (60, 140):
        _, shown = on_terminal(tmp_path, "runs", "write", "last", COLUMNS=str(columns), NO_COLOR="1")
        lines = shown.decode().splitlines()
        assert max(map(len, lines)) <= columns
        assert lines[0].endswith(f"length 60, {len(hits)} hits") and lines[-1] == "other  length 8, no hits"
        heads = lines[1].split()
        rows = [line.split() for line in lines[2 : 2 + len(hits)]]
        assert [row[heads.index("Target")].strip("…")[:3] for row in rows] == [hit.split("\t")[1][:3] for hit in hits]
        assert {"Target", "Bits", "E-value"} <= set(heads)
        if "Title" not in heads:
            assert [row[heads.index("E-value")] for row in rows] == [hit.split("\t")[10] for hit in hits]
    _, asked = on_terminal(tmp_path, "runs", "write", "last", "-f", "6")
    assert asked.decode().replace("\r\n", "\n") == plain


@pytest.mark.parametrize(("words", "more", "coloured"), [
    ((), {"TERM": "xterm", "NO_COLOR": ""}, True), ((), {"TERM": "xterm", "NO_COLOR": "1"}, False),
    ((), {"TERM": "dumb", "NO_COLOR": ""}, False), (("--color", "never"), {"TERM": "xterm", "NO_COLOR": ""}, False),
    (("--color", "always"), {"TERM": "dumb", "NO_COLOR": "1"}, True)])
def test_colour_is_where_it_is_wanted(run: Callable, tmp_path: Path, words: tuple[str, ...], more: dict[str, str],
                                      coloured: bool) -> None:
    for command in (("runs", "write", "last"), ("runs", "list")):
        status, shown = on_terminal(tmp_path, *words, *command, **more)
        assert status == 0 and (b"\x1b[1m" in shown) == coloured


def test_colour_is_chosen_by_one_of_three_words(seqloom: Callable) -> None:
    result = seqloom("--color", "red", "doctor")
    assert result.status == 2 and "--color must be auto, always or never, not 'red'" in result.err
    with pytest.raises(UsageError, match="not ''"):
        colour.choose("")


def test_pages_and_figures_by_command(run: Callable, tmp_path: Path) -> None:
    for words in (("report", "last", "-o", "page.html"), ("report", "1", "last", "-o", "two.html", "--size", "1M"),
                  ("plot", "overview", "last", "-o", "figure.svg"), ("plot", "timings", "1", "--out", "figure.png"),
                  ("plot", "coverage", "1", "-o", "figure.pdf", "--query", "query")):
        result = run(*words)
        assert (result.status, result.out, result.err) == (0, "", ""), words
    made = {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.suffix in (
        ".html", ".svg", ".png", ".pdf")}
    assert made["page.html"].startswith(b"<!doctype html>") and b"comparison" in made["two.html"]
    assert made["figure.svg"].startswith(b"<?xml") and made["figure.png"][1:4] == b"PNG"
    assert made["figure.pdf"].startswith(b"%PDF")
    assert run("report", "last").out == made["page.html"].decode()
    assert run("runs", "write", "last", "-f", "html").out == made["page.html"].decode()


def test_figures_without_their_library_are_refused_before_a_search(run: Callable,
                                                                   monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    for words in (("plot", "overview", "last", "-o", "x.svg"),
                  ("mum", "-q", "q.fasta", "-d", "db.fasta", "--results", "new.duckdb", "--dotplot", "x.svg")):
        result = run(*words)
        assert result.status == 1 and "matplotlib is not installed" in result.err and "seqloom[plots]" in result.err
    assert not Path("x.svg").exists() and not Path("new.duckdb").exists()


@pytest.mark.parametrize(("words", "message"), [
    (("report", "1", "1", "1", "-o", "x.html"), "3 runs are given"),
    (("report", "last", "-o", "db.fasta"), "db.fasta is a file that is read here"),
    (("report", "7", "-o", "x.html"), "unknown run '7'"),
    (("plot", "nix", "last", "-o", "x.svg"), "unknown figure 'nix'; known: coverage, "),
    (("plot", "overview", "last", "-o", "x.gif"), "unknown format of pictures 'gif'; known: pdf, png, svg"),
    (("plot", "domains", "last", "-o", "x.svg"), "needs hits of a search with profile HMMs"),
    (("plot", "overview", "last"), "'-o'")])
def test_what_cannot_be_drawn_is_refused(run: Callable, tmp_path: Path, words: tuple[str, ...], message: str) -> None:
    before = sorted(path.name for path in tmp_path.iterdir())
    result = run(*words)
    assert result.status != 0 and result.out == "" and result.err.count("\n") == 1
    assert message in result.err
    assert sorted(path.name for path in tmp_path.iterdir()) == before
