"""Runs with rows that are known beforehand, written as an engine would write them."""

from pathlib import Path

import numpy as np
from seqloom.core.alphabet import PROTEIN
from seqloom.core.ports import SlotStats, Span, TargetInfo, UnitPlan
from seqloom.core.records import Alignments, Column, Hits, Ragged
from seqloom.core.sequences import SequenceBatch
from seqloom.storage.results.run_file import RunFile
from seqloom.storage.results.store import ResultStore

BATCHES, VOLUMES, QUERIES, TARGETS = 3, 3, 2, 4
PLAN = UnitPlan(tuple((b * QUERIES, (b + 1) * QUERIES) for b in range(BATCHES)),
                tuple(Span(v * TARGETS, (v + 1) * TARGETS, 100 * TARGETS, 100) for v in range(VOLUMES)))
PROVENANCE = {
    "pipeline": "toy", "command": "seqloom toy", "version": "1.0", "host": "here",
    "started": "2026-01-02T03:04:05+00:00",
    "plan": {"family": "toy", "backend": "reference", "options": {"evalue": 10.0}, "slots": [
        {"slot": "index.toy", "plugin": "toy-index", "backend": "reference", "scope": "unit", "options": {}},
        {"slot": "seed.toy", "plugin": "toy-seed", "backend": "reference", "scope": "unit", "options": {"k": 3}},
        {"slot": "sort.rank", "plugin": "toy-rank", "backend": "reference", "scope": "reduce", "options": {}}]},
    "settings": {"threads": 1}, "space": {"total_residues": 1200, "sequences": 12, "longest": 100},
}
ACCURACY = Column("accuracy", "f4", "mean posterior probability", nullable=True)
DATABASES = [{"path": "/nowhere/toy.duckdb", "fingerprint": "abc", "sequences": 12, "letters": 1200, "title": "toy"}]


def queries() -> SequenceBatch:
    residues = ["MKVLaagiv" + "ACDEFGHIKL"[n] for n in range(BATCHES * QUERIES)]
    return SequenceBatch.of(PROTEIN, residues, [f"q{n}" for n in range(len(residues))])


def unit_rows(batch: int, volume: int) -> Alignments:
    """What the unit stages find: every query of the batch with every second target, twice."""
    first, last = PLAN.batches[batch]
    span = PLAN.volumes[volume]
    keys = [(q, t) for q in range(first, last) for t in range(span.first, span.last) if (q + t) % 2 == 0 for _ in "ab"]
    query, target = np.array(keys).T
    count = len(keys)
    twice = np.arange(count) % 2
    score = (100 + 7 * query + 3 * target) % 50 - 10 * twice
    return Alignments({
        "query": query, "target": target, "score": score, "query_start": twice, "query_end": twice + 5,
        "target_start": 10 + twice, "target_end": 15 + twice, "query_frame": np.ones(count),
        "target_frame": 1 - 2 * twice,
        "evalue": np.where(twice, np.nan, 2.0 ** -score), "path": Ragged.of([[5 << 4 | 7] if t else [] for t in twice]),
        "accuracy": np.where(twice, 0.1, np.nan)}, [ACCURACY])


def reduce_rows(parts: list[Alignments]) -> Hits:
    """What the reduce stages make of them: hits by descending score."""
    rows = Alignments.concat(parts)
    best = rows.take(np.arange(0, len(rows), 2))
    order = np.lexsort((best.target, -best.score, best.query))
    best = best.take(order)
    hits = Hits({n: best.data[n] for n in ("query", "target", "score", "evalue")})
    return hits.with_alignments(rows).take(np.arange(len(hits)))


def expected_hits(batches: int = BATCHES) -> Hits:
    return Hits.concat([reduce_rows([unit_rows(b, v) for v in range(VOLUMES)]) for b in range(batches)])


def info(numbers: np.ndarray) -> TargetInfo:
    return TargetInfo(numbers, [f"t{n}" for n in numbers], [f"target {n}" for n in numbers],
                      np.full(len(numbers), 100), np.zeros(len(numbers), np.int64), numbers)


def work(run: RunFile, batches: int = BATCHES) -> None:
    """Do what is left to do of a run (or of its first batches), as the engine does it."""
    plan = run.plan()
    if plan is None:
        run.begin(PLAN)
    stats = {"seed.toy": SlotStats(0.5, 1, 2, {"words": 3})}
    for batch in range(batches):
        if batch in run.done_batches():
            continue
        for volume in range(VOLUMES):
            if (batch, volume) not in run.done_units():
                run.commit_unit(batch, volume, unit_rows(batch, volume), stats)
        hits = reduce_rows(run.partials(batch))  # type: ignore[arg-type]
        run.commit_batch(batch, hits, info(np.unique(hits.target)), {"sort.rank": SlotStats(0.25, 4, 2)})
    run.finish("complete", 1.0)


def create(store: ResultStore) -> RunFile:
    return RunFile.create(store.runs_folder, PROVENANCE, queries(), DATABASES)


def run_once(store: ResultStore) -> str:
    """A whole run, left to be merged; returns its identifier."""
    run = create(store)
    work(run)
    run.close()
    return run.id


def process(path: Path, resume: bool) -> None:
    """What a search process does: go on with an interrupted run or begin a new one, finish and merge it."""
    store = ResultStore(path)
    left = [r["id"] for r in store.runs() if r["state"] == "incomplete"] if resume else []
    run = store.open_incomplete(left[0]) if left else create(store)
    work(run)
    if not store.take(run):
        run.close()
    store.merge_pending()
