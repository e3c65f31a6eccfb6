"""``seqloom index``: build, list, drop; what a killed build leaves; searches beside it."""

import time
from pathlib import Path

import numpy as np
import pytest

from tests.cli.conftest import start


@pytest.fixture
def genome(seqloom, tmp_path: Path) -> str:
    rng = np.random.default_rng(2)
    residues = "".join(rng.choice(list("ACGT"), 5000))
    (tmp_path / "genome.fa").write_text(f">a\n{residues}\n>b\n{residues[500:900]}ACNNT\n")
    (tmp_path / "query.fa").write_text(f">q\n{residues[1000:2000]}\n")
    assert seqloom("db", "create", "g.duckdb", "genome.fa").status == 0
    return "g.duckdb"


def test_built_listed_used_and_dropped(seqloom, genome):
    assert "no index; seqloom index build g.duckdb makes one" in seqloom("index", "list", genome).err
    made = seqloom("index", "build", genome, "--set", "sample=4")
    assert made.status == 0 and made.out == ""
    assert made.err == "seqloom: g.duckdb: index fm-index (bucket=128, sample=4): 0.0 MB in 1 piece\n"
    listed = seqloom("index", "list", genome, "--format", "tsv").out.splitlines()
    assert listed[0].split("\t")[:3] == ["index", "options", "pieces"] and listed[1].endswith("\tready")
    search = ("mum", "-q", "query.fa", "-d", genome, "--mum", "-l", "20")
    with_index = seqloom(*search)
    assert with_index.status == 0 and "  a  " in with_index.out
    assert "fm-index" in seqloom("sql", "SELECT plugin FROM run_slots").out
    assert "is there already" in seqloom("index", "build", genome, "--set", "sample=4").err
    assert seqloom("db", "check", genome).status == 0
    assert seqloom("index", "drop", genome, "fm-index").err == "seqloom: g.duckdb: 1 index removed\n"
    assert seqloom(*search).out == with_index.out
    assert seqloom("index", "drop", genome, "--all").err == "seqloom: g.duckdb: 0 indexes removed\n"


@pytest.mark.parametrize(("words", "status", "message"), [
    (["build", "none.duckdb"], 1, "there is no sequence database none.duckdb"),
    (["build", "genome.fa"], 1, "not a DuckDB file"),
    (["build", "g.duckdb", "--index", "fm-indx"], 2, "unknown index 'fm-indx'; did you mean 'fm-index'?"),
    (["build", "g.duckdb", "--set", "bucket=100"], 2, "power of two"),
    (["build", "g.duckdb", "--memory", "1M"], 1, "raise --memory"),
    (["build", "g.duckdb", "-p", "none"], 2, "--num-threads needs a number"),
    (["drop", "g.duckdb"], 2, "name the indexes to remove, or give --all"),
    (["drop", "g.duckdb", "fm-index"], 2, "unknown index 'fm-index' of g.duckdb"),
])
def test_wrong_requests_are_told_in_a_line(seqloom, genome, words, status, message):
    result = seqloom("index", *words)
    assert result.status == status and message in result.err and len(result.err.splitlines()) == 1
    assert "no index" in seqloom("index", "list", genome).err


def test_a_killed_build_leaves_no_index(seqloom, genome, tmp_path):
    wait = ("import time\nfrom seqloom.storage.sequences.stored_indexes import IndexWriter\n"
            "IndexWriter.finish = lambda *_: (open('written', 'w').close(), time.sleep(60))")
    process = start("index", "build", genome, code=wait, cwd=tmp_path)
    deadline = time.monotonic() + 60
    while not (tmp_path / "written").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    busy = seqloom("mum", "-q", "query.fa", "-d", genome, "-l", "20", "--no-store")
    assert busy.status == 1 and "in use" in busy.err
    process.kill()
    process.communicate()
    assert "no index" in seqloom("index", "list", genome).err
    assert seqloom("db", "check", genome).status == 0
    assert seqloom("mum", "-q", "query.fa", "-d", genome, "-l", "20", "--no-store").status == 0
    assert seqloom("index", "build", genome).status == 0
    assert seqloom("index", "list", genome).out.count("ready") == 1


def test_mapped_or_not_as_asked_for(seqloom, genome):
    search = ("mum", "-q", "query.fa", "-d", genome, "-l", "20", "--no-store")
    made = seqloom("index", "build", genome, "--map")
    assert made.status == 0 and made.err.endswith(" MB in 1 piece, mapped\n")
    wanted = seqloom(*search)
    assert seqloom("index", "list", genome, "--format", "json").out.count('"mapped": "yes"') == 1
    assert seqloom("db", "check", genome).status == 0
    image = Path("g.duckdb.indexes/index_0_0.image")
    whole = image.read_bytes()
    image.write_bytes(whole[:-64] + bytes(range(64)))
    checked = seqloom("db", "check", genome)
    assert checked.status == 1 and "index_0_0.image differs from what is stored; delete it" in checked.err
    image.unlink()
    assert seqloom("db", "check", genome).status == 0 and seqloom(*search).out == wanted.out
    assert seqloom("index", "build", genome, "--map").err.endswith("mapped\n") and image.read_bytes() == whole
    assert seqloom("index", "build", genome, "--no-map").err.endswith("piece\n") and not image.parent.exists()
    assert seqloom(*search).out == wanted.out
    seqloom("index", "build", genome, "--map")
    assert seqloom("index", "drop", genome, "--all").status == 0 and not image.parent.exists()


@pytest.mark.parametrize("then", ["list", "build"])
def test_a_build_that_is_killed_while_it_maps_leaves_nothing_that_is_used(seqloom, genome, tmp_path, then):
    wait = ("import os, time\n"
            "os.fsync = lambda file: (open('written', 'w').close(), time.sleep(60)) "
            "if os.path.realpath(f'/dev/fd/{file}').endswith('.image.part') else None")
    process = start("index", "build", genome, "--map", code=wait, cwd=tmp_path)
    deadline = time.monotonic() + 60
    while not (tmp_path / "written").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    process.kill()
    process.communicate()
    assert [path.name for path in Path("g.duckdb.indexes").iterdir()] == ["index_0_0.image.part"]
    assert seqloom("mum", "-q", "query.fa", "-d", genome, "-l", "20", "--no-store").err == ""
    assert seqloom("index", then, genome).status == 0
    assert not Path("g.duckdb.indexes").exists()
    listed = seqloom("index", "list", genome, "--format", "csv").out
    assert ",no," in listed and "ready" in listed
    assert seqloom("index", "build", genome, "--map").err.endswith("mapped\n")
    assert [path.name for path in Path("g.duckdb.indexes").glob("*.image")] == ["index_0_0.image"]


def test_a_damaged_image_changes_no_row(seqloom, genome):
    search = ("exact", "-q", "query.fa", "-d", genome, "--no-store")
    assert seqloom("index", "build", genome, "--map").status == 0
    wanted = seqloom(*search)
    image = Path("g.duckdb.indexes/index_0_0.image")
    whole = image.read_bytes()
    for place in range(4096, len(whole), len(whole) // 12):
        changed_image = bytearray(whole)
        changed_image[place] ^= 1 << place % 8
        image.write_bytes(changed_image)
        done = seqloom(*search)
        assert done.out == wanted.out and done.status == 0
        assert "index_0_0.image is damaged; it is read; seqloom index build --map" in done.err.splitlines()[0]
    assert seqloom("index", "build", genome, "--map").err.endswith("mapped\n") and image.read_bytes() == whole
    assert seqloom(*search).err == ""


def changed(database: str, statement: str) -> None:
    import duckdb

    with duckdb.connect(database) as connection:
        connection.execute(statement)


@pytest.mark.parametrize(("statement", "why"), [
    ("UPDATE indexes SET fingerprint = 'of another database'", "made of other sequences than the database holds now"),
    ("UPDATE indexes SET version = 99", "made by version 99 of the plugin, this is version 1"),
    ("DELETE FROM index_pieces", "not whole"),
])
def test_an_index_of_something_else_is_told_and_not_used(seqloom, genome, statement, why):
    search = ("mum", "-q", "query.fa", "-d", genome, "--mum", "-l", "20", "--no-store")
    wanted = seqloom(*search).out
    assert seqloom("index", "build", genome).status == 0
    changed(genome, statement)
    assert why in seqloom("index", "list", genome).out
    told = f"seqloom: g.duckdb: its stored index fm-index is of no use here: {why}; "
    result = seqloom(*search)
    assert result.status == 0 and result.out == wanted
    assert result.err == told + "the search does without it; seqloom index build stores it anew\n"
    asked = seqloom(*search, "--stage", "index.references=fm-index", "--stage", "seed.matches=fm-matches")
    assert asked.status == 0 and asked.out == wanted
    assert asked.err == told + "it is made for this search alone; seqloom index build stores it anew\n"
    assert f"is built anew: the stored one is {why}" in seqloom("index", "build", genome).err
    assert seqloom("index", "list", genome).out.count("ready") == 1
    assert seqloom(*search).err == ""


def test_an_appended_database_makes_its_index_stale(seqloom, genome):
    assert seqloom("index", "build", genome).status == 0
    assert seqloom("db", "append", genome, "query.fa").status == 0
    result = seqloom("mum", "-q", "query.fa", "-d", genome, "-l", "20", "--maxmatch", "--no-store")
    assert result.status == 0 and "made of other sequences" in result.err
    assert "  q  " in result.out  # what was appended is searched


@pytest.mark.parametrize(("statement", "what"), [
    ("UPDATE index_0_0 SET data = data[1:1000]::BLOB", "does not match its checksum"),
    ("DELETE FROM index_0_0", "chunk 0 is there 0 times"),
    ("DROP TABLE index_0_0", "chunk 0 is there 0 times"),
    ("UPDATE index_pieces SET bytes = bytes - 64", "bytes instead of"),
    ("UPDATE index_pieces SET bytes = bytes + 64", "bytes instead of"),
])
def test_a_truncated_index_stops_the_search_and_can_be_mended(seqloom, genome, statement, what):
    assert seqloom("index", "build", genome).status == 0
    changed(genome, statement)
    search = ("mum", "-q", "query.fa", "-d", genome, "-l", "20", "-o", "out.mums")
    result = seqloom(*search)
    assert result.status == 1 and "g.duckdb: index fm-index: " in result.err and what in result.err
    assert "make it anew: seqloom index drop g.duckdb fm-index, then seqloom index build" in result.err
    assert not Path("out.mums").exists() and seqloom("db", "check", genome).status == 1
    assert seqloom("index", "drop", genome, "fm-index").status == 0
    assert seqloom("index", "build", genome).status == 0 and seqloom(*search).status == 0


def test_a_truncated_file_is_told(seqloom, genome):
    assert seqloom("index", "build", genome).status == 0
    path = Path(genome)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    result = seqloom("mum", "-q", "query.fa", "-d", genome, "-l", "20")
    assert result.status == 1 and "g.duckdb" in result.err and len(result.err.splitlines()) == 1


@pytest.mark.parametrize(("words", "message"), [
    (["exact", "--set", "seed.queries.longest=100"], "query 'q' has 1,000 residues and at most 100 can be looked up"),
    (["exact", "--memory", "1M"], "raise --memory"),
    (["mum", "--memory", "1M"], "raise --memory"),
])
def test_queries_and_memory_have_limits(seqloom, genome, words, message):
    assert seqloom("index", "build", genome).status == 0
    result = seqloom(*words, "-q", "query.fa", "-d", genome, "-o", "out")
    assert result.status == 1 and message in result.err and len(result.err.splitlines()) == 1
    assert not Path("out").exists()
