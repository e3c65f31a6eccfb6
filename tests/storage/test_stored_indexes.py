"""Stored indexes: read as they were written, found only when they are whole, damage told."""

import duckdb
import numpy as np
import pytest
from seqloom.core.alphabet import NUCLEOTIDE
from seqloom.core.errors import DamagedError, StoreError
from seqloom.core.index import Index
from seqloom.core.sequences import SequenceBatch
from seqloom.storage import stored_indexes
from seqloom.storage.sequence_database import SequenceDatabase
from seqloom.storage.sources import ChainedSource, DatabaseSource, choose_index, stored_index
from seqloom.storage.stored_indexes import IndexKey, IndexWriter, drop, read_piece

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
        assert not database.check()


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
        assert not database.check()


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
        assert any(message in problem for problem in database.check())


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
