"""The tests of kernels again at every vector width, each in a process of its own: the width is chosen at import."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from numba.core.codegen import get_host_cpu_features
from seqloom.core.kernels.cpu import SIMD_LEVELS
from seqloom.core.kernels.simd import BYTE_LANES

ROOT = Path(__file__).parents[3]
NEEDS = {"avx512": ("+avx512vbmi", "+avx512bw"), "avx2": ("+avx2",), "portable": ()}
LANES = {"avx512": 64, "avx2": 32, "portable": 16}
VECTOR_TESTS = ["tests/core/kernels/test_simd.py", "tests/plugins/common/test_lanes.py",
                "tests/plugins/common/test_diagonal_scan.py", "tests/plugins/protein_blast/test_cpu_filters.py",
                "tests/plugins/profile_hmm/test_cpu_kernels.py"]
WHOLE = "tests/plugins/protein_blast/test_cpu_pipeline.py::"


def run(level: str, *words: str) -> subprocess.CompletedProcess[str]:
    features = os.environ.get("SEQLOOM_SIMD") or get_host_cpu_features()
    missing = [feature for feature in NEEDS[level] if feature not in features.split(",")]
    if missing:
        pytest.skip(f"this CPU has no {' '.join(missing)}")
    environment = {**os.environ, "SEQLOOM_SIMD": level, "PYTHONPATH": str(ROOT)}
    return subprocess.run([sys.executable, *words], cwd=ROOT, env=environment, capture_output=True, text=True)


@pytest.mark.long
@pytest.mark.skipif("SEQLOOM_SIMD" in os.environ, reason="a width is chosen already")
@pytest.mark.gold
@pytest.mark.parametrize("level", SIMD_LEVELS)
def test_kernels_at_this_width(level: str) -> None:
    asked = run(level, "-c", "from seqloom.core.kernels.simd import BYTE_LANES; print(BYTE_LANES)")
    assert asked.stdout.strip() == str(LANES[level])
    if LANES[level] == BYTE_LANES:
        return  # all other tests run at this width
    whole = [WHOLE + name for name in ("test_hard_input", "test_scores_beyond_eight_bits_and_long_sequences")]
    done = run(level, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *VECTOR_TESTS, *whole)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]


def test_an_unknown_width_is_refused() -> None:
    environment = {**os.environ, "SEQLOOM_SIMD": "avx1024"}
    done = subprocess.run([sys.executable, "-c", "import seqloom.core.kernels.jit"], env=environment,
                          capture_output=True, text=True)
    assert done.returncode and "SEQLOOM_SIMD must be one of avx512, avx2, portable" in done.stderr
