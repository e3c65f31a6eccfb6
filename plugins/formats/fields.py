"""Fields of tabular output: BLAST's names and titles, ours, and the columns that plugins add.

A field makes the cells of many lines at once. A line is an alignment, or a hit without alignments, which has no
coordinates.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from seqloom.core.classes import dataclass

from ...core.alphabet import PROTEIN
from ...core.errors import UnknownNameError
from ...core.ports import Taxon
from ...core.records import Column, Hits, Ragged, path_text
from ..common.cells import (
    ABSENT_CELL,
    Texts,
    bit_score_cells,
    coverage_cells,
    evalue_cells,
    integers,
    percent_cells,
    score_cells,
)
from ..common.numbers import ABSENT
from .aligned import shown_path
from .labels import Label, of_queries, of_target
from .lines import Lines

UNKNOWN = "N/A"
"""Printed, as BLAST does, where a database has no such information."""
_BLANKS = str.maketrans("\t\x01", "  ")
STANDARD = ("qaccver", "saccver", "pident", "length", "mismatch", "gapopen", "qstart", "qend", "sstart", "send",
            "evalue", "bitscore")
"""What ``std`` stands for."""


SHOWING = ("qseq", "sseq", "btop", "positive", "ppos")
"""Fields for which BLAST looks at letters; then it counts equal ones by these as well."""


@dataclass(frozen=True)
class Field:
    """One field: the title in comment lines, whether residues are needed, and i8 cells of all lines."""

    name: str
    title: str
    cells: Callable[[Lines], np.ndarray]
    residues: bool = False


def _always(text: str) -> Callable[[Lines], np.ndarray]:
    return lambda lines: np.repeat(lines.texts.add([text]), len(lines))


def _where(present: np.ndarray, cells: np.ndarray) -> np.ndarray:
    return np.where(present, cells, ABSENT_CELL)


def _names(lines: Lines) -> list[str]:
    return lines.block.targets.names


def _no_numbers(lines: Lines) -> list[str]:
    return ["0"] * len(lines.block.targets.names)


def _titles(lines: Lines) -> list[str]:
    return list(map(_title, lines.block.targets.names, lines.block.targets.descriptions))


def _of_target(text: Callable[[Label], str], joint: str | None = None,
               whole: Callable[[Lines], list[str]] = _names) -> Callable[[Lines], np.ndarray]:
    """What is said of a target, by its first definition, or by all of them with ``joint`` between.

    ``whole`` says it of all targets where no names are taken apart.
    """
    def cells(lines: Lines) -> np.ndarray:
        targets = lines.block.targets
        if not any(targets.parsed):
            return lines.texts.add(whole(lines))[lines.target]
        found = (of_target(targets, place, lines.alphabet) for place in range(len(targets.names)))
        return lines.texts.add([text(some[0]) if joint is None else joint.join(map(text, some)) for some in found]
                               )[lines.target]

    return cells


def _label_title(label: Label) -> str:
    return _title(label.id, label.title) if not label.parsed else label.title.translate(_BLANKS) or UNKNOWN


def _query_label(text: Callable[[Label], str]) -> Callable[[Lines], np.ndarray]:
    """What is said of a query by its name, taken apart or whole."""
    def cells(lines: Lines) -> np.ndarray:
        block = lines.block
        return lines.texts.add([text(label) for label in of_queries(block, lines.alphabet)]
                               if block.parsed else block.names)[lines.query]

    return cells


def _query_title(lines: Lines) -> np.ndarray:
    return lines.texts.add(list(map(_title, lines.block.names, lines.block.descriptions)))[lines.query]


def _query_gi(lines: Lines) -> np.ndarray:
    return lines.texts.add([label.gi for label in of_queries(lines.block, lines.alphabet)])[lines.query]


def _query_accession(lines: Lines) -> np.ndarray:
    labels = of_queries(lines.block, lines.alphabet)
    return lines.texts.add([accession or label.accession for accession, label in zip(lines.block.accessions, labels)]
                           )[lines.query]


def _taxon(text: Callable[[Taxon], str], unknown: str = UNKNOWN) -> Callable[[Lines], np.ndarray]:
    """What is said of the organism that a target is of; ``unknown`` where that isn't known."""
    def cells(lines: Lines) -> np.ndarray:
        targets = lines.block.targets
        taxa = targets.taxa or [None] * len(targets.names)
        texts = {taxon: (text(taxon) if taxon else unknown) or UNKNOWN for taxon in set(taxa)}
        made = dict(zip(texts, lines.texts.add(list(texts.values())).tolist()))
        return np.array([made[taxon] for taxon in taxa], np.int64)[lines.target]

    return cells


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
        if lines.characters is None or (which == 0 and lines.block.residues is None):
            return _always(ABSENT)(lines)
        return lines.texts.add_rows(lines.characters[which])

    return cells


def _btop(lines: Lines) -> np.ndarray:
    operations = lines.operations
    return _always(ABSENT)(lines) if operations is None else lines.texts.add_rows(operations)


def _whole_query(lines: Lines) -> np.ndarray:
    if lines.block.residues is None:
        return _always(ABSENT)(lines)
    return lines.texts.add([lines.alphabet.decode(codes) for codes in lines.block.residues])[lines.query]


def _whole_target(lines: Lines) -> np.ndarray:
    sequences = lines.block.sequences
    if sequences is None:
        return _always(ABSENT)(lines)
    whole = [lines.alphabet.decode(sequences.by_ordinal(n)) for n in lines.block.targets.numbers.tolist()]
    return lines.texts.add(whole)[lines.target]


def _coverage(lines: Lines) -> np.ndarray:
    return _where(lines.located, coverage_cells(lines.covered(), lines.query_lengths))


def _coverage_of_line(lines: Lines) -> np.ndarray:
    spans = lines.rows["query_end"] - lines.rows["query_start"]
    return _where(lines.located, coverage_cells(spans, lines.query_lengths))


def _unique_coverage(lines: Lines) -> np.ndarray:
    if lines.alphabet is PROTEIN:
        return _always(UNKNOWN)(lines)
    return _where(lines.located, coverage_cells(lines.uniquely_covered(), lines.query_lengths))


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


def _target_length(lines: Lines) -> np.ndarray:
    return integers(lines.block.targets.lengths[lines.target], lines.texts)


def _value(column: str, cells: Callable[[np.ndarray, Texts], np.ndarray]) -> Callable[[Lines], np.ndarray]:
    return lambda lines: cells(lines.rows[column], lines.texts)


FIELDS: dict[str, Field] = {f.name: f for f in (
    Field("qseqid", "query id", _query_label(lambda label: label.id)),
    Field("qgi", "query gi", _query_gi),
    Field("qacc", "query acc.", _query_accession),
    Field("qaccver", "query acc.ver", _query_label(lambda label: label.version)),
    Field("qlen", "query length", lambda lines: integers(lines.query_lengths, lines.texts)),
    Field("sseqid", "subject id", _of_target(lambda label: label.id)),
    Field("sallseqid", "subject ids", _of_target(lambda label: label.id, ";")),
    Field("sgi", "subject gi", _of_target(lambda label: label.gi, whole=_no_numbers)),
    Field("sallgi", "subject gis", _of_target(lambda label: label.gi, ";", _no_numbers)),
    Field("sacc", "subject acc.", _of_target(lambda label: label.accession)),
    Field("saccver", "subject acc.ver", _of_target(lambda label: label.version)),
    Field("sallacc", "subject accs.", _of_target(lambda label: label.accession, ";")),
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
    Field("staxid", "subject tax id", _taxon(lambda taxon: str(taxon.taxid))),
    Field("ssciname", "subject sci name", _taxon(lambda taxon: taxon.name)),
    Field("scomname", "subject com names", _taxon(lambda taxon: taxon.common_name or taxon.name)),
    Field("sblastname", "subject blast name", _taxon(lambda taxon: taxon.blast_name)),
    Field("sskingdom", "subject super kingdom", _taxon(lambda taxon: taxon.kingdom)),
    Field("staxids", "subject tax ids", _taxon(lambda taxon: str(taxon.taxid), "0")),
    Field("sscinames", "subject sci names", _taxon(lambda taxon: taxon.name)),
    Field("scomnames", "subject com names", _taxon(lambda taxon: taxon.common_name or taxon.name)),
    Field("sblastnames", "subject blast names", _taxon(lambda taxon: taxon.blast_name)),
    Field("sskingdoms", "subject super kingdoms", _taxon(lambda taxon: taxon.kingdom)),
    Field("stitle", "subject title", _of_target(_label_title, whole=_titles)),
    Field("salltitles", "subject titles", _of_target(_label_title, "<>", _titles)),
    Field("sstrand", "subject strand", _strand),
    Field("qcovs", "% query coverage per subject", _coverage),
    Field("qcovhsp", "% query coverage per hsp", _coverage_of_line),
    Field("qcovus", "% query coverage per uniq subject", _unique_coverage),
    Field("qtitle", "query title", _query_title),
    Field("cigar", "CIGAR", _cigar),
    Field("rank", "rank of subject", lambda lines: integers(lines.rank, lines.texts)),
    Field("number", "number within subject", _place_in_hit),
    Field("full_qseq", "whole query seq", _whole_query, True),
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
