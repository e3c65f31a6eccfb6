"""Room for NCBI's taxonomy, and a view of lineages."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "taxa",
        sa.Column("taxid", sa.Integer(), nullable=False),
        sa.Column("parent", sa.Integer(), nullable=False),
        sa.Column("rank", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("common_name", sa.String()),
        sa.Column("blast_name", sa.String()),
        sa.Column("kingdom", sa.String()),
    )
    op.execute("""
CREATE VIEW lineages AS
WITH RECURSIVE line AS (
    SELECT DISTINCT s.taxid, t.taxid AS ancestor, t.parent, 0 AS depth FROM sequences s JOIN taxa t ON t.taxid = s.taxid
    UNION ALL
    SELECT l.taxid, t.taxid, t.parent, l.depth + 1 FROM line l JOIN taxa t ON t.taxid = l.parent
    WHERE l.parent <> l.ancestor
)
SELECT l.taxid, l.depth, l.ancestor, t.rank, t.name FROM line l JOIN taxa t ON t.taxid = l.ancestor
""")
