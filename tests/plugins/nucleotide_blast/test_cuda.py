"""Nucleotide BLAST on CUDA equals the reference and the CPU: in numba's simulator here, with small tiles."""

import pytest

from tests.simulator import assert_passed

CHECKS = ("megablast", "blastn", "ambiguities", "sampled", "tables", "tracebacks", "discontiguous", "chunks",
          "database_masks", "memory", "parts", "reached", "turns", "pipeline")


@pytest.mark.long
def test_in_the_simulator() -> None:
    assert_passed("tests.plugins.nucleotide_blast.on_cuda", *CHECKS)
