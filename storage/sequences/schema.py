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

import sqlalchemy as sa

from ..duck.column_types import RawBlob, about_file, required

metadata = sa.MetaData()


database = sa.Table(
    "database", metadata,
    required("title", sa.String),
    required("alphabet", sa.String),
    required("chunk_letters", sa.BigInteger),
    required("sequences", sa.BigInteger),
    required("letters", sa.BigInteger),
    required("longest", sa.BigInteger),
    required("shortest", sa.BigInteger),
    required("fingerprint", sa.String),
    required("created", sa.DateTime),  # UTC
    sa.Column("parsed_names", sa.Boolean),  # names are in NCBI's notation, of which reports show the accession
)

volume_metadata = sa.MetaData()
"""Holds the first volume only, from which ``volume.sql`` is made."""

volume = sa.Table(
    "volume_0", volume_metadata,
    required("chunk", sa.Integer),
    required("letters", sa.BigInteger),
    required("data", RawBlob),  # proteins: a code per byte; nucleotides: two bits a residue, see storage.packing
    required("ambiguities", RawBlob),  # records of storage.packing.RUN; empty for proteins
    required("checksum", sa.BigInteger),  # CRC-32 of data, then ambiguities
    required("digests", sa.LargeBinary),  # 32 bytes for every block of residues, see storage.fingerprint
)

sequences = sa.Table(
    "sequences", metadata,
    required("ordinal", sa.BigInteger),
    required("name", sa.String),
    required("description", sa.String),
    required("length", sa.Integer),
    required("start", sa.BigInteger),
    sa.Column("taxid", sa.Integer),  # in NCBI's taxonomy
)

row_blocks = sa.Table(
    "row_blocks", metadata,
    required("block", sa.Integer),
    required("digest", sa.LargeBinary),  # of names and lengths of a block of rows, see storage.fingerprint
    required("descriptions", sa.LargeBinary),  # digest of the block's descriptions, which aren't in the fingerprint
)

masks = sa.Table(
    "masks", metadata,
    required("kind", sa.String),  # lower: lower case in the source; else name of a mask
    required("sequence", sa.BigInteger),  # ordinal
    required("start", sa.Integer),
    required("end", sa.Integer),
)

named_masks = sa.Table(
    "named_masks", metadata,
    required("name", sa.String),
    required("source", sa.String),  # what its stretches were read from
    required("digest", sa.LargeBinary),  # of all its stretches, see storage.sequences.named_masks
)
"""Masks that a search may ask for by their names."""

taxa = sa.Table(
    "taxa", metadata,
    required("taxid", sa.Integer),
    required("parent", sa.Integer),  # taxid; the root is its own
    required("rank", sa.String),  # "merged": a former taxid of its parent
    required("name", sa.String),
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
    required("number", sa.Integer),
    required("plugin", sa.String),
    required("version", sa.Integer),  # of the plugin's arrays
    required("options", sa.JSON),  # the plugin's own
    required("depends", sa.JSON),  # values of the pipeline options that it depends on
    required("fingerprint", sa.String),  # of the sequences when it was built
    required("created", sa.DateTime),  # UTC
    required("created_by", sa.String),
)

index_pieces = sa.Table(
    "index_pieces", metadata,
    required("number", sa.Integer),  # of the index
    required("first", sa.BigInteger),  # ordinals of the sequences that the piece covers
    required("last", sa.BigInteger),
    required("kind", sa.String),
    required("parameters", sa.JSON),
    required("arrays", sa.JSON),  # name, type and shape of each
    required("chunk", sa.Integer),  # its first
    required("bytes", sa.BigInteger),
)

index_chunk_metadata = sa.MetaData()
"""Holds the first table of the first index only, from which ``index_chunks.sql`` is made."""

index_chunks = sa.Table(
    "index_0_0", index_chunk_metadata,
    required("chunk", sa.Integer),
    required("data", RawBlob),
    required("checksum", sa.BigInteger),  # CRC-32 of data
)

seqloom_file = about_file(metadata)
