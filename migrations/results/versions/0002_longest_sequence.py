"""Runs say how long the longest sequence of their search space is, the third of the sizes that statistics rest on."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("runs", sa.Column("longest", sa.BigInteger()))
    op.execute("UPDATE runs SET longest = CAST(provenance->'$.space.longest' AS BIGINT)")
