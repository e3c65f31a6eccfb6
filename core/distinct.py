"""The different values of an array. numpy's own ``unique`` imports its masked arrays, which a search does without."""

import numpy as np


def distinct(values: np.ndarray) -> np.ndarray:
    """The different values of an array of any shape, ascending; no NaN may be among them."""
    ordered = np.sort(values, axis=None)
    new = np.ones(len(ordered), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=new[1:])
    return ordered[new]


def ranked(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The different values of an array of one dimension, ascending, and i8[n]: the place of each value among them."""
    different = distinct(values)
    return different, np.searchsorted(different, values)


def ranked_rows(table: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The different rows of a table, in some order, and i8[n]: the place of each row among them."""
    order = np.lexsort(table.T)
    ordered = table[order]
    new = np.ones(len(table), np.bool_)
    new[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    places = np.empty(len(table), np.int64)
    places[order] = np.cumsum(new) - 1
    return ordered[new], places
