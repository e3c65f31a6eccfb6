"""Starting up: what the command line loads and how long that takes."""

import platform
import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = ("numpy", "duckdb", "_duckdb", "pyarrow", "numba", "pandas", "sqlalchemy", "alembic", "pluggy", "rich",
         "seqloom.plugins", "seqloom.core.registry")
REPORT = """
import atexit, sys
atexit.register(lambda: print(*sys.modules, file=sys.stderr))
from seqloom.cli import run
run()
"""


def loaded_by(*words: str, cwd: Path | None = None) -> set[str]:
    """Modules that a command line has loaded when it ends."""
    done = subprocess.run([sys.executable, "-c", REPORT, *words], capture_output=True, text=True, cwd=cwd, check=True)
    return set(done.stderr.split())


@pytest.mark.parametrize("words", [["--help"], ["--version"], ["db", "--help"], ["runs", "--help"], ["sql", "--help"],
                                   ["serve", "--help"]])
def test_help_loads_nothing_heavy(words: list[str]) -> None:
    assert not loaded_by(*words) & set(HEAVY)


@pytest.mark.parametrize("pipeline", ["blastp", "blastn", "hmmsearch"])
def test_help_of_a_search_loads_no_compiler(pipeline: str) -> None:
    assert not loaded_by(pipeline, "-h") & {"numba", "seqloom.core.cuda"}


def test_help_loads_little() -> None:
    """Python loads some 2 modules a millisecond. How long that takes is measured in ``benchmarks/start.py``."""
    assert len(loaded_by("--help")) < 250


def test_search_imports_neither_sqlalchemy_nor_alembic(tmp_path: Path, sample: Path) -> None:
    search = ["blastp", "-q", str(sample / "query.fasta"), "-d", str(sample / "proteins.fasta"), "--backend",
              "reference", "--evalue", "1e-20"]
    loaded_by(*search, cwd=tmp_path)  # kernels of readers and writers may have to be compiled
    loaded = loaded_by(*search, cwd=tmp_path)
    assert "seqloom.storage.results.run_file" in loaded
    assert not loaded & {"sqlalchemy", "alembic", "rich", "pandas", "polars", "pyarrow", "numba", "jinja2",
                         "matplotlib"}
    assert "_duckdb" in loaded
    assert "duckdb" not in loaded
    assert not {m for m in loaded if m.startswith("seqloom.plugins.nucleotide_blast.") and "reference" in m}


def test_a_warm_search_loads_little_and_compiles_nothing(tmp_path: Path, sample: Path) -> None:
    """Numba's own modules, which a warm search spares, are more than all others together."""
    search = ["blastp", "-q", str(sample / "query.fasta"), "-d", "p.duckdb", "--no-store"]
    loaded_by("db", "create", "p.duckdb", str(sample / "proteins.fasta"), cwd=tmp_path)
    assert len(loaded_by(*search, "--backend", "reference", cwd=tmp_path)) < 650
    loaded_by(*search, "--backend", "cpu", cwd=tmp_path)
    warm = loaded_by(*search, "--backend", "cpu", cwd=tmp_path)
    assert len(warm) < 700
    assert not warm & {"numba", "numba.core", "numba.core.compiler"}
    assert "llvmlite.binding" not in warm or platform.machine() != "x86_64" or sys.platform != "linux"


@pytest.mark.parametrize("words", [["runs", "list"], ["sql", "SELECT run, id, started, pipeline FROM runs"],
                                   ["sql", "SELECT qseqid, evalue FROM last_hits"]])
def test_questions_to_the_store_load_no_arrays(words: list[str], tmp_path: Path, sample: Path) -> None:
    loaded_by("blastp", "-q", str(sample / "query.fasta"), "-d", str(sample / "proteins.fasta"), "--backend",
              "reference", "--evalue", "1e-20", cwd=tmp_path)
    loaded = loaded_by(*words, cwd=tmp_path)
    assert "_duckdb" in loaded
    assert not loaded & {"numpy", "pyarrow", "duckdb", "pluggy", "sqlalchemy", "seqloom.searches"}


def test_a_search_of_a_file_that_keeps_nothing_needs_no_database(tmp_path: Path, sample: Path) -> None:
    loaded = loaded_by("blastp", "-q", str(sample / "query.fasta"), "-d", str(sample / "proteins.fasta"), "--backend",
                       "reference", "--evalue", "1e-20", "--no-store", cwd=tmp_path)
    assert "seqloom.storage.results.memory_run" in loaded
    assert not loaded & {"duckdb", "_duckdb", "nanoarrow", "pyarrow"}


def test_a_search_loads_nothing_that_others_need(tmp_path: Path, sample: Path) -> None:
    """Neither answers to options of other programs, nor how a cluster is shared, nor what stored indexes are read by,
    nor digests and taxonomies that nobody asks for."""
    loaded = loaded_by("mum", "-q", str(sample / "mito_orang.fasta"), "-d", str(sample / "mito_human.fasta"),
                       "--backend", "reference", "--no-store", "-o", "matches", cwd=tmp_path)
    assert "seqloom.plugins.exact_match.minimizer_seed_reference" in loaded
    assert not loaded & {"seqloom.cli.peers", "seqloom.core.engine.balance", "seqloom.taxonomy", "hashlib",
                         "seqloom.plugins.exact_match.fm_index_reference", "seqloom.plugins.exact_match.suffix_array"}
    assert len({module for module in loaded if module.startswith("seqloom.")}) < 155


@pytest.mark.parametrize("words", [["--version"], ["db", "--help"], ["mum", "-h"]])
def test_answers_to_other_programs_are_loaded_by_who_needs_one(words: list[str]) -> None:
    assert "seqloom.cli.peers" not in loaded_by(*words)
