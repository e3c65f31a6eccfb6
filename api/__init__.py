"""seqloom: one engine for biological sequence search. Nothing is imported before it is used."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .database import Database as Database
    from .models import ModelDatabase as ModelDatabase
    from .results import Results as Results
    from .run import Run as Run
    from .searches import search as search

__all__ = ["Database", "ModelDatabase", "Results", "Run", "search"]
_HOMES = {"Database": "database", "ModelDatabase": "models", "Results": "results", "Run": "run", "search": "searches"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'seqloom' has no attribute '{name}'")
    from importlib import import_module

    return getattr(import_module(f".{_HOMES[name]}", __name__), name)


def __dir__() -> list[str]:
    return sorted(__all__)
