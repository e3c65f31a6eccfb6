"""A database is checked by another process: when that dies, one line says so."""

import sys

import pytest
import seqloom
from seqloom import checking
from seqloom.core.errors import DamagedError, StoreError
from seqloom.core.progress import Progress


@pytest.fixture
def path(tmp_path):
    (tmp_path / "p.fa").write_text(">a of use\nMKVLAW\n>b\nMKV\n")
    seqloom.Database.create(tmp_path / "p.duckdb", tmp_path / "p.fa").close()
    return tmp_path / "p.duckdb"


def test_what_is_said_is_what_the_database_says(path):
    progress = Progress()
    problems, facts = checking.check(path, progress)
    assert problems == [] and (facts["sequences"], facts["residues"]) == (2, 9)
    assert (progress.total, progress.done, progress.unit) == (9, 9, "residue")
    with pytest.raises(StoreError, match="no sequence database"):
        checking.check(path.with_name("none.duckdb"))


@pytest.mark.parametrize(("end", "kind", "said"), [
    ("kill -SEGV $$", DamagedError, "is damaged: DuckDB dies of reading it (SIGSEGV); make it anew from its sequence"),
    ("kill -ABRT $$", DamagedError, "is damaged: DuckDB dies of reading it (SIGABRT)"),
    ("kill -KILL $$", StoreError, "can't be checked: the process that read it has ended with status -9"),
])
def test_a_reader_that_dies_is_told_of_in_one_line(path, tmp_path, monkeypatch, end, kind, said):
    dying = tmp_path / "dying"
    dying.write_text(f"#!/bin/sh\n{end}\n")
    dying.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(dying))
    with pytest.raises(kind) as error:
        checking.check(path)
    assert str(error.value).startswith(f"{path} {said}") and "\n" not in str(error.value)
