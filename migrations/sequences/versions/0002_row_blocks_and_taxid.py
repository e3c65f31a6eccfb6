"""Keep a digest for every block of rows, so that appending needn't read all names, and room for a taxonomy id."""

import numpy as np
import sqlalchemy as sa
from alembic import op
from seqloom.storage.sequences.fingerprint import row_digest

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

BLOCK_ROWS = 1 << 16


def upgrade() -> None:
    op.add_column("sequences", sa.Column("taxid", sa.Integer(), nullable=True))
    blocks = op.create_table(
        "row_blocks",
        sa.Column("block", sa.Integer(), nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
    )
    connection = op.get_bind()
    [(count,)] = connection.execute(sa.text("SELECT count(*) FROM sequences")).fetchall()
    for block in range(-(-count // BLOCK_ROWS)):
        rows = connection.execute(
            sa.text("SELECT name, length FROM sequences WHERE ordinal >= :first AND ordinal < :last ORDER BY ordinal"),
            {"first": block * BLOCK_ROWS, "last": (block + 1) * BLOCK_ROWS}).fetchall()
        digest = row_digest([name for name, _ in rows], np.array([length for _, length in rows], np.int64))
        op.bulk_insert(blocks, [{"block": block, "digest": digest}])
