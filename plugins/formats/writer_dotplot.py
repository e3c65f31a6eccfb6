"""Dot plots: every alignment is a line in the plane of target and query, as SVG or PNG."""

from collections.abc import Sequence
from typing import IO

import numpy as np

from ...core.errors import OptionError
from ...core.ports import Report
from ...core.stages import Writer
from .drawing import Canvas, PngCanvas, SvgCanvas, nice_step, text_width

FORWARD, REVERSE = "#1f6fb4", "#d9480f"
_FRAME, _BOUNDARY = "#444444", "#c9c9c9"
_LONG, _SHORT = 800, 240  # pixels of the longer side, and least of the shorter one
_SMALL, _LARGE = 10, 13  # sizes of text
_CHARACTERS = 28  # most characters of a name


class Dotplot(Writer):
    """A dot plot as SVG: targets from left to right, queries from below to above, strands in two colours.

    Queries and targets without alignments are left out. Where one is wide enough it has its name and ticks that count
    its own residues from 1; boundaries are drawn where they are more than two pixels apart.
    """

    name = "dotplot"
    beside = ("exact-match", "exact-match-protein")
    canvas: type[Canvas] = SvgCanvas

    def write(self, report: Report, stream: IO[str], fields: Sequence[str]) -> None:
        if fields:
            raise OptionError(f"output format '{self.name}' takes no fields, such as '{fields[0]}'")
        self.put(self._drawn(report).data(), stream)

    def put(self, data: bytes, stream: IO[str]) -> None:
        """Write a picture."""
        stream.write(data.decode())

    def _drawn(self, report: Report) -> Canvas:
        queries, targets = _Axis(), _Axis()
        ends, turned = [np.empty((0, 4))], [np.empty(0, bool)]
        for query in report.queries():
            rows = query.hits.alignments
            if not len(rows):
                continue
            queries.add(query.number, query.name, query.length)
            for number, name, length in zip(query.targets.numbers.tolist(), query.targets.names,
                                            query.targets.lengths.tolist(), strict=True):
                targets.add(number, name, length)
            turn = rows.query_frame * rows.target_frame < 0
            starts, stops = rows.query_start.astype(float), rows.query_end.astype(float)
            query_numbers = np.full(len(rows), query.number)
            ends.append(np.stack([rows.target_start, np.where(turn, stops, starts), rows.target_end,
                                  np.where(turn, starts, stops), rows.target, query_numbers], axis=1))
            turned.append(turn)
        table = np.concatenate(ends[1:]) if len(ends) > 1 else np.empty((0, 6))
        targets.close()
        queries.close()
        scale = _LONG / max(targets.length, queries.length)
        wide, high = (max(_SHORT, axis.length * scale) for axis in (targets, queries))
        targets.scale, queries.scale = wide / targets.length, high / queries.length
        left = 60 + max((text_width(name, _SMALL) for name in queries.names), default=0)
        below = 45 + max((text_width(name, _SMALL) for name in targets.upright()), default=0)
        canvas = self.canvas(int(left + wide + 30), int(50 + high + below))
        _draw_axis(canvas, targets, left, 50 + high, high, across=True)
        _draw_axis(canvas, queries, left, 50 + high, wide, across=False)
        x = left + (table[:, [0, 2]] + targets.begins(table[:, 4])[:, None]) * targets.scale
        y = 50 + high - (table[:, [1, 3]] + queries.begins(table[:, 5])[:, None]) * queries.scale
        lines, turns = np.stack([x[:, 0], y[:, 0], x[:, 1], y[:, 1]], axis=1), np.concatenate(turned)
        canvas.text(left, 20, f"{report.run.get('pipeline', '')}: {len(lines):,} alignments", _LARGE)
        for n, (what, colour, chosen) in enumerate((("forward", FORWARD, ~turns), ("reverse", REVERSE, turns))):
            if chosen.any():
                canvas.lines(lines[chosen], colour, 1.5, what)
            canvas.lines(np.array([[left + 90 * n, 36, left + 90 * n + 18, 36]]), colour, 3)
            canvas.text(left + 90 * n + 24, 40, what, _SMALL + 1)
        return canvas


class DotplotPng(Dotplot):
    """A dot plot as PNG, drawn like ``dotplot``."""

    name = "dotplot-png"
    binary = True
    canvas = PngCanvas

    def put(self, data: bytes, stream: IO[str]) -> None:
        file = getattr(stream, "buffer", None)
        if file is None:
            raise TypeError("a PNG is made of bytes: the stream must have a 'buffer', as files and standard output do")
        stream.flush()
        file.write(data)


class _Axis:
    """Sequences side by side, in order of their numbers."""

    def __init__(self) -> None:
        self._found: dict[int, tuple[str, int]] = {}
        self.scale = 1.0

    def add(self, number: int, name: str, length: int) -> None:
        self._found[number] = name, length

    def close(self) -> None:
        """Lay the sequences out; nothing is added from here on."""
        self._numbers = np.array(sorted(self._found), np.int64)
        self.names = [_shortened(self._found[number][0]) for number in self._numbers.tolist()]
        lengths = [self._found[number][1] for number in self._numbers.tolist()]
        self.bounds = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
        self.length = max(1, int(self.bounds[-1]))

    def upright(self) -> list[str]:
        """Names that are shown but wider than their sequences."""
        sizes = np.diff(self.bounds) * self.scale
        return [name for name, size in zip(self.names, sizes.tolist(), strict=True)
                if _SMALL < size <= text_width(name, _SMALL)]

    def begins(self, numbers: np.ndarray) -> np.ndarray:
        """Where on the axis sequences begin, in residues."""
        return self.bounds[np.searchsorted(self._numbers, numbers)]


def _shortened(name: str) -> str:
    return name if len(name) <= _CHARACTERS else name[: _CHARACTERS - 3] + "..."


def _draw_axis(canvas: Canvas, axis: _Axis, left: float, bottom: float, opposite: float, across: bool) -> None:
    """Boundaries, names and ticks of one axis; ``opposite`` is the length of the other one in pixels."""
    def line(at: float, near: float, far: float) -> list[float]:
        """Across the axis at a place of it, from ``near`` to ``far`` pixels inside the plot."""
        if across:
            return [left + at, bottom - near, left + at, bottom - far]
        return [left + near, bottom - at, left + far, bottom - at]

    bounds = axis.bounds * axis.scale
    shown, last = [bounds[0]], bounds[0]
    for bound in bounds[1:-1].tolist():
        if bound - last > 2 and bounds[-1] - bound > 2:
            shown.append(last := bound)
    shown.append(bounds[-1])
    canvas.lines(np.array([line(at, 0, opposite) for at in shown[1:-1]]).reshape(-1, 4), _BOUNDARY, 0.7)
    canvas.lines(np.array([line(shown[0], 0, opposite), line(shown[-1], 0, opposite)]), _FRAME)
    ticks = []
    for name, first, begin, end in zip(axis.names, axis.bounds.tolist(), bounds.tolist(), bounds[1:].tolist(),
                                       strict=False):
        size = end - begin
        if size >= 90:
            residues = size / axis.scale
            step = max(1, round(nice_step(residues, max(1, int(size / 70)))))
            for place in range(0, int(residues) + 1, step):
                at = (first + place) * axis.scale
                if (place == 0 and first > 0) or (end - at < 25 and end < bounds[-1]):
                    continue  # the boundary and its neighbour's ticks stand there
                ticks.append(line(at, -5, 0))
                label = _residues(place, step)
                if across:
                    canvas.text(left + at, bottom + 17, label, _SMALL, "middle")
                else:
                    canvas.text(left - 8, bottom - at + 4, label, _SMALL, "end")
        if size > _SMALL:
            middle, width = (begin + end) / 2, text_width(name, _SMALL)
            if not across:
                canvas.text(left - 50, bottom - middle + 4, name, _SMALL, "end")
            elif width < size:
                canvas.text(left + middle, bottom + 34, name, _SMALL, "middle")
            else:
                canvas.text(left + middle + 4, bottom + 26, name, _SMALL, "end", upright=True)
    if ticks:
        canvas.lines(np.array(ticks), _FRAME)


def _residues(place: int, step: int) -> str:
    """A place on a sequence as its tick says it: 0, 500, 20 k, 1.5 M."""
    for unit, sign in ((1_000_000_000, "G"), (1_000_000, "M"), (1_000, "k")):
        if place >= unit and step >= unit // 100:
            return f"{place / unit:g} {sign}"
    return f"{place:,}"
