"""Files that can't be used: one line that says what, where and what to do, status 1, and nothing left behind."""

import gzip
import os
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

PROTEIN = "MKVLAERTGQWYHDCNMKVLAERTGQWYHDCN"
BAD = {
    "none.fasta": (None, "none.fasta: there is no such file"),
    "empty.fasta": (b"", "empty.fasta: the file is empty"),
    "plain.txt": (b"hello, world\n", "plain.txt: line 1: neither fasta nor fastq"),
    "norec.fasta": (b">a\nMKVL\n>b\n>c\nMKVL\n", "norec.fasta: line 3: record 'b' has no sequence"),
    "odd.fasta": (b">a\nMKVL\n>b\nMKV\nMK1V\n", "odd.fasta: line 5: residue '1' in sequence 'b'"),
    "twice.fasta": (b">a\nMKVL\n>b\nMKVLM\n>a\nMKVW\n", "twice.fasta: line 5: id 'a' is there already, in line 1"),
    "cut.fasta.gz": (gzip.compress(f">a\n{PROTEIN * 50}\n".encode())[:-20], "cut.fasta.gz: the gzip data end"),
    "bad.fastq": (b"@r\nMKVL\n+\nII\n", "bad.fastq: line 4: not FASTQ"),
    "random.bin": (bytes(range(128, 256)) * 9, "random.bin: line 1: neither fasta nor fastq"),
}


@pytest.fixture
def files(seqloom: Callable, tmp_path: Path) -> Callable:
    """A folder with every bad file, a good one and a database."""
    (tmp_path / "good.fasta").write_text(f">q\n{PROTEIN}\n")
    for name, (content, _) in BAD.items():
        if content is not None:
            (tmp_path / name).write_bytes(content)
    assert seqloom("db", "create", "good.duckdb", "good.fasta").status == 0
    return seqloom


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("words", [
    ["db", "create", "new.duckdb", "FILE", "--type", "protein"],
    ["blastp", "-q", "FILE", "-d", "good.duckdb"],
    ["blastp", "-q", "good.fasta", "-d", "FILE"],
    ["db", "append", "good.duckdb", "FILE"],
], ids=lambda w: " ".join(w))
def test_sequence_files(files: Callable, tmp_path: Path, words: list[str], name: str) -> None:
    if name == "twice.fasta" and words[2] == "FILE" and words[0] == "blastp":
        return  # double ids of queries are in order
    before = {p: p.stat().st_size for p in tmp_path.iterdir()}
    result = files(*(name if w == "FILE" else w for w in words))
    assert (result.status, result.out) == (1, "")
    assert result.err.startswith("seqloom: ") and result.err.count("\n") == 1, result.err
    assert BAD[name][1] in result.err
    assert set(before) == set(tmp_path.iterdir())
    assert files("db", "check", "good.duckdb").status == 0


@pytest.mark.parametrize("name, message", [("norec.fasta", "record 'b' has no sequence"), ("odd.fasta", "residue '1'"),
                                           ("twice.fasta", "id 'a' is there already")])
def test_bad_records_are_reported_and_left_out(files: Callable, name: str, message: str) -> None:
    made = files("db", "create", "new.duckdb", name, "--type", "protein", "--on-bad", "skip")
    assert made.status == 0 and message in made.err and f"{name}: line" in made.err
    found = files("blastp", "-q", name, "-d", "good.duckdb", "--on-bad", "skip", "--no-store")
    assert found.status == 0 and (message in found.err) == (name != "twice.fasta")


def test_models_and_sequences_mixed_up(files: Callable, sample: Path) -> None:
    model = str(sample / "globins4.hmm")
    assert "holds sequences" in files("hmmsearch", "-q", "good.fasta", "-d", "good.duckdb").err
    assert "holds models" in files("blastp", "-q", model, "-d", "good.duckdb").err
    assert "holds models" in files("db", "create", "new.duckdb", model).err


def test_kinds_mixed_up(files: Callable, tmp_path: Path) -> None:
    (tmp_path / "bases.fasta").write_text(">a\n" + "ACGTTGCAAC" * 9 + "\n")
    assert files("db", "create", "dna.duckdb", "bases.fasta", "--type", "nucleotide").status == 0
    result = files("blastp", "-q", "good.fasta", "-d", "dna.duckdb")
    assert result.status == 1 and "nucleotide" in result.err and result.err.count("\n") == 1
    result = files("blastp", "-q", "bases.fasta", "-d", "good.duckdb", "--no-store", "--quiet")
    assert result.status == 0 and result.err.count("\n") == 1
    assert "bases.fasta: taken for proteins as asked for" in result.err
    result = files("blastn", "-q", "bases.fasta", "-d", "good.duckdb")
    assert result.status == 1 and "protein" in result.err and result.err.count("\n") == 1


def spoil(path: Path, how: str) -> str:
    """A damaged copy of a database; returns its name."""
    name = f"{how}.duckdb"
    data = bytearray(path.read_bytes())
    if how == "short":
        del data[8000:]
    elif how == "text":
        data = bytearray(b"hello\n")
    path.with_name(name).write_bytes(data)
    if how == "newer":
        with duckdb.connect(str(path.with_name(name))) as connection:
            connection.execute("UPDATE seqloom_file SET schema_revision = '9999'")
            connection.execute("UPDATE alembic_version SET version_num = '9999'")
    if how == "foreign":
        path.with_name(name).unlink()
        with duckdb.connect(str(path.with_name(name))) as connection:
            connection.execute("CREATE TABLE somebodys (number INTEGER)")
    return name


@pytest.mark.parametrize("how, message", [("short", "damaged"), ("text", "is not a DuckDB file"), ("newer", "newer"),
                                          ("foreign", "")])
def test_databases_that_are_none(files: Callable, tmp_path: Path, how: str, message: str) -> None:
    name = spoil(tmp_path / "good.duckdb", how)
    for words in (["db", "info", name], ["db", "check", name], ["db", "append", name, "good.fasta"]):
        result = files(*words)
        assert (result.status, result.out) == (1, ""), result
        assert result.err.startswith("seqloom: ") and result.err.count("\n") == 1, result.err
        assert name in result.err and message in result.err
    if how != "text":
        result = files("blastp", "-q", "good.fasta", "-d", name)
        assert result.status == 1 and message in result.err
    assert not (tmp_path / "seqloom.duckdb").exists() and not (tmp_path / "seqloom.duckdb.runs").exists()


@pytest.mark.parametrize("place, message", [
    ("good.duckdb", "is a sequence database, not a results store"), ("plain.txt", "is not a DuckDB file"),
    ("foreign.duckdb", "not a results store"), ("none/x.duckdb", "there is no folder"), (".", "is not a file"),
])
def test_places_where_no_results_can_be_kept(files: Callable, tmp_path: Path, place: str, message: str) -> None:
    spoil(tmp_path / "good.duckdb", "foreign")
    before = {p: p.stat().st_mtime_ns for p in tmp_path.iterdir()}
    result = files("blastp", "-q", "good.fasta", "-d", "good.duckdb", "--results", place)
    assert (result.status, result.out) == (1, ""), result
    assert result.err.startswith("seqloom: ") and result.err.count("\n") == 1 and message in result.err, result.err
    assert before == {p: p.stat().st_mtime_ns for p in tmp_path.iterdir()}


def test_a_results_store_of_a_newer_version(files: Callable, tmp_path: Path) -> None:
    search = ("blastp", "-q", "good.fasta", "-d", "good.duckdb")
    assert files(*search).status == 0
    (tmp_path / "seqloom.duckdb").rename(tmp_path / "old.duckdb")
    result = files(*search, "--results", spoil(tmp_path / "old.duckdb", "newer"))
    assert (result.status, result.out) == (1, "") and "newer" in result.err and result.err.count("\n") == 1


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full on this system")
def test_a_full_disk(files: Callable, tmp_path: Path) -> None:
    result = files("blastp", "-q", "good.fasta", "-d", "good.duckdb", "-o", "/dev/full")
    assert (result.status, result.err) == (1, "seqloom: /dev/full can't be written: the disk is full; "
                                           "free some space or choose another place\n")
    assert files("sql", "SELECT count(*) AS n FROM runs", "--format", "csv").out == "n\n1\n"


def test_a_database_in_use_by_another_process(files: Callable, tmp_path: Path) -> None:
    """Searching goes on beside other searches; adding to a database needs it alone, and says so."""
    from .conftest import start

    holder = start("--version", cwd=tmp_path, code="import duckdb, sys; c = duckdb.connect('good.duckdb'); "
                   "print('ready', flush=True); sys.stdin.readline()", stdin=-1)
    try:
        assert holder.stdout is not None and holder.stdout.readline() == "ready\n"
        result = files("db", "append", "good.duckdb", "good.fasta")
        assert result.status == 1 and result.err.count("\n") == 1
        assert "good.duckdb" in result.err and str(holder.pid) in result.err
    finally:
        holder.communicate("\n", timeout=30)
