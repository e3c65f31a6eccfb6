"""The peers' commands give the peers' files with ``seqloom`` before them; ``commands.py`` runs all, by any back end."""

from pathlib import Path

import pytest

from tests.shared import needs_shared

from .commands import compared, main


@needs_shared
@pytest.mark.gold
def test_files_of_the_peers_by_their_own_words(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    names = ["megablast.q500", "blastp.q127.default", "hmmsearch.globins4.main.default", "mummer.q100k"]
    assert main(names, "cpu", 1, tmp_path / "sums") == 0
    assert capsys.readouterr().out == "7 of 7 commands by cpu: the lines of the peer\n"
    assert len((tmp_path / "sums").read_text().splitlines()) == 9


def line(start: int, evalue: str) -> str:
    return f"q\tt\t100.0\t14\t0\t0\t{start}\t14\t1\t14\t{evalue}\t26.5"


@pytest.mark.parametrize(("file", "ours", "theirs", "difference"), [
    ("blastn.a.tsv.gz", [line(2, "3.7")], [line(2, "3.7")], ""),
    ("blastn.a.tsv.gz", [line(1, "3.7")], [], "blastn.a.tsv.gz: 1 lines for 0, other from line 1 on"),
    ("blastn.a.tsv.gz", [], [line(1, "3.7")], ""),
    ("blastn.a.tsv.gz", [], [line(1, "1e-05")], "blastn.a.tsv.gz: 0 lines for 1, other from line 1 on"),
    ("blastn.a.tsv.gz", [], [line(2, "3.7")], "blastn.a.tsv.gz: 0 lines for 1, other from line 1 on"),
    ("blastp.a.tsv.gz", [], [line(1, "3.7")], "blastp.a.tsv.gz: 0 lines for 1, other from line 1 on"),
    ("a.tbl.gz", ["name   1.5 -"], ["name 1.5 -"], ""),
    ("a.tbl.gz", ["name 1.5 -1"], ["name 1.5 1"], "a.tbl.gz: 1 lines for 1, other from line 1 on"),
    ("a.mums.gz", ["  1  2"], ["  1   2"], "a.mums.gz: 1 lines for 1, other from line 1 on"),
])
def test_differences_that_are_not_stated_are_told(file: str, ours: list[str], theirs: list[str],
                                                 difference: str) -> None:
    assert compared(file, ours, theirs) == difference
