"""Charts of measurements as SVG: lines on two logarithmic axes, bars of parts, and bars side by side."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

COLOURS = ("#1f6fb4", "#d9480f", "#2b8a3e", "#862e9c", "#e8a400", "#0b7285", "#c2255c", "#5c4b3b", "#495057")
MARKS = ("#000000", "#c2255c", "#868e96")
"""Of points on bars."""


def save_chart(path: Path, title: str, across: str, up: str,
               series: Mapping[str, Sequence[tuple[float, float]]]) -> None:
    """Draw points (x, y), both above 0, joined by lines; ``across`` and ``up`` say what the axes are."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    with _chart(path, title, across, up) as axes:
        for n, (name, points) in enumerate(series.items()):
            axes.loglog(*zip(*points, strict=True), marker="o", markersize=4, color=COLOURS[n % len(COLOURS)],
                        label=name)
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            axis.set_major_formatter(FuncFormatter(lambda value, _: _short(value)))
            axis.set_minor_formatter(NullFormatter())


def save_bars(path: Path, title: str, across: str, up: str, names: Sequence[str],
              parts: Mapping[str, Sequence[float]], marks: Mapping[str, Sequence[float]]) -> None:
    """Draw a bar of stacked ``parts`` for each of the names, and points of ``marks`` on it."""
    with _chart(path, title, across, up) as axes:
        below = [0.0] * len(names)
        for n, (name, heights) in enumerate(parts.items()):
            axes.bar(names, heights, 0.6, below, color=COLOURS[n], label=name)
            below = [low + height for low, height in zip(below, heights, strict=True)]
        for n, (name, heights) in enumerate(marks.items()):
            axes.plot(names, heights, "_", markersize=22, markeredgewidth=2, color=MARKS[n % len(MARKS)], label=name)


def save_groups(path: Path, title: str, across: str, up: str, names: Sequence[str],
                groups: Mapping[str, Sequence[float]]) -> None:
    """Draw a bar of each of the groups side by side for each of the names, with its height above it; NaN is no bar."""
    with _chart(path, title, across, up) as axes:
        width = 0.84 / max(1, len(groups))
        for n, (name, heights) in enumerate(groups.items()):
            places = [place + (n + 0.5) * width - 0.42 for place in range(len(names))]
            bars = axes.bar(places, heights, 0.92 * width, color=COLOURS[n % len(COLOURS)], label=name)
            axes.bar_label(bars, [f"{height:.3g}" if height == height else "" for height in heights], padding=2,
                           fontsize=7)
        axes.set_xticks(range(len(names)), names)


def _short(value: float) -> str:
    """A number for an axis: 0.05, 20, 5 k."""
    unit, size = next(((unit, size) for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)) if value >= size), ("", 1))
    return f"{value / size:g} {unit}".rstrip()


@contextmanager
def _chart(path: Path, title: str, across: str, up: str) -> Iterator[Any]:
    """Axes to draw on; the file is written at the end."""
    import matplotlib
    from matplotlib.figure import Figure

    style = {"svg.fonttype": "none", "svg.hashsalt": "seqloom", "text.parse_math": False, "font.size": 9}
    with matplotlib.rc_context(style):
        figure = Figure(figsize=(8, 5))
        axes = figure.add_subplot()
        yield axes
        axes.set_title(title, loc="left")
        axes.set_xlabel(across)
        axes.set_ylabel(up)
        axes.grid(axis="y", color="#dddddd")
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1), frameon=False)
        figure.savefig(path, format="svg", metadata={"Date": None}, bbox_inches="tight")
