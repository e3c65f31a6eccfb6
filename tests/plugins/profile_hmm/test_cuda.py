"""Profile HMM searches on CUDA equal the CPU's: in numba's simulator here, with small tiles."""

import pytest

from tests.simulator import simulated


@pytest.mark.parametrize("check", ["pairs", "filters", "cutoffs", "pipeline"])
def test_in_the_simulator(check: str) -> None:
    done = simulated("-m", "tests.plugins.profile_hmm.on_cuda", check)
    assert done.returncode == 0 and done.stdout.strip() == f"{check} passed", done.stderr[-2000:]
