"""Pictures of lines and text, as SVG or PNG, made here: no library is needed to look at results.

Places are in pixels from the left upper corner. A PNG is drawn at twice the size and scaled down, which smooths it.
"""

import struct
import zlib
from abc import ABC, abstractmethod
from html import escape

import numpy as np

from .stroke_font import ADVANCE, BASE, TOP, strokes

_FINE = 2  # points per pixel and direction while a PNG is drawn


def text_width(text: str, size: float) -> float:
    """Width in pixels of text, as the stroke font has it; fonts of viewers are about as wide."""
    return len(text) * ADVANCE * size / (TOP - BASE + 2)


class Canvas(ABC):
    """A white sheet of ``width`` × ``height`` pixels to draw on."""

    def __init__(self, width: int, height: int) -> None:
        self.width, self.height = width, height

    @abstractmethod
    def lines(self, ends: np.ndarray, colour: str, thick: float = 1.0, name: str = "") -> None:
        """Straight lines: f8[k, 4] x, y, x, y; a line of no length is a dot. ``colour``: "#rrggbb"."""

    @abstractmethod
    def text(self, x: float, y: float, text: str, size: float = 12, anchor: str = "start", upright: bool = False,
             colour: str = "#222222") -> None:
        """Text whose base line begins ("start"), ends ("end") or has its middle ("middle") at a place.

        Args:
            upright: read from below to above.
        """

    @abstractmethod
    def data(self) -> bytes:
        """The picture as a file."""


class SvgCanvas(Canvas):
    """Scalable Vector Graphics 1.1."""

    def __init__(self, width: int, height: int) -> None:
        super().__init__(width, height)
        self._parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
                       f'viewBox="0 0 {width} {height}" font-family="sans-serif">',
                       f'<rect width="{width}" height="{height}" fill="#ffffff"/>']

    def lines(self, ends: np.ndarray, colour: str, thick: float = 1.0, name: str = "") -> None:
        # What is drawn at one tenth of a pixel is drawn once: a genome has more matches than a picture has points.
        places = np.unique(np.round(ends * 10).astype(np.int64), axis=0) / 10
        path = "".join(f"M{a:g} {b:g}L{c:g} {d:g}" for a, b, c, d in places.tolist())
        label = f' class="{escape(name)}"' if name else ""
        self._parts.append(f'<path{label} d="{path}" stroke="{colour}" stroke-width="{thick:g}" fill="none" '
                           'stroke-linecap="round"/>')

    def text(self, x: float, y: float, text: str, size: float = 12, anchor: str = "start", upright: bool = False,
             colour: str = "#222222") -> None:
        turned = f' transform="rotate(-90 {x:.1f} {y:.1f})"' if upright else ""
        clean = "".join(letter if letter.isprintable() else "?" for letter in text)
        self._parts.append(f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size:g}" text-anchor="{anchor}" '
                           f'fill="{colour}"{turned}>{escape(clean)}</text>')

    def data(self) -> bytes:
        return "\n".join([*self._parts, "</svg>\n"]).encode()


class PngCanvas(Canvas):
    """Portable Network Graphics, 8 bits a colour."""

    def __init__(self, width: int, height: int) -> None:
        super().__init__(width, height)
        self._points = np.full((height * _FINE, width * _FINE, 3), 255, np.uint8)

    def lines(self, ends: np.ndarray, colour: str, thick: float = 1.0, name: str = "") -> None:
        ends = np.asarray(ends, float).reshape(-1, 4) * _FINE
        steps = np.ceil(np.abs(ends[:, 2:] - ends[:, :2]).max(axis=1, initial=0)).astype(np.int64) + 1
        line = np.repeat(np.arange(len(ends)), steps)
        share = (np.arange(len(line)) - np.repeat(np.cumsum(steps) - steps, steps)) / np.maximum(steps - 1, 1)[line]
        points = ends[line, :2] + share[:, None] * (ends[line, 2:] - ends[line, :2])
        brush = max(1, round(thick * _FINE))
        red, green, blue = (int(colour[n : n + 2], 16) for n in (1, 3, 5))
        corners = np.unique(np.floor(points - (brush - 1) / 2 + 0.5).astype(np.int64), axis=0)
        for right in range(brush):
            for down in range(brush):
                x, y = corners[:, 0] + right, corners[:, 1] + down
                inside = (x >= 0) & (y >= 0) & (x < self._points.shape[1]) & (y < self._points.shape[0])
                self._points[y[inside], x[inside]] = red, green, blue

    def text(self, x: float, y: float, text: str, size: float = 12, anchor: str = "start", upright: bool = False,
             colour: str = "#222222") -> None:
        scale = size / (TOP - BASE + 2)
        before = {"start": 0.0, "middle": 0.5, "end": 1.0}[anchor] * text_width(text, size)
        along = strokes(text)[:, [0, 2]] * scale - before
        up = (strokes(text)[:, [1, 3]] - BASE) * scale
        right, down = (-up, -along) if upright else (along, -up)
        self.lines(np.stack([x + right[:, 0], y + down[:, 0], x + right[:, 1], y + down[:, 1]], axis=1), colour,
                   max(0.5, size / 12))

    def data(self) -> bytes:
        shape = self.height, _FINE, self.width, _FINE, 3
        small = (self._points.reshape(shape).mean(axis=(1, 3)) + 0.5).astype(np.uint8)
        rows = np.concatenate([np.zeros((self.height, 1), np.uint8), small.reshape(self.height, -1)], axis=1)
        size = struct.pack(">IIBBBBB", self.width, self.height, 8, 2, 0, 0, 0)
        parts = ((b"IHDR", size), (b"IDAT", zlib.compress(rows.tobytes(), 6)), (b"IEND", b""))
        return b"\x89PNG\r\n\x1a\n" + b"".join(
            struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
            for name, data in parts)


def nice_step(length: float, most: int) -> float:
    """The least of 1, 2, 5, 10, 20, … (or 0.5, 0.2, …) that cuts ``length`` into at most ``most`` parts."""
    power = 10.0 ** np.floor(np.log10(length / most))
    return float(next(power * n for n in (1, 2, 5, 10) if length / (power * n) <= most))
