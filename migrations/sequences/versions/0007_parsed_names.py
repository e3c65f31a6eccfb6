"""A database says whether its names are in NCBI's notation and to be taken apart."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("database", sa.Column("parsed_names", sa.Boolean()))
