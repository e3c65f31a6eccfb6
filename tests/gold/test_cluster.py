"""Every pipeline on clusters of one, two and four workers: the bytes of one process, targets read there or sent."""

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from seqloom import search
from seqloom.core.sequences import ModelBatch
from seqloom.installed import registry

from tests.integration.samples import SAMPLE, globin_model, mitochondria, pieces, proteins
from tests.plugins.profile_hmm import test_nucleotides as nucleotides
from tests.plugins.profile_hmm.models import batch

distributed = pytest.importorskip("distributed", reason="Dask isn't installed: pip install 'seqloom[cluster]'")
pytestmark = pytest.mark.gold
BATCHES, VOLUMES = 3, 6
"""Into which queries and targets are cut, about."""


@pytest.fixture(scope="module", params=[1, 2, 4])
def client(request: Any) -> Iterator[Any]:
    with (distributed.LocalCluster(n_workers=request.param, threads_per_worker=1, host="127.0.0.1",
                                   dashboard_address="127.0.0.1:0", memory_limit=0, silence_logs=50) as cluster,
          distributed.Client(cluster, set_as_default=False) as made):
        yield made


def asked(name: str) -> tuple[Any, Any, dict[str, Any]]:
    """Queries, targets and options of a pipeline that find something."""
    human, orang = mitochondria()
    query, target = (registry().family(registry().pipeline(name).family).query,
                     registry().family(registry().pipeline(name).family).target)
    models = batch(nucleotides.model(30, 1), nucleotides.model(60, 2))
    sequences: Any = nucleotides.targets(*models.models) if name.endswith("-nucleotide") else None
    if "model" in (query, target):
        sequences = sequences or {proteins().names[n]: proteins().text(n) for n in range(252, 268)}
        library = models if name.endswith("-nucleotide") else globin_model()
        return (library, sequences, {}) if query == "model" else (sequences, library, {})
    if name == "exact-protein":
        return [proteins().text(n)[5:30] for n in range(9)], proteins().take(0, 60), {}
    if query == "protein":
        short = name == "blastp-short"
        texts = [proteins().text(n)[:25] if short else proteins().text(n) for n in range(6)]
        return texts, proteins().take(0, 60), {}
    if name in ("exact", "blastn-short"):
        return [orang.text(0)[n * 500 : n * 500 + 25] for n in range(9)], pieces(orang, 1500, 10), {}
    return pieces(human, 700, 9), pieces(orang, 1500, 10), {}


def rows(run: Any) -> list[Any]:
    text = io.StringIO()
    run.write(text)
    return [run.hits.to_pylist(), run.alignments.to_pylist(), text.getvalue()]


def on_disk(targets: Any, folder: Path) -> Path:
    """Targets as a file."""
    path = folder / "targets"
    if isinstance(targets, ModelBatch):
        return SAMPLE / "globins4.hmm"
    named = targets.items() if isinstance(targets, dict) else (
        (targets.names[n], targets.text(n)) for n in range(len(targets)))
    path.write_text("".join(f">{name}\n{text}\n" for name, text in named))
    return path


@pytest.mark.parametrize("sent", [False, True], ids=["read", "sent"])
@pytest.mark.parametrize("name", [pipeline.name for pipeline in registry().pipelines()])
def test_same_bytes(client: Any, name: str, sent: bool, tmp_path: Path) -> None:
    queries, targets, options = asked(name)
    if name == "hmmscan-nucleotide":
        if not sent:
            pytest.skip("no file of models of nucleotides is at hand")
        given = targets
    else:
        given = on_disk(targets, tmp_path)
    wanted = rows(search(name, queries, given, store=False, **options))
    assert len(wanted[0])
    residues = sum(map(len, targets.values())) if isinstance(targets, dict) else targets.total_residues
    cut = {"batch_queries": max(1, len(queries) // BATCHES), "volume_residues": max(1, residues // VOLUMES)}
    client.run(exec, f"import seqloom.cluster.worker as w; w._sees = lambda paths: {not sent}", {})
    assert rows(search(name, queries, given, store=False, cluster=client, **cut, **options)) == wanted
