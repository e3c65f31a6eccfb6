"""Things that a plugin offers and that are imported when they are first asked for.

A search needs the stages of one pipeline; importing those of all others, and the compilers that some need, would take
most of the time of a short one. So the hooks of ``hookspecs`` take, beside classes, names of classes.
"""

import importlib
from collections.abc import Mapping
from typing import Any

from .classes import dataclass
from .errors import PluginError


@dataclass(frozen=True)
class Deferred:
    """A class by name.

    Attributes:
        name: under which it is registered.
        backend: of a stage or sorter; empty for everything else.
        module, attribute: where it is.
        beside: of a writer; see there.
    """

    name: str
    backend: str
    module: str
    attribute: str
    beside: tuple[str, ...] = ()

    def load(self) -> Any:
        """The class.

        Raises:
            PluginError: its name or back end is not what was announced.
        """
        item = getattr(importlib.import_module(self.module), self.attribute)
        if item.name != self.name or (self.backend and item.backend != self.backend):
            raise PluginError(f"{self.module}.{self.attribute} was announced as '{self.name}' {self.backend}; it is "
                              f"'{item.name}' {getattr(item, 'backend', '')}".rstrip())
        if tuple(getattr(item, "beside", ())) != self.beside:
            raise PluginError(f"{self.module}.{self.attribute} was announced as an output beside others of "
                              f"{', '.join(self.beside) or 'no family'}; its own list is another")
        return item


def deferred(package: str, classes: Mapping[str, str], beside: Mapping[str, tuple[str, ...]] | None = None
             ) -> list[Any]:
    """What a hook gives to have its classes imported on demand.

    Args:
        package: of the modules; `__package__ for those beside the plugin.
        classes: "module.Class" by name, for stages and sorters "name backend".
        beside: of writers, by name; see ``Writer``.
    """
    made = []
    for label, place in classes.items():
        name, _, backend = label.partition(" ")
        module, _, attribute = place.rpartition(".")
        made.append(Deferred(name, backend, f"{package}.{module}", attribute,
                             (beside or {}).get(name, ())))
    return made
