"""Data classes whose methods needn't be compiled in every process.

``dataclasses.dataclass`` writes the text of up to six methods for each class and compiles it, half a millisecond, which
is a tenth of the start of a short search. This decorator of the same name takes the same words and gives classes that
do the same, with methods that go over the fields. ``fields``, ``replace``, ``asdict`` and type checkers see no
difference; classes of either kind may inherit from the other.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dataclasses import dataclass
else:
    import dataclasses
    from dataclasses import MISSING, Field, FrozenInstanceError
    from inspect import get_annotations

    @dataclasses.dataclass
    class _Thawed:
        """Where marks of fields and of classes are taken from."""

        field: int

    @dataclasses.dataclass(frozen=True)
    class _Frozen:
        field: int

    _FIELDS, _SETTINGS = "__dataclass_fields__", "__dataclass_params__"
    _MARK = dataclasses.fields(_Thawed)[0]._field_type

    def dataclass(cls=None, /, *, frozen=False, eq=True, slots=False, kw_only=False):
        """As ``dataclasses.dataclass``, of whose arguments it takes these."""
        if cls is None:
            return lambda made: dataclass(made, frozen=frozen, eq=eq, slots=slots, kw_only=kw_only)
        if slots or "__setattr__" in vars(cls):
            return dataclasses.dataclass(cls, frozen=frozen, eq=eq, slots=slots, kw_only=kw_only)
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
        setattr(cls, _SETTINGS, getattr(_Frozen if frozen else _Thawed, _SETTINGS))
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
        return (kind.removeprefix("typing.").startswith("ClassVar") if isinstance(kind, str) else
                str(kind).startswith("typing.ClassVar"))

    def _member(cls, name, kind, kw_only):
        """The field of that name."""
        value = vars(cls).get(name, MISSING)
        member = value if isinstance(value, Field) else dataclasses.field(default=value)
        member.name, member.type, member._field_type = name, kind, _MARK
        member.kw_only = kw_only if member.kw_only is MISSING else member.kw_only
        if member.default is not MISSING:
            if member.default.__class__.__hash__ is None:
                raise ValueError(f"{cls.__name__}.{name} has a default that all objects would share")
            setattr(cls, name, member.default)
        elif isinstance(value, Field):
            delattr(cls, name)
        return member

    def _maker(cls, members):
        """``__init__``."""
        places = [member.name for member in members if member.init and not member.kw_only]
        names = {member.name for member in members if member.init}
        needed = [member.name for member in members
                  if member.default is MISSING and member.default_factory is MISSING and member.init]
        defaults = [(member.name, member.default) for member in members if member.default is not MISSING]
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
            own.update(zip(places, values))
            if named:
                if not named.keys() <= names or not named.keys().isdisjoint(places[: len(values)]):
                    wrong = sorted((named.keys() - names) | (named.keys() & set(places[: len(values)])))
                    raise TypeError(f"{type(self).__name__}() doesn't take {', '.join(wrong)}, or takes it once only")
                own.update(named)
            if len(own) < count:
                for name in needed:
                    if name not in own:
                        raise TypeError(f"{type(self).__name__}() needs {name}")
                for name, value in defaults:
                    own.setdefault(name, value)
                for name, make in factories:
                    if name not in own:
                        own[name] = make()
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


__all__ = ["dataclass"]
