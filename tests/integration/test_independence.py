"""Every pipeline gives the same rows however queries and targets are cut up, and for any number of threads."""

from functools import cache
from typing import Any

import numpy as np
import pytest
from seqloom.core.alphabet import PROTEIN
from seqloom.core.engine.memory import MemorySink
from seqloom.core.sequences import SequenceBatch
from seqloom.testing import assert_same_hits, check_pipeline, run_pipeline

from tests.integration.samples import globin_model, mitochondria, pieces, proteins

OPTIONS = {"phmmer": dict.fromkeys(("EmL", "EmN", "EvL", "EvN", "EfL", "EfN"), 30)}
"""By pipeline: those that make it quick."""


def queries_and_targets(name: str):
    human, orang = mitochondria()
    if name in ("blastn", "megablast", "mum"):
        return pieces(human, 700, 9), pieces(orang, 1500, 10)
    if name == "hmmsearch":
        return globin_model(), proteins().take(240, 262)
    if name == "hmmscan":
        return proteins().take(240, 262), globin_model()
    sample = proteins()
    if name == "phmmer":
        return sample.take(3, 6), sample.take(0, 20)
    return sample.take(3, 12), sample.take(0, 60)


@pytest.mark.parametrize("name", ["blastp", "sw", "blastn", "megablast", "hmmsearch", "hmmscan", "phmmer", "mum"])
def test_same_rows_for_any_cut(name: str) -> None:
    queries, targets = queries_and_targets(name)
    check_pipeline(name, queries, targets, OPTIONS.get(name), least=1 if name == "hmmscan" else 5)


def many_queries(**cut: Any) -> Any:
    """Hits of forty proteins in sixty."""
    sample = proteins()
    return run_pipeline("blastp", sample.take(0, 40), sample.take(0, 60), {"evalue": 1e-3}, **cut)


many_queries_at_once = cache(many_queries)


@pytest.mark.parametrize("batch", [1, 7, 40])
def test_many_queries_in_batches_and_seven_volumes(batch: int) -> None:
    sink, whole = MemorySink(), many_queries_at_once()
    assert_same_hits(whole, many_queries(
        batch_queries=batch, volume_residues=proteins().take(0, 60).total_residues // 7, sink=sink))
    plan = sink.plan()
    assert plan is not None and len(plan.volumes) >= 7 and len(plan.batches) == -(-40 // batch)
    assert len(set(whole.query.tolist())) == 40  # every protein finds itself at least


def test_one_pair_with_ten_thousand_seeds_is_never_cut() -> None:
    repeat = SequenceBatch.of(PROTEIN, ["ARNDCQEGHI" * 33], ["repeat"])
    sample = proteins().take(0, 12)
    residues = np.concatenate([sample.residues, repeat.residues])
    offsets = np.concatenate([sample.offsets, [len(residues)]])
    targets = SequenceBatch(PROTEIN, residues, offsets, np.arange(13), names=[*sample.names, "repeat"])
    sink = MemorySink()
    whole = run_pipeline("blastp", repeat, targets, sink=sink)
    seeds = sink.stats[0]["seed.words"].records_out
    assert seeds >= 10_000
    assert int(whole.target[0]) == 12
    for cut in ({"volume_residues": 1}, {"volume_residues": targets.total_residues // 7},
                {"threads": 2, "volume_residues": 400}):
        assert_same_hits(whole, run_pipeline("blastp", repeat, targets, **cut))
