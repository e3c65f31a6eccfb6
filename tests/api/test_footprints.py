"""What a plan announces, against what its run takes."""

import tracemalloc

import numpy as np
import pytest
from seqloom.core.alphabet import NUCLEOTIDE, PROTEIN
from seqloom.core.context import SearchSpace
from seqloom.core.engine.engine import Engine
from seqloom.core.engine.memory import MemorySink, MemorySource
from seqloom.core.engine.planning import Settings
from seqloom.core.pipeline import compose
from seqloom.core.sequences import SequenceBatch
from seqloom.installed import find_pipeline, registry


def genome(size: int, seed: int) -> str:
    return "".join(np.random.default_rng(seed).choice([*"ACGT"], size))


def strain(text: str, seed: int) -> str:
    """The text with a base in a hundred changed."""
    random = np.random.default_rng(seed)
    bases = np.array([*text])
    changed = random.choice(len(bases), len(bases) // 100, replace=False)
    bases[changed] = random.choice([*"ACGT"], len(changed))
    return "".join(bases)


GENOME = genome(600_000, 1)
STRAIN = strain(GENOME, 2)
READS = [GENOME[n : n + 100] for n in range(0, 300_000, 600)]


@pytest.mark.parametrize(("name", "queries", "most"), [
    ("mum", [STRAIN], 1.6), ("exact", READS, 1.6), ("megablast", [STRAIN[:20_000]], 2.0),
])
def test_a_plan_announces_what_its_run_takes(name: str, queries: list[str], most: float) -> None:
    batch, targets = SequenceBatch.of(NUCLEOTIDE, queries), SequenceBatch.of(NUCLEOTIDE, [GENOME])
    plan = compose(registry(), find_pipeline(registry(), name, ""), {}, "auto", (), ())

    def engine() -> Engine:
        return Engine(plan, registry(), batch, MemorySource(targets), SearchSpace(len(GENOME), 1, len(GENOME)),
                      Settings())

    engine().run(MemorySink())  # so that everything is loaded
    measured = engine()
    units = measured.unit_plan()
    tracemalloc.start()
    try:
        measured.run(MemorySink())
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    need = measured.planner.need(units.batches, units.volumes, 1).host
    # The texts themselves are counted, and were there before.
    assert peak + batch.nbytes + targets.total_residues < 1.1 * need < most * 1.1 * (peak + batch.nbytes + len(GENOME))


def test_words_that_nobody_looks_up_take_no_room() -> None:
    """Behind the scan, words that lie opposite each other are scored; no index of words is made."""
    queries = SequenceBatch.of(PROTEIN, ["MKVLAAGIWQ" * 300] * 4)
    source = MemorySource(SequenceBatch.of(PROTEIN, ["MKVLAAGIWQ"]))

    def need(backend: str) -> int:
        plan = compose(registry(), find_pipeline(registry(), "blastp", ""), {}, backend, (), ())
        engine = Engine(plan, registry(), queries, source, SearchSpace(10, 1, 10), Settings())
        units = engine.unit_plan()
        return engine.planner.need(units.batches, units.volumes, 1).host

    assert need("reference") > 4000 * queries.total_residues > 10 * need("cpu")
