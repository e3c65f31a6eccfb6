"""Tables of a sequence database: the source of truth.

``sequences.sql`` is generated from it and Alembic compares with it; new files are made from ``sequences.sql``, so that
a search imports neither SQLAlchemy nor Alembic.

All residues of a database form one long row of residues, cut into chunks of ``database.chunk_residues``; every chunk
but the last is full. A sequence is the stretch ``start`` … ``start + length`` of that row. Every ``VOLUME_CHUNKS``
chunks have a table of their own, ``volume_0``, ``volume_1`` and so on: DuckDB holds a whole vector of 2,048 blobs in
memory when it writes a table to disk, and writes all of it again when one is added. Indexes lie in chunks likewise,
some to a table, ``index_3_0`` and so on for the index with number 3. Bulk tables have neither keys nor indexes, which
would slow down inserting; they stand in order of ``ordinal`` and ``chunk``.
"""

from typing import Any

import sqlalchemy as sa

from ..duck.column_types import RawBlob

metadata = sa.MetaData()


def _required(name: str, kind: Any) -> sa.Column:
    return sa.Column(name, kind, nullable=False)


database = sa.Table(
    "database", metadata,
    _required("title", sa.String),
    _required("alphabet", sa.String),
    _required("chunk_letters", sa.BigInteger),
    _required("sequences", sa.BigInteger),
    _required("letters", sa.BigInteger),
    _required("longest", sa.BigInteger),
    _required("shortest", sa.BigInteger),
    _required("fingerprint", sa.String),
    _required("created", sa.DateTime),  # UTC
    sa.Column("parsed_names", sa.Boolean),  # names are in NCBI's notation, of which reports show the accession
)

volume_metadata = sa.MetaData()
"""Holds the first volume only, from which ``volume.sql`` is made."""

volume = sa.Table(
    "volume_0", volume_metadata,
    _required("chunk", sa.Integer),
    _required("letters", sa.BigInteger),
    _required("data", RawBlob),  # proteins: a code per byte; nucleotides: two bits a residue, see storage.packing
    _required("ambiguities", RawBlob),  # records of storage.packing.RUN; empty for proteins
    _required("checksum", sa.BigInteger),  # CRC-32 of data, then ambiguities
    _required("digests", sa.LargeBinary),  # 32 bytes for every block of residues, see storage.fingerprint
)

sequences = sa.Table(
    "sequences", metadata,
    _required("ordinal", sa.BigInteger),
    _required("name", sa.String),
    _required("description", sa.String),
    _required("length", sa.Integer),
    _required("start", sa.BigInteger),
    sa.Column("taxid", sa.Integer),  # in NCBI's taxonomy
)

row_blocks = sa.Table(
    "row_blocks", metadata,
    _required("block", sa.Integer),
    _required("digest", sa.LargeBinary),  # of names and lengths of a block of rows, see storage.fingerprint
    _required("descriptions", sa.LargeBinary),  # digest of the block's descriptions, which aren't in the fingerprint
)

masks = sa.Table(
    "masks", metadata,
    _required("kind", sa.String),  # lower: lower case in the source
    _required("sequence", sa.BigInteger),  # ordinal
    _required("start", sa.Integer),
    _required("end", sa.Integer),
)

taxa = sa.Table(
    "taxa", metadata,
    _required("taxid", sa.Integer),
    _required("parent", sa.Integer),  # taxid; the root is its own
    _required("rank", sa.String),  # "merged": a former taxid of its parent
    _required("name", sa.String),
    sa.Column("common_name", sa.String),  # GenBank's
    sa.Column("blast_name", sa.String),  # its own or that of the nearest ancestor with one
    sa.Column("kingdom", sa.String),  # name of its superkingdom
)
"""NCBI's taxonomy, whole; empty until somebody stores it."""

LINEAGES = """
CREATE OR REPLACE VIEW lineages AS
WITH RECURSIVE line AS (
    SELECT DISTINCT s.taxid, t.taxid AS ancestor, t.parent, 0 AS depth FROM sequences s JOIN taxa t ON t.taxid = s.taxid
    UNION ALL
    SELECT l.taxid, t.taxid, t.parent, l.depth + 1 FROM line l JOIN taxa t ON t.taxid = l.parent
    WHERE l.parent <> l.ancestor
)
SELECT l.taxid, l.depth, l.ancestor, t.rank, t.name FROM line l JOIN taxa t ON t.taxid = l.ancestor
"""
"""The organisms of the sequences, each with itself (depth 0) and all that it belongs to, up to the root."""

indexes = sa.Table(
    "indexes", metadata,
    _required("number", sa.Integer),
    _required("plugin", sa.String),
    _required("version", sa.Integer),  # of the plugin's arrays
    _required("options", sa.JSON),  # the plugin's own
    _required("depends", sa.JSON),  # values of the pipeline options that it depends on
    _required("fingerprint", sa.String),  # of the sequences when it was built
    _required("created", sa.DateTime),  # UTC
    _required("created_by", sa.String),
)

index_pieces = sa.Table(
    "index_pieces", metadata,
    _required("number", sa.Integer),  # of the index
    _required("first", sa.BigInteger),  # ordinals of the sequences that the piece covers
    _required("last", sa.BigInteger),
    _required("kind", sa.String),
    _required("parameters", sa.JSON),
    _required("arrays", sa.JSON),  # name, type and shape of each
    _required("chunk", sa.Integer),  # its first
    _required("bytes", sa.BigInteger),
)

index_chunk_metadata = sa.MetaData()
"""Holds the first table of the first index only, from which ``index_chunks.sql`` is made."""

index_chunks = sa.Table(
    "index_0_0", index_chunk_metadata,
    _required("chunk", sa.Integer),
    _required("data", RawBlob),
    _required("checksum", sa.BigInteger),  # CRC-32 of data
)

seqloom_file = sa.Table(
    "seqloom_file", metadata,
    _required("kind", sa.String),
    _required("schema_revision", sa.String),
    _required("created_by", sa.String),
)
