"""Give every eight chunks a table of their own: DuckDB can't write many large blobs of one table in bounded memory."""

import sqlalchemy as sa
from alembic import op
from seqloom.storage.duck.column_types import RawBlob

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

VOLUME_CHUNKS = 8


def upgrade() -> None:
    [(chunks,)] = op.get_bind().execute(sa.text("SELECT coalesce(max(chunk) + 1, 0) FROM chunks")).fetchall()
    for volume in range(-(-chunks // VOLUME_CHUNKS)):
        op.create_table(
            f"volume_{volume}",
            sa.Column("chunk", sa.Integer(), nullable=False),
            sa.Column("letters", sa.BigInteger(), nullable=False),
            sa.Column("data", RawBlob(), nullable=False),
            sa.Column("ambiguities", RawBlob(), nullable=False),
            sa.Column("checksum", sa.BigInteger(), nullable=False),
            sa.Column("digests", sa.LargeBinary(), nullable=False),
        )
        op.execute(f"INSERT INTO volume_{volume} SELECT chunk, letters, data, ambiguities, checksum, digests "
                   f"FROM chunks WHERE chunk // {VOLUME_CHUNKS} = {volume} ORDER BY chunk")
    op.drop_table("chunks")
