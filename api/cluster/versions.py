"""Whether two programs would give the same rows: their versions, and the code itself."""

import hashlib
import sys
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from ..installed import registry

PACKAGES = ("seqloom", "seqloom.core", "seqloom.plugins", "seqloom.storage")
"""Whose modules decide on rows; of the first its own alone."""


@cache
def identity() -> dict[str, str]:
    """Of this program: what has to agree between a caller and its workers, by name."""
    from importlib.metadata import version

    found = {"seqloom": version("seqloom"), "code": code(), "Python": ".".join(map(str, sys.version_info[:2])),
             "numpy": version("numpy")}
    return found | {f"plugin {name}": made for name, made in registry().plugins.items()}


def code() -> str:
    """Digest of the program's own modules."""
    digest = hashlib.blake2b(digest_size=16)
    for package in PACKAGES:
        spec = find_spec(package)
        for home in map(Path, (spec and spec.submodule_search_locations) or ()):
            for path in sorted(home.glob("*.py") if package == PACKAGES[0] else home.rglob("*.py")):
                digest.update(f"{package}/{path.relative_to(home).as_posix()}\0".encode())
                digest.update(path.read_bytes())
    return digest.hexdigest()


def differences(theirs: dict[str, str], ours: dict[str, str]) -> str:
    """What differs between two programs, for people; empty if nothing does."""
    said = [f"{name} {theirs.get(name, 'isn’t there')} instead of {ours.get(name, 'none')}"
            for name in sorted({*theirs, *ours}) if theirs.get(name) != ours.get(name) and name != "code"]
    if not said and theirs.get("code") != ours.get("code"):
        said = [f"other code of seqloom {ours['seqloom']}"]
    return ", ".join(said)
