"""Pairwise text for people, close to what BLAST+ prints as format 0."""

import re
from collections.abc import Iterator, Sequence
from functools import partial
from typing import IO
from xml.sax.saxutils import escape

import numpy as np
from seqloom.core.classes import dataclass

from ...core.alphabet import PROTEIN
from ...core.errors import OptionError
from ...core.options import build_options, option
from ...core.ports import QueryReport, Report, TargetInfo
from ...core.sequences import Intervals
from ...core.stages import Writer
from ..common.numbers import bit_score_text, score_text, short_evalue_text, short_percent
from .hit_order import Facts, arranged
from .labels import Label, of_query, of_target, untitled
from .lines import Lines, alphabet_of, by_letters
from .midline import midline, model_rows, similar_pairs, with_masks
from .report_frame import broken, foot, head, statistics, wrapped

_escaped = partial(escape, entities={'"': "&quot;"})
_MASKED = re.compile("[a-z](?:[a-z-]*[a-z])?")
ALIGNMENTS = 250
"""Targets with alignments where neither their number nor that of targets is chosen."""
_THIRD_PARTY = ("tpg|", "tpe|", "tpd|")
"""Kinds of annotations by others than who sequenced."""
TARGET_WIDTH = 60
"""Characters, about, of a line of a target's title."""
METHODS = {1: "Composition-based stats.", 2: "Compositional matrix adjust."}
"""What is said of an alignment by how its scores were adjusted to the compositions of both sequences."""


@dataclass(frozen=True)
class Layout:
    """How alignments are laid out: the words behind the format's name, such as "line_length=80"."""

    line_length: int = option(60, "columns of an alignment per block", minimum=1)
    num_descriptions: int | None = option(None, "targets in the table; all by default", minimum=0)
    num_alignments: int | None = option(None, "targets with alignments", minimum=0)
    html: bool = option(False, "a page of HTML")
    sorthits: int | None = option(None, "order of targets", minimum=0, maximum=4)
    sorthsps: int = option(0, "order of the alignments of a target", minimum=0, maximum=4)


class Pairwise(Writer):
    """Alignments for people to read, with a table of the hits of every query before them."""

    name = "0"

    def write(self, report: Report, stream: IO[str], fields: Sequence[str]) -> None:
        run, layout = report.run, build_options(Layout, dict(map(_assignment, fields)), "format 0")
        shown = layout.num_alignments
        if shown is None and report.method is not None:  # as BLAST has it
            shown = ALIGNMENTS if (run.get("options") or {}).get("max_target_seqs") == 500 else None
        kind = alphabet_of(run, residues=True)
        stream.write(head(report, layout.html))
        similar = similar_pairs(report)
        for query in report.queries(residues=True):
            stream.write("\n\n" if query.number else "")
            title = wrapped(of_query(query, kind).heading)
            stream.write(f"<b>Query=</b> {_escaped(title)}" if layout.html else f"Query= {title}")
            stream.write(f"\n\nLength={query.length}\n")
            lines = Lines(query.block(), kind, by_letters(report))
            if len(lines):
                chosen = arranged(query, lines, layout.sorthits or 0, layout.sorthsps)
                lines = lines if chosen is query else Lines(chosen.block(), kind, by_letters(report))
                stream.write(_table(chosen, lines, layout))
                hidden = report.masked_targets(lines.block.targets.numbers)
                for text in _alignments(lines, similar, report.masked(query.number), hidden, layout, shown):
                    stream.write(text)
            else:
                stream.write("\n\n***** No hits found *****\n\n\n")
            if report.method:
                stream.write(statistics(report.statistics(query.number)))
        stream.write(foot(report, layout.html))


def _assignment(word: str) -> tuple[str, str]:
    name, equals, value = word.partition("=")
    if word == "html":
        return word, "yes"
    if not equals:
        raise OptionError(f"format 0 takes words such as line_length=80, not '{word}'")
    return name, value


def _table(query: QueryReport, lines: Lines, layout: Layout) -> str:
    """One line per hit: title, bits, E-value, and with an order of hits also total, coverage and identity."""
    hits, count = query.hits, layout.num_descriptions
    if count == 0:
        return "\n\n"
    bits, scores, evalues = hits.bit_score.tolist(), hits.score.tolist(), hits.evalue.tolist()
    facts = Facts(lines)
    if (layout.sorthits or layout.sorthsps) and lines.located.all():  # of the first with the highest score, as in BLAST
        evalues = [float(facts.evalue[facts.best(group)]) for group in facts.groups]
    ends = [short_evalue_text(e) for e in evalues[:count]]
    amounts = [_bits(b, s) for b, s in zip(bits[:count], scores)]
    places = np.searchsorted(query.targets.numbers, hits.target).tolist()
    width = max(5, *map(len, ends))
    further = layout.sorthits is not None
    totals = [_bits(sum(facts.bits[group].tolist()), 0).strip() for group in facts.groups] if further else []
    wide, broad = max(6, *map(len, amounts)), max(5, *map(len, totals[:count] or [""]))
    gap = " " * (width - 5)
    if further:
        text = (f"{'':70}{'Score':<{wide}}  {'Total':<{broad}}  Query    E{gap}     Max\n"
                f"{'Sequences producing significant alignments:':<69}{'(Bits)':<{wide}}   {'Score':<{broad}}  cover   "
                f"Value{gap}  Ident\n\n")
    else:
        text = (f"{'':70}{'Score':<{wide}}    E\n"
                f"{'Sequences producing significant alignments:':<69}{'(Bits)':<{wide}}  Value\n\n")
    for n, (place, amount, end) in enumerate(zip(places, amounts, ends)):
        # As BLAST does: blanks in a row are one, and punctuation at the end goes.
        label = of_target(query.targets, place, lines.alphabet)[0]
        description = " ".join(_title(label, lines).split()).rstrip(" ,.;~")
        third = "TPA: " if label.parsed and label.id.startswith(_THIRD_PARTY) else ""
        title = f"{label.shown} {third}{description}".strip()
        title = title if len(title) <= 68 else title[:65] + "..."
        if layout.html:
            link = f"<a href=#{_anchor(query.targets, place, label)}>{amount}</a>"
            shown = _escaped(title)
            if label.linked and title.startswith(label.shown):
                opened, title = _page(label, lines, "top", n + 1, ""), title if " " in title else f"{title} "
                shown = f"{opened}{label.shown} </a>{_escaped(title[len(label.shown) + 1 :])}"
            text += f"{shown}{'':{70 - len(title)}}{link}{'':{wide - len(amount)}}"
        else:
            text += f"{title:<68}  {amount:<{wide}}"
        if further:
            best = facts.best(facts.groups[n])
            cover = f"{100 * int(facts.covered[best]) // query.length}%"
            text += f"   {totals[n]:<{broad}}  {cover:<5}"
        text += f"  {end:<{width}}"
        if further:
            identity = str(int(0.5 + 100 * facts.share[best]))
            text += f"  {identity}%{'':{9 - len(identity)}}"
        text += "\n"
    return text + "\n\n"


def _anchor(targets: TargetInfo, place: int, label: Label) -> str:
    """Name of a target's alignments in HTML."""
    return label.anchor if label.parsed else f"BL_ORD_ID:{targets.numbers[place]}"


def _page(label: Label, lines: Lines, where: str, rank: int, number: str) -> str:
    """Begin of a link to NCBI's page of a sequence."""
    page, short = ("protein", "prot") if lines.alphabet is PROTEIN else ("nucleotide", "nucl")
    return (f'<a title="Show report for {label.version}" href="https://www.ncbi.nlm.nih.gov/{page}/{label.version}'
            f'?report=genbank&log$={short}{where}&blast_rank={rank}&RID={number}" >')


def _title(label: Label, lines: Lines) -> str:
    return label.title or (untitled(label, lines.alphabet) if label.parsed else "")


def _headings(lines: Lines, target: int, rank: int, html: bool) -> Iterator[str]:
    """The definitions of a target, broken into lines."""
    targets = lines.block.targets
    for label in of_target(targets, target, lines.alphabet):
        shown, title = label.shown, _title(label, lines)
        if not label.parsed:
            shown, title = "", label.heading
        title = broken(title, TARGET_WIDTH)
        if not html:
            yield f"{shown} {title}" if label.parsed else title
            continue
        link = f"{_page(label, lines, 'align', rank, '0')}{shown}</a>" if label.linked else shown
        yield f"{link}<a name={_anchor(targets, target, label)}></a> {_escaped(title)}"


def _bits(bits: float, score: float) -> str:
    """Bit score, or the raw score of a result without statistics."""
    return score_text(score) if bits != bits else bit_score_text(bits)


def _alignments(lines: Lines, similar: np.ndarray | None, masked: np.ndarray, hidden: Intervals, layout: Layout,
                shown: int | None) -> Iterator[str]:
    """Text of every alignment of one query; ``masked``, i4[m, 2], are its stretches that were masked, and ``hidden``
    those of its targets.

    shown: hits whose alignments are wanted, None for all.
    """
    targets = lines.block.targets
    former = -1
    for row, (hit, target) in enumerate(zip(lines.hit.tolist(), lines.target.tolist())):
        if shown is not None and hit >= shown:
            return
        if hit != former:
            title = "\n ".join(_headings(lines, target, hit + 1, layout.html))
            yield f">{title}\nLength={targets.lengths[target]}\n\n"
            former = hit
        yield _statistics(lines, row) + "\n"
        if lines.located[row]:
            yield _blocks(lines, row, similar, masked, hidden.of_sequence(target), layout)
        yield "\n"


def _statistics(lines: Lines, row: int) -> str:
    rows = lines.rows
    bits, score, evalue = (rows[n][row].item() for n in ("bit_score", "score", "evalue"))
    raw = score_text(score)
    text = f" Score = {bit_score_text(bits)} bits ({raw})" if bits == bits else f" Score = {raw}"
    text += f",  Expect = {short_evalue_text(evalue)}" if evalue == evalue else ""
    way = METHODS.get(int(rows["adjustment"][row])) if "adjustment" in rows else None
    text += f", Method: {way}\n" if way else "\n"
    length, same, positive = lines.lengths[row], lines.identities[row], lines.positives[row]
    if lines.located[row] and length > 0:
        gaps = lines.count("gaps", "gaps")[row]
        shares = [("Identities", same), ("Positives", positive if lines.alphabet is PROTEIN else -1), ("Gaps", gaps)]
        parts = [f"{name} = {count}/{length} ({short_percent(count, length)}%)" for name, count in shares if count >= 0]
        text += f" {', '.join(parts)}\n"
    elif lines.located[row]:
        text += f" Query {rows['query_start'][row] + 1}-{rows['query_end'][row]}, "
        text += f"Sbjct {rows['target_start'][row] + 1}-{rows['target_end'][row]}\n"
    if lines.alphabet is not PROTEIN and lines.located[row]:
        text += f" Strand=Plus/{'Minus' if lines.turned[row] else 'Plus'}\n"
    return text + _domain(lines, row)


def _domain(lines: Lines, row: int) -> str:
    """What a profile search says of a domain."""
    data, parts = lines.rows, []
    if "env_start" in data and "env_end" in data:
        parts.append(f"Envelope = {data['env_start'][row] + 1}-{data['env_end'][row]}")
    for name, title in (("accuracy", "Accuracy"), ("bias", "Bias")):
        if name in data and data[name][row] == data[name][row]:
            parts.append(f"{title} = {data[name][row]:.2f}")
    for name, title in (("c_evalue", "Conditional E"), ("i_evalue", "Independent E")):
        if name in data:
            parts.append(f"{title} = {short_evalue_text(float(data[name][row]))}")
    return f" {', '.join(parts)}\n" if parts else ""


def _blocks(lines: Lines, row: int, similar: np.ndarray | None, masked: np.ndarray, hidden: np.ndarray,
            layout: Layout) -> str:
    aligned = lines.aligned[row]
    if aligned is None:
        return ""
    marked = ""
    if lines.block.residues is None:
        aligned, middle = model_rows(lines, row, *aligned)
    else:
        middle = midline(lines, *aligned, similar)
        start = int(lines.rows["query_start"][row])
        if layout.html:  # as in BLAST, which marks none that begin before the alignment
            marked = with_masks(aligned[0], start, masked[masked[:, 0] >= start]).decode()
        aligned = with_masks(aligned[0], start, masked), _with_hidden(lines, row, aligned[1], hidden)
    rows, turned, columns = lines.rows, bool(lines.turned[row]), layout.line_length
    target_at = int(rows["target_end"][row] if turned else rows["target_start"][row])
    above = _coordinates(aligned[0], int(rows["query_start"][row]), 1, columns)
    below = _coordinates(aligned[1], target_at, -1 if turned else 1, columns)
    furthest = max(int(rows["query_end"][row]), int(rows["target_end"][row]))
    width = len(str(furthest - 1))  # as BLAST, which counts from 0
    text = ""
    for number, ((q_start, q_end), (s_start, s_end)) in enumerate(zip(above, below)):
        part = slice(number * columns, (number + 1) * columns)
        shown = aligned[0][part].decode()
        for stretch in reversed([*_MASKED.finditer(marked[part])]):
            first, last = stretch.span()
            shown = f'{shown[:first]}<font color="#000000">{shown[first:last]}</font>{shown[last:]}'
        text += (f"Query  {q_start:<{width + 2}}{shown}  {q_end}\n"
                 f"{'':{width + 9}}{middle[part]}\n"
                 f"Sbjct  {s_start:<{width + 2}}{aligned[1][part].decode()}  {s_end}\n\n")
    return text


def _with_hidden(lines: Lines, row: int, residues: bytes, hidden: np.ndarray) -> bytes:
    """A target's row with masked residues in lower case. hidden: i4[m, 2], stretches of the target."""
    if lines.turned[row]:
        return with_masks(residues, 0, int(lines.rows["target_end"][row]) - hidden[::-1, ::-1])
    return with_masks(residues, int(lines.rows["target_start"][row]), hidden)


def _coordinates(residues: bytes, at: int, step: int, columns: int) -> list[tuple[str, str]]:
    """First and last coordinate (from 1) of every block of one row; a block of nothing but gaps has none.

    Nor has, as in BLAST, one that has no residue but the first of the sequence.

    Args:
        residues: the row with gaps.
        at: the boundary before its first residue, counted along the forward strand.
        step: 1, or −1 for a row that is read backwards.
        columns: of a block.
    """
    found = []
    for first in range(0, len(residues), columns):
        block = residues[first : first + columns]
        count = len(block) - block.count(b"-")
        start, end = (at + 1, at + count) if step > 0 else (at, at - count + 1)
        found.append((str(start), str(end)) if count and (start, end) != (1, 1) else ("", ""))
        at += step * count
    return found
