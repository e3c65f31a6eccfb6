"""Model databases: made of files, looked into, and searched with as the files are."""

import gzip
import json
import re
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest
from seqloom.core.errors import Cancelled, PluginError, ResumeError
from seqloom.models import ModelDatabase
from seqloom.plugins.profile_hmm.reader import Hmmer3Reader
from seqloom.searches import resume, search

from tests.plugins.profile_hmm.model_text import model_text
from tests.stopping import StopAtPart

CPU = ("--backend", "cpu", "--no-store")


def renamed(text: str, name: str, accession: str = "") -> str:
    text = re.sub(r"(?m)^NAME .*", f"NAME  {name}", text)
    return re.sub(r"(?m)^(NAME .*\n)", rf"\1ACC   {accession}\n", text) if accession else text


@pytest.fixture
def files(sample: Path, tmp_path: Path) -> Path:
    """Two files of models and one of sequences, and databases of the former."""
    globins = (sample / "globins4.hmm").read_text()
    one = [globins, renamed(globins, "second", "PF00042.25").replace("DATE", "GA    31.5 20\nDATE")]
    two = [renamed(model_text("f"), "toy", "PF1.2"), renamed(model_text("b", length=40), "older"),
           renamed(globins, "third")]
    (tmp_path / "one.hmm").write_text("".join(one))
    with gzip.open(tmp_path / "two.hmm.gz", "wt") as file:
        file.write("".join(two))
    (tmp_path / "all.hmm").write_text("".join(one + two))
    with ModelDatabase.create(tmp_path / "all.duckdb", tmp_path / "one.hmm", tmp_path / "two.hmm.gz"):
        pass
    (tmp_path / "p.fasta").write_text((sample / "proteins.fasta").read_text())
    return tmp_path


def without_remarks(path: Path) -> list[str]:
    return [line for line in path.read_text().splitlines() if not line.startswith("#")]


def outputs(run: Callable, *words: str, more: tuple[str, ...] = ()) -> list[list[str]]:
    """Every output of a search: report, tables."""
    wanted = ("--tblout", "--domtblout", "--pfamtblout", *more)
    named = [word for flag in wanted for word in (flag, f"out{flag}")]
    done = run(*words, *CPU, "-o", "out.txt", *named)
    assert done.status == 0, done.err
    return [without_remarks(Path(name)) for name in ("out.txt", *named[1::2])]


def test_rows_of_a_database_are_those_of_the_file(files: Path, seqloom: Callable) -> None:
    searched = [outputs(seqloom, "hmmsearch", "-q", query, "-d", "p.fasta", more=("-A",))
                for query in ("all.hmm", "all.duckdb")]
    assert searched[0] == searched[1] and len(searched[0][1]) > 9
    scanned = [outputs(seqloom, "hmmscan", "-q", "p.fasta", *(word for one in several for word in ("-d", one)))
               for several in (["all.hmm"], ["all.duckdb"], ["one.hmm", "two.hmm.gz"])]
    assert scanned[0] == scanned[1] == scanned[2] and len(scanned[0][1]) > 9
    seqloom("db", "create", "two.duckdb", "--models", "two.hmm.gz")
    assert outputs(seqloom, "hmmscan", "-q", "p.fasta", "-d", "one.hmm", "-d", "two.duckdb") == scanned[0]
    assert outputs(seqloom, "hmmscan", "-q", "p.fasta", "-d", "all.duckdb", "--threads", "2", "--volume-residues",
                   "200") == scanned[0]


def test_looking_into_one(files: Path, seqloom: Callable) -> None:
    info = json.loads(seqloom("db", "info", "all.duckdb", "--format", "json").out)[0]
    assert (info["models"], info["positions"], info["type"], info["title"]) == (
        5, 3 * 149 + 43, "protein models", "one.hmm, two.hmm.gz")
    assert seqloom("db", "list-models", "all.duckdb", "--like", "t%").out == (
        "ordinal\tname\taccession\tlength\tdescription\n2\ttoy\tPF1.2\t3\t\n4\tthird\t\t149\t\n")
    assert seqloom("db", "extract", "all.duckdb", "all").out == Path("all.hmm").read_text()
    older = seqloom("db", "extract", "all.duckdb", "older", "PF00042", "PF1.2").out
    assert re.findall("NAME +(.*)", older) == ["older", "second", "toy"] and older.startswith("HMMER3/b")
    Path("ids").write_text("toy \nthird\n")
    seqloom("db", "extract", "all.duckdb", "--ids", "ids", "-o", "some.hmm")
    assert re.findall("NAME +(.*)", Path("some.hmm").read_text()) == ["toy", "third"]
    assert seqloom("db", "check", "all.duckdb").err == "seqloom: all.duckdb: 5 models, 490 positions; all is well\n"


def test_appending(files: Path, seqloom: Callable) -> None:
    done = seqloom("db", "create", "some.duckdb", "--models", "one.hmm", "--title", "some")
    assert (done.status, done.err) == (0, "seqloom: some.duckdb: 2 protein models, 298 positions\n")
    more = seqloom("db", "append", "some.duckdb", "two.hmm.gz")
    assert more.err == "seqloom: some.duckdb: 3 models added, 5 in all\n"
    facts = [json.loads(seqloom("db", "info", name, "--format", "json").out)[0]["fingerprint"]
             for name in ("some.duckdb", "all.duckdb")]
    assert facts[0] == facts[1]
    again = seqloom("db", "append", "some.duckdb", "one.hmm")
    assert again.status == 1 and "model 'globins4' is there already, model 1 of the database" in again.err
    skipped = seqloom("db", "append", "some.duckdb", "one.hmm", "--on-bad", "skip")
    assert skipped.status == 0 and skipped.err.endswith("0 models added, 5 in all\n")


@pytest.mark.parametrize(("words", "status", "said"), [
    (("create", "n.duckdb", "--models", "p.fasta"), 1, "p.fasta: holds sequences (fasta) and models are wanted"),
    (("create", "n.duckdb", "--models", "all.duckdb"), 1, "is a database file and a file of models is wanted"),
    (("create", "n.duckdb", "--models", "one.hmm", "one.hmm"), 1, "model 'globins4' is there already, in one.hmm"),
    (("create", "n.duckdb", "--models", "one.hmm", "--on-bad", "rename"), 2, "must be error or skip for models"),
    (("create", "n.duckdb", "--models", "one.hmm", "--type", "protein"), 2, "--type is for sequences"),
    (("create", "all.duckdb", "--models", "one.hmm"), 1, "seqloom db append"),
    (("create", "n.duckdb", "--models", "none.hmm"), 1, "none.hmm: there is no such file"),
    (("append", "all.duckdb", "p.fasta"), 1, "p.fasta: holds sequences (fasta) and models are wanted"),
    (("append", "all.duckdb", "one.hmm", "--taxid", "9606"), 2, "models have no taxids"),
    (("extract", "all.duckdb", "none"), 1, "all.duckdb: no model 'none'; seqloom db list-models shows the names"),
    (("extract", "all.duckdb", "toy", "--range", "1-2"), 2, "--range is for sequences, and all.duckdb is a model"),
    (("extract", "all.duckdb"), 2, "name the models to extract"),
    (("list-sequences", "all.duckdb"), 1, "all.duckdb is a model database, not a sequence database"),
    (("list-models", "p.fasta"), 1, "p.fasta is not a DuckDB file"),
])
def test_misuse(files: Path, seqloom: Callable, words: tuple[str, ...], status: int, said: str) -> None:
    done = seqloom("db", *words)
    assert done.status == status and said in done.err and done.err.count("\n") == 1
    assert not Path("n.duckdb").exists()


def test_databases_of_the_other_kind(files: Path, seqloom: Callable) -> None:
    seqloom("db", "create", "p.duckdb", "p.fasta")
    for words, said in (
            (("hmmsearch", "-q", "p.duckdb", "-d", "p.duckdb"), "p.duckdb is a sequence database, not a model"),
            (("hmmscan", "-q", "p.fasta", "-d", "p.duckdb"), "p.duckdb is a sequence database, not a model database"),
            (("hmmsearch", "-q", "all.hmm", "-d", "all.duckdb"), "all.duckdb is a model database, not a sequence"),
            (("blastp", "-q", "p.fasta", "-d", "all.duckdb"), "all.duckdb is a model database, not a sequence")):
        done = seqloom(*words, *CPU)
        assert done.status == 1 and said in done.err and done.err.count("\n") == 1


def test_damage_stops_a_search_in_one_line(files: Path, seqloom: Callable) -> None:
    """Swapped names, and arrays with the checksum of others."""
    with duckdb.connect("all.duckdb") as connection:
        connection.execute("UPDATE models SET name = CASE ordinal WHEN 0 THEN 'second' ELSE 'globins4' END "
                           "WHERE ordinal < 2")
    for words in (("hmmsearch", "-q", "all.duckdb", "-d", "p.fasta"), ("hmmscan", "-q", "p.fasta", "-d", "all.duckdb")):
        done = seqloom(*words, *CPU)
        assert done.status == 1 and done.err.count("\n") == 1 and "model 1, 'second': its bytes and its row" in done.err
    done = seqloom("db", "check", "all.duckdb")
    assert done.status == 1 and "all.duckdb is damaged (2 problems)" in done.err and "model files" in done.err


def test_a_stored_run_has_its_models(files: Path, seqloom: Callable) -> None:
    """Reports of it are written when the database is gone."""
    first = seqloom("hmmsearch", "-q", "all.duckdb", "-d", "p.fasta", "--backend", "cpu", "-o", "out.txt")
    assert first.status == 0, first.err
    Path("all.duckdb").unlink()
    seqloom("runs", "write", "last", "-o", "again.txt")
    assert without_remarks(Path("again.txt"))[1:] == without_remarks(Path("out.txt"))[1:]


def test_a_changed_database_is_known_when_a_run_goes_on(files: Path, seqloom: Callable) -> None:
    with pytest.raises(Cancelled, match="parts of the work are kept"):
        search("hmmscan", "p.fasta", "all.duckdb", backend="cpu", volume_residues=150, progress=StopAtPart(1))
    kept = Path("all.duckdb").read_bytes()
    with ModelDatabase.open("all.duckdb") as database:
        Path("more.hmm").write_text(renamed(model_text(length=5), "new"))
        database.append("more.hmm")
    with pytest.raises(ResumeError, match=r"all\.duckdb has changed since it was begun"):
        resume("last")
    Path("all.duckdb").write_bytes(kept)
    assert len(resume("last")) > 3


def test_another_version_of_what_is_packed(files: Path, seqloom: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Hmmer3Reader, "packing", 99)
    done = seqloom("hmmscan", "-q", "p.fasta", "-d", "all.duckdb", *CPU)
    assert done.status == 1 and "packed by version 1 of 'hmmer3', and this is version 99; make it anew" in done.err
    monkeypatch.setattr(Hmmer3Reader, "name", "else")
    with pytest.raises(PluginError, match="no installed plugin reads models of the format 'hmmer3'"):
        search("hmmscan", "p.fasta", "all.duckdb", backend="cpu", store=False)
