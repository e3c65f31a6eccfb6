"""Entries of a database: stretches, strands, fields; against blastdbcmd where it is installed."""

import io
import random
import shutil
import subprocess

import pytest
from seqloom.core.errors import InputError, UsageError
from seqloom.database import Database
from seqloom.entries import Entry, bounds, check_entry_format, entries_of, look_up, write_entries

needs_blast = pytest.mark.skipif(not all(map(shutil.which, ("makeblastdb", "blastdbcmd"))),
                                 reason="BLAST+ is not installed")
NAMES = ("sp|P53508|NAME_YEAST first OS=x", "tr|Q9XYZ1|Q9XYZ1_HUMAN second", "own third one", "NP_001234.2 ref [Homo]",
         "pdb|1ABC|A chain", "gnl|mine|tag1 general", "lcl|loc1 local", "gi|12345|gb|AAA12345.1| gb one")
FIELDS = "%a|%g|%o|%i|%t|%l|%T|%X|%e|%L|%C|%S|%N|%B|%K|%P|%s"


@pytest.fixture(scope="module", params=["prot", "nucl"])
def made(request, tmp_path_factory):
    """A kind, a folder with a database of BLAST's, ``base``, and ours of the same sequences."""
    folder, draw = tmp_path_factory.mktemp(request.param), random.Random(request.param)
    letters = "ACDEFGHIKLMNPQRSTVWYXBZ" if request.param == "prot" else "ACGTACGTACGTACGTN"
    (folder / "x.fa").write_text("".join(
        f">{name}\n{''.join(draw.choices(letters, k=draw.randint(90, 300)))}\n" for name in NAMES))
    Database.create(folder / "x.duckdb", folder / "x.fa").close()
    if shutil.which("makeblastdb"):
        subprocess.run(["makeblastdb", "-in", "x.fa", "-dbtype", request.param, "-out", "base", "-parse_seqids"],
                       cwd=folder, check=True, capture_output=True)
    return request.param, folder


def written(folder, entries, **options) -> str:
    stream = io.StringIO()
    with Database.open(folder / "x.duckdb") as database:
        write_entries(look_up(database, entries), stream, **options)
    return stream.getvalue()


def peer(folder, *words: str) -> str:
    return subprocess.run(["blastdbcmd", "-db", "base", *words], cwd=folder, capture_output=True, text=True,
                          check=True).stdout


@needs_blast
def test_fields_of_all_sequences_as_blast(made):
    assert written(made[1], None, outfmt=FIELDS) == peer(made[1], "-entry", "all", "-outfmt", FIELDS)


@needs_blast
@pytest.mark.parametrize("width", [1, 60, 80, 1000])
def test_whole_sequences_as_blast(made, width):
    names = ["Q9XYZ1", "P53508", "NP_001234.2"]
    text = written(made[1], [Entry(name) for name in names], line_length=width)
    theirs = peer(made[1], "-entry", ",".join(names), "-line_length", str(width), "-long_seqids")
    assert text == theirs.replace(">ref|NP_001234.2| ", ">NP_001234.2 ").replace(">lcl|NP", ">NP")


@needs_blast
def test_stretches_and_strands_from_a_file_as_blast(made):
    kind, folder = made
    lines = ["P53508 3-7", "Q9XYZ1", "own 5-", "P53508 80-1000", "loc1 9-9 plus"]
    lines += ["P53508 minus 3-70", "own minus"] if kind == "nucl" else []
    (folder / "list").write_text("\n".join(lines) + "\n\n")
    text = written(folder, [*entries_of(lines, "list")], outfmt="%a %l %s")
    assert text == peer(folder, "-entry_batch", "list", "-outfmt", "%a %l %s")
    heads = [line.split()[0] for line in written(folder, [*entries_of(lines, "list")]).splitlines() if line[0] == ">"]
    theirs = [line.split()[0].replace("lcl|own", "own") for line in
              peer(folder, "-entry_batch", "list", "-long_seqids").splitlines() if line[0] == ">"]
    assert heads == theirs


def test_what_is_not_there_is_refused_before_anything_is_written(made):
    kind, folder = made
    for entries, said in (([Entry("P53508"), Entry("nobody")], "nobody"),
                          ([Entry("P53508", 1000)], "has [0-9]+ residues, and a stretch from 1,000 on")):
        with pytest.raises(InputError, match=said):
            written(folder, entries)
    if kind == "prot":
        with pytest.raises(UsageError, match="no other strand"):
            written(folder, [Entry("P53508", minus=True)])


def test_ranges():
    assert (bounds("3-7"), bounds("3-"), bounds("5")) == ((3, 7), (3, None), (5, 5))
    for text, said in (("0-3", "from 1"), ("7-3", "behind the last"), ("a-b", "takes FIRST-LAST"), ("3..7", "FIRST")):
        with pytest.raises(UsageError, match=said):
            bounds(text)
    with pytest.raises(UsageError, match="here: line 2: 'x' is no range"):
        list(entries_of(["a 1-2", "b x"], "here"))


@pytest.mark.parametrize(("text", "said"), [("hello", "has no field"), ("%q", "no such field"), ("%a %h", "hashes"),
                                            ("%m", "masks")])
def test_formats_that_there_are_not(text, said):
    with pytest.raises(UsageError, match=said):
        check_entry_format(text)


def test_several_definitions_and_lower_case(tmp_path):
    (tmp_path / "x.fa").write_text(">a one\x01b two\nACgtNNac\n")
    Database.create(tmp_path / "x.duckdb", tmp_path / "x.fa", type="nucleotide").close()
    assert written(tmp_path, [Entry("a")], first_only=True) == ">a one\nACgtNNac\n"
    assert written(tmp_path, [Entry("a")]) == ">a one >b two\nACgtNNac\n"
    assert written(tmp_path, [Entry("a", 3, 7, True)], ctrl_a=True) == ">a:c7-3 one\x01b two\ntNNac\n"
