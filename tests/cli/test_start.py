"""Starting up: what the command line loads and how long that takes."""

import resource
import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = ("numpy", "duckdb", "pyarrow", "numba", "pandas", "sqlalchemy", "alembic", "pluggy", "rich", "seqloom.plugins",
         "seqloom.core.registry")
REPORT = """
import atexit, sys
atexit.register(lambda: print(*sys.modules, file=sys.stderr))
from seqloom.cli.main import run
run()
"""


def loaded_by(*words: str, cwd: Path | None = None) -> set[str]:
    """Modules that a command line has loaded when it ends."""
    done = subprocess.run([sys.executable, "-c", REPORT, *words], capture_output=True, text=True, cwd=cwd, check=True)
    return set(done.stderr.split())


@pytest.mark.parametrize("words", [["--help"], ["--version"], ["db", "--help"], ["runs", "--help"], ["sql", "--help"]])
def test_help_loads_nothing_heavy(words: list[str]) -> None:
    assert not loaded_by(*words) & set(HEAVY)


def test_help_within_150_ms() -> None:
    """Processor time of the best of some starts, the interpreter's own included: wall time of an idle machine."""
    times = []
    for _ in range(12):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-c", "from seqloom.cli.main import run; run()", "--help"], check=True,
                       stdout=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        if times[-1] < 0.1:
            break
    assert min(times) < 0.15, times


def test_search_imports_neither_sqlalchemy_nor_alembic(tmp_path: Path, sample: Path) -> None:
    loaded = loaded_by("blastp", "-q", str(sample / "query.fasta"), "-d", str(sample / "proteins.fasta"), "--backend",
                       "reference", "--evalue", "1e-20", cwd=tmp_path)
    assert "seqloom.storage.run_file" in loaded
    assert not loaded & {"sqlalchemy", "alembic", "rich", "pandas", "polars", "pyarrow", "numba"}
    assert not {m for m in loaded if m.startswith("seqloom.plugins.nucleotide_blast.") and "reference" in m}


def test_a_warm_search_within_a_second(tmp_path: Path, sample: Path) -> None:
    """Processor time of the best of some, as above."""
    command = [sys.executable, "-c", "from seqloom.cli.main import run; run()"]
    subprocess.run([*command, "db", "create", "p.duckdb", str(sample / "proteins.fasta")], check=True, cwd=tmp_path)
    times = []
    for _ in range(6):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([*command, "blastp", "-q", str(sample / "query.fasta"), "-d", "p.duckdb", "--backend",
                        "reference"], check=True, stdout=subprocess.DEVNULL, cwd=tmp_path)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        if times[-1] < 0.8:
            break
    assert min(times) < 1.0, times
