"""A database of whatever kind."""

from typing import TYPE_CHECKING

from .database import Database
from .open_database import PathLike
from .storage.duck.connection import OtherKindError

if TYPE_CHECKING:
    from .models import ModelDatabase


def open_any(path: PathLike, memory: int | None = None) -> "Database | ModelDatabase":
    """A database of sequences or of models, told by what the file says."""
    try:
        return Database.open(path, memory=memory)
    except OtherKindError as error:
        if error.kind != "models":
            raise
    from .models import ModelDatabase

    return ModelDatabase.open(path, memory=memory)
