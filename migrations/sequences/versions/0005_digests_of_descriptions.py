"""Keep a digest of the descriptions of every block of rows, so that a check finds changed ones."""

import sqlalchemy as sa
from alembic import op
from seqloom.storage.sequences.fingerprint import description_digest

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

BLOCK_ROWS = 1 << 16


def upgrade() -> None:
    connection = op.get_bind()
    kept = connection.execute(sa.text("SELECT block, digest FROM row_blocks ORDER BY block")).fetchall()
    op.drop_table("row_blocks")
    blocks = op.create_table(
        "row_blocks",
        sa.Column("block", sa.Integer(), nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("descriptions", sa.LargeBinary(), nullable=False),
    )
    for block, digest in kept:
        rows = connection.execute(
            sa.text("SELECT description FROM sequences WHERE ordinal >= :first AND ordinal < :last ORDER BY ordinal"),
            {"first": block * BLOCK_ROWS, "last": (block + 1) * BLOCK_ROWS}).fetchall()
        op.bulk_insert(blocks, [{"block": block, "digest": digest,
                                 "descriptions": description_digest([text for (text,) in rows])}])
