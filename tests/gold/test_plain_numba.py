"""What numba does by itself, kernels (``SEQLOOM_JIT=numba``) and copies (``SEQLOOM_COPY=numba``): the same bytes."""

import os
import subprocess
import sys

import numpy as np
import pytest
from seqloom.core.backends import cuda_available

from ..integration.commands import environment, seqloom
from ..integration.samples import SAMPLE

PROTEIN = ("-q", SAMPLE / "query.fasta", "-d", SAMPLE / "proteins.fasta")
DNA = ("-q", SAMPLE / "mito_human.fasta", "-d", SAMPLE / "mito_orang.fasta")
COMMANDS = {
    "blastp": ("blastp", *PROTEIN, "--outfmt", "6 std btop"),
    "blastn": ("blastn", *DNA, "--outfmt", "6 std btop"),
    "sw": ("sw", *PROTEIN, "--outfmt", "6 std btop"),
    "hmmsearch": ("hmmsearch", "-q", SAMPLE / "globins4.hmm", "-d", SAMPLE / "proteins.fasta", "-f", "domtblout"),
    "mum": ("mum", *DNA),
    "exact": ("exact", "-q", "reads.fasta", "-d", SAMPLE / "mito_human.fasta"),
    "sort": ("sort", SAMPLE / "proteins.fasta", "-o", "out"),
}
QUICK = ("sw", "mum", "sort")
"""Those that are compiled soon."""


@pytest.mark.gold
@pytest.mark.parametrize("name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.plain)
                                  for name in COMMANDS])
def test_numba_alone_gives_the_same_bytes(tmp_path, name: str) -> None:
    residues = "".join((SAMPLE / "mito_human.fasta").read_text().split("\n")[1:])
    reads = [residues[start : start + 60] for start in range(0, len(residues) - 60, 500)]
    given = []
    for jit in ("seqloom", "numba"):
        folder = tmp_path / jit
        folder.mkdir()
        (folder / "reads.fasta").write_text("".join(f">{n}\n{read}\n" for n, read in enumerate(reads)))
        words = COMMANDS[name]
        more = () if name == "sort" else ("-o", "out", "--no-store")
        seqloom(folder, *words, *more, SEQLOOM_JIT=jit, SEQLOOM_BACKEND="auto")
        given.append((folder / "out").read_bytes())
    assert given[0] == given[1] and given[0].count(b"\n")


MOVED = """
from seqloom.core.cuda import driver
def moved(): raise AttributeError("cuGetProcAddress is not where it was")
driver.driver_functions = moved
"""
RUN = "from seqloom.cli import run; run()"
ON_DEVICE = {
    "sw": ("sw", "-q", "query.fasta", "-d", "proteins.fasta", "--outfmt", "6 std btop", "-p", "4"),
    "mum": ("mum", *DNA),
    "exact": ("exact", "-q", "reads.fasta", "-d", SAMPLE / "mito_human.fasta"),
    "sort": ("sort", "proteins.fasta", "-o", "out"),
    "sort by lsd-radix": ("sort", "proteins.fasta", "-o", "out", "--sorter", "lsd-radix"),
}


@pytest.mark.gold
@pytest.mark.skipif(not cuda_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("name", ON_DEVICE)
def test_numba_alone_copies_the_same_bytes(tmp_path, name: str) -> None:
    rng, letters = np.random.default_rng(3), np.frombuffer(b"ACDEFGHIKLMNPQRSTVWY", np.uint8)
    texts = [letters[rng.integers(0, 20, n)].tobytes().decode() for n in rng.integers(30, 900, 20_000)]
    human = "".join((SAMPLE / "mito_human.fasta").read_text().split("\n")[1:])
    files = {"query.fasta": [texts[7][:400], texts[9] + texts[11]], "proteins.fasta": texts,
             "reads.fasta": [human[start : start + 60] for start in range(0, len(human) - 60, 500)]}
    for file, residues in files.items():
        (tmp_path / file).write_text("".join(f">s{n}\n{text}\n" for n, text in enumerate(residues)))
    more = () if name.startswith("sort") else ("--no-store", "-o", "out")
    given, said = [], []
    for before, copy in ("", "seqloom"), ("", "numba"), (MOVED, "seqloom"):
        words = [sys.executable, "-c", f"{before}\n{RUN}", *map(str, ON_DEVICE[name]), *more, "--backend", "cuda"]
        done = subprocess.run(words, cwd=tmp_path, env=environment(SEQLOOM_COPY=copy), capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        given.append((tmp_path / "out").read_bytes())
        said.append("numba copies to the device by itself" in done.stderr)
        os.unlink(tmp_path / "out")
    assert given[0] == given[1] == given[2] and given[0].count(b"\n")
    assert said[:2] == [False, False]
