"""Describe stored indexes in pieces; their chunks get tables of their own. Nothing was stored in the former tables."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.drop_table("index_chunks")
    op.drop_table("indexes")
    op.create_table(
        "indexes",
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("plugin", sa.String(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("options", sa.JSON(), nullable=False),
        sa.Column("depends", sa.JSON(), nullable=False),
        sa.Column("fingerprint", sa.String(), nullable=False),
        sa.Column("created", sa.DateTime(), nullable=False),
        sa.Column("created_by", sa.String(), nullable=False),
    )
    op.create_table(
        "index_pieces",
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("first", sa.BigInteger(), nullable=False),
        sa.Column("last", sa.BigInteger(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("parameters", sa.JSON(), nullable=False),
        sa.Column("arrays", sa.JSON(), nullable=False),
        sa.Column("chunk", sa.Integer(), nullable=False),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
    )
