"""Models have databases of their own: the table for them, which nothing was ever written to, goes."""

from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.drop_table("models")
