"""Where is kept for this user what can be made again: kernels, sources, what was measured, entry points found.

What lies there is believed, and some of it is run. So a file is read only if it and its folder belong to this user, to
root, or to the owner of the code that it was made from, and nobody else may write to them.
"""

import errno
import os
import stat
import sys
import zlib
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path


def user_cache() -> Path:
    """``seqloom`` in ``XDG_CACHE_HOME``, else in ``~/.cache``.

    Raises:
        RuntimeError: there is neither, because the user has no home.
    """
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "seqloom"


def kernel_cache() -> Path:
    """The same for what kernels are made of and into: ``NUMBA_CACHE_DIR`` goes before. Errors as of ``user_cache``."""
    given = os.environ.get("NUMBA_CACHE_DIR")
    return Path(given) / "seqloom" if given else user_cache()


class Unsafe(Exception):
    """A file or folder that another user may have written: ``path``."""

    def __init__(self, path: Path) -> None:
        super().__init__(str(path))
        self.path = path


def trusted_owners(source: "Path | None" = None) -> set[int]:
    """Users whose files are believed: this one, root, and the owner of a source file that is run anyway."""
    owners = {0, os.geteuid()} if hasattr(os, "geteuid") else {0}
    if source is not None:
        with suppress(OSError):
            owners.add(os.stat(source).st_uid)
    return owners


def check_safe(path: Path, about: os.stat_result, owners: Collection[int]) -> None:
    """Raise ``Unsafe`` if others than these may write to a file or folder."""
    if hasattr(os, "geteuid") and (about.st_uid not in owners or about.st_mode & (stat.S_IWGRP | stat.S_IWOTH)):
        raise Unsafe(path)


def read_safely(path: Path, owners: "Collection[int] | None" = None) -> bytes:
    """What ``write_safely`` was given.

    Raises:
        Unsafe: others than this user and root, or ``owners``, may write to it or its folder.
        FileNotFoundError: it isn't there, or isn't what was written.
        OSError: it can't be read.
    """
    owners = trusted_owners() if owners is None else owners
    with path.open("rb") as file:
        check_safe(path, os.fstat(file.fileno()), owners)
        check_safe(path.parent, os.stat(path.parent), owners)
        content = file.read()
    data = content[: -len(_seal(b""))]
    if content[len(data) :] != _seal(data):
        raise FileNotFoundError(errno.ENOENT, "it is damaged", str(path))
    return data


def _seal(data: bytes) -> bytes:
    """What stands behind the data in a file: a checksum, in a comment as far as sources of Python are concerned."""
    return b"\n# %08x\n" % zlib.crc32(data)


def make_private(folder: Path, owners: "Collection[int] | None" = None) -> None:
    """Make a folder, and those above that are missing, for this user alone; or raise ``Unsafe`` or ``OSError``."""
    missing = []
    place = folder
    while not place.exists() and place != place.parent:
        missing.append(place)
        place = place.parent
    for place in reversed(missing):
        place.mkdir(mode=0o755 if place.name == "__pycache__" else 0o700, exist_ok=True)
    check_safe(folder, os.stat(folder), trusted_owners() if owners is None else owners)


def write_safely(path: Path, data: bytes, owners: "Collection[int] | None" = None, mode: int = 0o600) -> None:
    """Write a file that ``read_safely`` takes, whole or not at all; or raise ``Unsafe`` or ``OSError``."""
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    make_private(path.parent, owners)
    try:
        temporary.write_bytes(data + _seal(data))
        temporary.chmod(mode)
        temporary.replace(path)
    except OSError:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise


_refused: set[Path] = set()


def refuse(error: Unsafe) -> None:
    """Say, once, that what is kept in a place isn't used."""
    if error.path not in _refused:
        _refused.add(error.path)
        print(f"seqloom: {error.path}: not used, since another user may have written it; "
              "remove it, or have its owner take away others' right to write (chmod go-w)", file=sys.stderr)
