"""Model databases: what is written is read again, whole or in part; damage and misuse are told."""

import shutil
import struct
from dataclasses import dataclass
from itertools import pairwise

import duckdb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from seqloom.core.alphabet import NUCLEOTIDE, PROTEIN, Alphabet
from seqloom.core.errors import DamagedError, InputError, LockedError, SchemaError, SeqloomError, StoreError
from seqloom.core.packed_texts import PackedTexts
from seqloom.core.sequences import ModelBatch, SequenceBatch
from seqloom.storage.duck import durable
from seqloom.storage.duck.database_file import is_database, kind_of
from seqloom.storage.models import database as model_database
from seqloom.storage.models import writing
from seqloom.storage.models.check import problems
from seqloom.storage.models.database import ModelFile
from seqloom.storage.models.sources import ModelDatabaseSource, model_queries
from seqloom.storage.sequences.database import SequenceDatabase


@dataclass(frozen=True)
class Toy:
    """A model whose body is its name over and over."""

    name: str
    length: int
    body: str
    alphabet: Alphabet = PROTEIN


class Packer:
    """A reader as far as databases are concerned."""

    name = "toy"
    packing = 3

    def pack(self, model):
        return struct.pack("<I", model.length) + model.name.encode(), model.body.encode()

    def unpack(self, head, read):
        length, = struct.unpack("<I", head[:4])
        return Toy(head[4:].decode(), length, read(bytes.decode))


PACKER = Packer()


def toy(name, length):
    return Toy(name, length, name * length)


def batch(*models, alphabet=PROTEIN):
    return ModelBatch(alphabet, models, np.array([m.length for m in models], np.int64), np.arange(len(models)),
                      [m.name for m in models], [f"AC{m.length}.{len(m.name)}" for m in models],
                      [f"about {m.name}" for m in models], PackedTexts.of([f"text of {m.name}\n" for m in models]))


def remake(text):
    name = text.removeprefix("text of ").strip()
    return PACKER.pack(toy(name, LENGTHS[name]))


LENGTHS = {"first": 5, "second": 9, "third": 4, "fourth": 7}
MODELS = [toy(name, length) for name, length in LENGTHS.items()]


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    monkeypatch.setattr(writing, "CHUNK_BYTES", 60)
    monkeypatch.setattr(writing, "TABLE_CHUNKS", 2)
    monkeypatch.setattr(model_database, "BLOCK_ROWS", 3)


@pytest.fixture
def made(tmp_path):
    path = tmp_path / "m.duckdb"
    with ModelFile.create(path, [batch(*MODELS[:2]), batch(*MODELS[2:])], PACKER, title="four"):
        pass
    return path


def contents(database):
    """All models and texts."""
    queries = model_queries(database, PACKER.unpack)
    return [*queries.models], [*queries.sources]


def test_what_is_written_is_read(made):
    with ModelFile.open(made) as database:
        info = database.info()
        said = {"title": "four", "type": "protein models", "models": 4, "positions": 25, "longest": 9, "shortest": 4,
                "format": "toy"}
        assert {name: info[name] for name in said} == said
        assert contents(database) == (MODELS, [f"text of {m.name}\n" for m in MODELS])
        assert [row["name"] for row in database.list()] == list(LENGTHS)
        assert [row["name"] for row in database.list("f%")] == ["first", "fourth"]
        assert database.find(["third", "AC9.6", "AC7", "no", ""]) == {"third": 2, "AC9.6": 1, "AC7": 3}
        assert database.ordinals(["AC9", "first", "AC9"]).tolist() == [1, 0, 1]
        with pytest.raises(InputError, match=r"no model 'no'; seqloom db list-models shows the names"):
            database.ordinals(["first", "no"])
        assert problems(database, remake) == [] == problems(database, None)
    assert is_database(made) and kind_of(made) == "models"


def test_as_targets(made):
    with ModelFile.open(made) as database:
        source = ModelDatabaseSource(database, PACKER.unpack)
        assert (source.sequences, source.total_residues, source.longest) == (4, 25, 9)
        spans = source.plan(10)
        volumes = [source.read(span) for span in spans]
        assert [m for volume in volumes for m in volume.models] == MODELS and len(spans) > 2
        assert np.concatenate([volume.ordinals for volume in volumes]).tolist() == [0, 1, 2, 3]
        fetched = source.fetch(np.array([0, 3]))
        assert [*fetched.models] == [MODELS[0], MODELS[3]] and fetched.names == ["first", "fourth"]
        info = source.info(np.array([3, 1, 3]))
        assert (info.names, info.lengths.tolist()) == (["fourth", "second", "fourth"], [7, 9, 7])
        assert len(source.fetch(np.empty(0, np.int64))) == 0
        assert source.fingerprints()[0]["fingerprint"] == database.about.fingerprint


def test_queries_are_read_batch_by_batch(made, monkeypatch):
    with ModelFile.open(made) as database:
        queries = model_queries(database, PACKER.unpack)
        read, unpacked = [], database.unpacked

        def counted(rows, unpack):
            read.append(len(rows))
            return unpacked(rows, unpack)

        monkeypatch.setattr(database, "unpacked", counted)
        part = queries.take(1, 4)
        assert read == [] and (part.names, part.total_residues) == (["second", "third", "fourth"], 20)
        assert [part[n] for n in range(3)] == MODELS[1:] == [part[n] for n in range(3)]
        assert sum(read) == 3  # once each
        assert part.by_ordinal(2) == MODELS[2] and part.models[-1] == MODELS[3]
        assert [*part.take(1, 2).models] == [MODELS[2]] and part.sources[1] == "text of third\n"
        assert [*part.sources[1:]] == ["text of third\n", "text of fourth\n"]
        assert queries.nbytes < 1 << 26
        with pytest.raises(IndexError):
            part.models[3]


def test_queries_of_several_databases_are_read_batch_by_batch(made, tmp_path, monkeypatch):
    more = [toy("fifth", 6), toy("sixth", 8)]
    ModelFile.create(tmp_path / "n.duckdb", [batch(*more)], PACKER).close()
    with ModelFile.open(made) as one, ModelFile.open(tmp_path / "n.duckdb") as other:
        read = []
        for database in (one, other):
            def counted(rows, unpack, unpacked=database.unpacked):
                read.extend(rows.names)
                return unpacked(rows, unpack)

            def texts(rows, texts=database.texts):
                read.extend(f"text of {name}" for name in rows.names)
                return texts(rows)

            monkeypatch.setattr(database, "unpacked", counted)
            monkeypatch.setattr(database, "texts", texts)
        plain = batch(toy("plain", 3))
        queries = ModelBatch.concat([model_queries(one, PACKER.unpack), plain, model_queries(other, PACKER.unpack)])
        queries = queries.renumbered(np.arange(7))
        part = queries.take(3, 6)
        assert read == [] and len(queries) == 7 and part.names == ["fourth", "plain", "fifth"]
        assert queries.nbytes < 1 << 27 and queries.take(4, 5).nbytes == plain.nbytes
        assert [part[n] for n in (0, 1, 2, -1)] == [MODELS[3], toy("plain", 3), more[0], more[0]]
        assert set(read) <= {"third", "fourth", "fifth", "sixth"}  # the chunks of those that were asked for
        read.clear()
        assert [*part.sources] == [f"text of {name}\n" for name in part.names] and part.sources[0] == "text of fourth\n"
        assert set(read) == {"text of fourth", "text of fifth"}
        assert [PackedTexts([packed])[0] for packed in queries.sources.packed] == [*queries.sources]
        with pytest.raises(IndexError):
            part.models[3]
        assert [*queries.models] == [*MODELS, toy("plain", 3), *more]


@settings(max_examples=6, deadline=None)
@given(cut=st.lists(st.integers(0, 4), max_size=3))
def test_a_database_depends_on_its_models_alone(tmp_path_factory, cut):
    """However they come in batches, and whether they are appended."""
    folder = tmp_path_factory.mktemp("cut")
    bounds = [0, *sorted(cut), 4]
    parts = [batch(*MODELS[a:b]) for a, b in pairwise(bounds)]
    with ModelFile.create(folder / "whole.duckdb", parts, PACKER) as whole:
        first = next(n for n, part in enumerate(parts) if len(part))
        ModelFile.create(folder / "a.duckdb", parts[: first + 1], PACKER).close()
        with ModelFile.open(folder / "a.duckdb", read_only=False) as appended:
            appended.append(parts[first + 1 :], PACKER)
            assert appended.about.fingerprint == whole.about.fingerprint
            assert contents(appended) == contents(whole)
            assert problems(appended, remake) == []


def test_misuse(made, tmp_path):
    for batches, what in (([], "no models to put into n.duckdb"), ([batch(*MODELS), batch(MODELS[2])],
                          "name 'third' is there twice, as models 3 and 5 of n.duckdb"),
                          ([batch(MODELS[0]), batch(MODELS[1], alphabet=NUCLEOTIDE)],
                           "n.duckdb holds models of protein sequences and these are of nucleotide ones")):
        with pytest.raises(InputError, match=what):
            ModelFile.create(tmp_path / "n.duckdb", batches, PACKER)
        assert not (tmp_path / "n.duckdb").exists()
    with pytest.raises(StoreError, match="add to it with: seqloom db append"):
        ModelFile.create(made, [batch(*MODELS)], PACKER)
    with ModelFile.open(made) as database:
        with pytest.raises(StoreError, match="open for reading"):
            database.append([], PACKER)
        with pytest.raises(LockedError):
            ModelFile.open(made, read_only=False)
    with pytest.raises(StoreError, match="closed"):
        database.rows()
    with ModelFile.open(made, read_only=False) as database:
        with pytest.raises(InputError, match="name 'first' is there twice"):
            database.append([batch(MODELS[0])], PACKER)
        assert database.info()["models"] == 4 and problems(database, remake) == []
    SequenceDatabase.create(tmp_path / "s.duckdb", [SequenceBatch.of(PROTEIN, ["MK"], ["a"])]).close()
    with pytest.raises(SchemaError, match="is a sequence database, not a model database"):
        ModelFile.open(tmp_path / "s.duckdb")
    with pytest.raises(SchemaError, match="is a model database, not a sequence database"):
        SequenceDatabase.open(made)
    assert kind_of(tmp_path / "s.duckdb") == "sequences"
    assert [kind_of(path) for path in (tmp_path / "none", __file__)] == ["", ""]


def test_an_append_that_can_not_be_brought_into_the_file_is_said_to_be_done(made, monkeypatch, caplog):
    def full(*_):
        raise StoreError("the disk is full")

    with ModelFile.open(made, read_only=False) as database, monkeypatch.context() as patch:
        patch.setattr(durable, "checkpoint", full)
        database.append([batch(toy("fifth", 3))], PACKER)
        assert "the models were added" in caplog.text and database.info()["models"] == 5


# ---- damage


@pytest.fixture
def changed(made, tmp_path):
    """Carries out SQL on a copy of the database."""
    def change(*statements):
        path = tmp_path / "changed.duckdb"
        shutil.copy(made, path)
        with duckdb.connect(str(path)) as connection:
            for sql in statements:
                connection.execute(sql)
        return path

    return change


def told(path):
    """What is said when every model is searched with; empty where nothing is."""
    try:
        with ModelFile.open(path) as database:
            source = ModelDatabaseSource(database, PACKER.unpack)
            for span in source.plan(10):
                assert all(isinstance(m.body, str) for m in source.read(span).models)
            [*model_queries(database, PACKER.unpack).models]
    except SeqloomError as error:
        return str(error)
    return ""


def found(path):
    """What a check says; empty where all is well."""
    try:
        with ModelFile.open(path) as database:
            return "\n".join(problems(database, remake))
    except SeqloomError as error:
        return str(error)


FLIP = "UPDATE chunks_0 SET {0} = from_hex(concat('ff', substr(hex({0}), 3))) WHERE chunk = 0"


@pytest.mark.parametrize(("sql", "search", "check"), [
    (FLIP.format("heads"), "model 1, 'first': its bytes and its row don't match their checksum", "model 1, 'first'"),
    (FLIP.format("bodies"), "model 1, 'first': its bytes and its row", "model 1, 'first': its bytes and its row"),
    (FLIP.format("texts"), "", "model 1, 'first': its bytes and its row"),
    ("UPDATE models SET name = CASE name WHEN 'first' THEN 'third' WHEN 'third' THEN 'first' ELSE name END",
     "its bytes and its row", "its bytes and its row"),
    ("UPDATE models SET ordinal = 1 - ordinal WHERE ordinal < 2", "its bytes and its row", "its bytes and its row"),
    ("UPDATE models SET description = 'other' WHERE ordinal = 1", "model 2, 'second': its bytes", "model 2, 'second'"),
    ("UPDATE models SET body_start = 1 WHERE ordinal = 0", "model 1, 'first'", "model 1, 'first'"),
    ("UPDATE models SET body_bytes = 1::BIGINT << 60 WHERE ordinal = 0", "model 1, 'first'", "model 1, 'first'"),
    ("UPDATE models SET head_start = -1", "rows of its models make no sense", "rows of its models make no sense"),
    ("UPDATE models SET chunk = 9 - chunk", "chunk 9 is missing", "rows of its models make no sense"),
    ("UPDATE models SET digest = 'x' WHERE ordinal = 3", "", "model 4, 'fourth': its text or its row doesn't match"),
    ("UPDATE database SET fingerprint = 'y'", "", "its models are not those of fingerprint y"),
    ("UPDATE database SET models = 1::BIGINT << 60", "don't add up", "don't add up"),
    ("UPDATE database SET longest = 1::BIGINT << 60", "its numbers make no sense", "its numbers make no sense"),
    ("UPDATE database SET positions = 26", "don't add up", "don't add up"),
    ("UPDATE database SET alphabet = 'klingon'", "models are of klingon", "models are of klingon"),
    ("DELETE FROM database", "has 0 rows instead of one", "has 0 rows instead of one"),
    ("DELETE FROM models WHERE ordinal = 2", "don't add up", "don't add up"),
    ("DELETE FROM chunks_0 WHERE chunk = 1", "chunk 1 is missing", "chunk 1 is missing"),
    ("DROP TABLE chunks_0", "is missing", "is missing"),
    ("INSERT INTO models SELECT * REPLACE (4 AS ordinal) FROM models WHERE ordinal = 3", "don't add up",
     "don't add up"),
    ("ALTER TABLE models ALTER name DROP NOT NULL; UPDATE models SET name = NULL WHERE ordinal = 1",
     "rows of its models make no sense", "rows of its models make no sense"),
    ("ALTER TABLE chunks_0 ALTER heads DROP NOT NULL; UPDATE chunks_0 SET heads = NULL", "is missing", "is missing"),
    ("CREATE MACRO sum(x) AS 7", "", "macro sum: seqloom makes none"),
    ("CREATE VIEW lineages AS SELECT 1", "is a view", "is a view"),
    ("ALTER TABLE models ALTER name TYPE BLOB", "its column models.name holds BLOB", "holds BLOB"),
])
def test_damage_is_told(changed, sql, search, check):
    path = changed(sql)
    said, checked = told(path), found(path)
    assert search in said and bool(search) == bool(said)
    assert check in checked and checked
    assert "\n" not in said


def test_arrays_that_are_not_those_of_the_text(tmp_path):
    """Whoever wrote them with their right checksum."""
    with ModelFile.create(tmp_path / "other.duckdb", [batch(Toy("first", 5, "other"))], PACKER) as database:
        [problem] = problems(database, remake)
        assert "its arrays are not those of its text" in problem
        assert problems(database, None) == []


class Strange(Packer):
    """Packs something else than it is given."""

    def __init__(self, head, body=b"b"):
        self.packed = head, body

    def pack(self, model):
        return self.packed


@pytest.mark.parametrize(("packed", "what"), [
    ((struct.pack("<I", 6) + b"first",), "its row is that of another model"),
    ((struct.pack("<I", 5) + b"other",), "its row is that of another model"),
    ((struct.pack("<I", 5) + b"first", b"\xff\xfe"), "codec can't decode"),
    ((struct.pack("<I", 5) + b"\xff",), "codec can't decode"),
])
def test_models_that_are_none(tmp_path, packed, what):
    path = tmp_path / "strange.duckdb"
    ModelFile.create(path, [batch(MODELS[0])], Strange(*packed)).close()
    with ModelFile.open(path) as database, pytest.raises(DamagedError) as error:
        database.batch(database.rows(), PACKER.unpack)
    assert what in str(error.value) and "model 1, 'first'" in str(error.value)
