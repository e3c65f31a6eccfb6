"""Exact and near matches on CUDA against the CPU: in numba's simulator, which is slow, on a few of them."""

import re
from pathlib import Path

import numpy as np
import pytest

from tests.simulator import assert_passed, simulated

CHECKS = ("whole", "parts", "units", "order", "matches", "match-parts", "near", "near-parts", "loading")
COMMAND = """
import numpy as np
np.seterr(over="ignore")
from seqloom.plugins.exact_match import partition_cuda
partition_cuda.SLACK, partition_cuda.LEAST_RESIDUES = 1000, 100
from seqloom.cli import run
run()
"""


def test_in_the_simulator() -> None:
    assert_passed("tests.plugins.exact_match.on_cuda", *CHECKS)


def test_the_split_is_told_and_kept_with_the_run(tmp_path: Path) -> None:
    residues = "".join(np.random.default_rng(1).choice(list("ACGT"), 3000))
    (tmp_path / "genome.fa").write_text(f">g\n{residues}\n")
    (tmp_path / "reads.fa").write_text("".join(f">{n}\n{residues[n : n + 30]}\n" for n in range(0, 2900, 400)))
    common = ("exact", "-q", "reads.fa", "-d", "genome.fa", "--backend", "auto", "--set", "seed.queries.costs=0.1,0.02",
              "--outfmt", "6 qseqid sstart")
    whole = simulated("-c", COMMAND, *common, "--no-store", cwd=tmp_path)
    assert whole.returncode == 0 and "predicted" not in whole.stderr
    done = simulated("-c", COMMAND, *common, "--device-memory", "5k", "--batch-queries", "3", cwd=tmp_path)
    assert done.returncode == 0 and done.stdout == whole.stdout
    assert done.stderr.count("predicted") == 1, done.stderr  # of several batches
    assert re.search(r"index in \d+ \(alpha 0\.\d+\) and queries in \d+ parts, those of the .* stay: .* s predicted",
                     done.stderr)
    assert re.search(r"s predicted; \d such devices would keep all of the index: .* s$", done.stderr, re.MULTILINE)
    query = "SELECT counters FROM run_slots WHERE slot = 'seed.queries'"
    kept = simulated("-c", COMMAND, "sql", query, "--format", "json", cwd=tmp_path)
    for name in ("predicted_us", "measured_us", "index_parts", "query_parts", "alpha_percent"):
        assert name in kept.stdout, kept.stdout + kept.stderr
    small = simulated("-c", COMMAND, *common, "--device-memory", "1k", cwd=tmp_path)
    assert small.returncode == 1 and "raise --device-memory" in small.stderr


@pytest.mark.parametrize("mode", ["-mum", "-mumreference", "-maxmatch"])
def test_the_lines_of_mum_are_those_of_the_cpu(tmp_path: Path, mode: str) -> None:
    residues = "".join(np.random.default_rng(2).choice(list("ACGT"), 240))
    (tmp_path / "genome.fa").write_text(f">g\n{residues[:150]}\n>h\n{residues[150:]}{residues[20:60]}\n")
    (tmp_path / "query.fa").write_text(f">q\n{residues[10:90]}\n>r\n{residues[100:40:-1]}\n")
    common = ("mum", mode, "-l", "9", "-b", "-c", "-q", "query.fa", "-d", "genome.fa", "--no-store", "--backend")
    on_device, on_host = (simulated("-c", COMMAND, *common, backend, cwd=tmp_path) for backend in ("cuda", "cpu"))
    assert on_device.returncode == 0, on_device.stderr[-3000:]
    assert on_device.stdout == on_host.stdout and "  g        11         1        80" in on_host.stdout
