"""The image of rows: a search that finds one reads what it would of the database, and leaves any other alone."""

import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import seqloom
from seqloom.core.alphabet import NUCLEOTIDE, PROTEIN
from seqloom.core.errors import DamagedError, StoreError
from seqloom.core.sequences import Intervals, SequenceBatch
from seqloom.indexes import build_index
from seqloom.storage.duck.durable import log_of
from seqloom.storage.sequences import residue_image, row_image
from seqloom.storage.sequences.check import problems
from seqloom.storage.sequences.database import SequenceDatabase
from seqloom.storage.sequences.residue_image import crc32
from seqloom.storage.sequences.row_image import RowImage, path_of

NAMES = ["one", "sp|P1|TWO_X", "drei|ü", "x" * 300, "5"]
ALL = np.arange(len(NAMES))


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(residue_image, "LEAST", 10)


def batch(alphabet=PROTEIN, prefix: str = "") -> SequenceBatch:
    generator = np.random.default_rng(1)
    residues = [generator.integers(1, 4, length).astype(np.uint8) for length in (9, 0, 30, 1, 700)]
    return replace(SequenceBatch.of(alphabet, residues, [prefix + name for name in NAMES]),
                   descriptions=["first", "", "Größe µ", "d", ""],
                   lower=Intervals.of([(0, 1, 3), (2, 0, 1), (2, 5, 9), (4, 600, 700)]))


def made(folder: Path, sequences: SequenceBatch | None = None) -> Path:
    """A database that was searched once."""
    path = folder / "d.duckdb"
    SequenceDatabase.create(path, [batch() if sequences is None else sequences]).close()
    SequenceDatabase.open_for_search(path).close()
    return path


def of_image(path: Path) -> bool:
    """Whether a search of the database at a path opens its image alone, whatever it reads."""
    with SequenceDatabase.open(path) as wanted, SequenceDatabase.open_for_search(path) as database:
        assert database._about == wanted._about and np.array_equal(database.lengths(), wanted.lengths())
        for ordinals in (ALL, ALL[1:3], ALL[[0, 4]], ALL[:0]):
            rows, others = database.rows(ordinals), wanted.rows(ordinals)
            assert {name: (rows[name].tolist(), rows[name].dtype) for name in rows} == {
                name: (others[name].tolist(), others[name].dtype) for name in others}
            assert database.lower(ordinals).rows() == wanted.lower(ordinals).rows()
        assert not problems(wanted)
        return database._opened is None


def test_a_first_search_makes_it_and_others_read_it(tmp_path: Path) -> None:
    path = made(tmp_path)
    assert path_of(path).exists() and of_image(path)
    with SequenceDatabase.open_for_search(path) as database:
        assert np.array_equal(database.fetch(ALL).residues, batch().residues)
        assert database.find_accessions(["P1"]) == {"P1": 1}
        with pytest.raises(DamagedError, match="6 sequences were looked for and 5 found"):
            database.rows(np.arange(6))


def test_searches_give_the_same(tmp_path: Path) -> None:
    path = made(tmp_path)
    query = PROTEIN.decode(batch()[4][100:400])
    with_image = seqloom.search("sw", query, path, store=False, evalue=1e6).alignments
    path_of(path).unlink()
    assert len(with_image) and seqloom.search("sw", query, path, store=False, evalue=1e6).alignments.equals(with_image)


def touched(path: Path) -> None:
    os.utime(path, ns=(0, 0))


def appended(path: Path) -> None:
    with SequenceDatabase.open(path, read_only=False) as database:
        database.append([batch(prefix="more ")])


def logged(path: Path) -> None:
    with SequenceDatabase.open(path, read_only=False) as database:
        database._run("UPDATE sequences SET name = 'other' WHERE ordinal = 0")
        assert log_of(path).exists() and RowImage.open(path) is None


def replaced(path: Path) -> None:
    about = path.stat()
    path.unlink()
    SequenceDatabase.create(path, [batch(prefix="new ")]).close()
    os.utime(path, ns=(about.st_atime_ns, about.st_mtime_ns))


@pytest.mark.parametrize("change", [touched, appended, logged, replaced])
def test_it_is_left_alone_where_the_database_has_changed(change, tmp_path: Path) -> None:
    path = made(tmp_path)
    change(path)
    assert RowImage.open(path) is None
    if change is not logged:  # which leaves a name that isn't that of the digest
        assert not of_image(path) and of_image(path)


def test_stored_indexes_are_found(tmp_path: Path) -> None:
    path = made(tmp_path, batch(NUCLEOTIDE))
    assert of_image(path)
    build_index(path)
    assert not of_image(path) and not of_image(path)
    with SequenceDatabase.open_for_search(path) as database:
        assert not database.has_row_image


@pytest.mark.parametrize("kind", ["taxids", "small", "not wanted", "too many", "too much", "of before"])
def test_some_databases_have_none(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sequences = batch()
    if kind == "taxids":
        sequences = replace(sequences, taxids=np.array([0, 0, 9606, 0, 0]))
    elif kind == "small":
        monkeypatch.setattr(residue_image, "LEAST", 1000)
    elif kind == "not wanted":
        monkeypatch.setenv("SEQLOOM_IMAGES", "no")
    elif kind == "of before":
        monkeypatch.setattr(row_image, "HEAD", {"sequences": "9999"})
    else:
        monkeypatch.setattr(row_image, *(("MOST", 500) if kind == "too much" else ("MOST_SEQUENCES", 4)))
    path = made(tmp_path, sequences)
    assert not path_of(path).exists() and not of_image(path)


def test_searches_with_a_budget_make_none(tmp_path: Path) -> None:
    path = tmp_path / "d.duckdb"
    SequenceDatabase.create(path, [batch()]).close()
    SequenceDatabase.open_for_search(path, memory=1 << 26).close()
    assert not path_of(path).exists()
    stray = tmp_path / "d.duckdb.rows.1-0a.part"  # of a killed process
    stray.write_bytes(b"")
    assert not of_image(path) and of_image(path) and not stray.exists()


def test_a_damaged_one_is_left_alone(tmp_path: Path) -> None:
    path = made(tmp_path)
    content = path_of(path).read_bytes()
    for place in range(len(content)):
        for wrong in (content[:place], content[:place] + bytes([content[place] ^ 64]) + content[place + 1 :]):
            path_of(path).write_bytes(wrong)
            assert RowImage.open(path) is None


def test_one_that_lies_is_told_of(tmp_path: Path) -> None:
    path = made(tmp_path)
    content = path_of(path).read_bytes()[:-4].replace(b"drei", b"vier")
    path_of(path).write_bytes(content + crc32(content).to_bytes(4, "little"))
    with SequenceDatabase.open(path) as database:
        [line] = problems(database)
        assert line == "d.duckdb.rows isn't what the database says; delete it, and a search makes it anew"
    for wrong in (b"{}", b"[]", json.dumps({"file": None, "facts": {}}).encode()):
        content = b"seqloom rows 1\n" + len(wrong).to_bytes(4, "little") + wrong
        path_of(path).write_bytes(content + crc32(content).to_bytes(4, "little"))
        assert RowImage.open(path) is None


def test_what_it_does_not_say_is_not_read_of_another_database(tmp_path: Path) -> None:
    path = made(tmp_path)
    with SequenceDatabase.open_for_search(path) as database:
        appended(path)
        assert database.rows(ALL)["name"].tolist() == NAMES
        with pytest.raises(StoreError, match="was changed while it was searched; search it again"):
            database.find(["one"])


def test_a_folder_that_cannot_be_written_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = made(tmp_path)
    path_of(path).unlink()
    monkeypatch.setattr(os, "replace", lambda *_: (_ for _ in ()).throw(OSError(28, "full")))
    assert not of_image(path) and os.listdir(tmp_path) == ["d.duckdb"]
