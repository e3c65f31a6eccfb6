"""Alembic's entry into the migrations of model databases; the connection comes from ``storage.duck.migrate``."""

from alembic import context
from seqloom.storage.duck.migrate import run_migrations
from seqloom.storage.models.schema import metadata

run_migrations(context, metadata)
