"""Puts a page together: templates, style, script, and how many alignments there is room for.

Jinja2 fills the templates: it is small, kept up by the makers of Flask, and escapes all text by itself. Figures are SVG
that is part of the page, so that bars can be linked, read aloud and printed; a plotting library of the browser would be
larger than ten thousand hits.
"""

import base64
import hashlib
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from ....core.ports import Report
from ....core.terminal import printable
from ..figures import SHADES
from .alignments import COLUMNS, Alignment, packed, plain_data, text_of
from .comparison import LISTED, ComparisonView
from .figures import arch_lines, bars_of, dot_figure
from .queries import QueryView, by_rank
from .runs import NAMED, RunView

PLAIN, FIRST = 1_500_000, 150_000
"""Characters of alignments up to which all stand on a page as text, and those of the first ones where there are more;
the others are packed."""
TABLES = 0.62
"""Share of a page that its tables of hits and overviews may take."""


def page(reports: Sequence[Report], size: int, site: str = "") -> str:
    """The page of one run or several.

    Args:
        size: bytes that it may have, about; it says how many hits and alignments are left out for want of room.
        site: where a server has its runs, to the rest of which the page leads; "" for a page that stands alone.
    """
    templates = environment()
    runs = [RunView(report, number, int(size * TABLES) // len(reports), several=len(reports) > 1)
            for number, report in enumerate(reports, 1)]
    parts = {"style": _read("page.css"), "script": _read("page.js")}
    compared = ComparisonView(runs[0], runs[1]) if len(runs) == 2 else None
    context = {
        "runs": runs, "comparison": compared, "policy": _policy(**parts), "shades": SHADES, "compared": LISTED,
        "named": NAMED, "site": site, **parts}
    sections = {view.id: _section(templates, run, view) for run in runs for view in run.views}
    frame = templates.get_template("page.html").render(**context, bodies={}, alignments={})
    room = size - len(frame.encode()) - sum(len(section.encode()) for section in sections.values())
    alignments = _alignments(templates, runs, max(0, room))
    return templates.get_template("page.html").render(**context, bodies=sections, alignments=alignments) + "\n"


def fragment(report: Report, shown: int) -> str:
    """A part of a page, for notebooks: the overview and the best hits of the first query that has some."""
    run = RunView(report, 1, 0, shown)
    view = run.views[0] if run.views else None
    return environment().get_template("fragment.html").render(
        run=run, view=view, shown=view.hits[:shown] if view else (), shades=SHADES)


@cache
def environment() -> Environment:
    """The templates, with all text that they are given escaped and its control characters shown."""
    made = Environment(loader=FunctionLoader(_read), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
                       lstrip_blocks=True, finalize=_shown)
    made.globals |= {"bars_of": bars_of, "arch_lines": arch_lines, "dot_figure": dot_figure, "text_of": text_of,
                     "listed_columns": COLUMNS}
    return made


def _shown(value: Any) -> Any:
    """Text as it may stand on a page: control characters can be seen, absent values are nothing."""
    return "" if value is None else printable(value) if type(value) is str else value


@cache
def _read(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _policy(style: str, script: str) -> str:
    """What the page may do: nothing but use its own style and script, whose digests these are."""
    def digest(text: str) -> str:
        return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"

    return (f"default-src 'none'; style-src {digest(style)}; script-src {digest(script)}; img-src data:; "
            "base-uri 'none'; form-action 'none'")


def _section(templates: Environment, run: RunView, view: QueryView) -> str:
    """A query's overview and table."""
    return Markup(templates.get_template("query.html").render(run=run, view=view, shades=SHADES))


class Alignments:
    """Alignments of one query: those of its first hits as text, others packed.

    Attributes:
        articles: HTML of hits; packed: of the others, "" without any; missing: hits that have neither.
    """

    def __init__(self) -> None:
        self.articles: list[str] = []
        self.kept: list[list[Any]] = []
        self.packed = ""
        self.missing = 0


def _alignments(templates: Environment, runs: Sequence[RunView], room: int) -> dict[str, Alignments]:
    """Alignments of all queries by the name of their place, as far as there is room: of the best hits first."""
    article = templates.get_template("article.html")
    found = {view.id: Alignments() for run in runs for view in run.views}
    labels = {view.id: f"{view.name}{run.of}" for run in runs for view in run.views}
    made = list(_made(runs))
    texts: list[str] = []
    taken = 0
    for view, rank, alignments in made:
        texts.append(article.render(hit=view.hits[rank], found=alignments, left=view.left_out(rank),
                                    label=labels[view.id]))
        taken += len(texts[-1].encode())
        if taken > min(PLAIN, room):
            break
    plain = len(made)
    if taken > min(PLAIN, room):
        sizes = np.cumsum([len(text.encode()) for text in texts])
        plain = int(np.searchsorted(sizes, min(FIRST, room // 4), "right"))
        room -= int(sizes[plain - 1]) if plain else 0
    pairs = {view.id: run.similar_pairs for run in runs for view in run.views}
    for number, (view, rank, alignments) in enumerate(made):
        if number < plain:
            found[view.id].articles.append(texts[number])
        else:
            found[view.id].kept.append(_kept(view, rank, alignments, pairs[view.id]))
    if plain < len(made):
        _pack(found, room)
    return found


def _made(runs: Sequence[RunView]) -> Iterator[tuple[QueryView, int, list[Alignment]]]:
    """Alignments of the best hits of all queries, then of the second ones, …"""
    of_view = {view.id: run for run in runs for view in run.views}
    masks: dict[str, Any] = {}
    for view, rank in by_rank([view for run in runs for view in run.views]):
        run = of_view[view.id]
        if view.id not in masks:
            masks[view.id] = run.report.masked(view.number)
        yield view, rank, view.alignments(rank, run.similar, masks[view.id])


def _kept(view: QueryView, rank: int, made: Sequence[Alignment], similar: str) -> list[Any]:
    """What the script makes a hit's alignments of."""
    hit = view.hits[rank]
    return [hit.id, hit.rank, printable(hit.heading), hit.length,
            [plain_data(one, len(made) > 1, similar) for one in made], view.left_out(rank)]


def _pack(found: dict[str, Alignments], room: int) -> None:
    """Pack what is kept for the script, without the last hits of every query if there is too little room."""
    share = 1.0
    while True:
        whole = 0
        for own in found.values():
            chosen = own.kept[: int(len(own.kept) * share)]
            own.packed = packed(chosen) if chosen else ""
            own.missing = len(own.kept) - len(chosen)
            whole += len(own.packed)
        if whole <= room or not whole:
            return
        share *= min(0.9, 0.97 * room / whole)
