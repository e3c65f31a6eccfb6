"""Compiled kernels are kept: by the next process, by other users of an installation that they can't write to, and only
as long as the text that they were made from stays the same."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

HELPER = """
from seqloom.core.jit import kernel

@kernel
def doubled(x):
    return 2 * x
"""
KERNELS = """
from seqloom.core.jit import kernel
import helper
from helper import doubled

@kernel(helpers=(helper,))
def doubled_and_one(x):
    return doubled(x) + 1
"""
PROGRAM = """
import os, sys
sys.path.insert(0, sys.argv[1])
from seqloom.core import jit
if sys.argv[2:]:
    import numba
    numba.njit(lambda x: 2 * x + 1)(20)  # imports what the compiler needs while that can be read for sure
    os.setuid(int(sys.argv[2]))
compiled = []
jit.on_compile = compiled.append
from kernels import doubled_and_one
print(doubled_and_one(20), *compiled)
"""
NOBODY = 65534


@pytest.fixture
def folder() -> Iterator[Path]:
    """An installation with two modules of kernels that everyone may read, and homes beside it that all may write to."""
    path = Path(tempfile.mkdtemp())
    path.chmod(0o755)
    (path / "installed").mkdir()
    (path / "installed" / "helper.py").write_text(HELPER)
    (path / "installed" / "kernels.py").write_text(KERNELS)
    for home in ("one", "another"):
        (path / home).mkdir()
        (path / home).chmod(0o777)
    yield path
    (path / "installed").chmod(0o755)
    shutil.rmtree(path)


def compiled(folder: Path, home: str = "one", user: int | None = None) -> str:
    """The kernel's result and the names of what had to be compiled, of a process of its own."""
    environment = {**os.environ, "HOME": str(folder / home), "XDG_CACHE_HOME": str(folder / home / "cache"),
                   "PYTHONDONTWRITEBYTECODE": "1"}
    environment.pop("NUMBA_CACHE_DIR", None)
    words = [str(folder / "installed"), *([str(user)] if user else [])]
    done = subprocess.run([sys.executable, "-c", PROGRAM, *words], env=environment, cwd=folder, capture_output=True,
                          text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_second_process_finds_what_the_first_compiled(folder: Path) -> None:
    assert compiled(folder) == "41 doubled doubled_and_one"
    assert compiled(folder) == "41"
    assert list((folder / "installed" / "__pycache__").glob("kernels.doubled_and_one*.nbi"))


def test_a_changed_helper_is_compiled_anew_with_what_calls_it(folder: Path) -> None:
    assert compiled(folder).startswith("41 ")
    (folder / "installed" / "helper.py").write_text(HELPER.replace("2 * x", "3 * x + 0"))
    assert compiled(folder) == "61 doubled doubled_and_one"
    assert compiled(folder) == "61"


def read_only(folder: Path) -> int | None:
    """Take away the right to write to the installation; gives the user to be, where this one may write everywhere."""
    for path in (folder / "installed").rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)
    (folder / "installed").chmod(0o555)
    cached = folder / "installed" / "__pycache__"
    if cached.exists():
        cached.chmod(0o555)
    return None if os.geteuid() else NOBODY


def test_a_read_only_installation_is_compiled_once_for_each_user(folder: Path) -> None:
    user = read_only(folder)
    assert compiled(folder, "one", user) == "41 doubled doubled_and_one"
    assert compiled(folder, "one", user) == "41"
    assert compiled(folder, "another", user) == "41 doubled doubled_and_one"
    assert not (folder / "installed" / "__pycache__").exists()


def test_a_read_only_installation_that_was_warmed_is_warm_for_all(folder: Path) -> None:
    assert compiled(folder) == "41 doubled doubled_and_one"
    user = read_only(folder)
    assert compiled(folder, "another", user) == "41"
