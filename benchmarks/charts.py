"""Charts of measurements: both axes logarithmic, a line per series, as SVG."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from seqloom.plugins.formats.drawing import SvgCanvas, text_width

COLOURS = ("#1f6fb4", "#d9480f", "#2b8a3e", "#862e9c", "#e8a400", "#0b7285", "#c2255c", "#5c4b3b", "#495057")
_LEFT, _TOP, _WIDE, _HIGH = 90, 50, 560, 360
_MANY = 4  # powers of ten from which on only these have labels


def save_chart(path: Path, title: str, across: str, up: str,
               series: Mapping[str, Sequence[tuple[float, float]]]) -> None:
    """Draw points (x, y), both above 0, joined by lines; ``across`` and ``up`` say what the axes are."""
    points = np.array([point for line in series.values() for point in line], float)
    low, high = np.log10(points.min(axis=0)), np.log10(points.max(axis=0))
    low[1], high[1] = np.floor(low[1]), np.ceil(high[1])
    span = np.maximum(high - low, 1e-9)
    names = max(text_width(name, 12) for name in series)
    canvas = SvgCanvas(_LEFT + _WIDE + 60 + int(names), _TOP + _HIGH + 60)
    steps = [(1, 2, 5) if span[axis] < _MANY else (1,) for axis in (0, 1)]

    def placed(values: np.ndarray) -> np.ndarray:
        share = (np.log10(values) - low) / span
        return np.stack([_LEFT + share[:, 0] * _WIDE, _TOP + (1 - share[:, 1]) * _HIGH], axis=1)

    right, bottom = _LEFT + _WIDE, _TOP + _HIGH
    canvas.lines(np.array([[_LEFT, bottom, right, bottom], [_LEFT, _TOP, _LEFT, bottom]]), "#444444")
    for axis in (0, 1):
        for power in range(int(np.floor(low[axis])), int(np.ceil(high[axis])) + 1):
            for value in (step * 10.0**power for step in steps[axis]):
                if not low[axis] - 1e-9 <= np.log10(value) <= high[axis] + 1e-9:
                    continue
                x, y = placed(np.array([[value, 10 ** low[1]] if axis == 0 else [10 ** low[0], value]]))[0]
                if axis == 0:
                    canvas.lines(np.array([[x, bottom, x, bottom + 5]]), "#444444")
                    canvas.text(x, bottom + 18, _label(value), 11, "middle")
                else:
                    canvas.lines(np.array([[x, y, right, y]]), "#dddddd", 0.7)
                    canvas.text(_LEFT - 8, y + 4, _label(value), 11, "end")
    for n, (name, line) in enumerate(series.items()):
        places, colour = placed(np.array(line, float)), COLOURS[n % len(COLOURS)]
        canvas.lines(np.concatenate([places[:-1], places[1:]], axis=1), colour, 1.8)
        canvas.lines(np.concatenate([places, places], axis=1), colour, 6)
        canvas.lines(np.array([[right + 20, _TOP + 12 + 20 * n, right + 38, _TOP + 12 + 20 * n]]), colour, 3)
        canvas.text(right + 46, _TOP + 16 + 20 * n, name, 12)
    canvas.text(_LEFT, 28, title, 15)
    canvas.text((_LEFT + right) / 2, bottom + 42, across, 12, "middle")
    canvas.text(28, (_TOP + bottom) / 2, up, 12, "middle", upright=True)
    path.write_bytes(canvas.data())


def _label(value: float) -> str:
    for unit, sign in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if value >= unit:
            return f"{value / unit:g}{sign}"
    return f"{value:g}"
