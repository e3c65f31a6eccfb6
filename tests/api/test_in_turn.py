"""Batches one after another, and queries of several files: rows are the same and in order."""

import random
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import seqloom
from seqloom import query_stream
from seqloom.core.engine.runner import Runner
from seqloom.outputs import Output


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Three files of queries, of which the second is FASTQ, and a target; portions are of a few queries."""
    source = random.Random(1)
    genome = "".join(source.choices("ACGT", k=6000))
    (tmp_path / "t.fa").write_text(f">t\n{genome}\n")
    names = iter(range(1000))
    for name, count in (("b.fa", 7), ("a.fq", 5), ("c.fa", 9)):
        reads = [genome[start : start + 60] for start in (source.randrange(5900) for _ in range(count))]
        texts = [(f">{next(names)}\n{read}\n" if name.endswith("fa") else f"@{next(names)}\n{read}\n+\n{'I' * 60}\n")
                 for read in reads]
        (tmp_path / name).write_text("".join(texts))
    monkeypatch.setattr(query_stream, "BATCHES", 2)
    monkeypatch.chdir(tmp_path)
    return tmp_path


class Watch:
    """How many of some things happen at the same time, at most."""

    def __init__(self) -> None:
        self.now = self.most = 0
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        with self._lock:
            self.now += 1
            self.most = max(self.most, self.now)

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self.now -= 1


QUERIES = ["b.fa", "a.fq", "c.fa"]


def rows(files: Path, queries: Any, **options: Any) -> str:
    """What is written of a search in batches of three queries, while it goes on."""
    path = files / "rows"
    output = Output("6", lambda run: run.write(path, "6"))
    seqloom.search("megablast", queries, files / "t.fa", store=False, backend="cpu", outputs=[output],
                   batch_queries=3, **options)
    return path.read_text()


@pytest.mark.parametrize("threads", [1, 3])
def test_rows_are_the_same_in_turn(files: Path, threads: int) -> None:
    queries = [Path(name) for name in QUERIES]
    wanted = rows(files, queries)
    assert [int(line.split("\t")[0]) for line in wanted.splitlines()] == sorted(
        int(line.split("\t")[0]) for line in wanted.splitlines())
    assert {int(line.split("\t")[0]) for line in wanted.splitlines()} == set(range(21))
    assert rows(files, queries, threads=threads, in_turn=True) == wanted
    assert rows(files, queries, threads=threads) == wanted


def test_several_files_are_as_one(files: Path) -> None:
    """In the order in which they are given, however they are searched."""
    records = [record.splitlines() for record in (files / "a.fq").read_text().split("@")[1:]]
    middle = "".join(f">{record[0]}\n{record[1]}\n" for record in records)
    (files / "all.fa").write_text((files / "b.fa").read_text() + middle + (files / "c.fa").read_text())
    wanted = rows(files, "all.fa")
    assert rows(files, [Path(name) for name in QUERIES]) == wanted
    turned = rows(files, [Path(name) for name in reversed(QUERIES)])
    assert turned != wanted and sorted(turned.splitlines()) == sorted(wanted.splitlines())


@pytest.mark.parametrize("in_turn", [True, False])
def test_one_thing_at_a_time(files: Path, in_turn: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Portions are read, units searched and rows written one after another; otherwise they overlap."""
    watch = Watch()
    search, read = Runner.whole_batch, query_stream.QueryStream._batches
    order: list[str] = []

    def searched(self: Runner, unit: Any) -> Any:
        with watch:
            order.append("search")
            time.sleep(0.05)  # whoever works meanwhile does so now
            return search(self, unit)

    def reading(self: query_stream.QueryStream) -> Iterator[Any]:
        batches = read(self)
        while True:
            with watch:
                order.append("read")
                batch = next(batches, None)
            if batch is None:
                return
            yield batch

    def write(run: Any) -> None:
        with open(files / "rows", "w") as stream, run.reporting() as report:
            for block in report.blocks():
                with watch:
                    order.append("write")
                    stream.write(f"{len(block.numbers)}\n")

    monkeypatch.setattr(Runner, "whole_batch", searched)
    monkeypatch.setattr(query_stream.QueryStream, "_batches", reading)
    seqloom.search("megablast", [Path(name) for name in QUERIES], files / "t.fa", store=False, backend="cpu",
                   threads=2, in_turn=in_turn, batch_queries=3, outputs=[Output("6", write)])
    assert order.count("write") >= 7 and order.count("search") == 7
    assert (watch.most == 1) == in_turn
