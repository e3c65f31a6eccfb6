"""Typed options: one dataclass from which command-line help, ``--set``, TOML and stored provenance all come.

A field is declared with ``option(default, help, …)``; its type is one of bool, int, float, str, or one of these with
``| None`` (absent). The command line's name is the field's with dashes.
"""

import dataclasses
import math
import types
import typing
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from .classes import dataclass
from .errors import OptionError, UnknownNameError

_LARGEST = 2**63 - 1
_TRUE, _FALSE = ("true", "yes", "on", "1"), ("false", "no", "off", "0")


@dataclass(frozen=True)
class NoOptions:
    """For stages that have none."""


def option(default: Any, help: str, *, choices: Sequence[str] = (), minimum: float | None = None,
           maximum: float | None = None, metavar: str = "", aliases: Sequence[str] = (), group: str = "",
           output: bool = False, otherwise: str = "") -> Any:
    """A field of an options dataclass.

    Args:
        default: value when not given; None means "absent" and must be explained by ``help``.
        help: one line for people, with the unit.
        choices: allowed values of a text option; capital and small letters are taken alike where only one fits.
        minimum, maximum: inclusive bounds of a number.
        metavar: placeholder in help.
        aliases: further names on the command line, with their dashes ("-E").
        group: heading under which help shows it.
        output: whether it names a file that is written. Such options are taken from who asks for a search, never from
            a pipeline or its file; options of stages are none.
        otherwise: what helps who wants none of the choices; said where another value is refused.
    """
    metadata = {"help": help, "choices": tuple(choices), "minimum": minimum, "maximum": maximum, "metavar": metavar,
                "aliases": tuple(aliases), "group": group, "output": output, "otherwise": otherwise}
    return dataclasses.field(default=default, metadata=metadata)


@dataclass(frozen=True)
class OptionInfo:
    """One option of an options class, as the command line and the docs need it."""

    name: str
    type: type
    nullable: bool
    default: Any
    help: str
    choices: tuple[str, ...]
    minimum: float | None
    maximum: float | None
    metavar: str
    aliases: tuple[str, ...]
    group: str
    output: bool
    otherwise: str

    @property
    def flag(self) -> str:
        return "--" + self.name.replace("_", "-")

    def parse(self, value: Any, where: str = "") -> Any:
        """``value`` (text or typed) as this option's type; raises ``OptionError`` that names the option."""
        name = where or self.flag
        if value is None or (self.nullable and isinstance(value, str) and value.lower() in ("none", "")):
            if self.nullable:
                return None
            raise OptionError(f"{name} needs a value of type {self.type.__name__}")
        try:
            parsed = self._convert(value)
        except (ValueError, TypeError, OverflowError):
            raise OptionError(f"{name} needs a value of type {self.type.__name__}, not {value!r}") from None
        if self.type is int and abs(parsed) > _LARGEST:
            raise OptionError(f"{name} must be between -{_LARGEST:,} and {_LARGEST:,}, not {value}")
        if self.choices and parsed not in self.choices:
            alike = [choice for choice in self.choices if choice.lower() == parsed.lower()]
            if len(alike) == 1:
                return alike[0]
            help = f"; {self.otherwise}" if self.otherwise else ""
            raise OptionError(f"{name} must be one of {', '.join(self.choices)}, not {value!r}{help}")
        if self.minimum is not None and not parsed >= self.minimum:
            raise OptionError(f"{name} must be at least {self.minimum:,}, not {value}")
        if self.maximum is not None and not parsed <= self.maximum:
            raise OptionError(f"{name} must be at most {self.maximum:,}, not {value}")
        return parsed

    def _convert(self, value: Any) -> Any:
        if self.type is bool:
            if isinstance(value, bool):
                return value
            word = str(value).lower()
            if word not in (*_TRUE, *_FALSE):
                raise ValueError
            return word in _TRUE
        if isinstance(value, bool) or (self.type is int and isinstance(value, float) and value != int(value)):
            raise ValueError
        converted = self.type(value)
        if self.type is float and not math.isfinite(converted):
            raise ValueError
        return converted


def option_infos(options: type) -> list[OptionInfo]:
    """The options of an options class in order of declaration."""
    return list(_infos(options))


@cache
def _infos(options: type) -> tuple[OptionInfo, ...]:
    hints = typing.get_type_hints(options)
    infos = []
    for item in dataclasses.fields(options):
        kind = hints[item.name]
        nullable = False
        if isinstance(kind, types.UnionType) or typing.get_origin(kind) is typing.Union:
            members = [a for a in typing.get_args(kind) if a is not type(None)]
            nullable, kind = len(members) < len(typing.get_args(kind)), members[0]
        meta = {"help": "", "choices": (), "minimum": None, "maximum": None, "metavar": "", "aliases": (), "group": "",
                "output": False, "otherwise": "", **item.metadata}
        infos.append(OptionInfo(item.name, kind, nullable, item.default, **meta))
    return tuple(infos)


def build_options(options: type, values: Mapping[str, Any], where: str = "") -> Any:
    """An instance of ``options`` from values by name (dashes or underscores), checked and converted.

    Raises ``UnknownNameError`` for a name that isn't an option and ``OptionError`` for a bad value. A class may define
    ``check(self)`` to refuse contradictions.
    """
    built = options(**parse_options(options, values, where))
    check = getattr(built, "check", None)
    if check:
        check()
    return built


def parse_options(options: type, values: Mapping[str, Any], where: str = "") -> dict[str, Any]:
    """``values`` under the names of the fields of ``options``, each checked and converted; see ``build_options``."""
    infos = {i.name: i for i in option_infos(options)}
    parsed = {}
    for name, value in values.items():
        key = name.replace("-", "_")
        if key not in infos:
            raise UnknownNameError("option", name, list(infos), f"of {where}" if where else "")
        parsed[key] = infos[key].parse(value, f"{where}.{key}" if where else "")
    return parsed


def options_dict(options: Any) -> dict[str, Any]:
    """Values by name, for provenance."""
    return dataclasses.asdict(options)
