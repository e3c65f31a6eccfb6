"""Alembic's entry into the migrations of results; the connection comes from ``storage.migrate``.

The views depend on the columns of the tables, also on those of plugins: they are made anew with every migration.
"""

from types import SimpleNamespace
from typing import Any

from alembic import context
from seqloom.storage.duck.migrate import run_migrations
from seqloom.storage.results.schema import metadata
from seqloom.storage.results.views import create_views, drop_views

connection: Any = SimpleNamespace(execute=context.config.attributes["connection"].exec_driver_sql)
drop_views(connection)
run_migrations(context, metadata)
create_views(connection)
