"""The hooks by which a plugin makes itself known. Called once at start, never in a hot path.

A plugin is a module (or object) under the entry-point group ``seqloom``. It states the interface version it was written
for as ``SEQLOOM_API`` and implements any of the hooks below with ``hookimpl``.
"""

from typing import TYPE_CHECKING

import pluggy

if TYPE_CHECKING:
    from .pipeline import Pipeline
    from .stages import Family, Masker, Reader, Sorter, Stage, Writer

hookspec = pluggy.HookspecMarker("seqloom")
hookimpl = pluggy.HookimplMarker("seqloom")


@hookspec
def seqloom_stages() -> "list[type[Stage]]":
    """Implementations of stages, of any back end."""
    return []


@hookspec
def seqloom_families() -> "list[type[Family]]":
    """Families of algorithms: pipeline options, masking and scoring."""
    return []


@hookspec
def seqloom_pipelines() -> "list[Pipeline]":
    """Presets that users run by name."""
    return []


@hookspec
def seqloom_maskers() -> "list[type[Masker]]":
    """Maskers."""
    return []


@hookspec
def seqloom_sorters() -> "list[type[Sorter]]":
    """Sorters, of any back end."""
    return []


@hookspec
def seqloom_readers() -> "list[type[Reader]]":
    """Input formats."""
    return []


@hookspec
def seqloom_writers() -> "list[type[Writer]]":
    """Output formats."""
    return []
