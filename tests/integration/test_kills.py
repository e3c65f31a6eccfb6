"""Searches that are killed at any moment, resumed, and started many at once: the same rows, none twice, none lost."""

import os
import random
import signal
import time
from pathlib import Path

import pytest
from seqloom.storage.results.store import ResultStore

from tests.integration.commands import seqloom, started
from tests.integration.samples import SAMPLE

SEARCH = ["blastp", "-q", "queries.fasta", "-d", "p.duckdb", "--evalue", "10", "--volume-residues", "5000",
          "--batch-queries", "3", "--quiet"]
HITS = "SELECT qseqid, sseqid, rank, score, evalue FROM hits WHERE run = {} ORDER BY ALL"
HSPS = ("SELECT qseqid, sseqid, qstart, qend, sstart, send, score, evalue, cigar FROM hsps WHERE run = {} "
        "ORDER BY ALL")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    records = ("\n" + (SAMPLE / "proteins.fasta").read_text()).split("\n>")[1:]
    (tmp_path / "queries.fasta").write_text("".join(f">{r}\n" for r in records[:12]))
    (tmp_path / "targets.fasta").write_text("".join(f">{r}\n" for r in records[:36]))
    seqloom(tmp_path, "db", "create", "p.duckdb", "targets.fasta")
    return tmp_path


def rows(store: ResultStore, run: int) -> tuple[list, list]:
    hits, hsps = (store.sql(query.format(run)).to_pylist() for query in (HITS, HSPS))
    return hits, hsps


def numbers(store: ResultStore, state: str) -> list:
    return [r for r in store.runs() if r["state"] == state]


def killed(folder: Path, words: list[str], generator: random.Random, span: float) -> bool:
    """Start a command and kill it: at a random time, or as soon as it merges. False if it ended before."""
    process = started(folder, *words)
    log = folder / "seqloom.duckdb.wal"
    deadline = time.monotonic() + generator.uniform(0.1, span)
    at_merge = generator.random() < 0.4
    while process.poll() is None:
        if (at_merge and log.exists()) or (not at_merge and time.monotonic() > deadline):
            process.kill()
            return process.wait() == -signal.SIGKILL
        time.sleep(0.001)
    return False


def kill_and_resume(folder: Path, kills: int) -> None:
    begin = time.monotonic()
    seqloom(folder, *SEARCH)
    span = 1.1 * (time.monotonic() - begin)
    generator = random.Random(kills)
    store = ResultStore(folder / "seqloom.duckdb")
    wanted = rows(store, 1)
    assert len(wanted[0]) > 40
    done = 0
    while done < kills:
        open_runs = numbers(store, "incomplete")
        words = ["runs", "resume", open_runs[0]["id"]] if open_runs and generator.random() < 0.8 else SEARCH
        done += killed(folder, words, generator, span)
    for run in numbers(store, "incomplete"):
        seqloom(folder, "runs", "resume", run["id"])
    seqloom(folder, "runs", "merge")
    states = {r["state"] for r in store.runs()}
    assert states == {"complete"}, states
    finished = [r["run"] for r in store.runs()]
    assert len(finished) == len(set(finished)) > 1
    for number in finished:
        assert rows(store, number) == wanted, f"run {number} differs after kills"
    for leftover in store.runs_folder.glob("*"):  # of processes that were killed before they had begun a run
        os.utime(leftover, (0, 0))
    seqloom(folder, "runs", "merge")
    assert not store.runs_folder.exists()


@pytest.mark.long
def test_kills_then_resume(folder: Path) -> None:
    kill_and_resume(folder, 8)


@pytest.mark.long
@pytest.mark.gold
def test_more_kills_then_resume(folder: Path) -> None:
    kill_and_resume(folder, 20)


def test_resume_is_refused_once_the_database_has_grown(folder: Path) -> None:
    store = ResultStore(folder / "seqloom.duckdb")
    while not (begun := numbers(store, "incomplete")):
        process = started(folder, *SEARCH)
        while not numbers(store, "running") and process.poll() is None:
            time.sleep(0.01)
        process.kill()
        process.wait()
    run = begun[0]
    (folder / "more.fasta").write_text(">one_more\nMKTAYIAKQRQISFVKSHFSRQLEERLGLIEVQ\n")
    seqloom(folder, "db", "append", "p.duckdb", "more.fasta")
    refused = seqloom(folder, "runs", "resume", run["id"], check=False)
    assert refused.returncode == 1
    assert "has changed" in refused.stderr and "p.duckdb" in refused.stderr
    assert len(refused.stderr.strip().splitlines()) == 1


@pytest.mark.long
def test_fifty_searches_at_once(folder: Path) -> None:
    words = ["blastp", "-q", "one.fasta", "-d", "p.duckdb", "--quiet"]
    record = (folder / "queries.fasta").read_text().split("\n>")[0]
    (folder / "one.fasta").write_text(record + "\n")
    processes = [started(folder, *words) for _ in range(50)]
    assert [p.wait(300) for p in processes] == [0] * 50
    store = ResultStore(folder / "seqloom.duckdb")
    runs = store.runs()
    assert [r["state"] for r in runs] == ["complete"] * 50
    first = rows(store, runs[0]["run"])
    assert first[0] and all(rows(store, r["run"]) == first for r in runs)
