"""Checks nested plain data, such as a TOML file gives, against a description of its shape.

A shape is a type or several (``str``, ``(str, int)``), a set of allowed values, ``[shape]`` for a list,
``{name: shape}`` for a table whose keys are known, or ``Table(shape)`` for one with any keys. Names that end with "!"
must be there.
"""

from collections.abc import Mapping, Sequence, Set
from typing import Any

from .classes import dataclass
from .errors import InputError

SCALAR = (str, bool, int, float)
"""What an option may be."""
DEEPEST = 20
"""Tables and lists that may stand one in another."""
_NAMES = {str: "text", bool: "true or false", int: "a whole number", float: "a number", type(None): "none"}


@dataclass(frozen=True)
class Table:
    """A table with any keys, whose values are of one shape; where ``nested`` also tables of such values."""

    values: Any
    nested: bool = False


def check_shape(value: Any, shape: Any, where: str, key: str = "", depth: int = 0) -> None:
    """Raise ``InputError`` with ``where`` and the key of the first value in ``value`` that isn't of ``shape``."""
    def refuse(wanted: str) -> InputError:
        return InputError(f"{where}: {key or 'the whole'} must be {wanted}, not {_shown(value)}")

    if depth > DEEPEST:
        raise InputError(f"{where}: {key[:60]}…: more than {DEEPEST} tables or lists in one another")
    if isinstance(shape, list):
        if isinstance(value, str) or not isinstance(value, Sequence):
            raise refuse("a list")
        for number, item in enumerate(value, 1):
            check_shape(item, shape[0], where, f"{key}[{number}]", depth + 1)
    elif isinstance(shape, Table | Mapping):
        if not isinstance(value, Mapping):
            raise refuse("a table")
        if isinstance(shape, Table):
            for name, item in value.items():
                of = shape if shape.nested and isinstance(item, Mapping) else shape.values
                check_shape(item, of, where, f"{key}.{name}" if key else name, depth + 1)
            return
        shapes = {name.rstrip("!"): of for name, of in shape.items()}
        within = f" in {key}" if key else ""
        for name, item in value.items():
            if name not in shapes:
                raise InputError(f"{where}: unknown key '{name}'{within}; known are {', '.join(shapes)}")
            check_shape(item, shapes[name], where, f"{key}.{name}" if key else name, depth + 1)
        for name in shape:
            if name.endswith("!") and value.get(name[:-1]) in (None, "", [], ()):
                raise InputError(f"{where}: missing key '{name[:-1]}'{within}")
    elif isinstance(shape, Set):
        if not any(value is item or (type(value) is type(item) and value == item) for item in shape):
            raise refuse(" or ".join(str(item).lower() if isinstance(item, bool) else f"'{item}'" for item in
                                     sorted(shape, key=str)))
    else:
        types = shape if isinstance(shape, tuple) else (shape,)
        if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
            raise refuse(" or ".join(_NAMES[t] for t in types))


def _shown(value: Any) -> str:
    if isinstance(value, Mapping):
        return "a table"
    if isinstance(value, list | tuple):
        return "a list"
    text = repr(value) if isinstance(value, str) else str(value).lower() if isinstance(value, bool) else str(value)
    return text if len(text) <= 40 else f"{text[:40]}…"
