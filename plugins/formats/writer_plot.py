"""Figures as output formats; what is in them stands in ``plots``."""

from collections.abc import Sequence
from typing import IO

from ...core.errors import OptionError
from ...core.ports import Report
from ...core.stages import Writer


class Plot(Writer):
    """A figure: its kind, svg, png or pdf, and query=NAME, as "plot overview svg"."""

    name = "plot"
    binary = True

    def write(self, report: Report, stream: IO[str], fields: Sequence[str]) -> None:
        kind, format, *more = [*fields, *("overview", "svg")[len(fields):]]
        query = ""
        for word in more:
            name, equals, query = word.partition("=")
            if name != "query" or not equals:
                raise OptionError(f"output format 'plot' takes a kind, a format and query=NAME, not '{word}'")
        _put(report, stream, kind, format, query)


class Dotplot(Writer):
    """A dot plot as SVG: targets from left to right, queries from below to above, strands in two colours."""

    name = "dotplot"
    beside = ("exact-match", "exact-match-protein")
    format = "svg"

    def write(self, report: Report, stream: IO[str], fields: Sequence[str]) -> None:
        if fields:
            raise OptionError(f"output format '{self.name}' takes no fields, such as '{fields[0]}'")
        _put(report, stream, "dotplot", self.format)


class DotplotPng(Dotplot):
    """A dot plot as PNG, drawn like ``dotplot``."""

    name = "dotplot-png"
    binary = True
    format = "png"


def _put(report: Report, stream: IO[str], kind: str, format: str, query: str = "") -> None:
    """Write a figure; SVG is text, the others are bytes."""
    from .plots import picture

    data = picture(report, kind, format, query)
    if format == "svg":
        stream.write(data.decode())
        return
    file = getattr(stream, "buffer", None)
    if file is None:
        raise TypeError("a picture is made of bytes: the stream must have a 'buffer', as files and standard output do")
    stream.flush()
    file.write(data)
