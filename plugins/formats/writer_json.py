"""JSON as BLAST+ writes it: all queries in one file (format 15), or a file for each of them (format 13)."""

import json
from collections.abc import Iterator, Sequence
from typing import IO, Any

from ...core.ports import Report
from ...core.stages import Writer
from .blast_report import BlastReport, FilesOfQueries, Node, SearchReport, number_text


class Json(Writer):
    """BLAST's JSON: every query with parameters, statistics, hits and alignments."""

    name = "15"

    def write(self, report: Report, stream: IO[str], fields: Sequence[str]) -> None:
        blast = BlastReport(report, fields)
        between = '{\n"BlastOutput2": [\n'
        for search in blast.searches():
            stream.write(between)
            stream.writelines(json_text(blast.output(search), 1, "{\n"))
            between = "\n,\n"
        stream.write("\n]\n}\n")


class JsonFiles(FilesOfQueries):
    """BLAST's JSON, a file for each query: NAME_1.json, NAME_2.json, … for -o NAME, which lists them."""

    name = "13"
    ending = ".json"

    def text(self, blast: BlastReport, search: SearchReport) -> Iterator[str]:
        yield '{\n  "BlastOutput2": '
        yield from json_text(blast.output(search), 1)
        yield "\n}\n"

    def index(self, files: Sequence[str]) -> Iterator[str]:
        yield '{\n\t"BlastJSON": [\n'
        yield ",\n".join(f'\t\t{{"File": {json.dumps(file, ensure_ascii=False)} }}' for file in files)
        yield "\n\t]\n}"


def json_text(value: Any, depth: int, begin: str = "") -> Iterator[str]:
    """A value piece by piece; ``depth`` is that of the line on which it ends."""
    inner, outer = "\n" + "  " * (depth + 1), "\n" + "  " * depth
    if isinstance(value, str):
        yield json.dumps(value, ensure_ascii=False)
    elif isinstance(value, int | float):
        yield number_text(value)
    elif isinstance(value, Node):
        separator = begin.rstrip("\n") or "{"
        for name, member in value.members:
            if member is not None:
                yield f'{separator}{inner}"{name}": '
                yield from json_text(member, depth + 1)
                separator = ","
        yield outer + "}"
    else:
        separator = "["
        for item in value:
            yield separator + inner
            yield from json_text(item, depth + 1)
            separator = ","
        yield ("[" if separator == "[" else "") + outer + "]"
