"""The back end "auto" leaves CUDA devices alone where a search is done before one has started."""

import tomllib
from dataclasses import replace

import pytest
from seqloom import searches
from seqloom.cli.toml_text import to_toml
from seqloom.core import backends
from seqloom.core.pipeline import Pipeline, compose
from seqloom.installed import registry


@pytest.fixture(autouse=True)
def device(monkeypatch) -> None:
    monkeypatch.setattr(backends, "cuda_available", lambda: True)


@pytest.mark.parametrize("name", ["blastn", "megablast", "dc-megablast", "blastn-short", "blastp", "blastp-short",
                                  "blastp-fast", "hmmsearch", "hmmsearch-nucleotide", "phmmer", "sw", "sw-nucleotide"])
def test_small_searches_leave_devices_alone(name) -> None:
    pipeline = registry().pipeline(name)
    least, plan = pipeline.devices_from, compose(registry(), pipeline)
    assert {filled.stage.backend for filled in plan.stages} == {"cpu"}
    assert searches.pays_on_devices(plan, least) and not searches.pays_on_devices(plan, least - 1)
    assert not searches.pays_on_devices(compose(registry(), pipeline, backend="cpu"), least)
    assert Pipeline.from_dict(pipeline.as_dict()).devices_from == least
    assert tomllib.loads(to_toml(pipeline.as_dict()))["devices_from"] == least


def test_large_searches_take_those_of_a_clusters_workers() -> None:
    plan = compose(registry(), registry().pipeline("blastp"), {"evalue": 1e-3})
    taken = searches.taking_devices(plan)
    assert "cuda" in {filled.stage.backend for filled in taken.stages}
    assert taken.options == plan.options and taken.backend == "auto"
    assert taken.pipeline == replace(plan.pipeline, devices_from=0)
    again = compose(registry(), Pipeline.from_dict(taken.pipeline.as_dict()), backend="auto")  # as a worker does
    assert [filled.stage.backend for filled in again.stages] == [filled.stage.backend for filled in taken.stages]


def test_others_take_them_always() -> None:
    mum = compose(registry(), registry().pipeline("mum"), backend="cpu")
    assert not searches.pays_on_devices(mum, 1 << 60)
