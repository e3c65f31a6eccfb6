"""What kernels call and only numba can make: it is made when a kernel that calls it is compiled."""

from types import CellType, CodeType, FunctionType
from typing import Any


class Deferred:
    """Something that kernels call and that only numba can make."""

    name: str

    @property
    def real(self) -> Any:
        raise NotImplementedError

    def __repr__(self) -> str:
        return self.name


class Operation(Deferred):
    """An operation of ``core/kernels/intrinsics.py``, by name."""

    def __init__(self, name: str) -> None:
        self.name = self.operation = name

    @property
    def real(self) -> Any:
        from . import intrinsics

        return getattr(intrinsics, self.name)


def resolved(function: Any) -> Any:
    """The function with what is deferred among its globals and in its closure made real."""
    names = _names(function.__code__)
    real = {name: value.real for name, value in function.__globals__.items()
            if name in names and isinstance(value, Deferred)}
    cells = [CellType(c.cell_contents.real) if isinstance(c.cell_contents, Deferred) else c
             for c in function.__closure__ or ()]
    made = FunctionType(function.__code__, {**function.__globals__, **real}, function.__name__, function.__defaults__,
                        tuple(cells))
    made.__qualname__ = function.__qualname__
    return made


def _names(code: CodeType) -> set[str]:
    return set(code.co_names).union(*(_names(c) for c in code.co_consts if isinstance(c, CodeType)))
