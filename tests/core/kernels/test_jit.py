"""Compiled kernels are kept: by the next process, by other users of an installation that they can't write to, and only
as long as the text that they were made from stays the same."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from seqloom.core.kernels import jit

FAR = """
from seqloom.core.kernels import inline

FACTOR = 2
TABLE = (0, 1)

@inline
def times(x):
    return FACTOR * x
"""
HELPER = """
import far
from seqloom.core.kernels import kernel
from far import times

@kernel
def doubled(x):
    return times(x) + far.TABLE[0]
"""
KERNELS = """
from seqloom.core.kernels import kernel
from helper import doubled

@kernel
def doubled_and_one(x):
    return doubled(x) + 1
"""
PROGRAM = """
import os, sys
sys.path.insert(0, sys.argv[1])
from seqloom.core.kernels import jit
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
    (path / "installed").mkdir(mode=0o755)
    (path / "installed" / "far.py").write_text(FAR)
    (path / "installed" / "helper.py").write_text(HELPER)
    (path / "installed" / "kernels.py").write_text(KERNELS)
    for home in ("one", "another"):
        (path / home).mkdir()
        (path / home).chmod(0o777)
    yield path
    (path / "installed").chmod(0o755)
    shutil.rmtree(path)


def run(folder: Path, home: str = "one", user: int | None = None, before: str = "", check: bool = True,
        **variables: str) -> subprocess.CompletedProcess[str]:
    """A process of its own that calls the kernel and prints its result and the names of what had to be compiled."""
    environment = {**os.environ, "HOME": str(folder / home), "XDG_CACHE_HOME": str(folder / home / "cache"),
                   "PYTHONDONTWRITEBYTECODE": "1", **variables}
    environment.pop("NUMBA_CACHE_DIR", None)
    words = [str(folder / "installed"), *([str(user)] if user else [])]
    done = subprocess.run([sys.executable, "-c", before + PROGRAM, *words], env=environment, cwd=folder,
                          capture_output=True, text=True)
    assert done.returncode == 0 or not check, done.stderr
    return done


def compiled(folder: Path, home: str = "one", user: int | None = None) -> str:
    return run(folder, home, user).stdout.strip()


def test_a_second_process_finds_what_the_first_compiled(folder: Path) -> None:
    assert compiled(folder) == "41 doubled_and_one doubled"
    assert compiled(folder) == "41"
    assert list((folder / "installed" / "__pycache__").glob("kernels.doubled_and_one*.kernel"))


@pytest.mark.parametrize("file, text, old, new, result", [
    ("helper.py", HELPER, "times(x)", "times(x) + x", "61"),
    ("far.py", FAR, "FACTOR * x", "FACTOR * x + x", "61"),
    ("far.py", FAR, "FACTOR = 2", "FACTOR = 3", "61"),
    ("far.py", FAR, "TABLE = (0, 1)", "TABLE = (7, 1)", "48"),
], ids=["a function", "a function two modules away", "a constant", "a constant of a module"])
def test_what_a_kernel_uses_of_other_modules_is_compiled_anew_when_it_changes(
        folder: Path, file: str, text: str, old: str, new: str, result: str) -> None:
    assert compiled(folder).startswith("41 ")
    (folder / "installed" / file).write_text(text.replace(old, new))
    assert compiled(folder) == f"{result} doubled_and_one doubled"
    assert compiled(folder) == result


def test_what_a_kernel_doesnt_use_changes_nothing(folder: Path) -> None:
    assert compiled(folder).startswith("41 ")
    (folder / "installed" / "far.py").write_text("# a comment\nOTHER = 5\n" + FAR.replace("(0, 1)", "(0, 1)  # same"))
    (folder / "installed" / "kernels.py").write_text("# a comment\n\n" + KERNELS + "\n# the end\n")
    assert compiled(folder) == "41"


def test_a_damaged_file_is_compiled_anew(folder: Path) -> None:
    assert compiled(folder) == "41 doubled_and_one doubled"
    for damage in (lambda data: data[: len(data) // 2], lambda data: b"", lambda data: b"garbage", lambda data: b"N.",
                   lambda data: data[:-200] + bytes([data[-200] ^ 4]) + data[-199:]):
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
from seqloom.core.kernels.jit import inline, kernel
from seqloom.core.kernels.simd import BYTE_LANES, load, store

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
from seqloom.core.kernels.jit import kernel

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


def test_arguments_are_told_apart_as_machine_code_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []
    monkeypatch.setattr(jit.Kernel, "_entry", lambda kernel, kinds, _: asked.append(kinds) or (lambda *_: len(asked)))
    kernel = jit.Kernel(lambda *_: None)
    table, fixed = np.zeros((4, 6), np.float32), np.zeros((4, 6), np.float32)
    fixed.setflags(write=False)
    different = [(table,), (table.T,), (table[::2, ::2],), (fixed,), (table.astype(np.float64),), (table[0],), (1,),
                 (1.0,), (np.float32(1),), (True,), (None,), ((table, 1),), ((table, 1.0),), (table, 1), ()]
    for count, arguments in enumerate(different, 1):
        assert kernel(*arguments) == count
    again = [(table[1:],), (table[1:].T,), (np.ones((2, 2), np.float32).view(np.recarray),), (7,), ((table[:2], 5),)]
    for arguments in [*different, *again]:
        kernel(*arguments)
    assert len(asked) == len(different) == len(set(asked))


PLANTED = """
import pickle

class Planted:
    def __reduce__(self):
        return (print, ("planted code has run",))
"""


@pytest.mark.parametrize("unsafe", ["file", "folder"])
def test_kernels_that_another_user_may_have_written_are_not_loaded(folder: Path, unsafe: str) -> None:
    assert compiled(folder) == "41 doubled_and_one doubled"
    cached = folder / "installed" / "__pycache__"
    [kept] = cached.glob("kernels.doubled_and_one*.kernel")
    known: dict = {}
    exec(PLANTED, known)
    kept.write_bytes(known["pickle"].dumps(known["Planted"]()))
    (kept if unsafe == "file" else cached).chmod(0o666 if unsafe == "file" else 0o777)
    done = run(folder)
    assert done.stdout.strip() == "41 doubled_and_one doubled"
    [line] = done.stderr.splitlines()
    assert str(kept if unsafe == "file" else cached) in line and "another user may have written it" in line
    assert compiled(folder) == "41"  # what is unsafe was written anew, or elsewhere
    if unsafe == "file":
        assert not kept.stat().st_mode & 0o22
    else:
        assert list((folder / "one").rglob("*.kernel"))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_kernels_of_another_user_are_not_loaded(folder: Path) -> None:
    assert compiled(folder).startswith("41 ")
    [kept] = (folder / "installed" / "__pycache__").glob("kernels.doubled_and_one*.kernel")
    os.chown(kept, NOBODY, NOBODY)
    assert compiled(folder) == "41 doubled_and_one doubled"


def test_folders_of_the_cache_are_for_this_user_alone(folder: Path) -> None:
    user = read_only(folder)
    assert compiled(folder, "one", user).startswith("41 ")
    made = [path for path in (folder / "one").rglob("*") if path.is_dir()]
    assert made and not any(path.stat().st_mode & 0o77 for path in made)


BREAKS = {
    "asked for": ("", ""),
    "no compiler": ("import sys; sys.modules['seqloom.core.kernels.compiler'] = None\n", ""),
    "no loader": ("from seqloom.core.kernels import loader\n"
                  "def moved(name): raise ImportError(name + ' is not where it should be')\n"
                  "loader._extension = moved\n", "is not where it should be"),
}


@pytest.mark.parametrize("broken", BREAKS)
def test_numba_compiles_and_keeps_kernels_by_itself_where_it_has_to(folder: Path, broken: str) -> None:
    before, reason = BREAKS[broken]
    asked = {"SEQLOOM_JIT": "numba"} if broken == "asked for" else {}
    first, second = (run(folder, before=before, **asked) for _ in range(2))
    for done in (first, second):
        assert done.stdout.split()[0] == "41"
        assert len(done.stderr.splitlines()) == (0 if asked else 1) and reason in done.stderr
    assert "doubled" in first.stdout
    if asked:
        assert second.stdout == "41\n"  # kept
    (folder / "installed" / "far.py").write_text(FAR.replace("FACTOR = 2", "FACTOR = 3"))
    assert run(folder, before=before, **asked).stdout.split()[0] == "61"


def test_an_unknown_way_of_compiling_is_refused(folder: Path) -> None:
    done = run(folder, check=False, SEQLOOM_JIT="gcc")
    assert done.returncode and "SEQLOOM_JIT must be one of seqloom, numba" in done.stderr


@jit.made_once
def adding(number: int) -> Any:
    def sum_with(values):
        total = np.int64(0)
        for n in range(len(values)):
            total += values[n] + number
        return total

    return jit.kernel(sum_with)


def test_kernels_know_where_another_process_finds_them() -> None:
    made = adding(3)
    assert made is adding(3) and made is not adding(4) and made(np.arange(3)) == 12
    module, name, arguments = made.origin
    assert getattr(sys.modules[module], name)(*arguments) is made
    from seqloom.plugins.profile_hmm import ssv_striped_cpu

    module, name, arguments = ssv_striped_cpu._kernel(2, False).origin
    assert (module, name, arguments) == (ssv_striped_cpu.__name__, "_kernel", (2, False))
    assert ssv_striped_cpu._lay_out.origin == (ssv_striped_cpu.__name__, "_lay_out", None)


def faults() -> int:
    """Pages of memory that this process has touched for the first time."""
    return pytest.importorskip("resource").getrusage(0).ru_minflt


def leaf() -> None:
    """A function with a frame of a tenth of what CPython takes from the operating system at a time."""


leaf.__code__ = leaf.__code__.replace(co_stacksize=200)


def faults_of_calls(depth: int) -> int:
    if depth:
        return faults_of_calls(depth - 1)
    before = faults()
    for _ in range(500):
        leaf()
    return faults() - before


def most_faults() -> int:
    return max(map(faults_of_calls, range(200)))


def test_frames_of_the_compiler_have_room() -> None:
    """Wherever in the depth of calls a loop calls another function, the system isn't asked for its frame each time."""
    from seqloom.core.kernels import compiler

    assert compiler._with_room(most_faults)() < 50
    assert compiler.compiled.__code__.co_stacksize == compiler._with_room(most_faults).__code__.co_stacksize
