"""Queries that are read, searched and written a portion at a time, from files and pipes."""

import io
import sys
import time
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from seqloom.core.alphabet import NUCLEOTIDE, PROTEIN
from seqloom.core.errors import Cancelled, InputError, ResumeError, StoreError
from seqloom.core.progress import Cancellation
from seqloom.core.sequences import SequenceBatch
from seqloom.outputs import Output
from seqloom.query_stream import AHEAD, QueryFiles, QueryStream
from seqloom.results import Results
from seqloom.run import Run
from seqloom.searches import finished as finished_run
from seqloom.searches import residues_of, resume, search
from seqloom.storage.results.run_file import RunFile

from tests.stopping import StopAtPart

READS, MANY = 600, 8000


@pytest.fixture(scope="module")
def genome() -> str:
    return "".join(np.random.default_rng(3).choice(list("ACGT"), 5000))


@pytest.fixture(scope="module")
def database(genome: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("stream") / "genome.fasta"
    path.write_text(f">genome\n{genome}\n")
    return str(path)


def reads(genome: str, count: int = READS) -> str:
    return "".join(f">read{n}\n{genome[n * 7 % 4900 :][:60]}\n" for n in range(count))


@pytest.fixture
def queries(genome: str, tmp_path: Path) -> Path:
    path = tmp_path / "reads.fasta"
    path.write_text(reads(genome))
    return path


def found(queries: Any, database: Any, place: Path, outfmts: list[str], **settings: Any) -> list[str]:
    """Outputs in some formats of a search in portions of 80 reads."""
    paths = [place / f"{n}.txt" for n in range(len(outfmts))]

    def writing(path: Path, outfmt: str) -> Output:
        return Output(outfmt, lambda run: run.write(path, outfmt))

    search("mum", queries, database, **{"batch_residues": 1200, "store": False, **settings},
           outputs=[writing(path, outfmt) for path, outfmt in zip(paths, outfmts, strict=True)])
    return [path.read_text(encoding="latin-1") for path in paths]


@pytest.mark.parametrize("outfmt", ["6", "7 qseqid sseqid length qcovs", "paf", "mummer -F", "parquet", "arrow"])
@pytest.mark.parametrize("threads", [1, 2])
def test_output_is_that_of_a_search_with_all_queries_at_once(queries: Path, database: str, tmp_path: Path, outfmt: str,
                                                             threads: int) -> None:
    whole = found(queries, database, tmp_path, [outfmt], batch_residues=None)
    assert len(whole[0]) >= 10 * READS
    assert found(queries, database, tmp_path, [outfmt], threads=threads) == whole


def test_several_outputs_and_volumes(queries: Path, genome: str, tmp_path: Path) -> None:
    targets = SequenceBatch.of(NUCLEOTIDE, [genome[:2000], genome[1000:3000], genome[3000:]])
    kept: dict[str, Any] = {"store": True, "results": tmp_path / "store.duckdb"}
    whole = found(queries, targets, tmp_path, ["6", "paf"], batch_residues=None)
    assert found(queries, targets, tmp_path, ["6", "paf"], volume_residues=2000) == whole
    assert found(queries, targets, tmp_path, ["6", "paf"], volume_residues=2000, **kept) == whole


def test_formats_that_go_through_queries_twice_get_all_of_them(queries: Path, database: str, tmp_path: Path) -> None:
    out = tmp_path / "out"

    def twice(run: Run) -> None:
        with run.reporting("html") as report:
            assert [len(list(report.queries())) for _ in range(2)] == [READS, READS]
        run.write(out, "6")

    search("mum", queries, database, batch_residues=1200, store=False, outputs=[Output("html", twice)])
    assert [out.read_text()] == found(queries, database, tmp_path, ["6"], batch_residues=None)


def test_queries_of_a_pipe(queries: Path, database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = found(queries, database, tmp_path, ["6"], batch_residues=None)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(queries.read_bytes())))
    assert found(Path("-"), database, tmp_path, ["6"]) == whole


def test_a_kept_run_is_written_while_it_goes_on(queries: Path, database: str, tmp_path: Path,
                                                monkeypatch: pytest.MonkeyPatch) -> None:
    whole, finished, finish = found(queries, database, tmp_path, ["6"], batch_residues=None), [], RunFile.finish
    monkeypatch.setattr(RunFile, "finish", lambda *words: finished.append(True) or finish(*words))

    def write(run: Run) -> None:
        with run.reporting("6") as report:
            next(report.queries())
        assert not finished

    kept = {"batch_residues": 1200, "results": tmp_path / "store.duckdb"}
    run = search("mum", queries, database, outputs=[Output("6", write)], **kept)
    run.write(tmp_path / "later", "6")
    assert (tmp_path / "later").read_text() == whole[0]

    def fail(run: Run) -> None:
        raise StoreError("the disk is full")

    with pytest.raises(StoreError, match="the disk is full"):
        search("mum", queries, database, outputs=[Output("6", fail)], **kept)
    last = finished_run("last", tmp_path / "store.duckdb")
    assert len(last) == len(run) and last.id != run.id


def test_reports_of_kept_runs_tell_what_filters_let_through_in_all_volumes(tmp_path: Path) -> None:
    generator = np.random.default_rng(3)
    texts = ["".join(generator.choice(list("ACDEFGHIKLMNPQRSTVWY"), 60)) for _ in range(12)]
    (tmp_path / "queries.fa").write_text("".join(f">q{n}\n{text}\n" for n, text in enumerate(texts)))
    targets, reports = SequenceBatch.of(PROTEIN, texts * 2), []
    for kept in ({"store": False}, {"results": tmp_path / "store.duckdb"}):
        path = tmp_path / f"{len(reports)}"
        search("phmmer", tmp_path / "queries.fa", targets, batch_residues=120, volume_residues=500,
               outputs=[Output("", lambda run, path=path: run.write(path))], **kept)
        reports.append([line for line in path.read_text().splitlines() if line.startswith("Passed")])
    assert reports[0] == reports[1] and len(reports[0]) > 40


def test_nothing_stays_with_a_run_that_was_only_written(queries: Path, database: str, tmp_path: Path) -> None:
    run = search("mum", queries, database, batch_residues=1200, store=False,
                 outputs=[Output("6", lambda run: run.write(tmp_path / "out", "6"))])
    assert run.counts is not None and run.counts[0] == READS
    with pytest.raises(StoreError, match="were written and not kept"):
        _ = run.hits
    plain = search("mum", queries, database, batch_residues=1200, store=False)  # nobody writes: it is kept in memory
    assert len(plain.hits) == run.counts[1]


def test_a_writer_that_fails_ends_the_search(queries: Path, database: str) -> None:
    def write(run: Run) -> None:
        raise OSError(28, "the disk is full")

    with pytest.raises(OSError, match="the disk is full"):
        search("mum", queries, database, batch_residues=1200, store=False, outputs=[Output("6", write)])


def test_a_bad_record_is_told_when_it_is_met_and_leaves_no_output(queries: Path, genome: str, database: str,
                                                                      tmp_path: Path) -> None:
    good = reads(genome, MANY)  # more than a reader takes at a time
    queries.write_text(good.replace(">read7900\n", ">read7900\n1"))
    with pytest.raises(InputError, match="line 15802"):
        found(queries, database, tmp_path, ["6"], batch_residues=30_000)
    assert not list(tmp_path.glob("*.txt"))
    home = tmp_path / "store.duckdb"
    with pytest.raises(InputError, match="parts of the work are kept: seqloom runs resume"):
        found(queries, database, tmp_path, ["6"], batch_residues=30_000, store=True, results=home)
    queries.write_text(good)
    resume("last", home, written_to=[Output("6", lambda run: run.write(tmp_path / "out", "6"))])
    assert [(tmp_path / "out").read_text()] == found(queries, database, tmp_path, ["6"], batch_residues=None)


def stopped(queries: Any, database: str, home: Path) -> str:
    """The identifier of a run that was stopped in the middle of its queries."""
    with pytest.raises(Cancelled, match="parts of the work are kept"):
        search("mum", queries, database, batch_residues=1200, results=home, progress=StopAtPart(11))
    run, = Results(home).runs()
    assert run["state"] == "incomplete" and 80 < run["queries"] < READS
    return run["id"]


def test_a_portion_has_a_batch_for_each_thread(queries: Path) -> None:
    """And as many when a run goes on with another number of threads."""
    for threads, batches in ((1, 4), (4, 4), (7, 7), (500, 32)):
        files = QueryFiles.of("nucleotide", [str(queries)], "error", 150, 30, None, threads)
        assert files.batches == batches and QueryFiles.kept(files.as_dict()).batches == batches
        first = QueryStream(files).first()
        assert first is not None and batches * 100 <= first.total_residues <= batches * 150
    former = {name: value for name, value in files.as_dict().items() if name != "batches"}
    assert QueryFiles.kept(former).batches == 4


def test_a_run_goes_on_in_the_middle_of_its_queries(queries: Path, database: str, tmp_path: Path) -> None:
    home = tmp_path / "store.duckdb"
    run = resume(stopped(queries, database, home), home)
    assert run.counts is not None and run.counts[0] == READS
    whole = search("mum", queries, database, store=False)
    assert run.alignments.equals(whole.alignments)
    assert Results(home).show("last")["queries"] == READS


def test_a_run_that_never_had_a_plan_reads_all_its_queries(queries: Path, database: str, tmp_path: Path,
                                                           monkeypatch: pytest.MonkeyPatch) -> None:
    def killed(*_: Any) -> None:
        raise KeyboardInterrupt

    home = tmp_path / "store.duckdb"
    with monkeypatch.context() as patch:
        patch.setattr(RunFile, "begin", killed)
        patch.setattr(RunFile, "discard", killed)
        with pytest.raises(KeyboardInterrupt):
            search("mum", queries, database, batch_residues=1200, results=home)
    known, = Results(home).runs()
    assert known["state"] == "incomplete" and known["queries"] < READS
    with pytest.raises(ResumeError, match="resume it without one"):
        resume(known["id"], home, cluster="local:1")
    assert resume(known["id"], home).alignments.equals(search("mum", queries, database, store=False).alignments)
    assert Results(home).show("last")["queries"] == READS


def test_a_cluster_takes_no_run_in_the_middle_of_its_queries(queries: Path, database: str, tmp_path: Path) -> None:
    run = stopped(queries, database, tmp_path / "store.duckdb")
    with pytest.raises(ResumeError, match="resume it without one"):
        resume(run, tmp_path / "store.duckdb", cluster="local:1")


def test_a_run_from_a_pipe_wants_its_queries_again(queries: Path, database: str, tmp_path: Path,
                                                   monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "store.duckdb"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(queries.read_bytes())))
    run = stopped(Path("-"), database, home)
    with pytest.raises(ResumeError, match="had not read all its queries from standard input; give them again"):
        resume(run, home)
    whole = search("mum", queries, database, store=False)
    assert resume(run, home, queries=queries).alignments.equals(whole.alignments)


@pytest.mark.parametrize("change, message", [
    (lambda text: text.replace(">read10\n", ">other\n"), "its queries have changed"),
    (lambda text: text[: text.index(">read20\n")], "there are fewer queries now"),
])
def test_other_queries_are_refused(queries: Path, database: str, tmp_path: Path, change: Any, message: str) -> None:
    run = stopped(queries, database, tmp_path / "store.duckdb")
    queries.write_text(change(queries.read_text()))
    with pytest.raises(ResumeError, match=message):
        resume(run, tmp_path / "store.duckdb")


@pytest.mark.parametrize("batch", [590, 1200, 10**6])
def test_portions_are_whole_batches(queries: Path, batch: int) -> None:
    stream = QueryStream(QueryFiles.of("nucleotide", [str(queries)], "error", batch, 30, None))
    portions = [stream.first()]
    while (portion := stream.next(Cancellation())) is not None:
        portions.append(portion)
    sizes = [len(portion) for portion in portions]
    assert sum(sizes) == READS and sizes[:-1] == [4 * min(30, batch // 60)] * (len(sizes) - 1)
    assert np.concatenate([portion.ordinals for portion in portions]).tolist() == list(range(READS))
    assert len(sizes) > 1 and not stream.more


def test_some_portions_are_read_ahead(queries: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first one while the caller does something else; behind it two, however long the next one isn't taken."""
    handed: list[int] = []
    read = QueryStream._read

    def counted(self: QueryStream) -> Any:
        for portion, part in read(self):
            handed.append(len(portion or ()))
            yield portion, part

    def settled(count: int) -> bool:
        deadline = time.monotonic() + 10
        while len(handed) < count and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(0.05)
        return len(handed) == count

    monkeypatch.setattr(QueryStream, "_read", counted)
    stream = QueryStream(QueryFiles.of("nucleotide", [str(queries)], "error", 590, 30, None)).begin()
    assert settled(1) and stream.first() is not None and settled(1) and not stream.at_hand
    stream.read_ahead()
    assert settled(1 + AHEAD) and stream.at_hand
    assert stream.next(Cancellation()) is not None and settled(2 + AHEAD)


def test_what_is_wrong_with_queries_is_told_once(queries: Path) -> None:
    queries.write_text(queries.read_text() + ">wrong\nACGT!\n")
    stream = QueryStream(QueryFiles.of("nucleotide", [str(queries)], "error", 590, 30, None)).begin()
    with pytest.raises(InputError, match="'!'"):
        stream.first()
        while stream.next(Cancellation()) is not None:
            pass
    assert stream.next(Cancellation()) is None and not stream.at_hand


def test_the_size_of_files_tells_how_many_queries_there_are(queries: Path, genome: str) -> None:
    batch = SequenceBatch.of(NUCLEOTIDE, [genome])
    stream = QueryStream(QueryFiles.of("nucleotide", [str(queries)], "error", 1200, 30, None))
    assert residues_of(batch, stream) == queries.stat().st_size
    assert residues_of(batch, None) == len(genome)


@pytest.mark.parametrize("pipeline", ["mum", "megablast"])
def test_memory_is_the_same_for_many_queries_as_for_some(pipeline: str, genome: str, database: str, tmp_path: Path
                                                         ) -> None:
    path, peaks = tmp_path / "many.fasta", []
    for count in (READS, MANY, 2 * MANY):
        path.write_text(reads(genome, count))
        tracemalloc.start()
        search(pipeline, path, database, batch_residues=6000, store=False,
               outputs=[Output("6", lambda run: run.write(tmp_path / "out", "6"))])
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[2] < 1.1 * peaks[1]
