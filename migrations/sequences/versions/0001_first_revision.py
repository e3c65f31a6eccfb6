"""The first revision: residues in chunks, a row for every sequence, masks, and room for models and indexes."""

import sqlalchemy as sa
from alembic import op
from seqloom.storage.duck.column_types import RawBlob

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "chunks",
        sa.Column("chunk", sa.Integer(), nullable=False),
        sa.Column("letters", sa.BigInteger(), nullable=False),
        sa.Column("data", RawBlob(), nullable=False),
        sa.Column("ambiguities", RawBlob(), nullable=False),
        sa.Column("checksum", sa.BigInteger(), nullable=False),
        sa.Column("digests", sa.LargeBinary(), nullable=False),
    )
    op.create_table(
        "database",
        sa.Column("title", sa.String(), nullable=False),
        sa.Column("alphabet", sa.String(), nullable=False),
        sa.Column("chunk_letters", sa.BigInteger(), nullable=False),
        sa.Column("sequences", sa.BigInteger(), nullable=False),
        sa.Column("letters", sa.BigInteger(), nullable=False),
        sa.Column("longest", sa.BigInteger(), nullable=False),
        sa.Column("shortest", sa.BigInteger(), nullable=False),
        sa.Column("fingerprint", sa.String(), nullable=False),
        sa.Column("created", sa.DateTime(), nullable=False),
    )
    op.create_table(
        "index_chunks",
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("array", sa.String(), nullable=False),
        sa.Column("dtype", sa.String(), nullable=False),
        sa.Column("chunk", sa.Integer(), nullable=False),
        sa.Column("data", RawBlob(), nullable=False),
        sa.Column("checksum", sa.BigInteger(), nullable=False),
    )
    op.create_table(
        "indexes",
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("plugin", sa.String(), nullable=False),
        sa.Column("parameters", sa.JSON(), nullable=False),
        sa.Column("first", sa.BigInteger(), nullable=False),
        sa.Column("last", sa.BigInteger(), nullable=False),
        sa.Column("fingerprint", sa.String(), nullable=False),
    )
    op.create_table(
        "masks",
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("sequence", sa.BigInteger(), nullable=False),
        sa.Column("start", sa.Integer(), nullable=False),
        sa.Column("end", sa.Integer(), nullable=False),
    )
    op.create_table(
        "models",
        sa.Column("ordinal", sa.BigInteger(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("accession", sa.String(), nullable=False),
        sa.Column("description", sa.String(), nullable=False),
        sa.Column("length", sa.Integer(), nullable=False),
        sa.Column("source", sa.String(), nullable=False),
    )
    op.create_table(
        "seqloom_file",
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("schema_revision", sa.String(), nullable=False),
        sa.Column("created_by", sa.String(), nullable=False),
    )
    op.create_table(
        "sequences",
        sa.Column("ordinal", sa.BigInteger(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("description", sa.String(), nullable=False),
        sa.Column("length", sa.Integer(), nullable=False),
        sa.Column("start", sa.BigInteger(), nullable=False),
    )
