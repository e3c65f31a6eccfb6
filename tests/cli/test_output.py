"""Output: standard output, tables in four formats, what becomes of outputs that fail."""

import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from seqloom.cli import output
from seqloom.core.errors import UnknownNameError


@pytest.mark.parametrize("path", [None, "-"])
def test_standard_output(path: str | None, capsys: pytest.CaptureFixture[str]) -> None:
    with output.opened(path) as stream:
        stream.write("text")
    assert capsys.readouterr().out == "text"


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
    assert result.err.startswith("seqloom: hits.tsv can't be written: the disk is full; free some space")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["seqloom.duckdb"]
    assert seqloom("sql", "SELECT count(*) > 0 AS there FROM hits", "--format", "csv").out == "there\nTrue\n"


@pytest.mark.parametrize("width", [40, 60, 80])
def test_tables_are_as_wide_as_the_terminal(width: int) -> None:
    stream = io.StringIO()
    rows = [("sp|Q9VH48|CARM1_DROME", "1.5e-30", "a title that is longer than any terminal " * 3), ("x", "2", "short")]
    output._aligned(("name", "evalue", "what it does"), rows, stream, width)
    lines = stream.getvalue().splitlines()
    assert max(map(len, lines)) <= width and lines[0].split() == ["name", "evalue", "what", "it", "does"]
    assert "1.5e-30" in lines[1] and lines[-1].split() == ["x", "2", "short"]
    assert " ".join(" ".join(lines[1:-1]).split()).endswith("than any terminal") and len(lines) > 3
    assert ("sp|Q9VH48|CARM1_DROME" in lines[1]) == (width > 40)


def test_tables_that_are_too_wide_stand_below_each_other() -> None:
    stream = io.StringIO()
    columns = [f"column{n}" for n in range(12)]
    output._aligned(columns, [[str(n) for n in range(12)], ["x" * 100] * 12], stream, 40)
    lines = stream.getvalue().splitlines()
    assert lines[:2] == ["column0   0", "column1   1"] and lines[12] == "" and max(map(len, lines)) == 40
    assert lines[13:15] == ["column0   " + "x" * 30, " " * 10 + "x" * 30] and len(lines) == 13 + 12 * 4
    whole = io.StringIO()
    output._aligned(columns, [["x" * 100] * 12], whole)
    assert len(whole.getvalue().splitlines()) == 2  # where no terminal is, nothing is cut
