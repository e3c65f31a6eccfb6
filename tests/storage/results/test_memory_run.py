"""Runs that aren't kept: the same results for writers and in SQL as those of a run's file."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from seqloom.core.alphabet import PROTEIN
from seqloom.core.engine.memory import MemorySource
from seqloom.core.ports import SlotStats
from seqloom.core.records import Hits
from seqloom.core.sequences import SequenceBatch
from seqloom.storage.results import memory_run, report
from seqloom.storage.results.memory_run import MemoryRun
from seqloom.storage.results.report import Reporting
from seqloom.storage.results.run_file import RunFile
from seqloom.testing import assert_same_hits, assert_same_records

from .. import toy_runs
from .test_run_file import hits_with_everything

NAMES = [f"t{n}" for n in range(12)]
VIEWS = {"hits": "qnumber, rank", "hsps": "qnumber, rank, number", "targets": "target", "queries": "query",
         "run_slots": "position", "extra_columns": "level, position", "runs": "run",
         "run_databases": "number", "passed": "query, slot"}


def targets() -> MemorySource:
    return MemorySource(SequenceBatch.of(PROTEIN, ["MKV" * (n + 1) for n in range(12)], NAMES), "here.fasta")


def unkept(memory: int | None = None) -> MemoryRun:
    return MemoryRun(toy_runs.PROVENANCE, {"python": lambda: "3"}, toy_runs.queries(), targets(), memory)


def kept(run_id: str | None = None) -> RunFile:
    return RunFile.create(":memory:", {**toy_runs.PROVENANCE, "python": "3"}, toy_runs.queries(),
                          targets().fingerprints(), run_id=run_id)


def reported(report: Reporting, residues: bool = False) -> list[tuple]:
    """What a writer sees of every query, but for the hits."""
    return [(q.number, q.name, q.description, q.accession, q.length, q.targets.numbers.tolist(), q.targets.names,
             q.targets.descriptions, q.targets.lengths.tolist(), q.targets.databases.tolist(),
             q.targets.ordinals.tolist(), None if q.residues is None else q.residues.tolist(),
             None if q.sequences is None else [q.sequences.text(n) for n in range(len(q.sequences))])
            for q in report.queries(residues)]


def hits_of(report: Reporting) -> Hits:
    return Hits.concat([query.hits for query in report.queries()])


@pytest.mark.parametrize("residues", [False, True])
def test_writers_get_what_they_get_from_a_file(residues):
    run, file = unkept(), kept()
    for each in (run, file):
        toy_runs.work(each)
    ours, theirs = run.report(targets(), None), file.report(targets(), None)
    assert reported(ours, residues) == reported(theirs, residues)
    assert_same_hits(hits_of(ours), hits_of(theirs))
    assert_same_hits(hits_of(ours), toy_runs.expected_hits())
    changing = {"id", "finished", "seconds"}
    assert {k: v for k, v in ours.run.items() if k not in changing} == {
        k: v for k, v in theirs.run.items() if k not in changing}
    assert ours.run["state"] == "complete" and ours.run["longest_name"] == 3


def test_tables_are_made_when_they_are_asked_for():
    run = unkept()
    toy_runs.work(run)
    file = kept(run.id)
    toy_runs.work(file)
    for view, order in VIEWS.items():
        query = f"SELECT * FROM {view} ORDER BY {order}"
        query = query.replace("*", "* EXCLUDE (finished, seconds)") if view == "runs" else query
        assert run.connection.execute(query).fetchall() == file.connection.execute(query).fetchall()
    assert_same_hits(hits_of(run.report(None, None)), toy_runs.expected_hits())


def test_the_databases_may_go_before(monkeypatch):
    for room in (memory_run.ROOM, 0):
        monkeypatch.setattr(memory_run, "ROOM", room)
        run = unkept()
        toy_runs.work(run)
        run.release()
        assert (run._source is None) == (room == 0)
        rows = run.connection.execute("SELECT path, sequences, fingerprint FROM run_databases").fetchall()
        assert rows == [("here.fasta", 12, targets().fingerprints()[0]["fingerprint"])]


@pytest.mark.parametrize("commits", range(1, 8))
def test_results_that_outgrow_their_room_become_tables(commits):
    """Whenever it happens, nothing is lost and nothing is there twice."""
    run, stats = unkept(memory=1 << 30), {"seed.toy": SlotStats(0.5, 1, 2, {"words": 3})}
    run.begin(toy_runs.PLAN)
    places = [(b, v) for b in range(toy_runs.BATCHES) for v in range(toy_runs.VOLUMES)]
    for n, (batch, volume) in enumerate(places, 1):
        if n == commits:
            run._room = 0
        run.commit_unit(batch, volume, toy_runs.unit_rows(batch, volume), stats)
        assert (run._tables is not None) == (n >= commits)
        assert run.plan() == toy_runs.PLAN and (batch, volume) in run.done_units()
        if volume == toy_runs.VOLUMES - 1:
            assert len(run.partials(batch)) == toy_runs.VOLUMES
            hits = toy_runs.reduce_rows(run.partials(batch))
            run.commit_batch(batch, hits, toy_runs.info(np.unique(hits.target)), {})
            assert run.done_batches() == set(range(batch + 1))
    run.finish("complete", 2.0, None, {"index.toy": SlotStats(1.0, 3, 3), "seed.toy": SlotStats(99.0)})
    assert_same_hits(hits_of(run.report(targets(), None)), toy_runs.expected_hits())
    rows = run.connection.execute("SELECT seconds, records_in FROM run_slots ORDER BY position").fetchall()
    assert rows == [(1.0, 3), (0.5 * len(places), len(places)), (0.0, 0)]
    rows = run.connection.execute("SELECT state, seconds, id::VARCHAR FROM runs").fetchall()
    assert rows == [("complete", 2.0, run.id)]


@settings(max_examples=25, deadline=None)
@given(hits_with_everything(), st.randoms())
def test_every_type_of_column_is_reported_as_from_a_file(hits, random):
    order = list(range(len(hits)))
    random.shuffle(order)
    shuffled = hits.with_alignments(hits.alignments.take(np.array(order, np.int64)))
    run, file = unkept(), kept()
    for each in (run, file):
        each.begin(toy_runs.PLAN)
        each.commit_batch(0, shuffled, toy_runs.info(np.unique(hits.target)), {})
    if len(hits):
        assert_same_hits(hits_of(run.report(None, None)), hits_of(file.report(None, None)))


@pytest.mark.parametrize("rows", [1, 2, 5])
@pytest.mark.parametrize("make", [unkept, kept])
def test_few_rows_are_read_at_once(make, rows, monkeypatch):
    run = make()
    toy_runs.work(run)
    whole = hits_of(run.report(None, None))
    monkeypatch.setattr(report, "ROWS_AT_ONCE", rows)
    rows *= run.report(None, None).times
    blocks = list(run.report(None, None).blocks())
    numbers = [number for block in blocks for number in block.numbers.tolist()]
    assert numbers == list(range(toy_runs.BATCHES * toy_runs.QUERIES)) and len(blocks) > 1
    assert all(len(block) == 1 or len(block.hits) + len(block.hits.alignments) <= rows for block in blocks)
    assert_same_hits(hits_of(run.report(None, None)), whole)


def test_partial_results_stay_as_they_are():
    run = unkept()
    run.begin(toy_runs.PLAN)
    run.commit_unit(1, 2, toy_runs.unit_rows(1, 2), {})
    assert_same_records(run.partials(1)[0], toy_runs.unit_rows(1, 2))
    assert run.partials(0) == [] and run.done_units() == {(1, 2)} and run.done_batches() == set()
    run.discard()
    assert not run.is_open
