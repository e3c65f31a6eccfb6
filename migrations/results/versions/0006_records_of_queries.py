"""Runs keep how many records of each query passed the slots that count them."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "passed",
        sa.Column("run", sa.Integer(), nullable=False),
        sa.Column("slot", sa.String(), nullable=False),
        sa.Column("query", sa.Integer(), nullable=False),
        sa.Column("records", sa.BigInteger(), nullable=False),
    )
