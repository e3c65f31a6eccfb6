"""Brings an old file to the newest schema revision. Loaded only when there is one: Alembic takes long to import.

To write a new revision after changing a schema, see ``draft``.
"""

import os
import sys
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from alembic import command
from alembic.config import Config

from . import durable
from .column_types import RawBlob
from .dialect import NAME
from .revisions import HEAD


def migrate(path: "str | Path", kind: str, revision: str) -> None:
    """Upgrade the file at ``path`` (nobody may have it open) from ``revision`` to head in one transaction.

    Says so on stderr before it begins.

    Raises:
        duckdb.Error: it can't be done, for instance since the disk is full; the file is what it was.
        StoreError: as ``durable.checkpoint`` does.
    """
    print(f"seqloom: {path}: bringing it from schema revision {revision} to {HEAD[kind]}", file=sys.stderr)
    try:
        with engine(path).connect() as connection:
            ours = connection.connection.driver_connection
            durable.hold(ours)  # type: ignore[arg-type]
            with connection.begin():
                command.upgrade(configuration(kind, connection), HEAD[kind])
                connection.execute(sa.text("UPDATE seqloom_file SET schema_revision = :head"), {"head": HEAD[kind]})
            durable.checkpoint(ours, path)  # type: ignore[arg-type]
    except sa.exc.DBAPIError as error:
        raise error.orig or error from None


def engine(path: "str | Path") -> sa.Engine:
    """An SQLAlchemy engine on a DuckDB file that leaves nothing open behind."""
    return sa.create_engine(sa.URL.create(NAME, database=os.fspath(path)))


def configuration(kind: str, connection: sa.Connection | None = None) -> Config:
    """Alembic's configuration for files of one kind."""
    from ... import migrations

    config = Config()
    config.set_main_option("script_location", str(Path(migrations.__file__).parent / kind))
    config.attributes["connection"] = connection
    return config


def run_migrations(context: Any, metadata: sa.MetaData) -> None:
    """What every ``env.py`` does: run the wanted steps on the connection that ``migrate`` or ``draft`` gave."""
    context.configure(connection=context.config.attributes["connection"], target_metadata=metadata,
                      compare_type=differs)
    with context.begin_transaction():
        context.run_migrations()


def differs(context: Any, inspected: sa.Column, wanted: sa.Column, inspected_type: Any,
            wanted_type: Any) -> bool | None:
    """For Alembic: whether a column's type is another one. How a BLOB is compressed can't be seen in a file."""
    return False if isinstance(wanted_type, RawBlob) and isinstance(inspected_type, sa.LargeBinary) else None


def draft(kind: str, message: str, revision: str) -> None:
    """Write a new revision from the difference between a file at the former head and the schema.

    For developers: ``python -c "from seqloom.storage.duck.migrate import draft; draft('sequences', 'Add …', '0003')"``,
    then raise ``HEAD`` in ``revisions.py`` and run ``python -m seqloom.storage.ddl``.
    """
    with engine(":memory:").connect() as connection:
        config = configuration(kind, connection)
        command.upgrade(config, "head")
        connection.commit()
        command.revision(config, message, autogenerate=True, rev_id=revision)
