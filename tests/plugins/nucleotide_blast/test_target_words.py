"""Tables of the targets' words that are stored with a database: the rows of searches without, and no trust in what is
stored."""

import random
from dataclasses import replace

import numpy as np
import pytest
import seqloom
from seqloom.core.context import Context
from seqloom.indexes import build_index, list_indexes
from seqloom.plugins.nucleotide_blast import query_words_cpu, seed_cpu
from seqloom.plugins.nucleotide_blast.scoring import NucleotideBlastOptions
from seqloom.plugins.nucleotide_blast.target_words_cpu import TargetWordTable, stored_words
from seqloom.searches import search

from .sequences import ambiguous, batch, homologues, random_bases, relative, reverse_complement
from .test_kernels import chunked_modules


@pytest.fixture
def queries(tmp_path, monkeypatch):
    """Queries, of which one is long, for a database of targets of which one has ambiguities and some are short."""
    source = random.Random(5)
    long = random_bases(source, 6000)
    targets = [relative(source, long, 0.02), ambiguous(source, long[1000:2500], 0.02), "ACGT", random_bases(source, 27),
               reverse_complement(long[3000:3400]), long[500:528]]
    queries = [long[n : n + 90] for n in range(0, 3000, 150)] + [long, ambiguous(source, long[1200:1500], 0.01)]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "targets.fa").write_text("".join(f">t{n}\n{text}\n" for n, text in enumerate(targets)))
    seqloom.Database.create("targets.duckdb", "targets.fa").close()
    return queries


def rows_of(queries, **more):
    """Rows, and what the slot of stored tables says, if it takes part."""
    named = {f"q{n}": text for n, text in enumerate(queries)}
    run = search("megablast", named, "targets.duckdb", store=False, **{"backend": "cpu", **more})
    rows = run.alignments.to_pylist()
    assert rows
    slots = {row["slot"]: row for row in run.slots.to_pylist()}
    return rows, slots.get("index.target-words")


@pytest.mark.parametrize("size", [16, 28])
def test_searches_take_what_is_stored_and_give_the_same_rows(queries, size, monkeypatch):
    for module in chunked_modules():
        monkeypatch.setattr(module, "CHUNK", 1500)
    wanted, slot = rows_of(queries, word_size=size)
    assert slot is None
    made = build_index("targets.duckdb", "target-word-table", [f"word_size={size}"])
    assert (made.state, made.options) == ("ready", {"word_size": size, "width": 0})
    rows, slot = rows_of(queries, word_size=size)
    assert rows == wanted and slot["counters"] == '{"read": 1}'
    for cut in ({"threads": 3}, {"batch_queries": 4}, {"memory": "8G"}, {"strand": "both"}):
        rows, slot = rows_of(queries, word_size=size, **cut)
        assert rows == wanted and slot["counters"] == '{"read": 1}', cut
    rows, slot = rows_of(queries, word_size=size, volume_residues=6000)  # other volumes do without
    assert rows == wanted and slot["counters"] == "{}"
    assert rows_of(queries, word_size=size, backend="reference") == (wanted, None)
    assert rows_of(queries, word_size=size + 1)[1] is None, "of other words"
    rows, slot = rows_of(queries, word_size=size, settings=["index.target-words.enabled=no"])
    assert rows == wanted and slot is None
    rows, slot = rows_of(queries[:20], word_size=size, settings=["index.target-words.enabled=yes"])
    assert slot["counters"] == '{"read": 1}'


def test_a_table_is_made_where_it_is_asked_for(queries):
    wanted, _ = rows_of(queries)
    rows, slot = rows_of(queries, settings=["index.target-words.enabled=yes"])
    assert rows == wanted and slot["counters"] == '{"made": 1}' and not list_indexes("targets.duckdb")


def test_words_of_any_width_are_stored(queries, monkeypatch):
    """Long queries have wider words, for which another table may be stored."""
    wanted, _ = rows_of(queries)
    build_index("targets.duckdb", "target-word-table", ["word_size=28", "width=11"])
    monkeypatch.setattr(seed_cpu, "cheapest", lambda *_: (0, "queries"))
    looked_up: list[int] = []
    use = query_words_cpu.hits_of_query_words
    monkeypatch.setattr(seed_cpu, "hits_of_query_words",
                        lambda *given: looked_up.append(given[1].width) or use(*given))
    rows, slot = rows_of(queries)
    assert rows == wanted and slot["options"] == '{"width": 11}' and looked_up == [11]


def drawn(size):
    """A context, targets, and their index."""
    _, targets = homologues(3)
    context = Context(options=NucleotideBlastOptions(word_size=size))
    return context, targets, TargetWordTable().run(context, targets)


@pytest.mark.parametrize("size", [11, 16])
def test_what_is_stored_is_looked_through(size):
    context, targets, index = drawn(size)
    stage = TargetWordTable()
    assert stage.wrong(context, targets, index) == ""
    assert "other words" in stage.wrong(Context(options=NucleotideBlastOptions(word_size=size + 1)), targets, index)
    assert "other words" in stage.wrong(context, batch("ACGT" * 20), index)
    assert "other words" in stage.wrong(context, targets, replace(index, parameters={**index.parameters, "width": "8"}))
    assert stage.wrong(context, targets, replace(index, arrays={}))
    for name, array in index.arrays.items():
        longer = replace(index, arrays={**index.arrays, name: np.concatenate([array, array[:1]])})
        assert stage.wrong(context, targets, longer), f"{name} is longer"
        shorter = replace(index, arrays={**index.arrays, name: array[:-1]})
        assert stage.wrong(context, targets, shorter), f"{name} is shorter"
        other = replace(index, arrays={**index.arrays, name: array.astype(np.float32)})
        assert stage.wrong(context, targets, other), f"{name} has another type"
    side = "back" if "back_bits" in index.arrays else "ahead"
    for name, place, value in (("entries", 3, -1), ("entries", 3, 1 << 30), ("starts", 2, -5), ("starts", 2, 1 << 30),
                               ("ranks", 40, 7), ("bits", 5, 2**64 - 1)):
        array = index[f"{side}_{name}"].copy()
        array[place] = value
        damaged = replace(index, arrays={**index.arrays, f"{side}_{name}": array})
        assert "no table" in stage.wrong(context, targets, damaged), (name, value)


def test_tables_serve_words_of_their_width_alone():
    context, _, index = drawn(16)
    context = replace(context, indexes={index.kind: index})
    width = index.parameters["width"]
    found = stored_words(context, width, 16)
    assert found is not None and np.shares_memory(found.ahead.bits, index["ahead_bits"])
    assert stored_words(context, width + 1, 16) is None and stored_words(context, width, 17) is None
    assert stored_words(Context(), width, 16) is None
