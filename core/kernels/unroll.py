"""Kernels written with small fixed loops, unrolled in their source before they are compiled.

CUDA keeps a local array in registers only if every index is known when it compiles, which plain loops over some dozens
of rows don't give. A kernel template therefore says what is fixed::

    row = registers(ROWS)               # becomes row_0, row_1, …
    for k in unrolled(ROWS):            # its body, ROWS times, with k a number
        row[k] = row[k] + step[k % 4]   # constant indices into constant tuples become their values
        if k % 2 == 1: …                # conditions on constants are decided

Constants are those handed to ``specialise``. The generated source is kept in a file, so that compiled kernels can be
cached and errors point at lines that can be read.
"""

import ast
import importlib.util
import inspect
import sys
import tempfile
import textwrap
import threading
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

try:
    from _blake2 import blake2b
except ImportError:  # another interpreter
    from hashlib import blake2b

from ..user_cache import Unsafe, check_safe, kernel_cache, read_safely, refuse, trusted_owners, write_safely

_making = threading.RLock()
"""Held while a function is made: threads may ask for the same one."""


class _Specialiser(ast.NodeTransformer):
    """Replaces constants by their values, unrolls ``unrolled`` loops and spreads ``registers``."""

    def __init__(self, constants: Mapping[str, Any]) -> None:
        self._constants = dict(constants)
        self._registers: set[str] = set()

    def _value(self, node: ast.expr) -> Any:
        """Value of a constant expression; raises NameError (or another error) if it isn't one."""
        code = compile(ast.fix_missing_locations(ast.Expression(ast.parse(ast.unparse(node), mode="eval").body)),
                       "<constant>", "eval")
        return eval(code, {"__builtins__": {}}, self._constants)

    def _body(self, statements: list[ast.stmt]) -> list[ast.stmt]:
        made: list[ast.stmt] = []
        for statement in statements:
            result = self.visit(ast.parse(ast.unparse(statement)).body[0])
            made += result if isinstance(result, list) else [] if result is None else [result]
        return made

    def visit_For(self, node: ast.For) -> Any:
        call = node.iter
        if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "unrolled"):
            node.iter = self.visit(node.iter)
            node.body = self._body(node.body) or [ast.Pass()]
            return node
        assert isinstance(node.target, ast.Name)
        made: list[ast.stmt] = []
        for value in range(self._value(call.args[0])):
            self._constants[node.target.id] = value
            made += self._body(node.body)
        self._constants.pop(node.target.id, None)  # there is none where a loop has no turns
        return made

    def visit_While(self, node: ast.While) -> Any:
        node.test = self.visit(node.test)
        node.body = self._body(node.body)
        return node

    def visit_If(self, node: ast.If) -> Any:
        try:
            chosen = node.body if self._value(node.test) else node.orelse
        except Exception:
            node.test = self.visit(node.test)
            node.body = self._body(node.body) or [ast.Pass()]
            node.orelse = self._body(node.orelse)
            return node
        return self._body(chosen)

    def visit_Assign(self, node: ast.Assign) -> Any:
        call = node.value
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "registers":
            assert isinstance(node.targets[0], ast.Name)
            self._registers.add(node.targets[0].id)
            return None
        return self.generic_visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> Any:
        if isinstance(node.value, ast.Name) and node.value.id in self._registers:
            return ast.Name(f"{node.value.id}_{self._value(node.slice)}", node.ctx)
        if isinstance(node.ctx, ast.Load):
            try:
                return ast.Constant(self._value(node))
            except Exception:
                pass
        return self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> Any:
        known = isinstance(node.ctx, ast.Load) and node.id in self._constants
        return ast.Constant(self._constants[node.id]) if known else node


def specialise(template: Callable[..., Any], functions: Mapping[str, Any] | None = None, label: str = "",
               **constants: Any) -> Callable[..., Any]:
    """A plain function made from a kernel template.

    Args:
        template: function whose source uses ``registers`` and ``unrolled``; it is never called.
        functions: functions of the device that it calls by names which its module doesn't have.
        label: which functions these are, different for different ones.
        constants: names in it that are fixed: integers, or tuples of them.

    Returns:
        The function, with the globals of the template's module, defined in a file of its own.
    """
    home = sys.modules[template.__module__]
    # What a kernel is compiled from: its template and helpers in its module, those of packed16.py, and constants.
    texts = [Path(p).read_text(encoding="utf-8")
             for p in (str(home.__file__), __file__, Path(__file__).with_name("packed16.py"))]
    fixed = [template.__name__, label, *(f"{name}={value!r}" for name, value in sorted(constants.items()))]
    digest = blake2b("\n".join([*fixed, *texts]).encode(), digest_size=8).hexdigest()
    with _making:
        path = _kept(f"{template.__name__}_{digest}.py",
                     lambda: f"# {template.__name__}: {label}\n{_source(template, constants)}\n")
        name = f"seqloom_generated_{path.stem}"
        if name not in sys.modules:
            spec = importlib.util.spec_from_file_location(name, path)
            assert spec and spec.loader
            module = importlib.util.module_from_spec(spec)
            sys.modules[name] = module
            module.__dict__.update({k: v for k, v in vars(home).items() if not k.startswith("__")})
            module.__dict__.update(functions or {})
            spec.loader.exec_module(module)
        return getattr(sys.modules[name], template.__name__)


def _source(template: Callable[..., Any], constants: Mapping[str, Any]) -> str:
    """The function's text; half a second's work for a kernel of some thousand lines."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(template)))
    function = tree.body[0]
    assert isinstance(function, ast.FunctionDef)
    function.decorator_list = []
    function.body = _Specialiser(constants)._body(function.body)
    return ast.unparse(ast.fix_missing_locations(tree))


def _kept(name: str, text: Callable[[], str]) -> Path:
    """A file with a generated source: of this user's cache, or for this process where there is no safe place."""
    try:
        path = kernel_cache() / "generated" / name
        compiled = path.parent / "__pycache__"
        if compiled.exists():
            check_safe(compiled, compiled.stat(), trusted_owners())
        try:
            read_safely(path)
        except FileNotFoundError:
            write_safely(path, text().encode())
        return path
    except Unsafe as error:
        refuse(error)
    except (OSError, RuntimeError):
        pass  # no home, or one that can't be written to
    path = Path(_temporary().name) / name
    if not path.exists():
        path.write_text(text(), encoding="utf-8")
    return path


@cache
def _temporary() -> "tempfile.TemporaryDirectory[str]":
    """A folder that goes with the process."""
    return tempfile.TemporaryDirectory(prefix="seqloom-")
