"""``seqloom.search`` as programs call it: what it refuses, and how it says so."""

import gc
import io
import sys
import weakref
from typing import Any
from unittest import mock

import pytest
from seqloom.core.alphabet import PROTEIN
from seqloom.core.engine.memory import MemorySource
from seqloom.core.engine.runner import Runner
from seqloom.core.errors import InputError, OptionError, UsageError
from seqloom.core.sequences import SequenceBatch
from seqloom.installed import find_pipeline, registry
from seqloom.searches import search

TARGETS = SequenceBatch.of(PROTEIN, ["MKVLAWCC", "", "W"])


@pytest.mark.parametrize("queries, message", [
    ({7: "MKV"}, "names of queries are texts, not 7"),
    (None, "queries are a path, residues as text, "),
    ([], "no queries are given"),
])
def test_queries_of_another_kind(queries: Any, message: str) -> None:
    with pytest.raises(InputError) as caught:
        search("sw", queries, TARGETS, store=False)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize("limit", ["threads", "volume_residues", "batch_queries"])
@pytest.mark.parametrize("value", [0, -1, 1 << 63])
def test_limits_are_positive_numbers(limit: str, value: int) -> None:
    with pytest.raises(OptionError, match=f"{limit} must be a number from 1 on that fits 64 bits, not"):
        search("sw", {"q": "MKV"}, TARGETS, store=False, **{limit: value})


def test_sequences_without_residues_find_nothing() -> None:
    queries = SequenceBatch.of(PROTEIN, ["", "MKVLAW"])
    rows = search("sw", queries, TARGETS, store=False, backend="reference", evalue=1000).arrow().to_pylist()
    assert [(row["qnumber"], row["snumber"], row["score"]) for row in rows] == [(1, 0, 33), (1, 2, 11)]


def test_a_part_of_a_batch_is_queries_as_any_other(capsys) -> None:
    """Its numbers don't begin at 0; those of a run's queries do."""
    queries = SequenceBatch.of(PROTEIN, ["CC", "MKVLAW", "WWW", "AAA"], ["c", "m", "w", "a"]).take(1, 3)
    run = search("sw", queries, TARGETS, store=False, backend="reference", evalue=1000)
    run.write(sys.stdout, "6 qseqid sseqid score qseq")
    assert capsys.readouterr().out == ("m\tsequence_1\t33\tMKVLAW\nm\tsequence_3\t11\tW\n"
                                       "w\tsequence_1\t11\tW\nw\tsequence_3\t11\tW\n")
    assert [row["qnumber"] for row in run.arrow().to_pylist()] == [0, 0, 1, 1]


def test_what_was_prepared_of_a_batch_goes_with_it(monkeypatch) -> None:
    """Without anybody looking for what refers to itself, which the command line hardly ever does."""
    seen, prepare = [], Runner.prepare_batch

    def prepared(runner, queries):
        made = prepare(runner, queries)
        seen.append(weakref.ref(made))
        seen.extend(weakref.ref(made.indexes[kind]) for kind in made.indexes)
        return made

    monkeypatch.setattr(Runner, "prepare_batch", prepared)
    queries = SequenceBatch.of(PROTEIN, ["MKVLAWCC", "WCCHHK", "AAWKLM", "MKVLAW", "CCHHKK", "LAWCCM"])
    gc.collect()
    gc.disable()
    try:
        search("blastp", queries, TARGETS, store=False, backend="reference", batch_queries=1)
        there = [one() is not None for one in seen]
    finally:
        gc.enable()
    assert len(there) >= 12 and sum(there) <= 4  # the batches that a run keeps are two, each with an index


@pytest.mark.parametrize("residues, reads", [(None, 0), (8, 1)], ids=["one volume", "several"])
def test_residues_that_are_in_memory_are_not_read_again_for_the_output(residues: int | None, reads: int) -> None:
    """Once the run is over they are, since it keeps nothing in memory."""
    there, later = io.StringIO(), io.StringIO()
    with mock.patch.object(MemorySource, "fetch", autospec=True, side_effect=MemorySource.fetch) as fetch:
        run = search("sw", {"q": "MKVLAW"}, TARGETS, store=False, backend="reference", evalue=1000,
                     volume_residues=residues, written=lambda run: run.write(there, "6 sseqid sseq"))
        assert fetch.call_count == reads
        run.write(later, "6 sseqid sseq")
        assert fetch.call_count == reads + 1
    assert there.getvalue() == later.getvalue() == "sequence_1\tMKVLAW\nsequence_3\tW\n"


def test_blastn_is_the_task_megablast_where_none_is_named() -> None:
    plugins = registry()
    assert find_pipeline(plugins, "blastn").name == "megablast"
    assert find_pipeline(plugins, "blastn", "blastn").name == "blastn"
    assert find_pipeline(plugins, plugins.pipeline("blastn")).name == "blastn"
    assert find_pipeline(plugins, "blastp").name == "blastp"
    with pytest.raises(UsageError, match="is no task of 'blastp'"):
        find_pipeline(plugins, "blastp", "blastn")


def test_databases_are_found_as_blast_names_them(tmp_path, monkeypatch, capsys):
    from seqloom.asked import found_databases

    monkeypatch.chdir(tmp_path)
    for name in ("a.duckdb", "b.duckdb", "c.fasta", "with blank.duckdb"):
        (tmp_path / name).touch()
    assert found_databases(["a"]) == ("a.duckdb",)
    assert found_databases(["a b.duckdb c.fasta"]) == ("a.duckdb", "b.duckdb", "c.fasta")
    assert found_databases(["with blank.duckdb", "with blank"]) == ("with blank.duckdb",)
    assert "with blank.duckdb is given twice; it is searched once" in capsys.readouterr().err
    assert found_databases(["a", "./a.duckdb", "b"]) == ("a.duckdb", "b.duckdb")
    assert found_databases(["nowhere", "no where", "-"]) == ("nowhere", "no where", "-")
