"""The first revision: runs with their queries, targets, hits and alignments, and the progress of unfinished ones."""

import sqlalchemy as sa
from alembic import op
from seqloom.storage.duck.column_types import UInteger

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute(sa.schema.CreateSequence(sa.Sequence("run_numbers")))
    op.create_table(
        "alignment",
        sa.Column("run", sa.Integer(), nullable=False),
        sa.Column("query", sa.Integer(), nullable=False),
        sa.Column("target", sa.BigInteger(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("score", sa.Double()),
        sa.Column("query_start", sa.Integer(), nullable=False),
        sa.Column("query_end", sa.Integer(), nullable=False),
        sa.Column("target_start", sa.Integer(), nullable=False),
        sa.Column("target_end", sa.Integer(), nullable=False),
        sa.Column("query_frame", sa.SmallInteger(), nullable=False),
        sa.Column("target_frame", sa.SmallInteger(), nullable=False),
        sa.Column("anchor_query", sa.Integer()),
        sa.Column("anchor_target", sa.Integer()),
        sa.Column("bit_score", sa.Double()),
        sa.Column("evalue", sa.Double()),
        sa.Column("length", sa.Integer()),
        sa.Column("identities", sa.Integer()),
        sa.Column("positives", sa.Integer()),
        sa.Column("mismatches", sa.Integer()),
        sa.Column("gap_opens", sa.Integer()),
        sa.Column("gaps", sa.Integer()),
        sa.Column("path", sa.ARRAY(UInteger())),
    )
    op.create_table(
        "batches",
        sa.Column("run", sa.Integer(), nullable=False),
        sa.Column("batch", sa.Integer(), nullable=False),
    )
    op.create_table(
        "extra_columns",
        sa.Column("run", sa.Integer(), nullable=False),
        sa.Column("level", sa.String(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("type", sa.String(), nullable=False),
        sa.Column("doc", sa.String()),
        sa.Column("nullable", sa.Boolean()),
    )
    op.create_table(
        "hit",
        sa.Column("run", sa.Integer(), nullable=False),
        sa.Column("query", sa.Integer(), nullable=False),
        sa.Column("target", sa.BigInteger(), nullable=False),
        sa.Column("rank", sa.Integer(), nullable=False),
        sa.Column("score", sa.Double()),
        sa.Column("bit_score", sa.Double()),
        sa.Column("evalue", sa.Double()),
    )
    op.create_table(
        "partials",
        sa.Column("run", sa.Integer(), nullable=False),
        sa.Column("batch", sa.Integer(), nullable=False),
        sa.Column("volume", sa.Integer(), nullable=False),
        sa.Column("records", sa.LargeBinary(), nullable=False),
    )
    op.create_table(
        "plans",
        sa.Column("run", sa.Integer(), nullable=False),
        sa.Column("plan", sa.JSON(), nullable=False),
    )
    op.create_table(
        "queries",
        sa.Column("run", sa.Integer(), nullable=False),
        sa.Column("query", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("accession", sa.String()),
        sa.Column("description", sa.String()),
        sa.Column("length", sa.BigInteger()),
        sa.Column("residues", sa.LargeBinary()),
        sa.Column("lower", sa.ARRAY(sa.Integer())),
        sa.Column("source", sa.String()),
    )
    op.create_table(
        "run_databases",
        sa.Column("run", sa.Integer(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("path", sa.String()),
        sa.Column("fingerprint", sa.String()),
        sa.Column("title", sa.String()),
        sa.Column("sequences", sa.BigInteger()),
        sa.Column("letters", sa.BigInteger()),
        sa.Column("first_target", sa.BigInteger()),
    )
    op.create_table(
        "run_slots",
        sa.Column("run", sa.Integer(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("slot", sa.String(), nullable=False),
        sa.Column("plugin", sa.String()),
        sa.Column("backend", sa.String()),
        sa.Column("scope", sa.String()),
        sa.Column("options", sa.JSON()),
        sa.Column("seconds", sa.Double()),
        sa.Column("records_in", sa.BigInteger()),
        sa.Column("records_out", sa.BigInteger()),
        sa.Column("counters", sa.JSON()),
    )
    op.create_table(
        "runs",
        sa.Column("run", sa.Integer(), nullable=False),
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("pipeline", sa.String(), nullable=False),
        sa.Column("family", sa.String()),
        sa.Column("command", sa.String()),
        sa.Column("version", sa.String()),
        sa.Column("host", sa.String()),
        sa.Column("started", sa.DateTime()),
        sa.Column("finished", sa.DateTime()),
        sa.Column("seconds", sa.Double()),
        sa.Column("backend", sa.String()),
        sa.Column("threads", sa.Integer()),
        sa.Column("query_type", sa.String(), nullable=False),
        sa.Column("target_type", sa.String()),
        sa.Column("queries", sa.BigInteger()),
        sa.Column("letters", sa.BigInteger()),
        sa.Column("sequences", sa.BigInteger()),
        sa.Column("options", sa.JSON()),
        sa.Column("provenance", sa.JSON()),
        sa.Column("error", sa.String()),
    )
    op.create_table(
        "seqloom_file",
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("schema_revision", sa.String(), nullable=False),
        sa.Column("created_by", sa.String(), nullable=False),
    )
    op.create_table(
        "targets",
        sa.Column("run", sa.Integer(), nullable=False),
        sa.Column("target", sa.BigInteger(), nullable=False),
        sa.Column("database", sa.Integer()),
        sa.Column("ordinal", sa.BigInteger()),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("description", sa.String()),
        sa.Column("length", sa.BigInteger()),
    )
    op.create_table(
        "units",
        sa.Column("run", sa.Integer(), nullable=False),
        sa.Column("batch", sa.Integer(), nullable=False),
        sa.Column("volume", sa.Integer(), nullable=False),
    )
