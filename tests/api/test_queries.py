"""Queries as programs have them: every form gives the batch that a file gives."""

from collections import namedtuple
from pathlib import Path

import dnaio
import pytest
import seqloom
from seqloom.core.errors import AlphabetError, InputError
from seqloom.queries import load_queries

ONE, TWO = "MKVLAERTGQWYHDCN", "AAWWHHccDD"
Record = namedtuple("Record", "id seq description", defaults=("",))


class Seq(str):
    """Stands for Biopython's class: not a plain text to its users."""

    def reverse_complement(self) -> "Seq":
        return self


class Frame:
    """Stands for a column of a data frame that isn't pandas'."""

    def __iter__(self):
        return iter([ONE, TWO])


def loaded(queries, kind="protein", **options):
    batch = load_queries(kind, queries, **options)
    assert batch.ordinals.tolist() == list(range(len(batch)))
    return [(batch.names[n], batch.text(n)) for n in range(len(batch))]


NUMBERED, NAMED = [("Query_1", ONE), ("Query_2", TWO)], [("a", ONE), ("b", TWO)]


@pytest.mark.parametrize(("queries", "found"), [
    (ONE, NUMBERED[:1]), (f"{ONE[:5]} \n{ONE[5:]}\n", NUMBERED[:1]), (ONE.encode(), NUMBERED[:1]),
    ([ONE, TWO], NUMBERED), ((ONE, TWO), NUMBERED), (iter([ONE, TWO]), NUMBERED), (Frame(), NUMBERED),
    ({"a": ONE, "b": TWO}, NAMED), ([("a", ONE), ("b", TWO)], NAMED), (zip("ab", [ONE, TWO]), NAMED),
    ([("q", ONE), ("q", TWO)], [("q", ONE), ("q", TWO)]), ([ONE, ("b", TWO)], [NUMBERED[0], NAMED[1]]),
    (Record("a", Seq(ONE)), NAMED[:1]), ([Record("a", ONE), Record("b", TWO)], NAMED), (Seq(ONE), NUMBERED[:1]),
    ({"a": Record("x", ONE)}, NAMED[:1]), ([Seq(ONE), Seq(TWO)], NUMBERED),
    ([dnaio.SequenceRecord("a x", ONE, None), dnaio.SequenceRecord("b", TWO, None)], NAMED),
])
def test_every_form_gives_the_same_batch(queries, found):
    assert loaded(queries) == found


def test_columns_of_data_frames():
    pandas = pytest.importorskip("pandas")
    polars = pytest.importorskip("polars")
    assert loaded(pandas.Series([ONE, TWO])) == loaded(polars.Series([ONE, TWO])) == NUMBERED
    assert loaded(pandas.Series([ONE, TWO], index=["a", "b"])) == NAMED
    frame = pandas.DataFrame({"name": ["a", "b"], "sequence": [ONE, TWO]})
    assert loaded(frame.itertuples(index=False, name=None)) == NAMED


def test_records_of_biopython():
    records = pytest.importorskip("Bio.SeqRecord")
    sequences = pytest.importorskip("Bio.Seq")
    record = records.SeqRecord(sequences.Seq(ONE), id="a", description="a of mine")
    assert loaded(record) == loaded([record]) == NAMED[:1]
    assert load_queries("protein", [record]).descriptions == ["of mine"]
    assert loaded(sequences.Seq(ONE)) == NUMBERED[:1]


def test_descriptions_of_records():
    assert load_queries("protein", [Record("a", ONE, "a of mine"), Record("b", TWO)]).descriptions == ["of mine", ""]
    assert load_queries("protein", dnaio.SequenceRecord("a of mine", ONE, None)).descriptions == ["of mine"]


def test_a_text_is_a_file_where_there_is_one_or_it_is_no_residues(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert loaded("MKV") == [("Query_1", "MKV")]
    Path("MKV").write_text(f">a\n{ONE}\n")
    Path("other.fasta").write_text(f">b\n{TWO}\n>\n{TWO}\n")
    assert loaded("MKV") == loaded(Path("MKV")) == NAMED[:1]
    assert loaded(["MKV", Path("other.fasta")]) == [*NAMED, ("Query_2", TWO)]
    with pytest.raises(InputError, match=r"^none.fasta: there is no such file; check the name$"):
        loaded("none.fasta")
    with pytest.raises(InputError, match=r"^WWW: there is no such file; check the name$"):
        loaded(Path("WWW"))
    with pytest.raises(InputError, match="queries are files, or residues, but not both: 'MKV' is a file"):
        loaded(["MKV", ONE])


def test_gaps_are_left_out_with_a_warning():
    with pytest.warns(UserWarning, match="left out of query 'a'"):
        assert loaded({"a": "MK--V"}) == [("a", "MKV")]


@pytest.mark.parametrize(("queries", "message"), [
    (5, "queries are a path, residues as text, a list or "), (None, "queries are a path"), ([], "no queries are given"),
    ({}, "no queries are given"), ([5], "query 1: 5 is no text of residues; queries are "),
    ([ONE, ("a", 5)], "query 2, 'a': 5 is no text of residues"), ({5: ONE}, "names of queries are texts, not 5"),
    ([("a", "")], "query 1, 'a': it has no residues; correct it, or leave such queries out with on_bad='skip'"),
    ({"a": None}, "query 1, 'a': None is no text of residues"),
])
def test_what_is_no_query_is_refused(queries, message):
    with pytest.raises(InputError) as error:
        loaded(queries)
    assert str(error.value).startswith(message)


def test_residues_outside_the_alphabet():
    with pytest.raises(AlphabetError, match="query 2, 'b': residue 'é' is not in the protein alphabet"):
        loaded({"a": ONE, "b": "MKéV1"})
    with pytest.warns(UserWarning, match="query 2, 'b', is left out: residue '1' is not in the protein alphabet"):
        assert loaded({"a": ONE, "b": "MK1V"}, on_bad="skip") == NAMED[:1]
    with pytest.raises(InputError, match="models are wanted as queries: give the path of a file with them"):
        loaded(ONE, "model")


def test_searches_take_them_and_lists_of_databases(tmp_path):
    for name, residues in (("x", ONE), ("y", TWO)):
        (tmp_path / f"{name}.fasta").write_text(f">{name}\n{residues * 3}\n")
    paths = [tmp_path / "x.fasta", tmp_path / "y.fasta"]
    runs = [seqloom.search("sw", queries, *databases, backend="reference", store=False, evalue=1e9)
            for queries in ({"a": ONE * 2}, [("a", ONE * 2)]) for databases in ([paths], paths)]
    rows = [run.alignments.select(["qseqid", "sseqid", "score"]).to_pylist() for run in runs]
    assert rows[0] and all(row == rows[0] for row in rows)
