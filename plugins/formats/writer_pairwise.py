"""Pairwise text for people, close to what BLAST+ prints as format 0."""

import re
from collections.abc import Iterator, Sequence
from typing import IO

import numpy as np

from ...core.alphabet import PROTEIN
from ...core.ports import QueryReport, Report
from ...core.stages import Writer
from .fields import Lines, alphabet_of
from .numbers import bit_score_text, score_text, short_evalue_text, short_percent
from .writer_tabular import database_names

LETTERS = 60
"""Columns of an alignment per block."""


class Pairwise(Writer):
    """Alignments for people to read, with a table of the hits of every query before them."""

    name = "0"

    def write(self, report: Report, stream: IO[str], fields: Sequence[str]) -> None:
        run = report.run
        stream.write(f"seqloom {run.get('version') or ''} {run.get('pipeline', '')}\n\n\n")
        stream.write(f"Database: {database_names(report)}\n           {run.get('sequences') or 0:,} sequences; "
                     f"{run.get('letters') or 0:,} total letters\n\n\n\n")
        similar = _similar(report)
        kind = alphabet_of(run)
        for query in report.queries(residues=True):
            stream.write(_wrapped("Query= ", f"{query.name} {query.description}") + f"\n\nLength={query.length}\n")
            lines = Lines([query], kind)
            if not len(lines):
                stream.write("\n\n***** No hits found *****\n\n\n\n")
                continue
            stream.write(_table(query))
            for text in _alignments(lines, similar):
                stream.write(text)
            stream.write("\n\n")


def _similar(report: Report) -> np.ndarray | None:
    """bool[a, a] over codes: pairs of unequal letters that score above zero; None for nucleotides."""
    if alphabet_of(report.run) is not PROTEIN:
        return None
    matrix = getattr(report.scoring, "matrix", None)
    if matrix is None:
        from ..common.matrices import protein_matrix  # its tables aren't needed before there is something to write

        matrix = protein_matrix((report.run.get("options") or {}).get("matrix") or "BLOSUM62")
    return np.asarray(matrix) > 0


def _wrapped(label: str, text: str) -> str:
    """``text`` behind ``label``, broken as BLAST does: at the first blank behind the sixtieth character of a line."""
    return label + re.sub(r"(.{60,}?)\s+(?=\S)", r"\1 \n", text.strip())


def _table(query: QueryReport) -> str:
    """One line per hit: title, bits, E-value."""
    evalues = [short_evalue_text(e) for e in query.hits.evalue.tolist()]
    scores = [_bits(b, s).strip() for b, s in zip(query.hits.bit_score.tolist(), query.hits.score.tolist())]
    places = np.searchsorted(query.targets.numbers, query.hits.target).tolist()
    width = max(5, *map(len, evalues))
    text = f"{'Score     E':>81}\n{'Sequences producing significant alignments:':<69}(Bits)  Value\n\n"
    for place, score, evalue in zip(places, scores, evalues):
        title = f"{query.targets.names[place]} {query.targets.descriptions[place]}".strip()
        title = title if len(title) <= 68 else title[:65] + "..."
        text += f"{title:<68}  {score:<8}{evalue:<{width}}\n"
    return text + "\n\n"


def _bits(bits: float, score: float) -> str:
    """Bit score, or the raw score of a result without statistics."""
    return score_text(score) if bits != bits else bit_score_text(bits)


def _alignments(lines: Lines, similar: np.ndarray | None) -> Iterator[str]:
    targets = lines.reports[0].targets
    former = -1
    for row, (hit, target) in enumerate(zip(lines.hit.tolist(), lines.target.tolist())):
        if hit != former:
            title = f"{targets.names[target]} {targets.descriptions[target]}"
            yield _wrapped(">", title) + f"\nLength={targets.lengths[target]}\n\n"
            former = hit
        yield _statistics(lines, row) + "\n"
        if lines.located[row]:
            yield _blocks(lines, row, similar)
        yield "\n"


def _statistics(lines: Lines, row: int) -> str:
    rows = lines.rows
    bits, score, evalue = (rows[n][row].item() for n in ("bit_score", "score", "evalue"))
    raw = score_text(score)
    text = f" Score = {bit_score_text(bits)} bits ({raw})" if bits == bits else f" Score = {raw}"
    text += f",  Expect = {short_evalue_text(evalue)}\n" if evalue == evalue else "\n"
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


def _blocks(lines: Lines, row: int, similar: np.ndarray | None) -> str:
    aligned = lines.aligned[row]
    if aligned is None:
        return ""
    middle = _middle(lines, row, *aligned, similar)
    rows, turned = lines.rows, bool(lines.turned[row])
    target_at = int(rows["target_end"][row] if turned else rows["target_start"][row])
    above = _coordinates(aligned[0], int(rows["query_start"][row]), 1)
    below = _coordinates(aligned[1], target_at, -1 if turned else 1)
    furthest = max(int(rows["query_end"][row]), int(rows["target_end"][row]))
    width = len(str(furthest - 1))  # as BLAST, which counts from 0
    text = ""
    for number, ((q_start, q_end), (s_start, s_end)) in enumerate(zip(above, below)):
        part = slice(number * LETTERS, (number + 1) * LETTERS)
        text += (f"Query  {q_start:<{width}}  {aligned[0][part].decode()}  {q_end}\n"
                 f"{'':{width + 9}}{middle[part]}\n"
                 f"Sbjct  {s_start:<{width}}  {aligned[1][part].decode()}  {s_end}\n\n")
    return text


def _coordinates(letters: bytes, at: int, step: int) -> list[tuple[str, str]]:
    """First and last coordinate (from 1) of every block of one row; a block of nothing but gaps has none.

    Args:
        letters: the row with gaps.
        at: the boundary before its first letter, counted along the forward strand.
        step: 1, or −1 for a row that is read backwards.
    """
    found = []
    for first in range(0, len(letters), LETTERS):
        block = letters[first : first + LETTERS]
        count = len(block) - block.count(b"-")
        start, end = (at + 1, at + count) if step > 0 else (at, at - count + 1)
        found.append((str(start), str(end)) if count else ("", ""))
        at += step * count
    return found


def _middle(lines: Lines, row: int, upper: bytes, lower: bytes, similar: np.ndarray | None) -> str:
    """The line between both rows: letters or bars where they are equal, ``+`` where they are similar."""
    above, below = np.frombuffer(upper, np.uint8), np.frombuffer(lower, np.uint8)
    marks = np.full(len(above), ord(" "), np.uint8)
    if lines.reports[0].residues is None:
        marks[(above != ord("-")) & (below != ord("-"))] = ord("|")
        return marks.tobytes().decode()
    if similar is None:
        marks[above == below] = ord("|")
        return marks.tobytes().decode()
    codes = lines.alphabet.codes
    paired = (above != ord("-")) & (below != ord("-"))
    marks[paired] = np.where(similar[codes[above[paired]], codes[below[paired]]], ord("+"), ord(" "))
    marks[above == below] = above[above == below]
    return marks.tobytes().decode()
