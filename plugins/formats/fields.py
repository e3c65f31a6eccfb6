"""Fields of tabular output: BLAST's names and titles, ours, and the columns that plugins add.

A field makes the cells of many lines at once. A line is an alignment, or a hit without alignments, which has no
coordinates.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from ...core.alphabet import PROTEIN, Alphabet, alphabet
from ...core.errors import UnknownNameError
from ...core.ports import QueryReport
from ...core.records import Alignments, Column, Hits, Ragged, Records, path_text
from .aligned import PathCounts, count_path, covered, shown_path
from .cells import (
    ABSENT_CELL,
    Texts,
    bit_score_cells,
    coverage_cells,
    evalue_cells,
    integers,
    percent_cells,
    score_cells,
)
from .numbers import ABSENT

UNKNOWN = "N/A"
"""Printed, as BLAST does, where a database has no such information."""
_POSITION = 255
"""Code of a position of a model, which is shown as a letter of its own."""
_BLANKS = str.maketrans("\t\x01", "  ")
LINES_AT_ONCE = 2500
"""From so many lines on, the lines of further queries are made apart: what they take should stay in the cache."""
LETTERS_AT_ONCE = 1 << 22
"""Letters of queries and targets up to which the lines of several queries are made together."""
STANDARD = ("qaccver", "saccver", "pident", "length", "mismatch", "gapopen", "qstart", "qend", "sstart", "send",
            "evalue", "bitscore")
"""What ``std`` stands for."""


class Columns:
    """Columns of records that stand one behind the other, put together when they are first asked for.

    Args:
        order: i8[n], of the rows.
    """

    def __init__(self, parts: Sequence[Records], order: np.ndarray | None = None) -> None:
        self._parts = [part for part in parts if len(part)] or parts[:1]
        self._order = order
        self._made: dict[str, Any] = {}

    def __len__(self) -> int:
        return sum(map(len, self._parts))

    def __contains__(self, name: str) -> bool:
        return any(name in part.data for part in self._parts)

    def __getitem__(self, name: str) -> Any:
        if name not in self._made:
            column = next(part.schema[name] for part in self._parts if name in part.data)
            arrays: list[Any] = [part.data[name] if name in part.data else column.absent(len(part))
                                 for part in self._parts]
            whole: Any = arrays[0]
            if len(arrays) > 1:
                whole = Ragged.concat(arrays) if column.type == "path" else np.concatenate(arrays)
            if self._order is not None:
                whole = whole.take(self._order) if column.type == "path" else whole[self._order]
            self._made[name] = whole
        return self._made[name]


class Lines:
    """All lines of some queries: alignments in order of report, and hits without alignments in their places.

    Attributes:
        rows: alignments, one per line; located: bool, whether it is one, and not a hit without alignments.
        hits: of all queries, one behind the other.
        hit, target, query: i8, place of each line's among ``hits``, the targets of all reports, and ``reports``.
        texts: what text cells of the lines name.
    """

    def __init__(self, reports: Sequence[QueryReport], kind: Alphabet) -> None:
        self.reports, self.alphabet, self.texts = reports, kind, Texts()
        self.hits = hits = Columns([report.hits for report in reports])
        children: list[Alignments] = [report.hits.alignments for report in reports]
        self._first_hits = _starts([len(report.hits) for report in reports])
        first_targets = _starts([len(report.targets.numbers) for report in reports])
        of_lines, of_hits = [], []
        for report, first_hit, first_target in zip(reports, self._first_hits.tolist(), first_targets.tolist()):
            numbers = report.targets.numbers
            places = np.searchsorted(numbers, report.hits.target)
            hit_of = np.empty(len(numbers), np.int64)
            hit_of[places] = np.arange(first_hit, first_hit + len(places))
            of_lines.append(hit_of[np.searchsorted(numbers, report.hits.alignments.target)])
            of_hits.append(places + first_target)
        self.hit = np.concatenate(of_lines)
        self.located = np.ones(len(self.hit), bool)
        alone = np.ones(len(hits), bool)
        alone[self.hit] = False
        bare = np.flatnonzero(alone)
        order = None
        if len(bare):
            joined = np.concatenate([self.hit, bare])
            order = np.argsort(joined, kind="stable")
            self.located = order < len(self.hit)
            self.hit = joined[order]
            extra = {column.name: column for part in children for column in part.extra}
            children.append(_without_place(hits, bare, list(extra.values())))
        self.rows = Columns(children, order)
        self.target = np.concatenate(of_hits)[self.hit]
        self.query = np.repeat(np.arange(len(reports)), [len(report.hits) for report in reports])[self.hit]

    def __len__(self) -> int:
        return len(self.hit)

    @cached_property
    def ends(self) -> list[int]:
        """Where the lines of each query end."""
        return np.searchsorted(self.query, np.arange(len(self.reports)), "right").tolist()

    @cached_property
    def turned(self) -> np.ndarray:
        """bool: query and target lie on different strands."""
        return self.rows["query_frame"] * self.rows["target_frame"] < 0

    @cached_property
    def counts(self) -> list[PathCounts | None]:
        """Counts from the paths; None for lines without one."""
        return [count_path(path) if len(path) else None for path in self.rows["path"]]

    def count(self, column: str, name: str) -> np.ndarray:
        """A column of counts; what it lacks is counted in the path, −1 where there is none."""
        values = self.rows[column]
        if (values == -1).any():
            values = np.array([getattr(c, name) if v < 0 and c else v for v, c in zip(values.tolist(), self.counts)])
        return values

    @cached_property
    def lengths(self) -> np.ndarray:
        return self.count("length", "length")

    @cached_property
    def identities(self) -> np.ndarray:
        return self.count("identities", "identities")

    @cached_property
    def positives(self) -> np.ndarray:
        values = self.rows["positives"]
        if self.alphabet is PROTEIN:
            return values
        return np.where(values < 0, self.identities, values)

    @cached_property
    def query_lengths(self) -> np.ndarray:
        """i8: length of each line's query."""
        return np.array([report.length for report in self.reports], np.int64)[self.query]

    @cached_property
    def query_residues(self) -> list[np.ndarray] | None:
        """u1 codes of each query; None for models."""
        codes = [report.residues for report in self.reports if report.residues is not None]
        return codes if len(codes) == len(self.reports) else None

    @cached_property
    def _placed(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray] | None:
        """Residues of queries and targets, and the bounds and frames that ``letter_rows`` takes; None without them."""
        sequences, rows = self.reports[0].sequences, self.rows
        if sequences is None:
            return None
        if self.query_residues is None:
            query, start = np.full(int(rows["query_end"].max(initial=0)), _POSITION, np.uint8), np.zeros(1, np.int64)
        else:
            query = np.concatenate(self.query_residues)
            start = _starts([len(codes) for codes in self.query_residues])[self.query]
        base = sequences.offsets[sequences.locate(self.target_numbers)][self.target]
        bounds = np.stack([start + rows["query_start"], start + rows["query_end"],
                           base + rows["target_start"], base + rows["target_end"]], axis=1)
        frames = np.stack([rows["query_frame"], rows["target_frame"]], axis=1)
        return query, sequences.residues, bounds.astype(np.int64), frames.astype(np.int64)

    @cached_property
    def _letters_of_codes(self) -> np.ndarray:
        """u1[2, 256]: letter of each code, and of its complement."""
        letters = self.alphabet.bytes.copy()
        letters[_POSITION] = ord("x")
        return np.stack([letters, letters[self.alphabet.complement] if self.alphabet.complement_letters else letters])

    @cached_property
    def letters(self) -> tuple[Ragged, Ragged] | None:
        """Letters of query and target with gaps, no columns without a path; None without residues."""
        from .aligned_cpu import letter_rows

        return self._placed and letter_rows(*self._placed, self.rows["path"], self._letters_of_codes)

    @property
    def operations(self) -> Ragged | None:
        """BLAST's traceback operations as u1, empty without a path; None without residues."""
        from .aligned_cpu import btops

        if self._placed is None or self.query_residues is None:
            return None
        return btops(*self._placed, self.rows["path"], self._letters_of_codes)

    @cached_property
    def aligned(self) -> list[tuple[bytes, bytes] | None]:
        """Both rows of letters; None without path or residues."""
        if self.letters is None:
            return [None] * len(self)
        upper, lower = self.letters
        above, below, ends = upper.values.tobytes(), lower.values.tobytes(), upper.offsets.tolist()
        return [(above[a:b], below[a:b]) if b > a else None for a, b in pairwise(ends)]

    def covered(self) -> np.ndarray:
        """Letters of the query that the alignments of the line's hit cover together."""
        return covered(self.hit, self.rows["query_start"], self.rows["query_end"])

    @cached_property
    def target_numbers(self) -> np.ndarray:
        return np.concatenate([report.targets.numbers for report in self.reports])

    @cached_property
    def target_names(self) -> list[str]:
        return [name for report in self.reports for name in report.targets.names]

    @cached_property
    def target_lengths(self) -> np.ndarray:
        return np.concatenate([report.targets.lengths for report in self.reports])

    def on_targets(self, values: Sequence[Any]) -> list[Any]:
        return [values[t] for t in self.target.tolist()]

    @cached_property
    def rank(self) -> np.ndarray:
        """Of the line's hit among those of its query, from 1."""
        return self.hit - self._first_hits[self.query] + 1


def lines_of(queries: Iterable[QueryReport], kind: Alphabet) -> Iterator[Lines]:
    """Lines of all queries, of many queries at a time if these have few lines."""
    together: list[QueryReport] = []
    count = letters = 0
    for report in queries:
        size = 0 if report.sequences is None else report.length + int(report.targets.lengths.sum())
        if together and (count >= LINES_AT_ONCE or letters + size > LETTERS_AT_ONCE
                         or report.sequences is not together[0].sequences):
            yield Lines(together, kind)
            together, count, letters = [], 0, 0
        together.append(report)
        count += max(len(report.hits), len(report.hits.alignments))
        letters += size
    if together:
        yield Lines(together, kind)


def _starts(lengths: Sequence[int]) -> np.ndarray:
    """i8: where each of these begins if all stand one behind the other."""
    return np.concatenate([[0], np.cumsum(lengths[:-1], dtype=np.int64)]).astype(np.int64)


def _without_place(hits: Columns, bare: np.ndarray, extra: Sequence[Column]) -> Alignments:
    """Rows for hits without alignments: frames of 0 say that there is no place."""
    data: dict[str, Any] = {c.name: c.absent(len(bare)) for c in (*Alignments.columns, *extra)}
    for name in ("query", "target", "score", "bit_score", "evalue"):
        data[name] = hits[name][bare]
    data["query_frame"] = data["target_frame"] = np.zeros(len(bare), np.int8)
    return Alignments(data, extra)


@dataclass(frozen=True)
class Field:
    """One field: the title in comment lines, whether residues are needed, and i8 cells of all lines."""

    name: str
    title: str
    cells: Callable[[Lines], np.ndarray]
    residues: bool = False


def _always(text: str) -> Callable[[Lines], np.ndarray]:
    return lambda lines: np.repeat(lines.texts.add([text]), len(lines))


def _of_query(text: Callable[[QueryReport, Lines], str]) -> Callable[[Lines], np.ndarray]:
    return lambda lines: lines.texts.add([text(report, lines) for report in lines.reports])[lines.query]


def _where(present: np.ndarray, cells: np.ndarray) -> np.ndarray:
    return np.where(present, cells, ABSENT_CELL)


def _target_title(lines: Lines) -> np.ndarray:
    titles = [_title(name, description) for report in lines.reports
              for name, description in zip(report.targets.names, report.targets.descriptions)]
    return lines.texts.add(titles)[lines.target]


def _query_title(query: QueryReport, lines: Lines) -> str:
    return _title(query.name, query.description)


def _title(name: str, description: str) -> str:
    """Both, with blanks for tabs, and for the bytes that stand between the titles of one sequence."""
    return f"{name} {description}".translate(_BLANKS) if description else name


def _coordinate(forward: str, backward: str, forward_shift: int, backward_shift: int) -> Callable[[Lines], np.ndarray]:
    def cells(lines: Lines) -> np.ndarray:
        ahead, back = lines.rows[forward] + forward_shift, lines.rows[backward] + backward_shift
        values = np.where(lines.turned, back, ahead)
        return _where(lines.located & (values >= 0), integers(values, lines.texts))

    return cells


def _count(column: str, name: str) -> Callable[[Lines], np.ndarray]:
    return lambda lines: _counted(lines, lines.count(column, name))


def _counted(lines: Lines, values: np.ndarray) -> np.ndarray:
    return _where(lines.located & (values >= 0), integers(values, lines.texts))


def _percent(part: str, decimals: int) -> Callable[[Lines], np.ndarray]:
    return lambda lines: percent_cells(getattr(lines, part), lines.lengths, decimals, lines.texts)


def _frames(lines: Lines) -> tuple[np.ndarray, np.ndarray]:
    sign = np.where(lines.rows["query_frame"] < 0, -1, 1)
    return lines.rows["query_frame"] * sign, lines.rows["target_frame"] * sign


def _both_frames(lines: Lines) -> np.ndarray:
    return lines.texts.add([f"{q}/{s}" if p else f"{ABSENT}/{ABSENT}"
                            for q, s, p in zip(*(f.tolist() for f in _frames(lines)), lines.located.tolist())])


def _frame(which: int) -> Callable[[Lines], np.ndarray]:
    return lambda lines: _where(lines.located, integers(_frames(lines)[which], lines.texts))


def _strand(lines: Lines) -> np.ndarray:
    if lines.alphabet is PROTEIN:
        return _always(UNKNOWN)(lines)
    return _where(lines.located, lines.texts.add(["plus", "minus"])[lines.turned.astype(np.int64)])


def _aligned(which: int) -> Callable[[Lines], np.ndarray]:
    def cells(lines: Lines) -> np.ndarray:
        if lines.letters is None or (which == 0 and lines.query_residues is None):
            return _always(ABSENT)(lines)
        return lines.texts.add_rows(lines.letters[which])

    return cells


def _btop(lines: Lines) -> np.ndarray:
    operations = lines.operations
    return _always(ABSENT)(lines) if operations is None else lines.texts.add_rows(operations)


def _whole_query(query: QueryReport, lines: Lines) -> str:
    return ABSENT if query.residues is None else lines.alphabet.decode(query.residues)


def _whole_target(lines: Lines) -> np.ndarray:
    sequences = lines.reports[0].sequences
    if sequences is None:
        return _always(ABSENT)(lines)
    whole = [lines.alphabet.decode(sequences.by_ordinal(n)) for n in lines.target_numbers.tolist()]
    return lines.texts.add(whole)[lines.target]


def _coverage(lines: Lines) -> np.ndarray:
    return _where(lines.located, coverage_cells(lines.covered(), lines.query_lengths))


def _coverage_of_line(lines: Lines) -> np.ndarray:
    spans = lines.rows["query_end"] - lines.rows["query_start"]
    return _where(lines.located, coverage_cells(spans, lines.query_lengths))


def _unique_coverage(lines: Lines) -> np.ndarray:
    return _always(UNKNOWN)(lines) if lines.alphabet is PROTEIN else _coverage(lines)


def _cigar(lines: Lines) -> np.ndarray:
    paths, frames = lines.rows["path"], lines.rows["query_frame"].tolist()
    return lines.texts.add([path_text(shown_path(p, f)) if len(p) else ABSENT for p, f in zip(paths, frames)])


def _place_in_hit(lines: Lines) -> np.ndarray:
    seen: dict[int, int] = {}
    places = []
    for hit in lines.hit.tolist():
        seen[hit] = seen.get(hit, 0) + 1
        places.append(seen[hit])
    return integers(np.array(places, np.int64), lines.texts)


def _query_name(query: QueryReport, lines: Lines) -> str:
    return query.name


def _target_name(lines: Lines) -> np.ndarray:
    return lines.texts.add(lines.target_names)[lines.target]


def _target_length(lines: Lines) -> np.ndarray:
    return integers(lines.target_lengths[lines.target], lines.texts)


def _value(column: str, cells: Callable[[np.ndarray, Texts], np.ndarray]) -> Callable[[Lines], np.ndarray]:
    return lambda lines: cells(lines.rows[column], lines.texts)


FIELDS: dict[str, Field] = {f.name: f for f in (
    Field("qseqid", "query id", _of_query(_query_name)),
    Field("qgi", "query gi", _always("0")),
    Field("qacc", "query acc.", _of_query(lambda query, lines: query.accession or query.name)),
    Field("qaccver", "query acc.ver", _of_query(_query_name)),
    Field("qlen", "query length", lambda lines: integers(lines.query_lengths, lines.texts)),
    Field("sseqid", "subject id", _target_name),
    Field("sallseqid", "subject ids", _target_name),
    Field("sgi", "subject gi", _always("0")),
    Field("sallgi", "subject gis", _always("0")),
    Field("sacc", "subject acc.", _target_name),
    Field("saccver", "subject acc.ver", _target_name),
    Field("sallacc", "subject accs.", _target_name),
    Field("slen", "subject length", _target_length),
    Field("qstart", "q. start", _coordinate("query_start", "query_start", 1, 1)),
    Field("qend", "q. end", _coordinate("query_end", "query_end", 0, 0)),
    Field("sstart", "s. start", _coordinate("target_start", "target_end", 1, 0)),
    Field("send", "s. end", _coordinate("target_end", "target_start", 0, 1)),
    Field("qseq", "query seq", _aligned(0), True),
    Field("sseq", "subject seq", _aligned(1), True),
    Field("evalue", "evalue", _value("evalue", evalue_cells)),
    Field("bitscore", "bit score", _value("bit_score", bit_score_cells)),
    Field("score", "score", _value("score", score_cells)),
    Field("length", "alignment length", _count("length", "length")),
    Field("pident", "% identity", _percent("identities", 3)),
    Field("nident", "identical", _count("identities", "identities")),
    Field("mismatch", "mismatches", _count("mismatches", "mismatches")),
    Field("positive", "positives", lambda lines: _counted(lines, lines.positives)),
    Field("gapopen", "gap opens", _count("gap_opens", "gap_opens")),
    Field("gaps", "gaps", _count("gaps", "gaps")),
    Field("ppos", "% positives", _percent("positives", 2)),
    Field("frames", "query/sbjct frames", _both_frames),
    Field("qframe", "query frame", _frame(0)),
    Field("sframe", "sbjct frame", _frame(1)),
    Field("btop", "BTOP", _btop, True),
    *(Field(name, title, _always(UNKNOWN)) for name, title in (
        ("staxid", "subject tax id"), ("ssciname", "subject sci name"), ("scomname", "subject com names"),
        ("sblastname", "subject blast name"), ("sskingdom", "subject super kingdom"))),
    Field("staxids", "subject tax ids", _always("0")),
    *(Field(name, title, _always(UNKNOWN)) for name, title in (
        ("sscinames", "subject sci names"), ("scomnames", "subject com names"), ("sblastnames", "subject blast names"),
        ("sskingdoms", "subject super kingdoms"))),
    Field("stitle", "subject title", _target_title),
    Field("salltitles", "subject titles", _target_title),
    Field("sstrand", "subject strand", _strand),
    Field("qcovs", "% query coverage per subject", _coverage),
    Field("qcovhsp", "% query coverage per hsp", _coverage_of_line),
    Field("qcovus", "% query coverage per uniq subject", _unique_coverage),
    Field("qtitle", "query title", _of_query(_query_title)),
    Field("cigar", "CIGAR", _cigar),
    Field("rank", "rank of subject", lambda lines: integers(lines.rank, lines.texts)),
    Field("number", "number within subject", _place_in_hit),
    Field("full_qseq", "whole query seq", _of_query(_whole_query), True),
    Field("full_sseq", "whole subject seq", _whole_target, True),
)}
"""Every field by name, in the order of BLAST's manual; those behind ``qcovus`` are ours."""


def fields_of(names: Sequence[str], hits: Hits) -> list[Field]:
    """The fields called ``names``, where ``std`` stands for twelve of them; each once, as in BLAST, where it is first.

    Args:
        hits: of any query of the run; they say which columns plugins have added to hits and alignments.

    Raises:
        UnknownNameError: a name is none of ours and no column's; suggests the nearest.
    """
    added = {c.name: Field(c.name, c.name.replace("_", " "), _added(c, True)) for c in hits.extra}
    added |= {c.name: Field(c.name, c.name.replace("_", " "), _added(c, False)) for c in hits.alignments.extra}
    known = {**added, **FIELDS}
    chosen: list[Field] = []
    for name in names:
        for single in STANDARD if name == "std" else (name,):
            if single not in known:
                raise UnknownNameError("output field", single, [*known, "std"])
            if known[single] not in chosen:
                chosen.append(known[single])
    return chosen


def _added(column: Column, of_hits: bool) -> Callable[[Lines], np.ndarray]:
    def cells(lines: Lines) -> np.ndarray:
        records = lines.hits if of_hits else lines.rows
        if column.name not in records:
            return _always(ABSENT)(lines)
        values = records[column.name]
        single = lines.texts.add([_value_text(column, v)
                                  for v in (values if isinstance(values, Ragged) else values.tolist())])
        return single[lines.hit] if of_hits else single

    return cells


def _value_text(column: Column, value: Any) -> str:
    if column.type == "path":
        return path_text(value) if len(value) else ABSENT
    if value is None or value != value or (column.nullable and value == -1):
        return ABSENT
    if column.type == "bool":
        return "true" if value else "false"
    return f"{value:.6g}" if column.type[0] == "f" else str(value)


def alphabet_of(run: Any) -> Alphabet:
    """Alphabet of the sequences of a run."""
    return alphabet(run.get("target_type") or "protein")
