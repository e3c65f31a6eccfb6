"""The order of suffixes of all references joined in one text, of which only a few references are in memory."""

import numpy as np
from seqloom.core.distinct import distinct
from seqloom.core.ports import Report
from seqloom.core.sequences import SequenceBatch

from .suffix_order_cpu import sort_runs
from .symbols import rejected, separator, symbol_table

_FIRST_WINDOW = 64  # residues compared at first, twice as many each time
_KEPT = 64 << 20  # residues of references beside those in memory that are kept


class SuffixOrder:
    """Compares suffixes as MUMmer sorts them: by symbols, on through the separators into the references behind.

    Two suffixes that are equal up to the ends of their references are told apart by what follows: the next reference
    of each, and so on; the end of the last reference is greater than a separator. References without a match are asked
    for where this needs them.

    Args:
        report: gives residues of any reference.
        acgt_only: residues other than A, C, G and T are all the same.
    """

    def __init__(self, report: Report, acgt_only: bool) -> None:
        self._report, self._acgt_only, self._count = report, acgt_only, int(report.run["sequences"])
        self._targets: SequenceBatch | None = None
        self._texts: dict[int, bytes] = {}
        self._residues = 0
        self._told: dict[int, tuple[int, int, int]] = {}

    def compare(self, targets: SequenceBatch, one: tuple[int, int], other: tuple[int, int]) -> int:
        """−1 or 1 for the suffixes that begin at two places (target, position) of ``targets``; 0 for the same place."""
        if one == other:
            return 0
        self._take(targets)
        order = _compare(self._text(one[0]), one[1], self._text(other[0]), other[1])
        return order or self._follow(one[0] + 1, other[0] + 1)

    def sort(self, targets: SequenceBatch, numbers: np.ndarray, positions: np.ndarray, firsts: np.ndarray,
             shared: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Suffixes that begin at ``positions`` i8[n] of targets i8[n], in order within each run.

        Args:
            firsts: i8[r + 1], the first suffix of each run, and n.
            shared: i8[n], so many symbols are the same in all suffixes of a run.

        Returns:
            i8[n], the places in order; bool[r], whether a run has two suffixes whose references end before they
            differ, which ``compare`` can tell apart.
        """
        self._take(targets)
        known = distinct(numbers)
        texts = [self._text(number) for number in known.tolist()]
        text = np.frombuffer(texts[0] if len(texts) == 1 else b"".join(texts), np.uint8)
        starts = np.cumsum([0, *map(len, texts[:-1])])
        places = starts[np.searchsorted(known, numbers)] + positions + shared
        rows, unsure = np.arange(len(places)), np.zeros(len(firsts) - 1, np.bool_)
        sort_runs(text, places, firsts, separator(targets.alphabet), rows, np.empty_like(rows), unsure)
        return rows, unsure

    def _take(self, targets: SequenceBatch) -> None:
        if self._targets is not targets:
            self._targets, self._texts, self._residues = targets, {}, 0

    def _follow(self, one: int, other: int) -> int:
        """−1 or 1 for the texts that begin with two references.

        Identical references make these agree for long, so what the last walk over references as far apart has told is
        kept: from which one to which one, and the order.
        """
        if one > other:
            return -self._follow(other, one)
        gap, told = other - one, self._told.get(other - one)
        at = one
        while told is None or not told[0] <= at <= told[1]:
            order = -1 if at + gap == self._count else _compare(self._text(at), 0, self._text(at + gap), 0)
            if order:
                told = (at, at, order)
            else:
                at += 1
        self._told[gap] = (min(one, told[0]), told[1], told[2])
        return told[2]

    def _text(self, number: int) -> bytes:
        """Symbols of a reference, and a separator."""
        text = self._texts.get(number)
        if text is None:
            targets = self._targets
            assert targets is not None
            place = int(targets.locate(number))
            here = 0 <= place < len(targets) and int(targets.ordinals[place]) == number
            residues: np.ndarray = targets[place] if here else self._report.target(number)
            table = symbol_table(targets.alphabet, self._acgt_only, rejected(targets.alphabet))
            text = residues.tobytes().translate(table.tobytes()) + bytes([separator(targets.alphabet)])
            if self._residues > targets.total_residues + _KEPT:
                self._texts, self._residues = {}, 0
            self._texts[number] = text
            self._residues += len(text)
        return text


def _compare(one: bytes, here: int, other: bytes, there: int) -> int:
    """−1, 0 or 1 for what two texts hold from some place on; both end with the separator, which is nowhere else."""
    width = _FIRST_WINDOW
    while True:
        a, b = one[here : here + width], other[there : there + width]
        if a != b:
            return -1 if a < b else 1
        if len(a) < width:
            return 0
        here, there, width = here + width, there + width, 2 * width
