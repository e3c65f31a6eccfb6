"""WindowMasker: stretches of a nucleotide sequence whose units are frequent in a genome (Morgulis et al. 2006).

Every unit of some bases scores as often as it occurs in the genome, within limits. A window that slides along the
sequence scores the mean of its units, rounded down. A stretch is masked from the first to the last window that reaches
``t_thres``, and goes on as long as windows in between reach ``t_extend``. No window spans an ambiguity.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
from seqloom.core.classes import dataclass
from seqloom.core.errors import OptionError
from seqloom.core.options import option
from seqloom.core.output_files import is_database
from seqloom.core.sequences import Intervals, SequenceBatch
from seqloom.core.stages import Masker
from seqloom.plugins.nucleotide_blast.dust import Dust, DustOptions
from seqloom.plugins.nucleotide_blast.unit_counts import (
    BESIDE,
    FORMATS,
    LONGEST_UNIT,
    SOURCE,
    UnitCounts,
    ascii_text,
    binary_bytes,
    counts_file,
    make,
    read_counts,
)
from seqloom.plugins.nucleotide_blast.unit_counts_cpu import frequent_stretches

BEYOND_UNIT = 4
"""Bases by which a window is longer than a unit, unless asked for otherwise."""


@dataclass(frozen=True)
class WindowMaskerOptions:
    """Options of WindowMasker, with the program's names; thresholds left out are those of the counts."""

    counts: str = option("", "file of counts, or database with counts", metavar="FILE")
    window: int | None = option(None, "bases of a window; 4 more than a unit by default", minimum=1, maximum=1 << 20)
    t_thres: int | None = option(None, "score of a window that is masked", minimum=1)
    t_extend: int | None = option(None, "score of windows over which masking goes on", minimum=0)
    t_high: int | None = option(None, "counts above this score set_t_high", minimum=1)
    set_t_high: int | None = option(None, "score of units with counts above t_high; t_high by default", minimum=1)
    set_t_low: int | None = option(None, "score of units without counts; half of t_low by default", minimum=1)
    dust: bool = option(False, "mask by DUST as well")
    dust_level: int = option(20, "level of DUST", minimum=0)

    def check(self) -> None:
        """Counts are needed."""
        if not self.counts:
            raise OptionError("WindowMasker needs counts of units: --set counts=FILE, or -ustat FILE; --mk-counts "
                              "makes them")


@dataclass(frozen=True)
class CountsOptions:
    """Options of making counts of a genome."""

    unit: int | None = option(None, "bases of a unit; found from the size of the genome by default", minimum=1,
                              maximum=LONGEST_UNIT)
    genome_size: int | None = option(None, "bases of the genome; counted by default", minimum=1)
    sformat: str = option("ascii", "kind of file", choices=FORMATS)
    mem: int = option(512, "MiB that counting may take; where that is too little for all units at once, the genome is "
                           "read several times", minimum=1)
    meta: str = option("", "a note that is kept in the file")


class WindowMasker(Masker):
    """Stretches that are frequent in a genome, as windowmasker finds them."""

    name = "windowmasker"
    alphabets = ("nucleotide",)
    Options = WindowMaskerOptions
    Learning = CountsOptions
    BESIDE = BESIDE

    @classmethod
    def learned(cls, batches: Callable[[], Iterable[SequenceBatch]], options: CountsOptions, source: str = "") -> bytes:
        """A file of counts; the fingerprint of a database is a note in it."""
        note = f"{SOURCE}{source} {options.meta}".strip() if source else options.meta
        found = make(batches, options.unit, options.genome_size, options.mem << 20)
        return binary_bytes(found, note) if options.sformat == "binary" else ascii_text(found, note).encode()

    def source(self) -> tuple[str, str] | None:
        kept = read_counts(self.options.counts)
        return (self.options.counts, kept.source) if is_database(self.options.counts) else None

    def files(self) -> Sequence[str]:
        return (counts_file(self.options.counts),)

    def described(self) -> tuple[int, str, str]:
        return 3, "windowmasker", ""

    def intervals(self, batch: SequenceBatch) -> Intervals:
        chosen = self.options
        scored = Scores.of(read_counts(chosen.counts), chosen)
        rows = frequent_stretches(batch.residues, batch.offsets, scored.unit, scored.window, scored.units,
                                  scored.scores, scored.marks, scored.least, scored.extend, scored.threshold)
        found = Intervals(*np.ascontiguousarray(rows.T.astype(np.int32)))
        if not chosen.dust:
            return found
        dust = Dust(DustOptions(level=chosen.dust_level, runs=False)).intervals(batch)
        return joined(found.merged(dust))


def joined(intervals: Intervals) -> Intervals:
    """Stretches that overlap or touch as one."""
    rows: list[list[int]] = []
    for sequence, start, end in intervals.rows():
        if rows and rows[-1][0] == sequence and start <= rows[-1][2]:
            rows[-1][2] = max(rows[-1][2], end)
        else:
            rows.append([sequence, start, end])
    return Intervals.of(tuple(row) for row in rows)  # type: ignore[misc]


@dataclass(frozen=True)
class Scores:
    """What units and windows score by: units u4[m] that are listed, their scores u4[m], that of the others; and bool[m]
    ``marks`` of frequent ones, of which windows have one unless they are skipped (``UnitCounts.skips``), else none."""

    unit: int
    window: int
    units: np.ndarray
    scores: np.ndarray
    marks: np.ndarray
    least: int
    extend: int
    threshold: int

    @classmethod
    def of(cls, counts: UnitCounts, options: WindowMaskerOptions) -> Scores:
        """From counts and options, which come first.

        Raises:
            OptionError: a window is shorter than a unit.
        """
        window = options.window or counts.unit + BEYOND_UNIT
        if window < counts.unit:
            raise OptionError(f"a window of {window} bases is shorter than a unit of these counts, {counts.unit}")
        extend = options.t_extend or counts.extend
        threshold = max(options.t_thres or counts.threshold, extend)  # masking begins where it goes on only
        high = options.t_high or counts.high
        scores = np.where(counts.counts > high, options.set_t_high or high, counts.counts).astype(np.uint32)
        least = options.set_t_low or (counts.low + 1) // 2
        marks = counts.counts >= counts.extend if counts.skips else np.empty(0, np.bool_)
        return cls(counts.unit, window, counts.units, scores, marks, least, extend, threshold)


def windows_of(codes: np.ndarray, scored: Scores) -> list[tuple[int, int, int]]:
    """First and last base and score of every window of u1[n] ``codes`` that spans no ambiguity and isn't skipped."""
    score = dict(zip(scored.units.tolist(), scored.scores.tolist(), strict=True))
    marked = set(scored.units[scored.marks].tolist()) if len(scored.marks) else set()
    skipping = False
    found = []
    for begin in range(len(codes) - scored.window + 1):
        bases = codes[begin : begin + scored.window].tolist()
        if max(bases) > 3:
            continue
        units = []
        for place in range(scored.window - scored.unit + 1):
            unit = bases[place : place + scored.unit]
            units.append(min(_number(unit), _number([3 - base for base in reversed(unit)])))
        mean = sum(score.get(unit, scored.least) for unit in units) // len(units)
        unmarked = len(scored.marks) > 0 and marked.isdisjoint(units)
        if not (unmarked and skipping):
            found.append((begin, begin + scored.window - 1, mean))
            skipping = unmarked and mean < scored.extend
    return found


def _number(bases: list[int]) -> int:
    """A unit as a number: two bits of each base, the first one highest."""
    number = 0
    for base in bases:
        number = number << 2 | base
    return number


def frequent_stretches_reference(codes: np.ndarray, scored: Scores) -> list[tuple[int, int]]:
    """Half-open stretches of one sequence, window by window."""
    found: list[tuple[int, int]] = []
    stretch: tuple[int, int] | None = None
    reach = 0  # last base of the last window over which the stretch may go on
    for first, last, score in windows_of(codes, scored):
        begins, goes_on = score >= scored.threshold, score >= scored.extend
        if stretch and first > reach + goes_on:
            found.append(stretch)
            stretch = None
        if begins:
            stretch = (stretch[0] if stretch else first, last + 1)
        if stretch and goes_on:
            reach = last
    return found + [stretch] * (stretch is not None)  # type: ignore[list-item]
