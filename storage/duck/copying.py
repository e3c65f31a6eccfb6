"""Rows of a query as bytes of a format, into any stream: DuckDB writes into a pipe, a thread reads it."""

import os
import shutil
import threading
from typing import IO, TYPE_CHECKING

from .connection import translated

if TYPE_CHECKING:
    import duckdb

_AT_ONCE = 1 << 18


def copy_rows(connection: "duckdb.DuckDBPyConnection", query: str, format: str, stream: IO[bytes], name: str) -> int:
    """Write the rows of a query; returns how many.

    Args:
        format: options of DuckDB's COPY.
        name: of the file that is read, for errors.

    Raises:
        StoreError: the rows can't be read; and what ``stream`` raises.
    """
    reading, writing = os.pipe()
    failures: list[BaseException] = []

    def forward() -> None:
        try:
            with open(reading, "rb", buffering=0) as source:  # closed early, it ends DuckDB's writing too
                shutil.copyfileobj(source, stream, _AT_ONCE)
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=forward, name="copy")
    thread.start()
    try:
        with translated(name):
            rows = connection.execute(f"COPY ({query}) TO '/dev/fd/{writing}' ({format})").fetchall()[0][0]
    except Exception:
        os.close(writing)
        thread.join()
        if failures:
            raise failures[0] from None
        raise
    except BaseException:
        os.close(writing)
        raise
    os.close(writing)
    thread.join()
    if failures:
        raise failures[0]
    return rows
