"""The image of a nucleotide database: its bases, wherever a stretch begins, and left alone where they aren't."""

import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from seqloom.core.alphabet import NUCLEOTIDE
from seqloom.core.sequences import PackedResidues, SequenceBatch
from seqloom.storage.sequences import residue_image, stored_batch, writing
from seqloom.storage.sequences.check import problems
from seqloom.storage.sequences.database import SequenceDatabase
from seqloom.storage.sequences.packed_image import PackedImageWriter
from seqloom.storage.sequences.packed_stretch import packed_stretch, unpack_stretches
from seqloom.storage.sequences.residue_image import path_of
from seqloom.storage.sequences.sources import DatabaseSource

BLOCK = 32


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(residue_image, "BLOCK", BLOCK)
    monkeypatch.setattr(residue_image, "LEAST", 4 * BLOCK)
    monkeypatch.setattr(writing, "CHUNK_RESIDUES", {"protein": 256, "nucleotide": 256})


def make(path: Path, seed: int = 1) -> SequenceBatch:
    """A database of random bases with runs of ambiguities; gives its sequences."""
    generator = np.random.default_rng(seed)
    parts = [generator.integers(0, 4, length).astype(np.uint8) for length in (130, 1, 0, 77, 900, 402, 33)]
    for part in parts:
        for place in generator.integers(0, max(1, len(part)), len(part) // 50):
            part[place : place + generator.integers(1, 20)] = generator.integers(4, 16)
    batch = SequenceBatch.of(NUCLEOTIDE, parts)
    SequenceDatabase.create(path, [batch]).close()
    return batch


def codes_of(packed: PackedResidues, size: int) -> np.ndarray:
    """The codes of packed residues, the slow way."""
    places = np.arange(packed.first, packed.first + size)
    codes = packed.data[places // 4] >> (6 - 2 * (places % 4)).astype(np.uint8) & 3
    for start, length, code in zip(packed.starts, packed.lengths, packed.codes, strict=True):
        codes[start : start + length] = code
    return codes


def assert_same_bases(path: Path, residues: np.ndarray) -> None:
    """As packed stretches and as codes, wherever these begin."""
    generator = np.random.default_rng(0)
    with SequenceDatabase.open(path) as database:
        for first in range(5):
            last = len(residues) - 3 * first
            packed = packed_stretch(database, first, last)
            assert packed is not None and np.array_equal(codes_of(packed, last - first), residues[first:last])
        for _ in range(20):
            cuts = np.sort(generator.choice(len(residues), 6, replace=False)).reshape(-1, 2)
            codes, at = np.full(len(residues), 99, np.uint8), int(generator.integers(0, 4))
            spans = np.stack([cuts[:, 0], np.maximum(cuts[:, 0] - at, 0), cuts[:, 1] - cuts[:, 0]], axis=1)
            unpack_stretches(database, spans, codes)
            wanted = np.full(len(residues), 99, np.uint8)
            for place, to, size in spans.tolist():
                wanted[to : to + size] = residues[place : place + size]
            assert np.array_equal(codes, wanted)


def test_residues_are_those_of_the_image(tmp_path: Path) -> None:
    """Of sequences that are fetched whole, too, beside each other or not; nothing is read beyond the last one."""
    whole = make(tmp_path / "d.duckdb")
    with SequenceDatabase.open(tmp_path / "d.duckdb") as database:
        database.chunk = None  # type: ignore[assignment, method-assign]
        for ordinals in (np.arange(len(whole)), np.arange(0, len(whole), 3), np.array([4]), np.empty(0, np.int64)):
            fetched = database.fetch(ordinals)
            assert [fetched[n].tolist() for n in range(len(fetched))] == [whole[n].tolist() for n in ordinals]
        last = whole.total_residues
        assert not database.unpacked(np.array([[last - 2, 0, 3]]), np.empty(4, np.uint8))
        assert not database.unpacked(np.array([[-1, 0, 3]]), np.empty(4, np.uint8))


def test_stretches_are_those_of_the_database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = make(tmp_path / "d.duckdb")
    assert sorted(os.listdir(tmp_path)) == ["d.duckdb", "d.duckdb.residues"]
    with SequenceDatabase.open(tmp_path / "d.duckdb") as database:
        assert not problems(database)
        monkeypatch.setattr(SequenceDatabase, "chunk", lambda *_: pytest.fail("read from the database"))
        assert_same_bases(tmp_path / "d.duckdb", whole.residues)
        source = DatabaseSource(database)
        for span in source.plan(500):
            volume = source.read(span)
            packed = volume.packed()
            part = whole.take(span.first, span.last)
            assert packed is not None and np.array_equal(codes_of(packed, part.total_residues), part.residues)
            few = min(stored_batch.BLOCK, part.total_residues // 2)
            assert np.array_equal(volume.stretch(3, few), part.residues[3:few])
            assert not volume.loaded, "few residues are read alone"


def test_the_reader_may_write(tmp_path: Path) -> None:
    """What is written to a stretch stays its reader's."""
    whole = make(tmp_path / "d.duckdb")
    before = path_of(tmp_path / "d.duckdb").read_bytes()
    with SequenceDatabase.open(tmp_path / "d.duckdb") as database:
        packed_stretch(database, 3, 700).data[:] = 255
        again = packed_stretch(database, 3, 700)
        assert np.array_equal(codes_of(again, 697), whole.residues[3:700])
    assert path_of(tmp_path / "d.duckdb").read_bytes() == before


@pytest.mark.parametrize("change", ["missing", "cut", "longer", "flipped", "run", "header", "another"])
def test_a_search_does_without_one_that_is_missing_or_damaged(tmp_path: Path, change: str, caplog) -> None:
    path = tmp_path / "d.duckdb"
    whole = make(path)
    image, content = path_of(path), bytearray(path_of(path).read_bytes())
    sound = bytes(content)
    places = {"flipped": residue_image.PAGE + 100, "header": 30,
              "run": residue_image.PAGE + -(-whole.total_residues // 4) + PackedResidues.SPARE + 3}
    if change in places:
        content[places[change]] ^= 16
    image.unlink()
    if change == "another":
        make(tmp_path / "other.duckdb", 5)
        shutil.copy(path_of(tmp_path / "other.duckdb"), image)
    elif change != "missing":
        image.write_bytes(content[:-1] if change == "cut" else bytes(content) + bytes(change == "longer"))
        with SequenceDatabase.open(path) as database:
            found = problems(database)
        assert found and all("d.duckdb.residues" in line and "delete it" in line for line in found)
    for _ in range(2):
        assert_same_bases(path, whole.residues)
    assert ("damaged" in caplog.text) == (change == "flipped")
    assert image.read_bytes() == sound


def test_one_with_whole_checksums_and_other_bases_is_found(tmp_path: Path) -> None:
    path = tmp_path / "d.duckdb"
    make(path)
    with SequenceDatabase.open(path) as database:
        writer = PackedImageWriter(path)
        for number in range(-(-database.total_residues // database.chunk_residues)):
            residues, data, runs = database.chunk(number)
            writer.add_chunk(residues, data ^ (number == 1), runs)
        assert writer.finish(database._about.said)
        [found] = problems(database)
    assert found.startswith("d.duckdb.residues: bases from 257 on are not those")


def test_appending_makes_it_stale(tmp_path: Path) -> None:
    whole = make(tmp_path / "d.duckdb")
    more = SequenceBatch.of(NUCLEOTIDE, ["ACGTNNRY" * 9], ["more"])
    with SequenceDatabase.open(tmp_path / "d.duckdb", read_only=False) as database:
        database.append([more])
        assert os.listdir(tmp_path) == ["d.duckdb"]
    assert_same_bases(tmp_path / "d.duckdb", np.concatenate([whole.residues, more.residues]))
    assert sorted(os.listdir(tmp_path)) == ["d.duckdb", "d.duckdb.residues"]


def test_lower_case_is_read_when_somebody_looks_at_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seqloom.storage.sequences.sources.FETCHED_WHOLE", 0)
    monkeypatch.setattr(stored_batch, "BLOCK", 16)
    texts = ["ACGTacgtNNnACGT" * 20, "ccgATTA" * 30]
    SequenceDatabase.create(tmp_path / "d.duckdb", [SequenceBatch.of(NUCLEOTIDE, texts)]).close()
    with SequenceDatabase.open(tmp_path / "d.duckdb") as database:
        batch = DatabaseSource(database).fetch(np.array([0, 1])).renumbered(np.array([4, 5]))
        batch.around(np.array([3]), np.array([40]))
        assert "lower" not in batch.__dict__
        assert [batch.text(0), batch.text(1)] == texts
