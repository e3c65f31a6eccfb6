"""Alignments as the lines that the peer prints with -outfmt '6 std qlen slen nident positive gaps score btop'."""

import numpy as np
from seqloom.core.records import DELETE, INSERT, MATCH, Hits
from seqloom.core.sequences import SequenceBatch


def evalue_text(evalue: float) -> str:
    if evalue < 1e-180:
        return "0.0"
    for limit, form in ((0.0009, "%.2e"), (0.1, "%.3f"), (1, "%.2f"), (10, "%.1f")):
        if evalue < limit:
            return form % evalue
    return f"{evalue:.0f}"


def bits_text(bits: float) -> str:
    return f"{bits:5.3e}" if bits > 99999 else str(int(bits)) if bits > 99.9 else f"{bits:4.1f}"


def trace_text(path: np.ndarray, query: str, target: str) -> str:
    """BTOP: numbers of matches and pairs of residues that differ, from the aligned stretches."""
    text, matches, i, j = "", 0, 0, 0
    for run in path.tolist():
        length, operation = run >> 4, run & 15
        if operation == MATCH:
            matches += length
            i, j = i + length, j + length
            continue
        text, matches = text + (str(matches) if matches else ""), 0
        for _ in range(length):
            text += ("-" if operation == DELETE else query[i]) + ("-" if operation == INSERT else target[j])
            i, j = i + (operation != DELETE), j + (operation != INSERT)
    return text + (str(matches) if matches else "")


def lines(hits: Hits, queries: SequenceBatch, targets: SequenceBatch) -> list[str]:
    """One line per alignment, in order of report."""
    found = []
    for row in hits.alignments.rows():
        query, target = int(queries.locate(row["query"])), int(targets.locate(row["target"]))
        residues = [batch.alphabet.decode(batch[place]) for batch, place in ((queries, query), (targets, target))]
        spans = slice(row["query_start"], row["query_end"]), slice(row["target_start"], row["target_end"])
        stretches = residues[0][spans[0]], residues[1][spans[1]]
        fields = [
            queries.names[query],
            targets.names[target],
            f"{row['identities'] / row['length'] * 100:.3f}",
            row["length"],
            row["mismatches"],
            row["gap_opens"],
            row["query_start"] + 1,
            row["query_end"],
            row["target_start"] + 1,
            row["target_end"],
            evalue_text(row["evalue"]),
            bits_text(row["bit_score"]),
            len(residues[0]),
            len(residues[1]),
            row["identities"],
            row["positives"],
            row["gaps"],
            row["score"],
            trace_text(np.array(row["path"]), *stretches),
        ]
        found.append("\t".join(map(str, fields)))
    return found
