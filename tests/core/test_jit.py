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
    assert compiled(folder) == "41 doubled_and_one doubled"
    assert compiled(folder) == "41"
    assert list((folder / "installed" / "__pycache__").glob("kernels.doubled_and_one*.kernel"))


def test_a_changed_helper_is_compiled_anew_with_what_calls_it(folder: Path) -> None:
    assert compiled(folder).startswith("41 ")
    (folder / "installed" / "helper.py").write_text(HELPER.replace("2 * x", "3 * x + 0"))
    assert compiled(folder) == "61 doubled_and_one doubled"
    assert compiled(folder) == "61"


def test_a_damaged_file_is_compiled_anew(folder: Path) -> None:
    assert compiled(folder) == "41 doubled_and_one doubled"
    for damage in (lambda data: data[: len(data) // 2], lambda data: b"", lambda data: b"garbage", lambda data: b"N."):
        [kept] = (folder / "installed" / "__pycache__").glob("kernels.doubled_and_one*.kernel")
        kept.write_bytes(damage(kept.read_bytes()))
        assert compiled(folder) == "41 doubled_and_one doubled"


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
    assert compiled(folder, "one", user) == "41 doubled_and_one doubled"
    assert compiled(folder, "one", user) == "41"
    assert compiled(folder, "another", user) == "41 doubled_and_one doubled"
    assert not (folder / "installed" / "__pycache__").exists()


def test_a_read_only_installation_that_was_warmed_is_warm_for_all(folder: Path) -> None:
    assert compiled(folder) == "41 doubled_and_one doubled"
    user = read_only(folder)
    assert compiled(folder, "another", user) == "41"


EVERYTHING = """
from typing import NamedTuple
import numpy as np
from seqloom.core.jit import inline, kernel
from seqloom.core.simd import BYTE_LANES, load, store

class Table(NamedTuple):
    rows: np.ndarray
    factor: float

@inline
def half(x):
    return x // 2

@kernel
def everything(table, values, flag, number, nothing):
    if number < 0:
        raise ValueError("a number below 0")
    out = np.empty(half(len(values) * 2), values.dtype)
    store(out, 0, load(values, 0, BYTE_LANES) + load(values, 0, BYTE_LANES))
    return out, (table.rows.sum() * table.factor, flag), table.rows[:, ::2], nothing

@kernel
def endless(n):
    while n:
        n = n
"""
CALLS = """
import os, sys, threading
sys.path.insert(0, sys.argv[1])
import numpy as np
from kernels import BYTE_LANES, Table, endless, everything

rows = np.arange(6.0).reshape(2, 3)
values = np.full(BYTE_LANES, 100, np.int8)
for table in (Table(rows, 2.0), Table(np.asfortranarray(rows), 2.0), Table(rows[:, ::-1], 2.0)):
    out, (total, flag), even, nothing = everything(table, values, np.True_, 7, None)
    assert out.dtype == np.int8 and (out == 127).all() and out.flags.writeable
    assert (total, flag, nothing) == (30.0, True, None) and (even == table.rows[:, ::2]).all()
values.flags.writeable = False
assert (everything(Table(rows, 2.0), values, False, np.int32(1), None)[0] == 127).all()
for _ in range(2):
    try:
        everything(Table(rows, 2.0), values, False, -1, None)
    except ValueError as error:
        assert str(error) == "a number below 0"
    else:
        raise AssertionError("nothing was raised")
threading.Thread(target=endless, args=(1,), daemon=True).start()  # others go on: it lets go of the interpreter
print("numba" in sys.modules, end=" ")
try:
    everything(Table(rows, 2.0), values, False, "7", None)
except Exception as error:
    print(type(error).__name__, flush=True)
os._exit(0)
"""


def test_kernels_do_the_same_when_they_are_loaded_without_numba(folder: Path) -> None:
    (folder / "installed" / "kernels.py").write_text(EVERYTHING)
    for before in (True, False):
        done = subprocess.run([sys.executable, "-c", CALLS, str(folder / "installed")], cwd=folder, capture_output=True,
                              text=True, timeout=100)
        assert done.returncode == 0, done.stderr
        assert done.stdout == f"{before} TypingError\n"


COUNTED = """
import numpy as np
from seqloom.core.jit import kernel

@kernel
def part(values, begin, end):
    return values[begin:end]

@kernel
def sums_of_slices(values, fail):
    total = 0
    for k in range(len(values)):
        piece = part(values, 0, k)
        other = values[k:]
        if k % 2:
            piece, other = other, piece
        total += len(piece) - len(other)
    if fail:
        raise ValueError("asked for")
    return total

@kernel
def one_of_them(first, second, which):
    return (first, second)[0] if which else second

@kernel
def slice_and_copy(values):
    return values[1:], values[:3].copy()

@kernel
def sum_of_many_ones(count):
    return np.ones(count).sum()
"""
COUNTS = """
import resource, sys
sys.path.insert(0, sys.argv[1])
import numpy as np
from kernels import one_of_them, slice_and_copy, sum_of_many_ones, sums_of_slices

first, second = np.arange(9), np.arange(5)
before = sys.getrefcount(first), sys.getrefcount(second)
for _ in range(50):
    assert sums_of_slices(first, False) == -1
    try:
        sums_of_slices(second, True)
    except ValueError:
        pass
    assert (one_of_them(first, second, True) == first).all() and (one_of_them(first, second, False) == second).all()
    kept = slice_and_copy(first)
    assert kept[0].tolist() == [1, 2, 3, 4, 5, 6, 7, 8] and kept[1].tolist() == [0, 1, 2]
del kept
assert (sys.getrefcount(first), sys.getrefcount(second)) == before, before
count = 1 << 20
sum_of_many_ones(count)
most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for _ in range(100):
    assert sum_of_many_ones(count) == count
assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - most < 100 << 10  # KiB; 800 MiB if none were given back
"""


def test_kernels_keep_and_give_back_the_arrays_that_they_are_given(folder: Path) -> None:
    (folder / "installed" / "kernels.py").write_text(COUNTED)
    done = subprocess.run([sys.executable, "-c", COUNTS, str(folder / "installed")], cwd=folder, capture_output=True,
                          text=True, timeout=100)
    assert done.returncode == 0, done.stderr
