"""Targets say which organism they are of."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("targets", sa.Column("taxid", sa.Integer()))
    for name in ("scientific_name", "common_name", "blast_name", "kingdom"):
        op.add_column("targets", sa.Column(name, sa.String()))
