"""Data classes and named tuples whose methods needn't be compiled in every process.

``dataclasses.dataclass`` writes the text of up to six methods for each class and compiles it, half a millisecond, which
is a tenth of the start of a short search; ``typing.NamedTuple`` does so with one. These of the same names take the same
words and give classes that do the same, with methods that go over the fields. ``fields``, ``replace``, ``asdict``,
numba and type checkers see no difference; data classes of either kind may inherit from the other.
"""

from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from dataclasses import dataclass
    from typing import NamedTuple
else:
    import dataclasses
    from collections import _tuplegetter
    from copy import copy
    from dataclasses import MISSING, Field, FrozenInstanceError
    from inspect import Parameter, Signature, get_annotations

    @dataclasses.dataclass(init=False, repr=False, eq=False)
    class _Example:
        """Where marks of fields and of classes are taken from."""

        field: int

    _FIELDS, _SETTINGS = "__dataclass_fields__", "__dataclass_params__"
    _MARK = dataclasses.fields(_Example)[0]._field_type

    def _settings(frozen):
        """What a class remembers of the words of its decorator."""
        settings = copy(_Example.__dataclass_params__)
        settings.init = settings.repr = settings.eq = True
        settings.frozen = frozen
        return settings

    _THAWED, _FROZEN = _settings(False), _settings(True)

    def dataclass(cls=None, /, *, frozen=False, eq=True, kw_only=False):
        """As ``dataclasses.dataclass``, of whose arguments it takes these."""
        if cls is None:
            return lambda made: dataclass(made, frozen=frozen, eq=eq, kw_only=kw_only)
        if "__setattr__" in vars(cls):
            return dataclasses.dataclass(cls, frozen=frozen, eq=eq, kw_only=kw_only)
        members = {}
        for base in reversed(cls.__mro__[1:]):
            inherited = getattr(base, _FIELDS, None)
            if inherited is not None:
                members.update(inherited)
                if base.__dataclass_params__.frozen is not frozen:
                    raise TypeError(f"{cls.__name__} and {base.__name__} must both be frozen, or neither")
        members.update((name, _member(cls, name, kind, kw_only)) for name, kind in get_annotations(cls).items()
                       if not _of_class(kind))
        setattr(cls, _FIELDS, members)
        setattr(cls, _SETTINGS, _FROZEN if frozen else _THAWED)
        given = [member for member in members.values() if member.init]
        _add(cls, "__match_args__", tuple(member.name for member in given if not member.kw_only))
        _add(cls, "__init__", _maker(cls, list(members.values())))
        _add(cls, "__repr__", _shower([member.name for member in members.values() if member.repr]))
        if eq:
            compared = [member.name for member in members.values() if member.compare]
            _add(cls, "__eq__", _comparer(compared))
            hashed = [member.name for member in members.values()
                      if (member.compare if member.hash is None else member.hash)]
            if frozen:
                _add(cls, "__hash__", _hasher(hashed))
            elif vars(cls).get("__hash__") is None:
                cls.__hash__ = None
        if frozen:
            cls.__setattr__, cls.__delattr__ = _not_set, _not_deleted
        if not cls.__doc__:
            cls.__doc__ = cls.__name__
        return cls

    def _add(cls, name, value):
        """Unless the class says it itself; a class that says what is equal has no hash otherwise."""
        if vars(cls).get(name) is None:
            setattr(cls, name, value)

    def _of_class(kind):
        """Whether an annotation is of the class, not of its objects."""
        if isinstance(kind, str):
            return kind.removeprefix("typing.").startswith("ClassVar")
        return kind is ClassVar or getattr(kind, "__origin__", None) is ClassVar

    def _member(cls, name, kind, kw_only):
        """The field of that name."""
        value = vars(cls).get(name, MISSING)
        member = value if isinstance(value, Field) else dataclasses.field(default=value)
        member.name, member.type, member._field_type = name, kind, _MARK
        member.kw_only = kw_only if member.kw_only is MISSING else member.kw_only
        if member.default is not MISSING:
            if member.default.__class__.__hash__ is None:
                raise ValueError(f"{cls.__name__}.{name} has a default that all objects would share")
            if member is value:
                setattr(cls, name, member.default)
        elif member is value:
            delattr(cls, name)
        return member

    def _maker(cls, members):
        """``__init__``."""
        places = [member.name for member in members if member.init and not member.kw_only]
        names = {member.name for member in members if member.init}
        needed = [member.name for member in members
                  if member.default is MISSING and member.default_factory is MISSING and member.init]
        defaults = {member.name: member.default for member in members if member.default is not MISSING}
        factories = [(member.name, member.default_factory) for member in members
                     if member.default_factory is not MISSING]
        count, most, finished = len(members), len(places), hasattr(cls, "__post_init__")
        seen = False
        for member in members:
            if member.init and not member.kw_only:
                without = member.default is MISSING and member.default_factory is MISSING
                if without and seen:
                    raise TypeError(f"{cls.__name__}.{member.name} has no default and follows one that has")
                seen = seen or not without

        def __init__(self, /, *values, **named):
            own = self.__dict__
            if len(values) > most:
                raise TypeError(f"{type(self).__name__}() takes {most} arguments, not {len(values)}")
            own.update(defaults)
            for name, value in zip(places, values):
                own[name] = value
            if named:
                if not named.keys() <= names or not named.keys().isdisjoint(places[: len(values)]):
                    wrong = sorted((named.keys() - names) | (named.keys() & set(places[: len(values)])))
                    raise TypeError(f"{type(self).__name__}() doesn't take {', '.join(wrong)}, or takes it once only")
                own.update(named)
            if len(own) < count:
                for name, make in factories:
                    if name not in own:
                        own[name] = make()
                if len(own) < count:
                    for name in needed:
                        if name not in own:
                            raise TypeError(f"{type(self).__name__}() needs {name}")
            if finished:
                self.__post_init__()

        return __init__

    def _shower(names):
        """``__repr__``."""

        def __repr__(self):
            return f"{type(self).__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"

        return __repr__

    def _comparer(names):
        """``__eq__``."""

        def __eq__(self, other):
            if other.__class__ is not self.__class__:
                return NotImplemented
            return all(getattr(self, name) is getattr(other, name) or getattr(self, name) == getattr(other, name)
                       for name in names)

        return __eq__

    def _hasher(names):
        """``__hash__``."""

        def __hash__(self):
            return hash(tuple(getattr(self, name) for name in names))

        return __hash__

    def _not_set(self, name, value):
        raise FrozenInstanceError(f"cannot assign to field {name!r}")

    def _not_deleted(self, name):
        raise FrozenInstanceError(f"cannot delete field {name!r}")

    class _Signature:
        """What a class of named tuples is called with, for numba and for help."""

        def __get__(self, made, cls):
            defaults = cls._field_defaults
            return Signature([Parameter(name, Parameter.POSITIONAL_OR_KEYWORD,
                                        default=defaults.get(name, Parameter.empty)) for name in cls._fields])

    class _Named(tuple):
        """What named tuples have in common. As in the standard library the names of these begin with an underscore,
        so that fields may have any other."""

        __slots__ = ()
        __signature__ = _Signature()

        def __new__(cls, /, *values, **named):
            if named or len(values) != len(cls._fields):
                values = _completed(cls, values, named)
            return _tuple(cls, values)

        def __getnewargs__(self):
            return tuple(self)

        def __repr__(self):
            return f"{type(self).__name__}({', '.join(f'{n}={v!r}' for n, v in zip(self._fields, self))})"

        @classmethod
        def _make(cls, values):
            made = _tuple(cls, values)
            if len(made) != len(cls._fields):
                raise TypeError(f"{cls.__name__} has {len(cls._fields)} fields, not {len(made)}")
            return made

        def _replace(self, /, **named):
            made = self._make(map(named.pop, self._fields, self))
            if named:
                raise ValueError(f"{type(self).__name__} has no {', '.join(named)}")
            return made

        def _asdict(self):
            return dict(zip(self._fields, self))

    _tuple = tuple.__new__

    def _completed(cls, values, named):
        """Values of all fields."""
        names, defaults, what = cls._fields, cls._field_defaults, cls.__name__
        if len(values) > len(names):
            raise TypeError(f"{what}() takes {len(names)} arguments, not {len(values)}")
        try:
            whole = (*values, *[named.pop(name) if name in named else defaults[name] for name in names[len(values) :]])
        except KeyError as error:
            raise TypeError(f"{what}() needs {error.args[0]}") from None
        if named:
            raise TypeError(f"{what}() doesn't take {', '.join(named)}, or takes it once only")
        return whole

    class _Maker(type):
        """Makes named tuples of the classes that inherit from ``NamedTuple``; these are classes like any other."""

        def __new__(made_by, name, bases, body):
            if not bases:
                return super().__new__(made_by, name, bases, body)
            if bases != (NamedTuple,):
                raise TypeError(f"{name}: a named tuple inherits from nothing else")
            body["__slots__"] = ()
            made = type(name, (_Named,), body)
            fields = tuple(get_annotations(made))
            made._field_defaults = defaults = {name: body[name] for name in fields if name in body}
            if list(defaults) != list(fields[len(fields) - len(defaults) :]):
                raise TypeError(f"{name}: fields with defaults come last")
            made._fields = made.__match_args__ = fields
            for place, field in enumerate(fields):
                setattr(made, field, _tuplegetter(place, ""))
            return made

    class NamedTuple(metaclass=_Maker):
        """As ``typing.NamedTuple``."""


__all__ = ["NamedTuple", "dataclass"]
