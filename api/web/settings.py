"""What a server was started with."""

from collections.abc import Sequence
from dataclasses import field
from pathlib import Path

from seqloom.core.classes import dataclass

LOOPBACK = ("127.0.0.1", "localhost", "::1")
MAX_WAITING = 1000
"""Searches in the queue, at most."""
UPLOADS = 64
"""Of full size that the queries of the queue may take on disk, at most."""


@dataclass(frozen=True)
class Settings:
    """Of a server.

    Attributes:
        results: the store that it serves.
        databases: files to search.
        host, port: where it listens.
        names: further host names by which it is called, as behind a proxy.
        token: what every request has to show; "" for none.
        searches: that run at a time.
        threads, memory: of each search.
        backend: of searches.
        search_seconds: for which a search may run at a stretch; None for as long as it takes.
        upload: bytes of a request, at most.
        sql_seconds, sql_rows, sql_memory: limits of a query in SQL; memory in bytes.
    """

    results: Path
    databases: Sequence[str] = ()
    host: str = "127.0.0.1"
    port: int = 8642
    names: Sequence[str] = field(default=())
    token: str = ""
    searches: int = 1
    threads: int = 1
    memory: int | None = None
    backend: str | None = None
    search_seconds: float | None = None
    upload: int = 32 << 20
    sql_seconds: float = 20.0
    sql_rows: int = 1000
    sql_memory: int = 1 << 30

    @property
    def folder(self) -> Path:
        """Where the server keeps what it has been asked for, beside the store."""
        return Path(f"{self.results}.web")
