"""Stages change nothing that they are given: records, sequences and indexes are handed to them read-only."""

from typing import Any

import numpy as np
import pytest
from seqloom.core.engine import runner
from seqloom.core.records import Hits, Ragged, Records
from seqloom.testing import assert_same_hits, run_pipeline

from tests.integration.test_independence import OPTIONS, queries_and_targets

SAMPLES = {"dc-megablast": "blastn", "blastn-short": "blastn", "sw-nucleotide": "blastn", "blastp-short": "blastp",
           "blastp-fast": "blastp", "mum-protein": "sw"}
PIPELINES = ["blastp", "blastp-short", "blastp-fast", "sw", "sw-nucleotide", "blastn", "blastn-short", "megablast",
             "dc-megablast", "hmmsearch", "hmmscan", "phmmer", "mum", "mum-protein"]


def freeze(*things: Any) -> None:
    for thing in things:
        if isinstance(thing, Ragged):
            freeze(thing.offsets, thing.values)
        elif isinstance(thing, np.ndarray):
            thing.setflags(write=False)
        elif isinstance(thing, Records):
            freeze(*thing.data.values(), thing.alignments if isinstance(thing, Hits) else None)


@pytest.mark.parametrize("name", PIPELINES)
def test_stages_change_nothing_that_they_are_given(name: str, monkeypatch) -> None:
    queries, targets = queries_and_targets(SAMPLES.get(name, name))
    if name.startswith("sw"):
        queries, targets = queries.take(0, 2), targets.take(0, 10)
    options = OPTIONS.get(name)
    wanted = run_pipeline(name, queries, targets, options)
    for batch in (queries, targets):
        freeze(*(getattr(batch, n, None) for n in ("residues", "offsets", "ordinals")))
    to_device, index = runner.to_device, runner.Runner._index

    def frozen_records(records, device):
        freeze(moved := to_device(records, device))
        return moved

    def frozen_index(*args):
        made = index(*args)
        freeze(*made.arrays.values())
        return made

    monkeypatch.setattr(runner, "to_device", frozen_records)
    monkeypatch.setattr(runner.Runner, "_index", frozen_index)
    assert_same_hits(wanted, run_pipeline(name, queries, targets, options))
    assert len(wanted)
