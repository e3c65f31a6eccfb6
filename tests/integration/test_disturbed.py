"""Writes that are cut in the middle, a disk that is full, a disk that fails: no run is lost, none is doubled.

A small library stands between the process and the system and disturbs one write. Every third one of a merge is
disturbed in the gold tests, some here.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from seqloom.storage.results.store import ResultStore
from seqloom.testing import assert_same_hits

from tests.storage import toy_runs
from tests.storage.results.test_store import rows_of

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux") or not shutil.which("gcc"),
                                reason="needs Linux and a C compiler")
MERGE = """
import sys
from seqloom.storage.results.store import ResultStore
ResultStore(sys.argv[1]).merge_pending(age=0)
"""
SEARCH = """
import sys
from pathlib import Path
from tests.storage import toy_runs
toy_runs.process(Path(sys.argv[1]), resume=True)
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    path = tmp_path_factory.mktemp("disturbed") / "disturbed.so"
    source = Path(__file__).with_name("disturbed.c")
    subprocess.run(["gcc", "-O1", "-shared", "-fPIC", "-D_LARGEFILE64_SOURCE", "-o", path, source, "-ldl"], check=True)
    return path


def disturbed(library: Path, code: str, folder: Path, at: int, how: str, count: Path | None = None):
    environment = {**os.environ, "LD_PRELOAD": str(library), "DISTURB_FOLDER": str(folder), "DISTURB_AT": str(at),
                   "DISTURB_HOW": how, **({"DISTURB_COUNT": str(count)} if count else {})}
    return subprocess.run([sys.executable, "-c", code, str(folder / "store.duckdb")], env=environment, text=True,
                          capture_output=True, timeout=120, cwd=Path(__file__).parents[2])


def spread(total: int) -> range:
    """Every third of so many writes; ``python -m tests.kills`` disturbs all of them."""
    return range(1 + total % 3, total + 1, 3)


def is_torn(how: str, at: int, counted: Path) -> bool:
    """Whether a write was torn: their number differs by a few from run to run, so `at` may be too many."""
    return how == "torn" and counted.stat().st_size >= at


def prepared(folder: Path) -> list[str]:
    """A store of two runs and two that wait beside it."""
    folder.mkdir()
    store = ResultStore(folder / "store.duckdb")
    runs = []
    for _ in range(2):
        runs += [toy_runs.run_once(store), toy_runs.run_once(store)]
        if len(runs) == 2:
            store.merge_pending()
    return runs


def check(folder: Path, runs: list[str]) -> None:
    """All runs are there, once and whole, and merged as soon as that can be."""
    store = ResultStore(folder / "store.duckdb")
    assert sorted(r["id"] for r in store.runs()) == sorted(runs)
    store.merge_pending(age=0, strict=True)
    assert [r["state"] for r in store.runs()] == ["complete"] * len(runs)
    for run in runs:
        assert_same_hits(rows_of(store, run), toy_runs.expected_hits())
    assert {p.name for p in folder.iterdir()} <= {"store.duckdb", "store.duckdb.wal"}
    more = toy_runs.run_once(store)
    assert store.merge_pending() == [more] and [p.name for p in folder.iterdir()] == ["store.duckdb"]


def every_write(library: Path, tmp_path: Path, how: str, points) -> int:
    base = tmp_path / "base"
    runs = prepared(base)
    counted = tmp_path / "count"
    whole = tmp_path / "whole"
    shutil.copytree(base, whole)
    assert disturbed(library, MERGE, whole, 0, how, counted).returncode == 0
    check(whole, runs)
    total = counted.stat().st_size
    assert total > 20
    torn = 0
    for at in points(total):
        work = tmp_path / "work"
        shutil.copytree(base, work)
        counted.unlink()
        done = disturbed(library, MERGE, work, at, how, counted)
        assert done.returncode == (-9 if is_torn(how, at, counted) else 0), (at, done.stderr)
        torn += done.returncode == -9
        assert len(done.stderr.splitlines()) <= 2, (at, done.stderr)  # a run stays in the log, another one where it is
        check(work, runs)
        shutil.rmtree(work)
    assert torn or how != "torn"
    return total


@pytest.mark.parametrize(("how", "last"), [("torn", 5), ("full", 2), ("fails", 1)])
def test_a_merge_that_is_disturbed_loses_no_run(library, tmp_path, how, last):
    every_write(library, tmp_path, how, lambda total: [total // 2, *range(total - last, total)])  # the checkpoint's


@pytest.mark.gold
@pytest.mark.parametrize("how", ["torn", "full", "fails"])
def test_a_merge_that_is_disturbed_anywhere_loses_no_run(library, tmp_path, how):
    every_write(library, tmp_path, how, spread)


def searches(library: Path, tmp_path: Path, how: str, points) -> None:
    counted = tmp_path / "count"
    whole = tmp_path / "whole"
    whole.mkdir()
    assert disturbed(library, SEARCH, whole, 0, how, counted).returncode == 0
    for at in points(counted.stat().st_size):
        work = tmp_path / "work"
        work.mkdir()
        counted.unlink()
        done = disturbed(library, SEARCH, work, at, how, counted)
        assert done.returncode in ((-9,) if is_torn(how, at, counted) else (0, 1)), (at, done.stderr)
        assert done.returncode < 1 or "seqloom.core.errors." in done.stderr.splitlines()[-1], (at, done.stderr)
        toy_runs.process(work / "store.duckdb", resume=True)
        for left in (work / "store.duckdb.runs").glob("*"):  # of processes that were killed before they had begun a run
            os.utime(left, (0, 0))
        store = ResultStore(work / "store.duckdb")
        store.merge_pending(age=0, strict=True)
        runs = store.runs()
        assert runs and {r["state"] for r in runs} == {"complete"}, (at, runs)
        check(work, [r["id"] for r in runs])
        shutil.rmtree(work)


@pytest.mark.parametrize("how", ["torn", "full", "fails"])
def test_a_folder_s_first_search_that_is_disturbed_spoils_nothing(library, tmp_path, how):
    searches(library, tmp_path, how, lambda total: [1, total // 2, total - 3][:3 if how == "torn" else 2])


@pytest.mark.gold
@pytest.mark.parametrize("how", ["torn", "full", "fails"])
def test_a_folder_s_first_search_that_is_disturbed_anywhere_spoils_nothing(library, tmp_path, how):
    searches(library, tmp_path, how, spread)
