"""Symmetric DUST: intervals of low complexity in a nucleotide sequence (Morgulis et al. 2006).

The sequence is read as overlapping triplets. An interval of ``t`` triplets scores the number of pairs of equal
triplets in it, divided by ``t - 1``. An interval is masked when its score exceeds the threshold and no interval
inside it scores higher ("perfect interval"); only intervals that fit into a window are looked at.

Two ways lead there. ``dust_cpu`` evaluates the definition as it stands, where a masked interval is possible at all.
``intervals_by_window`` slides a window along the sequence as the authors' program does; it is needed where the result
depends on how that program goes about it: it reads a random base wherever it meets an N, and meets some of them twice,
because it starts anew behind a stretch of one repeated triplet and once more near the end.

dustmasker masks runs of N that are longer than the window or touch an end of the sequence as they are, and looks at
what lies between them. A BLAST search looks at the sequence as a whole. Any other ambiguity is read as A.
"""

from __future__ import annotations

from collections import deque

import numpy as np
from seqloom.core.alphabet import NUCLEOTIDE
from seqloom.core.classes import dataclass
from seqloom.core.options import option
from seqloom.core.sequences import Intervals, SequenceBatch
from seqloom.core.stages import Masker
from seqloom.plugins.nucleotide_blast.dust_cpu import intervals_by_definition, intervals_by_window, intervals_of_whole
from seqloom.plugins.nucleotide_blast.index_reference import true_stretches
from seqloom.plugins.nucleotide_blast.random_bases import LaggedFibonacci

_N = NUCLEOTIDE.unknown_code


LEVELS, WINDOWS, LINKERS = (2, 64), (8, 64), (1, 32)
"""Least and largest of each setting; what lies outside is taken for the default, as by dustmasker."""
_LEVEL, _WINDOW, _LINKER = 20, 64, 1
_TRIPLETS = 64
_LATER = 1 << 62

Intervals_ = list[list[int]]
"""Closed intervals, as [first, last]."""


@dataclass(frozen=True)
class DustOptions:
    """Options of DUST."""

    level: int = option(_LEVEL, "ten times the score from which on an interval is masked; 20 outside 2…64", minimum=0)
    window: int = option(_WINDOW, "bases of the longest interval that is looked at; 64 outside 8…64", minimum=1)
    linker: int = option(_LINKER, "intervals at most so many bases apart are joined; 1 outside 1…32", minimum=0)
    runs: bool = option(True, "mask runs of N at the ends and longer than the window, and look between them only")
    turned: bool = option(False, "look at the reverse complement; ambiguities count as A on either strand")


class Dust(Masker):
    """Low-complexity intervals by symmetric DUST, as dustmasker finds them."""

    name = "dust"
    alphabets = ("nucleotide",)
    Options = DustOptions

    def described(self) -> tuple[int, str, str]:
        chosen = self.options
        return 2, "dust", f"window={chosen.window}; level={chosen.level}; linker={chosen.linker}"

    def intervals(self, batch: SequenceBatch) -> Intervals:
        """All sequences at once where no runs of N are masked as they are; else those without N."""
        chosen = self.options
        codes, offsets = batch.residues, batch.offsets
        if chosen.turned:
            codes, offsets = NUCLEOTIDE.complement[codes][::-1], offsets[-1] - offsets[::-1]
        unknown = np.searchsorted(offsets, np.flatnonzero(codes == _N), "right") - 1
        level, window, linker = usable_settings(chosen.level, chosen.window, chosen.linker)
        alone = np.full(len(batch), not is_defined(level, window))
        alone[unknown] = True
        rows = [intervals_by_definition(codes, offsets, ~alone, level, window, linker)]
        if not chosen.runs:
            wanted, alone = np.flatnonzero(alone), np.zeros(len(batch), np.bool_)
            rows.append(intervals_of_whole(codes, offsets, wanted, level, window, linker, _random_state()))
        for sequence in np.flatnonzero(alone).tolist():
            found = dust_intervals(codes[slice(*offsets[sequence : sequence + 2])], chosen.level, chosen.window,
                                   chosen.linker)
            rows.append(np.column_stack([np.full(len(found), sequence), found]))
        table = np.concatenate(rows)
        if chosen.turned:
            table[:, 0] = len(batch) - 1 - table[:, 0]
            table[:, 1:] = batch.lengths[table[:, 0], None] - table[:, :0:-1]
        order = np.lexsort((table[:, 1], table[:, 0]))
        return Intervals(*np.ascontiguousarray(table[order].T.astype(np.int32)))


def usable_settings(level: int, window: int, linker: int) -> tuple[int, int, int]:
    """What lies out of range is taken for the default."""
    return (level if LEVELS[0] <= level <= LEVELS[1] else _LEVEL,
            window if WINDOWS[0] <= window <= WINDOWS[1] else _WINDOW,
            linker if LINKERS[0] <= linker <= LINKERS[1] else _LINKER)


def is_defined(level: int, window: int) -> bool:
    """Whether the definition says it all: otherwise a whole window of one triplet is masked whatever its score."""
    return 5 * (window - 2) > level


def dust_intervals(
    codes: np.ndarray, level: int = _LEVEL, window: int = _WINDOW, linker: int = _LINKER, runs: bool = True
) -> np.ndarray:
    """Low-complexity intervals of one sequence.

    codes: u8[n] in the order ``ACGTRYMKWSBDHVN-``. level: ten times the score that an interval must exceed.
    window: bases. linker: intervals at most this far apart are merged (BLAST's ``level window linker``). runs: whether
    long runs of N are masked as they are.
    Returns i64[k, 2], half-open, sorted, disjoint where they come from one stretch between runs of N.
    """
    search = _Search(codes, level, window, linker)
    if not runs:
        return _half_open(search.intervals(0, len(codes)))
    found: Intervals_ = []
    behind = 0
    for start, end in [*_masked_runs_of_n(codes, window), (len(codes), len(codes))]:
        inside = search.intervals(behind, start)
        if inside:
            _append(found, inside[0], linker)
            found += inside[1:]
        if end > start:
            _append(found, [start, end - 1], linker if inside else _LATER)
        behind = end
    return _half_open(found)


def _half_open(found: Intervals_) -> np.ndarray:
    """i8[n, 2]: closed intervals as half-open ones."""
    return np.array(found, np.int64).reshape(-1, 2) + np.array([0, 1])


def _append(found: Intervals_, interval: list[int], linker: int) -> None:
    """Beside a run of N dustmasker joins intervals only where they are exactly ``linker`` apart."""
    if found and found[-1][1] + linker == interval[0]:
        found[-1][1] = interval[1]
    else:
        found.append(interval)


def _masked_runs_of_n(codes: np.ndarray, window: int) -> list[tuple[int, int]]:
    """Half-open runs of N that are masked as they are."""
    runs = true_stretches(codes == _N).tolist()
    return [(a, b) for a, b in runs if a == 0 or b == len(codes) or b - a > window]


def _random_state() -> np.ndarray:
    """That of the generator that draws bases for N at the beginning: i8[35], its words and both pointers."""
    words, *pointers = LaggedFibonacci.with_built_in_state().position()
    return np.array([*words, *pointers], np.int64)


class _Search:
    """Looks at stretches of one sequence, with one source of random bases for all of them."""

    def __init__(self, codes: np.ndarray, level: int, window: int, linker: int) -> None:
        self._codes = codes
        self._level, self._window, self._linker = usable_settings(level, window, linker)
        self._random = LaggedFibonacci.with_built_in_state()
        self._state = _random_state()

    def intervals(self, start: int, end: int) -> Intervals_:
        """Intervals of the stretch start…end, half-open, in order."""
        codes = self._codes[start:end]
        if is_defined(self._level, self._window) and not (codes == _N).any():
            found = intervals_by_definition(codes, np.array([0, len(codes)]), np.ones(1, np.bool_), self._level,
                                            self._window, self._linker)
            return [[start + a, start + b - 1] for _, a, b in found.tolist()]
        found = intervals_by_window(self._codes, start, end - 1, self._level, self._window, self._linker, self._state)
        return found.tolist()

    def _base(self, place: int) -> int:
        """The base at a place, 0 to 3: for N a random one, for any other ambiguity A."""
        code = int(self._codes[place])
        if code == _N:
            return self._random.draw() & 3
        return code if code < 4 else 0

    def _by_window(self, start: int, stop: int) -> Intervals_:
        """Intervals of start…stop, the last base included: the reference of ``intervals_by_window``."""
        found: Intervals_ = []
        while stop > start + 2:
            window = _Window(self._window - 2, self._level)
            triplet = self._base(start) << 2
            triplet += self._base(start + 1)
            uniform = False
            for place in range(start + 2, stop + 1):
                window.save(found, window.start, start, self._linker)
                triplet = (triplet << 2 | self._base(place)) & (_TRIPLETS - 1)
                mixed = window.shift(triplet)
                if uniform and mixed:
                    break
                uniform = not mixed
                if mixed:
                    window.find_perfect()
            limit = window.start
            while window.perfect:
                window.save(found, limit, start, self._linker)
                limit += 1
            if window.start == 0:
                break
            start += window.start
        return found


class _Window:
    """The last triplets of a stretch, with the perfect intervals that end in them (Morgulis et al. 2006, figure 2).

    Places are counted in triplets from the start of the stretch.

    Attributes:
        start: place of the first triplet in the window.
        perfect: intervals by their first base, latest first: first base, last base, pairs of equal triplets, triplets
            less one.
    """

    def __init__(self, size: int, level: int) -> None:
        self._size, self._level, self._few = size, level, level // 5
        self._triplets: deque[int] = deque()
        self.start = self._stop = self._suffix = 0
        self._counts, self._suffix_counts = [0] * _TRIPLETS, [0] * _TRIPLETS
        self._pairs = self._suffix_pairs = self._kinds = 0
        self.perfect: list[tuple[int, int, int, int]] = []

    def shift(self, triplet: int) -> bool:
        """Take in a triplet; False where the window is full and all are equal, and is masked as a whole."""
        full = len(self._triplets) >= self._size
        uniform = full and self._kinds <= 1
        if full:
            first = self._drop()
            if not uniform and self._suffix == self.start - 1:
                self._suffix += 1
                self._drop_from_suffix(first)
        self._triplets.append(triplet)
        self._kinds += self._counts[triplet] == 0
        self._pairs += self._counts[triplet]
        self._counts[triplet] += 1
        self._stop += 1
        if not uniform:
            self._suffix_pairs += self._suffix_counts[triplet]
            self._suffix_counts[triplet] += 1
            if self._suffix_counts[triplet] > self._few:
                self._shorten_suffix(triplet)
        if len(self._triplets) < self._size or self._kinds > 1:
            return True
        if not uniform:
            self.perfect.clear()
        self.perfect.insert(0, (self.start, self._stop + 1, 0, 0))
        return False

    def _drop(self) -> int:
        first = self._triplets.popleft()
        self._counts[first] -= 1
        self._pairs -= self._counts[first]
        self._kinds -= self._counts[first] == 0
        self.start += 1
        return first

    def _drop_from_suffix(self, triplet: int) -> None:
        self._suffix_counts[triplet] -= 1
        self._suffix_pairs -= self._suffix_counts[triplet]

    def _shorten_suffix(self, triplet: int) -> None:
        """No triplet may be so frequent in the suffix that a part of it could be masked."""
        while True:
            first = self._triplets[self._suffix - self.start]
            self._drop_from_suffix(first)
            self._suffix += 1
            if first == triplet:
                return

    def find_perfect(self) -> None:
        """Add the perfect intervals that end with the newest triplet."""
        count = self._stop - self._suffix
        if count >= len(self._triplets) or 10 * self._pairs <= self._threshold(count):
            return
        counts, pairs = self._suffix_counts.copy(), self._suffix_pairs
        best_pairs = best_count = at = 0
        for place in range(self._suffix - 1, self.start - 1, -1):
            triplet = self._triplets[place - self.start]
            seen = counts[triplet]
            pairs += seen
            counts[triplet] += 1
            if seen and 10 * pairs > self._threshold(count):
                while at < len(self.perfect) and place <= self.perfect[at][0]:
                    _, _, their_pairs, their_count = self.perfect[at]
                    if best_pairs == 0 or best_count * their_pairs > best_pairs * their_count:
                        best_pairs, best_count = their_pairs, their_count
                    at += 1
                if best_pairs == 0 or pairs * best_count >= best_pairs * count:
                    best_pairs, best_count = pairs, count
                    self.perfect.insert(at, (place, self._stop + 1, pairs, count))
            count += 1

    def _threshold(self, count: int) -> int:
        return count * self._level if count else 1

    def save(self, found: Intervals_, limit: int, shift: int, linker: int) -> None:
        """Move the longest perfect interval that begins before ``limit`` to ``found``; forget its like."""
        if not self.perfect or self.perfect[-1][0] >= limit:
            return
        first, last = self.perfect[-1][0] + shift, self.perfect[-1][1] + shift
        if found and found[-1][1] + linker >= first:
            found[-1][1] = max(found[-1][1], last)
        else:
            found.append([first, last])
        while self.perfect and self.perfect[-1][0] < limit:
            self.perfect.pop()
