"""The one door through which every host kernel is compiled: caching, floating-point rules and the CPU's features.

A kernel is compiled for this machine at its first use with arguments of some types (``core/compiler.py``). The machine
code is kept on disk: beside the installation where that can be written to, else in the user's cache (or
``NUMBA_CACHE_DIR``). Both places are read, so an installation that one user has warmed is warm for all. Kept code is
loaded without numba, whose import alone (0.1 s) takes longer than many a search; so modules of kernels don't import it,
and what only numba can make of their helpers is made when one has to be compiled. A kernel may call helpers of its own
file, of ``core/operations.py``, whose text is part of every stamp, and of the modules that it names as ``helpers``.

``SEQLOOM_SIMD`` chooses narrower vectors than the CPU has ("avx2", "portable"), for tests and comparisons. It must be
set before the first kernel is imported.
"""

import importlib
import os
import pickle
import sys
import threading
import zlib
from collections.abc import Callable, Iterable
from contextlib import suppress
from ctypes import PYFUNCTYPE, c_int, c_void_p, cast, py_object, string_at
from functools import cache, cached_property, update_wrapper
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from pathlib import Path
from types import CellType, CodeType, FunctionType, ModuleType
from typing import Any

import llvmlite
import numpy as np
from llvmlite import binding

from .user_cache import kernel_cache

SIMD_LEVELS = {"avx512": "", "avx2": "x86-64-v3", "portable": "x86-64"}
"""LLVM's name of the CPU that each level compiles for; "" is the host."""

level = os.environ.get("SEQLOOM_SIMD", "")
if level and level not in SIMD_LEVELS:
    raise ImportError(f"SEQLOOM_SIMD must be one of {', '.join(SIMD_LEVELS)}, not '{level}'")

on_compile: Callable[[str], None] | None = None
"""Told the name of every function that has to be compiled, before it is, for programs that want to say so."""

_CONTIGUOUS, _FORTRAN, _ALIGNED_OR_WRITEABLE = 0x1, 0x2, 0x500
_lock = threading.RLock()


class Deferred:
    """Something that kernels call and that only numba can make: it is made when a kernel that calls it is compiled."""

    name: str

    @property
    def real(self) -> Any:
        raise NotImplementedError

    def __repr__(self) -> str:
        return self.name


class Operation(Deferred):
    """An operation of ``core/operations.py``, by name."""

    def __init__(self, name: str) -> None:
        self.name = name

    @property
    def real(self) -> Any:
        from . import operations

        return getattr(operations, self.name)


class Inline(Deferred):
    """A small helper that is made part of every kernel that calls it."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.name, self.py_func = function.__qualname__, function
        update_wrapper(self, function)

    @cached_property
    def real(self) -> Any:
        import numba

        return numba.njit(inline="always", error_model="numpy")(_resolved(self.py_func))

    def __call__(self, *arguments: Any) -> Any:
        return self.real(*arguments)


class Kernel(Deferred):
    """A function that is machine code for the types of arguments that it has been called with."""

    def __init__(self, function: Callable[..., Any], helpers: tuple[ModuleType, ...]) -> None:
        self.name, self.py_func, self.helpers = function.__qualname__, function, helpers
        self._entries: dict[Any, Callable[..., Any]] = {}
        update_wrapper(self, function)

    def __call__(self, *arguments: Any) -> Any:
        kinds = tuple([_kind(argument) for argument in arguments])
        entry = self._entries.get(kinds)
        if entry is None:
            with _lock:
                entry = self._entries.get(kinds) or self._entry(kinds, arguments)
                self._entries[kinds] = entry
        return entry(*arguments)

    @cached_property
    def real(self) -> Any:
        from . import compiler

        return compiler.called(_resolved(self.py_func), self.name, _tell)

    def _entry(self, kinds: tuple[Any, ...], arguments: tuple[Any, ...]) -> Callable[..., Any]:
        code = self.py_func.__code__
        source = Path(code.co_filename)
        closed_over = [cell.cell_contents for cell in self.py_func.__closure__ or ()]
        about = repr((_machine(), closed_over, "".join(map(_named, kinds))))
        name = f"{source.stem}.{self.name}-{code.co_firstlineno}.{_digest(about)}.kernel"
        sources = (source, *_SHARED, *(Path(str(m.__file__)) for m in self.helpers))
        stamps = [about, *(_stamp(str(path)) for path in sources)]
        for folder in folders(source):
            kept = _read(folder / name)
            if kept and kept[0] == stamps:
                return _loaded(self.name, *kept[1:])
        _tell(self.name)
        from . import compiler

        parts = compiler.compiled(_resolved(self.py_func), arguments)
        with suppress(OSError, TypeError, AttributeError, pickle.PicklingError):  # else the next process compiles again
            _keep(folders(source), name, pickle.dumps((stamps, *parts)))
        return _loaded(self.name, *parts)


def kernel(function: Callable[..., Any] | None = None, *, helpers: tuple[ModuleType, ...] = ()) -> Any:
    """Compile a host kernel: cached, without the interpreter lock, IEEE arithmetic without contraction.

    It takes numbers, arrays, None and tuples of these, and gives back such.

    Args:
        helpers: modules whose kernels this one calls.
    """
    if function is None:
        return lambda given: Kernel(given, helpers)
    return Kernel(function, helpers)


def inline(function: Callable[..., Any]) -> Any:
    """Compile a small helper that is made part of every kernel that calls it."""
    return Inline(function)


def host_features() -> frozenset[str]:
    """What the CPU that is compiled for can do, by LLVM's names; of a narrower level what matters to vectors."""
    if SIMD_LEVELS.get(level):
        return frozenset({"avx2": ("avx2", "ssse3"), "portable": ()}[level])
    return frozenset(name for name, there in binding.get_host_cpu_features().items() if there)


def host_cpu() -> str:
    """LLVM's name of the CPU that is compiled for."""
    return SIMD_LEVELS.get(level) or binding.get_host_cpu_name()


# ---- before compiling


def _tell(name: str) -> None:
    if on_compile:
        on_compile(name)


def _resolved(function: Any) -> Any:
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


# ---- telling arguments apart


def _kind(value: Any) -> Any:
    """What decides the machine code for an argument."""
    if isinstance(value, np.ndarray):
        flags = value.flags.num
        layout = _CONTIGUOUS if flags & _CONTIGUOUS else flags & _FORTRAN
        return value.dtype, value.ndim, layout | flags & _ALIGNED_OR_WRITEABLE
    if isinstance(value, tuple):
        return type(value), *map(_kind, value)
    return type(value)


def _named(kind: Any) -> str:
    if isinstance(kind, tuple):
        return f"({','.join(map(_named, kind))})"
    return f"{kind.__module__}.{kind.__qualname__}" if isinstance(kind, type) else repr(kind)


# ---- keeping and loading machine code


@cache
def _machine() -> tuple[str, ...]:
    """What machine code depends on beside its source: processor, interpreter, numba, llvmlite."""
    features = ",".join(sorted(host_features()))
    numba = _stamp(str(Path(_numba_folder()) / "_version.py"))
    return (binding.get_process_triple(), host_cpu(), features,
            str(sys.implementation.cache_tag), str(numba), llvmlite.__version__)


@cache
def _numba_folder() -> str:
    spec = PathFinder.find_spec("numba")
    if spec is None or not spec.submodule_search_locations:
        raise ImportError("numba is not installed")
    return spec.submodule_search_locations[0]


@cache
def _stamp(path: str) -> tuple[int, int]:
    """Time and size of a file."""
    about = os.stat(path)
    return about.st_mtime_ns, about.st_size


def _digest(text: str) -> str:
    """Part of a name. What must not be taken for something else is written into the file as well."""
    return f"{zlib.crc32(text.encode()):08x}"


_SHARED = tuple(Path(__file__).with_name(name) for name in ("jit.py", "compiler.py", "simd.py", "operations.py"))


def folders(source: Path) -> list[Path]:
    """Where machine code of this file's kernels may be; it is written to the first that takes it."""
    beside = source.parent / "__pycache__"
    try:
        elsewhere = kernel_cache() / "kernels" / _digest(str(source.parent))
    except RuntimeError:
        return [beside]
    return [elsewhere, beside] if os.environ.get("NUMBA_CACHE_DIR") else [beside, elsewhere]


def _read(path: Path) -> tuple[Any, ...]:
    """What ``_keep`` wrote; nothing where there is nothing that could be used."""
    try:
        kept = pickle.loads(path.read_bytes())
    except Exception:  # a file that isn't ours may raise any
        return ()
    return kept if isinstance(kept, tuple) else ()


def _keep(places: Iterable[Path], name: str, data: bytes) -> None:
    """Write a file, whole or not at all, into the first folder that takes it."""
    for folder in places:
        temporary = folder / f"{name}.{os.getpid()}.tmp"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            temporary.write_bytes(data)
            temporary.replace(folder / name)
            return
        except OSError:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)


def _loaded(name: str, entry: str, code: bytes,
            environments: list[tuple[str, str, list[Any]]]) -> Callable[..., Any]:
    """The function that ``compiler.compiled`` was given, ready to be called."""
    engine, dynfunc = _engine(), _extension("numba._dynfunc")
    engine.add_object_file(binding.ObjectFileRef.from_data(code))
    engine.finalize_object()
    made = []
    for place, module, constants in environments:
        environment = dynfunc.Environment({"__name__": module})
        environment.consts[:] = constants
        c_void_p.from_address(engine.get_global_value_address(place)).value = id(environment)
        made.append(environment)
    return dynfunc.make_function(sys.modules[__name__], name, "", engine.get_function_address(entry), made[0],
                                 tuple(made))


@cache
def _engine() -> Any:
    """Takes machine code into the process, where it finds the interpreter's and numba's own functions."""
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    runtime = _extension("numba.core.runtime._nrt_python").c_helpers
    symbols = {name if name.startswith("_") else f"NRT_{name}": address for name, address in runtime.items()}
    helpers = _extension("numba._helperlib").c_helpers
    symbols |= {f"numba_{name}": address for name, address in helpers.items()}
    symbols |= {f"PyExc_{value.__name__}": id(value) for value in vars(importlib.import_module("builtins")).values()
                if isinstance(value, type) and issubclass(value, BaseException)}
    symbols["_Py_NoneStruct"] = id(None)
    symbols["numba_unpickle"] = cast(_unpickle, c_void_p).value or 0
    for name, address in symbols.items():
        binding.add_symbol(name, address)
    machine = binding.Target.from_default_triple().create_target_machine(jit=True)
    return binding.create_mcjit_compiler(binding.parse_assembly(""), machine)


@cache
def _unpickled(data: bytes) -> Any:
    return pickle.loads(data)


@PYFUNCTYPE(py_object, c_void_p, c_int, c_void_p)
def _unpickle(data: int, size: int, key: int) -> Any:
    """An object that machine code names, such as the type of an array that it returns; numba's own imports numba."""
    return _unpickled(string_at(data, size))


@cache
def _extension(name: str) -> Any:
    """A compiled module of numba's, which needs nothing of numba's Python code."""
    if name in sys.modules:
        return sys.modules[name]
    folder = Path(_numba_folder(), *name.split(".")[1:-1])
    spec = PathFinder.find_spec(name, [str(folder)])
    if spec is None or spec.loader is None:
        raise ImportError(f"{name} is not where it should be, in {folder}; is numba installed whole?")
    module = module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
