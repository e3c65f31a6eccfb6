"""Pipelines as TOML files: what is shown can be run again, whatever its options are."""

from pathlib import Path

import pytest
from seqloom.core.pipeline import Pipeline, compose
from seqloom.installed import registry


@pytest.mark.parametrize("name", [pipeline.name for pipeline in registry().pipelines()])
def test_what_is_shown_is_the_pipeline(name: str, seqloom, tmp_path: Path) -> None:
    (tmp_path / "shown.toml").write_text(seqloom("pipelines", "show", name, "--toml").out)
    plans = [compose(registry(), pipeline, {}, "reference") for pipeline in (
        registry().pipeline(name), Pipeline.from_toml(tmp_path / "shown.toml", registry()))]
    assert plans[0].options == plans[1].options
    assert plans[0].provenance()["slots"] == plans[1].provenance()["slots"]
