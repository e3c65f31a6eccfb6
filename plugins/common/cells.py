"""Texts of many lines at once. A cell is a number, whose digits are written when lines are joined, or a text of a list.

A cell is i8: what it holds · 256 + its form. The form of a number is its decimals + 16 · the width to which it is
filled with blanks: 27187 · 256 + 3 is "27.187". The functions make for columns what those of ``numbers`` make for one
value, exactly: a double times a power of ten is a sum of two doubles.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from seqloom.core.records import Ragged
from seqloom.core.text_rows import TextRows

from .cell_forms import SCIENTIFIC, TEXT
from .numbers import ABSENT, SMALLEST_EVALUE, bit_score_text, evalue_text, score_text

ABSENT_CELL = TEXT
"""The first text of every list is ``ABSENT``."""
LARGEST = 1 << 55
"""What a cell can't hold."""
FEW_CELLS = 1000
"""Fewer are joined without the kernel, which takes longer to be loaded than these to be written."""
_NUMBER_BYTES = 20
"""No number is longer: 17 digits, a point, a sign."""
_SPLITTER = float((1 << 27) + 1)
_EXACT = float(1 << 40)
"""A thousand times any number below this still has bits behind the point."""
_LEAST_EXPONENT = 181
_POWERS = [10**n for n in range(_LEAST_EXPONENT + 3)]
_TENS = np.array(_POWERS[:16], np.uint64)
_UPPER = np.array([float(p) for p in _POWERS])
_LOWER = np.array([float(p - int(float(p))) for p in _POWERS])
"""Each power of ten is the sum of both, but for one part in 2^106."""
_TENTHS = np.array([float(f"1e-{n}") for n in range(_LEAST_EXPONENT, 0, -1)])
_STEPS = np.array([0.1, 1.0, 10.0])
"""From each of these on an E-value has one decimal less."""
_UNDECIDED = 1e-20
"""Digits of what is this close to half-way between two are left to Python; our error is below 1e-26."""


class Texts:
    """Texts of cells by number, as UTF-8."""

    def __init__(self) -> None:
        self._bytes: list[np.ndarray] = []
        self._lengths: list[np.ndarray] = []
        self._count = 0
        self.add([ABSENT])

    def add(self, texts: Sequence[str]) -> np.ndarray:
        """i8[n] cells of ``texts``."""
        known = TextRows.of(texts)
        return self._numbered(known.rows.values, known.sizes)

    def add_rows(self, rows: Ragged) -> np.ndarray:
        """i8[n] cells of rows of u1; those of empty ones are absent."""
        lengths = np.diff(rows.offsets)
        return np.where(lengths > 0, self._numbered(rows.values, lengths), ABSENT_CELL)

    def _numbered(self, whole: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        first = self._count
        self._bytes.append(whole)
        self._lengths.append(lengths)
        self._count += len(lengths)
        return np.arange(first, self._count) << 8 | TEXT

    def joined(self, columns: Sequence[np.ndarray], delimiter: str) -> tuple[np.ndarray, np.ndarray]:
        """Lines of i8[n] columns of cells, as UTF-8 with an end of line each: u1[…], and i8[n] where each line ends."""
        lengths = np.concatenate(self._lengths)
        offsets = np.zeros(len(lengths) + 1, np.int64)
        np.cumsum(lengths, out=offsets[1:])
        between = delimiter.encode("utf-8", "surrogatepass")
        few = len(columns) * len(columns[0]) < FEW_CELLS
        return (self._plain if few else self._by_kernel)(columns, offsets, between)

    def _plain(self, columns: Sequence[np.ndarray], offsets: np.ndarray,
               between: bytes) -> tuple[np.ndarray, np.ndarray]:
        known, bounds = b"".join(part.tobytes() for part in self._bytes), offsets.tolist()
        texts = [[known[bounds[c >> 8] : bounds[(c >> 8) + 1]] if c & 255 == TEXT else number_text(c)
                  for c in column.tolist()] for column in columns]
        lines = [between.join(line) + b"\n" for line in zip(*texts, strict=True)]
        return np.frombuffer(b"".join(lines), np.uint8), np.cumsum([len(line) for line in lines], dtype=np.int64)

    def _by_kernel(self, columns: Sequence[np.ndarray], offsets: np.ndarray,
                   between: bytes) -> tuple[np.ndarray, np.ndarray]:
        from .cells_cpu import LANES, join  # which only many cells need

        cells = np.stack(columns)
        numbers = cells[cells.astype(np.uint8) == TEXT] >> 8
        used = int((offsets[numbers + 1] - offsets[numbers]).sum())
        text = np.empty(used + cells.size * (_NUMBER_BYTES + len(between)) + cells.shape[1] + LANES, np.uint8)
        ends = np.empty(cells.shape[1], np.int64)
        known = np.concatenate([*self._bytes, np.empty(LANES, np.uint8)])
        size = join(cells, known, offsets.view(np.uint64), np.frombuffer(between, np.uint8), _TENS, text, ends)
        return text[:size], ends

    def fill(self, cells: np.ndarray, left: np.ndarray, values: np.ndarray, text: Callable[[Any], str]) -> np.ndarray:
        """``cells`` with texts of those ``values`` that are left (bool[n])."""
        if left.any():
            cells[left] = self.add([text(value) for value in values[left].tolist()])
        return cells


def number_text(cell: int) -> bytes:
    """What is written for a cell that is a number."""
    held, form = cell >> 8, cell & 255
    if form == 0:
        return b"%d" % held
    if form == SCIENTIFIC:
        digits, exponent = divmod(held, 1000)
        return b"%d.%02de-%02d" % (digits // 100, digits % 100, exponent)
    decimals, width = form & 15, form >> 4
    whole, rest = divmod(abs(held), 10**decimals)
    text = b"-" * (held < 0) + b"%d" % whole
    return (text + b".%0*d" % (decimals, rest) if decimals else text).rjust(width)


def integers(values: np.ndarray, texts: Texts) -> np.ndarray:
    """i8[n]: cells of integers; of what a plugin has in their place, as Python prints it."""
    if values.dtype.kind != "i" or (values.itemsize > 4 and bool(((values >= LARGEST) | (values <= -LARGEST)).any())):
        return texts.add([str(value) for value in values.tolist()])
    return values.astype(np.int64) << 8


def _rounded(values: np.ndarray, decimals: "np.ndarray | int") -> tuple[np.ndarray, np.ndarray]:
    """i8[n]: ``values`` · 10^``decimals`` (0…3), rounded, half-way to even; bool[n]: of which this isn't done here."""
    left = ~(np.abs(values) < _EXACT) | np.signbit(values)
    sure = np.where(left, 0.0, values)
    power = _UPPER[decimals]
    # Dekker's product: ``product`` + ``error`` is exact, for powers that are shorter than half a double.
    split = sure * _SPLITTER
    upper = split - (split - sure)
    product = sure * power
    error = (sure - upper) * power - (product - upper * power)
    below = np.floor(product)
    over = product - below - 0.5
    whole = below.astype(np.int64)
    up = (over > 0) | ((over == 0) & ((error > 0) | ((error == 0) & (whole & 1 == 1))))
    return whole + up, left


def decimal_cells(values: np.ndarray, decimals: "np.ndarray | int", texts: Texts, text: Callable[[float], str],
                  width: int = 0) -> np.ndarray:
    """Cells of f8[n] with so many decimals; ``text`` gives what is neither absent (NaN) nor made here.

    Args:
        width: that numbers without decimals are filled to; a decimal adds one.
    """
    rounded, left = _rounded(values, decimals)
    form = decimals if width == 0 else decimals + (width + decimals << 4)
    absent = np.isnan(values)
    return texts.fill(np.where(absent, ABSENT_CELL, rounded << 8 | form), left & ~absent, values, text)


def _scientific(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Cells of values 1e-180 … 0.1 in the manner of "%.2e"; bool[n]: which can't be told."""
    exponent = _LEAST_EXPONENT - np.searchsorted(_TENTHS, values, "right") + 1
    power, rest = _UPPER[exponent + 2], _LOWER[exponent + 2]
    halves = []
    for factor in (values, power):
        split = factor * _SPLITTER
        upper = split - (split - factor)
        halves += [upper, factor - upper]
    a, b, c, d = halves
    product = values * power
    error = b * d - (((product - a * c) - b * c) - a * d) + values * rest
    below = np.floor(product)
    over = product - below - 0.5 + error
    digits = below.astype(np.int64) + (over > 0)
    carried = digits == 1000
    digits, exponent = np.where(carried, 100, digits), exponent - carried
    return (digits * 1000 + exponent) << 8 | SCIENTIFIC, np.abs(over) < _UNDECIDED


def evalue_cells(values: np.ndarray, texts: Texts) -> np.ndarray:
    """i8[n]: cells in the manner of ``evalue_text``."""
    values = values.astype(np.float64, copy=False)
    none, small = values < SMALLEST_EVALUE, (values >= SMALLEST_EVALUE) & (values < 0.0009)
    decimals = np.where(none, 1, 3 - np.searchsorted(_STEPS, values, "right"))
    cells = decimal_cells(np.where(none | small, 0.0, values), decimals, texts, evalue_text)
    if small.any():
        cells[small], small[small] = _scientific(values[small])
        texts.fill(cells, small, values, evalue_text)
    return cells


def bit_score_cells(values: np.ndarray, texts: Texts) -> np.ndarray:
    """i8[n]: cells in the manner of ``bit_score_text``."""
    values = values.astype(np.float64, copy=False)
    whole = values > 99.9
    left = values > 99999
    cells = decimal_cells(np.where(whole, np.floor(values), values), np.where(whole, 0, 1), texts, bit_score_text, 3)
    return texts.fill(cells, left, values, bit_score_text)


def score_cells(values: np.ndarray, texts: Texts) -> np.ndarray:
    """i8[n]: cells in the manner of ``score_text``."""
    if values.dtype.kind != "f":
        return integers(values, texts)
    return decimal_cells(values.astype(np.float64), 1, texts, score_text)


def percent_cells(counts: np.ndarray, totals: np.ndarray, decimals: int, texts: Texts) -> np.ndarray:
    """i8[n]: cells in the manner of ``percent_text``."""
    there = (totals > 0) & (counts >= 0)
    share = np.where(there, counts, np.nan) / np.where(there, totals, 1) * 100
    return decimal_cells(share, decimals, texts, lambda value: f"{value:.{decimals}f}")


def coverage_cells(covered: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """i8[n]: cells in the manner of ``coverage_text``."""
    share = 100.0 * covered / np.maximum(lengths, 1)
    rounded = np.where(share < 99, share + 0.5, share).astype(np.int64)
    return np.where(lengths > 0, rounded << 8, ABSENT_CELL)
