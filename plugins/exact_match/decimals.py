"""Whole numbers as right-aligned text, a column at a time."""

import numpy as np

_BLANK, _ZERO = ord(" "), ord("0")


def fits(values: np.ndarray, width: int) -> bool:
    """Whether all of the whole numbers ``values`` are from 0 on and have at most ``width`` digits; width at most 9."""
    return not len(values) or bool(values.min() >= 0 and values.max() < 10**width)


def right_aligned(values: np.ndarray, width: int) -> np.ndarray:
    """u8[n, width] ASCII digits of n whole numbers that fit, blanks before them."""
    text = np.empty((width, len(values)), np.uint8)
    rest = values.astype(np.uint32)
    for place in range(width - 1, -1, -1):
        left = rest // np.uint32(10)
        np.add(rest - left * np.uint32(10), _ZERO, out=text[place], casting="unsafe")
        if place < width - 1:
            text[place][rest == 0] = _BLANK
        rest = left
    return text.T
