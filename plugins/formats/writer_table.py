"""Hits as a table for people at a terminal: as wide as that, the best of every query first."""

from collections.abc import Iterator, Sequence
from typing import IO

from seqloom.core.classes import dataclass

from ...core.errors import OptionError
from ...core.options import build_options, option
from ...core.ports import QueryReport, Report
from ...core.stages import Writer
from ...core.terminal import printable
from .figures import Scale
from .page.queries import Column, Hit, QueryView, kind_of

NARROWEST, NAMES = 10, 32
"""Characters of a name or title, at least, and of a name at most."""
GAP = 2
LEAVES = ("organism", "title", "coverage", "alignments", "identity", "rank")
"""Columns in the order in which they go where there is too little room."""
BOLD, DIM, GREEN, PLAIN = "\x1b[1m", "\x1b[2m", "\x1b[32m", "\x1b[0m"
SHADES = (DIM, "", "", GREEN, BOLD + GREEN)
"""How scores of a class look."""


@dataclass(frozen=True)
class Layout:
    """The words behind the format's name."""

    width: int = option(100, "characters of a line", minimum=20)
    colour: bool = option(False, "colour, as terminals understand it; control characters in names are then escaped")


class Table(Writer):
    """A table of hits for people: width=100 characters, and colour=yes for terminals."""

    name = "table"

    def write(self, report: Report, stream: IO[str], fields: Sequence[str]) -> None:
        layout = build_options(Layout, dict(map(_assignment, fields)), "format table")
        kind = kind_of(report.run)
        for number, query in enumerate(report.queries()):
            stream.write("\n" if number else "")
            scale = Scale.of(query.hits.bit_score, query.hits.score)
            view = QueryView(query, "", kind, len(query.hits), scale)
            stream.writelines(f"{line}\n" for line in _lines(query, view, layout))


def _assignment(word: str) -> tuple[str, str]:
    name, equals, value = word.partition("=")
    if not equals:
        raise OptionError(f"format table takes width=N and colour=yes, not '{word}'")
    return name, value


def _lines(query: QueryReport, view: QueryView, layout: Layout) -> Iterator[str]:
    """A heading, and a line for each hit."""
    count = f"{view.total:,} hit{'' if view.total == 1 else 's'}" if view.total else "no hits"
    of = f"length {view.length:,}, {count}"
    name = _middle(printable(view.name), layout.width - len(of) - 2)
    title = _cut(printable(view.title), layout.width - len(of) - len(name) - 3)
    shown = f"{name} {title}".rstrip() if len(title) > 3 else name
    yield f"{_styled(shown, BOLD, layout)}  {of}"
    if not view.total:
        return
    cells = [[printable(getattr(hit, column.key)) for column in view.columns] for hit in view.hits]
    columns, widths = _fitted(view.columns, cells, layout.width)
    heads = [_padded(column.heading, width, column) for _, column, width in _each(columns, widths, view.columns)]
    yield _styled((" " * GAP).join(heads).rstrip(), DIM, layout)
    shades = view.scale.classes(query.hits.bit_score, query.hits.score).tolist()
    for row, hit, shade in zip(cells, view.hits, shades):
        yield (" " * GAP).join(
            _styled(_padded(row[place], width, column), _style(column, hit, shade), layout)
            for place, column, width in _each(columns, widths, view.columns)).rstrip()


def _each(chosen: Sequence[Column], widths: Sequence[int], every: Sequence[Column]
          ) -> Iterator[tuple[int, Column, int]]:
    """Place among all columns, column and width of those that are shown."""
    places = {column.key: place for place, column in enumerate(every)}
    for column, width in zip(chosen, widths):
        yield places[column.key], column, width


def _fitted(columns: Sequence[Column], cells: Sequence[Sequence[str]], room: int) -> tuple[list[Column], list[int]]:
    """The columns for which there is room, and how wide they are."""
    wide = {column.key: max(len(column.heading), *(len(row[place]) for row in cells))
            for place, column in enumerate(columns)}
    least = {column.key: wide[column.key] if column.numeric else min(wide[column.key], NARROWEST)
             for column in columns}
    chosen = list(columns)

    def needed(sizes: dict[str, int]) -> int:
        return sum(sizes[column.key] for column in chosen) + GAP * (len(chosen) - 1)

    for key in LEAVES:
        if needed(least) > room:
            chosen = [column for column in chosen if column.key != key]
    for key, most in (("target", NAMES), ("organism", NAMES), ("title", room)):
        if any(column.key == key for column in chosen):
            least[key] = max(least[key], min(wide[key], most, least[key] + room - needed(least)))
    return chosen, [least[column.key] for column in chosen]


def _padded(text: str, width: int, column: Column) -> str:
    if column.numeric:
        return text.rjust(width)
    return (_middle(text, width) if column.key == "target" else _cut(text, width)).ljust(width)


def _middle(text: str, width: int) -> str:
    """A name without its middle, since names often differ at their ends."""
    width = max(width, 3)
    if len(text) <= width:
        return text
    front = (width - 1) // 2
    return f"{text[:front]}…{text[len(text) - (width - 1 - front):]}"


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: max(0, width - 1)]}…"


def _style(column: Column, hit: Hit, shade: int) -> str:
    if column.key in ("bits", "score", "evalue"):
        return SHADES[shade]
    return DIM if column.key in ("rank", "title", "organism") else ""


def _styled(text: str, style: str, layout: Layout) -> str:
    return f"{style}{text}{PLAIN}" if layout.colour and style else text
