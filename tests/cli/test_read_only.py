"""An installation that can't be written to, by a user with no home, or one that can't be written to either."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

READ_ONLY = """
import os, pwd, sys
WRITABLE = sys.argv.pop(1)

def outside(path):
    return not os.path.abspath(os.fsdecode(path)).startswith((WRITABLE, "/dev/"))

def refuse(event, arguments):
    if (event == "open" and isinstance(arguments[0], str | bytes) and arguments[2] & (os.O_WRONLY | os.O_RDWR)
            or event in ("os.mkdir", "os.rename")) and outside(arguments[0]):
        raise PermissionError(13, "read-only", arguments[0])

def unknown(number):
    raise KeyError(number)

access, pwd.getpwuid = os.access, unknown
os.access = lambda path, mode, **words: access(path, mode, **words) and not (mode & os.W_OK and outside(path))
sys.addaudithook(refuse)
from seqloom.cli import run
run()
"""
"""A program that may write to one folder only, of a user who is in no list of users."""


def run(folder: Path, home: str | None, *words: str) -> str:
    """Output of a command in an empty folder, which has to end well and to make no folder named ~."""
    (folder / "work").mkdir(exist_ok=True)
    (folder / "tmp").mkdir(exist_ok=True)
    environment = {name: value for name, value in os.environ.items()
                   if name not in ("HOME", "XDG_CACHE_HOME", "NUMBA_CACHE_DIR", "NUMBA_ENABLE_CUDASIM")}
    environment |= {"PYTHONDONTWRITEBYTECODE": "1", "TMPDIR": str(folder / "tmp"),
                    **({} if home is None else {"HOME": home})}
    done = subprocess.run([sys.executable, "-c", READ_ONLY, str(folder), *words], cwd=folder / "work", env=environment,
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert not (folder / "work" / "~").exists()
    return done.stdout


@pytest.mark.parametrize("home", [None, "/proc/nowhere"], ids=["no home", "a home that can't be written to"])
def test_help_and_tools_work(tmp_path: Path, home: str | None) -> None:
    assert "--" in run(tmp_path, home, "mum", "--help")
    assert "seed" in run(tmp_path, home, "pipelines", "show", "sw")
    assert "smith_waterman" in run(tmp_path, home, "plugins", "list")
    assert not list((tmp_path / "work").iterdir())


def test_indexes_can_be_built(tmp_path: Path, sample: Path) -> None:
    run(tmp_path, None, "db", "create", "mito.duckdb", str(sample / "mito_human.fasta"))
    run(tmp_path, None, "index", "build", "mito.duckdb", "--backend", "reference", "--quiet")


@pytest.mark.parametrize("words", [["mum", "--help"], ["pipelines", "show", "sw"]], ids=" ".join)
def test_an_ascii_locale_is_no_hindrance(tmp_path: Path, words: list[str]) -> None:
    environment = {**os.environ, "LC_ALL": "POSIX", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0",
                   "NUMBA_CACHE_DIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", "from seqloom.cli import run; run()", *words], env=environment,
                          capture_output=True)
    assert done.returncode == 0, done.stderr
