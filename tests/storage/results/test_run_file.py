"""The file of one run: what goes in comes out, whole steps only, and nothing heavy is imported."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from seqloom.core.alphabet import NUCLEOTIDE, PROTEIN
from seqloom.core.engine.memory import MemorySource
from seqloom.core.errors import LockedError, SchemaError, StoreError
from seqloom.core.ports import SlotStats, UnitPlan
from seqloom.core.records import Alignments, Column, Hits, Pairs, Ragged, Seeds
from seqloom.core.sequences import Intervals, ModelBatch, SequenceBatch
from seqloom.storage.duck import arrow
from seqloom.storage.duck.connection import connect
from seqloom.storage.duck.durable import log_of
from seqloom.storage.results import run_file
from seqloom.storage.results.record_bytes import from_bytes, to_bytes
from seqloom.storage.results.report import RunReport
from seqloom.storage.results.run_file import RunFile, new_run_id
from seqloom.testing import assert_same_hits, assert_same_records

from .. import toy_runs


def begin(where=":memory:", **changed) -> RunFile:
    values = {"provenance": toy_runs.PROVENANCE, "queries": toy_runs.queries(), "databases": toy_runs.DATABASES}
    return RunFile.create(where, **{**values, **changed})


def hits_of(run: RunFile) -> Hits:
    return Hits.concat([query.hits for query in RunReport(run.connection, run.id).queries()])


def test_a_run_comes_back_as_it_was_written(tmp_path):
    run = begin(tmp_path)
    toy_runs.work(run)
    assert_same_hits(hits_of(run), toy_runs.expected_hits())
    left = run.connection.execute("SELECT count(*) FROM duckdb_tables() WHERE starts_with(table_name, 'partial')")
    assert left.fetchall() == [(0,)]
    run.close()
    assert {p.name for p in tmp_path.iterdir()} - {f"{run.id}.duckdb.wal"} == {f"{run.id}.done", f"{run.id}.duckdb"}


@pytest.mark.parametrize("place", ["file", "memory"])
def test_partial_results_may_be_more_than_memory_holds(tmp_path, place):
    run = begin(":memory:" if place == "memory" else tmp_path, memory=24 << 20)
    generator = np.random.default_rng(1)
    units = [Pairs({name: generator.integers(0, 1 << 30, 300_000) for name in ("query", "target", "score")})
             for _ in range(16)]
    for volume, records in enumerate(units):
        run.commit_unit(0, volume, records, {})
    for back, records in zip(run.partials(0), units, strict=True):
        assert_same_records(back, records)
    run.commit_batch(0, Hits.empty(), MemorySource(toy_runs.queries()).info(np.empty(0, np.int64)), {})
    assert run.partials(0) == [] and run.done_batches() == {0}
    run.finish("complete")
    run.close()


def test_reopened_run_knows_where_it_was(tmp_path):
    run = begin(tmp_path)
    run.begin(toy_runs.PLAN)
    run.commit_unit(0, 1, toy_runs.unit_rows(0, 1), {"seed.toy": SlotStats(1.0, 2, 3, {"words": 4})})
    run.close()
    again = RunFile.open(run.path)
    assert again.id == run.id and not again.done
    assert again.plan() == toy_runs.PLAN
    assert again.done_units() == {(0, 1)} and again.done_batches() == set()
    assert_same_records(again.partials(0)[0], toy_runs.unit_rows(0, 1))
    assert again.partials(1) == []
    assert again.provenance == toy_runs.PROVENANCE
    assert again.databases() == [{**toy_runs.DATABASES[0], "first_target": 0}]
    toy_runs.work(again)
    assert_same_hits(hits_of(again), toy_runs.expected_hits())
    rows = again.connection.execute("SELECT slot, seconds, records_in, records_out, counters FROM run_slots "
                                    "ORDER BY position").fetchall()
    units = toy_runs.BATCHES * toy_runs.VOLUMES - 1
    assert rows[1] == ("seed.toy", 1.0 + 0.5 * units, 2 + units, 3 + 2 * units, f'{{"words": {4 + 3 * units}}}')
    again.close()


def test_new_run_has_no_plan():
    run = begin()
    assert run.plan() is None and run.done_units() == set() and run.number == 0
    run.begin(UnitPlan((), ()))
    assert run.plan() == UnitPlan((), ())


def test_statistics_of_index_slots_come_with_the_end():
    run = begin()
    run.begin(toy_runs.PLAN)
    run.finish("incomplete", 1.0, "stopped", {"index.toy": SlotStats(2.0, 1, 1), "seed.toy": SlotStats(9.0)})
    run.finish("complete", 0.5, None, {"index.toy": SlotStats(1.0, 1, 1)})
    assert run.connection.execute("SELECT seconds, records_in FROM run_slots ORDER BY position").fetchall() == [
        (3.0, 2), (0.0, 0), (0.0, 0)]
    assert run.connection.execute("SELECT state, seconds, error FROM runs").fetchall() == [("complete", 1.5, None)]


def test_a_step_that_fails_leaves_nothing():
    run = begin()
    run.begin(toy_runs.PLAN)
    with pytest.raises(StoreError, match=r"slot 'seed\.other' is not in the plan"):
        run.commit_unit(0, 0, toy_runs.unit_rows(0, 0), {"seed.other": SlotStats()})
    assert run.done_units() == set() and run.partials(0) == []
    run.commit_unit(0, 0, toy_runs.unit_rows(0, 0), {"seed.toy": SlotStats(1.0)})
    hits = toy_runs.reduce_rows(run.partials(0))
    with pytest.raises(StoreError):
        run.commit_batch(0, hits, toy_runs.info(np.unique(hits.target)), {"seed.other": SlotStats()})
    assert run.done_batches() == set() and len(run.partials(0)) == 1
    assert run.connection.execute("SELECT count(*) FROM hit").fetchall() == [(0,)]
    assert "accuracy" not in [c[0] for c in run.connection.execute("SELECT * FROM hsps LIMIT 0").description]


def test_batches_that_are_done_soon_after_one_another_are_committed_together(tmp_path, monkeypatch):
    monkeypatch.setattr(run_file, "TOGETHER", 1e9)
    run = begin(tmp_path)
    run.begin(toy_runs.PLAN)
    empty = MemorySource(toy_runs.queries()).info(np.empty(0, np.int64))
    run.commit_unit(0, 0, toy_runs.unit_rows(0, 0), {"seed.toy": SlotStats(1.0)})  # with the plan
    run.commit_batch(0, Hits.empty(), empty, {"seed.toy": SlotStats(1.0)})
    assert run.done_batches() == {0}
    with pytest.raises(StoreError, match="not in the plan"):
        run.commit_batch(1, Hits.empty(), empty, {"seed.other": SlotStats()})
    assert run.done_batches() == set() and run.done_units() == {(0, 0)} and run.plan() == toy_runs.PLAN
    run.commit_batch(0, Hits.empty(), empty, {"seed.toy": SlotStats(1.0)})
    before = log_size(run)
    run.finish("incomplete")
    assert log_size(run) > before
    run.commit_batch(1, Hits.empty(), empty, {"seed.toy": SlotStats(1.0)})
    run.close()
    again = RunFile.open(run.path)
    assert again.done_batches() == {0, 1}
    assert again.connection.execute("SELECT seconds FROM run_slots WHERE slot = 'seed.toy'").fetchall() == [(3.0,)]
    again.close()


def log_size(run: RunFile) -> int:
    return log_of(run.path).stat().st_size


def test_provenance_is_in_columns():
    run = begin()
    row = run.connection.execute(
        "SELECT id::VARCHAR, state, pipeline, family, command, version, backend, threads, query_type, queries, "
        "letters, sequences, options->>'evalue', started::VARCHAR FROM runs").fetchall()[0]
    assert row == (run.id, "incomplete", "toy", "toy", "seqloom toy", "1.0", "reference", 1, "protein", 6,
                   1200, 12, "10.0", "2026-01-02 03:04:05")


def test_a_target_of_several_batches_is_there_once():
    run = begin()
    toy_runs.work(run)
    rows = run.connection.execute("SELECT target, name FROM targets ORDER BY target").fetchall()
    assert rows == [(n, f"t{n}") for n in range(12)]


def test_residues_and_the_longest_name_come_from_the_databases():
    run = begin()
    toy_runs.work(run)
    with pytest.raises(StoreError, match="not there any more"):
        next(RunReport(run.connection, run.id).queries(residues=True))
    names = [f"t{n}" for n in range(11)] + ["a_long_name"]
    source = MemorySource(SequenceBatch.of(PROTEIN, ["MKV" * (n + 1) for n in range(12)], names))
    report = RunReport(run.connection, run.id, source)
    assert report.run["longest_name"] == report.run.get("longest_name") == 11
    assert report.run["pipeline"] == "toy" and "longest_name" not in RunReport(run.connection, run.id).run
    for query in report.queries(residues=True):
        assert PROTEIN.decode(query.residues) == toy_runs.queries().text(query.number).upper()
        for number in query.hits.target.tolist():
            assert PROTEIN.decode(query.sequences.by_ordinal(number)) == "MKV" * (number + 1)
        assert query.targets.numbers.tolist() == sorted(query.hits.target.tolist())


def test_residues_of_any_target_are_read_a_few_at_a_time(monkeypatch):
    run = begin()
    toy_runs.work(run)
    monkeypatch.setattr("seqloom.storage.results.report.RESIDUES_AT_ONCE", 12)
    source = MemorySource(SequenceBatch.of(PROTEIN, ["MKV" * (n + 1) for n in range(12)]))
    report, reads = RunReport(run.connection, run.id, source), []
    monkeypatch.setattr(source, "fetch", lambda numbers: reads.append(numbers.tolist()) or MemorySource.fetch(
        source, numbers))
    for number in (0, 11, 1, 11, 3, 2, 10):
        assert PROTEIN.decode(report.target(number)) == "MKV" * (number + 1)
    assert reads == [[0, 1], [11], [3], [2], [10]]
    with pytest.raises(StoreError, match="not there any more"):
        RunReport(run.connection, run.id).target(0)


def test_only_one_process_can_have_a_run(tmp_path):
    run = begin(tmp_path)
    code = f"from seqloom.storage.results.run_file import RunFile; RunFile.open({str(run.path)!r})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "LockedError" in done.stderr
    run.close()


def test_discarded_run_leaves_nothing(tmp_path):
    run = begin(tmp_path)
    run.begin(toy_runs.PLAN)
    run.discard()
    assert list(tmp_path.iterdir()) == []


def test_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match="--no-store"):
        begin(tmp_path / "file" / "runs")


def test_file_of_something_else(tmp_path):
    connect(tmp_path / "a.duckdb", False, "results", create=True).close()
    with pytest.raises(SchemaError, match="not the file of one run"):
        RunFile.open(tmp_path / "a.duckdb")


def test_errors_of_locking_are_ours(tmp_path):
    run = begin(tmp_path)
    with pytest.raises(LockedError):
        connect(run.path, True, "results")
    run.close()


def test_queries_come_back_with_lower_case():
    batch = toy_runs.queries()
    again = begin().queries(None)
    assert [again.text(n) for n in range(len(again))] == [batch.text(n) for n in range(len(batch))]
    assert again.alphabet is PROTEIN and list(again.names) == list(batch.names)
    assert again.ordinals.tolist() == batch.ordinals.tolist()
    nucleotides = SequenceBatch.of(NUCLEOTIDE, ["acgTN", "", "ACGT"])
    again = begin(queries=nucleotides).queries(None)
    assert again.alphabet is NUCLEOTIDE and again.text(0) == "acgTN" and again.lengths.tolist() == [5, 0, 4]


def test_many_queries():
    batch = SequenceBatch.of(PROTEIN, ["MKVl", "", "mKVll"] * 7_000)
    again = begin(queries=batch).queries(None)
    assert again.residues.tolist() == batch.residues.tolist() and again.lower.rows() == batch.lower.rows()


def test_models_are_kept_as_text_and_made_again():
    class Reader:
        gives = "models"

        def sniff(self, head):
            return head.startswith(b"MODEL")

        def read(self, stream, where, alphabet, on_bad, residues):
            words = stream.read().decode().split()[1::2]
            yield ModelBatch(PROTEIN, words, np.array([len(w) for w in words]), np.arange(len(words)), words,
                             [""] * len(words), [""] * len(words), [f"MODEL {w}\n" for w in words])

    class Registry:
        def readers(self):
            return [Reader]

    models = next(Reader().read(__import__("io").BytesIO(b"MODEL one\nMODEL three\n"), "", None, None, 0))
    again = begin(queries=models).queries(Registry())
    assert again.models == ["one", "three"] and list(again.sources) == models.sources


def test_identifiers_sort_by_time():
    ids = [new_run_id() for _ in range(50)]
    assert len(set(ids)) == 50 and all(i[14] == "7" and i[19] in "89ab" for i in ids)
    assert [i[:13] for i in ids] == sorted(i[:13] for i in ids)


def test_search_path_imports_nothing_heavy(tmp_path):
    code = """if True:
        import sys
        from pathlib import Path
        from tests.storage import toy_runs
        from seqloom.storage.results.store import ResultStore
        toy_runs.process(Path(sys.argv[1]), resume=False)
        heavy = {"pandas", "pyarrow", "polars", "sqlalchemy", "alembic", "numba"} & set(sys.modules)
        assert not heavy, heavy
    """
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "store.duckdb")], check=True,
                   cwd=toy_runs.Path(__file__).parents[3])


TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=6)
REAL = st.floats(allow_nan=False, allow_infinity=True)


@st.composite
def hits_with_everything(draw):
    """Hits of two queries with extra columns of every type."""
    extra = [Column("a_byte", "i1"), Column("an_int", "i4", nullable=True), Column("a_long", "i8"),
             Column("a_float", "f4", nullable=True), Column("a_double", "f8"), Column("a_flag", "bool"),
             Column("a_text", "str", nullable=True), Column("rank", "i4"), Column("a_path", "path", nullable=True),
             Column("score", "f4", "bits")]
    count = draw(st.integers(0, 6))

    def column(values):
        return draw(st.lists(values, min_size=count, max_size=count))

    single = st.floats(width=32, allow_nan=False)
    small = st.integers(-2**31, 2**31 - 1).filter(lambda n: n != -1)
    keys = sorted(draw(st.sets(st.tuples(st.integers(0, 1), st.integers(0, 5)), min_size=count, max_size=count)))
    data = {"query": [k[0] for k in keys], "target": [k[1] for k in keys], "score": column(single),
            "a_byte": column(st.integers(-128, 127)), "an_int": column(small | st.just(-1)),
            "a_long": column(st.integers(-2**63, 2**63 - 1)), "a_float": column(single | st.just(np.nan)),
            "a_double": column(REAL), "a_flag": column(st.booleans()), "a_text": column(st.none() | TEXT),
            "rank": column(small), "a_path": Ragged.of(column(st.lists(st.integers(0, 2**32 - 1), max_size=3)))}
    hits = Hits({**data, "evalue": column(REAL | st.just(np.nan))}, extra)
    zeros = np.zeros(count, np.int32)
    places = dict.fromkeys((c.name for c in Alignments.columns if c.name.endswith(("_start", "_end", "_frame"))), zeros)
    children = Alignments({**data, **places, "positives": column(small),
                           "path": Ragged.of(column(st.lists(st.integers(0, 2**32 - 1), max_size=3)))}, extra)
    return hits.with_alignments(children)


@settings(max_examples=25, deadline=None)
@given(hits_with_everything(), st.sampled_from([0, arrow.FEW]))
def test_every_type_of_column_survives(hits, few):
    run = begin()
    run.begin(toy_runs.PLAN)
    run.commit_unit(0, 0, hits, {})
    assert_same_hits(run.partials(0)[0], hits)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(arrow, "FEW", few)
        run.commit_batch(0, hits, toy_runs.info(np.unique(hits.target)), {})
    if len(hits):
        assert_same_hits(hits_of(run), hits)
    run.close()


@pytest.mark.parametrize("records", [
    Pairs.empty(), Seeds.empty([Column("x", "str")]), Hits.empty(), toy_runs.unit_rows(1, 2),
    Pairs({"query": [1], "target": [2**40], "score": [0.5]}, [Column("score", "f4")]), toy_runs.expected_hits()])
def test_records_as_bytes(records):
    again = from_bytes(to_bytes(records))
    (assert_same_hits if isinstance(records, Hits) else assert_same_records)(again, records)


def test_intervals_of_queries_without_lower_case():
    batch = SequenceBatch.of(PROTEIN, ["MKV"])
    assert begin(queries=batch).queries(None).lower.rows() == Intervals.empty().rows()
