"""``seqloom index``: build, list, drop; what a killed build leaves; searches beside it."""

import time
from pathlib import Path

import numpy as np
import pytest

from tests.cli.conftest import start


@pytest.fixture
def genome(seqloom, tmp_path: Path) -> str:
    rng = np.random.default_rng(2)
    letters = "".join(rng.choice(list("ACGT"), 5000))
    (tmp_path / "genome.fa").write_text(f">a\n{letters}\n>b\n{letters[500:900]}ACNNT\n")
    (tmp_path / "query.fa").write_text(f">q\n{letters[1000:2000]}\n")
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
    (["drop", "g.duckdb", "fm-index"], 2, "unknown index of g.duckdb 'fm-index'"),
])
def test_wrong_requests_are_told_in_a_line(seqloom, genome, words, status, message):
    result = seqloom("index", *words)
    assert result.status == status and message in result.err and len(result.err.splitlines()) == 1
    assert "no index" in seqloom("index", "list", genome).err


def test_a_killed_build_leaves_no_index(seqloom, genome, tmp_path):
    wait = ("import time\nfrom seqloom.storage.stored_indexes import IndexWriter\n"
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
