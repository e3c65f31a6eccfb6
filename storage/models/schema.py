"""Tables of a model database: the source of truth.

``models.sql`` is generated from it, as ``sequences.sql`` is from the schema of sequence databases.

A model is there twice: as the text that it was read from, compressed by itself, and as its reader packed it, so that a
search reads arrays and no text: a head, of which a search needs that of every model, and a body, which it needs of
some. All three lie in chunks, each of some models one behind the other, and some chunks to a table, ``chunks_0``,
``chunks_1`` and so on: DuckDB holds a whole vector of 2,048 blobs in memory when it writes a table to disk.
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
    _required("alphabet", sa.String),  # of the sequences that the models describe
    _required("reader", sa.String),  # of the texts
    _required("packing", sa.Integer),  # version of what the reader packs
    _required("models", sa.BigInteger),
    _required("positions", sa.BigInteger),
    _required("longest", sa.BigInteger),
    _required("shortest", sa.BigInteger),
    _required("fingerprint", sa.String),
    _required("created", sa.DateTime),  # UTC
)

models = sa.Table(
    "models", metadata,
    _required("ordinal", sa.BigInteger),
    _required("name", sa.String),
    _required("accession", sa.String),  # "" without
    _required("description", sa.String),
    _required("length", sa.Integer),
    _required("chunk", sa.Integer),
    _required("head_start", sa.BigInteger),  # in the chunk's heads
    _required("head_bytes", sa.BigInteger),
    _required("head_checksum", sa.BigInteger),  # CRC-32 of what the row says and of the head
    _required("body_start", sa.BigInteger),
    _required("body_bytes", sa.BigInteger),
    _required("body_checksum", sa.BigInteger),
    _required("text_start", sa.BigInteger),
    _required("text_bytes", sa.BigInteger),
    _required("text_checksum", sa.BigInteger),
    _required("digest", sa.LargeBinary),  # SHA-256 of what the row says and of the text
)

chunk_metadata = sa.MetaData()
"""Holds the first table of chunks only, from which ``chunks.sql`` is made."""

chunks = sa.Table(
    "chunks_0", chunk_metadata,
    _required("chunk", sa.Integer),
    _required("heads", RawBlob),
    _required("bodies", RawBlob),
    _required("texts", RawBlob),
)

seqloom_file = sa.Table(
    "seqloom_file", metadata,
    _required("kind", sa.String),
    _required("schema_revision", sa.String),
    _required("created_by", sa.String),
)
