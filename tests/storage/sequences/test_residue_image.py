"""The image of residues: read as the database is, and left alone where it isn't what the database is."""

import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from seqloom.core.alphabet import NUCLEOTIDE, PROTEIN
from seqloom.core.sequences import SequenceBatch
from seqloom.storage.sequences import residue_image, writing
from seqloom.storage.sequences.check import problems
from seqloom.storage.sequences.database import SequenceDatabase
from seqloom.storage.sequences.residue_image import ImageWriter, ResidueImage, path_of
from seqloom.storage.sequences.sources import ChainedSource, DatabaseSource

BLOCK = 64
CHUNK = 2 * BLOCK


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(residue_image, "BLOCK", BLOCK)
    monkeypatch.setattr(residue_image, "LEAST", BLOCK + 1)
    monkeypatch.setattr(writing, "CHUNK_RESIDUES", {"protein": CHUNK, "nucleotide": CHUNK})


def batch(seed: int = 1, count: int = 40, alphabet=PROTEIN, prefix: str = "s") -> SequenceBatch:
    generator = np.random.default_rng(seed)
    top = 4 if alphabet is NUCLEOTIDE else 28
    return SequenceBatch.of(alphabet, [generator.integers(0, top, n).astype(np.uint8)
                                       for n in generator.integers(0, 60, count)],
                            [f"{prefix}{n}" for n in range(count)])


def make(path: Path, *batches: SequenceBatch) -> SequenceBatch:
    """A database at ``path``; gives all of its sequences."""
    SequenceDatabase.create(path, batches).close()
    return SequenceBatch.concat(list(batches))


def all_residues(path: Path, residues: int = 500) -> np.ndarray:
    """Of a database, volume by volume."""
    with SequenceDatabase.open(path) as database:
        source = DatabaseSource(database)
        return np.concatenate([source.read(span).residues for span in source.plan(residues)])


def test_a_new_database_has_one(tmp_path: Path) -> None:
    whole = make(tmp_path / "d.duckdb", batch(1), batch(2, prefix="t"))
    assert sorted(os.listdir(tmp_path)) == ["d.duckdb", "d.duckdb.residues"]
    with SequenceDatabase.open(tmp_path / "d.duckdb") as database:
        image, why = database.open_image()
        assert image is not None and not why
        assert np.array_equal(image.residues, whole.residues)
        assert image.residues.flags.writeable, "kernels are compiled for such arrays"
        assert not problems(database)


def test_one_of_few_residues_has_none(tmp_path: Path) -> None:
    made = make(tmp_path / "d.duckdb", batch(1, 2))
    assert np.array_equal(all_residues(tmp_path / "d.duckdb"), made.residues)
    assert os.listdir(tmp_path) == ["d.duckdb"]


def test_volumes_are_read_from_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Residues aren't copied; those of a stretch are compared with their checksums, and no others."""
    whole = make(tmp_path / "d.duckdb", batch(1), batch(2, prefix="t"))
    with SequenceDatabase.open(tmp_path / "d.duckdb") as database:
        monkeypatch.setattr(database, "chunk", lambda chunk: pytest.fail("read from the database"))
        source = ChainedSource([DatabaseSource(database, 2)])
        image = database.image()
        first = 0
        for span in source.plan(600):
            volume = source.read(span)
            total = volume.total_residues
            volume.load()
            assert not volume.loaded
            assert np.array_equal(volume.stretch(5, total - 7), whole.residues[first + 5 : first + total - 7])
            assert np.shares_memory(volume.residues, image.residues)
            assert np.array_equal(volume.residues, whole.residues[first : first + total])
            volume.rest()
            assert np.array_equal(volume.residues, whole.residues[first : first + total])
            first += total
            assert image._sound[: first // BLOCK].all() and not image._sound[-(-first // BLOCK) :].any()
        numbers = np.array([3, 4, 17, 70])
        assert np.array_equal(database.fetch(numbers).residues, np.concatenate([whole[n] for n in numbers]))


@pytest.mark.parametrize("change", ["", "cut", "longer", "flipped", "trailer", "header", "another", "folder"])
def test_a_search_does_without_one_that_is_missing_or_damaged(tmp_path: Path, change: str, caplog) -> None:
    """The residues are those of the database in any case, and the next search has an image again."""
    path = tmp_path / "d.duckdb"
    whole = make(path, batch(1))
    image, whole_image = path_of(path), path_of(path).read_bytes()
    image.unlink()
    content = bytearray(whole_image)
    places = {"flipped": residue_image.PAGE + 200, "trailer": -6, "header": 30}
    if change in places:
        content[places[change]] ^= 16
    if change == "another":
        make(tmp_path / "other.duckdb", batch(5))
        shutil.copy(path_of(tmp_path / "other.duckdb"), image)
    elif change == "folder":
        image.mkdir()
    elif change:
        image.write_bytes(content[:-1] if change == "cut" else bytes(content) + bytes(change == "longer"))
    if change:
        with SequenceDatabase.open(path) as database:
            found = problems(database)
        assert len(found) == 1 and found[0].startswith("d.duckdb.residues") and "delete it" in found[0]
    for _ in range(2):
        assert np.array_equal(all_residues(path), whole.residues)
    assert ("damaged" in caplog.text) == (change == "flipped")
    if change == "folder":
        assert image.is_dir()
    else:
        assert image.read_bytes() == whole_image
        assert sorted(os.listdir(tmp_path))[:2] == ["d.duckdb", "d.duckdb.residues"]


def test_codes_that_no_alphabet_has_are_not_used(tmp_path: Path) -> None:
    """Even where every checksum is right: kernels look things up by codes."""
    path = tmp_path / "d.duckdb"
    whole = make(path, batch(1))
    with SequenceDatabase.open(path) as database:
        said = database._about.said
    wrong = whole.residues.copy()
    wrong[100] = 200
    writer = ImageWriter(path)
    writer.add(wrong)
    assert writer.finish(said)
    assert np.array_equal(all_residues(path), whole.residues)


def test_none_is_made_where_none_is_wanted_or_there_is_no_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEQLOOM_IMAGES", "no")
    whole = make(tmp_path / "d.duckdb", batch(1))
    monkeypatch.delenv("SEQLOOM_IMAGES")
    monkeypatch.setattr(residue_image, "SPARE", 1 << 60)
    make(tmp_path / "e.duckdb", batch(1))
    monkeypatch.setattr(residue_image, "SPARE", 0)
    monkeypatch.setattr("os.pwrite", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    make(tmp_path / "f.duckdb", batch(1))
    for name in "def":
        assert np.array_equal(all_residues(tmp_path / f"{name}.duckdb"), whole.residues)
    assert sorted(os.listdir(tmp_path)) == ["d.duckdb", "e.duckdb", "f.duckdb"]


@pytest.mark.parametrize("unnamed", [True, False])
def test_it_has_no_name_before_it_is_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unnamed: bool) -> None:
    """Where files need a name, what a killed writer left goes when the next one begins; a living one's doesn't."""
    if not unnamed:
        monkeypatch.delattr("os.O_TMPFILE", raising=False)
    path = tmp_path / "d.duckdb"
    (tmp_path / "d.duckdb.residues.1-00000000.part").write_bytes(b"left")
    one, other = ImageWriter(path), ImageWriter(path)
    codes = batch(1).residues
    for writer in (one, other):
        writer.add(codes[:100])
    there = sorted(os.listdir(tmp_path))
    assert len(there) == (1 if unnamed else 2)
    one.discard()
    other.add(codes[100:])
    assert other.finish("about")
    image, why = ResidueImage.open(path, "about", len(codes), 27)
    assert image is not None and not why
    assert image.sound(0, len(codes)) and np.array_equal(image.residues, codes)
    assert "d.duckdb.residues" in os.listdir(tmp_path)
    if not unnamed:
        assert os.listdir(tmp_path) == ["d.duckdb.residues"]


def test_appending_makes_it_stale(tmp_path: Path) -> None:
    path = tmp_path / "d.duckdb"
    whole = make(path, batch(1))
    with SequenceDatabase.open(path, read_only=False) as database:
        more = batch(2, 3, prefix="t")
        database.append([more])
        assert os.listdir(tmp_path) == ["d.duckdb"]
    assert np.array_equal(all_residues(path), np.concatenate([whole.residues, more.residues]))
    assert sorted(os.listdir(tmp_path)) == ["d.duckdb", "d.duckdb.residues"]


def test_a_folder_that_cannot_be_written_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "d.duckdb"
    whole = make(path, batch(1))
    path_of(path).unlink()
    monkeypatch.setattr("os.access", lambda *_: False)
    assert np.array_equal(all_residues(path), whole.residues)
    assert os.listdir(tmp_path) == ["d.duckdb"]
