"""Types of columns that SQLAlchemy doesn't have."""

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
