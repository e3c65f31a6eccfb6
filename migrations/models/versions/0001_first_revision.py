"""The first revision: models as texts and as their reader packed them, in chunks, and a row for every model.

The tables of chunks are made with the chunks.
"""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "database",
        sa.Column("title", sa.String(), nullable=False),
        sa.Column("alphabet", sa.String(), nullable=False),
        sa.Column("reader", sa.String(), nullable=False),
        sa.Column("packing", sa.Integer(), nullable=False),
        sa.Column("models", sa.BigInteger(), nullable=False),
        sa.Column("positions", sa.BigInteger(), nullable=False),
        sa.Column("longest", sa.BigInteger(), nullable=False),
        sa.Column("shortest", sa.BigInteger(), nullable=False),
        sa.Column("fingerprint", sa.String(), nullable=False),
        sa.Column("created", sa.DateTime(), nullable=False),
    )
    op.create_table(
        "models",
        sa.Column("ordinal", sa.BigInteger(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("accession", sa.String(), nullable=False),
        sa.Column("description", sa.String(), nullable=False),
        sa.Column("length", sa.Integer(), nullable=False),
        sa.Column("chunk", sa.Integer(), nullable=False),
        sa.Column("head_start", sa.BigInteger(), nullable=False),
        sa.Column("head_bytes", sa.BigInteger(), nullable=False),
        sa.Column("head_checksum", sa.BigInteger(), nullable=False),
        sa.Column("body_start", sa.BigInteger(), nullable=False),
        sa.Column("body_bytes", sa.BigInteger(), nullable=False),
        sa.Column("body_checksum", sa.BigInteger(), nullable=False),
        sa.Column("text_start", sa.BigInteger(), nullable=False),
        sa.Column("text_bytes", sa.BigInteger(), nullable=False),
        sa.Column("text_checksum", sa.BigInteger(), nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
    )
    op.create_table(
        "seqloom_file",
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("schema_revision", sa.String(), nullable=False),
        sa.Column("created_by", sa.String(), nullable=False),
    )
