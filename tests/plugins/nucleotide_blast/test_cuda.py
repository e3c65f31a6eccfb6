"""Nucleotide BLAST on CUDA equals the reference and the CPU: in numba's simulator here, with small tiles."""

import tomllib

import pytest
from seqloom import searches
from seqloom.cli.toml_text import to_toml
from seqloom.core import backends
from seqloom.core.pipeline import Pipeline, compose
from seqloom.installed import registry
from seqloom.plugins.nucleotide_blast.pipelines import DEVICES_FROM

from tests.simulator import simulated

CHECKS = ("megablast", "blastn", "ambiguities", "discontiguous", "chunks", "memory", "pipeline")


@pytest.mark.long
def test_in_the_simulator() -> None:
    done = simulated("-m", "tests.plugins.nucleotide_blast.on_cuda", *CHECKS)  # in one process: to start takes long
    assert done.returncode == 0 and done.stdout.split("\n") == [*(f"{check} passed" for check in CHECKS), ""], (
        done.stdout + done.stderr[-2000:])


def test_devices_are_left_alone_by_small_searches(monkeypatch) -> None:
    monkeypatch.setattr(backends, "cuda_available", lambda: True)
    monkeypatch.setattr(searches, "cuda_available", lambda: True)
    for name in ("blastn", "megablast", "dc-megablast", "blastn-short"):
        pipeline = registry().pipeline(name)
        plan = compose(registry(), pipeline)
        assert {filled.stage.backend for filled in plan.stages} == {"cpu"}
        assert Pipeline.from_dict(pipeline.as_dict()).devices_from == DEVICES_FROM
        assert searches.pays_on_devices(plan, DEVICES_FROM) and not searches.pays_on_devices(plan, DEVICES_FROM - 1)
        assert not searches.pays_on_devices(compose(registry(), pipeline, backend="cpu"), DEVICES_FROM)
    assert not searches.pays_on_devices(compose(registry(), registry().pipeline("mum"), backend="cpu"), DEVICES_FROM)
    assert tomllib.loads(to_toml(registry().pipeline("blastn").as_dict()))["devices_from"] == DEVICES_FROM
