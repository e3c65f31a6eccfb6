"""A cluster of a worker with a (simulated) device and one without: each with its own back end, and the same rows."""

from pathlib import Path

import pytest
from seqloom import search
from seqloom.cluster import executor
from seqloom.queries import load_queries
from seqloom.results import Results

from tests.integration.samples import proteins

distributed = pytest.importorskip("distributed", reason="Dask isn't installed: pip install 'seqloom[cluster]'")
pytest.importorskip("numba_cuda", reason="numba-cuda, which brings the simulator, is not installed")
pytestmark = pytest.mark.gold


def test_a_device_takes_units_of_cuda_one_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    queries, targets = ({proteins().names[n]: proteins().text(n)[:40] for n in range(count)} for count in (3, 12))
    given = load_queries("protein", targets, "error", None)
    seen, leave = {}, executor.ClusterExecutor.__exit__

    def leaving(made: executor.ClusterExecutor, *error: object) -> None:
        seen.update({worker.cuda: worker for worker in made._session.workers.values()})
        leave(made, *error)

    monkeypatch.setattr(executor.ClusterExecutor, "__exit__", leaving)
    workers = {name: {"cls": distributed.Nanny, "options": {"nthreads": 2, "host": "127.0.0.1", "env": env}}
               for name, env in (("with", {"NUMBA_ENABLE_CUDASIM": "1"}), ("without", {"NUMBA_ENABLE_CUDASIM": "0"}))}
    scheduler = {"cls": distributed.Scheduler, "options": {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"}}
    with (distributed.SpecCluster(workers=workers, scheduler=scheduler, silence_logs=50) as cluster,
          distributed.Client(cluster, set_as_default=False) as client):
        client.wait_for_workers(2, timeout=60)
        found = search("sw", queries, given, results=tmp_path / "r.duckdb", cluster=client, batch_queries=1,
                       volume_residues=160)
    alone = search("sw", queries, given, store=False)
    assert len(alone) and found.hits.to_pylist() == alone.hits.to_pylist()
    assert found.alignments.to_pylist() == alone.alignments.to_pylist()
    accounts = Results(tmp_path / "r.duckdb").show("last")["provenance"]["workers"]
    assert sorted((account["device"], account["units"] > 0) for account in accounts) == [("cpu", True), ("cuda", True)]
    assert seen[True].flight == 1 and seen[False].flight == 2
