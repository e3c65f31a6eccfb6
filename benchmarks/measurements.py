"""Measurements of papers' experiments: a table that a script writes, with pages and charts that are drawn of it.

The table has a line per measurement: part, database, residues of the query, what, place, seconds (or another number),
note; apart by tabs.
"""

import argparse
import os
import sys
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO


@dataclass(frozen=True)
class Row:
    """A measurement."""

    part: str
    database: str
    query: int
    what: str
    place: str
    seconds: float
    note: str = ""

    def line(self) -> str:
        return "\t".join([self.part, self.database, str(self.query), self.what, self.place, f"{self.seconds:.7f}",
                          self.note])

    @classmethod
    def of(cls, line: str) -> "Row":
        part, database, query, what, place, seconds, note = line.rstrip("\n").split("\t")
        return cls(part, database, int(query), what, place, float(seconds), note)


def written(table: TextIO, name: str, parts: Mapping[str, Callable[[], Iterable[Row]]]) -> int:
    """Write rows of a database as they are measured; how many parts failed, which is told."""
    failed = 0
    for part, measure in parts.items():
        try:
            for row in measure():
                print(row.line(), file=table, flush=True)
                print(f"{row.part:<11}{row.query:>6} {row.what:<30} {row.place:<32} {row.seconds:10.5f}  "
                      f"{row.note}".rstrip(), flush=True)
        except Exception:
            failed += 1
            print(f"part {part} of {name} failed:\n{traceback.format_exc()}", file=sys.stderr, flush=True)
    return failed


DrawPart = Callable[[Path, str, str, str, list[Row]], str | None]
"""Draws a part's charts in a folder, given the beginning of their names, the part, the database and the rows; gives
what else the page is to say."""


def drawn(arguments: argparse.Namespace, program: str, draw_part: DrawPart) -> int:
    """Charts of tables, and a page of the same numbers."""
    rows = [Row.of(line) for table in arguments.tables for line in table.read_text(encoding="utf-8").splitlines()]
    arguments.folder.mkdir(parents=True, exist_ok=True)
    tables = []
    for database in dict.fromkeys(row.database for row in rows):
        mine = [row for row in rows if row.database == database]
        for part in dict.fromkeys(row.part for row in mine):
            chosen = [row for row in mine if row.part == part]
            tables.append(f"## {database}: {part}\n\n{markdown(chosen)}")
            if more := draw_part(arguments.folder, f"{program}_{database}_{part}", part, database, chosen):
                tables.append(more)
    (arguments.folder / f"{program}.md").write_text("\n".join(tables), encoding="utf-8")
    return 0


def markdown(rows: Sequence[Row]) -> str:
    """The rows as a table for people: a line for each query and thing, a column for each place."""
    places = list(dict.fromkeys(row.place for row in rows))
    if set(places) <= {str(row.query) for row in rows}:
        places = ["seconds"]
    found: dict[tuple[int, str], dict[str, str]] = {}
    notes: dict[tuple[int, str], str] = {}
    for row in rows:
        place = row.place if row.place in places else places[0]
        found.setdefault((row.query, row.what), {})[place] = f"{number(row.seconds)}{different(row)}"
        notes[row.query, row.what] = row.note
    text = [f"| query | | {' | '.join(places)} | |", "| --- " * (len(places) + 3) + "|"]
    text += [f"| {query} | {what} | {' | '.join(cells.get(place, '') for place in places)} | {notes[query, what]} |"
             for (query, what), cells in found.items()]
    return "\n".join(text) + "\n"


def number(value: float) -> str:
    return f"{value:,.1f}" if value >= 100 else f"{value:.5f}"


def different(row: Row) -> str:
    """What says beside a number that other rows were found so."""
    return " DIFFERENT" if "DIFFERENT" in row.note else ""


def all_threads() -> list[int]:
    """1, 2, 4 … and as many as there are processors."""
    processors = os.cpu_count() or 1
    return [*(1 << n for n in range(10) if 1 << n < processors), processors]


def commands(text: str | None, measure: Callable[[argparse.Namespace], int],
             draw: Callable[[argparse.Namespace], int]) -> tuple[argparse.ArgumentParser, argparse.ArgumentParser]:
    """A parser with the commands ``measure TABLE`` and ``draw TABLE … FOLDER``, and that of the first, to add to."""
    parser = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    there = parser.add_subparsers(required=True)
    drawing, measuring = there.add_parser("draw"), there.add_parser("measure")
    drawing.set_defaults(run=draw)
    drawing.add_argument("tables", type=Path, nargs="+")
    drawing.add_argument("folder", type=Path)
    measuring.set_defaults(run=measure)
    measuring.add_argument("table", type=Path)
    measuring.add_argument("fasta", nargs="*")
    return parser, measuring


def carry_out(parser: argparse.ArgumentParser) -> None:
    """Do as the command line says, and exit: 1 if a part failed."""
    arguments = parser.parse_args()
    sys.exit(min(1, arguments.run(arguments)))
