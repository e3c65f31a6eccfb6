"""How kernels become machine code: numba translates each function that is called, LLVM takes up the whole, once.

By itself numba makes a library of every function that a kernel calls: optimised, turned into machine code, with entries
for callers in Python and C; and all of it again for each caller that it is linked into. Here functions are translated
only. A kernel is linked with what it calls, nothing of which can be seen from outside, and then optimised and turned
into machine code. To numba this is a target of its own, derived from that of the CPU by numba's own means, so that
functions which other programs have compiled in the same process are compiled as ever.

Imported when something has to be compiled; ``core/kernels/jit.py`` is the door.
"""

import gc
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property, update_wrapper
from types import FunctionType
from typing import Any

from llvmlite import binding
from numba.core import codegen, cpu, dispatcher, registry, types
from numba.core.compiler_lock import global_compiler_lock
from numba.core.runtime import rtsys
from numba.core.target_extension import CPU, dispatcher_registry, jit_registry, target_override, target_registry
from numba.extending import overload
from numba.np import arrayobj

from ..classes import NamedTuple
from .cpu import SIMD_LEVELS, host_cpu, level
from .laid_out import LaidOut, laid_out

TARGET = "seqloom"
"""Name of the target in numba's registries."""
_ROOM = 1 << 19
"""Bytes for frames of the compiler, which goes deeper where functions call each other."""

# Bases of any type: numba declares less than what it has.
_CodeLibrary: Any = codegen.CPUCodeLibrary
_JitCodegen: Any = codegen.JITCPUCodegen
_CpuContext: Any = cpu.CPUContext
_CpuTarget: Any = registry.CPUTarget
_Dispatcher: Any = dispatcher.Dispatcher

_NUMBAS = {"nopython": True, "no_cfunc_wrapper": True, "no_cpython_wrapper": True}
_CALLED = {**_NUMBAS, "nogil": True, "fastmath": False, "error_model": "numpy"}
_ENTRY = {**_CALLED, "no_cpython_wrapper": False}
_COUNTS = re.compile(r"^ *(?:tail )?call void @NRT_(?:inc|dec)ref\(.*$", re.MULTILINE)
_MAKES_ARRAYS = re.compile(r"call (?!void)[^@]*@NRT_")


class Compiled(NamedTuple):
    """A kernel: name of its entry, its machine code, and the constants of the interpreter that it refers to.

    code: laid out, or an object file where that can't be. environments: name of the place in it, module and constants
    of each function.
    """

    entry: str
    code: LaidOut | bytes
    environments: list[tuple[str, str, list[Any]]]


def _with_room(function: Any) -> Any:
    """The same function, with room for the frames of all that it calls.

    CPython lays frames one behind the other in pieces of 16 KiB. A call for which a piece has no room gets another from
    the operating system, and gives it back at its end; where loops that call lie at such borders, that takes a sixth
    to a third of the compiler's time. A frame that doesn't fit gets a piece that is larger, here twice as large as the
    frame, so that the other half is left for those behind it; what the frame doesn't use is never touched.
    """
    code = function.__code__.replace(co_stacksize=_ROOM // 8)
    return update_wrapper(FunctionType(code, function.__globals__), function)


@_with_room
def compiled(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Compiled:
    """Compile a function for arguments of the types of these.

    Raises:
        numba.core.errors.NumbaError: it can't be compiled for them.
    """
    with global_compiler_lock, target_override(TARGET), _without_collecting():
        whole = _Function(function, {}, _ENTRY)
        kinds = tuple(map(whole.typeof_pyval, arguments))
        whole.compile(kinds)
        result = whole.overloads[kinds]
        entry = result.fndesc.llvm_cpython_wrapper_name
        code = result.library.machine_code(entry)
        environments = {e.env_name: (e.env_name, e.globals["__name__"], list(e.consts))
                        for e in (result.environment, *result._find_referenced_environments())}
        return Compiled(entry, laid_out(code) or code, list(environments.values()))


def called(function: Callable[..., Any], name: str, tell: Callable[[str], None]) -> Any:
    """What kernels that call a function know it as; ``tell`` is told its ``name`` when it is translated."""
    return _Own(function, name, tell)


@contextmanager
def _without_collecting() -> Iterator[None]:
    """Garbage isn't looked for: that takes a quarter of the time, since the compiler has much that is no garbage."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


class _Host(CPU):
    """The target, for numba: what can be done on a CPU can be done here."""


class _Library(_CodeLibrary):
    """A translated function, and in the end what it calls."""

    _final_module: Any

    def _optimize_functions(self, module: Any) -> None:
        module.data_layout = self.codegen._data_layout

    def _optimize_final_module(self) -> None:
        """All in good time, by ``machine_code``."""

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True

    def machine_code(self, entry: str) -> bytes:
        """An object file of the function and all that it calls, of which ``entry`` can be called."""
        self.add_linking_library(rtsys.library)
        self.finalize()
        self._final_module = module = _uncounted(self._final_module, entry)
        if any(variable.name.startswith(codegen.RuntimeLinker.PREFIX) for variable in module.global_variables):
            raise TypeError("functions that call one another in turn can't be compiled as kernels")
        for function in module.functions:
            if not function.is_declaration and function.name != entry:
                function.linkage = "internal"
        super()._optimize_final_module()
        return bytes(self.codegen._tm.emit_object(module))


def _uncounted(module: Any, entry: str) -> Any:
    """The module without the counting of references to arrays, if all arrays are arguments of ``entry``.

    Those stay as long as it is at work. Counting takes up to a fifth of the time of kernels that take short slices.
    """
    functions = re.split("^(?=define )", str(module), flags=re.MULTILINE)
    door = next(function for function in functions if entry in function.partition("\n")[0])
    if "@NRT_adapt_ndarray_to_python" in door or any(_MAKES_ARRAYS.search(f) for f in functions if f is not door):
        return module
    return binding.parse_assembly("".join(f if f is door else _COUNTS.sub("", f) for f in functions))


class _Codegen(_JitCodegen):
    """For the CPU that vectors are chosen for, whatever numba compiles for otherwise."""

    _library_class = _Library

    def _get_host_cpu_name(self) -> str:
        return host_cpu()

    def _get_host_cpu_features(self) -> str:
        return "" if SIMD_LEVELS.get(level) else codegen.get_host_cpu_features()


class _Context(_CpuContext):
    """Translates typed functions."""

    def init(self) -> None:
        super().init()
        self._internal_codegen = _Codegen(TARGET)

    def load_additional_registries(self) -> None:
        rtsys.initialize(registry.cpu_target.target_context)  # other programs use it, too
        super().load_additional_registries()

    def post_lowering(self, module: Any, library: Any) -> None:
        """Nothing is linked yet."""

    def get_executable(self, library: Any, about: Any, environment: Any) -> Any:
        """Nothing can be executed yet; callers name the function by its library."""
        return library


class _Target(_CpuTarget):
    @cached_property
    def _toplevel_target_context(self) -> _Context:
        return _Context(self.typing_context, TARGET)


class _Function(_Dispatcher):
    """A function of this target, translated for any types of arguments that it is called with."""

    targetdescr = _Target(TARGET)

    def compile(self, signature: Any) -> None:
        kinds = tuple(signature)
        if kinds not in self.overloads:
            with self._compiling_counter:
                self.overloads[kinds] = self._compiler.compile(kinds, None)


class _Own(_Function):
    """A function that isn't numba's: translated once for all numbers of a type, whether or not they are known."""

    def __init__(self, function: Callable[..., Any], name: str, tell: Callable[[str], None]) -> None:
        super().__init__(function, {}, _CALLED)
        self._name, self._tell = name, tell

    def compile(self, signature: Any) -> None:
        if tuple(signature) not in self.overloads:
            self._tell(self._name)
        super().compile(signature)

    def get_call_template(self, arguments: Any, named: Any) -> Any:
        return super().get_call_template([_of_any_value(a) for a in arguments],
                                         {name: _of_any_value(a) for name, a in named.items()})


def _of_any_value(kind: Any) -> Any:
    return types.unliteral(kind) if isinstance(kind, types.IntegerLiteral | types.BooleanLiteral) else kind


target_registry[TARGET] = _Host
dispatcher_registry[_Host] = _Function
jit_registry[_Host] = lambda **options: lambda function: _Function(function, {}, {**_NUMBAS, **options})


def _differ(source, index):
    """In place of numba's own, which names both shapes and takes a second to compile in kernels that assign slices."""

    def differ(source, index):
        raise ValueError("an array is assigned to a slice of another shape")

    return differ


if hasattr(arrayobj, "raise_with_shape_context"):
    overload(arrayobj.raise_with_shape_context, target=TARGET)(_differ)
