"""Tables of results: the same in a results store and in the file that every run writes for itself.

This is the source of truth. ``results.sql`` is generated from it, Alembic compares with it, and new files are made from
``results.sql``, so that a search imports neither SQLAlchemy nor Alembic. Views are in ``views``; who wants them in a
new file makes them.

Every table but ``seqloom_file`` carries ``run``: the run's number in its store, 0 in a run file. Bulk tables have
neither keys nor indexes, which would slow down inserting; merging takes care that no run is there twice. Columns that
plugins add to ``hit`` and ``alignment`` are not listed here; ``extra_columns`` says which there are.
"""

import sqlalchemy as sa

from ..duck.column_types import RawBlob, UInteger, about_file, required

metadata = sa.MetaData()

run_numbers = sa.Sequence("run_numbers", metadata=metadata)
"""Numbers of runs; one is never given twice, whatever is deleted."""


def _table(name: str, *columns: sa.Column) -> sa.Table:
    return sa.Table(name, metadata, sa.Column("run", sa.Integer, nullable=False), *columns)


runs = _table(
    "runs",
    required("id", sa.Uuid),
    required("state", sa.String),  # incomplete, complete
    required("pipeline", sa.String),
    sa.Column("family", sa.String),
    sa.Column("command", sa.String),
    sa.Column("version", sa.String),
    sa.Column("host", sa.String),
    sa.Column("started", sa.DateTime),  # UTC
    sa.Column("finished", sa.DateTime),  # UTC
    sa.Column("seconds", sa.Double),  # of work, over all resumptions
    sa.Column("backend", sa.String),
    sa.Column("threads", sa.Integer),
    required("query_type", sa.String),  # protein, nucleotide, model
    sa.Column("target_type", sa.String),
    sa.Column("queries", sa.BigInteger),
    sa.Column("letters", sa.BigInteger),  # of the search space
    sa.Column("sequences", sa.BigInteger),  # of the search space
    sa.Column("options", sa.JSON),  # of the pipeline
    sa.Column("provenance", sa.JSON),  # everything: plan, settings, packages
    sa.Column("error", sa.String),
    sa.Column("longest", sa.BigInteger),  # residues of the longest sequence of the search space
)

run_databases = _table(
    "run_databases",
    required("number", sa.Integer),
    sa.Column("path", sa.String),
    sa.Column("fingerprint", sa.String),
    sa.Column("title", sa.String),
    sa.Column("sequences", sa.BigInteger),
    sa.Column("letters", sa.BigInteger),
    sa.Column("first_target", sa.BigInteger),  # global number of its first sequence
)

run_slots = _table(
    "run_slots",
    required("position", sa.Integer),
    required("slot", sa.String),
    sa.Column("plugin", sa.String),
    sa.Column("backend", sa.String),
    sa.Column("scope", sa.String),
    sa.Column("options", sa.JSON),
    sa.Column("seconds", sa.Double),
    sa.Column("records_in", sa.BigInteger),
    sa.Column("records_out", sa.BigInteger),
    sa.Column("counters", sa.JSON),
)

passed = _table(
    "passed",
    required("slot", sa.String),
    required("query", sa.Integer),
    required("records", sa.BigInteger),  # that came out; of several rows for a query and slot the sum counts
)

queries = _table(
    "queries",
    required("query", sa.Integer),
    required("name", sa.String),
    sa.Column("accession", sa.String),
    sa.Column("description", sa.String),
    sa.Column("length", sa.BigInteger),
    sa.Column("residues", sa.LargeBinary),  # one code per byte; of a model its text, as core.packed_texts has it
    sa.Column("lower", sa.ARRAY(sa.Integer)),  # start and end of each stretch in lower case, one behind the other
    sa.Column("source", sa.String),  # text of a model in runs of earlier versions
)

targets = _table(
    "targets",
    required("target", sa.BigInteger),
    sa.Column("database", sa.Integer),
    sa.Column("ordinal", sa.BigInteger),
    required("name", sa.String),
    sa.Column("description", sa.String),
    sa.Column("length", sa.BigInteger),
    sa.Column("taxid", sa.Integer),
    sa.Column("scientific_name", sa.String),
    sa.Column("common_name", sa.String),
    sa.Column("blast_name", sa.String),
    sa.Column("kingdom", sa.String),
)

hit = _table(
    "hit",
    required("query", sa.Integer),
    required("target", sa.BigInteger),
    required("rank", sa.Integer),  # 1… within the query
    sa.Column("score", sa.Double),
    sa.Column("bit_score", sa.Double),
    sa.Column("evalue", sa.Double),
)

alignment = _table(
    "alignment",
    required("query", sa.Integer),
    required("target", sa.BigInteger),
    required("number", sa.Integer),  # 1… within the hit
    sa.Column("score", sa.Double),
    required("query_start", sa.Integer),
    required("query_end", sa.Integer),
    required("target_start", sa.Integer),
    required("target_end", sa.Integer),
    required("query_frame", sa.SmallInteger),
    required("target_frame", sa.SmallInteger),
    sa.Column("anchor_query", sa.Integer),
    sa.Column("anchor_target", sa.Integer),
    sa.Column("bit_score", sa.Double),
    sa.Column("evalue", sa.Double),
    sa.Column("length", sa.Integer),
    sa.Column("identities", sa.Integer),
    sa.Column("positives", sa.Integer),
    sa.Column("mismatches", sa.Integer),
    sa.Column("gap_opens", sa.Integer),
    sa.Column("gaps", sa.Integer),
    sa.Column("path", sa.ARRAY(UInteger)),  # length << 4 | operation
)

extra_columns = _table(
    "extra_columns",
    required("level", sa.String),  # hit, alignment
    required("position", sa.Integer),
    required("name", sa.String),
    required("type", sa.String),  # as in core.records.Column
    sa.Column("doc", sa.String),
    sa.Column("nullable", sa.Boolean),
)

# Progress of a run that isn't finished; empty in a store.

plans = _table("plans", required("plan", sa.JSON))

units = _table("units", required("batch", sa.Integer), required("volume", sa.Integer))

partial_metadata = sa.MetaData()
"""Holds the partial result of the first unit only, from which ``partial.sql`` is made.

Every unit has a table of its own for its result, until the whole batch is done: of a row, DuckDB holds in memory what
all rows near it have as well.
"""

partial = sa.Table(
    "partial_0_0", partial_metadata,
    required("records", RawBlob),  # core record type and its columns; see storage.record_bytes
)

batches = _table("batches", required("batch", sa.Integer))

seqloom_file = about_file(metadata)
