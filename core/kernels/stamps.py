"""What the machine code of a kernel depends on, found by following what the function names.

A kernel's stamp is made of its code, of the values of the constants that it uses, wherever they are defined, and
of the same of every function that it calls, and so on. Kept code is used only where the stamp is the same, so that it
never matters which file a change was made in. Comments, and lines that move, change nothing.
"""

import marshal
import sys
from collections.abc import Iterable
from enum import Enum
from functools import cache
from opcode import opmap
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from .deferred import Deferred

_PLAIN = (type(None), bool, int, float, complex, str, bytes, type(Ellipsis))
_SEQUENCES, _SETS, _NUMPYS = (tuple, list), (frozenset, set), (np.ndarray, np.generic)
_LIBRARIES = {"numpy", "numba", "llvmlite", "numba_cuda", "cuda", *sys.stdlib_module_names}
"""Packages whose functions stand for themselves: their versions are part of what machine code is kept for."""
_LOAD_GLOBAL, _EXTENDED_ARG = opmap["LOAD_GLOBAL"], opmap["EXTENDED_ARG"]


class UnknownDependency(Exception):
    """Something that machine code may depend on and that looks different in every process."""


def stamp(function: FunctionType) -> bytes | None:
    """Everything that decides the machine code of a function, but for the types of its arguments and the machine.

    None where it uses something that can't be compared from one process to the next: such code isn't to be kept.
    """
    walk = _Walk()
    try:
        walk.add(function)
    except UnknownDependency:
        return None
    return marshal.dumps(tuple(walk.parts), 2)  # later versions of the format depend on how often objects are held


class _Walk:
    """All functions that are met, each once, in order; they refer to each other by number."""

    def __init__(self) -> None:
        self.parts: list[Any] = []
        self._numbers: dict[Any, int] = {}

    def add(self, function: FunctionType) -> int:
        """Number of a function."""
        if function in self._numbers:
            return self._numbers[function]
        number = self._numbers[function] = len(self.parts)
        self.parts.append(None)
        plain, names, loaded = _said_by(function.__code__)
        known = function.__globals__
        used = tuple([(name, self._value(known[name], names)) for name in loaded if name in known])
        cells = tuple([self._value(cell.cell_contents, names) for cell in function.__closure__ or ()])
        given = self._value(function.__defaults__), self._value(function.__kwdefaults__)
        self.parts[number] = function.__qualname__, plain, used, cells, given
        return number

    def _value(self, value: Any, names: Iterable[str] = ()) -> Any:
        """A value as plain objects; of a module what has one of the ``names``."""
        kind = type(value)
        if kind in _PLAIN:
            return value
        if kind is FunctionType:
            return _name(value) if _is_library(value.__module__) else ("function", self.add(value))
        if isinstance(value, Deferred):
            return self._object(value)
        if isinstance(value, Enum):
            return "member", _name(kind), value.name, self._value(value.value)
        if isinstance(value, _SEQUENCES):
            return _name(kind), tuple(self._value(item, names) for item in value)
        if isinstance(value, _SETS):
            return _name(kind), tuple(sorted((self._value(item) for item in value), key=repr))
        if isinstance(value, dict):
            return _name(kind), tuple((self._value(key), self._value(item)) for key, item in value.items())
        if isinstance(value, _NUMPYS) and not value.dtype.hasobject:
            return "numpy", repr(value.dtype), value.shape, value.tobytes()
        if isinstance(value, np.dtype):
            return "dtype", repr(value)
        if isinstance(value, ModuleType):
            return "module", value.__name__, () if _is_library(value.__name__) else tuple(
                (name, self._value(getattr(value, name), names)) for name in sorted(names) if hasattr(value, name))
        if isinstance(value, type):
            return self._class(value)
        return self._object(value)

    def _class(self, kind: type) -> Any:
        if _is_library(kind.__module__):
            return _name(kind)
        plain = {name: item for name, item in vars(kind).items()
                 if not name.startswith("__") and isinstance(item, (*_PLAIN, tuple, Enum, np.generic))}
        return _name(kind), self._value(plain)

    def _object(self, value: Any) -> Any:
        """Functions in a wrapper, of ours or of numba's, and what libraries have."""
        operation = getattr(value, "operation", None)
        if isinstance(operation, str):
            return "operation", operation
        for attribute in ("py_func", "__wrapped__"):
            function = getattr(value, attribute, None)
            if isinstance(function, FunctionType):
                options = getattr(value, "_ctor_kwargs", None) or getattr(value, "targetoptions", None) or {}
                return _name(type(value)), self.add(function), repr(sorted(options.items()))
        if isinstance(value, (BuiltinFunctionType, np.ufunc)):
            return _name(value)
        if _is_library(type(value).__module__) and " at 0x" not in (text := repr(value)):
            return _name(type(value)), text
        raise UnknownDependency(repr(value))


@cache
def _said_by(code: CodeType) -> tuple[tuple[Any, ...], frozenset[str], tuple[str, ...]]:
    """What a function's code says by itself, which never changes: the code as plain objects, all names in it, and those
    that it looks up among its module's, in order."""
    codes = list(_codes(code))
    return (_plain(code), frozenset([name for one in codes for name in one.co_names]),
            tuple(sorted({name for one in codes for name in loaded_globals(one)})))


def _plain(code: CodeType) -> tuple[Any, ...]:
    """Code as plain objects."""
    constants = tuple([_plain(c) if isinstance(c, CodeType) else _constant(c) for c in code.co_consts])
    return (code.co_code, code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars, code.co_argcount,
            code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags, code.co_exceptiontable, constants)


def _constant(value: Any) -> Any:
    """A constant of code: one of the plain ones, or a tuple or set of such."""
    if type(value) in _PLAIN:
        return value
    items = tuple([_constant(item) for item in value])
    return _name(type(value)), items if isinstance(value, tuple) else tuple(sorted(items, key=repr))


@cache
def _is_library(module: str | None) -> bool:
    return (module or "").partition(".")[0] in _LIBRARIES


def _name(value: Any) -> str:
    return f"{getattr(value, '__module__', None)}.{getattr(value, '__qualname__', value.__name__)}"


def _codes(code: CodeType) -> Iterable[CodeType]:
    """A function's code and that of the functions within."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def loaded_globals(code: CodeType) -> set[str]:
    """Names that a piece of code looks up among its module's; ``co_names`` has those of attributes, too."""
    operations, arguments = code.co_code[::2], code.co_code[1::2]
    found, at = set(), operations.find(_LOAD_GLOBAL)
    while at >= 0:
        longer = arguments[at - 1] << 8 if at and operations[at - 1] == _EXTENDED_ARG else 0
        found.add(code.co_names[(arguments[at] + longer) >> 1])
        at = operations.find(_LOAD_GLOBAL, at + 1)
    return found
