"""Scores of exact Smith–Waterman against parasail's."""

import json
import sys

from seqloom.plugins.common import nucleotide_tables
from seqloom.plugins.common.karlin_tables import GAPPED

from tests.fresh.case import Case
from tests.fresh.residues import AMINO_ACIDS, BASES, Draw

PEER = """
import json, sys
import numpy, parasail
asked = json.load(open("asked.json"))
def read(name):
    return [r.splitlines() for r in open(name).read().split(">")[1:]]
if asked["matrix"]:
    matrix = getattr(parasail, asked["matrix"].lower())
else:
    matrix = parasail.matrix_create("ACGT", asked["match"], asked["mismatch"])
turn = str.maketrans("ACGT", "TGCA")
for query, *residues in read("q.fa"):
    text, best = "".join(residues), []
    for number, (target, *rest) in enumerate(read("t.fa")):
        other = "".join(rest)
        both = [text] if asked["matrix"] else [text, text[::-1].translate(turn)]
        score = max(parasail.sw_scan_32(t, other, asked["open"] + asked["extend"], asked["extend"], matrix).score
                    for t in both)
        if score >= 1:
            best.append((query.split()[0], target.split()[0], score))
    for line in sorted(best):
        print(*line, sep="\\t")
"""
# parasail's BLOSUM80 is another one than NCBI's.
MATRICES = ("BLOSUM45", "BLOSUM50", "BLOSUM62", "BLOSUM90", "PAM30", "PAM70", "PAM250")


def align(draw: Draw) -> Case:
    """Best score of every pair, residues without ambiguities."""
    queries, targets = draw.search((1, 300), 2, 10)
    plain = [["".join(c for c in text.upper() if c in draw.kind) or draw.kind[0] for text in texts]
             for texts in (queries, targets)]
    draw.write("q.fa", plain[0], "q")
    draw.write("t.fa", plain[1], "t")
    if draw.kind == AMINO_ACIDS:
        matrix = draw.random.choice(MATRICES)
        gap_open, gap_extend = draw.random.choice(sorted(GAPPED[matrix]))
        asked = {"matrix": matrix, "open": gap_open, "extend": gap_extend}
        words = ["sw", "--matrix", matrix]
    else:
        match, mismatch = draw.random.choice(sorted(nucleotide_tables.GAPPED))
        costs = nucleotide_tables.GAPPED[match, mismatch].rows
        gap_open, gap_extend = draw.random.choice([pair for pair in costs if pair != (0, 0)] or [(3, 3)])
        asked = {"matrix": "", "match": match, "mismatch": mismatch, "open": gap_open, "extend": gap_extend}
        words = ["sw-nucleotide", "--match", str(match), "--mismatch", str(mismatch)]
    (draw.folder / "asked.json").write_text(json.dumps(asked))
    ours = [*words, "-q", "q.fa", "-d", "t.fa", "--gapopen", str(gap_open), "--gapextend", str(gap_extend),
            "--evalue", "1e300", "--no-store", "--quiet", "--backend", draw.random.choice(("cpu", "reference")), "-f",
            "6 qseqid sseqid score"]
    return Case(ours, [[sys.executable, "-c", PEER]], compare=_same_scores)


def _same_scores(ours: str, peer: str) -> str | None:
    found, wanted = sorted(ours.splitlines()), sorted(peer.splitlines())
    difference = sorted(set(found) ^ set(wanted))
    return None if found == wanted else f"{len(difference)} lines, first {difference[:2]}"


DRAWS = {"sw": (AMINO_ACIDS, align), "sw-nucleotide": (BASES, align)}
