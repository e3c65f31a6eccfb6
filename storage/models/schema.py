"""Tables of a model database: the source of truth.

``models.sql`` is generated from it, as ``sequences.sql`` is from the schema of sequence databases.

A model is there twice: as the text that it was read from, compressed by itself, and as its reader packed it, so that a
search reads arrays and no text: a head, of which a search needs that of every model, and a body, which it needs of
some. All three lie in chunks, each of some models one behind the other, and some chunks to a table, ``chunks_0``,
``chunks_1`` and so on: DuckDB holds a whole vector of 2,048 blobs in memory when it writes a table to disk.
"""

import sqlalchemy as sa

from ..duck.column_types import RawBlob, about_file, required

metadata = sa.MetaData()


database = sa.Table(
    "database", metadata,
    required("title", sa.String),
    required("alphabet", sa.String),  # of the sequences that the models describe
    required("reader", sa.String),  # of the texts
    required("packing", sa.Integer),  # version of what the reader packs
    required("models", sa.BigInteger),
    required("positions", sa.BigInteger),
    required("longest", sa.BigInteger),
    required("shortest", sa.BigInteger),
    required("fingerprint", sa.String),
    required("created", sa.DateTime),  # UTC
)

models = sa.Table(
    "models", metadata,
    required("ordinal", sa.BigInteger),
    required("name", sa.String),
    required("accession", sa.String),  # "" without
    required("description", sa.String),
    required("length", sa.Integer),
    required("chunk", sa.Integer),
    required("head_start", sa.BigInteger),  # in the chunk's heads
    required("head_bytes", sa.BigInteger),
    required("head_checksum", sa.BigInteger),  # CRC-32 of what the row says and of the head
    required("body_start", sa.BigInteger),
    required("body_bytes", sa.BigInteger),
    required("body_checksum", sa.BigInteger),
    required("text_start", sa.BigInteger),
    required("text_bytes", sa.BigInteger),
    required("text_checksum", sa.BigInteger),
    required("digest", sa.LargeBinary),  # SHA-256 of what the row says and of the text
)

chunk_metadata = sa.MetaData()
"""Holds the first table of chunks only, from which ``chunks.sql`` is made."""

chunks = sa.Table(
    "chunks_0", chunk_metadata,
    required("chunk", sa.Integer),
    required("heads", RawBlob),
    required("bodies", RawBlob),
    required("texts", RawBlob),
)

seqloom_file = about_file(metadata)
