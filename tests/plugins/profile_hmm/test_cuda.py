"""Profile HMM searches on CUDA equal the CPU's: in numba's simulator here, with small tiles."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.simulator import simulated


@pytest.mark.parametrize("check", ["pairs", "filters", "cutoffs", "pipeline", "budget", "bytes", "warps",
                                   "layouts", "columns"])
def test_in_the_simulator(check: str) -> None:
    done = simulated("-m", "tests.plugins.profile_hmm.on_cuda", check)
    assert done.returncode == 0 and done.stdout.strip() == f"{check} passed", done.stderr[-2000:]


@given(st.lists(st.integers(0, 10_000), max_size=60), st.integers(0, 200))
def test_the_host_takes_the_longest_pairs_while_the_device_takes_the_others(sizes: list[int], worth: int) -> None:
    pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")
    from seqloom.plugins.profile_hmm.extend_forward_cuda import longest_pairs

    cells = np.array(sizes, np.int64)
    chosen = longest_pairs(cells, worth)
    own, others = cells[chosen], cells[~chosen]
    assert min(own, default=10_000) >= max(others, default=0)
    # The host would be later than the device with one more of them, and isn't with those that it has.
    if len(others):
        assert own.sum() + others.max() > worth * others.max()
    if len(own):
        assert own.sum() <= worth * own.min()
