"""The program's registry of plugins, discovered on first use."""

from functools import cache

from .core.registry import Registry


@cache
def registry() -> Registry:
    """Every installed plugin; those that could not be loaded are named in ``problems``."""
    return Registry.discover()
