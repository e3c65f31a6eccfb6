"""Searches on a cluster of two worker processes: the rows of one process, whatever is sent and whoever is lost."""

import io
import os
import signal
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import seqloom
from pyarrow import parquet
from seqloom import search
from seqloom.cluster import executor, messages, payloads, session, versions
from seqloom.core.alphabet import NUCLEOTIDE, PROTEIN
from seqloom.core.engine.memory import MemorySource
from seqloom.core.errors import Cancelled, ClusterError, OptionError, UsageError
from seqloom.core.ports import SlotStats, Trace, Unit, UnitResult
from seqloom.core.progress import Progress
from seqloom.core.records import Alignments
from seqloom.core.sequences import SequenceBatch
from seqloom.installed import registry
from seqloom.models import ModelDatabase
from seqloom.results import Results
from seqloom.searches import resume
from seqloom.testing import assert_same_records

from tests.integration.samples import SAMPLE, globin_model, mitochondria, pieces, proteins
from tests.stopping import StopAtPart

distributed = pytest.importorskip("distributed", reason="Dask isn't installed: pip install 'seqloom[cluster]'")
SMALL = {"batch_queries": 3, "volume_residues": 3000}


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    with (distributed.LocalCluster(n_workers=2, threads_per_worker=1, host="127.0.0.1",
                                   dashboard_address="127.0.0.1:0", memory_limit=0, silence_logs=50) as cluster,
          distributed.Client(cluster, set_as_default=False) as made):
        yield made


def asked(name: str) -> tuple[Any, Any]:
    human, orang = mitochondria()
    if name in ("blastn", "megablast", "mum", "exact"):
        return pieces(human, 700, 9), pieces(orang, 1500, 10)
    if name == "hmmsearch":
        return globin_model(), proteins().take(240, 262)
    return proteins().take(0, 9), proteins().take(0, 60)


def globins() -> dict[str, str]:
    """Proteins of which some are globins."""
    return {proteins().names[n]: proteins().text(n) for n in range(252, 262)}


def rows(run: Any) -> list[Any]:
    text = io.StringIO()
    run.write(text)
    return [run.hits.to_pylist(), run.alignments.to_pylist(), text.getvalue()]


@pytest.mark.parametrize("name", ["blastp", "blastn", "sw", "mum", "exact", "hmmsearch"])
def test_same_rows_where_targets_are_sent(client: Any, name: str) -> None:
    queries, targets = asked(name)
    wanted = rows(search(name, queries, targets, store=False))
    found = search(name, queries, targets, store=False, cluster=client, **SMALL)
    assert rows(found) == wanted and (len(wanted[0]) or name == "exact")


@pytest.mark.parametrize("name,queries,targets", [
    ("blastp", "query.fasta", "proteins.fasta"), ("hmmscan", "proteins.fasta", "globins4.hmm"),
    ("blastn", "mito_human.fasta", "mito_orang.fasta")])
def test_same_rows_where_workers_read_the_files(client: Any, name: str, queries: str, targets: str) -> None:
    options = {"evalue": 1e-3} if name == "blastn" else {}
    given = globins() if name == "hmmscan" else SAMPLE / queries
    wanted = rows(search(name, given, SAMPLE / targets, store=False, **options))
    assert len(wanted[0])
    assert rows(search(name, given, SAMPLE / targets, store=False, cluster=client, **SMALL, **options)) == wanted


def test_what_workers_do_not_see_is_sent(client: Any, tmp_path: Path) -> None:
    seqloom.Database.create(tmp_path / "t.duckdb", SAMPLE / "proteins.fasta")
    given = {"target_ids": proteins().names[5:40], "store": False, **SMALL}
    wanted = rows(search("blastp", proteins().take(0, 6), tmp_path / "t.duckdb", **given))
    there = "import seqloom.cluster.worker as w; w.sees, w._sees = w._sees, lambda paths: False"
    client.run(exec, there, {})
    try:
        assert rows(search("blastp", proteins().take(0, 6), tmp_path / "t.duckdb", cluster=client, **given)) == wanted
        models, scanned = SAMPLE / "globins4.hmm", globins()
        with ModelDatabase.create(tmp_path / "m.duckdb", models):
            pass
        for library in (models, tmp_path / "m.duckdb"):
            wanted = rows(search("hmmscan", scanned, library, store=False))
            assert len(wanted[0])
            assert rows(search("hmmscan", scanned, library, store=False, cluster=client, **SMALL)) == wanted
    finally:
        client.run(exec, "import seqloom.cluster.worker as w; w._sees = w.sees", {})


@pytest.mark.parametrize("sees", [True, False])
def test_all_scores_come_from_workers(client: Any, tmp_path: Path, sees: bool) -> None:
    queries, tables = proteins().take(0, 3), []
    targets = SAMPLE / "proteins.fasta" if sees else proteins().take(0, 60)
    for name, where in (("alone", None), ("spread", client)):
        file = tmp_path / f"{name}.parquet"
        found = search("sw", queries, targets, store=False, cluster=where, all_scores=str(file),
                       target_ids=proteins().names[:20], batch_queries=2, volume_residues=4000)
        tables.append(parquet.read_table(file).to_pylist())
        assert len(found) and not (tmp_path / f"{name}.parquet.parts").exists()
    assert tables[0] == tables[1] and len(tables[0]) == 3 * 20


def test_a_file_that_nobody_asked_for_is_not_written(tmp_path: Path) -> None:
    made = executor.ClusterExecutor.__new__(executor.ClusterExecutor)
    made._parts = {"seed.scores": tmp_path / "parts"}
    (tmp_path / "parts").mkdir()
    made._keep_parts({("seed.scores", "a"): b"1"})
    for slot, name in (("seed.scores", "../b"), ("seed.scores", "/tmp/b"), ("seed.scores", ".."), ("seed.other", "b")):
        with pytest.raises(ClusterError, match="a worker sent a file that nobody asked for"):
            made._keep_parts({(slot, name): b"2"})
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["a"]


def test_memory_holds_for_each_worker(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    (queries, targets), seen, enter = asked("blastp"), [], session.ClusterExecutor.__enter__
    monkeypatch.setattr(session.ClusterExecutor, "__enter__",
                        lambda executor: (seen.extend(executor._session.workers.values()), enter(executor))[1])
    search("blastp", queries, targets, store=False, cluster=client, memory="4G")
    assert len(seen) == 2 and all(0 < worker.memory < 4 << 30 for worker in seen)


def test_what_each_worker_did_is_kept(client: Any, tmp_path: Path) -> None:
    search("blastp", SAMPLE / "query.fasta", SAMPLE / "proteins.fasta", results=tmp_path / "r.duckdb", cluster=client,
           volume_residues=8000)
    workers = Results(tmp_path / "r.duckdb").show("last")["provenance"]["workers"]
    assert len(workers) == 2 and sum(worker["units"] for worker in workers) == 10
    assert all(worker["sent"] and worker["received"] and worker["seconds"] and not worker["failed"]
               for worker in workers if worker["units"])


def test_a_pick_and_a_trace(client: Any, tmp_path: Path) -> None:
    names = proteins().names[:30]
    runs = [search("blastp", proteins().take(0, 4), SAMPLE / "proteins.fasta", store=False, target_ids=names,
                   explain=names[:4], cluster=where, **SMALL) for where in (None, client)]
    assert rows(runs[0]) == rows(runs[1]) and runs[0].explanation() == runs[1].explanation()
    told = [[(slot["slot"], slot["records_out"]) for slot in run.slots.to_pylist() if slot["scope"] == "unit"
             and not slot["slot"].startswith("index.")] for run in runs]
    assert told[0] == told[1]


def test_progress_counts_every_cell_once(client: Any) -> None:
    progress, (queries, targets) = Progress(), asked("blastp")
    search("blastp", queries, targets, store=False, cluster=client, progress=progress, **SMALL)
    assert progress.done == progress.total == queries.total_residues * targets.total_residues
    assert progress.parts == progress.parts_kept > 10


def test_a_run_that_was_stopped_goes_on_with_or_without_the_cluster(client: Any, tmp_path: Path) -> None:
    queries, targets = proteins().take(0, 40), SAMPLE / "proteins.fasta"
    given = {"target_ids": proteins().names[:40], "evalue": 1e-3, "batch_queries": 14, "volume_residues": 5000}
    wanted = rows(search("blastp", queries, targets, store=False, **given))
    for number, (first, second) in enumerate([(client, None), (None, client)]):
        store = tmp_path / f"{number}.duckdb"
        with pytest.raises(Cancelled, match="parts of the work are kept: seqloom runs resume"):
            search("blastp", queries, targets, results=store, cluster=first, progress=StopAtPart(3), **given)
        assert rows(resume("last", store, cluster=second)) == wanted


def test_a_lost_worker_s_units_are_done_again(client: Any) -> None:
    queries, targets = asked("blastp")
    wanted = rows(search("blastp", queries, targets, store=False))

    class Killing(Progress):
        def add(self, amount: int) -> None:
            super().add(amount)
            if self.done > self.total // 4 and pids:
                os.kill(pids.pop(), signal.SIGKILL)

    pids = [min(client.run(os.getpid).values())]
    assert rows(search("blastp", queries, targets, store=False, cluster=client, progress=Killing(), **SMALL)) == wanted
    assert not pids


def test_a_unit_that_fails_three_times_fails_the_run(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    queries, targets = asked("blastp")
    monkeypatch.setattr(payloads.Payloads, "_bytes", lambda *given: b"no message")
    with pytest.raises(ClusterError, match=r"a part of the work failed 3 times, at last since worker tcp://\S+: "):
        search("blastp", queries, targets, store=False, cluster=client, **SMALL)


def test_workers_with_other_versions_or_databases_are_refused(client: Any, monkeypatch: pytest.MonkeyPatch,
                                                              tmp_path: Path) -> None:
    path = tmp_path / "t.fasta"
    path.write_text((SAMPLE / "proteins.fasta").read_text())
    with monkeypatch.context() as patch:
        patch.setattr(session, "identity", lambda: {**versions.identity(), "numpy": "1.0"})
        with pytest.raises(ClusterError, match=r"worker \S+ can't take part: it runs numpy 2\S+ instead of 1.0"):
            search("blastp", SAMPLE / "query.fasta", path, store=False, cluster=client)
    fingerprints = MemorySource.fingerprints
    monkeypatch.setattr(MemorySource, "fingerprints",
                        lambda self: [{**base, "fingerprint": "other"} for base in fingerprints(self)])
    with pytest.raises(ClusterError, match=r"t.fasta is another database there"):
        search("blastp", SAMPLE / "query.fasta", path, results=tmp_path / "r.duckdb", cluster=client)
    assert [found.name for found in tmp_path.iterdir()] == ["t.fasta"], "nothing was begun"


def test_what_is_no_cluster_is_refused(tmp_path: Path) -> None:
    query = SAMPLE / "query.fasta"
    for text in ("nonsense", "local:0", "local:5000", "local:x", str(tmp_path / "none.json")):
        with pytest.raises(UsageError, match="--cluster"):
            search("blastp", query, query, store=False, cluster=text)


def test_nobody_at_an_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DASK_SEQLOOM__CONNECT", "1")
    import dask.config

    query = SAMPLE / "query.fasta"
    with (dask.config.set({"seqloom.connect": 1}),
          pytest.raises(ClusterError, match=r"no scheduler of Dask answers at tcp://127.0.0.1:1: ")):
        search("blastp", query, query, store=False, cluster="tcp://127.0.0.1:1")


def test_a_scheduler_that_is_lost_ends_the_run_with_what_is_kept(tmp_path: Path) -> None:
    """The scheduler of this test runs in a thread of the test; it closes while units are under way."""
    cluster = distributed.LocalCluster(n_workers=1, threads_per_worker=1, host="127.0.0.1",
                                       dashboard_address="127.0.0.1:0", processes=False, protocol="tcp",
                                       memory_limit=0, silence_logs=50)
    client = distributed.Client(cluster.scheduler_address, set_as_default=False, timeout=1)
    ending: list[threading.Thread] = []

    class Closing(StopAtPart):
        def __setattr__(self, name: str, value: Any) -> None:
            object.__setattr__(self, name, value)
            if name == "_kept" and value == 3 and not ending:
                ending.append(threading.Thread(target=cluster.close))
                ending[0].start()

    store, given = tmp_path / "r.duckdb", {"batch_queries": 10, "volume_residues": 8000, "evalue": 1e-20}
    path, queries = SAMPLE / "proteins.fasta", proteins().take(0, 40)
    since = time.monotonic()
    with pytest.raises(ClusterError, match=r"scheduler is lost.*parts of the work are kept: seqloom runs resume"):
        search("blastp", queries, path, results=store, cluster=client, progress=Closing(10**9), **given)
    assert time.monotonic() - since < 60
    ending[0].join()
    client.close()
    assert len(resume("last", store)) >= 40


# ---- messages


def test_batches_arrive_as_they_were_sent() -> None:
    batch = replace(SequenceBatch.of(PROTEIN, ["ACDxyEF", "", "WWw"], ["a", "b", "ç"], first=5),
                    descriptions=["one", "", "three"])
    for names in (True, False):
        there = messages.to_batch(messages.from_batch(batch, names), registry())
        assert [there.text(n) for n in range(3)] == [batch.text(n) for n in range(3)]
        assert there.ordinals.tolist() == [5, 6, 7] and there.alphabet is PROTEIN
        assert list(there.names) == (["a", "b", "ç"] if names else [])
        assert there.residues.flags.writeable, "kernels are compiled for arrays that can be written to"
    models = globin_model()
    again = messages.to_batch(messages.from_batch(models), registry())
    assert again.names == models.names and again.lengths.tolist() == models.lengths.tolist()
    assert messages.to_batch(messages.from_batch(SequenceBatch.of(NUCLEOTIDE, [])), registry()).alphabet is NUCLEOTIDE


def test_results_arrive_as_they_were_sent() -> None:
    records = Alignments({name: np.arange(3) for name in (
        "query", "target", "score", "query_start", "query_end", "target_start", "target_end", "query_frame",
        "target_frame")})
    stats = {"seed.words": SlotStats(0.5, 1, 2, {"words": 3}, {7: 8})}
    trace = Trace({(0, 4): ["seed.words"]}, {(0, 5): "score.evalue"})
    files = {("seed.words", "a"): b"xy"}
    data = messages.from_result(UnitResult(Unit(1, 2, 3), records, stats), {}, trace, files, seconds=1.5)
    facts, arrays = messages.unpacked(data)
    result, way = messages.to_result(Unit(1, 2, 3), facts, arrays["records"])
    assert_same_records(result.records, records)
    assert (result.stats, way, facts["seconds"]) == (stats, trace, 1.5)
    assert messages.to_files(facts, arrays) == files


def test_programs_are_compared_by_versions_and_code() -> None:
    ours = versions.identity()
    assert versions.differences(ours, ours) == "" and ours["code"] == versions.code()
    assert versions.differences({**ours, "seqloom": "9"}, ours) == f"seqloom 9 instead of {ours['seqloom']}"
    assert versions.differences({**ours, "code": "x"}, ours) == f"other code of seqloom {ours['seqloom']}"
    assert "plugin zebra 1 instead of none" in versions.differences({**ours, "plugin zebra": "1"}, ours)


def test_an_unusable_option_is_told_before_a_cluster_is_looked_for() -> None:
    with pytest.raises(OptionError):
        search("blastp", "A", SAMPLE / "query.fasta", store=False, cluster="local:2", threads=0)
