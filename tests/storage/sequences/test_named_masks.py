"""Masks that databases carry under names: from files of every kind, read again, checked, and kept through appending."""

import subprocess

import numpy as np
import pytest
from seqloom import Database
from seqloom.cli.main import main
from seqloom.core.errors import InputError
from seqloom.core.ports import MaskedTargets
from seqloom.mask_files import read_mask
from seqloom.storage.sequences.check import problems
from seqloom.storage.sequences.database import SequenceDatabase
from seqloom.storage.sequences.sources import ChainedSource, DatabaseSource, Pick, PickedSource

FASTA = ">one first\nACGTACGTACGTacgtACGTACGT\n>two\nGGGGGGGGGGGGGGG\n>sp|P1|THREE\nACGTTGCAnnnnACGT\n"
INTERVALS = ">one first\n2 - 5\n4 - 9\n10 - 11\n>two\n>sp|P1|THREE\n0 - 0\n15 - 15\n"
ACCLIST = ">sp|P1|THREE\t15\t15\n>one first\t2\t9\n>sp|P1|THREE\t0\t0\n>one first\t10\t11\n"
ASN1 = """Blast-db-mask-info ::= {
  algo-id 2,
  algo-program dust,
  algo-options "window=64; level=20; linker=1",
  masks {
    masks {
      packed-int {
        { from 2, to 5, id local id 1 },
        { from 4, to 9, strand plus, id local id 1 },
        { from 10, to 11, id local id 1 }
      },
      packed-int { { from 0, to 0, id local id 3 }, { from 15, to 15, id local id 3 } }
    },
    more FALSE
  }
}
"""
ROWS = [(0, 2, 12), (2, 0, 1), (2, 15, 16)]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.fasta").write_text(FASTA)
    for name, text in (("intervals", INTERVALS), ("acclist", ACCLIST), ("asn1", ASN1)):
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.mark.parametrize("form", ["intervals", "acclist", "asn1"])
def test_masks_come_from_files_of_every_form(folder, form):
    with Database.create("t.duckdb", "t.fasta", masks={"dust": form, "small": "lower-case"}) as made:
        assert made.info()["masks"] == "dust, small"
        assert made.check() == []
    with SequenceDatabase.open("t.duckdb") as database:
        everything = np.arange(3)
        assert database.mask("dust", everything).rows() == ROWS
        assert database.mask("dust", np.array([2])).rows() == [(0, 0, 1), (0, 15, 16)]
        assert database.mask("small", everything).rows() == [(0, 12, 16), (2, 8, 12)]
        assert database.lower(everything).rows() == [(0, 12, 16), (2, 8, 12)]
        assert database._run("SELECT name, source FROM named_masks ORDER BY name") == [
            ("dust", form), ("small", "lower-case")]


def test_masks_are_those_that_the_command_finds(folder):
    """What ``seqloom mask`` prints in each of its forms is a mask with the same stretches."""
    (folder / "low.fasta").write_text(">a x\n" + "ACGTTGCATTAGC" + "A" * 60 + "\n>b\n" + "CA" * 40 + "GATTACAT\n")
    found = []
    for form in ("interval", "acclist", "maskinfo_asn1_text"):
        assert main(["mask", "low.fasta", "--masker", "dust", "--outfmt", form, "-o", form]) == 0
        assert main(["db", "create", f"{form}.duckdb", "low.fasta", "--mask", f"dust={form}", "--quiet"]) == 0
        with SequenceDatabase.open(f"{form}.duckdb") as database:
            found.append(database.mask("dust", np.arange(2)).rows())
    assert found[0] == found[1] == found[2] and {row[0] for row in found[0]} == {0, 1}


def test_sequences_that_are_added_have_masks_too(folder):
    (folder / "more.fasta").write_text(">four\nACGTacgt\n>five\nACGT\n")
    (folder / "more").write_text(">five\n1 - 2\n")
    Database.create("t.duckdb", "t.fasta", masks={"dust": "intervals"}).close()
    with Database.open("t.duckdb") as database:
        database.append("more.fasta", masks={"dust": "more", "small": "lower-case"})
        assert database.check() == []
    with SequenceDatabase.open("t.duckdb") as database:
        assert database.mask("dust", np.arange(5)).rows() == [*ROWS, (4, 1, 3)]
        assert database.mask("small", np.arange(5)).rows() == [(3, 4, 8)]  # of those that were added
        assert database._run("SELECT source FROM named_masks WHERE name = 'dust'") == [("intervals, more",)]


@pytest.mark.parametrize(("text", "said"), [
    (">six\n1 - 2\n", "sequence 'six' isn't among those that are added"),
    (">two\n9 - 15\n", "residues 9 to 15, from 0 on, aren't there in sequence 2, which has 15"),
    (">two\n9 - 3\n", "residues 9 to 3, from 0 on, aren't there"),
    ("1 - 2\n", "line 1: neither a title nor first and last residue"),
    (">two\n1 to 2\n", "line 2: neither a title nor first and last residue"),
    (ASN1.replace("local id 3", "local id 4"), "sequence 4 isn't among those that are added"),
    (ASN1.replace("id local id 1", "id gi 12"), "a sequence in it is told by 'id gi 12'"),
    (ASN1.replace("id local id 1", 'id local str "one"'), "a sequence in it is told by 'id local str'"),
    (ASN1[: ASN1.index("strand plus")], "it is cut off"),
    ("Seq-loc ::= int {\n", "is locations without the mask that they are of"),
])
def test_masks_that_do_not_fit_are_refused_and_nothing_is_left(folder, text, said):
    (folder / "bad").write_text(text)
    with pytest.raises(InputError, match="bad") as refused:
        Database.create("t.duckdb", "t.fasta", masks={"dust": "bad"})
    assert said in str(refused.value)
    assert not (folder / "t.duckdb").exists()


@pytest.mark.parametrize("words", [["dust"], ["dust="], ["a b=intervals"], ["lower=intervals"],
                                   ["dust=nothing.txt"], ["a=intervals", "--mask", "a=acclist"]])
def test_words_that_name_no_mask_are_refused(folder, words, capsys):
    assert main(["db", "create", "t.duckdb", "t.fasta", "--quiet", "--mask", *words]) != 0
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and "Traceback" not in said
    assert not (folder / "t.duckdb").exists()


def test_a_changed_mask_is_found(folder):
    Database.create("t.duckdb", "t.fasta", masks={"dust": "intervals"}).close()
    with SequenceDatabase.open("t.duckdb", read_only=False) as database:
        database._run("UPDATE masks SET \"end\" = 11 WHERE kind = 'dust' AND \"end\" = 12")
        database._run("INSERT INTO masks VALUES ('seg', 0, 0, 1)")
        assert problems(database) == ["mask dust: its stretches don't match their digest",
                                      "masks: stretches of a mask 'seg' that isn't there"]


def test_sources_give_stretches_by_position(folder):
    Database.create("t.duckdb", "t.fasta", masks={"dust": "intervals"}).close()
    Database.create("u.duckdb", "t.fasta", masks={"dust": "acclist", "other": "lower-case"}).close()
    with SequenceDatabase.open("t.duckdb") as one, SequenceDatabase.open("u.duckdb") as other:
        both = ChainedSource([DatabaseSource(one), DatabaseSource(other)])
        assert isinstance(both, MaskedTargets)
        assert [(path, [*masks]) for path, masks in both.masks()] == [("t.duckdb", ["dust"]),
                                                                      ("u.duckdb", ["dust", "other"])]
        assert both.masks()[0][1]["dust"] == both.masks()[1][1]["dust"] != both.masks()[1][1]["other"]
        assert both.stretches("dust", np.arange(6)).rows() == ROWS + [(3 + n, a, b) for n, a, b in ROWS]
        assert both.stretches("dust", np.array([2, 4, 5])).rows() == [(0, 0, 1), (0, 15, 16), (2, 0, 1), (2, 15, 16)]
        picked = PickedSource(DatabaseSource(one), Pick.of_names(["one"], others=True))
        assert picked.stretches("dust", np.arange(2)).rows() == [(1, 0, 1), (1, 15, 16)]
        assert picked.masks() == both.masks()[:1]


def test_large_masks_are_read_from_packed_files(folder):
    subprocess.run(["gzip", "-k", "intervals"], check=True)
    mask = read_mask("dust", "intervals.gz")
    assert (mask.names, mask.source) == (["one", "two", "sp|P1|THREE"], "intervals.gz")
    assert np.stack([mask.sequence, mask.start, mask.end]).T.tolist() == [
        [0, 2, 6], [0, 4, 10], [0, 10, 12], [2, 0, 1], [2, 15, 16]]
