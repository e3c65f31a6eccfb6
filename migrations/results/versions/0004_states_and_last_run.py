"""Runs that are done are called complete, as everywhere else; views of the last run (made with every migration)."""

from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("UPDATE runs SET state = 'complete' WHERE state = 'done'")
