"""Parquet and Arrow files of a search have the rows, columns and types that ``export`` writes of the run."""

import io
import math
import weakref
from collections.abc import Iterator
from dataclasses import replace
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pytest
import seqloom
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import ipc, parquet
from seqloom import Database, Run
from seqloom.core.errors import StoreError, UnknownNameError, UsageError
from seqloom.core.output_files import NamedFile
from seqloom.core.records import PATH_OPS, Ragged, path_text
from seqloom.core.stages import Writer
from seqloom.outputs import Output
from seqloom.plugins.formats import arrow_columns
from seqloom.plugins.formats.arrow_columns import path_texts, rounded
from seqloom.plugins.formats.runs_cpu import places_in_runs
from seqloom.plugins.formats.writer_arrow import ArrowFile, Parquet
from seqloom.taxonomy import Taxids

from tests.every_pipeline import GLOBINS, SEARCHES, sample, search_of, write_bases
from tests.taxa import dump


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_bases(tmp_path_factory.mktemp("arrow"))


def read(path: Path) -> pyarrow.Table:
    if path.suffix == ".parquet":
        return parquet.read_table(path)
    with ipc.open_file(path) as file:
        return file.read_all()


def check_written(run: Run, home: Path, tmp_path: Path) -> pyarrow.Table:
    """Compare what is written of a kept run with what is exported; gives the alignments."""
    results, found = seqloom.Results(home), {}
    for level in ("hits", "hsps"):
        results.export(run.id, "parquet", tmp_path / "exported.parquet", level)
        found[level] = parquet.read_table(tmp_path / "exported.parquet")
        for name in ("parquet", "arrow"):
            run.write(tmp_path / f"written.{name}", f"{name} {level}")
            written = read(tmp_path / f"written.{name}")
            check_equal(written, found[level])
    run.write(tmp_path / "written.parquet", "parquet")
    check_equal(read(tmp_path / "written.parquet"), found["hsps"])
    return found["hsps"]


def check_equal(written: pyarrow.Table, exported: pyarrow.Table) -> None:
    """DuckDB says besides of which columns it knows that nothing is absent."""
    assert [(field.name, field.type) for field in written.schema] == [(f.name, f.type) for f in exported.schema]
    assert written.cast(exported.schema).equals(exported)


@pytest.mark.parametrize("name", SEARCHES)
def test_the_table_is_the_one_that_is_exported(name: str, folder: Path, tmp_path: Path) -> None:
    home = tmp_path / "kept.duckdb"
    rows = check_written(search_of(name, folder, results=home), home, tmp_path)
    assert len(rows)
    outputs = [Output(f"{kind} hsps", lambda run, kind=kind: run.write(tmp_path / f"at_once.{kind}", kind))
               for kind in ("parquet", "arrow")]
    search_of(name, folder, store=False, batch_queries=1, outputs=outputs)
    check_equal(read(tmp_path / "at_once.parquet"), rows)
    check_equal(read(tmp_path / "at_once.arrow"), rows)


@pytest.mark.parametrize("options", [{"evalue": 1e-300}, {"score_only": True}])
def test_a_run_without_alignments(folder: Path, tmp_path: Path, options: dict[str, Any]) -> None:
    home = tmp_path / "kept.duckdb"
    run = seqloom.search("sw", {"q": sample("proteins.fasta")[GLOBINS[0]]}, folder / "globins.fasta",
                         backend="reference", results=home, **options)
    assert not len(check_written(run, home, tmp_path))
    assert len(parquet.read_table(tmp_path / "exported.parquet")) == 0
    run.write(tmp_path / "hits.parquet", "parquet hits")
    assert len(read(tmp_path / "hits.parquet")) == (3 if "score_only" in options else 0)


def test_organisms_are_columns(tmp_path: Path) -> None:
    home, names = tmp_path / "kept.duckdb", [*GLOBINS, "other"]
    residues = {**sample("proteins.fasta"), "other": sample("proteins.fasta")[GLOBINS[0]]}
    (tmp_path / "t.fasta").write_text("".join(f">{name}\n{residues[name]}\n" for name in names))
    (tmp_path / "map").write_text("".join(f"{name}\t{taxid}\n" for name, taxid in zip(GLOBINS, (9606, 10090, 9606))))
    with Database.create(tmp_path / "t.duckdb", tmp_path / "t.fasta", taxids=Taxids(str(tmp_path / "map"))) as base:
        base.store_taxonomy(*dump(tmp_path))
    run = seqloom.search("sw", {"q": residues[GLOBINS[0]]}, tmp_path / "t.duckdb", results=home, backend="reference",
                         evalue=10.0)
    rows = check_written(run, home, tmp_path).to_pylist()
    assert {row["sseqid"]: row["scomname"] for row in rows}[GLOBINS[1]] == "house mouse"
    assert {row["sseqid"]: row["staxid"] for row in rows}["other"] is None


def test_tables_hold_so_many_rows(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "kept.duckdb"
    run = search_of("blastp", folder, results=home)
    monkeypatch.setattr(arrow_columns, "ROWS_AT_ONCE", 1)
    monkeypatch.setattr("seqloom.storage.results.report.QUERIES_AT_ONCE", 1)
    check_written(run, home, tmp_path)
    assert parquet.ParquetFile(tmp_path / "written.parquet").num_row_groups == 2


@pytest.mark.parametrize("threads", [1, 3])
def test_blocks_are_let_go_of_though_they_have_few_rows(folder: Path, threads: int) -> None:
    """So that a great many queries of which few are found take no more memory than few."""
    with search_of("blastp", folder, store=False).reporting() as report:
        block = next(iter(report.blocks()))
    drawn: list[weakref.ref[Any]] = []
    most = 0

    def blocks() -> Iterator[Any]:
        nonlocal most
        for _ in range(60):
            made = replace(block)
            drawn.append(weakref.ref(made))
            yield made
            del made
            most = max(most, sum(one() is not None for one in drawn))

    rows = sum(len(table) for some in arrow_columns.tables(blocks(), "hsps", threads) for table in some)
    assert rows == 60 * len(block.hits.alignments) > 0
    assert most <= threads + 4


def test_what_is_asked_for_wrongly(folder: Path, tmp_path: Path) -> None:
    for outfmt, error, message in (("parquet hit", UnknownNameError, "unknown level 'hit'; did you mean 'hits'"),
                                   ("arrow hits hsps", UsageError, "takes one level, not 'hsps' as well")):
        with pytest.raises(error, match=message):
            search_of("sw", folder, store=False).write(tmp_path / "out", outfmt)
    with pytest.raises(TypeError, match="columns are bytes"):
        search_of("sw", folder, store=False).write(io.StringIO(), "parquet")


# ---- what fails


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_a_full_disk_leaves_what_was_there(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                           kind: str) -> None:
    class FullFile(NamedFile):
        def write(self, data: Any) -> int:
            with open("/dev/full", "wb", buffering=0) as full, pytest.raises(OSError) as failed:
                full.write(data)
            raise StoreError(f"{self.label} can't be written") from failed.value

    out = tmp_path / "out" / "hits"
    out.parent.mkdir()
    out.write_text("before")
    monkeypatch.setattr("seqloom.core.output_files._OnItsWay", FullFile)
    with pytest.raises(StoreError, match="hits can't be written"):
        search_of("blastp", folder, store=False, outputs=[Output(kind, lambda run: run.write(out, kind))])
    assert [path.name for path in out.parent.iterdir()] == ["hits"] and out.read_text() == "before"


@pytest.mark.parametrize("writer", [Parquet, ArrowFile])
def test_what_a_search_that_fails_has_written_is_no_whole_file(folder: Path, writer: type[Writer],
                                                              monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrow_columns, "ROWS_AT_ONCE", 1)
    run = search_of("blastp", folder, store=False)
    raw = io.BytesIO()
    with run.reporting() as report:
        blocks = list(report.blocks())

        class Interrupted:
            threads = 1

            def blocks(self) -> Iterator[Any]:
                yield from blocks
                raise KeyboardInterrupt

        stream = io.TextIOWrapper(raw, write_through=True)
        with pytest.raises(KeyboardInterrupt):
            writer().write(Interrupted(), stream, ())
    written = raw.getvalue()
    assert written and not written.endswith((b"PAR1", b"ARROW1"))


# ---- columns


@given(st.lists(st.tuples(st.integers(0, 10**4), st.integers(1, 10**4)), max_size=30),
       st.lists(st.integers(0, 10**6), max_size=30), st.integers(2, 3))
def test_numbers_are_rounded_by_what_they_are(pairs: list[tuple[int, int]], halves: list[int], decimals: int) -> None:
    shares = [part / whole * 100 for part, whole in pairs] + [half / 10**decimals / 2 for half in halves]
    wanted = [float(Decimal(share).quantize(Decimal(1).scaleb(-decimals), ROUND_HALF_UP)) for share in shares]
    assert rounded(np.array(shares), decimals).tolist() == wanted
    assert math.isnan(rounded(np.array([math.nan]), decimals)[0])


OPERATION = st.builds(lambda count, kind: count << 4 | kind, st.integers(1, (1 << 28) - 1) | st.integers(1, 120),
                      st.integers(0, len(PATH_OPS) - 1))


@given(st.lists(st.tuples(st.lists(OPERATION, max_size=4), st.booleans()), max_size=6)
       | st.lists(st.tuples(st.lists(OPERATION, min_size=1, max_size=1), st.booleans()), min_size=1, max_size=6))
def test_paths_are_written_as_one_by_one(rows: list[tuple[list[int], bool]]) -> None:
    paths = Ragged.of([path for path, _ in rows])
    shared = path_texts(paths, np.array([turned for _, turned in rows], bool))
    assert isinstance(shared.texts, Ragged)
    found = [shared.texts[place].tobytes().decode() for place in shared.places.tolist()]
    assert found == [path_text(path[::-1] if turned else path) for path, (_, turned) in zip(paths, rows, strict=True)]


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(1, 3)), max_size=9))
def test_places_of_equal_keys(runs: list[tuple[int, int]]) -> None:
    keys = [2 * number + n for number, (_, n) in enumerate(runs) for _ in range(n)]
    assert places_in_runs(np.array(keys, np.int64)).tolist() == [keys[: n + 1].count(key) for n, key in enumerate(keys)]


@given(st.lists(st.text(max_size=5) | st.none(), max_size=9), st.data())
def test_texts_of_rows(texts: list[str | None], data: st.DataObject) -> None:
    places = data.draw(st.lists(st.integers(0, len(texts) - 1), max_size=9)) if texts else []
    array = arrow_columns._array("str", arrow_columns.Shared(texts, np.array(places, np.int64)))
    assert array.to_pylist() == [texts[place] for place in places]
    named = [text or "" for text in texts]
    single = arrow_columns._array("str", arrow_columns.Single(named, np.array(places, np.int64)))
    assert single.to_pylist() == [named[place] for place in places]
