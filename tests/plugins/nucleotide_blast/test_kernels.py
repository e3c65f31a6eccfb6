"""Every stage on the CPU gives exactly the records of its reference twin, from the reference's records."""

import importlib
import math
import pkgutil
import random
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from seqloom import search
from seqloom.core.context import Context, SearchSpace
from seqloom.core.engine.masking import Maskers, Searching
from seqloom.core.engine.runner import Runner
from seqloom.core.pipeline import compose
from seqloom.core.records import Records
from seqloom.core.sequences import SequenceBatch, offsets_of
from seqloom.core.stages import IndexStage
from seqloom.installed import registry
from seqloom.plugins.common.grouping import cut_at
from seqloom.plugins.nucleotide_blast import (
    query_words_cpu,
    sampled_words_cpu,
    scan_cpu,
    seed_cpu,
    seed_reference,
    strands_cpu,
    traceback_cpu,
    ungapped_cpu,
)
from seqloom.plugins.nucleotide_blast.index_reference import runs_of
from seqloom.plugins.nucleotide_blast.packed_cpu import ALL
from seqloom.plugins.nucleotide_blast.strands import SENTINEL
from seqloom.plugins.nucleotide_blast.ungapped_reference import packed
from seqloom.queries import load_queries
from seqloom.testing import assert_same_records

from tests.plugins.nucleotide_blast.sequences import (
    ambiguous,
    batch,
    homologues,
    random_bases,
    relative,
    reverse_complement,
)

PIPELINES = ("blastn", "blastn-short", "megablast", "dc-megablast")


def compare(pipeline: str, queries: SequenceBatch, targets: SequenceBatch, options: dict[str, Any] | None = None,
            stages: tuple[str, ...] = (), settings: tuple[str, ...] = (), fast: str = "auto",
            device_memory: int | None = None) -> dict[str, int]:
    """Run every slot of a unit on both back ends; returns how many records each slot gives.

    The fast back end's stages are given the reference's records and, in a second row, those of each other.
    """
    known = registry()
    reference, cpu = (compose(known, known.pipeline(pipeline), options, backend, stages, settings)
                      for backend in ("reference", fast))
    queries = Maskers(reference, known, Searching(Runner)).masked(queries)
    space = SearchSpace(targets.total_residues, len(targets), targets.longest)
    scoring = reference.family.scoring(queries, space, reference.options)
    indexes: dict[str, dict[str, Any]] = {"reference": {}, "cpu": {}}
    records: Records | None = None
    own: Records | None = None
    counts = {}
    followed: list[tuple[str, Records, Records]] = []
    for slot, twin in zip(reference.stages, cpu.stages, strict=True):
        if slot.slot.scope == "reduce":
            continue
        results = []
        for backend, stage in (("reference", slot.stage), ("cpu", twin.stage)):
            for have in indexes.values() if backend == "cpu" else [indexes["reference"]]:
                context = Context(slot.slot.name, queries, targets, scoring, reference.options, space, have,
                                  sorters=known.sorters("reference"), device_memory=device_memory)
                if isinstance(stage, IndexStage):
                    index = stage.run(context, queries if stage.side == "query" else targets)
                    indexes[backend][index.kind] = index
                else:
                    results.append(stage.run(context, records))
        if results:
            own = twin.stage.run(context, own)
            followed.append((slot.slot.name, results[0], own))
        for other in results[1:]:
            assert_same_records(results[0], other, f"{pipeline}: {slot.slot.name}")
        if results:
            records, counts[slot.slot.name] = results[0], len(results[0])
    for name, records, own in followed:  # looked at when all have been handed on: some are made when looked at
        assert_same_records(records, own, f"{pipeline}: {name}, after other fast stages")
    return counts


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_homologues(pipeline):
    for seed in range(2):
        counts = compare(pipeline, *homologues(seed), {"evalue": 10})
        assert counts["score.evalue"] > 5


def related(source: random.Random) -> tuple[SequenceBatch, SequenceBatch]:
    """Short and long queries, ambiguities, repeats and lower complexity, and targets with pieces of them."""
    unit = random_bases(source, source.randint(1, 9))
    first = random_bases(source, source.randint(20, 120)) + unit * source.randint(0, 9)
    second = first[: len(first) // 2] + source.choice(["", "N", "RYN"]) + reverse_complement(first[10:])
    queries = [first, second, random_bases(source, source.randint(0, 40)), unit * 5]
    rate = source.choice([0.0, 0.03, 0.1])
    targets = [random_bases(source, source.randint(0, 9)) + relative(source, text, rate) + source.choice(["", "NNA"])
               for text in (first, second, reverse_complement(second), first + first, unit * 9)]
    return batch(*queries), batch(*targets, "", relative(source, "".join(targets), rate))


def test_ends_of_all_queries_and_targets() -> None:
    """Where nothing lies before the first bases, and nothing behind the last."""
    compare("megablast", *related(random.Random(652)), {})
    for seed in range(4):
        source = random.Random(seed)
        middle = random_bases(source, 40)
        ends = [random_bases(source, n) for n in (source.randint(1, 6) for _ in range(4))]
        compare("megablast", batch(ends[0] + middle + ends[1]), batch(ends[2] + middle + ends[3]), {"evalue": 10})


OPTIONS: dict[str, list[dict[str, Any]]] = {
    "blastn": [{}, {"ungapped": True}, {"window_size": 30, "off_diagonal_range": 6}, {"word_size": 6},
               {"word_size": 8, "dust": "no"}, {"soft_masking": False},
               {"reward": 1, "penalty": -1, "gapopen": 5, "gapextend": 2}, {"perc_identity": 90}],
    "blastn-short": [{}, {"dust": "no", "strand": "minus"}, {"evalue": 1000, "strand": "plus"}],
    "megablast": [{}, {"ungapped": True, "word_size": 14}, {"window_size": 50, "word_size": 12}, {"word_size": 12},
                  {"word_size": 16, "dust": "no", "perc_identity": 95},
                  {"reward": 2, "penalty": -3}, {"word_size": 11, "xdrop_gap": 100}, {"reward": 4, "penalty": -5}],
    "dc-megablast": [{}, {"template_type": "coding_and_optimal", "template_length": 21},
                     {"word_size": 12, "template_type": "optimal", "template_length": 16, "dust": "no"}],
}


WAYS = [("blastn", 7, "queries"), ("blastn", 7, "targets"), ("blastn", 11, "queries"), ("blastn", 11, "targets"),
        ("megablast", 16, "queries"), ("megablast", 16, "targets"), ("megablast", 16, "sampled"),
        ("blastn", 11, "sampled")]


def take(patch: pytest.MonkeyPatch, way: str, word_size: int, width: int = 8) -> None:
    """Have hits found one way; ``sampled``: by words of that width."""
    sampling = query_words_cpu.Sampling(width, word_size - width + 1, -1 if way == "sampled" else math.inf)
    patch.setattr(seed_cpu, "best_sampling", lambda *_: sampling)
    patch.setattr(seed_cpu, "cheapest", lambda *_: (0, way))


@pytest.mark.parametrize(("pipeline", "word_size", "way"), WAYS)
def test_ambiguities_of_queries(pipeline, word_size, way, monkeypatch):
    take(monkeypatch, way, word_size)
    source = random.Random(word_size)
    texts = [random_bases(source, 300) for _ in range(4)]
    queries = batch(*(ambiguous(source, text, 0.04 * number) for number, text in enumerate(texts)))
    options = {"word_size": word_size, "window_size": 40, "off_diagonal_range": 8}
    counts = compare(pipeline, queries, batch(*texts, reverse_complement(texts[2])), options)
    assert counts["seed.words"] > 5


@pytest.mark.parametrize("pipeline", PIPELINES)
@settings(max_examples=6, deadline=None)
@given(st.data(), st.integers(0, 10**9))
def test_relatives(pipeline, data, seed):
    compare(pipeline, *related(random.Random(seed)), data.draw(st.sampled_from(OPTIONS[pipeline])))


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_targets_in_chunks(pipeline, monkeypatch):
    for module in chunked_modules():
        monkeypatch.setattr(module, "CHUNK", 400)
    source = random.Random(8)
    text = random_bases(source, 900)
    counts = compare(pipeline, batch(text, text[350:500]), batch(relative(source, text * 2, 0.02)))
    assert counts["extend.greedy" if pipeline == "megablast" else "extend.gapped"] > 3


def test_segments_of_targets_in_chunks(monkeypatch):
    for module in chunked_modules():
        monkeypatch.setattr(module, "CHUNK", 400)
    source = random.Random(9)
    text = random_bases(source, 900)
    targets = batch(relative(source, text * 2, 0.02), text[300:700])
    counts = compare("blastn", batch(text, text[350:500]), targets, {"ungapped": True})
    assert counts["extend.segments"] > 3


def chunked_modules() -> list[Any]:
    """Modules that know the size of a chunk; all are imported, or later ones would know another size for good."""
    package = importlib.import_module(seed_reference.__name__.rpartition(".")[0])
    modules = [importlib.import_module(f"{package.__name__}.{found.name}")
               for found in pkgutil.iter_modules(package.__path__)]
    return [module for module in modules if hasattr(module, "CHUNK")]


@pytest.mark.parametrize("way", ["queries", "targets", "sampled"])
@pytest.mark.parametrize(("pipeline", "word_size", "room"),
                         [("blastn", 11, 1), ("blastn", 12, 1 << 16), ("megablast", 12, 3), ("megablast", 20, 1)])
def test_hits_are_the_same_whichever_words_are_put_into_a_table(pipeline, word_size, room, way, monkeypatch):
    """In a table of targets, words of 20 bases are looked for by wider ones than those of 12."""
    take(monkeypatch, way, word_size)
    monkeypatch.setattr(scan_cpu, "ROOM", room)
    counts = compare(pipeline, *homologues(7), {"word_size": word_size})
    assert counts["seed.words"] > 5


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**9), st.sampled_from([7, 9, 11, 12, 13, 16, 17, 20, 28]), st.sampled_from([1, 7, 1 << 16]),
       st.integers(6, 13))
def test_words_of_any_width_find_the_hits_of_blasts_own(seed, word_size, room, width):
    """Also those that begin or end with a target or a query, have ambiguities beside them, or masked bases in them."""
    source, width = random.Random(seed), min(width, word_size)
    text = random_bases(source, 120)
    pieces = [text[a : a + source.randrange(word_size, 60)] for a in range(0, 60, 7)]
    queries = batch(*pieces, ambiguous(source, text, 0.02), reverse_complement(text), text + "N" + text[:word_size],
                    "A" * 30 + text + "CA" * 20, random_bases(source, 700) + text)
    targets = batch(text, relative(source, text * 2, 0.04), *(piece[1:] for piece in pieces), text[:word_size],
                    "CA" * 9 + text + "CA" * 12)
    with pytest.MonkeyPatch.context() as patch:
        take(patch, "sampled", word_size, width)
        patch.setattr(scan_cpu, "ROOM", room)
        patch.setattr(sampled_words_cpu, "PAIRS", source.choice([1, 3, 256]))
        counts = compare(source.choice(["megablast", "blastn"]), queries, targets,
                         {"word_size": word_size, "dust": source.choice(["no", "yes"]),
                          "strand": source.choice(["both", "both", "plus", "minus"])})
    assert counts["seed.words"] > 5


@pytest.mark.parametrize("most", [0, 1 << 27])
def test_tables_of_targets_are_made_once_if_small(most, monkeypatch):
    made, used = [], []
    make, use = seed_cpu.TargetWords.of, seed_cpu.hits_of_query_words
    take(monkeypatch, "targets", 20)
    monkeypatch.setattr(query_words_cpu, "MOST_KEPT", most)
    monkeypatch.setattr(seed_cpu.TargetWords, "of", lambda *given: made.append(given) or make(*given))
    monkeypatch.setattr(seed_cpu, "hits_of_query_words", lambda *given: used.append(given) or use(*given))
    compare("megablast", *homologues(7), {"word_size": 20})
    assert used and len(made) == (len(used) * 2 // 3 if most else len(used))  # two of three searches share an index


@pytest.mark.parametrize(("words", "threads", "parts"), [
    ([1000], 4, 1), ([1 << 20], 1, 1), ([1 << 20], 2, 16), ([1 << 20, 0, 5], 2, 7), ([1 << 17], 2, 2), ([0], 2, 1)])
def test_few_chunks_are_scanned_in_parts(words: list[int], threads: int, parts: int) -> None:
    found = seed_cpu.parts_of_chunks(np.array(words), threads)
    assert len(found) == parts
    for chunk, count in enumerate(words):
        own = [(first, behind) for at, first, behind in found if at == chunk]
        assert own[0][0] == 0 and own[-1][1] == ALL and own[-1][0] <= count
        assert all(behind == first for (_, behind), (first, _) in pairwise(own))


@pytest.mark.parametrize(("task", "stages"), [
    ("blastn", []), ("megablast", []), ("dc-megablast", []), ("blastn", ["index.words=small-word-table"]),
    ("megablast", ["index.words=megablast-word-table"])])
@pytest.mark.parametrize("way", ["queries", "sampled"])
def test_parts_of_chunks_change_no_row(task: str, stages: list[str], way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    generator = random.Random(3)
    bases = "".join(generator.choices("ACGT", k=6000))
    queries = {"q": bases[500:4500]}
    targets = load_queries("nucleotide", {"t": bases, "u": bases[3000:] + bases[:100]}, "error", None)
    if task != "dc-megablast":
        take(monkeypatch, way, 28)
    found = []
    for worth in (1 << 20, 7):
        monkeypatch.setattr(seed_cpu, "_WORTH_A_PART", worth)
        monkeypatch.setattr(ungapped_cpu, "_WORTH_A_PART", worth)
        run = search(task, queries, targets, store=False, threads=2, stages=stages, backend="cpu")
        found.append(run.alignments.to_pylist())
    assert found[0] == found[1] != []


@pytest.mark.parametrize(("task", "identity"), [("blastn", 87), ("megablast", 0)])  # by scores, and greedily
def test_pieces_of_a_group_change_no_row(task: str, identity: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Copies one behind the other have many alignments, of which some lie within others, and some are too unlike."""
    source = random.Random(2)
    unit = random_bases(source, 171)
    query, target = (relative(source, unit * 30, 0.08) for _ in range(2))
    targets = load_queries("nucleotide", {"t": target, "u": reverse_complement(target)[:900]}, "error", None)
    found, sizes = [], []
    taken = traceback_cpu.TracebackCpu._taken_in_turn

    def told(stage: Any, parts: list[traceback_cpu.Made], groups: np.ndarray, hsps: np.ndarray) -> traceback_cpu.Made:
        made = taken(stage, parts, groups, hsps)
        sizes.append((len(parts), len(hsps), len(made.rows)))
        return made

    monkeypatch.setattr(traceback_cpu.TracebackCpu, "_taken_in_turn", told)
    for threads, worth in ((1, 1), (2, 1 << 20), (2, 1)):
        monkeypatch.setattr(traceback_cpu, "WORTH_A_PIECE", worth)
        run = search("blastn", {"q": query}, targets, store=False, threads=threads, backend="cpu", dust="no", task=task,
                     perc_identity=identity)
        found.append(run.alignments.to_pylist())
        assert bool(sizes) == (threads == 2 and worth == 1)
    assert found[0] == found[1] == found[2] != []
    assert any(parts > 1 and rows > made for parts, rows, made in sizes)


def test_groups_of_which_pieces_are_made() -> None:
    """Those that one thread would still have to do when the others are done with the rest."""
    bounds, bases = np.array([0, 2, 102, 103]), np.full(103, traceback_cpu.WORTH_A_PIECE)
    assert traceback_cpu.parts_of_groups(bounds, bases, 1) == {}
    pieces = traceback_cpu.parts_of_groups(bounds, bases, 4)
    assert [*pieces] == [1] and len(pieces[1]) == 16
    assert pieces[1][0][0] == 0 and pieces[1][-1][1] == 100
    assert traceback_cpu.parts_of_groups(bounds, bases // 50, 4) == {}
    assert cut_at([(0, 3)], pieces) == [(0, 1), (1, 2), (2, 3)]


@settings(max_examples=80, deadline=None)
@given(st.lists(st.integers(0, 40), min_size=1, max_size=5), st.integers(1, 12), st.integers(0, 2**32 - 1))
def test_what_is_told_of_all_places_of_strands(lengths: list[int], length: int, seed: int) -> None:
    generator = np.random.default_rng(seed)
    sizes = 2 * np.array(lengths) + 1
    begins, offsets = offsets_of(sizes + 1), offsets_of(sizes)
    codes = np.where(generator.random(begins[-1]) < 0.1, 14, generator.integers(0, 4, begins[-1])).astype(np.uint8)
    codes[begins[1:] - 1] = SENTINEL
    shut, indexed = generator.random(offsets[-1]) < 0.1, generator.random(offsets[-1]) < 0.7
    groups, begin_words, opens = np.empty_like(codes), *np.empty((2, len(codes)), np.bool_)
    strands_cpu.complete(codes, begins, shut, indexed, length, groups, begin_words, opens)
    assert np.array_equal(groups, packed(codes))
    assert np.array_equal(begin_words, np.insert(indexed, offsets[1:], False))
    assert np.array_equal(opens, runs_of(~np.insert(shut, offsets[1:], True), length))
