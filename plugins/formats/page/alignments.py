"""Alignments as a page shows them: what is said of each, and its rows, as text or packed for the page's script."""

import base64
import gzip
import json
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from seqloom.core.classes import NamedTuple

from ....core.alphabet import PROTEIN
from ....core.ports import QueryReport
from ....core.records import DELETE, INSERT
from ....core.sequences import ModelBatch
from ...common.numbers import bit_score_text, evalue_text, percent_text, score_text
from ..lines import Lines
from ..midline import midline, model_rows, with_masks

WIDTH = 60
"""Columns of an alignment per line."""
LONGEST = 3000
"""Columns of an alignment that are shown."""
LISTED, SHOWN = 500, 50
"""Alignments of a hit that are listed, and those of them whose residues are shown."""


class Rows(NamedTuple):
    """Residues of an alignment, one row above the other.

    Attributes:
        upper, middle, lower: of one length; posterior: HMMER's line of probabilities, "" without.
        query_at, target_at: coordinate (from 1) of the first residue of either row.
        target_step: −1 for a target that is read backwards.
    """

    upper: str
    middle: str
    lower: str
    posterior: str
    query_at: int
    target_at: int
    target_step: int


class Alignment(NamedTuple):
    """One alignment.

    Attributes:
        cells: of its line in the list of a hit with several.
        facts: what is said of it, in one line.
        rows: None where residues aren't shown.
        cut: columns that ``rows`` leaves out.
    """

    cells: Sequence[str]
    facts: str
    rows: Rows | None
    cut: int


COLUMNS = ("Query", "Target", "Strand", "Length", "Identity", "Score", "E-value")
"""Of the list of alignments of a hit."""


def alignments_of(query: QueryReport, lines: Lines, places: Sequence[int], similar: np.ndarray | None,
                  masked: np.ndarray) -> Iterator[Alignment]:
    """The lines ``places`` of one query and hit, of which no more than ``LISTED`` are given."""
    for shown, row in enumerate(places[:LISTED]):
        if not lines.located[row]:
            continue
        rows, cut = (_rows(query, lines, row, similar, masked) if shown < SHOWN else None), 0
        if rows and len(rows.upper) > LONGEST:
            cut = len(rows.upper) - LONGEST
            rows = rows._replace(**{name: getattr(rows, name)[:LONGEST] for name in _TEXTS})
        yield Alignment(_cells(lines, row), facts_of(lines, row), rows, cut)


_TEXTS = ("upper", "middle", "lower", "posterior")


def _cells(lines: Lines, row: int) -> list[str]:
    data = lines.rows
    ends = [f"{data[f'{side}_start'][row] + 1:,}–{data[f'{side}_end'][row]:,}" for side in ("query", "target")]
    length, bits = int(lines.lengths[row]), float(data["bit_score"][row])
    return [*ends, "−" if lines.turned[row] else "+", f"{length:,}" if length >= 0 else "",
            _percent(int(lines.identities[row]), length), _plain(bit_score_text(bits) if bits == bits else
                                                               score_text(data["score"][row].item())),
            _plain(evalue_text(float(data["evalue"][row])))]


def _percent(count: int, total: int) -> str:
    text = percent_text(count, total, 1)
    return "" if text == "*" else f"{text} %"


def _plain(text: str) -> str:
    return "" if text == "*" else text.strip()


def facts_of(lines: Lines, row: int) -> str:
    """Score, E-value, counts of columns, and what a profile search says of a domain."""
    data, parts = lines.rows, []
    bits, raw, evalue = (data[name][row].item() for name in ("bit_score", "score", "evalue"))
    parts.append(f"Score {bit_score_text(bits).strip()} bits ({score_text(raw)})" if bits == bits else
                 f"Score {score_text(raw)}")
    if evalue == evalue:
        parts.append(f"E-value {evalue_text(evalue)}")
    length = int(lines.lengths[row])
    counts = [("Identities", int(lines.identities[row])), ("Gaps", int(lines.count("gaps", "gaps")[row]))]
    if lines.alphabet is PROTEIN:
        counts.insert(1, ("Positives", int(lines.positives[row])))
    parts += [f"{name} {count:,}/{length:,} ({_percent(count, length)})" for name, count in counts
              if count >= 0 and length > 0]
    parts.append(f"Query {data['query_start'][row] + 1:,}–{data['query_end'][row]:,}")
    parts.append(f"Target {data['target_start'][row] + 1:,}–{data['target_end'][row]:,}")
    if lines.alphabet is not PROTEIN:
        parts.append(f"Strand {'plus/minus' if lines.turned[row] else 'plus/plus'}")
    if "env_start" in data:
        parts.append(f"Envelope {data['env_start'][row] + 1:,}–{data['env_end'][row]:,}")
    for name, title in (("accuracy", "Accuracy"), ("bias", "Bias")):
        if name in data and data[name][row] == data[name][row]:
            parts.append(f"{title} {data[name][row]:.2f}")
    if "conditional_evalue" in data:
        parts.append(f"Conditional E-value {evalue_text(float(data['conditional_evalue'][row]))}")
    return " · ".join(parts)


def _rows(query: QueryReport, lines: Lines, row: int, similar: np.ndarray | None, masked: np.ndarray) -> Rows | None:
    data = lines.rows
    if query.sequences is None:
        return None
    if isinstance(query.sequences, ModelBatch):
        both = _scanned(query, lines, row)
    else:
        both = _of_sequences(lines, row, similar, masked)
    if both is None:
        return None
    turned = bool(lines.turned[row])
    posterior = data["posterior"][row] if "posterior" in data else None
    return Rows(*both, posterior or "", int(data["query_start"][row]) + 1,
                int(data["target_end"][row]) if turned else int(data["target_start"][row]) + 1, -1 if turned else 1)


def _of_sequences(lines: Lines, row: int, similar: np.ndarray | None, masked: np.ndarray
                  ) -> tuple[str, str, str] | None:
    """Rows of a target that is a sequence, of a query that is one or a model."""
    aligned = lines.aligned[row]
    if aligned is None:
        return None
    if lines.block.residues is None:
        (upper, lower), middle = model_rows(lines, row, *aligned)
    else:
        middle = midline(lines, *aligned, similar)
        upper, lower = with_masks(aligned[0], int(lines.rows["query_start"][row]), masked), aligned[1]
    return upper.decode("latin-1"), middle, lower.decode("latin-1")


def _scanned(query: QueryReport, lines: Lines, row: int) -> tuple[str, str, str] | None:
    """Rows of a target that is a model, shown as its consensus."""
    data, models = lines.rows, query.sequences
    assert models is not None and query.residues is not None
    model: Any = models.by_ordinal(int(data["target"][row]))
    consensus, path = getattr(model, "consensus", ""), np.asarray(data["path"][row])
    if not consensus or not len(path) or lines.turned[row]:
        return None
    kinds = np.repeat(path & 15, path >> 4)
    in_query, in_model = kinds != DELETE, kinds != INSERT
    residue = int(data["query_start"][row]) + np.cumsum(in_query) - 1
    node = int(data["target_start"][row]) + np.cumsum(in_model) - 1
    paired = in_query & in_model
    codes, gap = query.residues[np.where(in_query, residue, 0)], ord("-")
    upper = np.where(in_query, lines.alphabet.bytes[codes], gap).astype(np.uint8)
    letters = np.frombuffer(consensus.encode("latin-1", "replace"), np.uint8)[np.where(in_model, node, 0)]
    lower = np.where(in_model, letters, gap).astype(np.uint8)
    middle = np.full(len(kinds), ord(" "), np.uint8)
    middle[paired] = np.where(model.favours(node[paired], codes[paired]), ord("+"), ord(" "))
    same = paired & ((upper & 0xDF) == (lower & 0xDF))
    middle[same] = lower[same]
    return upper.tobytes().decode("latin-1"), middle.tobytes().decode("latin-1"), lower.tobytes().decode("latin-1")


def text_of(rows: Rows) -> str:
    """Rows in lines of ``WIDTH`` columns with the coordinates of their ends; the page's script makes the same text."""
    wide = max(len(str(at + step * _residues(row))) for at, step, row in (
        (rows.query_at, 1, rows.upper), (rows.target_at, rows.target_step, rows.lower)))
    query, target, parts = rows.query_at, rows.target_at, []
    for first in range(0, len(rows.upper), WIDTH):
        upper, middle, lower, posterior = (getattr(rows, name)[first : first + WIDTH] for name in _TEXTS)
        last_query = query + _residues(upper)
        last_target = target + rows.target_step * _residues(lower)
        end_query, end_target = max(query, last_query - 1), (
            max(target, last_target - 1) if rows.target_step > 0 else min(target, last_target + 1))
        parts.append(f"Query   {query:<{wide}}  {upper}  {end_query}\n{'':{wide + 10}}{middle}\n"
                     f"Target  {target:<{wide}}  {lower}  {end_target}\n"
                     + (f"{'PP':<{wide + 10}}{posterior}\n" if posterior else ""))
        query, target = last_query, last_target
    return "\n".join(parts)


def _residues(row: str) -> int:
    return len(row) - row.count("-")


def packed(hits: Sequence[Any]) -> str:
    """Plain data of hits for the page's script: JSON, compressed, in letters."""
    text = json.dumps(hits, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
    return base64.b64encode(gzip.compress(text, 9, mtime=0)).decode()


def plain_data(alignment: Alignment, several: bool, similar: str) -> list[Any]:
    """What the script makes an alignment of: cells, facts, rows, columns that are cut off.

    Of the rows, the lower one has "." where it repeats the upper one. The middle one is as ``_middle`` says under a
    ``mode``; where none gives it, it is whole, and so is the lower one.

    Args:
        several: whether its hit has others, so that its cells are shown.
        similar: see ``similar_letters``.
    """
    cells, rows = list(alignment.cells) if several else [], alignment.rows
    if rows is None:
        return [cells, alignment.facts, 0, 0]
    upper, lower = rows.upper, rows.lower
    same = [u.upper() == v != "-" for u, v in zip(upper, lower)]
    marks = "".join(m for m, equal in zip(rows.middle, same) if not equal)
    short = "".join("." if equal else v for v, equal in zip(lower, same))
    coordinates = [rows.query_at, rows.target_at, rows.target_step]
    for mode in "sbma":
        if _middle(mode, upper, lower, same, marks, similar) == rows.middle:
            return [cells, alignment.facts, [mode, upper, marks if mode in "ma" else "", short, rows.posterior,
                                             *coordinates], alignment.cut]
    return [cells, alignment.facts, ["", upper, rows.middle, lower, rows.posterior, *coordinates], alignment.cut]


def _middle(mode: str, upper: str, lower: str, same: Sequence[bool], marks: str, similar: str) -> str:
    """The middle row of a mode: "s" (similar pairs), "b" (bars where residues are equal), "m" (marks where they
    aren't), "a" (the same, and the upper row's letter as it is)."""
    if mode == "b":
        return "".join("|" if equal else " " for equal in same)
    left = iter(marks)
    pairs = frozenset(similar.split())
    return "".join(
        (u if mode == "a" else u.upper()) if equal else
        next(left) if mode != "s" else "+" if u.upper() + v in pairs else " "
        for u, v, equal in zip(upper, lower, same))


def similar_letters(similar: np.ndarray | None) -> str:
    """Pairs of unlike letters that are similar, with blanks between; "" without."""
    if similar is None:
        return ""
    letters = PROTEIN.letters
    return " ".join(letters[a] + letters[b] for a, b in np.argwhere(similar[: len(letters), : len(letters)]).tolist()
                    if a != b)
