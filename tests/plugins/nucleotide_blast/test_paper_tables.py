"""BLAST's two tables of words: what is in them, and the seeds that are found with them."""

import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from seqloom.core.context import Context
from seqloom.core.index import Index
from seqloom.core.pipeline import compose
from seqloom.core.records import Seeds
from seqloom.core.sequences import SequenceBatch
from seqloom.core.stages import IndexStage, Shape
from seqloom.installed import registry
from seqloom.plugins.nucleotide_blast import paper_tables_cpu, paper_tables_reference
from seqloom.plugins.nucleotide_blast.paper_tables_reference import CHAINED, LARGEST, SMALL, places_in

from tests.plugins.nucleotide_blast.sequences import random_bases
from tests.plugins.nucleotide_blast.test_kernels import batch, compare, related

KINDS = {SMALL: "small-word-table", CHAINED: "megablast-word-table"}
MODULES = (paper_tables_reference, paper_tables_cpu)


@st.composite
def words_at(draw: Any) -> tuple[np.ndarray, np.ndarray, int, int]:
    """Words of few kinds or many, at ascending places of some of a room."""
    random = np.random.default_rng(draw(st.integers(0, 10**9)))
    kinds, room = 4 ** draw(st.integers(1, 5)), draw(st.integers(1, 400))
    places = np.flatnonzero(random.random(room) < draw(st.sampled_from([0.1, 0.8, 1.0]))).astype(np.int32)
    return random.integers(0, kinds, len(places)).astype(np.int32), places, kinds, room


@settings(max_examples=60, deadline=None)
@given(words_at())
def test_tables_hold_all_places_of_every_word(drawn: tuple[np.ndarray, np.ndarray, int, int]) -> None:
    words, places, kinds, room = drawn
    for name in ("small_table", "chained_table"):
        one, other = (getattr(module, name)(words, places, kinds, room) for module in MODULES)
        assert one.keys() == other.keys()
        for key in one:
            assert one[key].dtype == other[key].dtype and np.array_equal(one[key], other[key]), key
        for word in range(kinds):
            assert places_in(one, word) == places[words == word].tolist()


def test_a_small_table_as_the_paper_has_it() -> None:
    """AC at 3, CA at 0, 4 and 9; nothing else."""
    words, places = np.array([4, 1, 4, 4], np.int32), np.array([0, 3, 4, 9], np.int32)
    for module in MODULES:
        table = module.small_table(words, places, 16, 10)
        assert table["backbone"].tolist() == [-1, 3, -1, -1, -2, *[-1] * 11]
        assert table["overflow"].tolist() == [-1, -1, 0, 4, 9, -1]
        assert table["bits"].tolist() == [0b10010]


def test_a_table_of_megablast_as_the_paper_has_it() -> None:
    words, places = np.array([4, 1, 4, 4], np.int32), np.array([0, 3, 4, 9], np.int32)
    for module in MODULES:
        table = module.chained_table(words, places, 16, 10)
        assert table["heads"].tolist() == [0, 4, 0, 0, 1, *[0] * 11]
        assert table["following"].tolist() == [0, 5, 0, 0, 0, 10, 0, 0, 0, 0, 0]
        assert table["bits"].tolist() == [0b10010]


@pytest.mark.parametrize("module", MODULES)
def test_what_16_bits_have_room_for(module: Any) -> None:
    """Places up to 32,767, and as much of the overflow array before the last word's places begin."""
    one, last = np.array([1], np.int32), np.array([LARGEST], np.int32)
    assert places_in(module.small_table(one, last, 4, LARGEST + 1), 1) == [LARGEST]
    assert module.small_table(one, last, 4, LARGEST + 2) is None
    def pairs(count: int) -> np.ndarray:
        return np.repeat(np.arange(count, dtype=np.int32), 2)
    most = (LARGEST - 2) // 3 + 1  # each takes three of the overflow array
    words = pairs(most)
    places = np.arange(len(words), dtype=np.int32)
    table = module.small_table(words, places, 4**7, len(words))
    assert places_in(table, most - 1) == [2 * most - 2, 2 * most - 1]
    words = pairs(most + 1)
    assert module.small_table(words, np.arange(len(words), dtype=np.int32), 4**7, len(words)) is None


def seeds_of(plugin: str, backend: str, pipeline: str, queries: SequenceBatch, targets: SequenceBatch,
             options: dict[str, Any]) -> tuple[Seeds, Index]:
    """Seeds with a table of a plugin, and the index that it is in."""
    names = registry()
    plan = compose(names, names.pipeline(pipeline), options, backend, [f"index.words={plugin}"])
    context = Context(queries=queries, targets=targets, options=plan.options)
    indexes = {}
    for filled in (*plan.indexes("query"), *plan.indexes("target")):
        assert isinstance(filled.stage, IndexStage)
        made = filled.stage.run(context, queries if filled.stage.side == "query" else targets)
        indexes[made.kind] = made
    [stage] = [filled.stage for filled in plan.stages if filled.slot.name == "seed.words"]
    found = stage.run(Context(queries=queries, targets=targets, options=plan.options, indexes=indexes), None)
    assert isinstance(found, Seeds)
    return found, indexes["nucleotide-words"]


OPTIONS = [("blastn", {}), ("blastn", {"word_size": 8, "strand": "minus"}), ("blastn-short", {"word_size": 4}),
           ("megablast", {"word_size": 12}), ("megablast", {"word_size": 16}), ("megablast", {})]


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**9), st.sampled_from(OPTIONS), st.sampled_from(sorted(KINDS)))
def test_seeds_are_those_of_the_other_table(seed: int, case: tuple[str, dict[str, Any]], kind: str) -> None:
    """In the same order, with every back end; some words are at very many places."""
    pipeline, options = case
    queries, targets = related(random.Random(seed))
    wanted, _ = seeds_of("nucleotide-word-table", "cpu", pipeline, queries, targets, options)
    for backend in ("cpu", "reference"):
        found, index = seeds_of(KINDS[kind], backend, pipeline, queries, targets, options)
        assert index.parameters["table"] == kind
        assert found.rows() == wanted.rows()


@pytest.mark.parametrize("kind", KINDS)
def test_rows_of_all_slots(kind: str) -> None:
    for seed in range(3):
        compare("blastn", *related(random.Random(seed)), {"evalue": 10}, (f"index.words={KINDS[kind]}",))


@pytest.mark.parametrize("kind", KINDS)
def test_more_hits_than_there_is_room_for(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from seqloom.plugins.nucleotide_blast import scan_cpu

    monkeypatch.setattr(scan_cpu, "ROOM", 5)
    queries, targets = batch("ACGT" * 40, "AC" * 60), batch("ACGT" * 60, "AC" * 50 + "ACGT" * 20)
    wanted, _ = seeds_of("nucleotide-word-table", "cpu", "blastn", queries, targets, {"word_size": 11})
    found, _ = seeds_of(KINDS[kind], "cpu", "blastn", queries, targets, {"word_size": 11})
    assert len(wanted) > 1000 and found.rows() == wanted.rows()


def test_long_queries_have_the_table_of_megablast() -> None:
    source = random.Random(4)
    short, long = batch(random_bases(source, 16_000)), batch(random_bases(source, 16_400))
    for queries, arrays in ((short, "backbone"), (long, "heads")):
        for backend in ("cpu", "reference"):
            _, index = seeds_of("small-word-table", backend, "megablast", queries, short, {})
            assert any(name.endswith(arrays) for name in index.arrays)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("length", [100, 16_000, 100_000])
def test_footprints_are_enough(kind: str, length: int) -> None:
    names, source = registry(), random.Random(length)
    queries = batch(random_bases(source, length), random_bases(source, 30))
    plan = compose(names, names.pipeline("megablast"), {}, "cpu", [f"index.words={KINDS[kind]}"])
    [stage] = [filled.stage for filled in plan.indexes("query")]
    assert isinstance(stage, IndexStage)
    index = stage.run(Context(queries=queries, options=plan.options), queries)
    shape = Shape(2, queries.total_residues, length, 1, 1, 1, options=plan.options)
    assert index.nbytes <= stage.footprint(shape).host
