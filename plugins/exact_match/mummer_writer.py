"""MUMmer's own output: a header per query and strand, then one line per match."""

from collections.abc import Iterable, Sequence
from functools import cmp_to_key
from itertools import chain
from typing import IO, Any, ClassVar

import numpy as np
from seqloom.core.errors import OptionError, UnknownNameError
from seqloom.core.ports import QueryReport, Report
from seqloom.core.records import Alignments
from seqloom.core.stages import Writer

from .decimals import fits, right_aligned
from .suffix_order import SuffixOrder
from .symbols import complement_table

_FLAGS = "cFLs"
_DIGITS = 8
"""Width of a column of numbers; longer ones make it wider."""


class MummerWriter(Writer):
    """The lines of mummer 3, byte for byte; words after the name are its flags c, F, L and s.

    ``c``: positions of reverse matches count on the query as given; ``F``: the reference's name on every line even if
    there is one only; ``L``: lengths of queries in the headers; ``s``: the matched residues after each line.

    Lines stand in MUMmer's order, which is that of the reference suffixes for equal starts among all maximal matches.

    Source: the MUMmer 3 manual, mummer.
    """

    name: ClassVar[str] = "mummer"
    families: ClassVar[tuple[str, ...]] = ("exact-match", "exact-match-protein", "exact-query", "exact-query-protein")

    def write(self, report: Report, stream: IO[str], fields: Sequence[str]) -> None:
        flags = {field.lstrip("-") for field in fields}
        for flag in sorted(flags):
            if len(flag) != 1 or flag not in _FLAGS:
                raise UnknownNameError("flag", flag, list(_FLAGS), "of output format 'mummer'")
        options = report.run["options"]
        frames = (1, -1) if options.get("both") else (-1,) if options.get("reverse") else (1,)
        if "c" in flags and -1 not in frames:
            raise OptionError("flag c of output format 'mummer' needs matches of the reverse strand: give -b or -r")
        named = "F" in flags or int(report.run["sequences"]) > 1
        width = _name_width(report) if named else None
        mode = "mum" if options.get("mum") else "maxmatch" if options.get("maxmatch") else "mumreference"
        suffixes = SuffixOrder(report, bool(options.get("acgt_only")))
        for query in report.queries(residues=mode == "maxmatch" or "s" in flags):
            for frame in frames:
                title = f"> {query.name}" + (" Reverse" if frame < 0 else "")
                stream.write(title + (f"  Len = {query.length}\n" if "L" in flags else "\n"))
                _write_block(stream, query, frame, mode, suffixes, flags, width)


def _name_width(report: Report) -> int:
    """Length of the longest reference name; of those with matches where the run doesn't say."""
    known = report.run.get("longest_name")
    if known is not None:
        return int(known)
    return max((len(name) for query in report.queries() for name in query.targets.names), default=0)


def _write_block(stream: IO[str], query: QueryReport, frame: int, mode: str, suffixes: SuffixOrder,
                 flags: set[str], width: int | None) -> None:
    """Lines of one query and strand."""
    matches = query.hits.alignments
    matches = matches.take(matches.query_frame == frame)
    starts = matches.query_start.astype(np.int64) if frame > 0 else query.length - matches.query_end.astype(np.int64)
    order = _line_order(query, matches, starts, mode, suffixes)
    positions = matches.query_end if frame < 0 and "c" in flags else starts + 1
    numbers = [matches.target_start[order] + 1, positions[order], matches.length[order]]
    if width is None and "s" not in flags and all(fits(column, _DIGITS) for column in numbers):
        stream.write(_lines_of_numbers(numbers))
        return
    columns: list[Iterable[Any]] = [column.tolist() for column in numbers]
    line = f"%{_DIGITS}d  %{_DIGITS}d  %{_DIGITS}d\n"
    if width is not None:
        names = dict(zip(query.targets.numbers.tolist(), query.targets.names, strict=True))
        columns.insert(0, [names[target] for target in matches.target[order].tolist()])
        line = f"  %-{width}s  {line}"
    if "s" in flags:
        residues = _strand_text(query, frame)
        columns.append([residues[start : start + length]
                        for start, length in zip(starts[order].tolist(), columns[-1], strict=True)])
        line += "%s\n"
    # All lines by one operation: a genome's matches are many, and one by one they would take most of the time.
    stream.write(line * len(order) % tuple(chain.from_iterable(zip(*columns, strict=True))))


def _lines_of_numbers(columns: Sequence[np.ndarray]) -> str:
    """Lines of columns whose numbers fit, all at once."""
    blanks = np.full((len(columns[0]), 2), ord(" "), np.uint8)
    ends = np.full((len(columns[0]), 1), ord("\n"), np.uint8)
    first, *others = (right_aligned(column, _DIGITS) for column in columns)
    return np.hstack([first, *chain.from_iterable((blanks, other) for other in others), ends]).tobytes().decode("ascii")


def _line_order(query: QueryReport, matches: Alignments, starts: np.ndarray, mode: str,
                suffixes: SuffixOrder) -> np.ndarray:
    """Rows of ``matches`` in the order of their lines; ``starts`` are on the strand searched."""
    if mode == "mum":
        return np.lexsort([matches.target_start, matches.target])
    order = np.argsort(starts, kind="stable")
    if mode == "mumreference":
        return order
    targets = query.sequences
    assert targets is not None
    places = list(zip(matches.target.tolist(), matches.target_start.tolist(), strict=True))

    def compare(one: int, other: int) -> int:
        return suffixes.compare(targets, places[one], places[other])

    for run in np.split(np.arange(len(order)), np.flatnonzero(np.diff(starts[order])) + 1):
        if len(run) > 1:
            order[run] = sorted(order[run].tolist(), key=cmp_to_key(compare))
    return order


def _strand_text(query: QueryReport, frame: int) -> str:
    """Lower-case letters of the strand that was searched."""
    assert query.residues is not None and query.sequences is not None
    alphabet = query.sequences.alphabet
    residues = query.residues if frame > 0 else complement_table(alphabet)[query.residues][::-1]
    return alphabet.decode(residues).lower()
