"""Alembic's entry into the migrations of sequence databases; the connection comes from ``storage.migrate``."""

from alembic import context
from seqloom.storage.migrate import run_migrations
from seqloom.storage.sequence_schema import metadata

run_migrations(context, metadata)
