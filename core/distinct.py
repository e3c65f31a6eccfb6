"""The different values of an array. numpy's own ``unique`` imports its masked arrays, which a search does without."""

import numpy as np

_NARROW, _MOST = 1 << 31, 1 << 62
"""Range of integers that are taken as they are, and combinations of values that one number tells apart."""


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
    """The different rows of a table of numbers, in some order, and i8[n]: the place of each row among them."""
    places, most = np.zeros(len(table), np.int64), 1
    for column in table.T:
        if not len(column) or (column == column[0]).all():
            continue
        own = column
        if column.dtype.kind != "i" or int(column.max()) - int(column.min()) >= _NARROW:
            own = _places(column)
        own = own.astype(np.int64) - int(own.min())
        kinds = int(own.max()) + 1
        if most * kinds > _MOST:
            places = _places(places)
            most = int(places.max()) + 1
        places, most = places * kinds + own, most * kinds
    places = _places(places)
    rows = np.empty(int(places.max(initial=-1)) + 1, np.int64)
    rows[places] = np.arange(len(table))
    return table[rows], places


def _places(values: np.ndarray) -> np.ndarray:
    """i8[n]: the place of each value among the different ones."""
    order = np.argsort(values)
    ordered = values[order]
    new = np.zeros(len(values), np.int64)
    new[1:] = ordered[1:] != ordered[:-1]
    places = np.empty(len(values), np.int64)
    places[order] = np.cumsum(new)
    return places
