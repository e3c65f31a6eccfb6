"""Nucleotide BLAST on CUDA equals the reference and the CPU: in numba's simulator here, with small tiles."""

import pytest

from tests.simulator import simulated

CHECKS = ("megablast", "blastn", "ambiguities", "sampled", "tables", "tracebacks", "discontiguous", "chunks",
          "database_masks", "memory", "parts", "reached", "turns", "pipeline")


@pytest.mark.long
def test_in_the_simulator() -> None:
    done = simulated("-m", "tests.plugins.nucleotide_blast.on_cuda", *CHECKS)  # in one process: to start takes long
    assert done.returncode == 0 and done.stdout.split("\n") == [*(f"{check} passed" for check in CHECKS), ""], (
        done.stdout + done.stderr[-2000:])
