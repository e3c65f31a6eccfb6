"""Stored indexes: read as they were written, found only when they are whole, damage told."""

import duckdb
import numpy as np
import pytest
from seqloom.core.alphabet import NUCLEOTIDE
from seqloom.core.errors import DamagedError, StoreError
from seqloom.core.index import Index
from seqloom.core.sequences import SequenceBatch
from seqloom.storage.sequences import index_images, stored_indexes
from seqloom.storage.sequences.check import problems
from seqloom.storage.sequences.database import SequenceDatabase
from seqloom.storage.sequences.sources import ChainedSource, DatabaseSource, choose_index, stored_index
from seqloom.storage.sequences.stored_indexes import (
    IndexKey,
    IndexWriter,
    drop,
    read_piece,
    remove_images,
    write_images,
)

KEY = IndexKey("toy", 1, {"length": 20}, {"bucket": 8})


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    monkeypatch.setattr(stored_indexes, "CHUNK_BYTES", 128)
    monkeypatch.setattr(stored_indexes, "TABLE_CHUNKS", 3)


@pytest.fixture
def path(tmp_path):
    made = tmp_path / "some.duckdb"
    batch = SequenceBatch.of(NUCLEOTIDE, ["ACGTACGT" * 4] * 5, [f"s{n}" for n in range(5)])
    SequenceDatabase.create(made, [batch]).close()
    return made


def an_index(seed: int) -> Index:
    rng = np.random.default_rng(seed)
    arrays = {"words": rng.integers(0, 1 << 60, (50, 3)).astype(np.uint64), "none": np.empty((0, 2), np.float32),
              "bytes": rng.integers(0, 255, 301).astype(np.uint8), "bits": rng.random(7) < 0.5}
    return Index("toy-kind", "target", arrays, {"bucket": 8, "alphabet": "nucleotide"})


def stored(path, key=KEY, bounds=((0, 2), (2, 5)), replaced=()):
    with SequenceDatabase.open(path, read_only=False) as database:
        writer = IndexWriter(database, key)
        for n, (first, last) in enumerate(bounds):
            writer.add(first, last, an_index(n))
        writer.finish([*replaced])


def tables(path) -> list[str]:
    with duckdb.connect(str(path), read_only=True) as connection:
        names = connection.execute("SELECT table_name FROM duckdb_tables() ORDER BY ALL").fetchall()
    return [name for (name,) in names if name.startswith("index_") and name != "index_pieces"]


def test_an_index_is_read_as_it_was_written(path):
    stored(path)
    with SequenceDatabase.open(path) as database:
        [found] = stored_indexes.stored_indexes(database)
        assert (found.plugin, found.version, found.options, found.depends) == ("toy", 1, {"bucket": 8}, {"length": 20})
        assert not found.foreign(database) and not KEY.unlike(found)
        for n, piece in enumerate(found.pieces):
            read, wanted = read_piece(database, found, piece), an_index(n)
            assert read.fingerprint == wanted.fingerprint
            assert all(array.ctypes.data % 64 == 0 for array in read.arrays.values() if len(array))
        assert not problems(database)


def test_sources_find_it_by_what_it_must_agree_with(path, tmp_path):
    stored(path)
    with SequenceDatabase.open(path) as database:
        source = DatabaseSource(database)
        for unfit in (IndexKey("other", 1, {}, {}), IndexKey("toy", 2, {}, {}), IndexKey("toy", 1, {"length": 21}, {}),
                      IndexKey("toy", 1, {}, {"bucket": 16})):
            assert source.choose_index(unfit) is None
        assert "made with bucket=8 and not 16" in source.unfit_indexes(IndexKey("toy", 1, {}, {"bucket": 16}))[0]
        assert "version 1 of the plugin, this is version 2" in source.unfit_indexes(IndexKey("toy", 2, {}, {}))[0]
        assert source.stored_index(KEY, 0, 2) is None  # not chosen yet
        assert [s.number for s in source.choose_index(IndexKey("toy", 1, {"length": 20}, {}))] == [0]
        assert [(span.first, span.last) for span in source.plan(10**6)] == [(0, 2), (2, 5)]
        assert len(source.plan(40)) == 5  # smaller volumes than its pieces are cut as ever
        assert source.stored_index(KEY, 2, 5).fingerprint == an_index(1).fingerprint
        assert source.stored_index(KEY, 2, 4) is None

        chained = ChainedSource([source, source])
        assert len(choose_index(chained, KEY)) == 2
        assert [(span.first, span.last) for span in chained.plan(10**6)] == [(0, 2), (2, 5), (5, 7), (7, 10)]
        assert stored_index(chained, KEY, 7, 10).fingerprint == an_index(1).fingerprint


def test_it_is_foreign_once_sequences_were_added(path):
    stored(path)
    with SequenceDatabase.open(path, read_only=False) as database:
        database.append([SequenceBatch.of(NUCLEOTIDE, ["ACGT"], ["new"])])
        assert "other sequences" in stored_indexes.stored_indexes(database)[0].foreign(database)
        assert DatabaseSource(database).choose_index(KEY) is None
        assert not problems(database)


def test_an_unfinished_index_is_not_there_and_goes_with_the_next(path):
    with SequenceDatabase.open(path, read_only=False) as database:
        IndexWriter(database, KEY).add(0, 2, an_index(0))
        assert not stored_indexes.stored_indexes(database)
    assert tables(path)
    stored(path)
    with SequenceDatabase.open(path) as database:
        [found] = stored_indexes.stored_indexes(database)
        assert len(found.pieces) == 2
    count = len(tables(path))
    stored(path, replaced=[found.number])
    assert len(tables(path)) == count
    with SequenceDatabase.open(path, read_only=False) as database:
        [found] = stored_indexes.stored_indexes(database)
        drop(database, [found.number])
    assert not tables(path)


@pytest.mark.parametrize(("damage", "message"), [
    ("flip", "checksum"),
    ("DELETE FROM index_0_1 WHERE chunk = 4", "chunk 4 is there 0 times"),
    ("DROP TABLE index_0_1", "is there 0 times"),
    ("UPDATE index_pieces SET bytes = bytes - 64", "bytes"),
])
def test_damage_is_told(path, damage, message):
    stored(path)
    with duckdb.connect(str(path)) as connection:
        if damage == "flip":
            [(data,)] = connection.execute("SELECT data FROM index_0_0 WHERE chunk = 1").fetchall()
            hexed = (data[:50] + bytes([data[50] ^ 1]) + data[51:]).hex()
            damage = f"UPDATE index_0_0 SET data = from_hex('{hexed}') WHERE chunk = 1"
        connection.execute(damage)
    with SequenceDatabase.open(path) as database:
        [found] = stored_indexes.stored_indexes(database)
        with pytest.raises(DamagedError, match=message) as caught:
            for piece in found.pieces:
                read_piece(database, found, piece)
        assert "seqloom index drop" in str(caught.value)
        assert any(message in problem for problem in problems(database))


def test_pieces_that_miss_sequences_are_not_used(path):
    stored(path, bounds=((0, 2), (3, 5)))
    with SequenceDatabase.open(path) as database:
        assert stored_indexes.stored_indexes(database)[0].foreign(database) == "not whole"
        assert DatabaseSource(database).choose_index(KEY) is None


def test_what_can_not_be_stored_is_refused(path):
    with SequenceDatabase.open(path) as database, pytest.raises(StoreError, match="open for reading"):
        IndexWriter(database, KEY)
    unfit = Index("toy-kind", "target", objects={"model": object()})
    with SequenceDatabase.open(path, read_only=False) as database, pytest.raises(StoreError, match="more than arrays"):
        IndexWriter(database, KEY).add(0, 5, unfit)


def mapped(path) -> list[str]:
    """Write images of all indexes; names of all files beside the database then."""
    with SequenceDatabase.open(path, read_only=False) as database:
        for found in stored_indexes.stored_indexes(database):
            write_images(database, found, lambda: None)
    return images(path)


def images(path) -> list[str]:
    return sorted(image.name for image in path.parent.glob("*.indexes/*") if image.suffix != index_images.SOUND)


def test_an_image_gives_the_arrays_that_are_stored(path):
    stored(path)
    with SequenceDatabase.open(path) as database:
        [found] = stored_indexes.stored_indexes(database)
        assert found.mapped == "no"
        wanted = [read_piece(database, found, piece) for piece in found.pieces]
    assert mapped(path) == ["index_0_0.image", "index_0_1.image"]
    chunks = tables(path)
    with duckdb.connect(str(path)) as connection:
        for table in chunks:
            connection.execute(f"DELETE FROM {table}")
    with SequenceDatabase.open(path) as database:
        [found] = stored_indexes.stored_indexes(database)
        assert found.mapped == "yes"
        for n, piece in enumerate(found.pieces):
            read = read_piece(database, found, piece)
            assert read.fingerprint == wanted[n].fingerprint and read.parameters == wanted[n].parameters
            for name, array in read.arrays.items():
                assert array.flags.num == wanted[n][name].flags.num  # else kernels would be compiled for it
                assert array.dtype == wanted[n][name].dtype and (array.ctypes.data % 64 == 0 or not len(array))


@pytest.mark.parametrize("statement", [
    "UPDATE indexes SET created_by = 'somebody'", "UPDATE indexes SET created = created + INTERVAL 1 SECOND",
    "UPDATE indexes SET version = 2", "UPDATE indexes SET options = '{\"bucket\": 16}'",
    "UPDATE indexes SET fingerprint = 'another'", "UPDATE indexes SET plugin = 'other'",
    "UPDATE index_pieces SET last = last + 1", "UPDATE index_pieces SET kind = 'other'",
    "UPDATE index_pieces SET parameters = '{}'", "UPDATE index_pieces SET chunk = chunk + 1",
    "UPDATE index_pieces SET arrays = replace(arrays, '[50, 3]', '[3, 50]')",
])
def test_an_image_of_something_else_is_not_used(path, statement):
    stored(path)
    mapped(path)
    with duckdb.connect(str(path)) as connection:
        connection.execute(statement)
    with SequenceDatabase.open(path) as database:
        [found] = stored_indexes.stored_indexes(database)
        assert found.mapped == "some.duckdb.indexes/index_0_0.image is of another index"
        assert [image.open()[0] for image in found.images] == [None, None]


def test_a_truncated_image_is_not_used(path):
    stored(path)
    mapped(path)
    image = path.parent / "some.duckdb.indexes" / "index_0_1.image"
    image.write_bytes(image.read_bytes()[:-1])
    with SequenceDatabase.open(path) as database:
        [found] = stored_indexes.stored_indexes(database)
        assert "index_0_1.image has" in found.mapped
        assert read_piece(database, found, found.pieces[1]).fingerprint == an_index(1).fingerprint
        [problem] = problems(database)
        assert "index_0_1.image has" in problem and "delete it" in problem
    image.unlink()
    with SequenceDatabase.open(path) as database:
        assert stored_indexes.stored_indexes(database)[0].mapped == "some of its pieces have no image"
        assert not problems(database)


def test_a_changed_image_is_found_by_a_check(path):
    stored(path)
    mapped(path)
    image = path.parent / "some.duckdb.indexes" / "index_0_1.image"
    image.write_bytes(image.read_bytes()[:-100] + bytes([1]) * 100)
    with SequenceDatabase.open(path) as database:
        [problem] = problems(database)
        assert "index_0_1.image differs from what is stored; delete it" in problem


def test_images_go_with_their_index(path):
    stored(path)
    stored(path, IndexKey("other", 1, {}, {}))
    assert len(mapped(path)) == 4
    folder = path.parent / "some.duckdb.indexes"
    (folder / "index_2_0.image.part").touch()  # of a killed build
    stored(path, replaced=[0])
    assert images(path) == ["index_1_0.image", "index_1_1.image"]
    assert len(mapped(path)) == 4
    with SequenceDatabase.open(path, read_only=False) as database:
        remove_images(database, [1])
        assert images(path) == ["index_2_0.image", "index_2_1.image"]
        drop(database, [2])
        assert not folder.exists()
    assert len(mapped(path)) == 2
    with SequenceDatabase.open(path, read_only=False) as database:
        database.append([])
        assert len(images(path)) == 2
        database.append([SequenceBatch.of(NUCLEOTIDE, ["ACGT"], ["new"])])
        assert not folder.exists()


def test_all_images_of_an_index_are_written_or_none(path):
    stored(path)

    def stop():
        if images(path):
            raise RuntimeError("stopped")

    with SequenceDatabase.open(path, read_only=False) as database:
        [found] = stored_indexes.stored_indexes(database)
        with pytest.raises(RuntimeError, match="stopped"):
            write_images(database, found, stop)
        assert not images(path) and found.mapped == "no"


def test_a_database_works_wherever_its_images_are(path, tmp_path):
    stored(path)
    mapped(path)
    (tmp_path / "there").mkdir()
    moved = path.rename(tmp_path / "there" / "moved.duckdb")
    for state in ("no", "yes"):
        with SequenceDatabase.open(moved) as database:
            [found] = stored_indexes.stored_indexes(database)
            assert found.mapped == state
            assert read_piece(database, found, found.pieces[1]).fingerprint == an_index(1).fingerprint
        if state == "no":
            (tmp_path / "some.duckdb.indexes").rename(tmp_path / "there" / "moved.duckdb.indexes")
