"""Nucleotide alignments as the peer's lines of -outfmt '6 std qlen slen nident positive gaps score btop'."""

import numpy as np
from seqloom.core.alphabet import NUCLEOTIDE
from seqloom.core.records import Hits
from seqloom.core.sequences import SequenceBatch

from tests.plugins.protein_blast.tabular import bits_text, evalue_text, trace_text


def lines(hits: Hits, queries: SequenceBatch, targets: SequenceBatch) -> list[str]:
    """One line per alignment, in order of report."""
    found = []
    for row in hits.alignments.rows():
        query, target = int(queries.locate(row["query"])), int(targets.locate(row["target"]))
        opposite = targets[target][row["target_start"] : row["target_end"]]
        place = [row["target_start"] + 1, row["target_end"]]
        if row["target_frame"] < 0:
            opposite, place = NUCLEOTIDE.complement[opposite][::-1], place[::-1]
        aligned = queries[query][row["query_start"] : row["query_end"]]
        fields = [
            queries.names[query],
            targets.names[target],
            f"{row['identities'] / row['length'] * 100:.3f}",
            row["length"],
            row["mismatches"],
            row["gap_opens"],
            row["query_start"] + 1,
            row["query_end"],
            *place,
            evalue_text(row["evalue"]),
            bits_text(row["bit_score"]),
            queries.lengths[query],
            targets.lengths[target],
            row["identities"],
            row["positives"],
            row["gaps"],
            row["score"],
            trace_text(np.array(row["path"]), NUCLEOTIDE.decode(aligned), NUCLEOTIDE.decode(opposite)),
        ]
        found.append("\t".join(map(str, fields)))
    return found
