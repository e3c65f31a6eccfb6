"""What pictures of results show, as numbers: pages and plots draw the same ones."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import field
from itertools import pairwise
from typing import Any

import numpy as np
from seqloom.core.classes import NamedTuple, dataclass

from ...core.ports import QueryBlock, Taxon
from ..common.numbers import SMALLEST_EVALUE

BIT_CLASSES = (40.0, 50.0, 80.0, 200.0)
"""Bit scores at which BLAST's overview changes its colour."""
SHARES = (0.2, 0.4, 0.6, 0.8)
"""Of the best score, where there are no bit scores."""
SHADES = ("#8ab6d6", "#4f93c4", "#2670a8", "#144b78", "#08263f")
"""Of the classes of scores, from light to dark, so that they can be told apart without colour."""
CHARACTERS = 28
"""Of a name on an axis, at most."""


@dataclass(frozen=True)
class Scale:
    """Classes of scores.

    Attributes:
        bounds: scores at which the next class begins.
        labels: of the classes, the lowest first.
        bits: whether bit scores are classified; else raw ones.
    """

    bounds: np.ndarray
    labels: Sequence[str]
    bits: bool

    @classmethod
    def of(cls, bits: np.ndarray, scores: np.ndarray) -> "Scale":
        """Classes for hits with these bit scores, or with these scores where they have none."""
        if len(bits) and not np.isnan(bits).all():
            ends = [f"{bound:g}" for bound in BIT_CLASSES]
            between = [f"{low}–{high}" for low, high in pairwise(ends)]
            return cls(np.array(BIT_CLASSES), [f"below {ends[0]}", *between, f"{ends[-1]} and more"], True)
        best = float(np.nanmax(scores)) if len(scores) and not np.isnan(scores).all() else 1.0
        shares = [f"{share:.0%}" for share in (0.0, *SHARES, 1.0)]
        return cls(np.array(SHARES) * best, [f"{low}–{high} of the best" for low, high in pairwise(shares)],
                   False)

    def classes(self, bits: np.ndarray, scores: np.ndarray) -> np.ndarray:
        """i8[n], 0…4; the lowest for what has no score."""
        values = bits if self.bits else scores.astype(float)
        return np.searchsorted(self.bounds, np.nan_to_num(values, nan=-np.inf), "right")


@dataclass
class Totals:
    """Of a whole run, from one reading of its hits.

    Attributes:
        queries, with_hits, alignments: numbers; hits: of each query, i8[queries].
        bits, scores, evalues: of all hits, f8.
        identities: shares of identical columns of all alignments that say them, f8.
        taxa: hits by organism; None for those of which none is known.
        best: smallest E-value by organism.
    """

    queries: int = 0
    alignments: int = 0
    hits: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))
    bits: np.ndarray = field(default_factory=lambda: np.empty(0))
    scores: np.ndarray = field(default_factory=lambda: np.empty(0))
    evalues: np.ndarray = field(default_factory=lambda: np.empty(0))
    identities: np.ndarray = field(default_factory=lambda: np.empty(0))
    taxa: Counter[Taxon | None] = field(default_factory=Counter)
    best: dict[Taxon | None, float] = field(default_factory=dict)

    @property
    def with_hits(self) -> int:
        return int((self.hits > 0).sum())

    @classmethod
    def of(cls, blocks: Iterable[QueryBlock]) -> "Totals":
        found = cls()
        parts: dict[str, list[np.ndarray]] = {n: [] for n in ("hits", "bits", "scores", "evalues", "identities")}
        for block in blocks:
            hits, rows = block.hits, block.hits.alignments
            found.queries += len(block)
            found.alignments += len(rows)
            parts["hits"].append(np.diff(block.first_hits))
            parts["bits"].append(hits.bit_score)
            parts["scores"].append(hits.score.astype(float))
            parts["evalues"].append(hits.evalue)
            told = (rows.identities >= 0) & (rows.length > 0)
            parts["identities"].append(rows.identities[told] / rows.length[told])
            found._add_taxa(block)
        for name, arrays in parts.items():
            if arrays:
                setattr(found, name, np.concatenate(arrays))
        return found

    def _add_taxa(self, block: QueryBlock) -> None:
        if not block.targets.taxa:
            return
        places = np.searchsorted(block.targets.numbers, block.hits.target).tolist()
        for place, evalue in zip(places, block.hits.evalue.tolist()):
            taxon = block.targets.taxa[place]
            self.taxa[taxon] += 1
            self.best[taxon] = min(self.best.get(taxon, np.inf), evalue if evalue == evalue else np.inf)


class Histogram(NamedTuple):
    """Numbers of values between edges.

    Attributes:
        edges: f8[n + 1]; counts: i8[n].
        labels: of the edges.
    """

    edges: np.ndarray
    counts: np.ndarray
    labels: Sequence[str]


def identity_histogram(identities: np.ndarray) -> Histogram:
    """Alignments by per cent of identical columns, five per cent a bar; 100 % belongs to the last one."""
    edges = np.arange(0, 101, 5)
    counts, _ = np.histogram(np.round(identities * 100, 9), edges)
    return Histogram(edges.astype(float), counts, [f"{edge} %" for edge in edges.tolist()])


def evalue_histogram(evalues: np.ndarray) -> Histogram:
    """Hits by E-value, in powers of ten, the largest first; what is printed as 0 is in the last bar."""
    known = evalues[~np.isnan(evalues)]
    powers = -np.log10(np.maximum(known, SMALLEST_EVALUE))
    if not len(powers):
        return Histogram(np.zeros(1), np.zeros(0, np.int64), [""])
    low, high = np.floor(powers.min()), np.floor(powers.max()) + 1
    step = max(1.0, nice_step(high - low, 30))
    first = np.floor(low / step) * step
    edges = first + step * np.arange(int(np.ceil((high - first) / step)) + 1)
    counts, _ = np.histogram(powers, edges)
    edges[0] = low
    return Histogram(edges, counts, [power_text(-edge) for edge in edges.tolist()])


def power_text(power: float) -> str:
    """A power of ten as an E-value is written: 1e-05 is 1e-5, 0.1, 1, 10, 1e4."""
    return f"1e{power:.0f}" if abs(power) > 3 else f"{10.0 ** power:g}"


def nice_step(length: float, most: int) -> float:
    """The least of 1, 2, 5, 10, 20, … (or 0.5, 0.2, …) that cuts ``length`` into at most ``most`` parts."""
    power = 10.0 ** np.floor(np.log10(length / most))
    return float(next(power * n for n in (1, 2, 5, 10) if length / (power * n) <= most))


def ticks(length: int, most: int) -> list[tuple[int, str]]:
    """Places on a sequence of ``length`` residues that an axis of at most ``most`` parts names, and their names."""
    step = max(1, round(nice_step(max(1, length), most)))
    return [(place, residues_text(place, step)) for place in range(0, length + 1, step)]


def residues_text(place: int, step: int) -> str:
    """A place on a sequence as its tick says it: 0, 500, 20 k, 1.5 M."""
    for unit, sign in ((1_000_000_000, "G"), (1_000_000, "M"), (1_000, "k")):
        if place >= unit and step >= unit // 100:
            return f"{place / unit:g} {sign}"
    return f"{place:,}"


# ---- dot plots


class Axis:
    """Sequences side by side, in order of their numbers.

    Attributes:
        names: shortened; bounds: i8[n + 1], where each begins, in residues; length: of all.
    """

    def __init__(self, found: dict[int, tuple[str, int]]) -> None:
        self._numbers = np.array(sorted(found), np.int64)
        self.names = [shortened(found[number][0]) for number in self._numbers.tolist()]
        lengths = [found[number][1] for number in self._numbers.tolist()]
        self.bounds = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
        self.length = max(1, int(self.bounds[-1]))

    def begins(self, numbers: np.ndarray) -> np.ndarray:
        """Where on the axis sequences begin, in residues."""
        return self.bounds[np.searchsorted(self._numbers, numbers)]

    def ticks(self, most: int) -> list[tuple[int, str]]:
        """Places on the axis and their names, counted on each sequence that is long enough for it from 1 on."""
        step = max(1, round(nice_step(self.length, most)))
        found = []
        for begin, end in pairwise(self.bounds.tolist()):
            if end - begin >= step or len(self.names) == 1:
                places = range(step if begin else 0, end - begin + 1, step)
                found += [(begin + place, residues_text(place, step)) for place in places]
        return found

    def named(self, least: float) -> list[tuple[float, str]]:
        """Middles and names of the sequences that are at least the share ``least`` of the axis."""
        sizes = np.diff(self.bounds)
        return [(begin + size / 2, name) for begin, size, name in
                zip(self.bounds.tolist(), sizes.tolist(), self.names) if size >= least * self.length]

    def boundaries(self, least: float) -> list[int]:
        """Places between two sequences, at least the share ``least`` of the axis from each other."""
        shown, last = [], 0
        for bound in self.bounds.tolist()[1:-1]:
            if bound - last >= least * self.length:
                shown.append(last := bound)
        return shown


class DotLines(NamedTuple):
    """Alignments as lines in the plane of targets (x) and queries (y).

    Attributes:
        ends: f8[k, 4], x and y of both ends, in residues along the axes.
        turned: bool[k], whether the strands differ.
    """

    queries: Axis
    targets: Axis
    ends: np.ndarray
    turned: np.ndarray


def dot_lines(blocks: Iterable[QueryBlock]) -> DotLines:
    """The lines of all alignments; queries and targets without any are left out."""
    queries: dict[int, tuple[str, int]] = {}
    targets: dict[int, tuple[str, int]] = {}
    parts, turned = [np.empty((0, 6))], [np.empty(0, bool)]
    for block in blocks:
        rows = block.hits.alignments
        lengths, query_numbers = block.lengths.tolist(), block.numbers.tolist()
        for place in np.flatnonzero(np.diff(block.first_alignments)).tolist():
            queries[query_numbers[place]] = block.names[place], lengths[place]
        wanted = np.isin(block.targets.numbers, rows.target)
        for place in np.flatnonzero(wanted).tolist():
            targets[int(block.targets.numbers[place])] = block.targets.names[place], int(block.targets.lengths[place])
        turn = rows.query_frame * rows.target_frame < 0
        starts, stops = rows.query_start, rows.query_end
        parts.append(np.stack([rows.target_start, np.where(turn, stops, starts), rows.target_end,
                               np.where(turn, starts, stops), rows.target, rows.query], axis=1).astype(float))
        turned.append(turn)
    table, across, up = np.concatenate(parts), Axis(targets), Axis(queries)
    ends = table[:, :4].copy()
    ends[:, [0, 2]] += across.begins(table[:, 4].astype(np.int64))[:, None]
    ends[:, [1, 3]] += up.begins(table[:, 5].astype(np.int64))[:, None]
    return DotLines(up, across, ends, np.concatenate(turned))


def shortened(name: str) -> str:
    """A name for an axis."""
    return name if len(name) <= CHARACTERS else name[: CHARACTERS - 1] + "…"


# ---- domains


class Domain(NamedTuple):
    """A domain on a protein, by its envelope: half-open, from 0; ``included`` where it is significant."""

    model: str
    start: int
    end: int
    evalue: float
    bits: float
    included: bool
    query: int
    target: int


@dataclass
class Protein:
    """A protein with its domains, by place."""

    name: str
    length: int
    evalue: float
    domains: list[Domain] = field(default_factory=list)

    def lanes(self) -> list[list[Domain]]:
        """The domains in lines in which none overlaps another, the best in the first one."""
        lines: list[list[Domain]] = []
        for domain in sorted(self.domains, key=lambda d: (d.evalue, d.start)):
            free = (line for line in lines if all(domain.end <= d.start or domain.start >= d.end for d in line))
            line = next(free, None)
            if line is None:
                lines.append(line := [])
            line.append(domain)
        return lines


def architectures(blocks: Iterable[QueryBlock], most: int) -> tuple[list[Protein], int]:
    """Proteins with the domains of all models on them, those with the best E-values first.

    Args:
        most: of them are given.

    Returns:
        these proteins, and how many there are.
    """
    found: dict[int, Protein] = {}
    for block in blocks:
        hits, rows = block.hits, block.hits.alignments
        if "env_start" not in rows.data:
            return [], 0
        scanned = "model_accession" in hits.data
        of_hits = np.searchsorted(block.targets.numbers, hits.target).tolist()
        of_queries = np.searchsorted(block.numbers, hits.query).tolist()
        for place, query, evalue in zip(of_hits, of_queries, hits.evalue.tolist()):
            name, length = ((block.names[query], int(block.lengths[query])) if scanned else
                            (block.targets.names[place], int(block.targets.lengths[place])))
            number = int(block.numbers[query]) if scanned else int(block.targets.numbers[place])
            protein = found.setdefault(number, Protein(name, length, evalue))
            protein.evalue = min(protein.evalue, evalue)
        columns: dict[str, Any] = {n: rows.data[n].tolist() for n in (
            "query", "target", "env_start", "env_end", "evalue", "bit_score", "included")}
        names = dict(zip(block.targets.numbers.tolist(), block.targets.names))
        asked = dict(zip(block.numbers.tolist(), block.names))
        for query, target, *values in zip(*columns.values()):
            start, end, evalue, bits, included = values
            found[query if scanned else target].domains.append(Domain(
                names[target] if scanned else asked[query], start, end, evalue, bits, bool(included), query, target))
    best = sorted(found.values(), key=lambda protein: (protein.evalue, protein.name))
    for protein in best[:most]:
        protein.domains.sort(key=lambda domain: (domain.start, domain.end))
    return best[:most], len(best)
