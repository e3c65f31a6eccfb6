"""Alembic's entry into the migrations of sequence databases; the connection comes from ``storage.migrate``."""

from alembic import context
from seqloom.storage.duck.migrate import run_migrations
from seqloom.storage.sequences.schema import metadata

run_migrations(context, metadata)
