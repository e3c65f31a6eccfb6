"""Starts a server: looks at what it is to offer, makes sure that it is the only one of its store, and listens."""

import asyncio
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import uvicorn

from ..core.errors import InputError, LockedError, StoreError, UsageError
from ..storage.duck.database_file import is_database
from .app import Server
from .children import Child, TaskError
from .choices import Catalogue
from .settings import LOOPBACK, Settings

LEAST_TOKEN = 12
"""Characters of a token."""


def serve(settings: Settings, ready: Callable[[str], object]) -> None:
    """Serve until a signal says to stop.

    Args:
        ready: called with the address when requests are answered.

    Raises:
        UsageError: other machines could ask, and there is no token.
        LockedError: another server serves the store, or something listens at the port.
    """
    check_open(settings)
    with _alone(settings):
        server = Server(settings, asyncio.run(catalogue(settings)))
        listener = _listening(settings)
        host = f"[{settings.host}]" if ":" in settings.host else settings.host
        address = f"http://{host}:{listener.getsockname()[1]}/"
        config = uvicorn.Config(server.app(), log_level="warning", access_log=False, server_header=False, ws="none",
                                proxy_headers=False, timeout_keep_alive=15, timeout_graceful_shutdown=5)
        running = _Announcing(config, lambda: ready(address))
        running.run(sockets=[listener])


class _Announcing(uvicorn.Server):
    """Says when it has started."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], object]) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._ready()


def check_open(settings: Settings) -> None:
    """Refuse to be reached from other machines by whoever wants."""
    if settings.host not in LOOPBACK and not settings.token:
        raise UsageError(f"--host {settings.host} lets other machines in: give --token TEXT (or SEQLOOM_TOKEN), which "
                         "they have to show; or stay on 127.0.0.1 behind a proxy that asks who they are, and name its "
                         "host with --name")
    if settings.token and len(settings.token) < LEAST_TOKEN:
        raise UsageError(f"a token has {LEAST_TOKEN} characters at least; for one: "
                         "python3 -c 'import secrets; print(secrets.token_urlsafe())'")


async def catalogue(settings: Settings) -> Catalogue:
    """What is offered: the databases that are named, or those of the working directory.

    Raises:
        InputError: one is none, or there are none.
    """
    paths = [str(path) for path in dict.fromkeys(settings.databases)] or _found()
    if not paths:
        raise InputError("there are no databases in this folder; name some with --db FILE, as seqloom db create makes "
                         "them, or FASTA files")
    child = await Child.start({"do": "databases", "paths": paths})
    try:
        facts = await child.answer()
    except TaskError as error:
        raise InputError(str(error)) from None
    return Catalogue(paths, facts)


def _found() -> list[str]:
    """Databases of sequences and models in the working directory."""
    from ..storage.duck.database_file import kind_of

    found = []
    for path in sorted(Path().glob("*.duckdb")):
        try:
            if is_database(path) and kind_of(path) in ("sequences", "models"):
                found.append(str(path))
        except StoreError:
            continue
    return found


def _listening(settings: Settings) -> socket.socket:
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listener = socket.socket(family)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((settings.host, settings.port))
    except OSError as error:
        listener.close()
        raise LockedError(f"can't listen at {settings.host}, port {settings.port}: {error.strerror or error}; give "
                          "another one with --port") from None
    return listener


@contextmanager
def _alone(settings: Settings) -> Iterator[None]:
    """Be the only server of a store."""
    import fcntl

    if not settings.results.absolute().parent.is_dir():
        raise StoreError(f"{settings.results} can't be made: there is no folder {settings.results.parent}")
    settings.folder.mkdir(mode=0o700, exist_ok=True)
    with open(settings.folder / "lock", "w", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise LockedError(f"another server serves {settings.results}; stop it, or give another store with "
                              "--results") from None
        yield


