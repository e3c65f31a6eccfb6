"""Profile HMM searches on CUDA equal the CPU's: in numba's simulator here, with small tiles."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.simulator import assert_passed

CHECKS = ("pairs", "filters", "cutoffs", "pipeline", "parts", "budget", "bytes", "warps", "layouts", "columns", "ssv",
          "shared-lanes", "halves")


@pytest.mark.long
@pytest.mark.parametrize("checks", [CHECKS, ("rises",)], ids=["most", "rises"])  # that one chooses kernels for good
def test_in_the_simulator(checks: tuple[str, ...]) -> None:
    assert_passed("tests.plugins.profile_hmm.on_cuda", *checks)


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


@given(st.integers(1, 12_000), st.sampled_from([2, 4]), st.integers(2, 60),
       st.sampled_from([1, 2, 4, 8, 16, 32, 64, 128]))
def test_a_warp_takes_as_many_sequences_as_a_models_length_allows(length: int, numbers: int, most_rows: int,
                                                                  most: int) -> None:
    pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")
    from seqloom.plugins.profile_hmm.msv_warps_cuda import layout_of

    # Equations 5 and 6 of CUDAMPF++: f = W · Hmax for each S, and the least H with W · H of a model's nodes or more.
    # Equation 3: there are no more sequences than numbers.
    reaches = {1 << k: 32 * numbers // (1 << k) * most_rows for k in range(most.bit_length()) if 1 << k <= 32 * numbers}
    found = layout_of(length, numbers, most_rows, most)
    assert found.sequences == max([1, *(s for s, reach in reaches.items() if reach >= length)])
    width = 32 * numbers // found.sequences
    assert found.rows == next(rows for rows in range(2, 1000) if rows * width >= length)
    assert found.held == (reaches[1] >= length)


def test_long_models_have_a_warp_for_each_sequence() -> None:
    """By equation 5; what is asked for is the most."""
    pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")
    from seqloom.plugins.profile_hmm.msv_warps_cuda import layout_of

    assert [layout_of(length, 2).sequences for length in (92, 368, 735, 1440, 1536, 1537, 5000)] == [
        32, 8, 4, 2, 2, 1, 1]
    assert layout_of(92, 2, most_sequences=2).sequences == 2
    assert layout_of(20, 4, most_sequences=128).sequences == 128


def test_options_of_the_kernels_are_checked() -> None:
    pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")
    from seqloom.core.errors import OptionError, UnknownNameError
    from seqloom.core.options import build_options
    from seqloom.plugins.profile_hmm.seed_msv_warps_cuda import MsvWarpsOptions, WarpOptions

    for wrong in ({"numbers": 3}, {"sequences": 12}, {"sequences": 256}, {"model": "viterbi"}, {"rows": 1}):
        with pytest.raises(OptionError):
            build_options(MsvWarpsOptions, wrong)
    assert build_options(MsvWarpsOptions, {"sequences": 4, "model": "ssv"}).sequences == 4
    with pytest.raises(UnknownNameError, match="model"):
        build_options(WarpOptions, {"model": "msv"})
    assert build_options(WarpOptions, {"sequences": 128}) == WarpOptions(sequences=128)
