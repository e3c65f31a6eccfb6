"""A cluster of a worker with a (simulated) device and one without: each with its own back end, and the same rows."""

from dataclasses import replace
from pathlib import Path

import pytest
from seqloom import search
from seqloom.installed import registry
from seqloom.queries import load_queries
from seqloom.results import Results

from tests.cluster_devices import devices_and_processors, members
from tests.integration.samples import proteins

pytest.importorskip("distributed", reason="Dask isn't installed: pip install 'seqloom[cluster]'")
pytest.importorskip("numba_cuda", reason="numba-cuda, which brings the simulator, is not installed")
pytestmark = pytest.mark.gold


@pytest.mark.parametrize("name", ["sw", "blastp"])
def test_a_device_takes_units_of_cuda_one_at_a_time(tmp_path: Path, name: str) -> None:
    queries, targets = ({proteins().names[n]: proteins().text(n)[:40] for n in range(count)} for count in (3, 12))
    given = load_queries("protein", targets, "error", None)
    pipeline = replace(registry().pipeline(name), devices_from=1)
    with devices_and_processors([{"NUMBA_ENABLE_CUDASIM": "1"}]) as client, members() as seen:
        found = search(pipeline, queries, given, results=tmp_path / "r.duckdb", cluster=client, batch_queries=1,
                       volume_residues=160)
    alone = search(name, queries, given, store=False)
    assert len(alone) and found.hits.to_pylist() == alone.hits.to_pylist()
    assert found.alignments.to_pylist() == alone.alignments.to_pylist()
    accounts = Results(tmp_path / "r.duckdb").show("last")["provenance"]["workers"]
    assert sorted((account["device"], account["units"] > 0) for account in accounts) == [("cpu", True), ("cuda", True)]
    assert {worker.cuda: worker.flight for worker in seen.values()} == {True: 1, False: 2}
