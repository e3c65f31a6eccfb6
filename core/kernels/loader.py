"""Loads kept machine code without numba and LLVM, whose imports alone take longer than many a search.

All that this needs of numba and llvmlite beside their public interfaces stands here and in ``compiler.py``. Where a
release has moved one of these parts, ``ImportError`` or ``AttributeError`` comes from here, and ``jit.py`` has numba
compile and load by itself.
"""

import importlib
import pickle
import sys
from collections.abc import Callable
from ctypes import PYFUNCTYPE, c_int, c_void_p, cast, py_object, pythonapi, string_at
from functools import cache
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from pathlib import Path
from typing import Any

from .laid_out import LaidOut, taken_in


def loaded(name: str, entry: str, code: LaidOut | bytes, environments: list[tuple[str, str, list[Any]]]
           ) -> Callable[..., Any]:
    """The function that ``compiler.compiled`` was given, ready to be called."""
    dynfunc = _extension("numba._dynfunc")
    made = {}
    for place, module, constants in environments:
        made[place] = environment = dynfunc.Environment({"__name__": module})
        environment.consts[:] = constants
    variables = {place: id(environment) for place, environment in made.items()}
    if isinstance(code, bytes):
        address = _through_llvm(entry, code, variables)
    else:
        address = taken_in(code, _address, variables) + code.symbols[entry]
    return dynfunc.make_function(sys.modules[__name__], name, "", address, next(iter(made.values())),
                                 tuple(made.values()))


@cache
def numba_folder() -> str:
    """Where numba is installed."""
    spec = PathFinder.find_spec("numba")
    if spec is None or not spec.submodule_search_locations:
        raise ImportError("numba is not installed")
    return spec.submodule_search_locations[0]


@cache
def _helpers() -> dict[str, int]:
    """Addresses of numba's own functions, and of the interpreter's objects, by the names that code has for them."""
    runtime = _extension("numba.core.runtime._nrt_python").c_helpers
    symbols = {name if name.startswith("_") else f"NRT_{name}": address for name, address in runtime.items()}
    helpers = _extension("numba._helperlib").c_helpers
    symbols |= {f"numba_{name}": address for name, address in helpers.items()}
    symbols |= {f"PyExc_{value.__name__}": id(value) for value in vars(importlib.import_module("builtins")).values()
                if isinstance(value, type) and issubclass(value, BaseException)}
    symbols["_Py_NoneStruct"] = id(None)
    symbols["numba_unpickle"] = cast(_unpickle, c_void_p).value or 0
    return symbols


@cache
def _address(name: str) -> int:
    """Where something is that code of a kernel names: numba's, the interpreter's, or one of the system's functions."""
    known = _helpers().get(name)
    return known if known is not None else cast(getattr(pythonapi, name), c_void_p).value or 0


def _through_llvm(entry: str, code: bytes, variables: dict[str, int]) -> int:
    """Have LLVM take in an object file; where its entry is."""
    from llvmlite import binding

    engine = _engine()
    engine.add_object_file(binding.ObjectFileRef.from_data(code))
    engine.finalize_object()
    for place, value in variables.items():
        c_void_p.from_address(engine.get_global_value_address(place)).value = value
    return int(engine.get_function_address(entry))


@cache
def _engine() -> Any:
    """LLVM's own way of taking machine code into the process."""
    from llvmlite import binding

    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    for name, address in _helpers().items():
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
    folder = Path(numba_folder(), *name.split(".")[1:-1])
    spec = PathFinder.find_spec(name, [str(folder)])
    if spec is None or spec.loader is None:
        raise ImportError(f"{name} is not where it should be, in {folder}; is numba installed whole?")
    module = module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
