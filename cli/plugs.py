"""The registry of plugins, with those that could not be loaded reported once."""

from functools import cache
from typing import TYPE_CHECKING

from .output import say

if TYPE_CHECKING:
    from seqloom.core.registry import Registry


@cache
def registry() -> "Registry":
    """Every installed plugin. One line on stderr for each that is broken; the others work on."""
    from seqloom.installed import registry

    found = registry()
    for name, reason in found.problems.items():
        say(f"plugin '{name}' could not be loaded and is left out: {reason}")
    return found
