"""Places of what the figures of a page show, for its templates."""

from collections.abc import Sequence

import numpy as np
from seqloom.core.classes import NamedTuple

from ..figures import Domain, DotLines, Histogram, Protein, ticks

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#7a4fa3", "#8a6d00", "#c2447e", "#3c6e71", "#4d4d4d")
"""Of models: dark enough for white text on them, and told apart by people who don't see all colours."""
PLANE = 480
"""Width and height of a dot plot, in units of its own."""
FINE = 4
"""Parts of such a unit; lines that begin and end in the same parts are drawn once."""


class HistogramBar(NamedTuple):
    """A bar in per cent of the figure, and what it says."""

    x: float
    width: float
    height: float
    text: str


def bars_of(histogram: Histogram, what: str) -> tuple[list[HistogramBar], list[tuple[float, str]]]:
    """Bars, and places and names of ticks."""
    counts = histogram.counts.tolist()
    width, most = 100 / max(1, len(counts)), max(1, *counts, 1)
    bars = [HistogramBar(round(n * width, 2), round(width, 2), round(100 * count / most, 2),
                         f"{count:,} {what} between {histogram.labels[n]} and {histogram.labels[n + 1]}")
            for n, count in enumerate(counts)]
    each = max(1, -(-len(histogram.labels) // 6))
    marks = [(round(n * width, 2), label) for n, label in enumerate(histogram.labels) if n % each == 0]
    return bars, marks


class Box(NamedTuple):
    """A domain in per cent of the longest protein; ``line`` is its row."""

    domain: Domain
    x: float
    width: float
    line: int
    colour: str


class ProteinLine(NamedTuple):
    """A protein of the figure."""

    protein: Protein
    width: float
    lines: int
    boxes: Sequence[Box]
    ticks: Sequence[tuple[float, str]]


def arch_lines(proteins: Sequence[Protein]) -> list[ProteinLine]:
    """Proteins with their domains as boxes, all to the same scale."""
    longest = max((protein.length for protein in proteins), default=1)
    names: dict[str, str] = {}
    found = []
    for protein in proteins:
        lanes, boxes = protein.lanes(), []
        for number, lane in enumerate(lanes):
            for domain in lane:
                colour = names.setdefault(domain.model, COLOURS[len(names) % len(COLOURS)])
                boxes.append(Box(domain, round(100 * domain.start / longest, 2),
                                 round(100 * (domain.end - domain.start) / longest, 2), number, colour))
        boxes.sort(key=lambda box: (box.line, box.x))
        marks = [(round(100 * place / longest, 2), text) for place, text in ticks(protein.length, 6)]
        found.append(ProteinLine(protein, round(100 * protein.length / longest, 2), max(1, len(lanes)), boxes, marks))
    return found


class DotFigure(NamedTuple):
    """A dot plot: paths of both strands, boundaries and ticks, in units of the figure from its left upper corner."""

    forward: str
    reverse: str
    counts: tuple[int, int]
    width: float
    height: float
    across: Sequence[tuple[float, str]]
    up: Sequence[tuple[float, str]]
    across_names: Sequence[tuple[float, str]]
    up_names: Sequence[tuple[float, str]]
    across_bounds: Sequence[float]
    up_bounds: Sequence[float]


def dot_figure(lines: DotLines) -> DotFigure:
    """Places of a dot plot; the longer axis is as long as the figure, the other one to the same scale."""
    scale = PLANE / max(lines.targets.length, lines.queries.length)
    width, height = (max(PLANE / 4, axis.length * scale) for axis in (lines.targets, lines.queries))
    x, y = width / lines.targets.length, height / lines.queries.length
    places = np.stack([lines.ends[:, 0] * x, height - lines.ends[:, 1] * y,
                       lines.ends[:, 2] * x, height - lines.ends[:, 3] * y], axis=1)

    def path(chosen: np.ndarray) -> str:
        fine = np.unique(np.round(places[chosen] * FINE).astype(np.int64), axis=0) / FINE
        return "".join(f"M{a:g} {b:g}L{c:g} {d:g}" for a, b, c, d in fine.tolist())

    def moved(marks: Sequence[tuple[float, str]], across: bool) -> list[tuple[float, str]]:
        return [(round(place * x if across else height - place * y, 1), text) for place, text in marks]

    return DotFigure(
        path(~lines.turned), path(lines.turned), (int((~lines.turned).sum()), int(lines.turned.sum())),
        round(width, 1), round(height, 1),
        moved(lines.targets.ticks(6), True), moved(lines.queries.ticks(6), False),
        moved(lines.targets.named(0.08), True), moved(lines.queries.named(0.04), False),
        [round(b * x, 1) for b in lines.targets.boundaries(0.005)],
        [round(height - b * y, 1) for b in lines.queries.boundaries(0.005)])
