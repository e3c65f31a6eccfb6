"""Charts of measurements: both axes logarithmic, a line per series, as SVG."""

from collections.abc import Mapping, Sequence
from pathlib import Path

COLOURS = ("#1f6fb4", "#d9480f", "#2b8a3e", "#862e9c", "#e8a400", "#0b7285", "#c2255c", "#5c4b3b", "#495057")


def save_chart(path: Path, title: str, across: str, up: str,
               series: Mapping[str, Sequence[tuple[float, float]]]) -> None:
    """Draw points (x, y), both above 0, joined by lines; ``across`` and ``up`` say what the axes are."""
    import matplotlib
    from matplotlib.figure import Figure

    style = {"svg.fonttype": "none", "svg.hashsalt": "seqloom", "text.parse_math": False, "font.size": 9}
    with matplotlib.rc_context(style):
        figure = Figure(figsize=(8, 5))
        axes = figure.add_subplot()
        for n, (name, points) in enumerate(series.items()):
            axes.loglog(*zip(*points, strict=True), marker="o", markersize=4, color=COLOURS[n % len(COLOURS)],
                        label=name)
        axes.set_title(title, loc="left")
        axes.set_xlabel(across)
        axes.set_ylabel(up)
        axes.grid(axis="y", color="#dddddd")
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1), frameon=False)
        figure.savefig(path, format="svg", metadata={"Date": None}, bbox_inches="tight")
