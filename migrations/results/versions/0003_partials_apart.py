"""The partial result of every unit has a table of its own: of one table DuckDB would hold all results in memory."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    for batch, volume in op.get_bind().execute(sa.text("SELECT batch, volume FROM partials")).fetchall():
        op.execute(f"CREATE TABLE partial_{batch}_{volume} AS SELECT records FROM partials "
                   f"WHERE batch = {batch} AND volume = {volume}")
    op.drop_table("partials")
