"""Versions and entry points of installed packages; the latter are remembered from one process to the next.

To import what Python has for them, and to look through all packages, takes longer than many a search. So what was found
is kept in the user's cache with all that it was found in: the packages in the folders of ``sys.path``, and the times of
change of the files of each package that names entry points. A folder's own time says nothing: where programs are run
from source, one of them is the folder that results are written to.
"""

import json
import os
import sys
import time
import zlib
from collections.abc import Iterable
from contextlib import suppress
from importlib import import_module
from importlib.machinery import PathFinder
from itertools import takewhile
from pathlib import Path
from typing import Any

from .classes import NamedTuple
from .user_cache import Unsafe, read_safely, user_cache, write_safely

_FILES = ("entry_points.txt", "METADATA", "PKG-INFO")
_SETTLED = 2_000_000_000
"""Nanoseconds after a change from which on a further one has another time, whatever the file system."""
_PATHS = 8
"""Different ``sys.path`` for which entries are kept, the last ones: the command's, a notebook's, those of tests."""


class Entry(NamedTuple):
    """An entry point: its name, what it names as ``module`` or ``module:object``, and the package that has it.

    Name and version of the package are empty where they aren't known.
    """

    name: str
    value: str
    package: str
    version: str

    def load(self) -> Any:
        """What the entry point names, imported."""
        module, _, path = self.value.split("[")[0].replace(" ", "").partition(":")
        found = import_module(module)
        for name in filter(None, path.split(".")):
            found = getattr(found, name)
        return found


def entries(group: str) -> list[Entry]:
    """All entry points of a group."""
    paths = [os.path.abspath(path) for path in sys.path]
    place = _place(group)
    kept = _read(place) if place else []
    same = next((one for one in kept if one["paths"] == paths), None)
    packages = package_folders(paths)
    if same and same["packages"] == packages and same["times"] == _times(same["times"]):
        return [Entry(*entry) for entry in same["entries"]]
    naming = [folder for folder in packages if os.path.exists(os.path.join(folder, _FILES[0]))]
    archives = [path for path in paths if not os.path.isdir(path)]
    times = _times([*archives, *(os.path.join(folder, name) for folder in naming for name in _FILES)])
    found = _found(group)
    if place and max(times.values(), default=0) < time.time_ns() - _SETTLED:
        others = [one for one in kept if one is not same]
        _keep(place, [{"paths": paths, "packages": packages, "times": times, "entries": found}, *others][:_PATHS])
    return found


def versions(*names: str) -> dict[str, str]:
    """Versions of installed packages by name, as ``importlib.metadata`` has them, which takes 10 ms to import.

    Raises:
        PackageNotFoundError: one isn't installed; a ``ModuleNotFoundError``.
    """
    described: dict[str, str] = {}
    for folder in package_folders(map(os.path.abspath, sys.path)) if _all_on_path() else ():
        described.setdefault(_plain(os.path.basename(folder).partition("-")[0]), folder)
    return {name: _said(described.get(_plain(name))) or _looked_up(name) for name in names}


def _plain(name: str) -> str:
    """The name of a package as those of folders are compared."""
    return name.lower().replace("-", "_").replace(".", "_")


def _said(folder: str | None) -> str:
    """The version in a folder that describes a package; "" where there is none, or it isn't as usual."""
    if folder is None:
        return ""
    with suppress(OSError, UnicodeDecodeError), open(os.path.join(folder, _FILES[1]), encoding="utf-8") as lines:
        for line in takewhile(str.strip, lines):
            if line.startswith("Version:"):
                return line.removeprefix("Version:").strip()
    return ""


def _looked_up(name: str) -> str:
    from importlib.metadata import version

    return version(name)


def _found(group: str) -> list[Entry]:
    from importlib.metadata import entry_points

    return [Entry(entry.name, entry.value, *((entry.dist.name, entry.dist.version) if entry.dist else ("", "")))
            for entry in entry_points(group=group)]


def _place(group: str) -> Path | None:
    """Where entries of this installation are kept; None where they can't be, or come from elsewhere than files."""
    if not _all_on_path():
        return None
    try:
        return user_cache() / f"{group}-entries-{zlib.crc32(sys.prefix.encode()):08x}.json"
    except RuntimeError:
        return None


def _all_on_path() -> bool:
    """Whether packages are found in the folders of ``sys.path`` alone."""
    return all(_looks_on_path(finder) for finder in sys.meta_path if hasattr(finder, "find_distributions"))


def _looks_on_path(finder: Any) -> bool:
    """Whether a finder of packages is Python's own, or the one that ``importlib_metadata`` puts in its place."""
    return finder is PathFinder or type(finder).__module__ == "importlib_metadata"


def package_folders(paths: Iterable[str]) -> list[str]:
    """Folders that describe the packages in some folders."""
    found = []
    for path in paths:
        with suppress(OSError):
            found += [os.path.join(path, name) for name in sorted(os.listdir(path))
                      if name.endswith((".dist-info", ".egg-info"))]
    return found


def _times(paths: Iterable[str]) -> dict[str, int]:
    """Times of change, ns; 0 for what isn't there."""
    times = dict.fromkeys(paths, 0)
    for path in times:
        with suppress(OSError):
            times[path] = os.stat(path).st_mtime_ns
    return times


def _read(place: Path) -> list[dict[str, Any]]:
    try:
        kept = json.loads(read_safely(place))
        return [one for one in kept if one.keys() >= {"paths", "packages", "times", "entries"}]
    except (OSError, Unsafe, ValueError, TypeError, AttributeError):
        return []


def _keep(place: Path, what: list[dict[str, Any]]) -> None:
    """Write the file whole or not at all; the next process looks anew where it can't be written."""
    with suppress(OSError, Unsafe):
        write_safely(place, json.dumps(what).encode())
