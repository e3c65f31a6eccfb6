"""Agreement with phmmer of HMMER 3.3.2: report and tables, every line in order but for comments."""

from pathlib import Path

import pytest
import seqloom

from tests.shared import SHARED, needs_shared, read_text

pytestmark = [needs_shared, pytest.mark.gold]


@pytest.mark.parametrize("query", ["q127", "q514", "q1042"])
def test_whole_answers(query: str, tmp_path: Path) -> None:
    run = seqloom.search("phmmer", SHARED / f"data/proteins/{query}.fasta", str(SHARED / "data/proteins/main.fasta.gz"),
                         backend="cpu", store=False)
    for format, kind in (("hmmer noali", "out"), ("tblout", "tbl"), ("domtblout", "domtbl")):
        run.write(tmp_path / kind, format)
        ours, theirs = ([line for line in text.splitlines() if line[:1] != "#"]
                        for text in ((tmp_path / kind).read_text(), read_text(f"gold/phmmer.{query}.main.{kind}.gz")))
        assert ours == theirs
