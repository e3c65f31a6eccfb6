"""Data classes and named tuples of ours do what those of the standard library do."""

import copy
import dataclasses
import inspect
import pickle
import typing
from collections.abc import Callable
from dataclasses import field
from functools import cached_property
from typing import Any, ClassVar

import pytest
from seqloom.core.classes import NamedTuple, dataclass

Maker = Callable[..., Any]
KINDS = [dataclasses.dataclass, dataclass]


def classes(make: Maker, frozen: bool) -> tuple[type, type]:
    """A class and one that inherits from it, made by one decorator or the other."""

    @make(frozen=frozen)
    class Base:
        number: int
        text: "str" = "none"
        seen: ClassVar[int] = 3
        kept: list[int] = field(default_factory=list, compare=False, repr=False)

        @cached_property
        def twice(self) -> int:
            return 2 * self.number

    @make(frozen=frozen, kw_only=True)
    class Derived(Base):
        """Has a docstring."""

        last: float = field(default=1.5, hash=False)
        made: int = field(init=False, default=7)

        def __post_init__(self) -> None:
            object.__setattr__(self, "made", self.number + 1)

    return Base, Derived


CALLS: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
    ((1,), {}), ((1, "a"), {}), ((), {"number": 2}), ((1,), {"text": "b", "kept": [4]}), ((1, "a", [2]), {}), ((), {}),
    ((1,), {"number": 2}), ((1,), {"other": 2}), ((1, "a", [2], 3), {}), ((), {"text": "c"})]


@pytest.mark.parametrize("frozen", [False, True])
@pytest.mark.parametrize("place", [0, 1])
def test_as_those_of_the_standard_library(frozen: bool, place: int) -> None:
    theirs, ours = (classes(make, frozen)[place] for make in KINDS)
    for values, named in CALLS:
        made = []
        for kind in (theirs, ours):
            try:
                made.append(kind(*values, **named))
            except TypeError:
                made.append(None)
        one, other = made
        assert (one is None) == (other is None)
        if other is None:
            continue
        assert vars(one) == vars(other) and dataclasses.asdict(one) == dataclasses.asdict(other)
        assert repr(one) == repr(other) and one != other
        same = ours(*values, **named)
        assert same == other and dataclasses.replace(other, number=9) == dataclasses.replace(same, number=9) != other
        assert copy.copy(other) == other and other.twice == 2 * other.number
        if frozen:
            assert hash(same) == hash(other) and len({same, other}) == 1
            with pytest.raises(dataclasses.FrozenInstanceError):
                other.number = 3
            with pytest.raises(dataclasses.FrozenInstanceError):
                del other.number
        else:
            with pytest.raises(TypeError):
                hash(other)
            other.number = 3
            assert other != same
    told = [[(f.name, f.type, f.default, f.init, f.repr, f.compare, f.hash, f.kw_only)
             for f in dataclasses.fields(kind)] for kind in (theirs, ours)]
    assert told[0] == told[1] and theirs.__match_args__ == ours.__match_args__  # type: ignore[attr-defined]
    assert hasattr(theirs, "kept") == hasattr(ours, "kept")


@pytest.mark.parametrize("frozen", [False, True])
@pytest.mark.parametrize("first", [0, 1])
def test_either_kind_may_inherit_from_the_other(frozen: bool, first: int) -> None:
    Base = classes(KINDS[first], frozen)[0]

    @KINDS[1 - first](frozen=frozen)
    class More(Base):  # type: ignore[misc, valid-type]
        more: int = 0

    made = More(1, "a", [2], more=4)
    assert (made.number, made.text, made.kept, made.more) == (1, "a", [2], 4) and made == More(1, "a", [3], 4)
    with pytest.raises(TypeError, match="frozen"):

        @KINDS[1 - first](frozen=not frozen)
        class Other(Base):  # type: ignore[misc, valid-type]
            more: int = 0


@dataclass(frozen=True)
class Sent:
    number: int
    kept: tuple[int, ...] = ()


def test_objects_are_pickled() -> None:
    assert pickle.loads(pickle.dumps(Sent(3, (1,)))) == Sent(3, (1,))


def test_mistakes_in_classes_are_told() -> None:
    with pytest.raises(ValueError, match="share"):

        @dataclass
        class Shared:
            numbers: list[int] = []

    with pytest.raises(TypeError, match="default"):

        @dataclass
        class Order:
            number: int = 0
            text: str


def test_what_a_class_says_itself_stays() -> None:
    @dataclass(frozen=True)
    class Own:
        number: int

        def __eq__(self, other: object) -> bool:
            return True

        def __repr__(self) -> str:
            return "own"

    assert Own(1) == 3 and repr(Own(1)) == "own" and hash(Own(1)) == hash((1,))


def test_without_equality_objects_are_themselves() -> None:
    @dataclass(eq=False)
    class Alone:
        number: int

    one = Alone(1)
    assert one == one and one != Alone(1) and len({one, Alone(1)}) == 2


class Theirs(typing.NamedTuple):
    """Some fields."""

    number: int
    text: "str"
    rest: tuple[int, ...] = ()
    last: float = 1.5

    @property
    def twice(self) -> int:
        return 2 * self.number


class Ours(NamedTuple):
    """Some fields."""

    number: int
    text: "str"
    rest: tuple[int, ...] = ()
    last: float = 1.5

    @property
    def twice(self) -> int:
        return 2 * self.number


TUPLES: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
    ((1, "a"), {}), ((1, "a", (2,)), {}), ((1, "a", (2,), 3.0), {}), ((1,), {"text": "b"}), ((1,), {}), ((), {}),
    ((), {"text": "c", "number": 1, "last": 0.5}), ((1, "a"), {"number": 2}), ((1, "a"), {"other": 2}),
    ((1, "a", (2,), 3.0, 4), {}), ((1, "a"), {"last": 2.5}), ((1, "a", (2,), 3.0), {"last": 2.5})]


@pytest.mark.parametrize("values, named", TUPLES)
def test_named_tuples_as_those_of_the_standard_library(values: tuple[Any, ...], named: dict[str, Any]) -> None:
    try:
        one = Theirs(*values, **named)
    except TypeError:
        with pytest.raises(TypeError):
            Ours(*values, **named)
        return
    other = Ours(*values, **named)
    assert other == one == tuple(other) and hash(other) == hash(one) and other.twice == one.twice
    assert repr(other) == repr(one).replace("Theirs", "Ours") and other._asdict() == one._asdict()
    assert [other.number, other.text, other.rest, other.last] == [*one]
    assert other._replace(text="z") == one._replace(text="z") and type(other._replace(text="z")) is Ours
    assert Ours._make(iter(one)) == other == copy.copy(other) == pickle.loads(pickle.dumps(other))
    assert type(pickle.loads(pickle.dumps(other, 0))) is Ours


def test_classes_of_named_tuples_as_those_of_the_standard_library() -> None:
    for name in ("_fields", "_field_defaults", "__match_args__", "__doc__", "__slots__"):
        assert getattr(Ours, name) == getattr(Theirs, name), name
    assert typing.get_type_hints(Ours) == typing.get_type_hints(Theirs) and type(Ours) is type(Theirs)
    ours, theirs = (inspect.signature(kind).parameters.values() for kind in (Ours, Theirs))
    assert [(p.name, p.kind, p.default) for p in ours] == [(p.name, p.kind, p.default) for p in theirs]
    match Ours(1, "a"):
        case Ours(number, text):
            assert (number, text) == (1, "a")
    with pytest.raises(AttributeError):
        Ours(1, "a").number = 2  # type: ignore[misc]
    with pytest.raises(AttributeError):
        Ours(1, "a").other = 2  # type: ignore[attr-defined]
    with pytest.raises(ValueError, match="other"):
        Ours(1, "a")._replace(other=1)
    with pytest.raises(TypeError):
        Ours._make((1,))
    with pytest.raises(TypeError, match="last"):

        class Order(NamedTuple):
            number: int = 0
            text: str  # type: ignore[misc]


def test_numba_takes_named_tuples() -> None:
    numba = pytest.importorskip("numba")

    @numba.njit
    def added(pair):
        made = Ours(pair.number + 1, pair.text, rest=pair.rest)
        return Ours(made.number, made.text, made.rest, pair.last)

    assert added(Ours(1, "a", (2, 3))) == Ours(2, "a", (2, 3)) and type(added(Ours(1, "a", (2, 3)))) is Ours
