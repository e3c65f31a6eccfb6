"""Where machine code of kernels is kept, and whom it is taken from.

It lies beside the installation where that can be written to, else in the user's cache (or ``NUMBA_CACHE_DIR``). Both
places are read, so an installation that one user has warmed is warm for all. To load machine code is to run it: a file
is read only if nobody else can have written it (``core/user_cache.py``), and what is unsafe is compiled anew.
"""

import os
import pickle
import zlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from ..user_cache import Unsafe, check_safe, kernel_cache, read_safely, refuse, trusted_owners, write_safely


def folders(source: Path) -> Iterator[Path]:
    """Where machine code of this file's kernels may be; it is written to the first that takes it."""
    ours_first = os.environ.get("NUMBA_CACHE_DIR")
    if not ours_first:
        yield _beside(source)
    with suppress(RuntimeError):
        yield kernel_cache() / "kernels" / digest(str(source.parent))
    if ours_first:
        yield _beside(source)


@cache
def _beside(source: Path) -> Path:
    return source.parent / "__pycache__"


def digest(text: str) -> str:
    """Part of a name. What must not be taken for something else is written into the file as well."""
    return f"{zlib.crc32(text.encode()):08x}"


def read(source: Path, name: str, stamp: Any) -> tuple[Any, ...]:
    """What was kept under a name with this stamp, for a file's kernels; nothing where there is nothing to be used."""
    unsafe: list[Unsafe] = []
    for folder in folders(source):
        try:
            kept = pickle.loads(read_safely(folder / name, trusted_owners(source)))
        except Unsafe as error:
            unsafe.append(error)
        except Exception:  # a file that isn't ours may raise any
            continue
        else:
            if isinstance(kept, tuple) and kept and kept[0] == stamp:
                return kept[1:]
    for found in unsafe:
        refuse(found)
    return ()


def keep(source: Path, name: str, stamp: Any, parts: Iterable[Any]) -> None:
    """Write a file, whole or not at all, into the first folder that takes it and that only its owner may write."""
    try:
        data = pickle.dumps((stamp, *parts))
    except (TypeError, AttributeError, pickle.PicklingError):
        return  # the next process compiles again
    for folder in folders(source):
        with suppress(OSError, Unsafe):
            write_safely(folder / name, data, trusted_owners(source), 0o644)
            return


def writable(source: Path) -> Path | None:
    """The folder that machine code of this file's kernels is written to; None where there is none."""
    for folder in folders(source):
        place = folder
        while not place.exists() and place != place.parent:
            place = place.parent
        with suppress(OSError, Unsafe):
            if place == folder:
                check_safe(folder, folder.stat(), trusted_owners(source))
            if os.access(place, os.W_OK):
                return folder
    return None


def can_keep() -> bool:
    """Whether there is a place for kernels of seqloom itself."""
    return writable(Path(__file__)) is not None
