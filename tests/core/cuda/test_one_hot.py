"""Scores as bytes that the tensor cores multiply."""

import numpy as np
import pytest

one_hot = pytest.importorskip("seqloom.core.cuda.one_hot", reason="numba-cuda is not installed", exc_type=ImportError)


def test_bytes_stand_for_scores_and_never_for_less() -> None:
    scores = np.arange(-14336, 14337)
    values = one_hot.VALUES[one_hot.score_bytes(scores)]
    assert (values >= scores).all() and (np.diff(values) >= 0).all()
    exact = np.abs(scores) <= 16
    assert np.array_equal(values[exact], scores[exact])
    assert (values[~exact] - scores[~exact] <= np.abs(scores[~exact]) / 8).all()


def test_beyond_the_range_is_its_end() -> None:
    assert one_hot.VALUES[one_hot.score_bytes(np.array([-20000, 20000]))].tolist() == [-14336, 14336]
