"""What goes wrong in a plugin is told as its failure."""

from collections.abc import Iterator
from contextlib import contextmanager

from ..errors import OutOfMemoryError, SeqloomError, StageError
from ..registry import Registry


@contextmanager
def naming(registry: Registry, where: str, what: str, name: str, backend: str = "") -> Iterator[None]:
    """What goes wrong in a plugin, and isn't an error that it raises for the user, is said to be its failure.

    Args:
        where: in which part of a search.
        what, name, backend: kind of plugin, such as "stage", its name and back end.

    Raises:
        StageError: the plugin failed; says whose it is.
        OutOfMemoryError: memory ran out in it.
    """
    try:
        yield
    except MemoryError as error:
        raise OutOfMemoryError(where, error) from error
    except (SeqloomError, OSError):
        raise
    except Exception as error:
        provider = registry.provider(what, name, backend)
        raise StageError(f"{where}: {what} '{name}' of plugin {provider} failed: {type(error).__name__}: {error}"
                         ) from error
