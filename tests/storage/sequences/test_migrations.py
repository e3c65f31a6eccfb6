"""Schemas, generated SQL, revisions and the steps between them agree; a file of the first revision still opens."""

import gzip
from functools import cache
from pathlib import Path

import duckdb
import numpy as np
import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from seqloom.core.alphabet import NUCLEOTIDE
from seqloom.core.errors import SchemaError
from seqloom.core.sequences import SequenceBatch
from seqloom.storage import ddl
from seqloom.storage.duck import connection, migrate, revisions
from seqloom.storage.models import schema as model_schema
from seqloom.storage.results import schema as result_schema
from seqloom.storage.results.views import create_views
from seqloom.storage.sequences import schema as sequence_schema
from seqloom.storage.sequences.check import problems
from seqloom.storage.sequences.database import SequenceDatabase

HEAD = revisions.HEAD["sequences"]
DATA = Path(__file__).parents[1] / "data"
SCHEMAS = {"sequences": sequence_schema.metadata, "results": result_schema.metadata, "models": model_schema.metadata}
kinds = pytest.mark.parametrize("kind", SCHEMAS)


@pytest.mark.parametrize("name", list(ddl.render()))
def test_sql_is_generated_from_the_schema(name):
    text = (Path(ddl.__file__).parent / name).read_text()
    assert text == ddl.render()[name], "run: python -m seqloom.storage.ddl"


@kinds
def test_revisions_are_those_of_the_scripts(kind):
    scripts = ScriptDirectory.from_config(migrate.configuration(kind))
    assert scripts.get_heads() == [revisions.HEAD[kind]]
    assert [s.revision for s in scripts.walk_revisions()][::-1] == list(revisions.KNOWN[kind])
    assert set(revisions.READABLE[kind]) <= set(revisions.KNOWN[kind])


def shape(made):
    """Tables and columns of a DuckDB connection."""
    return made.execute("SELECT table_name, column_name, data_type, is_nullable FROM duckdb_columns() WHERE NOT "
                        "internal AND table_name <> 'alembic_version' ORDER BY ALL").fetchall()


@kinds
def test_migrations_make_what_the_schema_says(kind, tmp_path):
    """Both by Alembic's comparison and column by column of a file that went through all steps and of a new one."""
    with migrate.engine(tmp_path / "stepped.duckdb").connect() as stepped:
        command.upgrade(migrate.configuration(kind, stepped), "head")
        stepped.commit()
        context = MigrationContext.configure(stepped, opts={"compare_type": migrate.differs})
        assert compare_metadata(context, SCHEMAS[kind]) == []
    new = connection.connect(":memory:", False, kind, create=True)
    if kind == "results":
        create_views(new)
    with duckdb.connect(str(tmp_path / "stepped.duckdb")) as made:
        assert shape(made) == shape(new)


@kinds
def test_new_files_are_stamped(kind):
    new = connection.connect(":memory:", False, kind, create=True)
    assert new.execute("SELECT version_num FROM alembic_version").fetchall() == [(revisions.HEAD[kind],)]
    [(found, revision, creator)] = new.execute("FROM seqloom_file").fetchall()
    assert (found, revision) == (kind, revisions.HEAD[kind])
    assert creator.startswith("seqloom ")


# ---- a database written by the first revision: 66,000 short nucleotide sequences r0, r1, … (two blocks of rows)

FIRST_FINGERPRINT = "1fe0c2847e0f0c8d05f15e07154f1cc0"


@pytest.fixture
def first(tmp_path):
    path = tmp_path / "first.duckdb"
    path.write_bytes(gzip.decompress((DATA / "sequences_0001.duckdb.gz").read_bytes()))
    return path


@cache
def first_sequences():
    """What was put into the file of the first revision."""
    generator = np.random.default_rng(2026)
    rich, plain = (np.frombuffer(residues, np.uint8) for residues in (b"ACGTACGTACGTACGTNRYacgt", b"ACGT"))
    return [generator.choice(rich if n < 200 else plain, generator.integers(3, 9) if n < 200 else 3 + n % 3).tobytes()
            .decode() for n in range(66_000)]


def assert_holds_the_first(database):
    batch = database.fetch(np.arange(66_000))
    assert [batch.text(n) for n in range(200)] == first_sequences()[:200]
    assert batch.alphabet.decode(batch.residues) == "".join(first_sequences()).upper()
    assert list(batch.names) == [f"r{n}" for n in range(66_000)]
    assert list(batch.descriptions) == ["first"] + [""] * 65_999
    assert database.title == "first revision"
    assert database.fingerprint == FIRST_FINGERPRINT
    assert problems(database) == []


def test_the_first_revision_can_be_read_as_it_is(first, capfd):
    before = first.read_bytes()
    with SequenceDatabase.open(first) as database:
        assert database.revision == "0001"
        assert_holds_the_first(database)
    assert first.read_bytes() == before
    assert capfd.readouterr().err == ""


def test_the_first_revision_is_brought_to_head_when_opened_for_writing(first, capfd):
    more = SequenceBatch.of(NUCLEOTIDE, ["ACGTN", "GG"], ["x", "y"])
    with SequenceDatabase.open(first, read_only=False) as database:
        assert capfd.readouterr().err == f"seqloom: {first}: bringing it from schema revision 0001 to {HEAD}\n"
        assert database.revision == HEAD
        assert_holds_the_first(database)
        assert database._run("SELECT version_num FROM alembic_version") == [(HEAD,)]
        assert database._run("SELECT count(*), count(taxid) FROM sequences") == [(66_000, 0)]
        database.append([more])
        mark = database.fingerprint
        assert problems(database) == []
    with SequenceDatabase.open(first, read_only=False) as database:
        assert capfd.readouterr().err == ""
        assert database.extract(["r0", "y"]).names == ["r0", "y"]
    whole = SequenceBatch.of(NUCLEOTIDE, first_sequences(), [f"r{n}" for n in range(66_000)])
    with SequenceDatabase.create(first.parent / "new.duckdb", [whole, more]) as database:
        assert database.fingerprint == mark
    with duckdb.connect(str(first)) as stepped, duckdb.connect(str(first.parent / "new.duckdb")) as new:
        assert shape(stepped) == shape(new)


def test_a_step_that_fails_leaves_the_file_as_it_was(first, monkeypatch):
    """One transaction: tables, rows and stamp are those of the old revision."""
    upgrade = migrate.command.upgrade

    def upgrade_and_fail(config, target):
        upgrade(config, target)
        raise SchemaError("stopped on the way")

    monkeypatch.setattr(migrate.command, "upgrade", upgrade_and_fail)
    with pytest.raises(SchemaError, match="stopped on the way"):
        SequenceDatabase.open(first, read_only=False)
    with SequenceDatabase.open(first) as database:
        assert database.revision == "0001"
        assert database._run("SELECT version_num FROM alembic_version") == [("0001",)]
        assert database._run("SELECT count(*) FROM duckdb_tables() WHERE table_name = 'row_blocks'") == [(0,)]


def test_an_old_revision_that_can_not_be_read_names_the_remedy(first, monkeypatch):
    monkeypatch.setitem(revisions.READABLE, "sequences", (HEAD,))
    with pytest.raises(SchemaError) as error:
        SequenceDatabase.open(first)
    assert str(error.value) == (f"{first} was made by an earlier version of seqloom (revision 0001, now {HEAD}); open "
                                "it once for writing to bring it up to date")
