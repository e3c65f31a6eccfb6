"""Tabular output as BLAST+ writes it: formats 6 (tabs), 7 (with comment lines) and 10 (commas)."""

from collections.abc import Iterator, Sequence
from typing import IO

import numpy as np

from ...core.engine.threads import in_turn
from ...core.errors import OptionError
from ...core.ports import QueryBlock, Report
from ...core.stages import Writer
from .fields import FIELDS, SHOWING, Field, fields_of
from .labels import of_queries
from .lines import Lines, alphabet_of, by_letters, parts_of


class Tabular(Writer):
    """Tab-separated lines, one per alignment; fields as in BLAST: "6 std stitle", "6 qseqid sseqid"."""

    name = "6"
    delimiter = "\t"
    comments = False

    def write(self, report: Report, stream: IO[str], fields: Sequence[str]) -> None:
        delimiter = self.delimiter
        if fields and fields[0].startswith("delim="):
            delimiter, fields = _delimiter(fields[0]), fields[1:]
        names = list(fields) or ["std"]
        residues = any(FIELDS[n].residues for n in names if n in FIELDS)
        kind = alphabet_of(report.run, residues)
        chosen: list[Field] = []
        queries = 0

        # Residues are read when a field asks for them, from the databases, which one thread uses.
        threads = 1 if residues else report.threads

        def parts() -> Iterator[QueryBlock]:
            # Threads that have little to do at a time wait for each other.
            for part in parts_of(report.blocks(residues), threads):
                chosen[:] = chosen or fields_of(names, part.hits)
                yield part

        shown = by_letters(report) and any(name in SHOWING for name in names)

        def made(part: QueryBlock) -> tuple[Lines, np.ndarray, np.ndarray]:
            lines = Lines(part, kind, shown)
            return lines, *_joined(lines, chosen, delimiter)

        for lines, text, ends in in_turn(threads, made, parts(), "lines"):
            if self.comments:
                _write_commented(stream, report, lines, chosen, text, ends)
            else:
                stream.write(_decoded(text))
            queries += len(lines.block)
        if self.comments:
            stream.write(f"# {'BLAST' if report.method else 'seqloom'} processed {queries} queries\n")


class Commented(Tabular):
    """Like 6, with comment lines before every query: the query, the database, the fields, the number of lines."""

    name = "7"
    comments = True


class CommaSeparated(Tabular):
    """Like 6, separated by commas. As in BLAST nothing is quoted; 'seqloom export' writes real CSV with a header."""

    name = "10"
    delimiter = ","


def _delimiter(word: str) -> str:
    value = word.removeprefix("delim=")
    if len(value) != 1:
        raise OptionError(f"'{word}' must give one character as delimiter, such as delim=@")
    return value


def program_line(report: Report) -> str:
    """What made the results, with the program of BLAST whose answers they are: ``BLASTP 2.12.0+ (seqloom 1.0)``."""
    own = f"seqloom {report.run.get('version') or ''}".strip()
    if report.method:
        return f"{report.method.program.upper()} {report.method.release} ({own})"
    return f"{own} {report.run.get('pipeline', '')}".strip()


def database_names(report: Report) -> str:
    """Titles of the databases of a run, or their paths."""
    return " ".join(d.get("title") or d.get("path") or "?" for d in report.run.get("databases", ()))


def _write_commented(stream: IO[str], report: Report, lines: Lines, fields: Sequence[Field], text: np.ndarray,
                     ends: np.ndarray) -> None:
    """The lines of every query behind comment lines of its own."""
    first = done = 0
    above, database = program_line(report), database_names(report)
    for label, last in zip(of_queries(lines.block, lines.alphabet), lines.ends):
        end, count = int(ends[last - 1]) if last else 0, last - first
        known = f"# Fields: {', '.join(f.title for f in fields)}\n" if count else ""
        stream.write(f"# {above}\n# Query: {label.heading}\n# Database: {database}\n{known}# {count} hits found\n"
                     + _decoded(text[done:end]))
        first, done = last, end


def _joined(lines: Lines, fields: Sequence[Field], delimiter: str) -> tuple[np.ndarray, np.ndarray]:
    """UTF-8 text of all lines, and where each ends."""
    if not len(lines):
        return np.empty(0, np.uint8), np.empty(0, np.int64)
    return lines.texts.joined([field.cells(lines) for field in fields], delimiter)


def _decoded(text: np.ndarray) -> str:
    return str(text.data, "utf-8", "surrogatepass")
