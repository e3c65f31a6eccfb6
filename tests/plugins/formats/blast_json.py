"""Records made from BLAST's own output (format 15), and a report of them, to compare writers with BLAST."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from seqloom.core.alphabet import NUCLEOTIDE, PROTEIN
from seqloom.core.context import SearchSpace
from seqloom.core.engine.memory import MemorySource
from seqloom.core.records import DELETE, INSERT, MATCH, MISMATCH, Alignments, Hits, Ragged
from seqloom.core.sequences import Intervals, SequenceBatch
from seqloom.plugins.nucleotide_blast.scoring import NucleotideBlast, NucleotideBlastOptions
from seqloom.plugins.protein_blast.family import ProteinBlast
from seqloom.plugins.protein_blast.options import BlastpOptions

from tests.reports import HeldReport

DATA = Path(__file__).parent / "data"


@dataclass
class MemoryReport(HeldReport):
    """A report of hits in memory."""

    queries_batch: Any
    source: MemorySource
    hits: Hits
    run: dict[str, Any] = field(default_factory=dict)
    masks: Any = ()
    family: Any = None
    options: Any = None

    @property
    def method(self) -> Any:
        return self.family.method(self.options) if self.family else None

    def statistics(self, number: int) -> Any:
        space = SearchSpace(self.run["letters"], self.run["sequences"])
        return self.family.statistics(self.queries_batch.take(number, number + 1), space, self.options)

    def masked(self, number: int) -> np.ndarray:
        return np.array(self.masks, np.int32).reshape(-1, 2)

    def masked_targets(self, numbers: np.ndarray) -> Intervals:
        return Intervals.empty()


def read_fasta(path: Path, alphabet: Any) -> SequenceBatch:
    records = [record.partition("\n") for record in path.read_text().split(">")[1:]]
    heads = [head.strip().partition(" ") for head, _, _ in records]
    batch = SequenceBatch.of(alphabet, ["".join(body.split()) for _, _, body in records], [h[0] for h in heads])
    return SequenceBatch(batch.alphabet, batch.residues, batch.offsets, batch.ordinals, names=batch.names,
                         descriptions=[h[2].strip() for h in heads])


def path_of(query: str, target: str) -> list[int]:
    steps = [INSERT if t == "-" else DELETE if q == "-" else MATCH if q == t else MISMATCH
             for q, t in zip(query, target, strict=True)]
    runs: list[list[int]] = []
    for step in steps:
        if runs and runs[-1][0] == step:
            runs[-1][1] += 1
        else:
            runs.append([step, 1])
    return [length << 4 | step for step, length in runs]


def blast_report(kind: str, turn: bool = False) -> MemoryReport:
    """The results of ``data/<kind>.json`` ("protein", "nucleotide").

    Args:
        turn: give matches with the minus strand as the reverse strand of the query against the forward one of the
            target, with the path along the query's reverse strand.
    """
    alphabet = PROTEIN if kind == "protein" else NUCLEOTIDE
    queries = read_fasta(DATA / f"{kind}_queries.fasta", alphabet)
    targets = read_fasta(DATA / f"{kind}_targets.fasta", alphabet)
    place = {name: n for n, name in enumerate(targets.names)}
    hits, rows = [], []
    for query, result in enumerate(json.loads((DATA / f"{kind}.json").read_text())["BlastOutput2"]):
        for hit in result["report"]["results"]["search"]["hits"]:
            target = place[hit["description"][0]["title"].split()[0]]
            best = hit["hsps"][0]
            hits.append((query, target, best["score"], best["bit_score"], best["evalue"]))
            for hsp in hit["hsps"]:
                minus = hsp.get("hit_strand") == "Minus"
                start, end = sorted((hsp["hit_from"], hsp["hit_to"]))
                path = path_of(hsp["qseq"], hsp["hseq"])
                frames = (-1, 1) if minus and turn else (1, -1) if minus else (1, 1)
                rows.append({
                    "query": query, "target": target, "score": hsp["score"], "bit_score": hsp["bit_score"],
                    "evalue": hsp["evalue"], "query_start": hsp["query_from"] - 1, "query_end": hsp["query_to"],
                    "target_start": start - 1, "target_end": end, "query_frame": frames[0], "target_frame": frames[1],
                    "positives": hsp.get("positive", -1), "path": path[::-1] if frames[0] < 0 else path})
    data: dict[str, Any] = {name: [row[name] for row in rows] for name in rows[0]}
    data["path"] = Ragged.of(data["path"])
    names = ("query", "target", "score", "bit_score", "evalue")
    records = Hits({n: [hit[i] for hit in hits] for i, n in enumerate(names)}, alignments=Alignments(data))
    run = {"pipeline": "blastp" if kind == "protein" else "blastn", "version": "1.0", "target_type": kind,
           "options": {}, "databases": [{"title": "targets", "path": "targets.duckdb"}], "queries": len(queries),
           "sequences": len(targets), "letters": targets.total_residues}
    protein = kind == "protein"  # with the options that README.md names
    family = ProteinBlast() if protein else NucleotideBlast()
    options = BlastpOptions(evalue=0.1, comp_based_stats="0") if protein else NucleotideBlastOptions(dust="no")
    return MemoryReport(queries, MemorySource(targets), records, run, (), family, options)
