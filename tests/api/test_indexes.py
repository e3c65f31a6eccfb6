"""Indexes stored with a database: searches take them where they fit, and give the same rows with and without."""

import errno
import os

import numpy as np
import pytest
import seqloom
from seqloom import indexes
from seqloom.core.errors import BudgetError, Cancelled, DamagedError, OptionError, StoreError, UnknownNameError
from seqloom.core.kernels import jit
from seqloom.core.progress import Progress
from seqloom.indexes import build_index, drop_indexes, list_indexes
from seqloom.searches import resume, search
from seqloom.storage.sequences.database import SequenceDatabase

from tests.stopping import StopAtPart, Watched

ACROSS = {"mum": True, "length": 12, "both": True}


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Three related genomes in two databases, and a query."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    genomes = ["".join(rng.choice(list("ACGT"), n)) for n in (3000, 2000, 900)]
    genomes[1] += "NNRY" + genomes[0][500:900]
    for name, records in (("one", genomes[:2]), ("two", genomes[2:])):
        (tmp_path / f"{name}.fa").write_text("".join(f">{name}{n}\n{r}\n" for n, r in enumerate(records)))
        seqloom.Database.create(tmp_path / f"{name}.duckdb", tmp_path / f"{name}.fa").close()
    (tmp_path / "query.fa").write_text(f">q\n{genomes[0][100:1500]}NN{genomes[2]}\n>r\n{genomes[1][::-1]}\n")
    return tmp_path


def mum(*databases, **more):
    run = search("mum", "query.fa", *databases, store=False, **{"backend": "cpu", **ACROSS, **more})
    rows = run.alignments.to_pylist()
    slots = {row["slot"]: row for row in run.slots.to_pylist()}
    assert rows
    return rows, slots["index.references"]


def test_searches_take_what_is_stored_and_give_the_same_rows(files):
    wanted, slot = mum("one.duckdb", "two.duckdb")
    assert slot["plugin"] == "minimizer-index" and slot["counters"] == '{"made": 2}'
    made = build_index("one.duckdb")
    assert (made.plugin, made.state, made.options) == ("fm-index", "ready", {"bucket": 128, "sample": 8})
    rows, slot = mum("one.duckdb", "two.duckdb")  # one of two has it: not worth another route
    assert rows == wanted and slot["plugin"] == "minimizer-index"
    build_index("two.duckdb")
    rows, slot = mum("one.duckdb", "two.duckdb")
    assert rows == wanted and slot["plugin"] == "fm-index" and slot["counters"] == '{"read": 2}'
    rows, slot = mum("one.duckdb", "two.duckdb", stages=["index.references=minimizer-index"])
    assert rows == wanted and slot["plugin"] == "minimizer-index"
    (files / "mine.toml").write_text('base = "mum"\n[stages]\n"index.references" = "minimizer-index"\n')
    run = search("mine.toml", "query.fa", "one.duckdb", store=False, backend="cpu", **ACROSS)
    assert "minimizer-index" in run.slots["plugin"].to_pylist()
    for cut in ({"volume_residues": 500}, {"volume_residues": 1}, {"batch_queries": 1, "threads": 2}, {"memory": "4G"},
                {"backend": "reference"}):
        assert mum("one.duckdb", "two.duckdb", **cut)[0] == wanted, cut


def test_many_queries_are_looked_up_in_an_index_of_their_own(files, monkeypatch):
    build_index("one.duckdb")
    rows, slot = mum("one.duckdb")
    assert slot["plugin"] == "fm-index"
    monkeypatch.setattr("seqloom.indexes.MANY_RESIDUES", 1000)
    found, slot = mum("one.duckdb")
    assert found == rows and slot["plugin"] == "minimizer-index"
    found, slot = mum("one.duckdb", stages=["index.references=fm-index", "seed.matches=fm-matches"])
    assert found == rows and slot["plugin"] == "fm-index"


@pytest.mark.parametrize("backend", ["cpu", "reference"])
def test_residues_that_nobody_looks_at_are_not_read(files, monkeypatch, backend):
    with seqloom.Database.open("one.duckdb") as database:
        genome = database.extract(["one0"]).text(0)
    reads = {"a": genome[100:160], "b": genome[2000:2040]}

    def places():
        run = search("exact", reads, "one.duckdb", "two.duckdb", store=False, backend=backend, both=True)
        return run.alignments.select(["qseqid", "sseqid", "sstart", "send"]).to_pylist()

    wanted, read = places(), SequenceDatabase.residues
    assert [(row["qseqid"], row["sstart"]) for row in wanted] == [("a", 101), ("b", 2001)]
    for name in ("one.duckdb", "two.duckdb"):
        build_index(name)
    asked = []
    monkeypatch.setattr(SequenceDatabase, "residues", lambda self, *of: asked.append(of) or read(self, *of))
    assert places() == wanted and not asked
    assert mum("one.duckdb", "two.duckdb")[1]["plugin"] == "fm-index" and asked, "extends matches in the text"


def test_layouts_are_those_that_are_stored(files, capsys):
    build_index("one.duckdb", settings=["bucket=32", "sample=1"])
    wanted, slot = mum("one.duckdb")
    assert slot["options"] == '{"bucket": 32, "sample": 1}' and slot["counters"] == '{"read": 1}'
    route = ["index.references=fm-index", "seed.matches=fm-matches"]
    rows, slot = mum("one.duckdb", stages=route, settings=["index.references.bucket=64"])
    assert rows == wanted and slot["options"].startswith('{"bucket": 64') and slot["counters"] == '{"made": 1}'
    assert "of no use here: made with bucket=32 and not 64, sample=1 and not 8; it is" in capsys.readouterr().err


def test_any_index_of_targets_that_says_what_it_depends_on_can_be_stored(files):
    wanted, _ = mum("one.duckdb")
    build_index("one.duckdb", "minimizer-index", ["length=12"])
    build_index("one.duckdb", "minimizer-index", ["length=30", "acgt-only=yes"])
    assert len(list_indexes("one.duckdb")) == 2
    rows, slot = mum("one.duckdb")
    assert rows == wanted and slot["counters"] == '{"read": 1}'
    assert mum("one.duckdb", length=13)[1]["counters"] == '{"made": 1}'


def test_an_index_is_built_once_and_again_when_it_is_stale(files):
    said = []
    build_index("one.duckdb", notice=said.append)
    first = list_indexes("one.duckdb")
    build_index("one.duckdb", notice=said.append)
    assert said == ["one.duckdb: index fm-index is there already"] and list_indexes("one.duckdb") == first
    (files / "more.fa").write_text(">more\nACGTACGTTTGACCA\n")
    with seqloom.Database.open("one.duckdb", read_only=False) as database:
        database.append("more.fa")
    assert list_indexes("one.duckdb")[0].state == "made of other sequences than the database holds now"
    wanted, slot = mum("one.duckdb")
    assert slot["plugin"] == "minimizer-index"
    build_index("one.duckdb", notice=said.append)
    assert said[1] == ("one.duckdb: index fm-index is built anew: the stored one is made of other sequences than the "
                       "database holds now")
    build_index("one.duckdb", settings=["sample=4"], notice=said.append)
    assert said[2].endswith("the stored one is made with sample=8 and not 4")
    assert [i.state for i in list_indexes("one.duckdb")] == ["ready"]
    assert mum("one.duckdb")[0] == wanted


def test_indexes_of_another_version_are_not_read(files, monkeypatch, capsys):
    from seqloom.plugins.exact_match.fm_index_reference import FmIndex

    build_index("one.duckdb")
    monkeypatch.setattr(FmIndex, "version", 2)
    assert list_indexes("one.duckdb")[0].state == "made by version 1 of the plugin, this is version 2"
    _, slot = mum("one.duckdb", stages=["index.references=fm-index", "seed.matches=fm-matches"])
    assert slot["counters"] == '{"made": 1}'
    assert "made by version 1 of the plugin, this is version 2; it is made for this search" in capsys.readouterr().err
    build_index("one.duckdb")
    assert [i.state for i in list_indexes("one.duckdb")] == ["ready"]


def test_it_is_built_in_pieces_that_fit_the_memory(files, monkeypatch):
    wanted, _ = mum("one.duckdb")
    monkeypatch.setattr(indexes, "data_budget", lambda budget, *shares: budget)
    progress = Watched()
    made = build_index("one.duckdb", memory=18 * 4000, progress=progress)
    assert made.pieces == 2 and progress.total == 5404 and {3000, 5404} <= set(progress.seen)
    rows, slot = mum("one.duckdb")
    assert rows == wanted and slot["counters"] == '{"read": 2}'
    drop_indexes("one.duckdb")
    with pytest.raises(BudgetError, match=r"the longest sequence .3,000 residues.* needs .* raise --memory"):
        build_index("one.duckdb", memory=1000)
    assert not list_indexes("one.duckdb")


def test_a_build_that_is_stopped_leaves_nothing(files):
    progress = Progress()
    progress.cancellation.cancel()
    with pytest.raises(Cancelled):
        build_index("one.duckdb", progress=progress)
    assert not list_indexes("one.duckdb")


def test_damage_is_told_and_can_be_mended(files):
    import duckdb

    build_index("one.duckdb")
    with duckdb.connect("one.duckdb") as connection:
        connection.execute("UPDATE index_0_0 SET checksum = checksum + 1")
    with pytest.raises(DamagedError, match="does not match its checksum; make it anew: seqloom index drop"):
        mum("one.duckdb")
    assert drop_indexes("one.duckdb", ["fm-index"]) == 1
    mum("one.duckdb")


@pytest.mark.parametrize(("plugin", "settings", "error", "message"), [
    ("nonsense", [], UnknownNameError, "unknown index 'nonsense'"),
    ("lane-interleaved", [], OptionError, "can't be stored"),
    ("fm-index", ["bucket=33"], OptionError, "power of two"),
    ("fm-index", ["size=1"], UnknownNameError, "size"),
    ("fm-index", ["bucket"], OptionError, "OPTION=VALUE"),
    ("minimizer-index", ["length=0"], OptionError, "at least 1"),
])
def test_wrong_requests_are_refused(files, plugin, settings, error, message):
    with pytest.raises(error, match=message):
        build_index("one.duckdb", plugin, settings)
    assert not list_indexes("one.duckdb")


def test_dropping_what_is_not_there_is_refused(files):
    with pytest.raises(UnknownNameError, match=r"unknown index 'fm-index' of one.duckdb"):
        drop_indexes("one.duckdb", ["fm-index"])
    assert drop_indexes("one.duckdb") == 0


def test_interrupted_searches_go_on_with_or_without_the_index(files):
    build_index("one.duckdb")
    wanted, _ = mum("one.duckdb")
    with pytest.raises(Cancelled):
        search("mum", "query.fa", "one.duckdb", backend="cpu", volume_residues=1, progress=StopAtPart(1), **ACROSS)
    drop_indexes("one.duckdb")
    run = resume("last")
    assert run.alignments.to_pylist() == wanted


def images(database: str) -> list[str]:
    there = os.listdir(f"{database}.indexes") if os.path.exists(f"{database}.indexes") else []
    return sorted(name for name in there if not name.endswith(".sound"))


def test_a_mapped_index_gives_the_same_rows_by_the_same_kernels(files, monkeypatch, capsys):
    build_index("one.duckdb")
    wanted, _ = mum("one.duckdb")
    assert build_index("one.duckdb", mapped=True).mapped == "yes"
    compiled = []
    monkeypatch.setattr(jit, "on_compile", compiled.append)
    for more in ({}, {"threads": 2}, {"memory": "4G"}):
        rows, slot = mum("one.duckdb", **more)
        assert rows == wanted and slot["counters"] == '{"read": 1}'
    assert not compiled and not capsys.readouterr().err


def test_large_indexes_are_mapped_and_others_as_asked_for(files, monkeypatch):
    said = []
    assert build_index("one.duckdb", notice=said.append).mapped == "no"
    first = list_indexes("one.duckdb")
    assert build_index("one.duckdb", mapped=True, notice=said.append).mapped == "yes"
    assert said == ["one.duckdb: index fm-index is there already"] and images("one.duckdb") == ["index_0_0.image"]
    assert [(i.created, i.mapped) for i in list_indexes("one.duckdb")] == [(first[0].created, "yes")]
    assert build_index("one.duckdb").mapped == "yes"  # stays as it is
    assert build_index("one.duckdb", mapped=False).mapped == "no" and not images("one.duckdb")
    monkeypatch.setattr(indexes, "MAPPED_FROM", 1000)
    assert build_index("one.duckdb", mapped=False).mapped == "no"
    assert build_index("one.duckdb").mapped == "yes"
    assert build_index("one.duckdb", settings=["sample=4"]).mapped == "yes"
    assert images("one.duckdb") == ["index_1_0.image"]
    drop_indexes("one.duckdb")
    assert not images("one.duckdb")


def test_images_of_former_sequences_are_removed(files):
    build_index("one.duckdb", mapped=True)
    (files / "more.fa").write_text(">more\nACGTACGTTTGACCA\n")
    with seqloom.Database.open("one.duckdb", read_only=False) as database:
        database.append("more.fa")
    assert not images("one.duckdb") and list_indexes("one.duckdb")[0].mapped == "no"


@pytest.mark.parametrize("step", ["mkdir", "fsync"])
def test_an_index_that_can_not_be_mapped_is_kept(files, monkeypatch, step):
    def fail(*_, **__):
        number = errno.EROFS if step == "mkdir" else errno.ENOSPC
        raise OSError(number, os.strerror(number))

    if step == "mkdir":
        monkeypatch.setattr("pathlib.Path.mkdir", fail)
    else:
        sync = os.fsync
        monkeypatch.setattr("os.fsync", lambda number: (fail if ".indexes" in os.readlink(f"/proc/self/fd/{number}")
                                                        else sync)(number))
    why = "Read-only file system" if step == "mkdir" else "No space left on device"
    told = rf"one.duckdb: index fm-index is stored, but can't be mapped: .*one.duckdb.indexes: {why}"
    with pytest.raises(StoreError, match=told):
        build_index("one.duckdb", mapped=True)
    assert [(i.state, i.mapped) for i in list_indexes("one.duckdb")] == [("ready", "no")] and not images("one.duckdb")
    said = []
    monkeypatch.setattr(indexes, "MAPPED_FROM", 1000)
    assert build_index("one.duckdb", notice=said.append).mapped == "no"
    assert said[0].endswith("is there already") and why in said[1] and len(said) == 2
    assert mum("one.duckdb")[1]["counters"] == '{"read": 1}'


def test_a_build_that_is_stopped_while_it_maps_keeps_the_index(files, monkeypatch):
    progress = Progress()
    finish = indexes.IndexWriter.finish
    monkeypatch.setattr(indexes.IndexWriter, "finish",
                        lambda *given: (finish(*given), progress.cancellation.cancel()))
    with pytest.raises(Cancelled):
        build_index("one.duckdb", mapped=True, progress=progress)
    assert [(i.state, i.mapped) for i in list_indexes("one.duckdb")] == [("ready", "no")] and not images("one.duckdb")


def test_images_that_do_not_fit_are_told_once_and_not_used(files, capsys):
    build_index("one.duckdb", mapped=True)
    wanted, _ = mum("one.duckdb")
    image = files / "one.duckdb.indexes" / "index_0_0.image"
    whole = image.read_bytes()
    for content, why in ((whole[:-1], "index_0_0.image has"), (whole[:3], "index_0_0.image has 3 bytes"),
                         (whole.replace(b"sample", b"simple"), "is of another index")):
        image.write_bytes(content)
        assert mum("one.duckdb")[0] == wanted
        told = capsys.readouterr().err
        assert told.startswith("seqloom: one.duckdb: its stored index fm-index can't be mapped: one.duckdb.indexes/")
        assert why in told and told.endswith("; it is read; seqloom index build --map mends it\n")
        assert why in list_indexes("one.duckdb")[0].mapped
    assert build_index("one.duckdb", mapped=True).mapped == "yes" and image.read_bytes() == whole
    os.chmod(files / "one.duckdb.indexes", 0o500)
    os.chmod("one.duckdb", 0o400)
    assert mum("one.duckdb")[0] == wanted and not capsys.readouterr().err
