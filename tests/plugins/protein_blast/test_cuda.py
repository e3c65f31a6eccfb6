"""Protein BLAST on CUDA equals the reference and the CPU: in numba's simulator here, with small tiles."""

import pytest

from tests.simulator import simulated


@pytest.mark.parametrize("check", ["diagonals", "sieve", "limits", "devices", "ungapped", "gapped", "coarse", "hits",
                                   "automaton", "pipeline"])
def test_in_the_simulator(check: str) -> None:
    done = simulated("-m", "tests.plugins.protein_blast.on_cuda", check)
    assert done.returncode == 0 and done.stdout.strip() == f"{check} passed", done.stderr[-2000:]
