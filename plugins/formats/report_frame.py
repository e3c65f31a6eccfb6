"""What stands around the queries in BLAST's format 0: program, what to cite, databases, and statistics at the ends."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from ...core.ports import Citation, KarlinParameters, QueryStatistics, Report
from .writer_tabular import program_line

WIDTH = 68
"""Characters of a line, at most or, of titles of databases, about."""
_BREAKS = {",": 2, "-": 1}
"""Where a line may end if not at a blank, better places higher."""
_PUBMED = "https://www.ncbi.nlm.nih.gov/entrez/query.fcgi?db=PubMed&cmd=Retrieve&list_uids={}&dopt=Citation"
_PAGE = """<HTML>
<HEAD><TITLE>BLAST Search Results</TITLE></HEAD>
<BODY BGCOLOR="#FFFFFF" LINK="#0000FF" VLINK="#660099" ALINK="#660099">
<PRE>

"""
_PAGE_END = "</PRE>\n</BODY>\n</HTML>\n"
_TITLES = {"lambda_": "Lambda", "k": "      K", "h": "        H", "a": "        a", "alpha": "         alpha",
           "sigma": "    sigma"}
"""Of a line of parameters."""


def head(report: Report, html: bool) -> str:
    """All that stands before the first query."""
    line = program_line(report)
    text = f"{_PAGE}<b>{line}</b>\n" if html else f"{line}\n"
    if report.method:
        text += "".join(f"\n\n{_citation(citation, html)}\n" for citation in report.method.citations)
        text += "\n"
    databases = report.run.get("databases", ())
    titles = "; ".join(_title(base, date) for base, date in zip(databases, _dates(report)))
    sequences, residues = (sum(base.get(name) or 0 for base in databases) for name in ("sequences", "letters"))
    return (f"{text}\n\nDatabase: {broken(titles, WIDTH)}\n           {sequences:,} sequences; {residues:,} total "
            f"{'letters' if report.method else 'residues'}\n\n\n\n")


def statistics(found: QueryStatistics | None) -> str:
    """What ends a query: nothing but an empty search space where nothing can be found with it."""
    if found is None:
        return "\n\n\nEffective search space used: 0\n"
    text = f"\n{_parameters(found.ungapped)}\n" + (f"Gapped\n{_parameters(found.gapped)}" if found.gapped else "")
    return f"{text}\nEffective search space used: {found.search_space}\n"


def foot(report: Report, html: bool) -> str:
    """All that stands behind the last query."""
    if report.method is None:
        return _PAGE_END if html else ""
    text = "\n\n"
    for base, date in zip(report.run.get("databases", ()), _dates(report)):
        posted = posted_date(date) if date else "Unknown"
        text += (f"  Database: {broken(_title(base, date), WIDTH)}\n    Posted date:  {posted}\n"
                 f"  Number of letters in database: {base.get('letters') or 0:,}\n"
                 f"  Number of sequences in database:  {base.get('sequences') or 0:,}\n\n")
    text += "\n\n" + "".join(f"{name}: {value}\n" for name, value in report.method.settings.items())
    return text + (_PAGE_END if html else "")


def posted_date(date: datetime) -> str:
    """As makeblastdb writes a moment: "Nov 4, 2026  1:05 AM", days and hours without a zero before them."""
    local = date.replace(tzinfo=UTC).astimezone()
    return f"{local:%b} {local.day}, {local.year}  {local.hour % 12 or 12}:{local:%M %p}"


def wrapped(text: str) -> str:
    """Lines of at most 68 characters, broken as BLAST does: best at a blank, then behind a comma, then a hyphen."""
    lines = []
    while len(text) > WIDTH:
        best, at = 0, WIDTH
        for place, character in enumerate(text[: WIDTH + 1]):
            score = 3 if character.isspace() else _BREAKS.get(character, 0) if place < WIDTH else 0
            end = place + (character in _BREAKS and score > 0)
            if score >= best and end > 0:
                best, at = score, end
        lines.append(text[:at])
        text = text[at:].lstrip(" ") if best == 3 else text[at:]
    return "\n".join([*lines, text] if text else lines)


def broken(text: str, width: int) -> str:
    """Broken as BLAST breaks titles: behind the first blank at or after every so many characters of the whole."""
    if len(text) <= width:
        return text
    lines, due = "", False
    for place, character in enumerate(text):
        due = due or (place > 0 and place % width == 0)
        lines += character
        if due and character.isspace():
            lines, due = lines + "\n", False
    return lines


def _citation(citation: Citation, html: bool) -> str:
    title = f"Reference for {citation.of}" if citation.of else "Reference"
    if not html:
        return wrapped(f"{title}: {citation.text.replace('&auml;', 'a')}")
    link = wrapped(f'<b><a href="{_PUBMED.format(citation.pubmed)}">{title}</a>:</b>')
    return f"{link}\n{wrapped(citation.text)}"


def _parameters(values: KarlinParameters) -> str:
    """Titles, and numbers with three digits below them."""
    known = {title: value for name, title in _TITLES.items() if (value := getattr(values, name)) is not None}
    return f"{''.join(known)}\n{''.join(f'{value:#8.3g} ' for value in known.values())}\n"


def _dates(report: Report) -> list[datetime | None]:
    databases = report.run.get("databases", ())
    return report.run.get("posted") or [None] * len(databases)


def _title(base: Mapping[str, Any], date: datetime | None) -> str:
    """Of a database; what was read from a file for this search is called as BLAST calls it."""
    title = base.get("title") or base.get("path") or "?"
    return title if date else f"User specified sequence set (Input: {title})."
