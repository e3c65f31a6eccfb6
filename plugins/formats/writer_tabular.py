"""Tabular output as BLAST+ writes it: formats 6 (tabs), 7 (with comment lines) and 10 (commas)."""

from collections.abc import Sequence
from itertools import chain
from typing import IO

from ...core.errors import OptionError
from ...core.ports import QueryReport, Report
from ...core.stages import Writer
from .fields import FIELDS, Field, Lines, alphabet_of, fields_of


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
        kind = alphabet_of(report.run)
        chosen: list[Field] | None = None
        queries = 0
        for query in report.queries(residues):
            chosen = chosen or fields_of(names, query.hits)
            lines = Lines(query, kind)
            if self.comments:
                stream.write(_comment(report, query, chosen, len(lines)))
            if len(lines):
                _write_lines(lines, chosen, delimiter, stream)
            queries += 1
        if self.comments:
            stream.write(f"# {_program(report)[0]} processed {queries} queries\n")


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


def _program(report: Report) -> tuple[str, str]:
    version = report.run.get("version") or ""
    return "seqloom", f"seqloom {version} {report.run.get('pipeline', '')}".replace("  ", " ").strip()


def database_names(report: Report) -> str:
    """Titles of the databases of a run, or their paths."""
    return " ".join(d.get("title") or d.get("path") or "?" for d in report.run.get("databases", ()))


def _comment(report: Report, query: QueryReport, fields: Sequence[Field], count: int) -> str:
    title = f"{query.name} {query.description}".strip()
    text = f"# {_program(report)[1]}\n# Query: {title}\n# Database: {database_names(report)}\n"
    if count:
        text += f"# Fields: {', '.join(f.title for f in fields)}\n"
    return text + f"# {count} hits found\n"


def _write_lines(lines: Lines, fields: Sequence[Field], delimiter: str, stream: IO[str]) -> None:
    columns = [field.texts(lines) for field in fields]
    texts = map(delimiter.join, zip(*columns))
    stream.write("\n".join(chain(texts, ("",))))
