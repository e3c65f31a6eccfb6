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


@pytest.mark.parametrize(("file", "ours", "theirs", "difference"), [
    ("a.tsv.gz", ["q t 1 2 3 4 2"], ["q t 1 2 3 4 2"], ""),
    ("a.tsv.gz", ["x"], [], "a.tsv.gz: 1 lines for 0, other from line 1 on"),
    ("a.tsv.gz", [], ["\t".join("qt12341")], ""),
    ("a.tsv.gz", [], ["\t".join("qt12342")], "a.tsv.gz: 0 lines for 1, other from line 1 on"),
    ("a.tbl.gz", ["name   1.5 -"], ["name 1.5 -"], ""),
    ("a.tbl.gz", ["name 1.5 -1"], ["name 1.5 1"], "a.tbl.gz: 1 lines for 1, other from line 1 on"),
    ("a.mums.gz", ["  1  2"], ["  1   2"], "a.mums.gz: 1 lines for 1, other from line 1 on"),
])
def test_differences_that_are_not_stated_are_told(file: str, ours: list[str], theirs: list[str],
                                                 difference: str) -> None:
    assert compared(file, ours, theirs) == difference
