"""Protein BLAST on CUDA equals the reference and the CPU: in numba's simulator here, with small tiles."""

from pathlib import Path

import pytest

from tests.simulator import assert_passed, simulated

CHECKS = ("diagonals", "pieces", "sieve", "limits", "devices", "own-devices", "ungapped", "scores", "gapped", "coarse",
          "hits", "automaton", "pipeline", "parts")


@pytest.mark.long
def test_in_the_simulator() -> None:
    assert_passed("tests.plugins.protein_blast.on_cuda", *CHECKS)


def test_the_experiments_of_the_paper(tmp_path: Path) -> None:
    """All parts can be measured and drawn, on a tiny scale, and all ways find the same."""
    table, images = tmp_path / "table", tmp_path / "images"
    done = simulated("-m", "benchmarks.blastp_paper", "measure", str(table), "--tiny", "--threads", "1")
    assert done.returncode == 0, done.stderr[-2000:]
    rows = [line.split("\t") for line in table.read_text().splitlines()]
    assert all(float(row[5]) >= 0 for row in rows) and "DIFFERENT" not in table.read_text()
    assert {row[0] for row in rows} == {"bins", "buffering", "scores", "extensions", "speed", "breakdown", "scaling"}
    assert len({row[4] for row in rows if row[0] == "speed"}) == 6
    scores = {row[3]: row[6] for row in rows if row[0] == "scores" and row[2] == "12"}
    assert len(scores) == 3 * 3
    for source, shared in (("matrix", 28 * 64), ("pssm, near", 12 * 64), ("pssm, in global memory", 0)):
        assert scores[f"by hit, {source}"].endswith(f" {shared:,} bytes of a block")
    pytest.importorskip("matplotlib")
    done = simulated("-m", "benchmarks.blastp_paper", "draw", str(table), str(images))
    assert done.returncode == 0, done.stderr[-2000:]
    assert len(list(images.glob("*.svg"))) == 2 + 1 + 2 * 2 + 3 + 3 + 2
    assert "| detection |" in (images / "blastp_paper.md").read_text()
