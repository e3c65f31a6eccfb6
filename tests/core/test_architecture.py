"""Rules of the house: which folder and which module may know which, what is packaged, what is imported at start."""

import ast
import re
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path

import pytest

from ..floors import floors

ROOT = Path(__file__).parents[2]
FOLDERS = ("core", "plugins", "storage", "api", "cli", "migrations")
MAY_IMPORT = {
    "core": {"core"},
    "plugins": {"plugins", "core"},
    "storage": {"storage", "core"},
    "migrations": {"migrations", "storage", "core"},
    "api": {"api", "storage", "core"},
    "cli": {"cli", "api", "storage", "core"},
}
"""Directions of dependency. ``api`` is the package ``seqloom`` itself. Migrations compare files with the schema."""
EXCEPT = {("storage/duck/migrate.py", "migrations")}
"""The module that runs the migrations finds their folder by its package."""


def modules() -> list[Path]:
    return sorted(p for folder in FOLDERS for p in (ROOT / folder).rglob("*.py"))


def name_of(path: Path) -> tuple[str, ...]:
    """Dotted name of a module, as a tuple: ("seqloom", "core", "engine")."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    parts = parts[1:] if parts[0] == "api" else parts
    return ("seqloom", *(parts[:-1] if parts[-1] == "__init__" else parts))


@cache
def imported(path: Path) -> list[tuple[int, tuple[str, ...]]]:
    """(line, dotted name) of everything a module imports, at any depth of its code; relative names made whole."""
    return imported_by(ast.parse(path.read_text(), str(path)), path)


def imported_by(tree: ast.AST, path: Path) -> list[tuple[int, tuple[str, ...]]]:
    """The same of a module's code, or of a part of it."""
    package = name_of(path) if path.name == "__init__.py" else name_of(path)[:-1]
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [(node.lineno, tuple(a.name.split("."))) for a in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            base += tuple((node.module or "").split(".")) if node.module else ()
            found += [(node.lineno, (*base, a.name)) for a in node.names]
        elif (isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute) and node.args
              and isinstance(node.args[0], ast.Constant) and isinstance(node.args[0].value, str)
              and getattr(node.func, "id", getattr(node.func, "attr", "")) in ("import_module", "__import__")):
            name = node.args[0].value
            base = package[: len(package) - (len(name) - len(name.lstrip(".")) - 1)] if name.startswith(".") else ()
            found.append((node.lineno, (*base, *filter(None, name.split(".")))))
    return found


def folder_of(name: tuple[str, ...]) -> str:
    """The folder that a dotted name of ours lives in; "" for what isn't ours."""
    if name[0] in FOLDERS and name[0] not in sys.stdlib_module_names:
        return f"{name[0]} (imported without seqloom.)"
    if name[0] != "seqloom":
        return ""
    return name[1] if len(name) > 1 and name[1] in FOLDERS else "api"


def test_dependencies_point_one_way() -> None:
    wrong = []
    for path in modules():
        here = path.relative_to(ROOT).parts[0]
        wrong += [f"{path.relative_to(ROOT)}:{line} imports {'.'.join(name)}" for line, name in imported(path)
                  if (there := folder_of(name)) and there not in MAY_IMPORT[here]
                  and (str(path.relative_to(ROOT)), there) not in EXCEPT]
    assert not wrong, "\n".join(wrong)


def test_the_test_sees_every_form_of_import(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(sys.modules[__name__], "ROOT", tmp_path)
    (tmp_path / "core").mkdir()
    path = tmp_path / "core" / "bad.py"
    path.write_text("import seqloom.plugins.common.xdrop\nfrom ..storage import sources\nfrom .. import cli\n"
                    "def f():\n    from seqloom.api import x\n    import storage\n    from . import records\n"
                    "    importlib.import_module('..run', __name__)\n    from seqloom import search\n"
                    "    import numpy\n")
    assert [folder_of(name) for _, name in sorted(imported(path))] == [
        "plugins", "storage", "cli", "api", "storage (imported without seqloom.)", "core", "api", "api", ""]


class WithoutTypeChecking(ast.NodeTransformer):
    """Drops what only type checkers read."""

    def visit_If(self, node: ast.If) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.test, ast.Name | ast.Attribute) and ast.unparse(node.test) in (
                "TYPE_CHECKING", "typing.TYPE_CHECKING"):
            return ast.Module(node.orelse, [])
        return node


def circles() -> list[list[str]]:
    """Groups of modules that import each other, by whatever way, when they run: at their top or in a function."""
    paths = {name_of(path): path for path in modules()}
    known: dict[tuple[str, ...], set[tuple[str, ...]]] = {}
    for name, path in paths.items():
        tree = WithoutTypeChecking().visit(ast.parse(path.read_text(encoding="utf-8"), str(path)))
        # ``from a import b`` imports the module a.b if there is one, else the module a, which has b
        wanted = [n if n in paths else n[:-1] for _, n in imported_by(tree, path)]
        known[name] = {n for n in wanted if n in paths}

    def reached(name: tuple[str, ...]) -> set[tuple[str, ...]]:
        found, left = set(), [name]
        while left:
            new = known[left.pop()] - found
            found |= new
            left += new
        return found

    beyond = {name: reached(name) for name in known}
    groups = {tuple(sorted(".".join(n) for n in beyond[name] if name in beyond[n]))
              for name in known if name in beyond[name]}
    return sorted(map(list, groups))


def test_no_modules_import_each_other() -> None:
    assert not circles()


def test_the_test_sees_circles(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(sys.modules[__name__], "ROOT", tmp_path)
    for name, text in {"core/a.py": "from .b import x", "core/b.py": "def f():\n    from ..storage import c",
                       "storage/c.py": "import seqloom.core.a\nfrom ..core.d import y", "storage/__init__.py": "",
                       "core/d.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from . import b\n"
                                    "else:\n    from .e import z",
                       "core/e.py": "from . import e"}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert circles() == [["seqloom.core.a", "seqloom.core.b", "seqloom.storage.c"], ["seqloom.core.e"]]


def test_plugins_of_one_family_do_not_know_another_family() -> None:
    wrong = []
    for path in sorted((ROOT / "plugins").rglob("*.py")):
        parts = path.relative_to(ROOT).parts
        family = parts[1] if len(parts) > 2 else ""
        for line, name in imported(path):
            if name[:2] == ("seqloom", "plugins") and len(name) > 2 and name[2] not in (family, "common"):
                wrong.append(f"{path.relative_to(ROOT)}:{line} imports {'.'.join(name)}")
    assert not wrong, "\n".join(wrong)


def test_numba_is_imported_through_one_door() -> None:
    """Kernels of the host are compiled in ``core/kernels``; CUDA kernels and what serves them import numba as well."""
    doors = {ROOT / "core" / "backends.py", *(ROOT / "core" / "kernels").iterdir(), *(ROOT / "core" / "cuda").iterdir()}
    wrong = [f"{path.relative_to(ROOT)}:{line}" for path in modules() for line, name in imported(path)
             if name[0] == "numba" and path not in doors and not path.stem.endswith("_cuda")
             and path.relative_to(ROOT).parts[0] in ("core", "plugins", "storage")]
    assert not wrong, "\n".join(wrong)


def test_texts_are_utf_8_whatever_the_locale() -> None:
    wrong = []
    for path in modules():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call) or any(word.arg in ("encoding", None) for word in node.keywords):
                continue
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            mode = [a.value for a in node.args[1:2] if isinstance(a, ast.Constant) and isinstance(a.value, str)]
            if name in ("read_text", "write_text") or (
                    isinstance(node.func, ast.Name) and name == "open" and "b" not in "".join(mode)):
                wrong.append(f"{path.relative_to(ROOT)}:{node.lineno}")
    assert not wrong, "\n".join(wrong)


def test_reference_back_ends_use_no_compiled_kernels() -> None:
    compiled = ("seqloom", "core", "kernels")
    wrong = [f"{path.relative_to(ROOT)}:{line}" for path in modules() for line, name in imported(path)
             if path.stem.endswith("_reference") and name[:3] == compiled]
    assert not wrong, "\n".join(wrong)


@pytest.fixture(scope="module")
def project() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def test_no_package_is_missing_from_the_distribution(project) -> None:
    there = {".".join(name_of(p)) for p in modules() if p.name == "__init__.py"}
    assert set(project["tool"]["setuptools"]["packages"]) == there


def test_every_package_that_is_needed_has_a_lowest_version(project) -> None:
    wanted = [*project["project"]["dependencies"], *project["project"]["optional-dependencies"]["cuda"]]
    there = floors(ROOT / "pyproject.toml")
    assert {line.partition("==")[0] for line in there} >= {re.split(r"[<>=!~ ;]", wish)[0] for wish in wanted}
    assert all(re.fullmatch(r"[\w.-]+==\d[\w.]*", line) for line in there)


def test_every_folder_with_modules_is_a_package() -> None:
    assert not [str(p.relative_to(ROOT)) for p in modules() if not (p.parent / "__init__.py").exists()
                and p.name != "env.py" and p.parent.name != "versions"]


def test_data_files_are_in_the_distribution(project) -> None:
    """Every file in a package that isn't a module is named in the package data, so that an installed seqloom has it."""
    named = set()
    for package, patterns in project["tool"]["setuptools"]["package-data"].items():
        folder = "api" if package == "seqloom" else package.removeprefix("seqloom.").replace(".", "/")
        named |= {path for pattern in patterns for path in (ROOT / folder).glob(pattern)}
    tracked = subprocess.run(["git", "ls-files", *FOLDERS], cwd=ROOT, capture_output=True, text=True)
    if tracked.returncode:
        pytest.skip("needs the git checkout to know which files are ours")
    ours = {ROOT / line for line in tracked.stdout.splitlines() if not line.endswith((".py", ".md", ".ini"))}
    assert not [str(p.relative_to(ROOT)) for p in sorted(ours - named)]


def test_every_family_is_an_entry_point(project) -> None:
    modules_ = {".".join(name_of(p)): p.parent.name for p in sorted((ROOT / "plugins").glob("*/plugin.py"))}
    assert project["project"]["entry-points"]["seqloom"] == {name: module for module, name in modules_.items()}


def test_the_hooks_can_be_read_in_a_minute() -> None:
    assert len((ROOT / "core" / "hookspecs.py").read_text().splitlines()) < 60


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(ROOT)))
def test_the_first_screen_of_a_file_says_what_it_is_for(path: Path) -> None:
    text = path.read_text()
    if text.strip():
        assert ast.get_docstring(ast.parse(text)), f"{path.relative_to(ROOT)} needs a docstring at its top"


def loaded_by(statement: str) -> set[str]:
    """Top-level names in ``sys.modules`` after a statement in a fresh interpreter."""
    done = subprocess.run([sys.executable, "-c", f"import sys\n{statement}\nprint(*sys.modules)"], capture_output=True,
                          text=True, cwd=ROOT.parent)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


def test_importing_seqloom_imports_nothing_else() -> None:
    heavy = {"seqloom", "numpy", "duckdb", "numba", "pyarrow", "pluggy"}
    assert {m for m in loaded_by("import seqloom") if m.split(".")[0] in heavy} == {"seqloom"}


def test_composing_a_pipeline_needs_no_database() -> None:
    loaded = loaded_by("from seqloom.installed import registry\nfrom seqloom.core.pipeline import compose\n"
                       "compose(registry(), registry().pipeline('blastp'), backend='reference')")
    assert not loaded & {"duckdb", "pyarrow", "sqlalchemy", "alembic", "pandas"}
