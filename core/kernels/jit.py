"""The one door through which every host kernel is compiled: caching, floating-point rules and the CPU's features.

A kernel is compiled for this machine at its first use with arguments of some types (``compiler.py``). The machine code
is kept on disk (``cache.py``) together with all that it depends on (``stamps.py``), and loaded without numba and LLVM
(``loader.py``), whose imports alone (0.1 s) take longer than many a search; so modules of kernels don't import them,
and what only numba can make of their helpers is made when one has to be compiled.

These modules use parts of numba and llvmlite that are not public. Where a release has moved them, and where
``SEQLOOM_JIT=numba`` asks for it, numba compiles and keeps kernels by itself (``plain.py``), with the same results.
"""

import os
import sys
import threading
from collections.abc import Callable
from functools import cache, update_wrapper
from pathlib import Path
from typing import Any, cast

import llvmlite
import numpy as np

from . import cache as kept
from .cpu import host_cpu, host_features, host_system
from .deferred import Deferred, resolved
from .loader import loaded, numba_folder
from .stamps import stamp

on_compile: Callable[[str], None] | None = None
"""Told the name of every function that has to be compiled, before it is, for programs that want to say so."""
on_load: Callable[["Kernel", tuple[Any, ...]], None] | None = None
"""Told every kernel whose code is in memory from now on, with the kinds of arguments that it was loaded for; what
``Kernel.load`` takes."""

_CHOICES = ("", "seqloom", "numba")
_CONTIGUOUS, _FORTRAN, _ALIGNED_OR_WRITEABLE = 0x1, 0x2, 0x500
_MOVED = (ImportError, AttributeError)
"""What is raised where a part of numba or llvmlite isn't where it was."""
_OF_PARTS = (np.ndarray, tuple)
_lock = threading.RLock()
_by_numba = os.environ.get("SEQLOOM_JIT", "") == "numba"
if os.environ.get("SEQLOOM_JIT", "") not in _CHOICES:
    raise ImportError(f"SEQLOOM_JIT must be one of {', '.join(_CHOICES[1:])}, not '{os.environ['SEQLOOM_JIT']}'")


class _Compiled(Deferred):
    """A function whose form for kernels that call it is made once for each way of compiling."""

    py_func: Any

    def __init__(self, function: Callable[..., Any]) -> None:
        self.name, self.py_func = function.__qualname__, function
        self._real: dict[bool, Any] = {}
        update_wrapper(cast(Any, self), function)

    @property
    def real(self) -> Any:
        if _by_numba not in self._real:
            self._real[_by_numba] = self._made()
        return self._real[_by_numba]

    def _made(self) -> Any:
        raise NotImplementedError


class Inline(_Compiled):
    """A small helper that is made part of every kernel that calls it."""

    def _made(self) -> Any:
        import numba

        return numba.njit(inline="always", error_model="numpy")(resolved(self.py_func))

    def __call__(self, *arguments: Any) -> Any:
        return self.real(*arguments)


class Kernel(_Compiled):
    """A function that is machine code for the types of arguments that it has been called with.

    Attributes:
        origin: where another process finds it: a module, the name of it or of what makes it there, and arguments for
            that (``made_once``) or None.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        self.origin: tuple[str, str, tuple[Any, ...] | None] = function.__module__, self.name, None
        self._entries: dict[Any, Callable[..., Any]] = {}
        self._entry_of: dict[Any, Callable[..., Any]] = {}

    def __call__(self, *arguments: Any) -> Any:
        told: list[Any] = []  # what _kind tells of each and a bit more, in less time
        tell, array = told.append, np.ndarray
        for argument in arguments:
            if type(argument) is array:
                tell(argument.dtype)
                tell(argument.ndim)
                tell(argument.flags.num)
            elif isinstance(argument, _OF_PARTS):
                tell(_kind(argument))
            else:
                tell(type(argument))
        seen = tuple(told)
        entry = self._entry_of.get(seen)
        if entry is None:
            entry = self._entry_of[seen] = self._entry_for(arguments)
        return entry(*arguments)

    def _entry_for(self, arguments: tuple[Any, ...]) -> Callable[..., Any]:
        kinds = tuple([_kind(argument) for argument in arguments])
        with _lock:
            if kinds not in self._entries:
                self._entries[kinds] = self._entry(kinds, arguments)
                if on_load:
                    on_load(self, kinds)
            return self._entries[kinds]

    def load(self, kinds: tuple[Any, ...]) -> None:
        """Load what is kept for arguments of some kinds before anybody calls it; nothing where nothing is kept.

        Raises:
            ImportError, AttributeError: this release of numba or llvmlite isn't known.
        """
        with _lock:
            if not _by_numba and kinds not in self._entries and (parts := _Kept(self.py_func, kinds).parts()):
                self._entries[kinds] = loaded(self.name, *parts)

    def _made(self) -> Any:
        if _by_numba:
            from . import plain

            return plain.compiled(self.py_func, stamp(self.py_func), lambda: _tell(self.name))
        from . import compiler

        return compiler.called(resolved(self.py_func), self.name, _tell)

    def _entry(self, kinds: tuple[Any, ...], arguments: tuple[Any, ...]) -> Callable[..., Any]:
        if not _by_numba:
            try:
                return self._own_entry(kinds, arguments)
            except _MOVED as error:
                _leave_to_numba(error)
        return self.real

    def _own_entry(self, kinds: tuple[Any, ...], arguments: tuple[Any, ...]) -> Callable[..., Any]:
        place = _Kept(self.py_func, kinds)
        if parts := place.parts():
            return loaded(self.name, *parts)
        _tell(self.name)
        from . import compiler

        parts = compiler.compiled(resolved(self.py_func), arguments)
        place.keep(parts)
        return loaded(self.name, *parts)


class _Kept:
    """Where the code of a function is kept for arguments of some kinds, and all that it depends on."""

    def __init__(self, function: Any, kinds: tuple[Any, ...]) -> None:
        self._source = Path(function.__code__.co_filename)
        closed_over = [_named_constant(cell.cell_contents) for cell in function.__closure__ or ()]
        about = repr((_machine(), closed_over, "".join(map(_named, kinds))))
        self._name = f"{self._source.stem}.{function.__qualname__}.{kept.digest(about)}.kernel"
        self._depends = stamp(function)
        self._whole = about, self._depends, _shared()

    def parts(self) -> tuple[Any, ...]:
        """What ``compiler.compiled`` gave; empty where nothing is kept."""
        return () if self._depends is None else kept.read(self._source, self._name, self._whole)

    def keep(self, parts: tuple[Any, ...]) -> None:
        if self._depends is not None:
            kept.keep(self._source, self._name, self._whole, parts)


def kernel(function: Callable[..., Any]) -> Any:
    """Compile a host kernel: cached, without the interpreter lock, IEEE arithmetic without contraction.

    It takes numbers, arrays, None and tuples of these, and gives back such. It may call other kernels, ``inline``
    helpers and the operations of ``simd.py``, of any module, and use constants: it is compiled anew when one of them
    changes.
    """
    return Kernel(function)


def made_once(factory: Callable[..., Any]) -> Callable[..., Any]:
    """As ``functools.cache``, for what makes a kernel of the module's from a few plain arguments."""

    @cache
    def made(*arguments: Any) -> Any:
        found = factory(*arguments)
        found.origin = factory.__module__, factory.__qualname__, arguments
        return found

    return update_wrapper(made, factory)


def inline(function: Callable[..., Any]) -> Any:
    """Compile a small helper that is made part of every kernel that calls it."""
    return Inline(function)


def _tell(name: str) -> None:
    if on_compile:
        on_compile(name)


def _leave_to_numba(error: Exception) -> None:
    """From now on numba compiles, and this is said."""
    global _by_numba
    _by_numba = True
    print(f"seqloom: numba compiles by itself, since this release of it isn't known ({type(error).__name__}: {error}); "
          "results are the same, starting takes longer (SEQLOOM_JIT=numba: without this line)", file=sys.stderr)


# ---- telling arguments and machines apart


def _kind(value: Any) -> Any:
    """What decides the machine code for an argument."""
    if isinstance(value, np.ndarray):
        flags = value.flags.num
        layout = _CONTIGUOUS if flags & _CONTIGUOUS else flags & _FORTRAN
        return value.dtype, value.ndim, layout | flags & _ALIGNED_OR_WRITEABLE
    if isinstance(value, tuple):
        return type(value), *map(_kind, value)
    return type(value)


@cache
def _named(kind: Any) -> str:
    """A kind as text, which numpy takes its time for."""
    if isinstance(kind, tuple):
        return f"({','.join(map(_named, kind))})"
    return f"{kind.__module__}.{kind.__qualname__}" if isinstance(kind, type) else repr(kind)


def _named_constant(value: Any) -> str:
    """What tells functions apart that are made of one text; whether it has changed is for ``stamps.py`` to say."""
    return f"{value.__module__}.{value.__qualname__}" if hasattr(value, "__qualname__") else repr(value)


@cache
def _machine() -> tuple[str, ...]:
    """What machine code depends on beside its source: processor, interpreter, numba, llvmlite."""
    features = ",".join(sorted(host_features()))
    numba = _time_and_size(Path(numba_folder()) / "_version.py")
    return (host_system(), host_cpu(), features, str(sys.implementation.cache_tag), str(numba),
            llvmlite.__version__, np.__version__)


@cache
def _shared() -> tuple[tuple[int, int], ...]:
    """Of the modules whose text is part of every kernel."""
    return tuple(_time_and_size(Path(__file__).with_name(name)) for name in ("compiler.py", "cpu.py", "intrinsics.py",
                                                                       "laid_out.py"))


def _time_and_size(path: Path) -> tuple[int, int]:
    about = path.stat()
    return about.st_mtime_ns, about.st_size
