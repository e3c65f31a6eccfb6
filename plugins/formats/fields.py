"""Fields of tabular output: BLAST's names and titles, ours, and the columns that plugins add.

A field makes the texts of all lines of one query at once. A line is an alignment, or a hit without alignments, which
has no coordinates.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from ...core.alphabet import PROTEIN, Alphabet, alphabet
from ...core.errors import UnknownNameError
from ...core.ports import QueryReport
from ...core.records import Column, Hits, Ragged, path_text
from .aligned import PathCounts, count_path, covered, shown_path
from .numbers import ABSENT, bit_score_text, coverage_text, evalue_text, percent_text, score_text

UNKNOWN = "N/A"
"""Printed, as BLAST does, where a database has no such information."""
_POSITION = 255
"""Code of a position of a model, which is shown as a letter of its own."""
STANDARD = ("qaccver", "saccver", "pident", "length", "mismatch", "gapopen", "qstart", "qend", "sstart", "send",
            "evalue", "bitscore")
"""What ``std`` stands for."""


class Lines:
    """All lines of one query: alignments in order of report, and hits without alignments in their places."""

    def __init__(self, report: QueryReport, kind: Alphabet) -> None:
        self.report, self.alphabet = report, kind
        hits, children = report.hits, report.hits.alignments
        place = {target: n for n, target in enumerate(hits.target.tolist())}
        self.hit = np.array([place[t] for t in children.target.tolist()], np.int64)
        alone = np.ones(len(hits), bool)
        alone[self.hit] = False
        bare = np.flatnonzero(alone)
        self.located = np.ones(len(children), bool)
        if len(bare):
            joined = np.concatenate([self.hit, bare])
            order = np.argsort(joined, kind="stable")
            self.hit = joined[order]
            self.located = (order < len(children))
            children = children.concat([children, _without_place(hits, bare, children.extra)]).take(order)
        self.rows = children
        self.target = np.searchsorted(report.targets.numbers, hits.target[self.hit])

    def __len__(self) -> int:
        return len(self.hit)

    @cached_property
    def turned(self) -> np.ndarray:
        """bool: query and target lie on different strands."""
        return self.rows.query_frame * self.rows.target_frame < 0

    @cached_property
    def counts(self) -> list[PathCounts | None]:
        """Counts from the paths; None for lines without one."""
        return [count_path(path) if len(path) else None for path in self.rows.path]

    def count(self, column: str, name: str) -> list[int]:
        """A column of counts; what it lacks is counted in the path, −1 where there is none."""
        values = self.rows.data[column].tolist()
        if -1 in values:
            counts = self.counts
            values = [getattr(c, name) if v < 0 and c else v for v, c in zip(values, counts)]
        return values

    @cached_property
    def lengths(self) -> list[int]:
        return self.count("length", "length")

    @cached_property
    def identities(self) -> list[int]:
        return self.count("identities", "identities")

    @cached_property
    def positives(self) -> list[int]:
        values = self.rows.positives.tolist()
        if self.alphabet is PROTEIN:
            return values
        return [i if v < 0 else v for v, i in zip(values, self.identities)]

    @cached_property
    def letters(self) -> tuple[Ragged, Ragged] | None:
        """Letters of query and target with gaps, no columns without a path; None without residues."""
        from .aligned_cpu import letter_rows

        sequences, rows = self.report.sequences, self.rows
        if sequences is None:
            return None
        letters = self.alphabet.bytes.copy()
        letters[_POSITION] = ord("x")
        query = np.array(self.report.residues)
        if self.report.residues is None:
            query = np.full(int(rows.query_end.max(initial=0)), _POSITION, np.uint8)
        base = sequences.offsets[sequences.locate(self.report.targets.numbers[self.target])]
        bounds = np.stack([rows.query_start, rows.query_end, base + rows.target_start, base + rows.target_end], axis=1)
        frames = np.stack([rows.query_frame, rows.target_frame], axis=1).astype(np.int64)
        complement = self.alphabet.complement.copy() if self.alphabet.complement_letters else np.empty(0, np.uint8)
        return letter_rows(query, sequences.residues, bounds.astype(np.int64), frames, rows.path, letters, complement)

    @cached_property
    def aligned(self) -> list[tuple[bytes, bytes] | None]:
        """Both rows of letters; None without path or residues."""
        if self.letters is None:
            return [None] * len(self)
        upper, lower = self.letters
        above, below, ends = upper.values.tobytes(), lower.values.tobytes(), upper.offsets.tolist()
        return [(above[a:b], below[a:b]) if b > a else None for a, b in pairwise(ends)]

    def covered(self) -> list[int]:
        """Letters of the query that the alignments of the line's hit cover together."""
        starts, ends = self.rows.query_start, self.rows.query_end
        by_hit = {h: covered(starts[self.hit == h], ends[self.hit == h]) for h in set(self.hit.tolist())}
        return [by_hit[h] for h in self.hit.tolist()]

    def on_targets(self, values: Sequence[Any]) -> list[Any]:
        return [values[t] for t in self.target.tolist()]


def _without_place(hits: Hits, bare: np.ndarray, extra: Sequence[Column]) -> Any:
    """Rows for hits without alignments: frames of 0 say that there is no place."""
    from ...core.records import Alignments

    count = len(bare)
    data: dict[str, Any] = {c.name: c.absent(count) for c in (*Alignments.columns, *extra)}
    for name in ("query", "target", "score", "bit_score", "evalue"):
        data[name] = hits.data[name][bare]
    data["query_frame"] = data["target_frame"] = np.zeros(count, np.int8)
    return Alignments(data, extra)


@dataclass(frozen=True)
class Field:
    """One field: the title in comment lines, whether residues are needed, and the texts of all lines of a query."""

    name: str
    title: str
    texts: Callable[[Lines], list[str]]
    residues: bool = False


def _once(value: Callable[[Lines], str]) -> Callable[[Lines], list[str]]:
    return lambda lines: [value(lines)] * len(lines)


def _target_title(lines: Lines) -> list[str]:
    targets = lines.report.targets
    return lines.on_targets([f"{n} {d}" if d else n for n, d in zip(targets.names, targets.descriptions)])


def _query_title(lines: Lines) -> str:
    query = lines.report
    return f"{query.name} {query.description}" if query.description else query.name


def _numbers(values: Sequence[int], present: Sequence[bool]) -> list[str]:
    if all(present) and min(values, default=0) >= 0:
        return list(map(str, values))
    return [str(v) if p and v >= 0 else ABSENT for v, p in zip(values, present)]


def _coordinate(forward: str, backward: str, forward_shift: int, backward_shift: int) -> Callable[[Lines], list[str]]:
    def texts(lines: Lines) -> list[str]:
        ahead, back = lines.rows.data[forward] + forward_shift, lines.rows.data[backward] + backward_shift
        return _numbers(np.where(lines.turned, back, ahead).tolist(), lines.located.tolist())

    return texts


def _count(column: str, name: str) -> Callable[[Lines], list[str]]:
    return lambda lines: _numbers(lines.count(column, name), lines.located.tolist())


def _percent(part: str, decimals: int) -> Callable[[Lines], list[str]]:
    return lambda lines: [percent_text(count, total, decimals)
                          for count, total in zip(getattr(lines, part), lines.lengths)]


def _frames(lines: Lines) -> tuple[list[str], list[str]]:
    sign = np.where(lines.rows.query_frame < 0, -1, 1)
    here = lines.located.tolist()
    return tuple([str(v) if p else ABSENT for v, p in zip((frame * sign).tolist(), here)]  # type: ignore[return-value]
                 for frame in (lines.rows.query_frame, lines.rows.target_frame))


def _strand(lines: Lines) -> list[str]:
    if lines.alphabet is PROTEIN:
        return [UNKNOWN] * len(lines)
    return [("minus" if t else "plus") if p else ABSENT for t, p in zip(lines.turned.tolist(), lines.located.tolist())]


def _aligned(which: int) -> Callable[[Lines], list[str]]:
    def texts(lines: Lines) -> list[str]:
        unknown = which == 0 and lines.report.residues is None
        return [ABSENT if a is None or unknown else a[which].decode() for a in lines.aligned]

    return texts


def _btop(lines: Lines) -> list[str]:
    from .aligned_cpu import btops

    if lines.letters is None or lines.report.residues is None:
        return [ABSENT] * len(lines)
    return [text or ABSENT for text in btops(*lines.letters)]


def _whole_query(lines: Lines) -> str:
    codes = lines.report.residues
    return ABSENT if codes is None else lines.alphabet.decode(codes)


def _whole_target(lines: Lines) -> list[str]:
    sequences = lines.report.sequences
    if sequences is None:
        return [ABSENT] * len(lines)
    numbers = lines.report.targets.numbers.tolist()
    return lines.on_targets([lines.alphabet.decode(sequences.by_ordinal(n)) for n in numbers])


def _coverage(lines: Lines) -> list[str]:
    return [coverage_text(c, lines.report.length) if p else ABSENT
            for c, p in zip(lines.covered(), lines.located.tolist())]


def _coverage_of_line(lines: Lines) -> list[str]:
    spans = (lines.rows.query_end - lines.rows.query_start).tolist()
    return [coverage_text(s, lines.report.length) if p else ABSENT for s, p in zip(spans, lines.located.tolist())]


def _unique_coverage(lines: Lines) -> list[str]:
    return [UNKNOWN] * len(lines) if lines.alphabet is PROTEIN else _coverage(lines)


def _cigar(lines: Lines) -> list[str]:
    frames = lines.rows.query_frame.tolist()
    return [path_text(shown_path(p, f)) if len(p) else ABSENT for p, f in zip(lines.rows.path, frames)]


def _place_in_hit(lines: Lines) -> list[str]:
    seen: dict[int, int] = {}
    texts = []
    for hit in lines.hit.tolist():
        seen[hit] = seen.get(hit, 0) + 1
        texts.append(str(seen[hit]))
    return texts


def _query_name(lines: Lines) -> str:
    return lines.report.name


def _target_name(lines: Lines) -> list[str]:
    return lines.on_targets(lines.report.targets.names)


def _target_length(lines: Lines) -> list[str]:
    return lines.on_targets([str(n) for n in lines.report.targets.lengths.tolist()])


def _text_of(column: str, text: Callable[[Any], str]) -> Callable[[Lines], list[str]]:
    return lambda lines: [text(v) for v in lines.rows.data[column].tolist()]


FIELDS: dict[str, Field] = {f.name: f for f in (
    Field("qseqid", "query id", _once(_query_name)),
    Field("qgi", "query gi", _once(lambda lines: "0")),
    Field("qacc", "query acc.", _once(lambda lines: lines.report.accession or lines.report.name)),
    Field("qaccver", "query acc.ver", _once(_query_name)),
    Field("qlen", "query length", _once(lambda lines: str(lines.report.length))),
    Field("sseqid", "subject id", _target_name),
    Field("sallseqid", "subject ids", _target_name),
    Field("sgi", "subject gi", _once(lambda lines: "0")),
    Field("sallgi", "subject gis", _once(lambda lines: "0")),
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
    Field("evalue", "evalue", _text_of("evalue", evalue_text)),
    Field("bitscore", "bit score", _text_of("bit_score", bit_score_text)),
    Field("score", "score", _text_of("score", score_text)),
    Field("length", "alignment length", _count("length", "length")),
    Field("pident", "% identity", _percent("identities", 3)),
    Field("nident", "identical", _count("identities", "identities")),
    Field("mismatch", "mismatches", _count("mismatches", "mismatches")),
    Field("positive", "positives", lambda lines: _numbers(lines.positives, lines.located.tolist())),
    Field("gapopen", "gap opens", _count("gap_opens", "gap_opens")),
    Field("gaps", "gaps", _count("gaps", "gaps")),
    Field("ppos", "% positives", _percent("positives", 2)),
    Field("frames", "query/sbjct frames", lambda lines: [f"{q}/{s}" for q, s in zip(*_frames(lines))]),
    Field("qframe", "query frame", lambda lines: _frames(lines)[0]),
    Field("sframe", "sbjct frame", lambda lines: _frames(lines)[1]),
    Field("btop", "BTOP", _btop, True),
    *(Field(name, title, _once(lambda lines: UNKNOWN)) for name, title in (
        ("staxid", "subject tax id"), ("ssciname", "subject sci name"), ("scomname", "subject com names"),
        ("sblastname", "subject blast name"), ("sskingdom", "subject super kingdom"))),
    Field("staxids", "subject tax ids", _once(lambda lines: "0")),
    *(Field(name, title, _once(lambda lines: UNKNOWN)) for name, title in (
        ("sscinames", "subject sci names"), ("scomnames", "subject com names"), ("sblastnames", "subject blast names"),
        ("sskingdoms", "subject super kingdoms"))),
    Field("stitle", "subject title", _target_title),
    Field("salltitles", "subject titles", _target_title),
    Field("sstrand", "subject strand", _strand),
    Field("qcovs", "% query coverage per subject", _coverage),
    Field("qcovhsp", "% query coverage per hsp", _coverage_of_line),
    Field("qcovus", "% query coverage per uniq subject", _unique_coverage),
    Field("qtitle", "query title", _once(_query_title)),
    Field("cigar", "CIGAR", _cigar),
    Field("rank", "rank of subject", lambda lines: [str(h + 1) for h in lines.hit.tolist()]),
    Field("number", "number within subject", _place_in_hit),
    Field("full_qseq", "whole query seq", _once(_whole_query), True),
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


def _added(column: Column, of_hits: bool) -> Callable[[Lines], list[str]]:
    def texts(lines: Lines) -> list[str]:
        records = lines.report.hits if of_hits else lines.rows
        if column.name not in records.data:
            return [ABSENT] * len(lines)
        values = records.data[column.name]
        single = [_value_text(column, v) for v in (values if isinstance(values, Ragged) else values.tolist())]
        return [single[h] for h in lines.hit.tolist()] if of_hits else single

    return texts


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
