"""The output format ``stockholm``: all included domains of a query as one alignment to its model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import IO

import numpy as np
from seqloom.core.classes import NamedTuple
from seqloom.core.ports import QueryReport, Report
from seqloom.core.records import DELETE, INSERT

from .report_rows import HitRow, HmmerWriter, hit_rows

_COLUMNS = 200
"""Of a block of lines."""
_GAP, _SKIPPED = ord("."), ord("-")
_LEAST = np.float32(0.01)
"""Posterior probability that the label 0 stands for; the others stand for tenths, * for 1."""


class Row(NamedTuple):
    """A domain as it is aligned to the model.

    Attributes:
        name, description: of the stretch of the target.
        nodes: i8[n], node of each residue, from 1 on; of an inserted one the node before it.
        inserted: bool[n].
        letters, labels: u8[n], residues and their posterior probabilities.
    """

    name: str
    description: str
    nodes: np.ndarray
    inserted: np.ndarray
    letters: np.ndarray
    labels: np.ndarray


class StockholmAlignment(HmmerWriter):
    """Included domains of each query, aligned to its model (-A of HMMER)."""

    name = "stockholm"
    families = beside = ("profile-hmm", "profile-hmm-nucleotide", "sequence-profile")

    def write(self, report: Report, stream: IO[str], fields: Sequence[str]) -> None:
        width = 0 if "notextw" in self.options(fields, ("notextw",)) else _COLUMNS
        for query in report.queries(residues=True):
            rows = [row for hit in hit_rows(query) if hit.values["included"] for row in _rows(query, hit)]
            if rows:
                stream.writelines(_alignment(str(report.run["pipeline"]), query, rows, width))


def _rows(query: QueryReport, hit: HitRow) -> Iterator[Row]:
    assert query.sequences is not None
    residues = query.sequences.by_ordinal(hit.number)
    shown = query.model.letters if query.model else query.sequences.alphabet.bytes.__getitem__
    for domain in hit.domains:
        if domain["included"]:
            path = np.array(domain["path"], np.uint32)
            operations = np.repeat(path & 15, path >> 4)
            there = operations != INSERT
            start, end = domain["target_start"], domain["target_end"]
            letters, inserted = shown(residues[start:end]), operations[there] == DELETE
            yield Row(f"{hit.name}/{start + 1}-{end}", f"[subseq from] {hit.description or hit.name}",
                      (domain["query_start"] + np.cumsum(operations != DELETE))[there], inserted,
                      letters | (inserted * np.uint8(0x20)),
                      np.frombuffer(domain["posterior"].encode(), np.uint8)[there])


def _alignment(program: str, query: QueryReport, rows: Sequence[Row], width: int) -> Iterator[str]:
    columns, consensus = _columns(query.length, rows)
    lines: list[tuple[str, np.ndarray]] = []
    names = max(len(row.name) for row in rows)
    total, used = np.zeros(len(consensus)), np.zeros(len(consensus), np.int64)
    for row in rows:
        places = _places(columns, row)
        for title, gap, values in ((row.name, np.where(consensus, _SKIPPED, _GAP), row.letters),
                                   (f"#=GR {row.name:<{names}} PP", np.full(len(consensus), _GAP), row.labels)):
            text = gap.astype(np.uint8)
            text[places] = values
            lines.append((title, text))
        aligned = ~row.inserted
        total[places[aligned]] += _probabilities(row.labels[aligned])
        used[places[aligned]] += 1
    lines.append(("#=GC PP_cons", _labels(total, used)))
    lines.append(("#=GC RF", np.where(consensus, ord("x"), _GAP).astype(np.uint8)))

    yield f"# STOCKHOLM 1.0\n#=GF ID {query.name}\n"
    for tag, value in (("AC", query.accession), ("DE", query.description), ("AU", f"{program} (seqloom)")):
        yield f"#=GF {tag} {value}\n" if value else ""
    yield "\n"
    yield from (f"#=GS {row.name:<{names}} DE {row.description}\n" for row in rows)
    margin = names + 8
    for begin in range(0, len(consensus), width or len(consensus)):
        yield "\n"
        part = slice(begin, begin + (width or len(consensus)))
        yield from (f"{title:<{margin}} {text[part].tobytes().decode()}\n" for title, text in lines)
    yield "//\n"


def _columns(length: int, rows: Sequence[Row]) -> tuple[np.ndarray, np.ndarray]:
    """i8[M + 2], column of each node, where those inserted before node 1 begin at 0 and all end at M + 1; and bool[n],
    which columns are nodes."""
    inserts = np.zeros(length + 1, np.int64)
    for row in rows:
        np.maximum(inserts, np.bincount(row.nodes[row.inserted], minlength=length + 1), out=inserts)
    columns = np.zeros(length + 2, np.int64)
    columns[1:] = np.cumsum(inserts) + np.arange(length + 1)
    consensus = np.zeros(columns[-1], bool)
    consensus[columns[1:-1]] = True
    return columns, consensus


def _places(columns: np.ndarray, row: Row) -> np.ndarray:
    """i8[n]: the column of each residue. Of inserted ones the first half stands left, the rest right."""
    places = columns[row.nodes].copy()
    for node in np.unique(row.nodes[row.inserted]).tolist():
        own = np.flatnonzero(row.inserted & (row.nodes == node))
        left = len(own) // 2
        places[own[:left]] = columns[node] + 1 + np.arange(left)
        places[own[left:]] = columns[node + 1] - len(own) + left + np.arange(len(own) - left)
    return places


def _probabilities(labels: np.ndarray) -> np.ndarray:
    """f4[n] of what labels stand for."""
    tenths = (labels.astype(np.float32) - np.float32(ord("0"))) / np.float32(10.0)
    return np.where(labels == ord("*"), np.float32(1.0), np.where(labels == ord("0"), _LEAST, tenths))


def _labels(total: np.ndarray, used: np.ndarray) -> np.ndarray:
    """u8[n]: label of the mean, "." where nothing was added up."""
    raised = (total / np.maximum(used, 1)).astype(np.float32).astype(np.float64) + 0.05
    digits = ord("0") + np.minimum(raised * 10.0, 9.0).astype(np.uint8)
    return np.where(used == 0, _GAP, np.where(raised >= 1.0, ord("*"), digits)).astype(np.uint8)
