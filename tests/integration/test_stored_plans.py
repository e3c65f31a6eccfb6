"""What is kept with a run of any pipeline can be read again, so that every run can be resumed."""

import json
from dataclasses import replace

import pytest
from seqloom.core.pipeline import Pipeline
from seqloom.installed import registry


@pytest.mark.parametrize("pipeline", registry().pipelines(), ids=lambda pipeline: pipeline.name)
def test_every_pipeline_is_read_as_it_was_kept(pipeline: Pipeline) -> None:
    # What takes over where an index is stored, and which task a name stands for, is settled when a run begins.
    settled = replace(pipeline, stored={}, own_from=0.0, task="")
    assert Pipeline.from_dict(json.loads(json.dumps(pipeline.as_dict()))) == settled
