"""Tiles of residues turned into columns against numpy's transposition."""

import numpy as np
import pytest
from seqloom.core.kernels.simd import aligned
from seqloom.plugins.common.lane_tiles import TILE, turn


@pytest.mark.parametrize("lanes", [8, 16, 32, 64])
@pytest.mark.parametrize("width", [0, 8, 56, TILE])
def test_columns_are_rows_turned(lanes: int, width: int) -> None:
    tile, columns = aligned(lanes * TILE, np.uint8), aligned((width + 16) * lanes, np.uint8)
    tile[:] = np.random.default_rng(lanes).integers(0, 256, len(tile))
    columns[:] = 77
    turn(tile, width, columns, 8 * lanes, lanes)
    found = columns.reshape(-1, lanes)
    assert np.array_equal(found[8:-8], tile.reshape(lanes, TILE)[:, :width].T)
    assert (found[:8] == 77).all() and (found[-8:] == 77).all()
