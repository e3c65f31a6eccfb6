"""What the schemas of all files share: types of columns that SQLAlchemy doesn't have, and a table."""

from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.compiler import compiles


class UInteger(sa.Integer):
    """An unsigned integer of 32 bits."""


@compiles(UInteger)
def _unsigned_integer(kind: UInteger, compiler: object, **_: object) -> str:
    return "UINTEGER"


class RawBlob(sa.LargeBinary):
    """A BLOB that DuckDB stores as it is; looking for a compression would cost more than writing."""


@compiles(RawBlob)
def _raw_blob(kind: RawBlob, compiler: object, **_: object) -> str:
    return "BLOB USING COMPRESSION uncompressed"


def required(name: str, kind: Any) -> sa.Column:
    """A column without NULL."""
    return sa.Column(name, kind, nullable=False)


def about_file(metadata: sa.MetaData) -> sa.Table:
    """The table that says what a file is."""
    return sa.Table("seqloom_file", metadata, *(required(name, sa.String)
                                                for name in ("kind", "schema_revision", "created_by")))
